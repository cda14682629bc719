package executor

import (
	"cmp"
	"context"
	"math"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/dialect/native"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
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
	e := executor{
		native: m, work: native.NewWork(m),
		interrupt: native.Call[protocol.InterruptTurnParams, protocol.InterruptTurnResult](m, "turn.interrupt"),
		terminal:  native.Call[protocol.StartTerminalParams, protocol.StartTerminalResult](m, "terminal.start"),
	}
	native.Compose(m, Family, "execute_prompt", "Runs a prompt to its end. If the agent fails, the result has status failed. Cancelling the "+
		"request ends the run; the end of the connection does not. The error -32800 says what happens to the run, and has its "+
		"ids.", e.execute, server.LongRunning())
	native.Compose(m, Family, "stop_task", "Begins to stop a task. An unknown task, or one that has ended, is no error.", e.stop)
	native.Compose(m, Family, "cancel_task", "Same as stop_task; usually sent as a notification.", e.stop)
	native.Compose(m, Family, "create_message", "Adds a message to a task's conversation.", e.createMessage)
	native.Compose(m, Family, "spawn_terminal", "Starts a program in a terminal that outlives this connection. Without a subscription, this "+
		"connection gets its output as events terminal_output, and its end as terminal_exit.", e.spawn, server.LongRunning())
}

type executor struct {
	native    native.Methods
	work      native.Work
	interrupt func(context.Context, protocol.InterruptTurnParams) (protocol.InterruptTurnResult, error)
	terminal  func(context.Context, protocol.StartTerminalParams) (protocol.StartTerminalResult, error)
}

func (p ExecuteParams) Check() error {
	return protocol.NotEmpty("prompt", p.Prompt)
}

// Native returns the parameters of session.start.
func (p ExecuteParams) Native() protocol.StartParams {
	limit := uint(defaultExecuteMS)
	if p.TimeoutMS > 0 {
		limit = uint(min(uint64(p.TimeoutMS), math.MaxUint))
	}
	return protocol.StartParams{
		Prompt: p.Prompt, PromptContent: p.PromptContent, Agent: cmp.Or(p.Agent, AgentOfTool(p.AgenticTool)), WorkingDir: p.CWD,
		Mode: string(p.PermissionMode), TimeoutMS: &limit, Allowed: p.Tools, Quiet: p.Stream != nil && !*p.Stream,
		Worktree: new(false), // the caller has chosen the directory
		Source:   domain.SourceExecute, Alias: p.SessionID, TurnID: p.TaskID,
	}
}

func (e executor) execute(ctx context.Context, p ExecuteParams) (ExecuteResult, error) {
	if err := e.checkToken(ctx, p.SessionToken, p.SessionID); native.KindOf(err) == domain.KindTurnNotFound { // a new conversation
		return ExecuteResult{}, &domain.Error{Kind: domain.KindInvalidToken, Message: "the session token is good for its own conversation alone"}
	} else if err != nil {
		return ExecuteResult{}, err
	}
	s, err := e.work.Start(ctx, p.Native())
	if err != nil {
		return ExecuteResult{}, err
	}
	ended, err := e.work.End(ctx, s)
	if err != nil {
		return ExecuteResult{}, err
	}
	return executed(ended.Of, p), nil
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

// calls runs do with the hub's [hub.ExecutorCalls]: only this system has session tokens, and clients that add a message
// without a prompt.
func (e executor) calls(ctx context.Context, do func(*hub.ExecutorCalls) error) error {
	h, err := e.native.Hub(ctx)
	if err != nil {
		return err
	}
	return h.OrEnding(ctx, do(h.ExecutorCalls()))
}

// checkToken refuses a token that does not permit the conversation that id names.
func (e executor) checkToken(ctx context.Context, token, id string) error {
	return e.calls(ctx, func(c *hub.ExecutorCalls) error { return c.CheckTokenOf(ctx, token, id) })
}

func (e executor) stop(ctx context.Context, p StopTaskParams) (StopTaskResult, error) {
	err := e.checkToken(ctx, p.SessionToken, p.TaskID)
	if err == nil {
		_, err = e.interrupt(ctx, protocol.InterruptTurnParams{Turn: protocol.Ref(p.TaskID), Reason: p.Reason})
	}
	switch native.KindOf(err) {
	case domain.KindTurnNotFound, domain.KindNotCancellable, domain.KindBadState:
		return StopTaskResult{Message: err.Error()}, nil
	}
	return StopTaskResult{Stopped: err == nil}, err
}

func (e executor) createMessage(ctx context.Context, p CreateMessageParams) (CreateMessageResult, error) {
	var r catalog.CreateMessageResult
	err := e.calls(ctx, func(c *hub.ExecutorCalls) (err error) {
		r, err = c.AddMessage(ctx, catalog.CreateMessageParams{
			SessionToken: p.SessionToken, TaskID: p.TaskID,
			Message: catalog.CreateMessage{Role: string(p.Message.Role), Content: p.Message.Content, Type: p.Message.Type},
		})
		return err
	})
	return CreateMessageResult{MessageID: r.MessageID, CreatedAt: r.CreatedAt}, err
}

func (e executor) spawn(ctx context.Context, p SpawnTerminalParams) (protocol.StartTerminalResult, error) {
	if p.SessionToken != "" {
		if err := e.calls(ctx, func(c *hub.ExecutorCalls) error { return c.CheckToken(p.SessionToken) }); err != nil {
			return protocol.StartTerminalResult{}, err
		}
	}
	in := p.Native()
	in.Form = humanlayer.FormOf(server.ConnFrom(ctx))
	return e.terminal(ctx, in)
}
