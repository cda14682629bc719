package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
)

// turns plays one function for each turn in order.
func turns(each ...play) play {
	var n atomic.Int64
	return func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		return each[n.Add(1)-1](ctx, x)
	}
}

// hears asks to write, gets the answer, and continues with then. Its executor does not report that
// it took the answer.
func hears(then play) play {
	return func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		r, err := x.daemon.RequestPermission(ctx, catalog.RequestPermissionParams{
			SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: "Write", ToolInput: json.RawMessage(`{"file_path":"a"}`), ToolUseID: "call-" + x.p.TaskID,
		})
		if err != nil || r.Cancelled {
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}
		return then(ctx, x)
	}
}

func ends(result catalog.ExecutePromptResult) play {
	return func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return result }
}

// says asks to write and says the answer.
func says(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
	x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "a"})))
	return completed
}

var exited = catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: codeAgentExited, Message: "it ended"}}

// approvalNow returns the current state of a question.
func approvalNow(t *testing.T, h *Hub, id string) domain.Approval {
	t.Helper()
	return must(h.Approvals().Find(context.Background(), id))(t)
}

// notes returns the notices about answers in the session of a turn.
func notes(t *testing.T, h *Hub, turn string) (list []string) {
	t.Helper()
	c := transcriptOf(t, h, turn)
	for _, e := range c.Entries {
		if e.Kind == domain.ItemApproval {
			list = append(list, e.Content)
		}
	}
	return list
}

// lastOf waits for the last turn of a session to end and returns it.
func lastOf(t *testing.T, h *Hub, session string, source string) (s domain.TurnInSession) {
	t.Helper()
	until(t, h, func() bool {
		var err error
		s, err = h.query.Turn(context.Background(), session)
		return err == nil && s.Source == source && s.State.Ended()
	}, "the end of a turn by "+source)
	return s
}

// If an agent ends without having acted on an answer, the human is asked again, however the agent
// ended. The first answer is kept.
func TestAnAnswerThatIsNotKnownToBeTakenIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		end    play
		reason string
	}{
		"the agent exits":                     {ends(exited), "it may have been carried out"},
		"the executor dies":                   {ends(lost), "it may have been carried out"},
		"the turn fails":                      {ends(catalog.ExecutePromptResult{Status: catalog.StatusFailed}), "it may have been carried out"},
		"the agent cancels it":                {ends(catalog.ExecutePromptResult{Status: catalog.StatusCancelled}), "it may have been carried out"},
		"the turn ends without the answer":    {ends(completed), "ended its turn without taking the answer"},
		"the hub ends while the agent thinks": {hang, "it may have been carried out"},
	} {
		t.Run(name, func(t *testing.T) {
			path := database(t)
			play := turns(hears(c.end), says)
			h := openHub(t, path, play)
			s := launchIn(t, h, "a", "p")
			first := pendingOf(t, h, 1)[0]
			approve(t, h, first, "")
			if strings.HasPrefix(name, "the hub") {
				inState(t, h, s, domain.Running)
				require.NoError(t, h.Close())
				h = openHub(t, path, play)
			}
			again := pendingOf(t, h, 1)[0]
			assert.NotEqual(t, first.ID, again.ID, "an answer is given once")
			assert.Equal(t, first.ID, again.Reopens)
			assert.Contains(t, again.Reopened, "allowed before, but")
			assert.Contains(t, again.Reopened, c.reason)
			assert.True(t, again.Stale)
			assert.Equal(t, []string{first.Tool, string(first.Input), first.ToolUseID()}, []string{again.Tool, string(again.Input), again.ToolUseID()})
			was := approvalNow(t, h, first.ID)
			assert.Equal(t, []any{domain.ApprovalApproved, domain.DecidedByUser, again.ID, true}, []any{was.Status, was.DecidedBy, was.ReopenedAs, was.Taken.IsZero()})
			said := notes(t, h, s.UUID)
			require.Len(t, said, 1, "the history has the answer")
			assert.Contains(t, said[0], "allowed before, but")

			events := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested}}, 0)
			events.until(t, func() bool { return len(events.all()) >= 2 })
			reported := events.all()[1].Payload.(domain.ApprovalRequested)
			assert.Equal(t, []any{again.ID, first.ID, again.Reopened, true}, []any{reported.ApprovalID, reported.Reopens, reported.Reopened, reported.Stale})

			approve(t, h, again, "")
			last := lastOf(t, h, "a", domain.SourceDecision)
			assert.Equal(t, "yes user_approved", last.Result)
			assert.Contains(t, last.Prompt, "Check first", "the prompt says that the agent may have done it")
			pendingOf(t, h, 0)
			assert.False(t, approvalNow(t, h, again.ID).Taken.IsZero())
		})
	}
}

