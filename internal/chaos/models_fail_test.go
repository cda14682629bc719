//go:build linux && soak

package chaos

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
)

// seconds returns a span.
func seconds(from, until int) span {
	return span{From: time.Duration(from) * time.Second, Until: time.Duration(until) * time.Second}
}

// after returns the span of a call that never got a response.
func after(from int) span { return span{From: time.Duration(from) * time.Second, Until: forever} }

// judge requires the result of a search.
func judge[T interface{ spanned() span }](t *testing.T, model porcupine.Model, want porcupine.CheckResult, calls []T) {
	t.Helper()
	result, err := search(model, calls, filepath.Join(t.TempDir(), "picture.html"))
	require.NoError(t, err)
	assert.Equal(t, want, result)
}

// The model accepts the histories of an ordered queue, and rejects others.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	call := func(s span, what, name, text, before, outcome string) queueCall {
		return queueCall{span: s, What: what, Name: name, Text: text, Before: before, Outcome: outcome}
	}
	add := func(s span, version string) queueCall { return call(s, queueAdd, nameOf(version), version, "", done) }
	read := func(s span, versions ...string) queueCall {
		return queueCall{span: s, What: queueRead, Outcome: done, Read: versions}
	}
	start := func(s span, version string) queueCall {
		return call(s, queueStart, nameOf(version), version, "", done)
	}
	cancel := func(s span, version string) queueCall {
		return call(s, queueCancel, nameOf(version), version, "", done)
	}
	edit := func(s span, outcome, version string) queueCall {
		return call(s, queueEdit, nameOf(version), version, "", outcome)
	}
	move := func(s span, outcome, name, before string) queueCall {
		return call(s, queueMove, name, "", before, outcome)
	}
	for _, test := range []struct {
		name  string
		calls []queueCall
		want  porcupine.CheckResult
	}{
		{"first in, first out", []queueCall{add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), start(seconds(4, 5), "p1.0"), read(seconds(6, 7), "p2.0")}, porcupine.Ok},
		{"two at once, in either order", []queueCall{add(seconds(0, 3), "p1.0"), add(seconds(1, 3), "p2.0"), read(seconds(4, 5), "p2.0", "p1.0")}, porcupine.Ok},
		{"a later one is before", []queueCall{add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), read(seconds(4, 5), "p2.0", "p1.0")}, porcupine.Illegal},
		{"the second one starts first", []queueCall{add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), start(seconds(4, 5), "p2.0")}, porcupine.Illegal},
		{"it starts twice", []queueCall{add(seconds(0, 1), "p1.0"), start(seconds(2, 3), "p1.0"), start(seconds(4, 5), "p1.0")}, porcupine.Illegal},
		{"a lost prompt", []queueCall{add(seconds(0, 1), "p1.0"), read(seconds(2, 3))}, porcupine.Illegal},
		{"a prompt that is there twice", []queueCall{add(seconds(0, 1), "p1.0"), read(seconds(2, 3), "p1.0", "p1.0")}, porcupine.Illegal},
		{"moved to the front", []queueCall{add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), move(seconds(4, 5), done, "p2", "p1"), start(seconds(6, 7), "p2.0")}, porcupine.Ok},
		{"moved to the end", []queueCall{add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), move(seconds(4, 5), done, "p1", ""), read(seconds(6, 7), "p2.0", "p1.0")}, porcupine.Ok},
		{"an acknowledged move without effect", []queueCall{add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), move(seconds(4, 5), done, "p2", "p1"), read(seconds(6, 7), "p1.0", "p2.0")}, porcupine.Illegal},
		{"a move without a reply, with effect", []queueCall{add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), move(after(4), unknown, "p2", "p1"), read(seconds(6, 7), "p2.0", "p1.0")}, porcupine.Ok},
		{"a move without a reply, without effect", []queueCall{add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), move(after(4), unknown, "p2", "p1"), read(seconds(6, 7), "p1.0", "p2.0")}, porcupine.Ok},
		{
			"a move without a reply, with effect twice", []queueCall{
				add(seconds(0, 1), "p1.0"), add(seconds(2, 3), "p2.0"), move(after(4), unknown, "p2", "p1"), read(seconds(6, 7), "p2.0", "p1.0"),
				move(seconds(8, 9), done, "p2", ""), read(seconds(10, 11), "p2.0", "p1.0"),
			}, porcupine.Illegal,
		},
		{"edited, and then started", []queueCall{add(seconds(0, 1), "p1.0"), edit(seconds(2, 3), done, "p1.1"), start(seconds(4, 5), "p1.1")}, porcupine.Ok},
		{"an acknowledged edit is lost", []queueCall{add(seconds(0, 1), "p1.0"), edit(seconds(2, 3), done, "p1.1"), start(seconds(4, 5), "p1.0")}, porcupine.Illegal},
		{"edited after the start", []queueCall{add(seconds(0, 1), "p1.0"), start(seconds(2, 3), "p1.0"), edit(seconds(4, 5), done, "p1.1")}, porcupine.Illegal},
		{"an edit refused in time", []queueCall{add(seconds(0, 1), "p1.0"), edit(seconds(2, 3), refused, "p1.1"), start(seconds(4, 5), "p1.0")}, porcupine.Illegal},
		{"an edit refused too late", []queueCall{add(seconds(0, 1), "p1.0"), start(seconds(2, 3), "p1.0"), edit(seconds(4, 5), refused, "p1.1")}, porcupine.Ok},
		{"withdrawn", []queueCall{add(seconds(0, 1), "p1.0"), cancel(seconds(2, 3), "p1.0"), call(seconds(2, 3), queueWithdraw, "p1", "", "", done), read(seconds(4, 5))}, porcupine.Ok},
		{"withdrawn, and still there", []queueCall{add(seconds(0, 1), "p1.0"), call(seconds(2, 3), queueWithdraw, "p1", "", "", done), read(seconds(4, 5), "p1.0")}, porcupine.Illegal},
		{"withdrawn, and started", []queueCall{add(seconds(0, 1), "p1.0"), cancel(seconds(2, 3), "p1.0"), start(seconds(4, 5), "p1.0")}, porcupine.Illegal},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			judge(t, queueModel, test.want, test.calls)
		})
	}
}

