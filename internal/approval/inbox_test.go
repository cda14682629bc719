package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Questions and answers of one session read nothing from others.
func TestWhatWaitsElsewhereIsNotRead(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	var costs []map[string]int
	for _, elsewhere := range []int{0, 20} {
		for n := range elsewhere {
			other := h.turn(t, domain.Running)
			must(h.Create(ctx, Spec{Turn: other.UUID, Tool: "Write", Input: json.RawMessage(fmt.Sprintf(`{"file_path":"%d"}`, n))}))(t)
			if n%2 == 1 {
				require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.KeepQuestions(tx, other) }))
			}
		}
		costs = append(costs, h.reads(func() {
			turn := h.turn(t, domain.Running)
			h.ask(t, turn, write("kept"))
			require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.KeepQuestions(tx, turn) }))
			asked, _ := h.ask(t, h.runIn(t, turn.Session, domain.Running), write("other"))
			must(h.Decide(ctx, Decision{ID: asked.ID, Decision: Approve, Scope: domain.ScopeSession}))(t)
			require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.Reconsider(tx, turn.Session) }))
			next := h.runIn(t, turn.Session, domain.Completed)
			require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.SettleAnswers(tx, next, false) }))
		}))
	}
	assert.Equal(t, costs[0], costs[1])
	assert.NotEmpty(t, costs[0])
}

func TestADecisionReadsItsQuestionOnce(t *testing.T) {
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	asked, answered := h.ask(t, turn, write("a"))
	reads := h.reads(func() {
		must(h.Decide(context.Background(), Decision{ID: asked.ID, Decision: Approve}))(t)
	})
	assert.Equal(t, map[string]int{"Approval": 1}, reads)
	assert.True(t, (<-answered).Approved)
}

// A client that answers too late gets the existing decision, whatever it answered.
func TestWhoIsTooLateIsToldHowItWasDecided(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	asked, _ := h.ask(t, turn, write("a"))
	must(h.Decide(ctx, Decision{ID: asked.ID[:8], Decision: Deny, Comment: "no"}))(t, "the beginning of an id that people are shown is enough")
	for _, d := range []Decision{
		{Decision: Approve},
		{Decision: Respond, Comment: "x"},
		{Decision: Approve, Option: "x", Scope: "world", Type: domain.HumanContact},
	} {
		d.ID = asked.ID
		if d.Type != "" {
			d.Decision, d.Comment = Respond, "x"
		}
		a, err := h.Decide(ctx, d)
		var refused *domain.Error
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, domain.KindAlreadyDecided, refused.Kind)
		assert.Equal(t, domain.ApprovalDenied, a.Status)
		assert.Equal(t, asked.ID, a.ID)
	}
}

// A new rule answers open questions, except stale ones: a person answers those, or the agent asks
// again.
func TestANewRuleAnswersWhatWaits(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	first, second := h.turn(t, domain.Running), h.turn(t, domain.Running)
	_, answered := h.ask(t, first, write("a"))
	stale, _ := h.ask(t, second, write("b"))
	require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.KeepQuestions(tx, second) }))
	contact := must(h.Create(ctx, Spec{Turn: first.UUID, Type: domain.HumanContact, Title: "Which?"}))(t)
	h.setRules(config.Rule{Effect: config.EffectDeny, Tool: "*", Source: "user"})
	require.NoError(t, h.ReconsiderAll(ctx))
	assert.Equal(t, catalog.RequestPermissionResult{Reason: "rule=user"}, <-answered)
	assert.Equal(t, []string{contact.ID}, h.pending(t, first))
	assert.Equal(t, []string{stale.ID}, h.pending(t, second))
}

// An answer resumes a dead agent, which gets it when it asks again.
func TestAnAnswerIsCarriedToWhoAsksAgain(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	asked, _ := h.ask(t, turn, write("a"))
	require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.KeepQuestions(tx, turn) }))
	must(h.Decide(ctx, Decision{ID: asked.ID, Decision: Approve}))(t)
	require.Len(t, h.resumed, 1)
	assert.Equal(t, "Continue where you left off. Before you were interrupted, you asked for permission to run Write (Write a), and the user has granted it."+
		` Its input was: {"file_path":"a"}. Ask the same question again to receive the answer.`+"\n\nThe request was:\n\nthe request", h.resumed[0])

	again := h.runIn(t, turn.Session, domain.Running)
	soon, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	result := must(h.Ask(soon, again.ID, write("a")))(t, "no user is asked again")
	assert.Equal(t, catalog.RequestPermissionResult{Approved: true, Reason: "user_approved", ApprovalID: asked.ID}, result)
	require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.Taken(tx, again.ID, []string{asked.ID}) }))
	assert.False(t, must(h.Inbox.Find(ctx, asked.ID))(t).Taken.IsZero())
}

