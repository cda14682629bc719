package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// defaultExecuteMS is how long a prompt may run unless the caller says
// otherwise (the executor catalog's program), in milliseconds.
const defaultExecuteMS = 300_000

// registerExecutor registers what a daemon calls of an executor (the executor catalog):
// for such a daemon, duet-rpc is one. A session token is optional, since all
// who can connect are the same user; one that is wrong, or of another
// conversation, is refused.
func registerExecutor(reg *server.Registry, d Domain) {
	e := executor{d}
	f := executorFamily
	handle(reg, d, f, "execute_prompt", e.execute, server.LongRunning(),
		server.Doc("Runs a prompt to its end. An agent that fails is a result with status failed. Cancelling the request ends the run."))
	handle(reg, d, f, "stop_task", e.stop, server.Doc("Begins to end a task. One that is not known, or has ended, is no error."))
	handle(reg, d, f, "cancel_task", e.stop, server.Doc("Does what stop_task does; mostly sent as a notification."))
	handle(reg, d, f, "create_message", e.createMessage, server.Doc("Puts a message into a task's conversation."))
	handle(reg, d, f, "secret.provide", e.provide, server.Doc("Answers the event secret_requested. The secret is passed on, never kept and never logged."))
}

type executor struct{ Domain }

type executeParams struct {
	SessionToken   string                  `json:"session_token,omitempty" doc:"Optional; one that is wrong, or of another conversation, is refused."`
	SessionID      string                  `json:"session_id,omitempty" doc:"The caller's own id of the conversation, or any id of one that there is. Prompts with the same one follow each other."`
	TaskID         string                  `json:"task_id,omitempty" doc:"The caller's own id of this prompt; it must be new, and not of the form task-0001, which is ours."`
	Prompt         string                  `json:"prompt" doc:"What the agent is to do."`
	CWD            string                  `json:"cwd,omitempty" doc:"The directory in which the agent works; absent: the project's root."`
	Tools          []string                `json:"tools,omitempty" doc:"The tools that are allowed; absent or empty: all."`
	PermissionMode protocol.PermissionMode `json:"permission_mode,omitempty" doc:"What the agent may do without asking; absent: as in the conversation so far. A plain command cannot be held to plan, which is refused."`
	TimeoutMS      int64                   `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; 300000 unless above 0."`
	Stream         *bool                   `json:"stream,omitempty" doc:"False: subscribers get whole messages, no deltas. Default true."`
	AgenticTool    string                  `json:"agentic_tool,omitempty" doc:"Another name for agent; claude-code means claude."`
	Agent          string                  `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	promptContent
}

func (p executeParams) check() error { return first(need("prompt", p.Prompt), p.promptContent.check()) }

func (p executeParams) spec() hub.LaunchSpec {
	prompt, _ := p.with(p.Prompt) // it was checked
	spec := hub.LaunchSpec{
		Prompt: prompt.text, Content: prompt.content, Agent: p.Agent, CWD: p.CWD, Source: domain.SourceExecute, Mode: string(p.PermissionMode),
		Timeout: milliseconds(p.TimeoutMS), Tools: p.Tools, Quiet: p.Stream != nil && !*p.Stream,
		ThreadAlias: p.SessionID, CallerID: p.TaskID,
	}
	if p.TimeoutMS <= 0 {
		spec.Timeout = defaultExecuteMS * time.Millisecond
	}
	if spec.Agent == "" {
		spec.Agent = protocol.AgentOfTool(p.AgenticTool)
	}
	return spec
}

type executeResult struct {
	Status       string                  `json:"status" doc:"completed, failed or cancelled."`
	MessageCount int                     `json:"message_count" doc:"How many messages the agent sent."`
	TokenUsage   *catalog.TokenUsage     `json:"token_usage,omitempty"`
	Error        *catalog.ExecutionError `json:"error,omitempty"`
	StopReason   string                  `json:"stop_reason,omitempty" doc:"The agent's own."`
	Agent        string                  `json:"agent" doc:"The agent that was taken."`
	SessionID    string                  `json:"session_id" doc:"The caller's, else ours."`
	TaskID       string                  `json:"task_id" doc:"The caller's, else ours."`
}

func (e executor) execute(ctx context.Context, h *hub.Hub, p executeParams) (executeResult, error) {
	if err := checkConversation(ctx, h, p); err != nil {
		return executeResult{}, err
	}
	// A request that is cancelled just now must not leave a run behind that
	// nobody knows of.
	s, err := h.Launch(context.WithoutCancel(ctx), p.spec())
	if err != nil {
		return executeResult{}, err
	}
	ended, err := h.Await(ctx, s.SessionID)
	if err != nil {
		e.abandon(ctx, h, s)
		return executeResult{}, err
	}
	return executed(ended, p), nil
}

// abandon ends a run whose request was cancelled. If it is the connection that
// ends, the run goes on: nobody asked for its end.
func (e executor) abandon(ctx context.Context, h *hub.Hub, s domain.Session) {
	select {
	case <-server.ConnFrom(ctx).Stopping():
		return
	default:
	}
	if ctx.Err() == nil {
		return
	}
	if _, err := h.Interrupt(context.WithoutCancel(ctx), s.SessionID, "the request was cancelled"); err != nil {
		e.Logger.Warn("a run whose request was cancelled goes on", "task", domain.TaskName(s.Task), "err", err)
	}
}

func executed(s domain.Session, p executeParams) executeResult {
	r := executeResult{
		Status: protocol.ExecutorStatusOf(s.State), MessageCount: s.Messages, StopReason: s.Stop, Agent: s.Agent,
		SessionID: cmp.Or(p.SessionID, s.SessionID), TaskID: cmp.Or(p.TaskID, domain.TaskName(s.Task)),
	}
	if t := s.Tokens; t != (domain.Run{}).Tokens {
		r.TokenUsage = &catalog.TokenUsage{
			InputTokens: t.Input, OutputTokens: t.Output, CacheReadTokens: t.CacheRead, CacheWriteTokens: t.CacheWrite,
		}
	}
	if r.Status == catalog.StatusFailed || s.Error != "" {
		message, code := protocol.ExecutionError(s.Run)
		r.Error = &catalog.ExecutionError{Message: message, Code: code}
		for _, m := range s.SignIn {
			r.Error.AuthMethods = append(r.Error.AuthMethods, catalog.AuthMethod(m))
		}
	}
	return r
}

// checkConversation refuses a token that is not good for the conversation, of
// which there is none yet if a new one is begun.
func checkConversation(ctx context.Context, h *hub.Hub, p executeParams) error {
	err := h.ExecutorCalls().CheckTokenOf(ctx, p.SessionToken, p.SessionID)
	if hubKind(err) == domain.KindRunNotFound {
		return &domain.Error{Kind: domain.KindInvalidToken, Message: "the session token is good for its own conversation alone"}
	}
	return err
}

// checkToken refuses a token that is wrong; none is fine.
func checkToken(h *hub.Hub, token string) error {
	if token == "" {
		return nil
	}
	return h.ExecutorCalls().CheckToken(token)
}

type stopTaskParams struct {
	SessionToken string `json:"session_token,omitempty" doc:"Optional; one that is wrong, or of another conversation, is refused."`
	TaskID       string `json:"task_id" doc:"The task; every id of the run will do."`
	Reason       string `json:"reason,omitempty" doc:"Why: user_cancelled, timeout, ..."`
}

func (p stopTaskParams) check() error { return need("task_id", p.TaskID) }

type stopTaskResult struct {
	Stopped bool   `json:"stopped" doc:"Its end has begun."`
	Message string `json:"message,omitempty" doc:"Why not."`
}

func (executor) stop(ctx context.Context, h *hub.Hub, p stopTaskParams) (stopTaskResult, error) {
	err := h.ExecutorCalls().CheckTokenOf(ctx, p.SessionToken, p.TaskID)
	if err == nil {
		_, err = h.Interrupt(ctx, p.TaskID, p.Reason)
	}
	switch hubKind(err) {
	case domain.KindRunNotFound, domain.KindNotCancellable, domain.KindBadState:
		return stopTaskResult{Message: err.Error()}, nil
	}
	return stopTaskResult{Stopped: err == nil}, err
}

type createMessageParams struct {
	SessionToken string        `json:"session_token,omitempty" doc:"Optional; one that is wrong, or of another conversation, is refused."`
	TaskID       string        `json:"task_id" doc:"The task; every id of the run will do."`
	Message      messageParams `json:"message" doc:"The message."`
}

type messageParams struct {
	Role    messageRole     `json:"role" doc:"Who says it."`
	Content json.RawMessage `json:"content" doc:"A string, or whatever the type asks for."`
	Type    string          `json:"type,omitempty" doc:"What kind of message it is; absent: message."`
}

// A messageRole is who says a message.
type messageRole string

// Accepted implements schema.Enum.
func (messageRole) Accepted() []string { return []string{"user", "assistant"} }

func (p createMessageParams) check() error { return need("task_id", p.TaskID) }

type createMessageResult struct {
	MessageID string `json:"message_id"`
	CreatedAt string `json:"created_at"`
}

func (executor) createMessage(ctx context.Context, h *hub.Hub, p createMessageParams) (createMessageResult, error) {
	r, err := h.ExecutorCalls().AddMessage(ctx, catalog.CreateMessageParams{
		SessionToken: p.SessionToken, TaskID: p.TaskID,
		Message: catalog.CreateMessage{Role: string(p.Message.Role), Content: p.Message.Content, Type: p.Message.Type},
	})
	return createMessageResult{r.MessageID, r.CreatedAt}, err
}

type provideParams struct {
	RequestID string `json:"request_id" doc:"What the event secret_requested named."`
	Service   string `json:"service,omitempty" doc:"The service that the secret is for."`
	Secret    string `json:"secret" doc:"The secret; empty: there is none."`
}

func (p provideParams) check() error { return need("request_id", p.RequestID) }

func (executor) provide(ctx context.Context, h *hub.Hub, p provideParams) (success, error) {
	err := h.Keys().Provide(p.RequestID, p.Secret)
	return success{err == nil}, err
}

// ExecutorError turns an error of the hub into what an executor is told: the
// codes of the executor catalog.
func ExecutorError(err error) error { return executorFamily.Error(err) }