// The model accepts the histories of a reviewed change, and rejects others.
func TestChangeModel(t *testing.T) {
	t.Parallel()
	call := func(s span, what, outcome, read string) changeCall {
		return changeCall{span: s, What: what, Outcome: outcome, Read: read}
	}
	for _, test := range []struct {
		name  string
		calls []changeCall
		want  porcupine.CheckResult
	}{
		{"reverted, and then accepted", []changeCall{call(seconds(0, 1), changeRevert, done, changeReverted), call(seconds(2, 3), changeAccept, done, changeReverted), call(seconds(4, 5), changeReopen, done, changeOpen)}, porcupine.Ok},
		{"a decision that is forgotten", []changeCall{call(seconds(0, 1), changeAccept, done, changeAccepted), call(seconds(2, 3), changeRead, done, changeOpen)}, porcupine.Illegal},
		{"read before it was decided", []changeCall{call(seconds(0, 1), changeRead, done, changeAccepted), call(seconds(2, 3), changeAccept, done, changeAccepted)}, porcupine.Illegal},
		{"no reply, with effect", []changeCall{call(after(0), changeRevert, unknown, ""), call(seconds(2, 3), changeRead, done, changeReverted)}, porcupine.Ok},
		{"no reply, without effect", []changeCall{call(after(0), changeRevert, unknown, ""), call(seconds(2, 3), changeRead, done, changeOpen)}, porcupine.Ok},
		{
			"no reply, with effect twice", []changeCall{
				call(after(0), changeRevert, unknown, ""), call(seconds(2, 3), changeRead, done, changeReverted),
				call(seconds(4, 5), changeReopen, done, changeOpen), call(seconds(6, 7), changeRead, done, changeReverted),
			}, porcupine.Illegal,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			judge(t, changeModel, test.want, test.calls)
		})
	}
}

// The model accepts the histories of a session, and rejects others.
func TestSessionModel(t *testing.T) {
	t.Parallel()
	launch := func(s span, outcome, session string) convCall {
		return convCall{span: s, What: convLaunch, Outcome: outcome, Session: session}
	}
	read := func(s span, session, state string, archived bool) convCall {
		return convCall{span: s, What: convRead, Outcome: done, Session: session, State: state, Archived: archived}
	}
	call := func(s span, what, outcome string) convCall { return convCall{span: s, What: what, Outcome: outcome} }
	for _, test := range []struct {
		name  string
		calls []convCall
		want  porcupine.CheckResult
	}{
		{"launched twice, and there once", []convCall{launch(seconds(0, 1), done, "a"), launch(seconds(2, 3), done, "a"), read(seconds(4, 5), "a", "running", false)}, porcupine.Ok},
		{"launched twice, and there twice", []convCall{launch(seconds(0, 1), done, "a"), launch(seconds(2, 3), done, "b")}, porcupine.Illegal},
		{"launched without a reply, and then again", []convCall{launch(after(0), unknown, ""), read(seconds(2, 3), "a", "running", false), launch(seconds(4, 5), done, "b")}, porcupine.Illegal},
		{"launched, and not there", []convCall{launch(seconds(0, 1), done, "a"), call(seconds(2, 3), convRead, absent)}, porcupine.Illegal},
		{"deleted, and still there", []convCall{launch(seconds(0, 1), done, "a"), call(seconds(2, 3), convDelete, done), read(seconds(4, 5), "a", "completed", false)}, porcupine.Illegal},
		{"deleted, and launched anew", []convCall{launch(seconds(0, 1), done, "a"), call(seconds(2, 3), convDelete, done), launch(seconds(4, 5), done, "b")}, porcupine.Ok},
		{"deleted without a reply, and there again", []convCall{launch(seconds(0, 1), done, "a"), call(after(2), convDelete, unknown), call(seconds(4, 5), convRead, absent), read(seconds(6, 7), "a", "completed", false)}, porcupine.Illegal},
		{"archived, and restored by another prompt", []convCall{launch(seconds(0, 1), done, "a"), call(seconds(2, 3), convArchive, done), read(seconds(4, 5), "a", "completed", true), call(seconds(6, 7), convContinue, done), read(seconds(8, 9), "a", "completed", false)}, porcupine.Ok},
		{"an archive that is forgotten", []convCall{launch(seconds(0, 1), done, "a"), call(seconds(2, 3), convArchive, done), read(seconds(4, 5), "a", "completed", false)}, porcupine.Illegal},
		{"refused, and there is none", []convCall{call(seconds(0, 1), convArchive, refused)}, porcupine.Illegal},
		{"interrupted, and running", []convCall{launch(seconds(0, 1), done, "a"), call(seconds(2, 3), convInterrupt, done), read(seconds(4, 5), "a", "running", false)}, porcupine.Illegal},
		{"interrupted", []convCall{launch(seconds(0, 1), done, "a"), call(seconds(2, 3), convInterrupt, done), read(seconds(4, 5), "a", "interrupting", false), read(seconds(6, 7), "a", "interrupted", false)}, porcupine.Ok},
		{"ended, and running again", []convCall{launch(seconds(0, 1), done, "a"), read(seconds(2, 3), "a", "completed", false), read(seconds(4, 5), "a", "running", false)}, porcupine.Illegal},
		{"ended, and then otherwise", []convCall{launch(seconds(0, 1), done, "a"), read(seconds(2, 3), "a", "interrupted", false), read(seconds(4, 5), "a", "completed", false)}, porcupine.Illegal},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			judge(t, convModel, test.want, test.calls)
		})
	}
}