func TestAnAnswerThatWasTakenIsNotAskedAgain(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		says(ctx, x)
		return exited
	})
	s := launch(t, h, "p")
	a := pendingOf(t, h, 1)[0]
	approve(t, h, a, "")
	assert.Equal(t, domain.Failed, await(t, h, s).State)
	pendingOf(t, h, 0)
	assert.False(t, approvalNow(t, h, a.ID).Taken.IsZero())
	assert.Empty(t, notes(t, h, s.UUID))
}

// A denial permits nothing, so it need not be delivered.
func TestADenialIsNotAskedAgain(t *testing.T) {
	h := openHub(t, database(t), hears(ends(exited)))
	s := launch(t, h, "p")
	decide(t, h, approval.Decision{ID: pendingOf(t, h, 1)[0].ID, Decision: "deny", Comment: "no"})
	await(t, h, s)
	pendingOf(t, h, 0)
}

// Stopping a turn after an answer takes the answer back.
func TestAStopTakesAnAnswerBack(t *testing.T) {
	h := openHub(t, database(t), hears(hang))
	s := launch(t, h, "p")
	a := pendingOf(t, h, 1)[0]
	approve(t, h, a, "")
	inState(t, h, s, domain.Running)
	must(h.Interrupt(context.Background(), s.UUID, ""))(t)
	assert.Equal(t, domain.Interrupted, await(t, h, s).State)
	pendingOf(t, h, 0)
	said := notes(t, h, s.UUID)
	require.Len(t, said, 1)
	assert.Contains(t, said[0], "allowed, but the turn was stopped")
}

// A timeout says nothing about the answer, so it keeps it.
func TestATimeoutTakesNoAnswerBack(t *testing.T) {
	h := openHub(t, database(t), hears(hang))
	s := launch(t, h, "p")
	approve(t, h, pendingOf(t, h, 1)[0], "")
	inState(t, h, s, domain.Running)
	h.expire(s.Turn.ID)
	assert.Equal(t, domain.TimedOut, await(t, h, s).State)
	assert.NotEmpty(t, pendingOf(t, h, 1)[0].Reopened)
}

// An answer for a dead agent stays valid if the agent resumed for it dies too.
func TestAStaleAnswerOutlivesTheAgentThatWasResumedForIt(t *testing.T) {
	for name, c := range map[string]struct {
		second play
		reason string
	}{
		"that ends at once":                {ends(exited), "it never got the answer"},
		"that ends when it has the answer": {hears(ends(exited)), "it may have been carried out"},
		"that asks nothing":                {ends(completed), "continued without this question"},
	} {
		t.Run(name, func(t *testing.T) {
			h, first := afterCrash(t, turns(hears(hang), c.second, says))
			approve(t, h, first, "")
			again := pendingOf(t, h, 1)[0]
			assert.Equal(t, first.ID, again.Reopens)
			assert.Contains(t, again.Reopened, c.reason)
			approve(t, h, again, "")
			until(t, h, func() bool {
				s, err := h.query.Turn(context.Background(), "a")
				return err == nil && s.Source == domain.SourceDecision && s.State.Ended() && s.Result == "yes user_approved"
			}, "the turn that gets the answer")
			pendingOf(t, h, 0)
		})
	}
}