// Approvals from before the project's directory was replaced do not count until confirmed; denials
// do.
func TestOldAnswersDoNotCount(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	var since time.Time
	h.Inbox.since = func() time.Time { return since }
	turn := h.turn(t, domain.Running)
	asked, _ := h.ask(t, turn, write("a"))
	require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.KeepQuestions(tx, turn) }))
	must(h.Decide(ctx, Decision{ID: asked.ID, Decision: Approve}))(t)
	allow, deny := domain.Rule{Effect: "allow", Tool: "Read"}, domain.Rule{Effect: config.EffectDeny, Tool: "Bash"}
	require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return errors.Join(tx.PutRule(allow), tx.PutRule(deny)) }))
	rules := func() (effects []string) {
		require.NoError(t, h.Write(ctx, func(tx store.Tx) error {
			list, err := h.standingRules(tx, turn.Session)
			for _, r := range list {
				effects = append(effects, r.Effect)
			}
			return err
		}))
		assert.Len(t, must(h.Rules(ctx))(t), len(effects), "a client sees those that count")
		return effects
	}
	assert.Equal(t, []string{"allow", "deny"}, rules())

	since = time.Now()
	assert.Equal(t, []string{"deny"}, rules())
	again := h.runIn(t, turn.Session, domain.Running)
	soon, cancel := context.WithCancel(ctx)
	asking := make(chan error, 1)
	go func() { asking <- errorOf(h.Ask(soon, again.ID, write("a"))) }()
	h.written.Await(t, func() bool { return len(h.pending(t, again)) == 1 }, "the question is asked again")
	cancel()
	<-asking
	require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return tx.PutRule(allow) }))
	assert.Equal(t, []string{"allow", "deny"}, rules(), "a rule that is made again counts")
}

// A question that its agent no longer waits for is closed, unless its turn ends too.
func TestAQuestionOfAnAgentThatAsksNoMoreIsClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	done := make(chan error, 1)
	go func() { done <- errorOf(h.Ask(ctx, turn.ID, write("a"))) }()
	var ids []string
	h.written.Await(t, func() bool { ids = h.pending(t, turn); return len(ids) == 1 }, "the question")
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	a := must(h.Inbox.Find(context.Background(), ids[0]))(t)
	assert.Equal(t, []string{domain.ApprovalCancelled, domain.DecidedByEnd}, []string{a.Status, a.DecidedBy})
	assert.Equal(t, domain.Running, must(h.store.Turn(context.Background(), turn.ID))(t).State, "its turn goes on")
	assert.Empty(t, h.waiting)
}

// An agent that ends while its question is being stored leaves it open, like one that ends later.
func TestAQuestionStaysWhoseAgentEndsAsItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := newHarness(t)
		h.gone = make(chan struct{})
		turn := h.turn(t, domain.Running)
		h.kept = func() {
			cancel()
			time.Sleep(time.Millisecond) // the asking call returns first
		}
		done := make(chan error, 1)
		go func() { done <- errorOf(h.Ask(ctx, turn.ID, write("a"))) }()
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, h.store.Write(t.Context(), func(tx store.Tx) error { return h.KeepQuestions(tx, turn) }))
		close(h.gone)
		require.ErrorIs(t, <-done, context.Canceled)
		assert.Len(t, h.pending(t, turn), 1)
		assert.Empty(t, h.waiting)
	})
}

// A rule for all tools answers no client's question to a person.
func TestNoRuleAnswersAQuestionToAPerson(t *testing.T) {
	h := newHarness(t)
	h.setRules(config.Rule{Effect: config.EffectDeny, Tool: "*", Source: "user"})
	a := must(h.Create(t.Context(), Spec{Turn: h.turn(t, domain.Running).UUID, Type: domain.HumanContact, Title: "Which?"}))(t)
	assert.Equal(t, domain.ApprovalPending, a.Status)
}

