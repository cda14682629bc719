package executor

import (
	"cmp"
	"context"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/dialect/native"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
	"github.com/duet-rpc/duet-rpc/server"
)

// Family has the codes of the executor catalog.
var Family = protocol.Family{Name: "executor", Codes: map[string]protocol.Code{
	domain.KindTurnNotFound: {Code: jsonrpc2.CodeInternalError, Kind: "task_not_found", Message: "Internal error: "},
}, Params: map[string]string{"working_dir": "cwd"}, Tasks: true}

// defaultExecuteMS is how long a prompt may run without a timeout of the caller, in milliseconds. The
// executor catalog defines it.
const defaultExecuteMS = 300_000

// Register registers the methods that a daemon calls on an executor (the executor catalog): duet-rpc can
// be one. A session token is optional, since all clients belong to the same user. A wrong token, or one
// of another conversation, is refused.
func Register(m native.Methods) {
	e := executor{native: m, terminal: native.Call[protocol.StartTerminalParams, protocol.StartTerminalResult](m, "terminal.start")}
	native.Handle(m, Family, "execute_prompt", "Runs a prompt to its end. If the agent fails, the result has status failed. Cancelling the "+
		"request ends the run; the end of the connection does not. The error -32800 says what happens to the run, and has its "+
		"ids.", e.execute, server.LongRunning())
	native.Handle(m, Family, "stop_task", "Begins to stop a task. An unknown task, or one that has ended, is no error.", e.stop)
	native.Handle(m, Family, "cancel_task", "Same as stop_task; usually sent as a notification.", e.stop)
	native.Handle(m, Family, "create_message", "Adds a message to a task's conversation.", e.createMessage)
	native.Compose(m, Family, "spawn_terminal", "Starts a program in a terminal that outlives this connection. Without a subscription, this "+
		"connection gets its output as events terminal_output, and its end as terminal_exit.", e.spawn, server.LongRunning())
}

type executor struct {
	native   native.Methods
	terminal func(context.Context, protocol.StartTerminalParams) (protocol.StartTerminalResult, error)
}

func (p ExecuteParams) Check() error {
	return protocol.NotEmpty("prompt", p.Prompt)
}

func executeSpec(p ExecuteParams) (hub.LaunchSpec, error) {
	text, content, err := transcript.Prompt(p.Prompt, p.PromptContent.Content)
	spec := hub.LaunchSpec{
		Prompt: text, Content: content, Agent: p.Agent, CWD: p.CWD, Source: domain.SourceExecute, Mode: string(p.PermissionMode),
		Timeout: protocol.Milliseconds(p.TimeoutMS), Tools: p.Tools, Quiet: p.Stream != nil && !*p.Stream,
		SessionAlias: p.SessionID, CallerID: p.TaskID, Worktree: new(false), // the caller has chosen the directory
	}
	if p.TimeoutMS <= 0 {
		spec.Timeout = defaultExecuteMS * time.Millisecond
	}
	if spec.Agent == "" {
		spec.Agent = AgentOfTool(p.AgenticTool)
	}
	return spec, err
}

func (e executor) execute(ctx context.Context, h *hub.Hub, p ExecuteParams) (ExecuteResult, error) {
	if err := checkConversation(ctx, h, p); err != nil {
		return ExecuteResult{}, err
	}
	spec, err := executeSpec(p)
	if err != nil {
		return ExecuteResult{}, err
	}
	// A request that is cancelled now must not leave an unknown run behind.
	s, err := h.Launch(context.WithoutCancel(ctx), spec)
	if err != nil {
		return ExecuteResult{}, err
	}
	ended, err := h.Await(ctx, s.HumanLayerSession)
	if err != nil {
		return ExecuteResult{}, e.native.Abandon(ctx, h, s, err)
	}
	return executed(ended, p), nil
}

func executed(s domain.TurnInSession, p ExecuteParams) ExecuteResult {
	r := ExecuteResult{
		Status: StatusOf(s.State), MessageCount: s.Messages, StopReason: s.Stop, Agent: s.Agent,
		SessionID: cmp.Or(p.SessionID, s.HumanLayerSession), TaskID: cmp.Or(p.TaskID, domain.TaskName(s.Task)),
	}
	if t := s.Tokens; t != (domain.Turn{}).Tokens {
		r.TokenUsage = &catalog.TokenUsage{
			InputTokens: t.Input, OutputTokens: t.Output, CacheReadTokens: t.CacheRead, CacheWriteTokens: t.CacheWrite,
		}
	}
	if r.Status == catalog.StatusFailed || s.Error != "" {
		message, code := ExecutionError(s.Turn)
		r.Error = &catalog.ExecutionError{Message: message, Code: code, AuthMethods: s.SignIn}
	}
	return r
}

// checkConversation refuses a token that does not permit the conversation. A new conversation permits
// each valid token.
func checkConversation(ctx context.Context, h *hub.Hub, p ExecuteParams) error {
	err := h.ExecutorCalls().CheckTokenOf(ctx, p.SessionToken, p.SessionID)
	if native.KindOf(err) == domain.KindTurnNotFound {
		return &domain.Error{Kind: domain.KindInvalidToken, Message: "the session token is good for its own conversation alone"}
	}
	return err
}

func (executor) stop(ctx context.Context, h *hub.Hub, p StopTaskParams) (StopTaskResult, error) {
	err := h.ExecutorCalls().CheckTokenOf(ctx, p.SessionToken, p.TaskID)
	if err == nil {
		_, err = h.Interrupt(ctx, p.TaskID, p.Reason)
	}
	switch native.KindOf(err) {
	case domain.KindTurnNotFound, domain.KindNotCancellable, domain.KindBadState:
		return StopTaskResult{Message: err.Error()}, nil
	}
	return StopTaskResult{Stopped: err == nil}, err
}

func (executor) createMessage(ctx context.Context, h *hub.Hub, p CreateMessageParams) (CreateMessageResult, error) {
	r, err := h.ExecutorCalls().AddMessage(ctx, catalog.CreateMessageParams{
		SessionToken: p.SessionToken, TaskID: p.TaskID,
		Message: catalog.CreateMessage{Role: string(p.Message.Role), Content: p.Message.Content, Type: p.Message.Type},
	})
	return CreateMessageResult{MessageID: r.MessageID, CreatedAt: r.CreatedAt}, err
}

func (e executor) spawn(ctx context.Context, p SpawnTerminalParams) (protocol.StartTerminalResult, error) {
	if p.SessionToken != "" {
		h, err := e.native.Hub(ctx)
		if err != nil {
			return protocol.StartTerminalResult{}, err
		}
		if err := h.ExecutorCalls().CheckToken(p.SessionToken); err != nil {
			return protocol.StartTerminalResult{}, err
		}
	}
	in := p.Native()
	in.Form = humanlayer.FormOf(server.ConnFrom(ctx))
	return e.terminal(ctx, in)
}
