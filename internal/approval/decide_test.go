package approval

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// aPlan returns an agent's request to leave plan mode.
func aPlan() catalog.RequestPermissionParams {
	return catalog.RequestPermissionParams{
		ToolName: "ExitPlanMode", ToolKind: "switch_mode", Title: "Ready to code?", ToolUseID: "plan", Plan: "1. write it\n2. test it", InputFixed: true,
		Options: []catalog.PermissionOption{
			{OptionID: "auto", Name: "Yes, and auto-accept edits", Kind: "allow_always"},
			{OptionID: "default", Name: "Yes, and manually approve edits", Kind: "allow_once"},
			{OptionID: "plan", Name: "No, keep planning", Kind: "reject_once"},
		},
	}
}

// problemOf returns the invalid parameter of a decision's error.
func problemOf(t *testing.T, err error) string {
	t.Helper()
	var refused *domain.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, domain.KindInvalid, refused.Kind)
	return refused.Error()
}

// Approving a plan creates no rule, and each of the agent's options can be chosen.
func TestAPlanIsAgreedToForItself(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	asked, answered := h.ask(t, turn, aPlan())
	assert.Equal(t, "1. write it\n2. test it", asked.Plan)
	assert.Nil(t, Requested(asked, Directories{Root: "/p", CWD: "/p"}).Rule)
	for _, scope := range domain.RuleScopes() {
		for _, decision := range []string{Approve, Deny} {
			_, err := h.Decide(ctx, Decision{ID: asked.ID, Decision: decision, Comment: "x", Scope: scope})
			assert.Contains(t, problemOf(t, err), "scope")
		}
	}
	must(h.Decide(ctx, Decision{ID: asked.ID, Decision: Approve, Option: "auto"}))(t)
	assert.Equal(t, "auto", (<-answered).OptionID)
	assert.Empty(t, must(h.Rules(ctx))(t))
}

func TestARuleHoldsForThePatternThatIsGiven(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	asked, _ := h.ask(t, turn, write("/p/src/a"))
	assert.Equal(t, domain.RulePreview{Tool: "Write", Covers: domain.CoversFiles, Pattern: "/p/**"}, *Requested(asked, Directories{Root: "/p", CWD: "/p"}).Rule)
	for _, d := range []Decision{
		{Decision: Approve, Pattern: "/p/*"}, // no rule is created
		{Decision: Approve, Scope: domain.ScopeSession, Pattern: "/p/other/*"},
		{Decision: Approve, Scope: domain.ScopeProject, Pattern: "["},
	} {
		d.ID = asked.ID
		assert.Contains(t, problemOf(t, errorOf(h.Decide(ctx, d))), "pattern")
	}
	must(h.Decide(ctx, Decision{ID: asked.ID, Decision: Approve, Scope: domain.ScopeSession, Pattern: "/p/**"}))(t)
	rules := must(h.Rules(ctx))(t)
	require.Len(t, rules, 1)
	assert.Equal(t, "/p/**", rules[0].Path)
	assert.Equal(t, []any{domain.ScopeSession, turn.Session}, []any{rules[0].Scope(), rules[0].Session.ID})
	assert.Equal(t, "rule=session", must(h.Ask(ctx, turn.ID, write("/p/b/c")))(t).Reason)
	h.ask(t, turn, write("/q/b"))
}