// A question without a tool call of the agent is asked again under its own id.
func TestAQuestionIsAskedAgainUnderItsCall(t *testing.T) {
	h := newHarness(t)
	for _, call := range []string{"", "call"} {
		turn := h.turn(t, domain.Running)
		p := write("a")
		p.ToolUseID = call
		asked := approvalOf(p)
		asked.Turn, asked.AwaitedBy = turn.ID, turn.ID
		require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return errorOf(h.answerOrAsk(tx, &asked, make(chan resolution, 1))) }))
		h.answer(t, asked, Decision{Decision: Approve})
		turn = h.end(t, turn, domain.Failed)
		require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return h.SettleAnswers(tx, turn, false) }))
		list := must(h.Pending(t.Context(), turn.UUID))(t)
		require.Len(t, list, 1)
		assert.Equal(t, []any{asked.ID, call == ""}, []any{list[0].Reopens, list[0].CallID == list[0].ID})
	}
}

// An executor's report that an action at an address is complete is noted if its turn asked for it.
func TestWhatIsDoneIsNoted(t *testing.T) {
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	tool, _ := h.ask(t, turn, write("a"))
	url := catalog.RequestPermissionParams{Title: "Sign in", ToolUseID: "url", Elicitation: &catalog.Elicitation{Mode: domain.ElicitURL, URL: "https://example.com"}}
	other, _ := h.ask(t, h.turn(t, domain.Running), url)
	asked, _ := h.ask(t, turn, url)
	assert.Equal(t, url.Elicitation.URL, asked.Elicitation.URL)
	for _, c := range []struct {
		id   string
		want []string
	}{{"x", nil}, {tool.ID, nil}, {other.ID, nil}, {asked.ID, []string{"Sign in — the agent says that this is done"}}} {
		require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return h.Done(tx, turn, c.id) }))
		assert.Equal(t, c.want, h.notes)
	}
	assert.Equal(t, []string{"the agent says that this is done"}, h.deliveries)
}

// The question of a client that stopped waiting is closed with its turn, or stays open if the client
// may ask again.
func TestAClientTakesItsQuestionBack(t *testing.T) {
	for _, c := range []struct {
		source string
		keep   bool
		ended  []bool
		status string
	}{
		{"", false, nil, domain.ApprovalCancelled},
		{"", true, nil, domain.ApprovalCancelled},
		{domain.SourceQuestion, false, []bool{false}, domain.ApprovalPending},
		{domain.SourceQuestion, true, []bool{true}, domain.ApprovalPending},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		h := newHarness(t)
		turn := h.turn(t, domain.Running)
		turn.Source = c.source
		h.place = Place{Session: domain.Session{ID: turn.Session, CWD: "/p"}, Turn: turn}
		done := make(chan error, 1)
		go func() {
			_, err := h.Consult(ctx, Inquiry{Spec: Spec{Type: domain.HumanContact, Title: "Which?"}, Keep: func() bool { return c.keep }})
			done <- err
		}()
		var ids []string
		h.written.Await(t, func() bool { ids = h.pending(t, turn); return len(ids) == 1 }, "the question")
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		a := must(h.Inbox.Find(t.Context(), ids[0]))(t)
		assert.Equal(t, []any{c.status, c.keep && c.source != "", c.ended}, []any{a.Status, a.Stale, h.ended})
		assert.Empty(t, h.waiting)
	}
}

// A tool's input may have either of two names.
func TestAToolHasOneInput(t *testing.T) {
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	h.setRules(config.Rule{Effect: config.EffectAllow, Tool: "Write", Path: "/p/a", Source: "user"})
	a, b := json.RawMessage(`{"file_path":"/p/a"}`), json.RawMessage(`{"file_path":"/p/b"}`)
	for _, inputs := range [][2]json.RawMessage{{a, nil}, {nil, a}, {a, json.RawMessage(`{ "file_path":"/p/a"}`)}} {
		r := must(h.Ask(t.Context(), turn.ID, catalog.RequestPermissionParams{ToolName: "Write", ToolInput: inputs[0], ToolParams: inputs[1]}))(t)
		assert.True(t, r.Approved)
	}
	_, err := h.Ask(t.Context(), turn.ID, catalog.RequestPermissionParams{ToolName: "Write", ToolInput: a, ToolParams: b})
	assert.Contains(t, problemOf(t, err), "tool_params")
	_, err = h.Ask(t.Context(), turn.ID, catalog.RequestPermissionParams{ToolName: " "})
	assert.Contains(t, problemOf(t, err), "tool_name")
	assert.Contains(t, problemOf(t, errorOf(h.Create(t.Context(), Spec{Turn: turn.UUID}))), "tool_name")
}

