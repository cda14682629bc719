//go:build linux && soak

package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A finding is a broken promise: its check and its description.
type finding struct {
	Check string `json:"check"`
	What  string `json:"what"`
}

func (f finding) String() string { return f.Check + ": " + f.What }

// The names of the checks.
const (
	checkLaunches  = "an acknowledged launch is lost"
	checkRegister  = "a question is not a write-once register"
	checkQueue     = "no order of the calls explains a queue"
	checkChange    = "no order of the calls explains a reviewed change"
	checkConv      = "no order of the calls explains a session"
	checkPrompts   = "a queued prompt is lost, altered or repeated"
	checkFiles     = "a file does not have its reviewed content"
	checkApproved  = "an acknowledged approval led neither to its action nor to an open question"
	checkSaid      = "a repeated question has no reason"
	checkTwice     = "one answer led to two actions"
	checkDenied    = "an agent acted without approval"
	checkUndenied  = "an agent received a denial that no user gave"
	checkEvents    = "events"
	checkStuck     = "a session, question or step does not end"
	checkUnfit     = "an interrupted session cannot continue"
	checkLeft      = "processes are left"
	checkOdd       = "an unexpected response"
	checkUnsettled = "the project does not come to rest"
)

// launches requires that each acknowledged launch exists unchanged, and that no two sessions have
// the same work.
func (e *evidence) launches() (found []finding) {
	works := make(map[string]string)
	for _, s := range e.Sessions {
		if work := lastWork(s.Query); work != nil && strings.HasPrefix(s.Query, "work ") {
			if other := works[work[1]]; other != "" {
				found = append(found, finding{checkLaunches, fmt.Sprintf("%s has one launch and two sessions, %s and %s", work[1], other, s.ID)})
			}
			works[work[1]] = s.ID
		}
	}
	for _, l := range e.Launches {
		s, ok := e.Sessions[l.Session]
		switch {
		case !ok:
			found = append(found, finding{checkLaunches, fmt.Sprintf("session %s (%s) is missing", l.Session, l.Query)})
		case s.Query != l.Query || s.ThreadID != l.Thread:
			found = append(found, finding{checkLaunches, fmt.Sprintf("session %s was %q in thread %s, it is %q in %s", l.Session, l.Query, l.Thread, s.Query, s.ThreadID)})
		}
	}
	return found
}

// registers requires for each question an order of all calls that explains all responses. Without
// such an order, the best attempt is in the file that visualize names.
func (e *evidence) registers(visualize func(approval string) string) (found []finding) {
	events, calls := e.questionEvents(), e.callsOf()
	settled := make(map[string][]call)
	for id, of := range calls {
		settled[id] = settle(of, events[id])
	}
	return explained(checkRegister, questionModel, settled, visualize)
}

// explained requires for each object an order of its calls that the model explains.
func explained[T interface{ spanned() span }](check string, model porcupine.Model, calls map[string][]T, visualize func(object string) string) (found []finding) {
	for _, id := range slices.Sorted(maps.Keys(calls)) {
		path := visualize(id)
		result, err := search(model, calls[id], path)
		switch {
		case err != nil:
			found = append(found, finding{check, err.Error()})
		case result == porcupine.Illegal:
			found = append(found, finding{check, fmt.Sprintf("%s: no order of %d calls explains their replies; %s shows the best attempt", id, len(calls[id]), path)})
		case result == porcupine.Unknown:
			found = append(found, finding{check, fmt.Sprintf("%s: its %d calls take too long to judge", id, len(calls[id]))})
		}
	}
	return found
}