// A comment that a decision cannot carry becomes the next prompt, if requested.
func TestACommentReachesTheAgent(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	for i, c := range []struct {
		fixed, tell bool
		decision    string
		want        string
	}{
		{true, true, Deny, "You asked for permission (Write f) and I did not give it: use a branch"},
		{true, true, Approve, "You asked for permission (Write f) and I gave it: use a branch"},
		{true, false, Deny, ""},
		{false, true, Deny, ""}, // the decision carries it
	} {
		p := write("f")
		p.ToolUseID, p.InputFixed = p.ToolUseID+string(rune('a'+i)), c.fixed
		asked, answered := h.ask(t, turn, p)
		h.reported = nil
		a := must(h.Decide(ctx, Decision{ID: asked.ID, Decision: c.decision, Comment: "use a branch", Tell: c.tell}))(t)
		assert.Equal(t, "use a branch", (<-answered).Comment)
		if c.want == "" {
			assert.Empty(t, h.reported)
			assert.Nil(t, a.Next)
			continue
		}
		assert.Equal(t, []string{c.want}, h.reported)
		assert.EqualValues(t, 1, a.Next.Task)
	}
	asked, _ := h.ask(t, turn, write("g"))
	_, err := h.Decide(ctx, Decision{ID: asked.ID, Decision: Approve, Tell: true})
	assert.Contains(t, problemOf(t, err), "comment", "nothing to tell")
}

// A session shows each denied tool call, who denied it and why.
func TestWhatIsRefusedIsExplained(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	h.setRules(config.Rule{Effect: config.EffectDeny, Tool: "Write", Path: "*.key", Source: "project", File: ".duet.toml", Line: 3})
	result := must(h.Ask(ctx, turn.ID, write("/p/my.key")))(t)
	assert.Equal(t, catalog.RequestPermissionResult{Reason: "rule=project"}, result)
	const why = `.duet.toml, line 3: deny tool "Write", path "*.key"`
	assert.Equal(t, []string{"/p/my.key: rule=project: " + why}, h.refused)
	assert.Equal(t, []string{"Write /p/my.key — denied by rule=project (" + why + ")"}, h.notes)

	asked, answered := h.ask(t, turn, write("/p/a"))
	must(h.Decide(ctx, Decision{ID: asked.ID, Decision: Deny, Comment: "not now"}))(t)
	<-answered
	assert.Equal(t, "/p/a: user: not now", h.refused[1])
	assert.Empty(t, must(h.Inbox.Find(ctx, asked.ID))(t).Explanation)
}

// If a user allows a call and then continues with another turn, the answer is dropped: the user is
// not asked again, and the call does not run later.
func TestAnAnswerIsGivenUpWhenTheSessionGoesOnAfterIt(t *testing.T) {
	ctx := context.Background()
	answeredStale := func(t *testing.T) (*harness, domain.Turn, domain.Approval) {
		h := newHarness(t)
		turn := h.turn(t, domain.Running)
		asked, _ := h.ask(t, turn, write("a"))
		require.NoError(t, h.Write(ctx, func(tx store.Tx) error {
			turn.State = domain.Interrupted
			return errors.Join(h.KeepQuestions(tx, turn), tx.UpdateTurn(turn))
		}))
		must(h.Decide(ctx, Decision{ID: asked.ID, Decision: Approve}))(t)
		return h, turn, asked
	}
	t.Run("a later turn has ended", func(t *testing.T) {
		h, turn, asked := answeredStale(t)
		later := h.runIn(t, turn.Session, domain.Completed)
		require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.SettleAnswers(tx, later, false) }))
		assert.Empty(t, h.pending(t, turn))
		assert.Contains(t, h.notes[len(h.notes)-1], "continued without this question")
		assert.False(t, must(h.Inbox.Find(ctx, asked.ID))(t).Carried)
	})
	t.Run("the turn that it began is stopped, and another one waits", func(t *testing.T) {
		h, turn, _ := answeredStale(t)
		resumed := h.runIn(t, turn.Session, domain.Cancelled)
		resumed.Source = domain.SourceDecision
		later := h.runIn(t, turn.Session, domain.Running)
		require.NoError(t, h.Write(ctx, func(tx store.Tx) error { return h.SettleAnswers(tx, resumed, true) }))
		asked, _ := h.ask(t, later, write("a"))
		assert.Equal(t, domain.ApprovalPending, asked.Status, "it is asked")
	})
}