// A question asked again repeats its earlier warning, even after the session has passed it.
// Its answer makes the agent look first.
func TestAQuestionThatIsAskedAgainSaysSo(t *testing.T) {
	h := newHarness(t)
	turn := h.reopened(t)
	first := must(h.Pending(t.Context(), turn.UUID))(t)
	next := h.runIn(t, turn.Session, domain.Running)
	require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return h.CloseOvertaken(tx, next) }))
	again, answered := h.ask(t, next, write("a"))
	assert.Equal(t, []string{first[0].Reopens, first[0].Reopened}, []string{again.Reopens, again.Reopened})
	assert.Contains(t, again.Reopened, "it may have been carried out")
	h.answer(t, again, Decision{Decision: Approve})
	<-answered
	third := h.runIn(t, turn.Session, domain.Running)
	asked, _ := h.ask(t, third, write("a"))
	assert.Empty(t, asked.Reopens, "it was answered since")

	next = h.end(t, next, domain.Failed)
	require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return h.SettleAnswers(tx, next, false) }))
	last := must(h.Pending(t.Context(), next.UUID))(t)
	require.Len(t, last, 1)
	h.answer(t, last[0], Decision{Decision: Approve})
	require.Len(t, h.resumed, 1)
	assert.Contains(t, h.resumed[0], "You were asked to continue once before")
}

// An agent whose turn has ended or is being interrupted cannot ask.
func TestATurnThatEndsAsksNothing(t *testing.T) {
	h := newHarness(t)
	h.setRules(config.Rule{Effect: config.EffectAllow, Tool: "*", Source: "user"})
	for state, asks := range map[domain.State]bool{
		domain.Running: true, domain.WaitingInput: true, domain.Interrupting: false, domain.Completed: false, domain.Failed: false, domain.Queued: false,
	} {
		turn := h.turn(t, state)
		p := write("a")
		p.Unasked = []string{"Write"}
		for _, ask := range []func(context.Context, int64, catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error){h.Ask, h.CheckUnasked} {
			r := must(ask(t.Context(), turn.ID, p))(t)
			assert.Equal(t, []bool{asks, !asks}, []bool{r.Approved, r.Cancelled}, state)
		}
		_, err := h.Create(t.Context(), Spec{Turn: turn.UUID, Tool: "Write"})
		if asks || state == domain.Queued {
			require.NoError(t, err)
			continue
		}
		var refused *domain.Error
		require.ErrorAs(t, err, &refused, state)
		assert.Equal(t, domain.KindBadState, refused.Kind)
	}
}

// A question that the client's user has confirmed asks no person, but a rule may still deny it.
func TestWhatIsConfirmedIsNotAsked(t *testing.T) {
	h := newHarness(t)
	q := Inquiry{Spec: Spec{Type: domain.FunctionCall, Tool: "Write", Input: json.RawMessage(`{"file_path":"/p/a"}`)}, Confirmed: true}
	for _, inTurn := range []bool{false, true} {
		h.place, h.notes = Place{Session: domain.Session{CWD: "/p"}}, nil
		if inTurn {
			h.place.Turn = h.turn(t, domain.Running)
			h.place.Session.ID = h.place.Turn.Session
		}
		h.setRules()
		a := must(h.Consult(t.Context(), q))(t)
		assert.Equal(t, []string{domain.ApprovalApproved, domain.DecidedByUser}, []string{a.Status, a.DecidedBy})
		h.setRules(config.Rule{Effect: config.EffectDeny, Tool: "Write", Source: "user"})
		_, err := h.Consult(t.Context(), q)
		var refused *domain.Error
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, []any{domain.KindPermissionDenied, "rule=user"}, []any{refused.Kind, refused.Reason})
		assert.Equal(t, inTurn, len(h.notes) == 1, "the transcript of the turn says so")
	}
}

