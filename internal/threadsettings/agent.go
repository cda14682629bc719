package threadsettings

import (
	"context"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// agentAnswers is how long an agent may take to accept or refuse a setting: slightly longer than
// its executor allows.
const agentAnswers = 40 * time.Second

// OfSession returns the modes, models and options of the agent in a run's thread, as reported for
// the thread's session.
func (ts *Settings) OfSession(ctx context.Context, s domain.Session) (Known, error) {
	seen, err := ts.opts.Store.AgentSession(ctx, s.Run.Thread)
	if seen.Agent != s.Thread.Agent {
		seen.AgentSession = domain.AgentSession{}
	}
	return settingsOfAgent(ts.opts.Agents.Known(s.Thread.Agent), seen.AgentSession), err
}

// OfAgent returns the modes, models and options of a configured agent, "" for the default one, as
// last reported in any thread.
func (ts *Settings) OfAgent(ctx context.Context, name string) (Known, error) {
	agent, err := ts.opts.Agents.Agent(name)
	if err != nil {
		return Known{}, err
	}
	reported, err := ReportedBy(ctx, ts.opts.Store, 0, agent.Name)
	return settingsOfAgent(agent, reported), err
}

// Check refuses a mode, model or option value that the thread's agent is known not to have. "" and
// nil are not checked. An agent without reports is asked when it starts.
func (ts *Settings) Check(ctx context.Context, from store.Reader, thread int64, agent, mode, model string, options map[string]string) error {
	if mode == "" && model == "" && len(options) == 0 {
		return nil
	}
	reported, err := ReportedBy(ctx, from, thread, agent)
	if err != nil {
		return err
	}
	return checkSetting(ts.opts.Agents.Known(agent), reported, mode, model, options)
}

// setLive sets the active agent of a thread, and reports whether one is active.
func (ts *Settings) setLive(ctx context.Context, thread domain.Thread, c Change) (bool, error) {
	p := catalog.SetSessionParams{SessionID: thread.UUID}
	set(&p.Mode, c.Mode)
	set(&p.Model, c.Model)
	for id, value := range c.Options {
		if value != "" { // otherwise it is no longer requested
			if p.Options == nil {
				p.Options = make(map[string]string)
			}
			p.Options[id] = value
		}
	}
	lease := ts.opts.Runs.LeaseOf(thread.ID)
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

// tellInBackground sends a change to the agent after the earlier ones. It never blocks, because the
// store's writer calls it.
func (ts *Settings) tellInBackground(s domain.Session, c Change) {
	turn := ts.turns.take(s.Thread.ID, true)
	if !ts.telling.Go(func() {
		defer turn.done()
		<-turn.before
		ts.setInBackground(s, c)
	}) {
		turn.done()
	}
}

// setInBackground is setLive without a waiting caller: a refusal becomes an error of the run.
func (ts *Settings) setInBackground(s domain.Session, c Change) {
	_, refused := ts.setLive(ts.ctx, s.Thread, c)
	if refused == nil || ts.ctx.Err() != nil {
		return
	}
	report, _ := json.Marshal(map[string]string{"code": "SETTING_REFUSED", "message": refused.Error()})
	if err := ts.opts.Runs.Write(ts.ctx, func(t store.Tx) error { return announce(t, s.Run, domain.AgentErrorReported{Report: report}) }); err != nil {
		ts.opts.Logger.Warn("an agent did not take a setting, and nobody could be told", "err", err)
	}
}
