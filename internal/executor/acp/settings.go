package acp

import (
	"time"

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
