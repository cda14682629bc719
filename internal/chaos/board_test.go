//go:build linux && soak

package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
)

// A board collects the reports to all clients in a round: open questions, sessions to continue, and
// the calls whose responses the test checks.
type board struct {
	mu        sync.Mutex
	questions map[string]*question  // by approval
	turns     map[string]*knownTurn // by turn_uuid
	launches  []launch
	calls     []call
	seen      map[int64]time.Time // by seq: when an event was first received
	findings  []string
	works     int
	answers   int
	continued map[string]bool // sessions; a second continuation would fork one

	shared      shared
	queueCalls  []queueCall
	changeCalls []changeCall
	convCalls   []convCall
}

// A question is an approval as events reported it.
type question struct {
	id     string
	opened time.Time // when it was first seen
	open   bool
}

type knownTurn struct {
	session, thread, state string
	first                  int64 // the seq of its first event
}

// A launch is a launch or continuation that a response acknowledged.
type launch struct {
	Work    string `json:"work"` // empty for a continuation
	Query   string `json:"query"`
	Steps   int    `json:"steps"`
	Session string `json:"session"`
	Thread  string `json:"thread"`
}

// found records a violation.
func (b *board) found(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.findings = append(b.findings, fmt.Sprintf(format, args...))
}

// eventData holds the members of events that the tests read.
type eventData struct {
	SessionUUID string `json:"session_uuid"`
	State       string `json:"state"`
	ApprovalID  string `json:"approval"`
	Status      string `json:"status"`
	DecidedBy   string `json:"decided_by"`
	Comment     string `json:"comment"`
	Prompt      string `json:"prompt"`

	TurnUUIDs []string `json:"turn_uuids"`
}

// take records an event that a client received.
func (b *board) take(e eventstream.Event) {
	var d eventData
	if err := json.Unmarshal(e.Data, &d); err != nil && len(e.Data) > 0 {
		b.found("event %d (%s) cannot be read: %v: %.300s", e.Seq, e.Kind, err, e.Data)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.seen[e.Seq]; !known && e.Seq > 0 {
		b.seen[e.Seq] = time.Now()
	}
	switch e.Kind {
	case "turn.state":
		if b.shared.threads[d.SessionUUID] {
			return
		}
		first := e.Seq
		if known := b.turns[e.TurnUUID]; known != nil {
			first = known.first
		}
		b.turns[e.TurnUUID] = &knownTurn{e.TurnUUID, d.SessionUUID, d.State, first}
	case "approval.opened":
		if q := b.questions[d.ApprovalID]; q == nil {
			b.questions[d.ApprovalID] = &question{id: d.ApprovalID, opened: time.Now(), open: true}
		} else {
			q.open = true // again, perhaps
		}
	case "approval.closed":
		if q := b.questions[d.ApprovalID]; q != nil {
			q.open = false
		}
	}
}

// oldest returns one of the n oldest open questions, so that several people answer the same ones.
func (b *board) oldest(choose func(n int) int, n int) (id string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var open []*question
	for _, q := range b.questions {
		if q.open {
			open = append(open, q)
		}
	}
	if len(open) == 0 {
		return "", false
	}
	slices.SortFunc(open, func(x, y *question) int { return x.opened.Compare(y.opened) })
	return open[choose(min(n, len(open)))].id, true
}

// any returns one of all questions so far.
func (b *board) any(choose func(n int) int) (id string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Collect(maps.Keys(b.questions))
	if len(all) == 0 {
		return "", false
	}
	slices.Sort(all)
	return all[choose(len(all))], true
}

// session returns the session_id of a turn in one of the states that is the last one of its session.
func (b *board) session(choose func(n int) int, states ...string) (id string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := make(map[string]*knownTurn) // by thread_id
	for _, r := range b.turns {
		if other := last[r.thread]; other == nil || r.first > other.first {
			last[r.thread] = r
		}
	}
	var fit []*knownTurn
	for _, r := range last {
		if slices.Contains(states, r.state) {
			fit = append(fit, r)
		}
	}
	if len(fit) == 0 {
		return "", false
	}
	slices.SortFunc(fit, func(x, y *knownTurn) int { return cmp.Compare(x.session, y.session) })
	return fit[choose(len(fit))].session, true
}

// newWork returns the name of a new work, or false after most works.
func (b *board) newWork(most int) (work string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.works == most {
		return "", false
	}
	b.works++
	return fmt.Sprintf("w%d", b.works), true
}

// newWords returns a comment that no other answer has.
func (b *board) newWords() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers++
	return fmt.Sprintf("answer-%d", b.answers)
}

func (b *board) launched(l launch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.launches = append(b.launches, l)
}

// continues reports whether no other client has continued a session, and records that this one
// does.
func (b *board) continues(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.continued[id] {
		return false
	}
	b.continued[id] = true
	return true
}
