package hub

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file answers executors that ask something of the hub for the run that
// their session token stands for: what the run stands on, leave for a tool, a message
// for its conversation.

// callAgents knows the configured agents.
type callAgents interface {
	// AgentFor is the agent of a name for somebody who may be restricted. Its error can
	// be told.
	AgentFor(restricted bool, name string) (config.Agent, error)
	// ConfirmsAnswers reports whether the executor of an agent tells which answers the
	// agent has taken.
	ConfirmsAnswers(agent string) bool
}

// callReports are what agents say, as it is taken in.
type callReports interface {
	// EndMessage ends the message that a run's agent is writing: what was said before is
	// on its way to the store when it returns.
	EndMessage(ctx context.Context, run int64)
	// Answered notes that the agent of a run has an answer, which counts as taken when
	// the agent goes on.
	Answered(run int64, approval string)
}

// executorCallOptions say what Calls stand on. All but the last are required.
type executorCallOptions struct {
	Store        store.Reader
	Query        *query.Queries
	Write        func(ctx context.Context, change func(store.Tx) error) error // its error can be told
	Tokens       *credential.Tokens
	Keys         *credential.Keys
	Conversation *conversation.Writer
	Approvals    *approval.Inbox
	Reports      callReports
	Agents       callAgents
	// GetsServers, if set, is told which MCP servers the agent of a run gets. It must not block.
	GetsServers func(s domain.Session, agent config.Agent, servers []catalog.MCPServer)
}

// ExecutorCalls answers executors. Its methods may be called from any goroutine; their errors
// can be told.
type ExecutorCalls struct {
	opts executorCallOptions
	ctx  context.Context
}

// newExecutorCalls makes Calls. When ctx ends, nothing is written any more.
func newExecutorCalls(ctx context.Context, opts executorCallOptions) *ExecutorCalls {
	return &ExecutorCalls{opts: opts, ctx: ctx}
}

// GetExecutionContext tells an executor what a run stands on.
func (c *ExecutorCalls) GetExecutionContext(ctx context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
	var result catalog.GetExecutionContextResult
	token, err := c.opts.Tokens.Find(p.SessionToken)
	if err != nil {
		return result, err
	}
	s, err := c.opts.Query.ByRun(ctx, token.Run)
	if err != nil {
		return result, err
	}
	agent, err := c.opts.Agents.AgentFor(s.Run.Restricted, s.Thread.Agent)
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
	if c.opts.GetsServers != nil {
		c.opts.GetsServers(s, agent, result.MCPServers)
	}
	if result.ForkNativeSessionID, err = c.forkedSession(ctx, s); err != nil {
		return result, err
	}
	result.Messages, err = c.transcript(ctx, s)
	return result, err
}