// An agent that learns that its call may already have run can find that it has.
func TestWhoWasAskedAgainIsNotAskedForEver(t *testing.T) {
	h := openHub(t, database(t), turns(hears(ends(exited)), ends(completed)))
	first, again := reopened(t, h, "a")
	approve(t, h, again, "")
	assert.Equal(t, domain.Completed, lastOf(t, h, "a", domain.SourceDecision).State)
	pendingOf(t, h, 0)
	said := notes(t, h, must(h.query.TurnOf(context.Background(), first.Turn))(t).UUID)
	require.Len(t, said, 2)
	assert.Contains(t, said[1], "allowed, but the agent continued without this question")
}

// An agent whose turn ended early may continue by itself. Its next question has already been
// answered.
func TestWhoWasAskedAgainIsNotAskedAThirdTime(t *testing.T) {
	h := openHub(t, database(t), turns(hears(ends(exited)), ends(completed), says))
	_, again := reopened(t, h, "a")
	approve(t, h, again, "")
	assert.Equal(t, domain.Completed, lastOf(t, h, "a", domain.SourceDecision).State)
	next := await(t, h, launchIn(t, h, "a", "continue"))
	assert.Equal(t, "yes user_approved", next.Result)
	pendingOf(t, h, 0)
}

// An agent that repeats its question in other words has asked it.
func TestAStaleAnswerIsPassedByAnotherQuestionForTheTool(t *testing.T) {
	h, first := afterCrash(t, turns(hears(hang), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "./a"})))
		return completed
	}))
	approve(t, h, first, "")
	approve(t, h, pendingOf(t, h, 1)[0], "")
	assert.Equal(t, "yes user_approved", lastOf(t, h, "a", domain.SourceDecision).Result)
	pendingOf(t, h, 0)
}

// A rule stored with an answer answers the question when it is asked again.
func TestARuleAnswersWhatItWasMadeFor(t *testing.T) {
	h, first := afterCrash(t, turns(hears(hang), says))
	approve(t, h, first, "session")
	assert.Equal(t, "yes rule=session", lastOf(t, h, "a", domain.SourceDecision).Result)
	pendingOf(t, h, 0)
	assert.False(t, approvalNow(t, h, first.ID).Carried)
}

// asksAndEnds asks to write, and its agent exits before an answer, once may is closed.
func asksAndEnds(may <-chan struct{}) play {
	return func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		go hears(hang)(ctx, x)
		<-may
		return exited
	}
}

