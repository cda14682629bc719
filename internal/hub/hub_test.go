package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

func TestATurnIsFoldedIntoItsTranscript(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.say("Hel")
		x.say("lo")
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "1", Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})
		x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: "1", Status: "completed", Result: json.RawMessage(`"a.txt"`)})
		x.say("Done.")
		return completed
	})
	events := subscribe(t, h, eventlog.Subscribing{}, -1)
	s := await(t, h, launch(t, h, "say hello"))
	assert.Equal(t, []any{domain.Completed, "Done."}, []any{s.State, s.Result})
	assert.Equal(t, "task-0001", domain.TaskName(s.Task))

	c := transcriptOf(t, h, s.HumanLayerSession)
	said := each(c.Entries, func(e query.Entry) string {
		return fmt.Sprint(e.Kind, "/", e.Role, "/", e.Content, e.Tool, "/", e.Result)
	})
	assert.Equal(t, []string{"message/user/say hello/", "message/assistant/Hello/", "tool_call/assistant/Bash/a.txt", "message/assistant/Done./"}, said)

	events.until(t, func() bool {
		kinds := events.kinds()
		return slices.Contains(kinds, domain.EventDelta) && kinds[len(kinds)-1] == domain.EventTurnState
	})
	assert.Len(t, must(h.query.Search(context.Background(), "hel", 10, 0))(t), 2)
}

func TestAQuestionWaitsForTheFirstAnswer(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		r := x.ask(ctx, "Write", map[string]string{"file_path": "a"})
		x.say(fmt.Sprint(r.Approved, " ", r.Reason, " ", string(r.UpdatedInput)))
		return completed
	})
	s := launch(t, h, "write")
	pending := pendingOf(t, h, 1)
	assert.Equal(t, domain.WaitingInput, turnOf(t, h, s.HumanLayerRun).State)

	_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].ID, Decision: "deny"})
	assert.ErrorContains(t, err, "comment")
	decide(t, h, approval.Decision{ID: pending[0].CallID, Decision: "approve", UpdatedInput: json.RawMessage(`{"file_path":"b"}`)})
	_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: pending[0].ID, Decision: "deny", Comment: "no"})
	assert.ErrorContains(t, err, "already decided with status: approved")
	s = await(t, h, s)
	assert.Equal(t, `true user_approved {"file_path":"b"}`, s.Result)
}

func TestInterruptEndsATurnInEveryState(t *testing.T) {
	begun, seen := make(chan struct{}, 10), make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		begun <- struct{}{}
		if x.p.Prompt == "ask" {
			x.ask(ctx, "Write", nil)
		}
		<-ctx.Done()
		<-seen // agents take some time to end
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled, StopReason: "cancelled"}
	}, func(o *Options) { o.Limits.MaxTurns = 1 })
	first := launch(t, h, "work")
	<-begun
	second := launch(t, h, "wait in the queue")
	assert.Equal(t, domain.Queued, second.State)
	got := must(h.Interrupt(context.Background(), second.UUID, ""))(t)
	assert.Equal(t, domain.Cancelled, got.State)
	got = must(h.Interrupt(context.Background(), first.UUID, ""))(t)
	assert.Equal(t, domain.Interrupting, got.State)
	close(seen)
	assert.Equal(t, domain.Interrupted, await(t, h, first).State)
	assert.ErrorContains(t, errorOf(h.Interrupt(context.Background(), first.UUID, "")), "has ended already")

	third := launch(t, h, "ask")
	<-begun
	pendingOf(t, h, 1)
	fourth := launch(t, h, "a turn that waits for a human gives its slot up")
	<-begun
	for _, s := range []domain.TurnInSession{third, fourth} {
		must(h.Interrupt(context.Background(), s.UUID, ""))(t)
		assert.Equal(t, domain.Interrupted, await(t, h, s).State)
	}
	assert.Empty(t, must(h.Approvals().Pending(context.Background(), ""))(t), "its question is closed")
}

func TestAReportedEndCountsIfTheAnswerIsLost(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		_ = x.daemon.ReportCompletion(ctx, catalog.ReportCompletionParams{SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, Status: catalog.StatusCompleted})
		return lost
	})
	assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "work")).State)
}

func TestAQuestionOutlivesItsAgent(t *testing.T) {
	for name, end := range map[string]catalog.ExecutePromptResult{
		"the agent dies":    {Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: codeAgentExited, Message: "gone"}},
		"the executor dies": lost,
	} {
		t.Run(name, func(t *testing.T) {
			var turns atomic.Int32
			var h *Hub
			h = openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
				if turns.Add(1) > 1 {
					r := x.ask(ctx, "Write", map[string]string{"file_path": "a"})
					x.say(r.Reason)
					return completed
				}
				asking, cut := context.WithCancel(ctx)
				go x.ask(asking, "Write", map[string]string{"file_path": "a"})
				pendingOf(t, h, 1)
				cut()
				return end
			})
			s := await(t, h, launch(t, h, "write a file"))
			pending := must(h.Approvals().Pending(context.Background(), s.HumanLayerSession))(t)
			require.Len(t, pending, 1)
			assert.True(t, pending[0].Stale)
			approve(t, h, pending[0], "")
			next := turnOf(t, h, s.Session.UUID)
			assert.Contains(t, next.Prompt, "write a file", "the agent may have lost the turn")
			assert.Equal(t, "user_approved", await(t, h, next).Result)
		})
	}
}

