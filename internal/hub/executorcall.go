package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file answers executor calls. The session token of a call names its run: the executor gets
// the run's context, asks for permissions, or adds a message.

// ExecutorCalls answers executors. Its methods may be called from any goroutine. Their errors are
// safe to show to clients.
type ExecutorCalls struct{ hub *Hub }

// GetExecutionContext returns the context that an executor needs for a run.
func (c *ExecutorCalls) GetExecutionContext(ctx context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
	var result catalog.GetExecutionContextResult
	token, err := c.hub.tokens.Find(p.SessionToken)
	if err != nil {
		return result, err
	}
	return c.contextOf(ctx, token.Run, p.Unanswered)
}

// contextOf returns the context of a run. With unanswered, its messages are those of the user after the
// agent's last activity.
func (c *ExecutorCalls) contextOf(ctx context.Context, run int64, unanswered bool) (result catalog.GetExecutionContextResult, err error) {
	s, err := c.hub.query.ByRun(ctx, run)
	if err != nil {
		return result, err
	}
	agent, err := c.hub.configured.AgentFor(s.Run.Restricted, s.Thread.Agent)
	if err != nil {
		return result, err
	}
	result = catalog.GetExecutionContextResult{
		SessionID: s.Thread.UUID, TaskID: s.UUID, Messages: []catalog.Message{}, MCPServers: []catalog.MCPServer{}, ContextFiles: []string{},
		NativeSessionID: s.Thread.NativeSession, SystemPrompt: joinPrompts(s.Thread.Settings), AdditionalDirectories: s.Thread.Settings.AdditionalDirectories,
		AgentMode: s.AgentMode, Options: s.Thread.Settings.Options,
	}
	if s.Thread.Model != "" {
		result.ModelConfig = &catalog.ModelConfig{Model: s.Thread.Model}
	}
	result.MCPServers = append(result.MCPServers, agent.MCPServers...)
	for _, own := range s.Thread.Settings.MCPServers {
		result.MCPServers = append(result.MCPServers, catalog.MCPServer(own))
	}
	c.hub.tryServers(s, agent, result.MCPServers)
	if c.hub.opts.EditorServer != nil {
		if own := c.hub.opts.EditorServer(s.Thread.UUID); own != nil {
			result.MCPServers = append(result.MCPServers, *own)
		}
	}
	if result.ForkNativeSessionID, err = c.forkedSession(ctx, s); err != nil {
		return result, err
	}
	if unanswered {
		result.Messages, err = c.unanswered(ctx, s)
	} else {
		result.Messages, err = c.transcript(ctx, s)
	}
	return result, err
}

// forkedSession returns the agent's own session from which a run forks. It returns "" if that
// session contains more than the fork shares; the agent then gets the transcript.
func (c *ExecutorCalls) forkedSession(ctx context.Context, s domain.Session) (string, error) {
	if s.Thread.Parent == 0 || s.Thread.NativeSession != "" || s.Run.Parent != s.Thread.ForkRun {
		return "", nil
	}
	from, err := c.hub.store.Thread(ctx, s.Thread.Parent)
	if err != nil {
		return "", store.Explain(err)
	}
	last, err := c.hub.store.LastRun(ctx, from.ID)
	if err != nil || last.ID != s.Thread.ForkRun || !last.State.Ended() || from.Agent != s.Thread.Agent {
		return "", store.Explain(err)
	}
	return from.NativeSession, nil
}

func joinPrompts(s domain.Settings) string {
	text := s.SystemPrompt
	for _, more := range []string{s.AppendSystemPrompt, s.CustomInstructions} {
		if more == "" {
			continue
		}
		if text != "" {
			text += "\n\n"
		}
		text += more
	}
	return text
}

// maxTranscript limits, in bytes, how much of a conversation's end an agent gets. The limit may be
// exceeded by one run.
const maxTranscript = 1 << 20

// before returns the runs of a conversation that an agent has seen before a run, the oldest first.
func (c *ExecutorCalls) before(ctx context.Context, s domain.Session) ([]domain.RunHead, error) {
	chain, err := c.hub.query.Heads(ctx, s)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(chain[:len(chain)-1], func(r domain.RunHead) bool { return r.State == domain.Cancelled }), nil
}

// unanswered returns the user's messages before a run without any later activity of the agent. It reads
// only the end of the conversation.
func (c *ExecutorCalls) unanswered(ctx context.Context, s domain.Session) ([]catalog.Message, error) {
	runs, err := c.before(ctx, s)
	if err != nil {
		return nil, err
	}
	list := []catalog.Message{}
	for _, run := range slices.Backward(runs) {
		last, err := c.hub.store.LastItem(ctx, run.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case last.Role != "user" && last.Kind != domain.ItemThinking:
			return list, nil
		}
		items, err := c.hub.query.Items(ctx, run.ID)
		if err != nil {
			return nil, err
		}
		said := conversation.Transcript(items)
		first := len(said)
		for first > 0 && said[first-1].Role == "user" {
			first--
		}
		list = append(said[first:], list...)
		if first > 0 {
			break
		}
	}
	return list, nil
}

