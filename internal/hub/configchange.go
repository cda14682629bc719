package hub

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/configwatch"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// watchConfig makes the watch of the configuration, or nil where that does not
// change.
func (h *Hub) watchConfig() *configwatch.Watch {
	if h.opts.Changes == nil {
		return nil
	}
	return configwatch.New(h.ctx, configwatch.Options{
		Changes:      h.opts.Changes,
		HasExecutors: func() bool { return h.executors.Count() > 0 },
		RulesChanged: h.approvals.ReconsiderAll,
		TrustRevoked: h.endUntrusted,
		Logger:       h.log,
	})
}

// configuredKeys are the keys of the configuration as it is now.
func (h *Hub) configuredKeys() map[string]config.Key {
	if h.opts.Keys == nil {
		return nil
	}
	return h.opts.Keys()
}

// endUntrusted ends agents that the project's file has defined, at work or idle.
// They are not asked to end: nobody trusts them.
func (h *Hub) endUntrusted(ctx context.Context, agents []configwatch.Agent) error {
	h.log.Warn("the project's file is not trusted any more; the agents that it defines are ended")
	err := h.write(ctx, func(t store.Tx) error {
		for _, agent := range agents {
			run, err := t.Run(h.ctx, agent.Run)
			if errors.Is(err, store.ErrNotFound) || err == nil && (!run.State.Active() || run.State == domain.Interrupting) {
				continue
			}
			if err != nil {
				return err
			}
			if err := h.transition(t, &run, domain.Interrupting, outcome{
				code: codeRevoked, reason: "trust_revoked",
				message: "its agent is defined by the project's file, which is not trusted any more: look at it with `duet-rpc trust`, then continue",
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	runs := make(map[int64]bool)
	for _, agent := range agents {
		runs[agent.Run] = true
		if agent.Kill != nil {
			agent.Kill()
		}
	}
	if h.opts.KillAgents == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	all, err := h.store.Processes(ctx)
	if err != nil {
		return err
	}
	var theirs []domain.Process
	for _, p := range all {
		if runs[p.Run] {
			theirs = append(theirs, p)
		}
	}
	h.opts.KillAgents(theirs)
	return nil
}
