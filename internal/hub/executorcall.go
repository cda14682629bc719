package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// This file answers executor calls. The session token of a call names its turn: the executor gets
// the turn's context, asks for permissions, or adds a message.

// ExecutorCalls answers executors. Its methods may be called from any goroutine. Their errors are
// safe to show to clients.
type ExecutorCalls struct{ hub *Hub }

// GetExecutionContext returns the context that an executor needs for a turn.
func (c *ExecutorCalls) GetExecutionContext(
	ctx context.Context, p catalog.GetExecutionContextParams,
) (catalog.GetExecutionContextResult, error) {
	var result catalog.GetExecutionContextResult
	token, err := c.hub.tokens.Find(p.SessionToken)
	if err != nil {
		return result, err
	}
	return c.contextOf(ctx, token.Turn, p.Unanswered)
}

// contextOf returns the context of a turn. With unanswered, its messages are those of the user after the
// agent's last activity.
func (c *ExecutorCalls) contextOf(
	ctx context.Context, turn int64, unanswered bool,
) (result catalog.GetExecutionContextResult, err error) {
	s, err := c.hub.query.ByTurn(ctx, turn)
	if err != nil {
		return result, err
	}
	agent, err := c.hub.configured.AgentFor(s.Turn.Restricted, s.Session.Agent)
	if err != nil {
		return result, err
	}
	result = catalog.GetExecutionContextResult{
		SessionID: s.Session.UUID, TaskID: s.UUID, NativeSessionID: s.Session.NativeSession,
		Messages: []catalog.Message{}, MCPServers: []catalog.MCPServer{}, ContextFiles: []string{},
		SystemPrompt: joinPrompts(s.Session.Settings), AgentMode: s.AgentMode, Options: s.Session.Settings.Options,
		AdditionalDirectories: s.Session.Settings.AdditionalDirectories,
	}
	if s.Session.Model != "" {
		result.ModelConfig = &catalog.ModelConfig{Model: s.Session.Model}
	}
	result.MCPServers = append(result.MCPServers, agent.MCPServers...)
	for _, own := range s.Session.Settings.MCPServers {
		result.MCPServers = append(result.MCPServers, catalog.MCPServer(own))
	}
	c.hub.tryServers(s, agent, result.MCPServers)
	if now, err := c.hub.opts.Configuration.Current(false); err == nil && now.EditorTools && domain.StrongerSandbox(s.Session.Settings.Sandbox, agent.Sandbox) == "" {
		// The server of these tools connects to the daemon, which a sandbox must not reach.
		if own := c.hub.opts.Project.EditorServer(s.Session.UUID); own != nil {
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

// forkedSession returns the agent's own session from which a turn forks. It returns "" if that
// session contains more than the fork shares; the agent then gets the transcript.
func (c *ExecutorCalls) forkedSession(ctx context.Context, s domain.TurnInSession) (string, error) {
	if s.Session.Parent == 0 || s.Session.NativeSession != "" || s.Turn.Parent != s.Session.ForkTurn {
		return "", nil
	}
	from, err := c.hub.store.Session(ctx, s.Session.Parent)
	if err != nil {
		return "", store.Explain(err)
	}
	last, err := c.hub.store.LastTurn(ctx, from.ID)
	if err != nil || last.ID != s.Session.ForkTurn || !last.State.Ended() || from.Agent != s.Session.Agent {
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

// maxTranscript limits, in bytes, how much of a transcript's end an agent gets. The limit may be
// exceeded by one turn.
const maxTranscript = 1 << 20

// before returns the turns of a session that an agent has seen before a turn, the oldest first.
func (c *ExecutorCalls) before(ctx context.Context, s domain.TurnInSession) ([]domain.TurnHead, error) {
	chain, err := c.hub.query.Heads(ctx, s)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(chain[:len(chain)-1],
		func(r domain.TurnHead) bool { return r.State == domain.Cancelled }), nil
}

// unanswered returns the user's messages before a turn without any later activity of the agent. It reads
// only the end of the transcript.
func (c *ExecutorCalls) unanswered(ctx context.Context, s domain.TurnInSession) ([]catalog.Message, error) {
	turns, err := c.before(ctx, s)
	if err != nil {
		return nil, err
	}
	list := []catalog.Message{}
	for _, turn := range slices.Backward(turns) {
		last, err := c.hub.store.LastItem(ctx, turn.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case last.Role != "user" && last.Kind != domain.ItemThinking:
			return list, nil
		}
		items, err := c.hub.query.ItemsOfTurn(ctx, turn.ID)
		if err != nil {
			return nil, err
		}
		said := transcript.Transcript(items)
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

// transcript returns the messages and the used tools before a turn, for its agent.
func (c *ExecutorCalls) transcript(ctx context.Context, s domain.TurnInSession) ([]catalog.Message, error) {
	turns, err := c.before(ctx, s)
	if err != nil {
		return nil, err
	}
	list, size := []catalog.Message{}, 0
	for n := len(turns) - 1; n >= 0 && size < maxTranscript; n-- {
		items, err := c.hub.query.ItemsOfTurn(ctx, turns[n].ID)
		if err != nil {
			return nil, err
		}
		said := transcript.Transcript(items)
		for _, m := range said {
			size += len(m.Content)
		}
		list = append(said, list...)
	}
	return list, nil
}

// CreateMessage adds an executor's message to the session that its token permits.
func (c *ExecutorCalls) CreateMessage(
	ctx context.Context, p catalog.CreateMessageParams,
) (catalog.CreateMessageResult, error) {
	token, err := c.hub.tokens.Find(p.SessionToken)
	if err != nil {
		return catalog.CreateMessageResult{}, err
	}
	if err := c.checkMessage(ctx, p); err != nil {
		return catalog.CreateMessageResult{}, err
	}
	c.hub.intake.EndMessage(ctx, token.Turn)
	p.Message.Content = c.hub.keys.Of(token.Session).JSON(p.Message.Content)
	return c.writeMessage(ctx, p)
}

// AddMessage is CreateMessage for clients of the same user, which need no token.
func (c *ExecutorCalls) AddMessage(
	ctx context.Context, p catalog.CreateMessageParams,
) (catalog.CreateMessageResult, error) {
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

func (c *ExecutorCalls) writeMessage(
	ctx context.Context, p catalog.CreateMessageParams,
) (catalog.CreateMessageResult, error) {
	var item domain.Item
	err := c.hub.write(ctx, func(t store.Tx) error {
		turn, err := query.Find(c.hub.ctx, t, p.TaskID)
		if err != nil {
			return err
		}
		item, err = c.hub.transcript.Message(t, &turn, p.Message.Role, transcript.TextOf(p.Message.Content),
			p.Message.Type)
		return err
	})
	if err != nil { // the transaction may still run if ctx has ended
		return catalog.CreateMessageResult{}, err
	}
	return catalog.CreateMessageResult{MessageID: item.Key, CreatedAt: item.Created.UTC().Format(time.RFC3339Nano)}, nil
}

// RequestPermission decides whether a tool of the token's turn may run: the policy first, then a
// person.
func (c *ExecutorCalls) RequestPermission(
	ctx context.Context, p catalog.RequestPermissionParams,
) (catalog.RequestPermissionResult, error) {
	token, err := c.TokenOf(ctx, p.SessionToken, p.TaskID)
	if err != nil {
		return catalog.RequestPermissionResult{}, err
	}
	p = c.hub.keys.WithoutKeys(p, token.Session)
	if len(p.Unasked) > 0 {
		return c.hub.approvals.CheckUnasked(ctx, token.Turn, p)
	}
	c.hub.intake.EndMessage(ctx, token.Turn)
	result, err := c.hub.approvals.Ask(ctx, token.Turn, p)
	if err != nil || result.ApprovalID == "" {
		return result, err
	}
	// If the turn is not found, its answers count as taken when it completes.
	if turn, err := c.hub.store.Turn(ctx, token.Turn); err == nil && !c.hub.configured.ConfirmsAnswers(turn.Agent) {
		c.hub.intake.Answered(token.Turn, result.ApprovalID)
	}
	return result, nil
}

var errOthersToken = domain.Errorf(domain.KindInvalidToken,
	"the session token is that of another conversation, or of another task in it")

// TokenOf parses a session token. task is any id of the token's turn, or "" if the request names
// none. Errors are of [domain.KindInvalidToken].
func (c *ExecutorCalls) TokenOf(ctx context.Context, text, task string) (credential.Token, error) {
	token, err := c.hub.tokens.Find(text)
	if err != nil || task == "" || task == token.Task { // the usual case
		return token, err
	}
	id, err := c.hub.store.Find(ctx, task)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && id != token.Turn:
		return credential.Token{}, errOthersToken
	case err != nil:
		return credential.Token{}, store.Explain(err)
	}
	return token, nil
}

// CheckTokenOf checks that a client's token permits the session that id names; id may be any
// id of a turn or session. "" permits every session.
func (c *ExecutorCalls) CheckTokenOf(ctx context.Context, token, id string) error {
	if token == "" {
		return nil
	}
	known, err := c.hub.tokens.Find(token)
	if err != nil {
		return err
	}
	s, err := c.hub.query.Turn(ctx, id)
	if err == nil && s.Turn.Session != known.Session {
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