// transcript returns the conversation before a run, for its agent.
func (c *ExecutorCalls) transcript(ctx context.Context, s domain.Session) ([]catalog.Message, error) {
	runs, err := c.before(ctx, s)
	if err != nil {
		return nil, err
	}
	list, size := []catalog.Message{}, 0
	for n := len(runs) - 1; n >= 0 && size < maxTranscript; n-- {
		items, err := c.hub.query.Items(ctx, runs[n].ID)
		if err != nil {
			return nil, err
		}
		said := conversation.Transcript(items)
		for _, m := range said {
			size += len(m.Content)
		}
		list = append(said, list...)
	}
	return list, nil
}

// CreateMessage adds an executor's message to the conversation that its token permits.
func (c *ExecutorCalls) CreateMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	token, err := c.hub.tokens.Find(p.SessionToken)
	if err != nil {
		return catalog.CreateMessageResult{}, err
	}
	if err := c.checkMessage(ctx, p); err != nil {
		return catalog.CreateMessageResult{}, err
	}
	c.hub.intake.EndMessage(ctx, token.Run)
	p.Message.Content = c.hub.keys.Of(token.Thread).JSON(p.Message.Content)
	return c.writeMessage(ctx, p)
}

// AddMessage is CreateMessage for clients of the same user, which need no token.
func (c *ExecutorCalls) AddMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	if err := c.checkMessage(ctx, p); err != nil {
		return catalog.CreateMessageResult{}, err
	}
	return c.writeMessage(ctx, p)
}

// checkMessage validates a message before any change.
func (c *ExecutorCalls) checkMessage(ctx context.Context, p catalog.CreateMessageParams) error {
	if err := c.CheckTokenOf(ctx, p.SessionToken, p.TaskID); err != nil {
		return err
	}
	if p.Message.Role != "user" && p.Message.Role != "assistant" {
		return domain.Invalid("message.role", "a role", p.Message.Role, "user", "assistant")
	}
	return nil
}

func (c *ExecutorCalls) writeMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	var item domain.Item
	err := c.hub.write(ctx, func(t store.Tx) error {
		run, err := query.Find(c.hub.ctx, t, p.TaskID)
		if err != nil {
			return err
		}
		item, err = c.hub.conversation.Message(t, &run, p.Message.Role, conversation.TextOf(p.Message.Content), p.Message.Type)
		return err
	})
	if err != nil { // the transaction may still run if ctx has ended
		return catalog.CreateMessageResult{}, err
	}
	return catalog.CreateMessageResult{MessageID: item.Key, CreatedAt: item.Created.UTC().Format(time.RFC3339Nano)}, nil
}

// RequestPermission decides whether a tool of the token's run may run: the policy first, then a
// person.
func (c *ExecutorCalls) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	token, err := c.TokenOf(ctx, p.SessionToken, p.TaskID)
	if err != nil {
		return catalog.RequestPermissionResult{}, err
	}
	p = c.hub.keys.WithoutKeys(p, token.Thread)
	if len(p.Unasked) > 0 {
		return c.hub.approvals.CheckUnasked(ctx, token.Run, p)
	}
	c.hub.intake.EndMessage(ctx, token.Run)
	result, err := c.hub.approvals.Ask(ctx, token.Run, p)
	if err != nil || result.ApprovalID == "" {
		return result, err
	}
	// If the run is not found, its answers count as taken when it completes.
	if run, err := c.hub.store.Run(ctx, token.Run); err == nil && !c.hub.configured.ConfirmsAnswers(run.Agent) {
		c.hub.intake.Answered(token.Run, result.ApprovalID)
	}
	return result, nil
}

var errOthersToken = domain.Errorf(domain.KindInvalidToken, "the session token is that of another conversation, or of another task in it")

// TokenOf parses a session token. task is any id of the token's run, or "" if the request names
// none. Errors are of [domain.KindInvalidToken].
func (c *ExecutorCalls) TokenOf(ctx context.Context, text, task string) (credential.Token, error) {
	token, err := c.hub.tokens.Find(text)
	if err != nil || task == "" || task == token.Task { // the usual case
		return token, err
	}
	id, err := c.hub.store.Find(ctx, task)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && id != token.Run:
		return credential.Token{}, errOthersToken
	case err != nil:
		return credential.Token{}, store.Explain(err)
	}
	return token, nil
}

// CheckTokenOf checks that a client's token permits the conversation that id names; id may be any
// id of a run or thread. "" permits every conversation.
func (c *ExecutorCalls) CheckTokenOf(ctx context.Context, token, id string) error {
	if token == "" {
		return nil
	}
	known, err := c.hub.tokens.Find(token)
	if err != nil {
		return err
	}
	s, err := c.hub.query.Session(ctx, id)
	if err == nil && s.Run.Thread != known.Thread {
		err = errOthersToken
	}
	return err
}

// CheckToken checks a client's token. "" is valid, because clients of the same user need no token.
func (c *ExecutorCalls) CheckToken(token string) error {
	if token == "" {
		return nil
	}
	_, err := c.hub.tokens.Find(token)
	return err
}