// forkedSession is the agent's own session of which a run begins a fork, or "" where
// that session has other things in it than what the fork shares: then the agent is told
// the transcript.
func (c *ExecutorCalls) forkedSession(ctx context.Context, s domain.Session) (string, error) {
	if s.Thread.Parent == 0 || s.Thread.NativeSession != "" || s.Run.Parent != s.Thread.ForkRun {
		return "", nil
	}
	from, err := c.opts.Store.Thread(ctx, s.Thread.Parent)
	if err != nil {
		return "", store.Explain(err)
	}
	last, err := c.opts.Store.LastRun(ctx, from.ID)
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

// maxTranscript is how much of a conversation an agent is told, in bytes, give
// or take a run: the end of it.
const maxTranscript = 1 << 20

// transcript is the conversation before a run, as an agent can be told it.
func (c *ExecutorCalls) transcript(ctx context.Context, s domain.Session) ([]catalog.Message, error) {
	chain, err := c.opts.Query.Chain(ctx, s)
	if err != nil {
		return nil, err
	}
	chain = chain[:len(chain)-1] // without the run itself
	list, size := []catalog.Message{}, 0
	for n := len(chain) - 1; n >= 0 && size < maxTranscript; n-- {
		if chain[n].State == domain.Cancelled { // it was taken back before an agent has seen it
			continue
		}
		items, err := c.opts.Query.Items(ctx, chain[n].ID)
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

// CreateMessage puts a message of an executor into the conversation that its
// token is good for.
func (c *ExecutorCalls) CreateMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	token, err := c.opts.Tokens.Find(p.SessionToken)
	if err != nil {
		return catalog.CreateMessageResult{}, err
	}
	if err := c.checkMessage(ctx, p); err != nil {
		return catalog.CreateMessageResult{}, err
	}
	c.opts.Reports.EndMessage(ctx, token.Run)
	p.Message.Content = c.opts.Keys.Of(token.Thread).JSON(p.Message.Content)
	return c.writeMessage(ctx, p)
}

// AddMessage is CreateMessage for clients of our own user, who need no token.
func (c *ExecutorCalls) AddMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	if err := c.checkMessage(ctx, p); err != nil {
		return catalog.CreateMessageResult{}, err
	}
	return c.writeMessage(ctx, p)
}

// checkMessage refuses a message before anything is changed for it.
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
	err := c.opts.Write(ctx, func(t store.Tx) error {
		run, err := query.Find(c.ctx, t, p.TaskID)
		if err != nil {
			return err
		}
		item, err = c.opts.Conversation.Message(t, &run, p.Message.Role, conversation.TextOf(p.Message.Content), p.Message.Type)
		return err
	})
	if err != nil { // the change may still be under way, if ctx has ended
		return catalog.CreateMessageResult{}, err
	}
	return catalog.CreateMessageResult{MessageID: item.Key, CreatedAt: item.Created.UTC().Format(time.RFC3339Nano)}, nil
}

// RequestPermission asks, by the policy first and then a person, whether a tool of
// the run may run that the token is for.
func (c *ExecutorCalls) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	token, err := c.TokenOf(ctx, p.SessionToken, p.TaskID)
	if err != nil {
		return catalog.RequestPermissionResult{}, err
	}
	p = c.opts.Keys.WithoutKeys(p, token.Thread)
	if len(p.Unasked) > 0 {
		return c.opts.Approvals.CheckUnasked(ctx, token.Run, p)
	}
	c.opts.Reports.EndMessage(ctx, token.Run)
	result, err := c.opts.Approvals.Ask(ctx, token.Run, p)
	if err != nil || result.ApprovalID == "" {
		return result, err
	}
	// Should the run not be found, its answers count as taken when it completes.
	if run, err := c.opts.Store.Run(ctx, token.Run); err == nil && !c.opts.Agents.ConfirmsAnswers(run.Agent) {
		c.opts.Reports.Answered(token.Run, result.ApprovalID)
	}
	return result, nil
}

var errOthersToken = domain.Errorf(domain.KindInvalidToken, "the session token is that of another conversation, or of another task in it")

// TokenOf is what a session token stands for. It is refused for the task of another
// run: task is any id of one, or "" where none is named. Errors are of
// [domain.KindInvalidToken].
func (c *ExecutorCalls) TokenOf(ctx context.Context, text, task string) (credential.Token, error) {
	token, err := c.opts.Tokens.Find(text)
	if err != nil || task == "" || task == token.Task { // nearly always
		return token, err
	}
	id, err := c.opts.Store.Find(ctx, task)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && id != token.Run:
		return credential.Token{}, errOthersToken
	case err != nil:
		return credential.Token{}, store.Explain(err)
	}
	return token, nil
}

// CheckTokenOf reports whether a token that a client sent is good for the
// conversation of a run or thread, which any of its ids names. "" is, for all.
func (c *ExecutorCalls) CheckTokenOf(ctx context.Context, token, id string) error {
	if token == "" {
		return nil
	}
	known, err := c.opts.Tokens.Find(token)
	if err != nil {
		return err
	}
	s, err := c.opts.Query.Session(ctx, id)
	if err == nil && s.Run.Thread != known.Thread {
		err = errOthersToken
	}
	return err
}

// CheckToken reports whether a token that a client sent is good. Clients of
// our own user need none: "" is.
func (c *ExecutorCalls) CheckToken(token string) error {
	if token == "" {
		return nil
	}
	_, err := c.opts.Tokens.Find(token)
	return err
}