// The resume prompt repeats an input that is not too long.
func TestAResumePromptRepeatsTheInput(t *testing.T) {
	for n, repeats := range map[int]bool{0: false, 1: true, maxPromptInput - 1: true, maxPromptInput: false} {
		a := domain.Approval{Type: domain.FunctionCall, Tool: "Write", Input: json.RawMessage(strings.Repeat("7", n))}
		assert.Equal(t, repeats, strings.Contains(resumePrompt(a, "x"), "Its input was: 7"), n)
	}
}

// The resume prompt has the agent's description of a tool call without an input, as Kimi Code sends
// in its own turns.
func TestAResumePromptHasTheDescriptionWithoutAnInput(t *testing.T) {
	a := domain.Approval{Type: domain.FunctionCall, Tool: "Bash", Details: "Running: touch made"}
	assert.Contains(t, resumePrompt(a, "x"), `You described it as "Running: touch made". Ask the same question again`)
	a.Input = json.RawMessage(`{"command":"touch made"}`)
	assert.NotContains(t, resumePrompt(a, "x"), "described")
}

// A tool call made without asking is judged under each name of its tool.
func TestWhatWasNotAskedIsJudged(t *testing.T) {
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	h.setRules(config.Rule{Effect: config.EffectDeny, Tool: "Edit", Source: "user"}, config.Rule{Effect: config.EffectDeny, Tool: "Write", Path: "*.key", Source: "project"})
	for _, c := range []struct {
		file  string
		names []string
		want  catalog.RequestPermissionResult
	}{
		{"/p/a", []string{"Edit"}, catalog.RequestPermissionResult{Reason: "rule=user"}},
		{"/p/a", []string{"Edit", "Write"}, catalog.RequestPermissionResult{Approved: true}},
		{"/p/a.key", []string{"Edit", "Write"}, catalog.RequestPermissionResult{Reason: "rule=project"}},
	} {
		p := write(c.file)
		p.Unasked = c.names
		assert.Equal(t, c.want, must(h.CheckUnasked(t.Context(), turn.ID, p))(t), "%v", c)
	}
	assert.Len(t, h.refused, 2)
}

// If the agent changes a tool call, it is asked again: the earlier question is closed and takes no
// answer.
func TestAChangedQuestionReplacesTheEarlierOne(t *testing.T) {
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	p := write("a")
	p.QuestionID = "1"
	first, cancelled := h.ask(t, turn, p)
	another := write("b")
	another.QuestionID = "2"
	other, _ := h.ask(t, turn, another)

	changed := p
	changed.Revision, changed.ToolInput = 1, json.RawMessage(`{"file_path":"/etc/passwd"}`)
	changed.ToolUseID = "a2" // lets the harness find it
	second, answered := h.ask(t, turn, changed)
	assert.Equal(t, catalog.RequestPermissionResult{Cancelled: true, Reason: "cancelled"}, <-cancelled)
	assert.Equal(t, []string{other.ID, second.ID}, h.pending(t, turn))
	closed, err := h.Decide(t.Context(), Decision{ID: first.ID, Decision: Approve})
	require.ErrorContains(t, err, "the agent changed the tool call")
	assert.Equal(t, "changed", closed.DecidedBy)

	late := must(h.Ask(t.Context(), turn.ID, p))(t)
	assert.True(t, late.Cancelled, "a request that was overtaken on its way asks nothing")
	assert.Equal(t, []string{other.ID, second.ID}, h.pending(t, turn))

	// The hub delivers no approval of an earlier revision of the tool call.
	h.answer(t, second, Decision{Decision: Approve})
	assert.True(t, (<-answered).Approved)
	changed.Revision, changed.ToolUseID = 2, "a3"
	third, _ := h.ask(t, turn, changed)
	assert.Equal(t, second.ID, third.Reopens)
	assert.Equal(t, "allowed before, but the agent had changed the tool call by then", third.Reopened)
	h.setRules(config.Rule{Effect: config.EffectAllow, Tool: "Write", Source: "user"})
	h.answer(t, third, Decision{Decision: Approve})
	changed.Revision = 3
	assert.Equal(t, "rule=user", must(h.Ask(t.Context(), turn.ID, changed))(t).Reason)

	turn = h.end(t, turn, domain.Failed)
	require.NoError(t, h.Write(t.Context(), func(tx store.Tx) error { return h.SettleAnswers(tx, turn, false) }))
	assert.Equal(t, []string{other.ID}, h.pending(t, turn), "no answer is left that its agent may have acted on")
}
