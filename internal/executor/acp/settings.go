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

// betweenReports is the least time between two reports of what an agent tells of its
// session while no prompt runs. The first is made at once.
const betweenReports = 500 * time.Millisecond

// reportSettings tells the hub all that the agent has told of its session, since a
// report of a former turn may not have been taken. The mode is told at each prompt.
func (a *agent) reportSettings(t *turn) {
	a.settings.Report(func(now catalog.Session) {
		t.Event(catalog.EventSession, now)
		if m := now.Mode; m != nil && m.Current != "" {
			t.Event(catalog.EventMode, catalog.Mode{Current: m.Current, Available: settingIDs(m.Choices), Choices: m.Choices})
		}
	})
	a.warnUnasked(t)
}

// warnUnasked tells the user, once for each mode that the agent comes to be in, that Duet's
// rules and questions do not hold there.
func (a *agent) warnUnasked(t *turn) {
	now := a.settings.Session()
	if now.Mode == nil {
		return
	}
	if before := a.modeSeen.Swap(&now.Mode.Current); before != nil && *before == now.Mode.Current {
		return
	}
	if why := unasked(a.name, now); why != "" {
		t.Problem(task.CodeUnasked, why)
	}
}

// reportChanged tells the hub what the agent has told since, and its mode if that
// is another one: as a part of its turn if it has one.
//
// The turn is looked up while the report is made, so that one of the next turn
// comes later (setting.State makes one report after the other).
func (a *agent) reportChanged() {
	a.settings.ReportChanged(func(changed catalog.Session) {
		t := a.current.Load()
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

// A lastTask is the one of an agent's turn, or of the turn before.
type lastTask struct {
	conversation, task string
	spentBefore        float64 // what the session had cost before it, in USD
}

// reportBetween tells the hub what has changed since the agent's last turn.
func (a *agent) reportBetween(changed catalog.Session) {
	last := a.last.Load()
	if last == nil || last.conversation == "" { // nobody comes back to it
		return
	}
	err := a.driver.hub.ReportSession(a.driver.ctx, catalog.ReportSessionParams{SessionID: last.conversation, TaskID: last.task, Session: changed})
	if err != nil {
		a.driver.log.Debug("what an agent told of its session was not taken", "agent", a.name, "err", err)
	}
}

// changedBetween has what the agent told between two turns reported soon.
func (a *agent) changedBetween() {
	select {
	case a.changed <- struct{}{}:
	default: // the report that is due anyway has it
	}
}

// reportBetweenTurns makes the reports that changedBetween asks for, until all is
// read that the agent has printed.
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

// setter sets the agent's session by calls, for a turn.
func (a *agent) setter(t *turn, call func(method string, params any) (json.RawMessage, error)) *setter {
	ignored := func(message string) { t.Problem(task.CodeIgnored, message) }
	return &setter{State: &a.settings, Session: a.session, Call: call, Agent: a.name, Version2: a.info.IsVersion2(), Ignored: ignored}
}

// choose sets the agent to what the prompt asks for, and tells the hub what it is
// set to then. What the agent does not have, or does not take, fails the prompt:
// it would be another one.
func (a *agent) choose(t *turn) *task.Failure {
	s := a.setter(t, func(method string, params any) (json.RawMessage, error) {
		return callWithin[json.RawMessage](a, a.startTimeout, method, params)
	})
	defer a.reportSettings(t)
	err := s.ChooseMode(t.Conversation.AgentMode, t.Params.PermissionMode, func(message string) { t.Problem(task.CodeSetting, message) })
	if err == nil {
		model := ""
		if config := t.Conversation.ModelConfig; config != nil {
			model = config.Model
		}
		err = s.Set("", model, t.Conversation.Options)
	}
	switch {
	case err == nil, t.Stopped():
		return nil
	case a.gone():
		return a.exited()
	}
	return &task.Failure{Code: task.CodeSetting, Message: a.name + ": " + err.Error()}
}

// set is what a human wants of an agent that works on a prompt.
func (a *agent) set(ctx context.Context, t *turn, p catalog.SetSessionParams) error {
	s := a.setter(t, func(method string, params any) (json.RawMessage, error) {
		return acp.Call[json.RawMessage](ctx, a.conn, method, params)
	})
	defer a.reportChanged()
	return s.Set(p.Mode, p.Model, p.Options)
}

// SetSession changes what the agent of a conversation is set to, while it works on
// a prompt. It waits until the agent has that.
func (d *Driver) SetSession(ctx context.Context, p catalog.SetSessionParams) catalog.SetSessionResult {
	d.mu.Lock()
	c := d.conversations[p.SessionID]
	d.mu.Unlock()
	if c == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	a := c.working.Load()
	if a == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	t := a.current.Load()
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