// A decision that does not fit its question is refused with the invalid parameter, and the question
// stays open.
func TestADecisionFitsItsQuestion(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	create := func(spec Spec) domain.Approval {
		spec.Turn = turn.UUID
		return must(h.Create(ctx, spec))(t)
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tool := create(Spec{Tool: "Write", Input: raw(`{"file_path":"a"}`)})
	p := write("b")
	p.InputFixed = true
	fixed, _ := h.ask(t, turn, p)
	plain := create(Spec{Type: domain.HumanContact, Title: "Which?"})
	choice := create(Spec{Type: domain.HumanContact, Title: "Which?", Options: []domain.Option{{ID: "l", Name: "left", Kind: "allow_once"}, {ID: "n", Name: "none", Kind: "reject_once"}}})
	kinds := func(call string) domain.Approval {
		p := write("c")
		p.ToolUseID, p.Options = call, []catalog.PermissionOption{{OptionID: "any", Name: "Any"}, {OptionID: "yes", Name: "Yes", Kind: "allow_once"}, {OptionID: "no", Name: "No", Kind: "reject_once"}}
		a, _ := h.ask(t, turn, p)
		return a
	}
	one, two, three := kinds("1"), kinds("2"), kinds("3")
	unallowed := create(Spec{Tool: "Write", Options: []domain.Option{{ID: "n", Name: "No", Kind: domain.RejectOnce}}})
	url := create(Spec{Type: domain.HumanContact, Title: "Sign in", Elicitation: domain.Elicitation{Mode: domain.ElicitURL, URL: "https://example.com"}})
	form := create(Spec{Type: domain.HumanContact, Title: "How many?", Elicitation: domain.Elicitation{
		Mode: domain.ElicitForm, Schema: raw(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}})
	for _, c := range []struct {
		of    domain.Approval
		d     Decision
		wrong string // invalid parameter; "": accepted
	}{
		{tool, Decision{}, "decision"},
		{tool, Decision{Decision: "maybe"}, "decision"},
		{tool, Decision{Decision: Cancel}, "decision"},
		{tool, Decision{Decision: Respond, Comment: "x"}, "decision"},
		{tool, Decision{Decision: Respond, Comment: "x", Type: domain.HumanContact}, "type"},
		{tool, Decision{Decision: Respond, Comment: "x", Type: domain.FunctionCall}, "decision"},
		{tool, Decision{Decision: Approve, Type: domain.HumanContact}, "decision"},
		{tool, Decision{Decision: Deny, Comment: " "}, "comment"},
		{tool, Decision{Decision: Approve, Content: raw(`{}`)}, "content"},
		{tool, Decision{Decision: Approve, UpdatedInput: raw(`7`)}, "updated_input"},
		{tool, Decision{Decision: Approve, UpdatedInput: raw(`[1]`)}, "updated_input"},
		{tool, Decision{Decision: Approve, UpdatedInput: raw(`{"command":"a","Command":"b"}`)}, "updated_input"},
		{tool, Decision{Decision: Approve, Option: "x"}, "option"},
		{tool, Decision{Decision: Approve, Scope: "world"}, "scope"},
		{tool, Decision{Decision: Approve, Type: domain.FunctionCall, UpdatedInput: raw(`{"file_path":"c"}`)}, ""},
		{fixed, Decision{Decision: Approve, UpdatedInput: raw(`{"file_path":"c"}`)}, "updated_input"},
		{fixed, Decision{Decision: Approve, UpdatedInput: raw(`{ "file_path":"b"}`)}, ""},
		{unallowed, Decision{Decision: Approve}, "decision"},
		{unallowed, Decision{Decision: Deny, Comment: "x"}, ""},
		{one, Decision{Decision: Approve, Option: "no"}, "option"},
		{one, Decision{Decision: Approve, Option: "maybe"}, "option"},
		{one, Decision{Decision: Deny, Option: "yes", Comment: "x"}, "option"},
		{one, Decision{Decision: Approve, Option: "any"}, ""},
		{two, Decision{Decision: Deny, Option: "Any", Comment: "x"}, ""},
		{three, Decision{Decision: Deny, Option: "no", Comment: "x"}, ""},
		{plain, Decision{Comment: "x"}, "decision"},
		{plain, Decision{Decision: Approve}, "decision"},
		{plain, Decision{Decision: Approve, Option: "x"}, "decision"},
		{plain, Decision{Decision: Cancel}, "decision"},
		{plain, Decision{Decision: Deny, Comment: "x"}, "decision"},
		{plain, Decision{Decision: Respond}, "comment"},
		{plain, Decision{Decision: Respond, Comment: "x", Type: domain.FunctionCall}, "decision"},
		{plain, Decision{Decision: Respond, Comment: "x", Type: domain.HumanContact}, ""},
		{choice, Decision{Decision: Respond, Option: "middle"}, "option"},
		{choice, Decision{Decision: Deny, Option: "l", Comment: "x"}, "option"},
		{choice, Decision{Decision: Respond, Option: "LEFT"}, ""},
		{url, Decision{Decision: Approve}, "decision"},
		{url, Decision{Decision: Respond, Option: "x"}, "option"},
		{url, Decision{Decision: Respond, Comment: "x", UpdatedInput: raw(`{}`)}, "updated_input"},
		{url, Decision{Decision: Respond, Comment: "x", Scope: domain.ScopeSession}, "scope"},
		{url, Decision{Decision: Respond, Comment: "x", Content: raw(`{"a":1}`)}, "content"},
		{url, Decision{Decision: Respond, Scope: domain.ScopeOnce, Content: raw(`{}`)}, ""},
		{form, Decision{Decision: Respond, Comment: "many"}, "content.n"},
		{form, Decision{Decision: Respond, Content: raw(`{"n":"x"}`)}, "content.n"},
		{form, Decision{Decision: Respond, Content: raw(`{"n":3,"n":4}`)}, "content.n"},
		{form, Decision{Decision: Respond, Comment: "3"}, ""},
	} {
		c.d.ID = c.of.ID
		_, err := h.Decide(ctx, c.d)
		if c.wrong == "" {
			assert.NoError(t, err, "%+v", c.d)
			continue
		}
		var refused *domain.Error
		if assert.ErrorAs(t, err, &refused, "%+v", c.d) {
			assert.Equal(t, []any{domain.KindInvalid, c.wrong}, []any{refused.Kind, refused.Param}, "%+v", c.d)
		}
	}
	assert.Empty(t, h.pending(t, turn))
	for of, want := range map[string][2]string{choice.ID: {"LEFT", "l"}, url.ID: {"agreed to open it", ""}, form.ID: {"n: 3", ""}} {
		a := must(h.Inbox.Find(ctx, of))(t)
		assert.Equal(t, want, [2]string{a.Response, a.Option})
	}
}

// The session notes an answer only if it changed, refused or said something.
func TestAnAnswerIsNotedWhereItSaysMoreThanYes(t *testing.T) {
	h := newHarness(t)
	turn := h.turn(t, domain.Running)
	for i, c := range []struct {
		d    Decision
		want []string
	}{
		{Decision{Decision: Approve}, nil},
		{Decision{Decision: Approve, UpdatedInput: json.RawMessage(`{"file_path":"b"}`)}, []string{"Write b — approved"}},
		{Decision{Decision: Deny, Comment: "no"}, []string{"Write a — denied: no"}},
	} {
		p := write("a")
		p.ToolUseID += string(rune('a' + i))
		asked, _ := h.ask(t, turn, p)
		h.notes = nil
		c.d.ID = asked.ID
		must(h.Decide(t.Context(), c.d))(t)
		assert.Equal(t, c.want, h.notes)
	}
	assert.Equal(t, []string{write("a").ToolUseID + `b: {"file_path":"b"}`}, h.edited, "the tool call shows the edited input")
}

func TestARuleThatIsNotThereCannotBeForgotten(t *testing.T) {
	var refused *domain.Error
	require.ErrorAs(t, newHarness(t).ForgetRule(t.Context(), 7), &refused)
	assert.Equal(t, domain.KindRuleNotFound, refused.Kind)
}