// approved requires for each step that its last acknowledged approval led to its action, or that
// its question is open again. If the agent received the approval, the open question must have a
// reason. approved returns the number of judged approvals.
//
// The check holds at rest, before any client continues a session. It skips the sessions that a
// person interrupted, and approvals whose repeated question a newer turn closed. It also skips a
// repeated approval if its turn completed before the agent received it: Duet keeps such an answer
// for the next turn.
func (e *evidence) approved() (found []finding, of int) {
	stopped := make(map[string]bool) // thread_ids
	for id := range e.Stopped {
		stopped[e.Sessions[id].ThreadID] = true
	}
	open := make(map[string]shownApproval) // by step
	overtaken := make(map[string]bool)     // questions whose repetition a newer turn closed
	for _, a := range e.Approvals {
		if a.DecidedBy == byNewerTurn {
			overtaken[a.Reopens] = true
		}
		if a.Status == statusPending && (open[a.step()].Reopened == "" || a.Reopened != "") {
			open[a.step()] = a
		}
	}
	acknowledged := make(map[string]bool) // words
	for _, c := range e.Calls {
		if c.What == callDecide && c.Outcome == won {
			acknowledged[c.Write.Words] = true
		}
	}
	notes := e.notesOf()
	for step, verdicts := range e.verdicts() {
		human := slices.DeleteFunc(slices.Clone(verdicts), func(v verdict) bool { return !v.human })
		if len(human) == 0 {
			continue
		}
		last := human[len(human)-1]
		if last.answer.Status != "approved" || !acknowledged[last.answer.Words] {
			continue
		}
		a := e.Approvals[last.approval]
		if stopped[a.ThreadID] {
			continue
		}
		of++
		done := slices.ContainsFunc(notes[step], func(n note) bool { return n.What == noteDid })
		reported := slices.ContainsFunc(notes[step], func(n note) bool { return n.What == noteAllowed && !time.Unix(0, n.At).Before(last.at) })
		again := open[step]
		switch {
		case done || overtaken[last.approval], a.Reopens != "" && !reported && e.completedSince(a.ThreadID, last.at):
			continue
		case again.ID != "" && (!reported || again.Reopened != ""):
			continue
		case again.ID != "":
			found = append(found, finding{checkSaid, fmt.Sprintf("step %s: question %s was approved (%s), and the agent received it; question %s (stale: %t) has no reason", step, last.approval, last.answer.Words, again.ID, again.Stale)})
			continue
		}
		s := e.Sessions[a.SessionID]
		found = append(found, finding{checkApproved, fmt.Sprintf(
			"step %s: question %s (stale: %t) was approved (%s) at event %d; the agent received it: %t; its turn is %s %s",
			step, last.approval, a.Stale, last.answer.Words, last.seq, reported, s.State, s.ErrorCode,
		)})
	}
	return found, of
}

// completedSince reports whether a turn that an answer started has completed in a session since a
// moment.
func (e *evidence) completedSince(thread string, at time.Time) bool {
	for _, s := range e.Sessions {
		if s.ThreadID == thread && s.Source == "decision" && s.State == "completed" && !s.Created.Before(at.Add(-clockSlack)) {
			return true
		}
	}
	return false
}

// permits requires that agents receive each approval once and after its decision, and act no more
// often than that. They may receive a denial only after a user's denial.
func (e *evidence) permits() (found []finding) {
	verdicts := e.verdicts()
	for step, notes := range e.notesOf() {
		approvals := make([]verdict, 0, len(verdicts[step]))
		for _, v := range verdicts[step] {
			if v.human && v.answer.Status == "approved" {
				approvals = append(approvals, v)
			}
		}
		reported, did := 0, 0
		for _, n := range notes {
			at := time.Unix(0, n.At)
			switch n.What {
			case noteAllowed:
				reported++
				switch last := lastBefore(verdicts[step], at); {
				case reported > len(approvals):
					found = append(found, finding{checkTwice, fmt.Sprintf("step %s was allowed %d times and approved %d times", step, reported, len(approvals))})
				case approvals[reported-1].at.After(at.Add(clockSlack)):
					found = append(found, finding{checkDenied, fmt.Sprintf("step %s was allowed before its approval no. %d", step, reported)})
				case last.answer.Status == "denied":
					found = append(found, finding{checkDenied, fmt.Sprintf("step %s was allowed (%s) after it was denied (%s)", step, n.Call, last.answer.Words)})
				}
			case noteDid:
				if did++; did > reported || did > len(approvals) {
					found = append(found, finding{checkTwice, fmt.Sprintf("step %s was carried out %d times; it was approved %d times", step, did, len(approvals))})
				}
			case noteDenied:
				if !slices.ContainsFunc(verdicts[step], func(v verdict) bool { return v.human && v.answer.Status == "denied" && !v.at.After(at.Add(clockSlack)) }) {
					found = append(found, finding{checkUndenied, fmt.Sprintf("step %s, call %s", step, n.Call)})
				}
			}
		}
	}
	return found
}

