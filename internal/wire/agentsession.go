package wire

import (
	"context"

	"github.com/duet-rpc/duet-rpc/client"
)

// An AgentSession is what an agent tells of its session. Parts that are absent were
// not told.
type AgentSession struct {
	Agent *struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"agent"`
	Mode     *Selection     `json:"mode"`
	Model    *Selection     `json:"model"`
	Options  []AgentOption  `json:"options"`
	Commands []AgentCommand `json:"commands"`
	Info     *struct {
		Title string `json:"title"`
	} `json:"info"`

	Background []BackgroundTask `json:"background"` // nil: not told
}

// A Selection is one of the choices that there are.
type Selection struct {
	Current   string   `json:"current"`
	Available []Choice `json:"available"`
}

// A Choice is something that an agent can be set to.
type Choice struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Group       string `json:"group"`
}

// An AgentOption is a setting of an agent's own.
type AgentOption struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Category    string   `json:"category"`
	Type        string   `json:"type"` // select or boolean
	Current     string   `json:"current"`
	Values      []Choice `json:"values"`
}

// An AgentCommand is a slash command, without the slash.
type AgentCommand struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	InputHint   string `json:"input_hint"`
}

// An AgentDescription is what can be asked of an agent.
type AgentDescription struct {
	Agent        string       `json:"agent"`
	Modes        []Choice     `json:"modes"`
	AgentSession AgentSession `json:"agent_session"`
}

// DescribeAgent asks what can be asked of an agent, or of the agent of a session if that
// is given; "" is the default agent.
func DescribeAgent(ctx context.Context, c *client.Client, agent, session string) (AgentDescription, error) {
	if session != "" {
		s, _, err := SessionState(ctx, c, session)
		return AgentDescription{s.Agent, s.Modes, s.AgentSession}, err
	}
	params := map[string]string{}
	if agent != "" {
		params["agent"] = agent
	}
	k, _, err := Call[AgentDescription](ctx, c, "agent.describe", params)
	return k, err
}

// An Agent is one that is configured or known.
type Agent struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Available bool   `json:"available"`
}

// Agents are those that are configured or known.
func Agents(ctx context.Context, c *client.Client) ([]Agent, error) {
	r, _, err := Call[struct{ Agents []Agent }](ctx, c, "agent.list", nil)
	return r.Agents, err
}

// AddSettings adds to the parameters of a method those members that are not empty, and
// options of an agent, by their ids.
func AddSettings(params map[string]any, members, options map[string]string) {
	for name, value := range members {
		if value != "" {
			params[name] = value
		}
	}
	if len(options) > 0 {
		params["options"] = options
	}
}
