package protocol

import (
	"cmp"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
)

type AgentList struct {
	Agents []agentlink.Agent `json:"agents" doc:"The default one first, then those that are available."`
}

type AgentParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
}

type AuthenticateParams struct {
	Agent  string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	Method string `json:"method,omitempty" doc:"The id of a way to sign in, as agent.check lists them; absent: the only one."`
}

type SignInStatus struct {
	Agent   string           `json:"agent" doc:"Its name in the configuration."`
	Report  agentlink.Report `json:"report"`
	Missing []string         `json:"missing_keys,omitempty" doc:"Keys that are configured for it and could not be had, in words; it was started without them."`
}

type SetSessionParams struct {
	SessionID string            `json:"session_id" doc:"The session; every id of the run will do."`
	Agent     *string           `json:"agent,omitempty" doc:"Another agent of the configuration, which goes on with the conversation from the next prompt on."`
	Mode      *string           `json:"mode,omitempty" doc:"A mode of the agent's, or default, acceptEdits, bypassPermissions or plan (\"Modes\")."`
	Model     *string           `json:"model,omitempty" doc:"A model of the agent's; empty: none is asked for any more."`
	Options   map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by their ids; an empty one is not asked for any more."`
}

func (p SetSessionParams) Check() error {
	return cmp.Or(NotEmpty("session_id", p.SessionID), NotEmptyIfGiven("agent", p.Agent))
}

type SetSessionResult struct {
	Live    bool    `json:"live" doc:"The agent works, and has taken it; else it gets it with the next prompt."`
	Session Session `json:"session" doc:"As of getSessionState."`
}

type DescribeAgentParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
}

type AgentDescription struct {
	Agent        string        `json:"agent"`
	Modes        []Mode        `json:"modes" doc:"All that can be asked for."`
	AgentSession *AgentSession `json:"agent_session,omitempty" doc:"Absent: it has told nothing yet."`
}

// A Mode is one that can be asked for.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	By          string `json:"by" doc:"agent, or duet: whatever the agent is in, Duet answers its questions like that."`
}