// A question of a dead agent stays open until a client starts another turn. Its start closes the
// question, however the turn was launched and however it ends. Approving the question then runs
// nothing.
func TestAQuestionIsOvertakenByALaterTurn(t *testing.T) {
	inSession := func(source string) func(*Hub, string) (domain.TurnInSession, error) {
		return func(h *Hub, session string) (domain.TurnInSession, error) {
			return h.Launch(context.Background(), LaunchSpec{Prompt: "another turn", Source: source, SessionAlias: session})
		}
	}
	chat := func(h *Hub, _ string) (domain.TurnInSession, error) {
		return h.Launch(context.Background(), LaunchSpec{Prompt: "another turn", Source: domain.SourceChat, Chat: true})
	}
	ways := map[string]func(*Hub, string) (domain.TurnInSession, error){
		"task.submit": inSession(domain.SourceTask), "execute_prompt": inSession(domain.SourceExecute), "chat.send": chat,
		"continueSession": func(h *Hub, session string) (domain.TurnInSession, error) {
			return h.Continue(context.Background(), ContinueSpec{From: session, Prompt: "another turn", Source: domain.SourceSession})
		},
	}
	failed := catalog.ExecutePromptResult{Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "X", Message: "no"}}
	for way, goOn := range ways {
		for _, dies := range []string{"the hub", "the agent"} {
			for ending, second := range map[string]catalog.ExecutePromptResult{"completes": completed, "fails": failed} {
				t.Run(way+" after "+dies+" died, which "+ending, func(t *testing.T) {
					path, may, goes := database(t), make(chan struct{}), make(chan struct{})
					asks := asksAndEnds(may)
					if dies == "the hub" {
						asks = hears(hang)
					}
					play := turns(asks, func(context.Context, *fakeTurn) catalog.ExecutePromptResult {
						<-goes
						return second
					})
					h := openHub(t, path, play)
					var first domain.TurnInSession
					if way == "chat.send" {
						first, _ = chat(h, "")
					} else {
						first = launchIn(t, h, "a", "p")
					}
					question := pendingOf(t, h, 1)[0]
					if dies == "the hub" {
						require.NoError(t, h.Close())
						h = openHub(t, path, play)
					} else {
						close(may)
						assert.Equal(t, domain.Failed, await(t, h, first).State)
					}
					assert.True(t, pendingOf(t, h, 1)[0].Stale, "no agent has continued")
					next := must(goOn(h, first.Session.UUID))(t)
					pendingOf(t, h, 0)
					a := approvalNow(t, h, question.ID)
					assert.Equal(t, []string{domain.ApprovalCancelled, domain.DecidedByOvertaken}, []string{a.Status, a.DecidedBy}, "while it works")
					_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: question.ID, Decision: "approve"})
					assert.Equal(t, domain.KindAlreadyDecided, kindOf(t, err))
					close(goes)
					await(t, h, next)
					_, err = h.Approvals().Decide(context.Background(), approval.Decision{ID: question.ID, Decision: "approve"})
					assert.Equal(t, domain.KindAlreadyDecided, kindOf(t, err))
					assert.Equal(t, next.UUID, turnOf(t, h, first.Session.UUID).UUID, "nothing was resumed")
				})
			}
		}
	}
}

// A turn that was queued before the question does not supersede it.
func TestAQuestionIsNotOvertakenByATurnThatWaitedAlready(t *testing.T) {
	path := database(t)
	waits := make(chan struct{})
	play := turns(func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		<-waits
		return hears(hang)(ctx, x)
	}, ends(completed))
	h := openHub(t, path, play)
	launchIn(t, h, "a", "p")
	queued := launchIn(t, h, "a", "and then this")
	close(waits)
	first := pendingOf(t, h, 1)[0]
	require.True(t, first.Created.After(queued.Created))
	require.NoError(t, h.Close())
	h = openHub(t, path, play)
	assert.Equal(t, domain.Completed, await(t, h, queued).State)
	assert.Equal(t, first.ID, pendingOf(t, h, 1)[0].ID)
}

// A third-party executor does not report deliveries of answers. Its next report shows that the
// agent continued.
func TestAForeignExecutorTakesAnswersByWhatItReports(t *testing.T) {
	foreign := func(o *Options) { fakeOf(o).Agents = agents{"executor"} }
	h := openHub(t, database(t), turns(
		hears(func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult { x.say("I go on"); return exited }),
		hears(ends(completed)),
		hears(ends(exited)),
	), foreign)
	for _, open := range []int{0, 0, 1} {
		s := launch(t, h, "p")
		approve(t, h, pendingOf(t, h, 1)[0], "")
		await(t, h, s)
		pendingOf(t, h, open)
	}
}

// reopened returns a question that was approved and is open again, because its agent ended before
// it was known to have acted on the answer.
func reopened(t *testing.T, h *Hub, session string) (first, again domain.Approval) {
	t.Helper()
	s := launchIn(t, h, session, "p")
	first = pendingOf(t, h, 1)[0]
	approve(t, h, first, "")
	await(t, h, s)
	return first, pendingOf(t, h, 1)[0]
}

