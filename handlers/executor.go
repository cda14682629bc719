package handlers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	dexec "github.com/duet-rpc/duet-rpc/internal/dialect/executor"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// defaultExecuteMS is how long a prompt may run without a timeout of the caller, in milliseconds. The
// executor catalog defines it.
const defaultExecuteMS = 300_000

// registerExecutor registers the methods that a daemon calls on an executor (the executor catalog):
// duet-rpc can be one. A session token is optional, since all clients belong to the same user. A wrong
// token, or one of another conversation, is refused.
func registerExecutor(reg *server.Registry, d Domain) {
	e := executor{d}
	f := executorFamily
	handle(reg, d, f, "execute_prompt", e.execute, server.LongRunning(),
		server.Doc("Runs a prompt to its end. If the agent fails, the result has status failed. Cancelling the request ends the run; the end of the connection does not. The error -32800 says what happens to the run, and has its ids."))
	handle(reg, d, f, "stop_task", e.stop, server.Doc("Begins to stop a task. An unknown task, or one that has ended, is no error."))
	handle(reg, d, f, "cancel_task", e.stop, server.Doc("Same as stop_task; usually sent as a notification."))
	handle(reg, d, f, "create_message", e.createMessage, server.Doc("Adds a message to a task's conversation."))
	handle(reg, d, f, "secret.provide", e.provide, server.Doc("Answers the event secret.requested. The hub passes the secret on, and never stores or logs it."))
}

type executor struct{ Domain }

func checkExecute(p dexec.ExecuteParams) error {
	return cmp.Or(protocol.NotEmpty("prompt", p.Prompt), checkContent(p.PromptContent))
}

func executeSpec(p dexec.ExecuteParams) hub.LaunchSpec {
	prompt, _ := promptWith(p.PromptContent, p.Prompt) // checked before
	spec := hub.LaunchSpec{
		Prompt: prompt.text, Content: prompt.content, Agent: p.Agent, CWD: p.CWD, Source: domain.SourceExecute, Mode: string(p.PermissionMode),
		Timeout: milliseconds(p.TimeoutMS), Tools: p.Tools, Quiet: p.Stream != nil && !*p.Stream,
		SessionAlias: p.SessionID, CallerID: p.TaskID, Worktree: new(false), // the caller has chosen the directory
	}
	if p.TimeoutMS <= 0 {
		spec.Timeout = defaultExecuteMS * time.Millisecond
	}
	if spec.Agent == "" {
		spec.Agent = dexec.AgentOfTool(p.AgenticTool)
	}
	return spec
}

func (e executor) execute(ctx context.Context, h *hub.Hub, p dexec.ExecuteParams) (dexec.ExecuteResult, error) {
	if err := checkConversation(ctx, h, p); err != nil {
		return dexec.ExecuteResult{}, err
	}
	// A request that is cancelled now must not leave an unknown run behind.
	s, err := h.Launch(context.WithoutCancel(ctx), executeSpec(p))
	if err != nil {
		return dexec.ExecuteResult{}, err
	}
	ended, err := h.Await(ctx, s.HumanLayerSession)
	if err != nil {
		return dexec.ExecuteResult{}, e.abandon(ctx, h, s, err)
	}
	return executed(ended, p), nil
}

// abandon ends a turn whose request was cancelled. If the connection ended, the turn continues. It
// returns the error of the request, which failed with err.
func (e executor) abandon(ctx context.Context, h *hub.Hub, s domain.TurnInSession, err error) error {
	if ctx.Err() == nil {
		return err
	}
	name := domain.TaskName(s.Task)
	data := cancelledTurn{Kind: "cancelled", Turn: "continues", TaskID: name, SessionID: s.HumanLayerSession}
	select {
	case <-server.ConnFrom(ctx).Stopping():
		return server.NewError(server.CodeCancelled, fmt.Sprintf(
			"Request cancelled: its connection ends, and the run goes on as %s; task.get and getConversation return its state and text, task.cancel ends it", name), data)
	default:
	}
	data.Turn = "interrupted"
	if _, err := h.Interrupt(context.WithoutCancel(ctx), s.HumanLayerSession, "the request was cancelled"); err != nil {
		e.Logger.Warn("cannot interrupt the run of a cancelled request", "task", name, "err", err)
	}
	return server.NewError(server.CodeCancelled, fmt.Sprintf("Request cancelled: its run %s is interrupted; continueSession continues it", name), data)
}

