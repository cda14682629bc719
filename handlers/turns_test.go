package handlers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// names returns the numbers of turns.
func names(turns []*protocol.Turn) (list []string) {
	for _, t := range turns {
		list = append(list, t.Name)
	}
	return list
}

func TestSessionsAndTurnsHaveNumbers(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	first := answer[protocol.Started](c, "session.start", `{"prompt":"one"}`)
	assert.Equal(t, []any{"1.1", int64(1), protocol.DeliveredStarted}, []any{first.Name, first.Session, first.Delivered})
	w.ended(first.ID)
	assert.Equal(t, "start_id", c.fail("session.start", `{"prompt":"other","start_id":"`+first.SessionUUID+`"}`).Data["param"])
	for range 2 { // the second one is the first one, sent again
		assert.Equal(t, "2.1", answer[protocol.Started](c, "session.start", `{"prompt":"other","start_id":"7a1c7a2f-3a51-4d0f-9a8e-0b1f5f7d3c10"}`).Name)
	}
	second := answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"two"}`)
	assert.Equal(t, []any{"1.2", first.SessionUUID}, []any{second.Name, second.SessionUUID})
	w.ended(second.ID)
	fork := answer[protocol.Started](c, "session.fork", `{"turn":"1.1","prompt":"another two","mode":"plan"}`)
	assert.Equal(t, "3.1", fork.Name)
	w.ended(fork.ID)
	implied := answer[protocol.Started](c, "session.prompt", `{"session":"1.1","prompt":"yet another two"}`)
	assert.Equal(t, "4.1", implied.Name, "a turn that is not the last")
	w.ended(implied.ID)
	w.ended("2.1")

	for _, id := range []string{`"1.2"`, `1`, `"1"`, `"` + second.ID + `"`, `"` + second.SessionUUID + `"`, `"task-0003"`} {
		turn := answer[protocol.TurnResult](c, "turn.get", `{"turn":`+id+`}`).Turn
		assert.Equal(t, []any{"1.2", int64(1), second.ID, second.SessionUUID, "1.1", domain.Completed, "two"}, []any{turn.Name, turn.Session, turn.ID, turn.SessionUUID, turn.Parent, turn.State, turn.Prompt}, id)
	}
	got := answer[protocol.GetSessionResult](c, "session.get", `{"session":3}`)
	assert.Equal(t, []any{"3.1", "1.1", "plan"}, []any{got.Session.Name, got.Session.Parent, got.Session.Mode})
	assert.Empty(t, got.Queued)

	assert.Equal(t, []string{"4.1", "3.1", "1.2", "2.1"}, names(answer[protocol.SessionsResult](c, "session.list", `{}`).Sessions), "by their last turns")
	page := answer[protocol.SessionsResult](c, "session.list", `{"limit":2}`)
	assert.Equal(t, []string{"1.2", "2.1"}, names(answer[protocol.SessionsResult](c, "session.list", `{"before":"`+page.NextBefore+`"}`).Sessions))
	assert.Equal(t, []string{"4.1", "3.1", "1.2", "2.1", "1.1"}, names(answer[protocol.TurnList](c, "turn.list", `{}`).Turns))
	assert.Equal(t, []string{"1.2"}, names(answer[protocol.TurnList](c, "turn.list", `{"session":1,"limit":1}`).Turns))
	assert.Equal(t, []string{"1.1"}, names(answer[protocol.TurnList](c, "turn.list", `{"session":1,"before":"1.2"}`).Turns))
	assert.Empty(t, answer[protocol.TurnList](c, "turn.list", `{"states":["failed","timed_out"]}`).Turns)

	answer[protocol.Empty](c, "session.rename", `{"session":"1.1","title":"before"}`)
	answer[protocol.Empty](c, "session.rename", `{"session":1,"title":"both turns"}`)
	for _, id := range []string{"1.1", "1.2"} {
		got := answer[protocol.TurnResult](c, "turn.get", `{"turn":"`+id+`"}`).Turn
		assert.Equal(t, "both turns", got.SessionTitle, id)
	}
	answer[protocol.Empty](c, "session.rename", `{"session":2,"title":"a title"}`)
	assert.Equal(t, "a title", answer[protocol.TurnResult](c, "turn.get", `{"turn":2}`).Turn.SessionTitle)
	assert.Equal(t, []string{"9"}, answer[protocol.ArchiveSessionsResult](c, "session.archive", `{"sessions":[2,9]}`).Failed)
	assert.Equal(t, []string{"2.1"}, names(answer[protocol.SessionsResult](c, "session.list", `{"filter":"archived"}`).Sessions))
	assert.Equal(t, []string{"2.1"}, names(answer[protocol.TurnList](c, "turn.list", `{"archived":true}`).Turns))
	assert.Empty(t, answer[protocol.ArchiveSessionsResult](c, "session.archive", `{"sessions":[2],"archived":false}`).Failed)
}

// turn.wait returns at the end of the work on a turn. Its cancellation leaves the turn alone.
func TestAClientWaitsForATurn(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		if x.Prompt == "one" {
			<-release
		}
		return quick(ctx, x)
	})
	status := 1
	w.executors.command = func(context.Context, catalog.RunCommandParams) catalog.RunCommandResult {
		defer func() { status = 0 }()
		return catalog.RunCommandResult{ExitCode: status}
	}
	c := w.connect(frame.LSP)
	c.ask("session.start", `{"prompt":"one"}`)
	w.reaches("1.1", domain.Running)
	assert.Equal(t, map[string]any{"kind": "cancelled"}, c.cancel(c.send("turn.wait", `{"turn":1}`)).Error.Data)
	waiting := c.send("turn.wait", `{"turn":"1.1"}`)
	assert.Equal(t, domain.Running, answer[protocol.TurnResult](c, "turn.get", `{"turn":1}`).Turn.State)
	close(release)
	var r protocol.TurnResult
	require.NoError(t, json.Unmarshal(c.wait(waiting).Result, &r))
	assert.Equal(t, []any{"1.1", domain.Completed, "Done: one"}, []any{r.Turn.Name, r.Turn.State, r.Turn.Result})
	assert.Equal(t, r, answer[protocol.TurnResult](c, "turn.wait", `{"turn":1}`), "a turn that has ended")

	c.ask("session.start", `{"prompt":"two","gates":["make test"]}`)
	gated := answer[protocol.TurnResult](c, "turn.wait", `{"turn":"2.1"}`).Turn
	assert.Equal(t, []any{"2.2", "gate", "passed", 2}, []any{gated.Name, gated.Source, gated.Gates.State, gated.Gates.Iteration})

	c.failsAs("turn.wait", `{"turn":"9.9"}`, -32050, "not_found")
	c.rejects("turn.wait", `{"turn":""}`, "turn")
}

// The chat goes on from prompt to prompt. A quiet turn sends no deltas.
func TestTheChatAndAQuietTurn(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	for _, want := range []string{"1.1", "1.2"} {
		chat := answer[protocol.Started](c, "session.start", `{"prompt":"hi","chat":true}`)
		assert.Equal(t, want, chat.Name)
		s := w.ended(chat.ID)
		assert.Equal(t, []any{domain.SourceChat, "Chat", 0, false}, []any{s.Source, s.Session.Title, s.Priority, s.Quiet})
	}
	assert.Equal(t, "task-0003", testkit.JSONAs[string](t, c.ask("chat.send", `{"message":"hi"}`), "taskId"))
	assert.Equal(t, "1.3", w.ended("task-0003").Turn.Name())
	assert.True(t, w.ended(answer[protocol.Started](c, "session.start", `{"prompt":"hi","quiet":true}`).ID).Quiet)
	for param, value := range map[string]string{"session_uuid": `"7a1c7a2f-3a51-4d0f-9a8e-0b1f5f7d3c10"`, "worktree": "true", "draft": "true"} {
		c.rejects("session.start", `{"prompt":"hi","chat":true,"`+param+`":`+value+`}`, param)
	}
}

func TestQueuedTurns(t *testing.T) {
	begun, answered := make(chan struct{}, 3), make(chan struct{})
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		begun <- struct{}{}
		defer func() { <-answered }() // agents take some time to end
		return until(ctx, x)
	})
	c := w.connect(frame.LSP)
	first := answer[protocol.Started](c, "session.start", `{"prompt":"one"}`)
	<-begun
	for _, prompt := range []string{"two", "three"} {
		assert.Equal(t, protocol.DeliveredQueued, answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"`+prompt+`"}`).Delivered)
	}
	prompts := func(list []*protocol.WaitingPrompt) (texts []string) {
		for _, p := range list {
			texts = append(texts, p.Turn+" "+p.Prompt)
		}
		return texts
	}
	assert.Equal(t, []string{"1.2 two", "1.3 three"}, prompts(answer[protocol.GetSessionResult](c, "session.get", `{"session":"1"}`).Queued))
	assert.Equal(t, []string{"1.3 three", "1.2 two"}, prompts(answer[protocol.QueuedTurns](c, "turn.move", `{"turn":"1.3","before":"1.2"}`).Queued))
	assert.Equal(t, []string{"1.3 three", "1.2 2"}, prompts(answer[protocol.QueuedTurns](c, "turn.edit", `{"turn":"1.2","prompt":"2"}`).Queued))
	assert.Equal(t, protocol.InterruptTurnResult{Turn: "1.2", State: "cancelled"}, answer[protocol.InterruptTurnResult](c, "turn.interrupt", `{"turn":"1.2"}`))
	for _, session := range []string{`1`, `"` + first.SessionUUID + `"`, `"last"`} { // its turn at work, not the one that is queued
		assert.Equal(t, protocol.InterruptTurnResult{Turn: "1.1", State: "interrupting"}, answer[protocol.InterruptTurnResult](c, "turn.interrupt", `{"turn":`+session+`,"reason":"enough"}`))
	}
	assert.Equal(t, "1.3", answer[protocol.InterruptTurnResult](c, "turn.interrupt", `{"turn":"1.3"}`).Turn)
	close(answered)
	w.ended(first.ID)
	c.failsAs("turn.edit", `{"turn":"1.1","prompt":"x"}`, -32051, "bad_state")
}