// If continuing a session makes the agent repeat a reopened question, the question still warns
// that the call may have run.
func TestAQuestionThatAContinuedAgentAsksMayStillHaveBeenCarriedOut(t *testing.T) {
	path := database(t)
	play := turns(hears(ends(exited)), hears(hang), hears(ends(completed)))
	h := openHub(t, path, play)
	first, again := reopened(t, h, "a")
	launchIn(t, h, "a", "go on")
	var asked domain.Approval
	until(t, h, func() bool {
		list, err := h.Approvals().Pending(context.Background(), "")
		if err != nil || len(list) != 1 {
			return false
		}
		asked = list[0]
		return asked.ID != again.ID
	}, "the next question")
	assert.Equal(t, []any{first.ID, again.Reopened, false}, []any{asked.Reopens, asked.Reopened, asked.Stale})
	assert.Contains(t, asked.Reopened, "may have been carried out")
	assert.Equal(t, asked.ID, approvalNow(t, h, first.ID).ReopenedAs)
	assert.Equal(t, domain.ApprovalCancelled, approvalNow(t, h, again.ID).Status)

	require.NoError(t, h.Close())
	h = openHub(t, path, play)
	kept := pendingOf(t, h, 1)[0]
	assert.Equal(t, []any{asked.ID, first.ID, again.Reopened}, []any{kept.ID, kept.Reopens, kept.Reopened})
}

// A turn that was already running when an answer came has not seen it, whatever else it asked.
func TestAnAnswerIsNotPassedByATurnThatWasNotToldOfIt(t *testing.T) {
	asks := func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.ask(ctx, "Write", map[string]string{"file_path": "another"})
		return completed
	}
	for name, c := range map[string]struct {
		first play
		stale bool
	}{
		"that was given once before": {hears(ends(exited)), false},
		"that was never given":       {hears(hang), true},
	} {
		t.Run(name, func(t *testing.T) {
			path, may := database(t), make(chan struct{})
			play := turns(func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
				<-may
				return c.first(ctx, x)
			}, asks, says)
			h := openHub(t, path, play)
			launchIn(t, h, "a", "p")
			at := launchIn(t, h, "a", "something else") // launched before the question, so it does not supersede it
			close(may)
			open := pendingOf(t, h, 1)[0]
			if c.stale {
				require.NoError(t, h.Close())
				h = openHub(t, path, play)
			} else {
				approve(t, h, open, "")
				until(t, h, func() bool {
					open = approvalNow(t, h, open.ID)
					return open.ReopenedAs != ""
				}, "the question that asks again")
				open = approvalNow(t, h, open.ReopenedAs)
			}
			both := pendingOf(t, h, 2)
			approve(t, h, open, "")
			for _, a := range both {
				if a.ID != open.ID {
					approve(t, h, a, "")
				}
			}
			await(t, h, at)
			again := pendingOf(t, h, 1)[0]
			assert.Equal(t, open.ID, again.Reopens)
			assert.Contains(t, again.Reopened, "continued without this question")
			approve(t, h, again, "")
			assert.Equal(t, "yes user_approved", lastOf(t, h, "a", domain.SourceDecision).Result)
			pendingOf(t, h, 0)
		})
	}
}

