package acp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// betweenReports is the minimum time between two reports of session changes while no prompt runs.
// The first report is immediate.
const betweenReports = 500 * time.Millisecond

// reportSettings reports the complete session to the hub, since an earlier turn's report may have
// been lost. It reports the mode at each prompt.
func (a *agent) reportSettings(t *turn) {
	a.settings.Report(func(now catalog.Session) {
		t.Event(catalog.EventSession, now)
		if m := now.Mode; m != nil && m.Current != "" {
			t.Event(catalog.EventMode, catalog.Mode{Current: m.Current, Available: settingIDs(m.Choices), Choices: m.Choices})
		}
	})
}

// warnUnasked warns the user that Duet's rules and questions do not apply in the agent's mode: at
// each turn, and once for each mode that the agent enters in it. It does nothing while Duet still
// chooses the mode of the prompt.
func (a *agent) warnUnasked(t *turn) {
	now := a.settings.Session()
	if now.Mode == nil || !t.entersMode(now.Mode.Current) {
		return
	}
	if why := unasked(a.name, now); why != "" {
		t.Problem(task.CodeUnasked, why)
	}
}

// reportChanged reports the changed settings to the hub, and the mode if it has changed: as a
// part of the agent's turn if it has one.
//
// The turn is looked up during the report, so that a report of the next turn comes later
// (settingState serializes reports).
func (a *agent) reportChanged() {
	a.settings.ReportChanged(func(changed catalog.Session) {
		t := a.turns.now()
		if t == nil || !t.Event(catalog.EventSession, changed) {
			a.reportBetween(changed)
			return
		}
		if m := changed.Mode; m != nil && m.Current != "" {
			t.Event(catalog.EventMode, catalog.Mode{Current: m.Current})
			a.warnUnasked(t)
		}
	})
}

// reportBetween reports to the hub what has changed since the agent's last turn.
func (a *agent) reportBetween(changed catalog.Session) {
	last := a.turns.latest()
	if last == nil || last.session == "" { // no later prompt can reuse it
		return
	}
	err := a.driver.hub.ReportSession(a.driver.ctx, catalog.ReportSessionParams{SessionID: last.session, TaskID: last.task, Session: changed})
	if err != nil {
		a.driver.log.Debug("cannot report an agent's session update", "agent", a.name, "err", err)
	}
}

// changedBetween schedules a report of changes between two turns.
func (a *agent) changedBetween() {
	select {
	case a.changed <- struct{}{}:
	default: // the report that is already due includes it
	}
}

// reportBetweenTurns makes the scheduled reports, until the agent's output has been read to its
// end.
func (a *agent) reportBetweenTurns() {
	for {
		select {
		case <-a.changed:
			a.reportChanged()
		case <-a.conn.Done():
			select {
			case <-a.changed:
				a.reportChanged()
			default:
			}
			return
		}
		select {
		case <-time.After(betweenReports):
		case <-a.conn.Done():
		}
	}
}

// setter returns a setter for the agent's session in a turn.
func (a *agent) setter(t *turn, call func(method string, params any, taken func(result json.RawMessage)) error) *setter {
	ignored := func(message string) { t.Problem(task.CodeIgnored, message) }
	return &setter{State: &a.settings, Session: a.session, Call: call, Agent: a.name, Info: &a.info, Ignored: ignored}
}

// choose applies the settings of the prompt, and reports the result to the hub. It fails if the
// agent does not have or does not accept a setting: the prompt must not run with other settings.
func (a *agent) choose(t *turn) *task.Failure {
	s := a.setter(t, func(method string, params any, taken func(result json.RawMessage)) error {
		_, err := callInOrder(a, a.startTimeout, method, params, taken)
		return err
	})
	defer func() {
		a.reportSettings(t)
		t.choseMode()
		a.warnUnasked(t)
	}()
	err := s.ChooseMode(t.Session.AgentMode, t.Params.PermissionMode, func(message string) { t.Problem(task.CodeSetting, message) })
	if err == nil {
		model := ""
		if config := t.Session.ModelConfig; config != nil {
			model = config.Model
		}
		err = s.Set("", model, t.Session.Options)
	}
	switch {
	case err == nil, t.Stopped():
		return nil
	case a.gone():
		return a.exited()
	}
	return &task.Failure{Code: task.CodeSetting, Message: a.name + ": " + err.Error()}
}

// set applies the user's settings to an agent that works on a prompt.
func (a *agent) set(ctx context.Context, t *turn, p catalog.SetSessionParams) error {
	s := a.setter(t, func(method string, params any, taken func(result json.RawMessage)) error {
		_, err := acp.CallInOrder(ctx, a.conn, method, params, taken)
		return err
	})
	defer a.reportChanged()
	return s.Set(p.Mode, p.Model, p.Options)
}

// SetSession changes the settings of a session's agent while it works on a prompt. It waits
// until the agent has applied them.
func (d *Driver) SetSession(ctx context.Context, p catalog.SetSessionParams) catalog.SetSessionResult {
	d.mu.Lock()
	c := d.sessions[p.SessionID]
	d.mu.Unlock()
	if c == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	a := c.latest.Load()
	if a == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	t := a.turns.now()
	if t == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.StartTimeout)
	defer cancel()
	select {
	case <-t.prompted:
	case <-t.Context().Done():
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	case <-a.life.Done():
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	case <-ctx.Done():
		return refused(ctx.Err())
	}
	if err := a.set(ctx, t, p); err != nil {
		return refused(err)
	}
	return catalog.SetSessionResult{Status: catalog.SessionSet}
}

func refused(err error) catalog.SetSessionResult {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("the agent did not answer in time")
	}
	return catalog.SetSessionResult{Status: catalog.SessionRefused, Message: err.Error()}
}