// Calls without a response took effect if the log says so, before a client received that.
func TestQueueEvidence(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_000_000, 0)
	e := &evidence{Began: began, Sessions: map[string]shownSession{"s": {ID: "s", ThreadID: "t", Query: "prompt p1.2 for 5 ms", State: "completed"}}, Seen: map[int64]int64{1: 2e9, 2: 4e9}}
	event := func(kind, data string) {
		at := began.Add(time.Duration(len(e.Log)+1) * time.Second)
		e.Log = append(e.Log, loggedOf(eventstream.Event{Kind: kind, TurnUUID: "s", Seq: int64(len(e.Log) + 1), Time: at, Data: json.RawMessage(data)}))
	}
	event("turn.state", `{"session_uuid":"t","state":"queued"}`)
	event("queue.changed", `{"session_uuid":"t","prompt":"prompt p1.2 for 5 ms"}`)
	event("turn.state", `{"session_uuid":"t","state":"starting"}`)
	call := func(what, version string) queueCall {
		return queueCall{span: seconds(0, 1), Thread: "t", What: what, Name: nameOf(version), Text: version, Outcome: unknown}
	}
	e.Queues = []queueCall{call(queueAdd, "p1.0"), call(queueAdd, "p7.0"), call(queueEdit, "p1.2"), call(queueEdit, "p1.3")}
	var calls []string
	for _, c := range e.queues()["t"] {
		calls = append(calls, c.What+" "+c.Text+" "+c.Until.String())
	}
	assert.Equal(t, []string{"start p1.2 " + forever.String(), "add p1.0 2s", "edit p1.2 4s"}, calls)
	judge(t, queueModel, porcupine.Ok, e.queues()["t"])
}

// An acknowledged prompt reaches its agent once, as it was edited.
func TestPrompts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		state string
		notes []string // versions
		want  int      // findings
	}{
		{"completed", "completed", []string{"p1.2"}, 0},
		{"in the queue", "queued", nil, 0},
		{"withdrawn", "cancelled", nil, 0},
		{"cut short before the agent received it", "interrupted", nil, 0},
		{"withdrawn, but the agent received it", "cancelled", []string{"p1.2"}, 1},
		{"received twice", "interrupted", []string{"p1.2", "p1.2"}, 1},
		{"completed, but never received", "completed", nil, 1},
		{"received without its edit", "completed", []string{"p1.0"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := &evidence{
				Sessions: map[string]shownSession{"s": {ID: "s", ThreadID: "t", Query: "prompt p1.2 for 5 ms", State: test.state}},
				Queues:   []queueCall{{Thread: "t", What: queueAdd, Name: "p1", Text: "p1.0", Outcome: done}},
			}
			for _, version := range test.notes {
				e.Notes = append(e.Notes, note{What: noteTook, Step: "p1", Call: version})
			}
			assert.Len(t, e.prompts(), test.want)
			e.Sessions["again"] = e.Sessions["s"]
			assert.Len(t, e.prompts(), 2*test.want+1, "the prompt is there twice")
			delete(e.Sessions, "s")
			delete(e.Sessions, "again")
			assert.Len(t, e.prompts(), 1, "the prompt is lost")
		})
	}
}