func TestAQuestionBeforeItsToolCallIsShownAtIt(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.ask(ctx, "Write", map[string]string{"file_path": "a"})
		x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "call-" + x.p.TaskID, Tool: "Write", Title: "Write a", Status: "completed"})
		return completed
	})
	s := launch(t, h, "write")
	pendingOf(t, h, 1)
	for _, status := range []string{"pending", "approved"} {
		c := transcriptOf(t, h, s.HumanLayerSession)
		require.Len(t, c.Entries, 2)
		require.NotNil(t, c.Entries[1].Approval)
		assert.Equal(t, status, c.Entries[1].Approval.Status)
		if status == "pending" {
			approve(t, h, *c.Entries[1].Approval, "")
			await(t, h, s)
		}
	}
}

// Drain also waits for turns started by a transaction that is in progress.
func TestDrainWaitsForWhatIsJustStarted(t *testing.T) {
	release := make(chan struct{})
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { <-release; return completed })
	turn := insert(t, h, domain.Queued)
	drained := make(chan struct{})
	require.NoError(t, h.write(t.Context(), func(tx store.Tx) error {
		tx.AfterCommit(func() { // comes before the hub's own
			go func() {
				defer close(drained)
				h.Drain(context.Background())
			}()
			select {
			case <-drained: // too early
			case <-time.After(50 * time.Millisecond):
			}
		})
		h.mayStart = true
		return nil
	}))
	select {
	case <-drained:
		t.Error("a turn is just starting")
	default:
	}
	close(release)
	<-drained
	assert.Equal(t, domain.Completed, must(h.store.Turn(t.Context(), turn.ID))(t).State)
}

// Drain returns when the last active turn has ended or waits for a human.
func TestDrainReturnsAtOnceWhenNothingWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			switch x.p.Prompt {
			case "asks":
				time.Sleep(7 * time.Millisecond)
				x.ask(ctx, "Write", nil)
			case "works":
				time.Sleep(13 * time.Millisecond)
			default:
				<-ctx.Done()
			}
			return completed
		})
		inState(t, h, launch(t, h, "works"), domain.Running)
		inState(t, h, launch(t, h, "asks"), domain.Running)
		began := time.Now()
		h.Drain(t.Context())
		assert.LessOrEqual(t, time.Since(began), 13*time.Millisecond)
		assert.Len(t, pendingOf(t, h, 1), 1, "the question waits")
		h.Drain(t.Context())
		assert.LessOrEqual(t, time.Since(began), 15*time.Millisecond)
		assert.True(t, h.Busy(), "a turn that waits for a human")
	})
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), hang)
		inState(t, h, launch(t, h, "p"), domain.Running)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		h.Drain(ctx)
		assert.Equal(t, time.Hour, time.Since(began).Round(time.Second))
	})
}

func TestLaunchRefusesWhatMakesNoSense(t *testing.T) {
	h := openHub(t, database(t), hang)
	for name, c := range map[string]struct {
		spec LaunchSpec
		kind string
	}{
		"no prompt":     {LaunchSpec{Prompt: " \n\t"}, domain.KindInvalid},
		"unknown agent": {LaunchSpec{Prompt: "p", Agent: "nobody"}, domain.KindUnknownAgent},
		"no directory":  {LaunchSpec{Prompt: "p", CWD: "not-there"}, domain.KindInvalid},
		"a file":        {LaunchSpec{Prompt: "p", CWD: filepath.Base(h.store.Path())}, domain.KindInvalid},
	} {
		_, err := h.Launch(context.Background(), c.spec)
		require.Error(t, err, name)
		assert.Equal(t, c.kind, kindOf(t, err), name)
	}
	_, err := h.Continue(context.Background(), ContinueSpec{From: "nobody", Prompt: "p"})
	assert.Equal(t, domain.KindTurnNotFound, kindOf(t, err))
	must(h.Launch(context.Background(), LaunchSpec{Prompt: "p", CallerID: "mine"}))(t)
	_, err = h.Launch(context.Background(), LaunchSpec{Prompt: "p", CallerID: "mine"})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err), "an id of the caller's is used once")
	counts := must(h.Status(context.Background()))(t).Counts
	assert.EqualValues(t, 1, counts[domain.Running]+counts[domain.Starting])
}

func TestAPlainCommandCannotBeHeldToPlanMode(t *testing.T) {
	ctx := context.Background()
	for driver, held := range map[string]bool{"command": false, "acp": true, "executor": true} {
		h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed },
			func(o *Options) { fakeOf(o).Agents = agents{driver} })
		_, err := h.Launch(ctx, LaunchSpec{Prompt: "p", Mode: catalog.ModePlan})
		first := await(t, h, launch(t, h, "p"))
		mode := catalog.ModePlan
		_, changed := h.Settings().Update(ctx, first.UUID, domain.SettingsChanged{Mode: &mode})
		if held {
			assert.NoError(t, err, driver)
			assert.NoError(t, changed, driver)
			continue
		}
		for _, err := range []error{err, changed} {
			e := refusal(t, err)
			assert.Equal(t, []any{domain.KindInvalid, "permission_mode"}, []any{e.Kind, e.Param})
			assert.Contains(t, e.Expected, "can enforce for the agent fake")
			assert.NotContains(t, e.Accepted, "plan")
		}
		_, err = h.Continue(ctx, ContinueSpec{From: first.UUID, Prompt: "p"})
		assert.NoError(t, err, "other modes are as good as none")
	}
}
