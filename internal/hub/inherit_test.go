package hub

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// reader asks to read and then to write.
func reader(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
	read, err := x.request(ctx, catalog.RequestPermissionParams{
		SessionToken: x.p.SessionToken, ToolName: "Read", ToolInput: encode(map[string]string{"file_path": "a"}), ToolKind: "read",
	})
	if read.Cancelled || err != nil {
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	}
	x.say(verdictText(read) + ", " + verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "a"})))
	return completed
}

func TestWhatFollowsATurnMayDoWhatItMight(t *testing.T) {
	path := database(t)
	spec := LaunchSpec{Prompt: "p", Source: domain.SourceExecute, SessionAlias: "a", Tools: []string{"Read"}, Mode: catalog.ModePlan, Timeout: time.Hour, Quiet: true}
	h := openHub(t, path, reader)
	// The session has another mode than the turn.
	await(t, h, func() domain.TurnInSession {
		s := launchIn(t, h, "a", "first")
		approve(t, h, pendingOf(t, h, 1)[0], "")
		approve(t, h, pendingOf(t, h, 1)[0], "")
		return s
	}())
	must(h.Launch(context.Background(), spec))(t)
	pendingOf(t, h, 1)
	require.NoError(t, h.Close())

	same := func(s domain.TurnInSession) {
		t.Helper()
		assert.Equal(t, []any{spec.Tools, spec.Mode, spec.Timeout, true}, []any{s.Tools, s.Mode, s.Timeout, s.Quiet})
	}
	h = openHub(t, path, reader)
	approve(t, h, pendingOf(t, h, 1)[0], "")
	s := turnOf(t, h, "a")
	require.Equal(t, domain.SourceDecision, s.Source)
	same(s)
	assert.Equal(t, "yes user_approved, no rule=tools", await(t, h, s).Result)

	next := must(h.Continue(context.Background(), ContinueSpec{From: s.UUID, Prompt: "on"}))(t)
	same(next)
	approve(t, h, pendingOf(t, h, 1)[0], "")
	assert.Equal(t, "yes user_approved, no rule=tools", await(t, h, next).Result)

	// The default, unless overridden.
	mode := catalog.ModeDefault
	must(h.Settings().Update(context.Background(), s.UUID, domain.SettingsChanged{Mode: &mode}))(t)
	next = must(h.Continue(context.Background(), ContinueSpec{From: next.UUID, Prompt: "on", Tools: []string{"Write"}}))(t)
	assert.Equal(t, []any{[]string{"Write"}, mode}, []any{next.Tools, next.Mode})
	approve(t, h, pendingOf(t, h, 1)[0], "")
	assert.Equal(t, "no rule=tools, yes user_approved", await(t, h, next).Result)
}

func TestAPromptWithoutAModeHasTheSessions(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	s := must(h.Launch(context.Background(), LaunchSpec{Prompt: "p", Mode: catalog.ModePlan, SessionAlias: "a"}))(t)
	assert.Equal(t, "no mode=plan", await(t, h, s).Result)
	assert.Equal(t, "no mode=plan", await(t, h, launchIn(t, h, "a", "p")).Result)
}

func TestAForkPassesNothingUnasked(t *testing.T) {
	yes := domain.Settings{SkipPermissions: true, AutoAcceptEdits: true, DisallowedTools: []string{"X"}}
	for name, c := range map[string]struct {
		spec LaunchSpec
		mode string // of the fork
	}{
		"by settings":      {LaunchSpec{Settings: yes}, catalog.ModeDefault},
		"by mode":          {LaunchSpec{Mode: catalog.ModeBypass}, catalog.ModeDefault},
		"edits":            {LaunchSpec{Mode: catalog.ModeAcceptEdits}, catalog.ModeDefault},
		"but plan is kept": {LaunchSpec{Mode: catalog.ModePlan}, catalog.ModePlan},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHub(t, database(t), askOnce)
			c.spec.Prompt = "p"
			s := must(h.Launch(context.Background(), c.spec))(t)
			await(t, h, s)
			fork := must(h.Continue(context.Background(), ContinueSpec{From: s.UUID, Prompt: "p", Fork: true}))(t)
			assert.Equal(t, []string{c.mode, c.mode}, []string{fork.Mode, fork.Session.Mode})
			assert.False(t, fork.Session.Settings.SkipPermissions || fork.Session.Settings.AutoAcceptEdits)
			assert.Equal(t, c.spec.Settings.DisallowedTools, fork.Session.Settings.DisallowedTools)
			if c.mode == catalog.ModeDefault {
				pendingOf(t, h, 1)
			}
			next := must(h.Continue(context.Background(), ContinueSpec{From: s.UUID, Prompt: "p"}))(t, "the session itself goes on as it was")
			assert.Equal(t, s.Mode, next.Mode)
		})
	}
}

func TestAnAnswerEndsWithTheTurnThatWasToAskForIt(t *testing.T) {
	path := database(t)
	crash(t, path, askOnce, "a")
	h := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if x.p.Prompt == "busy" {
			return hang(ctx, x)
		}
		return says(ctx, x)
	}, func(o *Options) { o.Limits.MaxTurns, o.Limits.QueueCap = 1, 2 })
	busy := launch(t, h, "busy")
	inState(t, h, busy, domain.Running)
	launch(t, h, "busy")
	launch(t, h, "busy")
	approve(t, h, pendingOf(t, h, 1)[0], "") // the queue is full, but an answer is accepted
	resumed := turnOf(t, h, "a")
	require.Equal(t, domain.SourceDecision, resumed.Source)
	require.Equal(t, domain.Queued, resumed.State)
	interrupt := func(s domain.TurnInSession) {
		t.Helper()
		must(h.Interrupt(context.Background(), s.UUID, ""))(t)
		await(t, h, s)
	}
	for _, s := range []domain.TurnInSession{resumed, busy} {
		interrupt(s)
	}
	list := must(h.query.Turns(context.Background(), domain.TurnFilter{States: []domain.State{domain.Starting, domain.Running, domain.Queued}}))(t)
	for _, s := range list {
		interrupt(s)
	}
	launchIn(t, h, "a", "again")
	assert.False(t, pendingOf(t, h, 1)[0].Stale, "it is asked again")
}

func TestAnAnswerStaysForTheTurnThatWillAsk(t *testing.T) {
	goOn := make(chan struct{})
	h, asked := afterCrash(t, turns(askOnce, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		<-goOn
		return says(ctx, x)
	}, ends(completed)))
	approve(t, h, asked, "")
	resumed := turnOf(t, h, "a")
	later := launchIn(t, h, "a", "later")
	must(h.Interrupt(context.Background(), later.UUID, ""))(t) // the end of another turn does not affect it
	close(goOn)
	assert.Equal(t, "yes user_approved", await(t, h, resumed).Result)
}