// The messages of native methods are sentences, and each kind of error has one code.
func TestErrorsOfNativeMethods(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	for method, params := range map[string]string{"turn.get": `{"turn":"7.1"}`, "session.get": `{"session":7}`, "session.prompt": `{"session":7,"prompt":"x"}`, "turn.list": `{"before":"7.1"}`} {
		e := c.failsAs(method, params, -32050, "not_found")
		assert.False(t, strings.HasPrefix(e.Message, "Internal error"), e.Message)
	}
	assert.Equal(t, "agent", c.fail("session.start", `{"prompt":"x","agent":"none"}`).Data["param"])
	assert.Equal(t, "turn", c.fail("turn.get", `{"turn":1.5}`).Data["param"])
	w.finished(answer[protocol.Started](c, "session.start", `{"prompt":"x"}`).ID)
	assert.Equal(t, "1.1 has ended already: it is completed", c.failsAs("turn.interrupt", `{"turn":"1.1"}`, -32051, "not_running").Message)
	assert.Equal(t, "Internal error: task-0001 has ended already: it is completed", c.fail("interruptSession", `{"session_id":"1.1"}`).Message, "in the words of the dialect")
	c.failsAs("session.archive", `{"sessions":["8"]}`, -32050, "not_found")
}

// A prompt that is sent again with its id, because the answer was lost, is the first one.
func TestPromptsWithIDsAreSentOnce(t *testing.T) {
	w := newWorld(t, quick)
	c := w.connect(frame.LSP)
	first := answer[protocol.Started](c, "session.start", `{"prompt":"one"}`)
	w.ended(first.ID)
	other := answer[protocol.Started](c, "session.start", `{"prompt":"other"}`)
	w.ended(other.ID)
	const id = "8b2d8b30-4b62-4e1a-8b9f-1c2a6a8e4d21"
	sent := answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"once","prompt_id":"`+id+`"}`)
	again := answer[protocol.Started](c, "session.prompt", `{"session":1,"prompt":"once","prompt_id":"`+id+`"}`)
	assert.Equal(t, []any{"1.2", "1.2", sent.ID}, []any{sent.Name, again.Name, again.ID})
	w.ended(sent.ID)
	for _, params := range []string{
		`{"session":2,"prompt":"once","prompt_id":"` + id + `"}`, // of another session
		`{"session":1,"prompt":"x","prompt_id":"no UUID"}`, `{"session":1,"prompt":"x","deliver":"steer","prompt_id":"` + other.ID + `"}`,
	} {
		assert.Equal(t, "prompt_id", c.fail("session.prompt", params).Data["param"], params)
	}
}

func TestApprovalsOfTurns(t *testing.T) {
	w := newWorld(t, asking)
	c := w.connect(frame.LSP)
	turn := answer[protocol.Started](c, "session.start", `{"prompt":"edit"}`)
	w.waiting(turn.ID, 1)
	open := answer[protocol.ApprovalList](c, "approval.list", `{"turn":"1.1"}`).Approvals
	require.Len(t, open, 1)
	a := *open[0]
	assert.Equal(t, []any{"1.1", int64(1), turn.ID, turn.SessionUUID, "Edit a.txt", protocol.ApprovalStatus("pending")}, []any{a.Turn, a.Session, a.TurnUUID, a.SessionUUID, a.Title, a.Status})
	assert.Equal(t, a, answer[protocol.ApprovalResult](c, "approval.get", `{"approval":"`+a.ApprovalID+`"}`).Approval)
	c.failsAs("approval.get", `{"approval":"none"}`, -32050, "approval_not_found")
	c.failsAs("approval.decide", `{"approval":"none","decision":"approve"}`, -32050, "approval_not_found")
	require.NotEmpty(t, a.Fingerprint)
	c.failsAs("approval.decide", `{"approval":"`+a.ApprovalID+`","decision":"approve","fingerprint":"of another question"}`, -32051, "changed")
	assert.True(t, answer[protocol.DecisionResult](c, "approval.decide", `{"approval":"`+a.ApprovalID+`","decision":"approve","scope":"session","fingerprint":"`+a.Fingerprint+`"}`).Success)
	w.ended(turn.ID)
	again := answer[protocol.DecisionResult](c, "approval.decide", `{"approval":"`+a.ApprovalID+`","decision":"approve"}`)
	assert.Equal(t, []any{false, protocol.ApprovalStatus("approved")}, []any{again.Success, again.Status})
	assert.Empty(t, answer[protocol.ApprovalList](c, "approval.list", `{}`).Approvals)
	rules := answer[protocol.RuleList](c, "rule.list", `{}`).Rules
	require.Len(t, rules, 1)
	assert.EqualValues(t, 1, rules[0].Session)
	assert.True(t, answer[protocol.DeleteRuleResult](c, "rule.delete", `{"rule_id":1}`).Success)
	c.failsAs("rule.delete", `{"rule_id":1}`, -32050, "rule_not_found")
}
