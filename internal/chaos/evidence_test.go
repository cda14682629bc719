//go:build linux && soak

package chaos

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
)

// evidence is the record of a round: the acknowledged requests and their results.
type evidence struct {
	Began    time.Time       `json:"began"`
	Notes    []note          `json:"notes"` // of the agents
	Log      []logged        `json:"log"`   // all events, from the first on
	Seen     map[int64]int64 `json:"seen"`  // by seq: when a client first received it, in nanoseconds since Began
	Calls    []call          `json:"calls"`
	Launches []launch        `json:"launches"`
	Stopped  map[string]bool `json:"stopped"` // sessions that a person tried to interrupt

	Queues        []queueCall  `json:"queues"`
	Reviews       []changeCall `json:"reviews"`
	Conversations []convCall   `json:"conversations"`

	// The state of the hub with everything at rest.
	Sessions  map[string]shownSession  `json:"sessions"`
	Approvals map[string]shownApproval `json:"approvals"` // every one that the log has
}

// A logged is an event of the log.
type logged struct {
	Seq  int64           `json:"seq"`
	Kind string          `json:"kind"`
	Time time.Time       `json:"time"`
	Turn string          `json:"turn_uuid"`
	Raw  json.RawMessage `json:"data"`
	Data eventData       `json:"-"`
}

func loggedOf(e eventstream.Event) logged {
	l := logged{Seq: e.Seq, Kind: e.Kind, Time: e.Time, Turn: e.TurnUUID, Raw: e.Data}
	_ = json.Unmarshal(e.Data, &l.Data)
	return l
}

// A shownSession is a session as listSessions returns it.
type shownSession struct {
	ID        string `json:"id"`
	TaskID    string `json:"task_id"`
	ThreadID  string `json:"thread_id"`
	Query     string `json:"query"`
	State     string `json:"state"`
	Source    string `json:"source"`
	Error     string `json:"error"`
	ErrorCode string `json:"error_code"`

	Created time.Time `json:"created_at"`
}

func (s shownSession) ended() bool {
	switch s.State {
	case "completed", "failed", "timed_out", "interrupted", "cancelled":
		return true
	}
	return false
}

// A shownApproval is an approval as getApproval returns it.
type shownApproval struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	ThreadID  string `json:"thread_id"`
	Status    string `json:"status"`
	Stale     bool   `json:"stale"`
	Comment   string `json:"comment"`
	DecidedBy string `json:"decided_by"`
	Reopens   string `json:"reopens"`  // the question that this one repeats
	Reopened  string `json:"reopened"` // why
	ToolInput struct {
		Command string `json:"command"`
	} `json:"tool_input"`
}

// step returns the step in the tool's command.
func (a shownApproval) step() (step string) {
	_, _ = fmt.Sscanf(a.ToolInput.Command, "step %s", &step)
	return step
}

// byHuman is the decider of a human decision.
const byHuman = "user"

// byNewerTurn is the decider of a question that a newer turn of its session closed.
const byNewerTurn = "overtaken"

// A verdict is the end of a question in the log.
type verdict struct {
	seq      int64
	at       time.Time // not before
	approval string
	answer   answer
	human    bool
}

// verdicts returns the ends of the questions of each step, in order. It omits forked works, which
// two agents do independently.
func (e *evidence) verdicts() map[string][]verdict {
	m, forked := make(map[string][]verdict), e.forked()
	for _, l := range e.Log {
		if l.Kind != "approval.closed" {
			continue
		}
		d := l.Data
		step := e.Approvals[d.ApprovalID].step()
		if forked[workOf(step)] {
			continue
		}
		m[step] = append(m[step], verdict{l.Seq, l.Time, d.ApprovalID, answer{d.Status, d.Comment}, d.DecidedBy == byHuman})
	}
	return m
}

// forked returns the works with questions in two sessions. This happens when a client
// continues a turn that an answer or another client continues, too.
func (e *evidence) forked() map[string]bool {
	threads, forked := make(map[string]string), make(map[string]bool)
	for _, a := range e.Approvals {
		work := workOf(a.step())
		forked[work] = forked[work] || threads[work] != "" && threads[work] != a.ThreadID
		threads[work] = a.ThreadID
	}
	return forked
}

func workOf(step string) string {
	work, _, _ := strings.Cut(step, "/")
	return work
}

// notesOf returns the notes of each step in order, without forked works.
func (e *evidence) notesOf() map[string][]note {
	m, forked := make(map[string][]note), e.forked()
	for _, n := range e.Notes {
		if !forked[workOf(n.Step)] {
			m[n.Step] = append(m[n.Step], n)
		}
	}
	return m
}

// clockSlack is the most by which the time in an event may precede the event.
const clockSlack = 5 * time.Millisecond

// questionEvents returns the ends of each question in the log, in order.
func (e *evidence) questionEvents() map[string][]questionEvent {
	m := make(map[string][]questionEvent)
	for _, l := range e.Log {
		if l.Kind != "approval.closed" {
			continue
		}
		q := questionEvent{
			byHuman: l.Data.DecidedBy == byHuman, answer: answer{l.Data.Status, l.Data.Comment}, from: l.Time.Sub(e.Began) - clockSlack, until: forever,
		}
		if seen, ok := e.Seen[l.Seq]; ok {
			q.until = max(time.Duration(seen), q.from)
		}
		m[l.Data.ApprovalID] = append(m[l.Data.ApprovalID], q)
	}
	return m
}

// callsOf returns the calls to each question.
func (e *evidence) callsOf() map[string][]call {
	m := make(map[string][]call)
	for _, c := range e.Calls {
		m[c.Approval] = append(m[c.Approval], c)
	}
	return m
}