// lastBefore returns the last human verdict before a moment.
func lastBefore(verdicts []verdict, at time.Time) (last verdict) {
	for _, v := range verdicts {
		if v.human && !v.at.After(at) {
			last = v
		}
	}
	return last
}

// transient reports whether an event may differ in a replay.
func transient(seq int64, kind string) bool {
	return seq == 0 || kind == "text.delta" || kind == "thought.delta" || kind == "lagged"
}

// views requires that every client received all events of the log, unchanged.
func (e *evidence) views(views []*view) (found []finding) {
	add := func(format string, args ...any) {
		found = append(found, finding{checkEvents, fmt.Sprintf(format, args...)})
	}
	log := make(map[int64]logged)
	for _, l := range e.Log {
		if !transient(l.Seq, l.Kind) {
			log[l.Seq] = l
		}
	}
	deleted := make(map[string]bool) // sessions, whose events the log no longer has
	for _, l := range e.Log {
		for _, id := range l.Data.TurnUUIDs {
			deleted[id] = true
		}
	}
	for _, v := range views {
		last, reported, shown := v.last(), make(map[int64]bool), make(map[string]bool)
		for _, t := range v.events {
			if t.Kind == "approval.opened" {
				shown[loggedOf(t).Data.ApprovalID] = true
			}
			if transient(t.Seq, t.Kind) {
				continue
			}
			reported[t.Seq] = true
			l, ok := log[t.Seq]
			switch {
			case !ok && deleted[t.TurnUUID]:
			case !ok:
				add("%s received event %d (%s), which is not in the log: %.200s", v.name, t.Seq, t.Kind, t.Data)
			case l.Kind != t.Kind || !sameJSON(l.Raw, t.Data):
				add("%s received event %d as %s %.200s, the log has %s %.200s", v.name, t.Seq, t.Kind, t.Data, l.Kind, l.Raw)
			}
		}
		for seq, l := range log {
			// A client that received a pending question without a number does not receive its event
			// again.
			if v.after < seq && seq <= last && !reported[seq] && (l.Kind != "approval.opened" || !shown[l.Data.ApprovalID]) {
				add("%s never received event %d (%s), but event %d", v.name, seq, l.Kind, last)
			}
		}
	}
	return found
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// ends requires that all sessions and questions have ended, and that each step was done or denied.
func (e *evidence) ends() (found []finding) {
	for _, s := range e.Sessions {
		if !s.ended() {
			found = append(found, finding{checkStuck, fmt.Sprintf("session %s (%s) is %s", s.ID, s.Query, s.State)})
		}
	}
	for _, a := range e.Approvals {
		if a.Status == statusPending {
			found = append(found, finding{checkStuck, fmt.Sprintf("question %s (%s) is still open", a.ID, a.step())})
		}
	}
	notes, forked := e.notesOf(), e.forked()
	for _, l := range e.Launches {
		for i := 1; l.Work != "" && !forked[l.Work] && i <= l.Steps; i++ {
			step := fmt.Sprintf("%s/%d", l.Work, i)
			if !slices.ContainsFunc(notes[step], func(n note) bool { return n.What == noteDid || n.What == noteDenied }) {
				found = append(found, finding{checkStuck, fmt.Sprintf("step %s was neither carried out nor denied", step)})
			}
		}
	}
	return found
}