// A reopened question shows the agent's own input and notes that the human approved another input.
func TestAnAnswerWithAnotherInputIsSaidWhereItIsAskedAgain(t *testing.T) {
	h := openHub(t, database(t), hears(ends(exited)))
	s := launchIn(t, h, "a", "p")
	decide(t, h, approval.Decision{ID: pendingOf(t, h, 1)[0].ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"file_path":"b"}`)})
	await(t, h, s)
	again := pendingOf(t, h, 1)[0]
	assert.JSONEq(t, `{"file_path":"a"}`, string(again.Input))
	assert.Contains(t, again.Reopened, "allowed with another input before, but")
}

func TestAStaleQuestionAnswersItselfOnce(t *testing.T) {
	path := database(t)
	crash(t, path, askOnce, "a")
	var turns atomic.Int64
	h := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		turns.Add(1)
		return says(ctx, x)
	})
	events := subscribe(t, h, eventlog.Subscribing{}, -1)
	events.until(t, func() bool { return len(events.kinds()) == 1 }) // the question is announced again
	left, question := turnOf(t, h, "a"), pendingOf(t, h, 1)[0]
	assert.Equal(t, domain.Interrupted, left.State)
	assert.True(t, question.Stale)
	approve(t, h, question, "")
	s := turnOf(t, h, "a")
	assert.Equal(t, []string{domain.SourceDecision, left.HumanLayerSession}, []string{s.Source, s.ParentHumanLayerSession})
	assert.Equal(t, "yes user_approved", await(t, h, s).Result)
	assert.EqualValues(t, 1, turns.Load())
	s = launchIn(t, h, "a", "again")
	again := pendingOf(t, h, 1)[0]
	assert.False(t, again.Stale, "the second time it is asked")
	approve(t, h, again, "")
	await(t, h, s)
}

func TestAStaleAnswerIsForItsOwnQuestionAlone(t *testing.T) {
	h, asked := afterCrash(t, turns(askOnce, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "/etc/passwd"})))
		return completed
	}))
	approve(t, h, asked, "")
	now := pendingOf(t, h, 1)[0]
	assert.False(t, now.Stale)
	assert.JSONEq(t, `{"file_path":"/etc/passwd"}`, string(now.Input))
}

func TestADeniedStaleQuestionIsOnlyClosed(t *testing.T) {
	path := database(t)
	crash(t, path, askOnce, "a", "b")
	var turns atomic.Int64
	h := openHub(t, path, func(context.Context, *fakeTurn) catalog.ExecutePromptResult { turns.Add(1); return completed })
	pending := pendingOf(t, h, 2)
	for _, a := range pending {
		assert.True(t, a.Stale)
	}
	decide(t, h, approval.Decision{ID: pending[0].ID, Decision: "deny", Comment: "no"})
	left := pendingOf(t, h, 1)
	assert.Equal(t, pending[1].ID, left[0].ID)
	assert.Len(t, must(h.query.Turns(context.Background(), domain.TurnFilter{}))(t), 2, "nothing was resumed")
	approve(t, h, left[0], "")
	asked, err := h.query.TurnOf(context.Background(), left[0].Turn) // either of the two may have asked first
	require.NoError(t, err)
	await(t, h, turnOf(t, h, asked.Session.UUID))
	assert.EqualValues(t, 1, turns.Load())
}

func TestSeveralStaleQuestionsOfOneTurn(t *testing.T) {
	path := database(t)
	both := func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		var said [2]string
		var all sync.WaitGroup
		for i := range said {
			all.Go(func() {
				r, err := x.request(ctx, catalog.RequestPermissionParams{
					SessionToken: x.p.SessionToken, ToolName: "Write", ToolInput: encode(map[string]int{"n": i}), ToolUseID: fmt.Sprint(x.p.TaskID, i),
				})
				if err == nil {
					said[i] = verdictText(r)
				}
			})
		}
		all.Wait()
		x.say(strings.Join(said[:], ", "))
		return completed
	}
	h := openHub(t, path, both)
	launchIn(t, h, "a", "p")
	pendingOf(t, h, 2)
	require.NoError(t, h.Close())

	h = openHub(t, path, both, func(o *Options) { o.Limits.MaxTurns = 1 })
	approve(t, h, pendingOf(t, h, 2)[0], "") // the agent may then repeat the second question at any time
	s := turnOf(t, h, "a")
	until(t, h, func() bool {
		pending, _ := h.Approvals().Pending(context.Background(), "")
		for _, a := range pending {
			_, _ = h.Approvals().Decide(context.Background(), approval.Decision{ID: a.ID, Decision: "approve"})
		}
		now, err := h.query.Turn(context.Background(), s.UUID)
		return err == nil && now.State == domain.Completed
	}, "its end, when all is answered")
	list := must(h.query.Turns(context.Background(), domain.TurnFilter{}))(t)
	assert.Len(t, list, 2, "it was resumed once")
	assert.Equal(t, "yes user_approved, yes user_approved", list[0].Result)
}
