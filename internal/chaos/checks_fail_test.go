//go:build linux && soak

package chaos

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
)

// story returns the evidence of one step of one session. Each word is an event, a second after the
// previous one.
func story(words ...string) *evidence {
	began := time.Unix(1_000_000, 0)
	e := &evidence{
		Began:     began,
		Sessions:  map[string]shownSession{"s": {ID: "s", ThreadID: "t", Query: "work w 1", State: "interrupted", ErrorCode: "ORPHANED"}},
		Approvals: make(map[string]shownApproval),
	}
	e.Launches = []launch{{Work: "w", Query: "work w 1", Steps: 1, Session: "s", Thread: "t"}}
	question, answers := "", 0
	for i, word := range words {
		at := began.Add(time.Duration(i) * time.Second)
		event := func(kind, data string) {
			e.Log = append(e.Log, loggedOf(eventstream.Event{Kind: kind, Seq: int64(len(e.Log) + 1), Time: at, Data: json.RawMessage(data)}))
		}
		status := func(s string) {
			a := e.Approvals[question]
			a.ID, a.SessionID, a.ThreadID, a.Status, a.ToolInput.Command = question, "s", "t", s, "step w/1"
			e.Approvals[question] = a
		}
		switch word {
		case "asks":
			question = fmt.Sprintf("q%d", i)
			event("approval.opened", fmt.Sprintf(`{"approval":%q,"tool_input":{"command":"step w/1"}}`, question))
			status(statusPending)
		case "reopened":
			again := fmt.Sprintf("q%d", i)
			e.Approvals[again] = shownApproval{Reopens: question, Reopened: "unknown"}
			question = again
			event("approval.opened", fmt.Sprintf(`{"approval":%q,"tool_input":{"command":"step w/1"}}`, question))
			status(statusPending)
		case "approved", "denied":
			answers++
			words := fmt.Sprintf("answer-%d", answers)
			e.Calls = append(e.Calls, call{Approval: question, What: callDecide, Outcome: won, Write: answer{word, words}})
			event("approval.closed", fmt.Sprintf(`{"approval":%q,"status":%q,"decided_by":"user","comment":%q}`, question, word, words))
			status(word)
		case "overtaken":
			status("cancelled")
			a := e.Approvals[question]
			a.DecidedBy = byNewerTurn
			e.Approvals[question] = a
		case "told", "refused", "did":
			what := map[string]string{"told": noteAllowed, "refused": noteDenied, "did": noteDid}[word]
			e.Notes = append(e.Notes, note{At: at.UnixNano(), What: what, Step: "w/1", Call: "c"})
		case "interrupted":
			e.Stopped = map[string]bool{"s": true}
		}
	}
	return e
}

// Each check finds its violations, and no others.
func TestChecks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		story []string
		want  []string // checks
	}{
		{"carried out", []string{"asks", "approved", "told", "did"}, nil},
		{"denied", []string{"asks", "denied", "refused"}, nil},
		{"denied, and the agent never heard", []string{"asks", "denied"}, nil},
		{"used up by no agent", []string{"asks", "approved"}, []string{checkApproved}},
		{"used up by an agent that died", []string{"asks", "approved", "told"}, []string{checkApproved}},
		{"open again", []string{"asks", "approved", "told", "reopened"}, nil},
		{"open again, and overtaken by a newer turn", []string{"asks", "approved", "told", "reopened", "overtaken"}, nil},
		{"overtaken, but approved after that", []string{"asks", "approved", "reopened", "overtaken", "asks", "approved"}, []string{checkApproved}},
		{"asked again", []string{"asks", "approved", "asks"}, nil},
		{"asked again, as if for the first time", []string{"asks", "approved", "told", "asks"}, []string{checkSaid}},
		{"denied when it was open again", []string{"asks", "approved", "told", "reopened", "denied"}, nil},
		{"open again, approved again, and carried out", []string{"asks", "approved", "told", "reopened", "approved", "told", "did"}, nil},
		{"twice for two answers", []string{"asks", "approved", "told", "did", "reopened", "approved", "told", "did"}, nil},
		{"interrupted by a person", []string{"asks", "approved", "interrupted"}, nil},
		{"twice for one answer", []string{"asks", "approved", "told", "did", "did"}, []string{checkTwice}},
		{"sent one answer twice", []string{"asks", "approved", "told", "told", "did"}, []string{checkTwice}},
		{"not approved at all", []string{"asks", "told", "did"}, []string{checkTwice, checkTwice}},
		{"before it was approved", []string{"asks", "told", "approved", "did"}, []string{checkDenied}},
		{"after a denial", []string{"asks", "approved", "reopened", "denied", "told", "did"}, []string{checkDenied}},
		{"a denial that no user gave", []string{"asks", "refused"}, []string{checkUndenied}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := story(test.story...)
			found, _ := e.approved()
			found = append(found, e.permits()...)
			found = append(found, e.launches()...)
			var checks []string
			for _, f := range found {
				checks = append(checks, f.Check)
			}
			assert.Equal(t, test.want, checks, "%v", found)
		})
	}
}

func TestLostLaunches(t *testing.T) {
	t.Parallel()
	e := story()
	assert.Empty(t, e.launches())
	e.Launches = append(e.Launches, launch{Work: "x", Query: "work x 1", Session: "gone"})
	assert.Len(t, e.launches(), 1, "one launch is missing")
	e = story()
	e.Sessions["s2"] = shownSession{ID: "s2", Query: "work w 1"}
	assert.Len(t, e.launches(), 1, "one work has two sessions")
	e = story()
	e.Launches[0].Query = "work w 2"
	assert.Len(t, e.launches(), 1, "one launch has another query")
}

func TestViews(t *testing.T) {
	t.Parallel()
	e := story("asks", "approved")
	reported := func(events ...eventstream.Event) []finding {
		return e.views([]*view{{name: "a client", events: events}})
	}
	event := func(i int) eventstream.Event {
		return eventstream.Event{Seq: e.Log[i].Seq, Kind: e.Log[i].Kind, Data: e.Log[i].Raw}
	}
	assert.Empty(t, reported())
	assert.Empty(t, reported(event(0)))
	assert.Empty(t, reported(event(0), event(1)))
	assert.Len(t, reported(event(1)), 1, "the first is missing")
	shown := event(0)
	shown.Seq = 0
	assert.Empty(t, reported(shown, event(1)), "the question was shown, without its number")
	other := event(0)
	other.Data = json.RawMessage(`{"approval_id":"another"}`)
	assert.Len(t, reported(other), 1, "another content")
	other.Seq = 17
	assert.NotEmpty(t, reported(event(0), event(1), other), "an event that the log does not have")
}

func TestEnds(t *testing.T) {
	t.Parallel()
	assert.Empty(t, story("asks", "approved", "told", "did").ends())
	assert.Len(t, story("asks", "approved").ends(), 1, "the step was never done")
	e := story("asks", "told", "did")
	assert.Len(t, e.ends(), 1, "a question is open")
	s := e.Sessions["s"]
	s.State = "running"
	e.Sessions["s"] = s
	assert.Len(t, e.ends(), 2, "and a turn has not ended")
}
