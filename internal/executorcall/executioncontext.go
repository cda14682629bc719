package executorcall

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// GetExecutionContext tells an executor what a run stands on.
func (c *Calls) GetExecutionContext(ctx context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
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
func (c *Calls) forkedSession(ctx context.Context, s domain.Session) (string, error) {
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
func (c *Calls) transcript(ctx context.Context, s domain.Session) ([]catalog.Message, error) {
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
