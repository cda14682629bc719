package humanlayer

import (
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

type LaunchParams struct {
	Query      string `json:"query" doc:"The prompt."`
	Title      string `json:"title,omitempty" doc:"The session's title."`
	Model      string `json:"model,omitempty" doc:"A model of the agent. A model that the agent is known not to have is refused. If the agent does not list its models, it keeps its own."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The agent's working directory; ~ is expanded. Default: the project's root."`
	protocol.AgentSettings
	protocol.PromptContent
	Verbose           bool   `json:"verbose,omitempty" doc:"Kept for old clients."`
	AutoAcceptEdits   bool   `json:"auto_accept_edits,omitempty" doc:"File edits need no approval."`
	SkipPermissions   bool   `json:"dangerously_skip_permissions,omitempty" doc:"No tool call needs approval."`
	SkipTimeout       *int64 `json:"dangerously_skip_permissions_timeout,omitempty" doc:"Duration in milliseconds. Absent or 0: unlimited."`
	SkipTimeoutMillis *int64 `json:"dangerously_skip_permissions_timeout_ms,omitempty" doc:"Alias of dangerously_skip_permissions_timeout."`

	Agent          string            `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	PermissionMode string            `json:"permission_mode,omitempty" doc:"What the agent may do without asking: default, acceptEdits, bypassPermissions, plan, or a mode of the agent (\"Modes\"). A mode that the agent is known not to have is refused, and so is plan for a plain command."`
	Options        map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by option id. A value that the agent is known not to have is refused."`
	Priority       int               `json:"priority,omitempty" doc:"Higher runs first."`
	TimeoutMS      *uint             `json:"timeout_ms,omitempty" doc:"Time limit in milliseconds. Absent or 0: as configured."`
	ConversationID string            `json:"conversation_id,omitempty" doc:"A UUID that the client chooses as the thread_id of the conversation. If a conversation with this id exists, the session continues it."`
	LaunchID       string            `json:"launch_id,omitempty" doc:"A UUID that the client chooses for this launch. A launch that is sent again with the same id and prompt, for example after an error, returns the session of the first one and starts nothing."`
	protocol.Gated
	Worktree *bool           `json:"worktree,omitempty" doc:"Absent: as worktree in the configuration says. true: the agent works in a git worktree of its own, outside of the project's directory: session.land brings the result to the branch that is checked out now, session.discard deletes it. Only for a new conversation. Uncommitted files of the user are not in it."`
	Draft    bool            `json:"draft,omitempty" doc:"Only store the session. continueSession launches it."`
	Metadata json.RawMessage `json:"metadata,omitempty" doc:"A JSON object that is stored with the session."`
}

type LaunchResult struct {
	SessionID string   `json:"session_id"`
	RunID     string   `json:"run_id"`
	TaskID    string   `json:"task_id" doc:"The task id of the same run."`
	ThreadID  string   `json:"thread_id" doc:"The conversation's id."`
	Agent     string   `json:"agent" doc:"The agent that runs the prompt."`
	Status    string   `json:"status"`
	Beside    []string `json:"beside,omitempty" doc:"Task ids of the sessions of other conversations that work in the same directory and may change the same files."`
}

type ContinueParams struct {
	SessionID string  `json:"session_id" doc:"The session to continue, by any id of the run."`
	Query     *string `json:"query,omitempty" doc:"The prompt. Required unless the session is a draft, which has its own."`
	protocol.AgentSettings
	protocol.PromptContent
	Fork           bool              `json:"fork,omitempty" doc:"Start another conversation from this session, even if it is the last one of its conversation."`
	Agent          string            `json:"agent,omitempty" doc:"With fork: the agent that continues it. Default: the conversation's. Otherwise use session.set."`
	Model          string            `json:"model,omitempty" doc:"With fork: a model of the agent. Default: the conversation's, if the agent is the same."`
	PermissionMode string            `json:"permission_mode,omitempty" doc:"With fork: a permission mode, as in launchSession. Default: plan if the conversation is in plan, else default."`
	Options        map[string]string `json:"options,omitempty" doc:"With fork: values of the agent's options, by option id. The conversation's others are kept, if the agent is the same."`
	ForkID         string            `json:"conversation_id,omitempty" doc:"With fork: a UUID that the client chooses as the thread_id of the new conversation."`
	Priority       int               `json:"priority,omitempty" doc:"Higher runs first."`
	Metadata       json.RawMessage   `json:"metadata,omitempty" doc:"A JSON object that is stored with the session."`
	Deliver        string            `json:"deliver,omitempty" doc:"queue (default): the prompt waits for the end of the current turn. steer: the agent gets the prompt during the turn if it can, otherwise the prompt waits, before the other queued prompts. A prompt with content, other settings or gates always waits."`

	TimeoutMS *uint `json:"timeout_ms,omitempty" doc:"Time limit in milliseconds. Absent or 0: that of the previous session."`
	protocol.Gated
}

type ContinueResult struct {
	LaunchResult
	ClaudeSessionID string `json:"claude_session_id" doc:"The agent's id of its session. Empty before its first turn."`
	ParentSessionID string `json:"parent_session_id"`
	Delivered       string `json:"delivered" doc:"injected (the working agent has the prompt, and session_id is its session), started or queued."`
}

// Native returns the parameters of session.start.
func (p LaunchParams) Native() protocol.StartParams {
	return protocol.StartParams{
		Prompt: p.Query, Title: p.Title, Agent: p.Agent, Model: p.Model, Mode: p.PermissionMode, Options: p.Options, WorkingDir: p.WorkingDir,
		AgentSettings: p.AgentSettings, PromptContent: p.PromptContent,
		AutoAcceptEdits: p.AutoAcceptEdits, SkipPermissions: p.SkipPermissions, SkipPermissionsMS: cmp.Or(p.SkipTimeout, p.SkipTimeoutMillis),
		Priority: p.Priority, TimeoutMS: p.TimeoutMS, SessionUUID: p.ConversationID, StartID: p.LaunchID, Gated: p.Gated,
		Worktree: p.Worktree, Draft: p.Draft, Metadata: p.Metadata,
	}
}

func (p ContinueParams) next() protocol.NextTurn {
	return protocol.NextTurn{
		AgentSettings: p.AgentSettings, PromptContent: p.PromptContent, Priority: p.Priority, Metadata: p.Metadata, TimeoutMS: p.TimeoutMS,
		Gated: p.Gated,
	}
}

// Prompt returns the parameters of session.prompt, without Fork.
func (p ContinueParams) Prompt() protocol.PromptParams {
	return protocol.PromptParams{Session: protocol.Ref(p.SessionID), Prompt: p.Query, Deliver: p.Deliver, NextTurn: p.next()}
}

// ForkParams returns the parameters of session.fork, with Fork.
func (p ContinueParams) ForkParams() protocol.ForkParams {
	return protocol.ForkParams{
		Turn: protocol.Ref(p.SessionID), Prompt: protocol.Value(p.Query), Agent: p.Agent, Model: p.Model, Mode: p.PermissionMode,
		Options:     p.Options,
		SessionUUID: p.ForkID, NextTurn: p.next(),
	}
}

// Launched returns the result of launchSession.
func Launched(s protocol.Started) LaunchResult {
	r := LaunchResult{
		SessionID: s.Of.HumanLayerSession, RunID: s.Of.HumanLayerRun, TaskID: domain.TaskName(s.Of.Task), ThreadID: s.SessionUUID,
		Agent: s.Agent, Status: StatusOf(s.Of.State),
	}
	for _, other := range s.Others {
		r.Beside = append(r.Beside, domain.TaskName(other.Task))
	}
	return r
}

// Continued returns the result of continueSession.
func Continued(s protocol.Started) ContinueResult {
	return ContinueResult{
		LaunchResult: Launched(s), ClaudeSessionID: s.Of.Session.NativeSession, ParentSessionID: s.Of.ParentHumanLayerSession,
		Delivered: string(s.Delivered),
	}
}

// Check refuses an agent and its settings without fork. session.set changes a conversation.
func (p ContinueParams) Check() error {
	if err := protocol.NotEmpty("session_id", p.SessionID); err != nil {
		return err
	}
	if p.Fork {
		return nil
	}
	for _, c := range []struct {
		param string
		given bool
	}{{"agent", p.Agent != ""}, {"model", p.Model != ""}, {"permission_mode", p.PermissionMode != ""}, {"options", len(p.Options) > 0}} {
		if c.given {
			return server.InvalidParam(server.ParamError{
				Param: c.param, Expected: "nothing without fork; session.set changes a conversation", Received: "a value",
			})
		}
	}
	return nil
}