// cancelledTurn is the data of the error of a cancelled request that waited for a turn.
type cancelledTurn struct {
	Kind      string `json:"kind"`
	Turn      string `json:"run"` // continues or interrupted
	TaskID    string `json:"task_id"`
	SessionID string `json:"session_id"`
}

func executed(s domain.TurnInSession, p dexec.ExecuteParams) dexec.ExecuteResult {
	r := dexec.ExecuteResult{
		Status: dexec.StatusOf(s.State), MessageCount: s.Messages, StopReason: s.Stop, Agent: s.Agent,
		SessionID: cmp.Or(p.SessionID, s.HumanLayerSession), TaskID: cmp.Or(p.TaskID, domain.TaskName(s.Task)),
	}
	if t := s.Tokens; t != (domain.Turn{}).Tokens {
		r.TokenUsage = &catalog.TokenUsage{
			InputTokens: t.Input, OutputTokens: t.Output, CacheReadTokens: t.CacheRead, CacheWriteTokens: t.CacheWrite,
		}
	}
	if r.Status == catalog.StatusFailed || s.Error != "" {
		message, code := dexec.ExecutionError(s.Turn)
		r.Error = &catalog.ExecutionError{Message: message, Code: code, AuthMethods: s.SignIn}
	}
	return r
}

// checkConversation refuses a token that does not permit the conversation. A new conversation permits
// each valid token.
func checkConversation(ctx context.Context, h *hub.Hub, p dexec.ExecuteParams) error {
	err := h.ExecutorCalls().CheckTokenOf(ctx, p.SessionToken, p.SessionID)
	if hubKind(err) == domain.KindTurnNotFound {
		return &domain.Error{Kind: domain.KindInvalidToken, Message: "the session token is good for its own conversation alone"}
	}
	return err
}

// checkToken refuses a wrong token. "" is accepted.
func checkToken(h *hub.Hub, token string) error {
	if token == "" {
		return nil
	}
	return h.ExecutorCalls().CheckToken(token)
}

func (executor) stop(ctx context.Context, h *hub.Hub, p dexec.StopTaskParams) (dexec.StopTaskResult, error) {
	err := h.ExecutorCalls().CheckTokenOf(ctx, p.SessionToken, p.TaskID)
	if err == nil {
		_, err = h.Interrupt(ctx, p.TaskID, p.Reason)
	}
	switch hubKind(err) {
	case domain.KindTurnNotFound, domain.KindNotCancellable, domain.KindBadState:
		return dexec.StopTaskResult{Message: err.Error()}, nil
	}
	return dexec.StopTaskResult{Stopped: err == nil}, err
}

func (executor) createMessage(ctx context.Context, h *hub.Hub, p dexec.CreateMessageParams) (dexec.CreateMessageResult, error) {
	r, err := h.ExecutorCalls().AddMessage(ctx, catalog.CreateMessageParams{
		SessionToken: p.SessionToken, TaskID: p.TaskID,
		Message: catalog.CreateMessage{Role: string(p.Message.Role), Content: p.Message.Content, Type: p.Message.Type},
	})
	return dexec.CreateMessageResult{MessageID: r.MessageID, CreatedAt: r.CreatedAt}, err
}

func (executor) provide(ctx context.Context, h *hub.Hub, p protocol.ProvideSecretParams) (protocol.Success, error) {
	err := h.Keys().Provide(p.RequestID, p.Secret)
	return protocol.Success{Success: err == nil}, err
}

// ExecutorError converts an error of the hub to one with a code of the executor catalog.
func ExecutorError(err error) error { return executorFamily.Error(err) }
