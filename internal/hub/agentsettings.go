package hub

import (
	"context"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentsetting"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// agentAnswers is how long an agent may take to say whether it takes a setting: a
// little longer than its executor gives it.
const agentAnswers = 40 * time.Second

// AgentSession is what can be asked of the agent of a run's thread, by what it has
// told of the thread's session.
func (h *Hub) AgentSession(ctx context.Context, s domain.Session) (agentsetting.Known, error) {
	seen, err := h.store.AgentSession(ctx, s.Run.Thread)
	if seen.Agent != s.Thread.Agent {
		seen.AgentSession = domain.AgentSession{}
	}
	return agentsetting.Of(h.known(s.Thread.Agent), seen.AgentSession), err
}

// KnownAgent is what can be asked of an agent of the configuration, or of the default
// one for "", by what it has told last, in any thread.
func (h *Hub) KnownAgent(ctx context.Context, name string) (agentsetting.Known, error) {
	agent, err := h.agent(name)
	if err != nil {
		return agentsetting.Known{}, err
	}
	told, err := agentsetting.ToldBy(ctx, h.store, 0, agent.Name)
	return agentsetting.Of(agent, told), err
}

// known is an agent of the configuration, or what is known of one that is not there:
// that is told when it is needed.
func (h *Hub) known(name string) config.Agent {
	agent, err := h.agent(name)
	if err != nil {
		return config.Agent{Name: name}
	}
	return agent
}

// checkSettings refuses what the agent of a thread is known not to have: a mode, a
// model, a value of an option. "" and nil are not looked at. An agent that has never
// said what it has is asked when it is started.
func (h *Hub) checkSettings(ctx context.Context, from store.ThreadReader, thread int64, agent, mode, model string, options map[string]string) error {
	if mode == "" && model == "" && len(options) == 0 {
		return nil
	}
	told, err := agentsetting.ToldBy(ctx, from, thread, agent)
	if err != nil {
		return err
	}
	return agentsetting.Check(h.known(agent), told, mode, model, options)
}

// attach keeps what goes with a prompt, unless its agent is known not to take it.
func (h *Hub) attach(t store.Tx, thread domain.Thread, list []domain.Content) error {
	told, err := agentsetting.ToldBy(h.ctx, t, thread.ID, thread.Agent)
	if err == nil {
		err = agentsetting.CheckContent(thread.Agent, told, list)
	}
	if err != nil {
		return err
	}
	return conversation.Attach(t, list)
}

// setLive sets the agent that works for a thread, if one does, and reports
// whether it did.
func (h *Hub) setLive(ctx context.Context, thread domain.Thread, c SettingsChange) (bool, error) {
	p := catalog.SetSessionParams{SessionID: thread.UUID}
	set(&p.Mode, c.Mode)
	set(&p.Model, c.Model)
	for id, value := range c.Options {
		if value != "" { // else it is not asked for any more
			if p.Options == nil {
				p.Options = make(map[string]string)
			}
			p.Options[id] = value
		}
	}
	lease := h.leaseOf(thread.ID)
	if lease == nil || p.Mode == "" && p.Model == "" && p.Options == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, agentAnswers)
	defer cancel()
	result, err := lease.SetSession(ctx, p)
	switch {
	case err != nil:
		return false, &domain.Error{Kind: domain.KindSetting, Message: "the agent could not be told: " + err.Error(), Err: err}
	case result.Status == catalog.SessionRefused:
		return false, &domain.Error{Kind: domain.KindSetting, Message: result.Message}
	}
	return result.Status == catalog.SessionSet, nil
}

// setBeside is setLive for whoever does not wait: what the agent does not take is
// told as an error of the run.
func (h *Hub) setBeside(s domain.Session, c SettingsChange) {
	_, refused := h.setLive(h.ctx, s.Thread, c)
	if refused == nil || h.ctx.Err() != nil {
		return
	}
	report, _ := json.Marshal(map[string]string{"code": "SETTING_REFUSED", "message": refused.Error()})
	if err := h.write(h.ctx, func(t store.Tx) error { return h.announce(t, s.Run, domain.AgentErrorReported{Report: report}) }); err != nil {
		h.log.Warn("an agent did not take a setting, and nobody could be told", "err", err)
	}
}

// leaseOf is the executor that works for a thread, or nil.
func (h *Hub) leaseOf(thread int64) catalog.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, live := range h.live {
		if live.run.Thread == thread && live.lease != nil {
			return live.lease
		}
	}
	return nil
}
