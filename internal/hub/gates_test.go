package hub

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/gate"
)

// gateRunner is an executor that runs gates.
type gateRunner struct {
	mu   sync.Mutex
	ran  []string                                                               // the lines, in order
	does func(ctx context.Context, line string, n int) (status int, out string) // n counts from 1
}

func (g *gateRunner) run(ctx context.Context, daemon catalog.Daemon, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	g.mu.Lock()
	line := strings.TrimPrefix(strings.Join(p.Command, " "), "sh -c ")
	g.ran = append(g.ran, line)
	n := 0
	for _, one := range g.ran {
		if one == line {
			n++
		}
	}
	g.mu.Unlock()
	if err := daemon.CommandStarted(ctx, catalog.CommandStartedParams{CommandID: p.CommandID, PID: 1}); err != nil {
		return catalog.RunCommandResult{}, err
	}
	status, out := g.does(ctx, line, n)
	if out != "" {
		_ = daemon.CommandOutput(ctx, catalog.CommandOutputParams{CommandID: p.CommandID, Data: out})
	}
	return catalog.RunCommandResult{ExitCode: status}, nil
}

func (g *gateRunner) lines() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.ran...)
}

// option makes the hub's executor run gates with g.
func (g *gateRunner) option(o *Options) {
	made := o.Executors
	o.Executors = func(d catalog.Daemon) Executors {
		x := made(d).(*executors)
		x.commands = g.run
		return x
	}
}

// passes is a gate that passes from the nth run on.
func passes(from int) *gateRunner {
	return &gateRunner{does: func(_ context.Context, _ string, n int) (int, string) {
		if n >= from {
			return 0, "fine\n"
		}
		return 2, "a.go:3:4: undefined: x\nexit\n"
	}}
}

// works is an agent that completes every prompt.
func works(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
	x.say("done")
	return completed
}

func launchGated(t *testing.T, h *Hub, prompt string, spec gate.Spec) domain.TurnInSession {
	t.Helper()
	return must(h.Launch(context.Background(), LaunchSpec{Prompt: prompt, Source: domain.SourceTask, Gates: spec}))(t)
}

func awaitGates(t *testing.T, h *Hub, s domain.TurnInSession) domain.GateLoop {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	l, has, err := h.Gates().Await(ctx, s.Turn.ID)
	require.NoError(t, err)
	require.True(t, has)
	return l
}

// gates returns the received gate events in short form.
func (c *collected) gates() (list []string) {
	for _, n := range c.all() {
		switch p := n.Payload.(type) {
		case domain.IterationStarted:
			list = append(list, "turn "+string(rune('0'+p.Iteration)))
		case domain.GateStarted:
			list = append(list, "start "+p.Gate)
		case domain.GateChecked:
			list = append(list, map[bool]string{true: "pass ", false: "fail "}[p.Passed]+p.Gate)
		case domain.LoopEnded:
			list = append(list, p.State)
		}
	}
	return list
}

var gateKinds = []domain.EventKind{domain.EventIteration, domain.EventGateStart, domain.EventGate, domain.EventLoopEnded}

// Outside of the project's root, as in a worktree, names are relative to where the agent works.
func TestAGateNamesFilesWhereTheAgentWorks(t *testing.T) {
	g := passes(2)
	h := openHub(t, database(t), works, g.option)
	s := must(h.Launch(t.Context(), LaunchSpec{Prompt: "p", CWD: t.TempDir(), Gates: gate.Spec{Gates: []string{"make test"}}}))(t)
	last := must(h.Query().ByTurn(t.Context(), awaitGates(t, h, s).Turn))(t)
	assert.Contains(t, last.Prompt, "- a.go:3:4: error: undefined: x\n")
}

func TestWhatAGateComplainsOfIsTheNextPrompt(t *testing.T) {
	g := passes(2)
	h := openHub(t, database(t), works, g.option)
	c := subscribe(t, h, eventlog.Subscribing{Kinds: gateKinds}, 0)
	s := launchGated(t, h, "paint", gate.Spec{Gates: []string{"make test", "make lint"}})
	l := awaitGates(t, h, s)
	assert.Equal(t, []any{domain.LoopPassed, 2}, []any{l.State, l.Iteration})
	assert.Equal(t, []string{"make test", "make lint", "make test", "make lint"}, g.lines())
	want := []string{
		"turn 1", "start make test", "fail make test", "start make lint", "fail make lint",
		"turn 2", "start make test", "pass make test", "start make lint", "pass make lint", "passed",
	}
	c.until(t, func() bool { return len(c.gates()) >= len(want) })
	assert.Equal(t, want, c.gates())

	last := must(h.Query().ByTurn(context.Background(), l.Turn))(t)
	assert.Equal(t, []any{s.Session.ID, domain.SourceGate}, []any{last.Session.ID, last.Source})
	assert.Equal(t, s.HumanLayerSession, last.ParentHumanLayerSession)
	assert.Contains(t, last.Prompt, "2 commands that have to succeed fail")
	assert.Contains(t, last.Prompt, "## make test: exit status 2\n\n- a.go:3:4: error: undefined: x\n\n```\na.go:3:4: undefined: x\nexit\n```")
	// Each turn of the work has its gates.
	first, has, err := h.Gates().Of(context.Background(), s.Turn.ID)
	require.NoError(t, err)
	assert.True(t, has)
	assert.Equal(t, l, first)
}

func TestGatesThatStillFailEndTheWork(t *testing.T) {
	for name, c := range map[string]struct {
		spec   gate.Spec
		agent  play
		turns  int
		reason string
	}{
		"after so many turns": {gate.Spec{Gates: []string{"x"}, MaxIterations: 2}, works, 2, "they still fail after 2 turns"},
		"where the agent refuses": {gate.Spec{Gates: []string{"x"}}, func(context.Context, *fakeTurn) catalog.ExecutePromptResult {
			return catalog.ExecutePromptResult{Status: catalog.StatusCompleted, StopReason: "refusal"}
		}, 1, "the agent refused to go on"},
	} {
		t.Run(name, func(t *testing.T) {
			g := passes(100)
			h := openHub(t, database(t), c.agent, g.option)
			l := awaitGates(t, h, launchGated(t, h, "p", c.spec))
			assert.Equal(t, []any{domain.LoopFailed, c.reason, c.turns}, []any{l.State, l.Reason, l.Iteration})
			require.Len(t, l.Failing(), 1)
			assert.Equal(t, "exit status 2", l.Results[0].Reason)
			assert.Equal(t, 1, l.Results[0].Errors)
		})
	}
}

// After a denial, the work ends, so that the same question does not repeat.
func TestADenialEndsTheWork(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.ask(ctx, "Write", map[string]string{"file_path": "/x"})
		return completed
	}, passes(100).option)
	s := launchGated(t, h, "p", gate.Spec{Gates: []string{"x"}})
	decide(t, h, approval.Decision{ID: pendingOf(t, h, 1)[0].ID, Decision: approval.Deny, Comment: "no"})
	l := awaitGates(t, h, s)
	assert.Equal(t, domain.LoopFailed, l.State)
	assert.Contains(t, l.Reason, "a person denied")
	assert.Equal(t, 1, l.Iteration)
}

// A failed or interrupted turn pauses the work; continuing the turn resumes it.
func TestATurnThatIsCutShortGoesOnWithItsGates(t *testing.T) {
	g := passes(1)
	started := make(chan struct{}, 1)
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if x.p.Prompt == "hang" {
			started <- struct{}{}
			return hang(ctx, x)
		}
		return works(ctx, x)
	}, g.option)
	s := launchGated(t, h, "hang", gate.Spec{Gates: []string{"x"}})
	<-started
	must(h.Interrupt(context.Background(), s.HumanLayerSession, ""))(t)
	l := awaitGates(t, h, s)
	assert.Equal(t, domain.LoopStopped, l.State)
	assert.Empty(t, g.lines())

	next := must(h.Continue(context.Background(), ContinueSpec{From: s.HumanLayerSession, Prompt: "go on"}))(t)
	again := awaitGates(t, h, next)
	assert.Equal(t, []any{domain.LoopPassed, l.ID, 1}, []any{again.State, again.ID, again.Iteration})
	// Finished work has no gates.
	after := must(h.Continue(context.Background(), ContinueSpec{From: next.HumanLayerSession, Prompt: "more"}))(t)
	_, has, err := h.Gates().Of(context.Background(), after.Turn.ID)
	require.NoError(t, err)
	assert.False(t, has)
}

// Any turn of the loop can end its gate check. The session's queued turns start then, and
// not before.
func TestACheckCanBeEnded(t *testing.T) {
	checking := make(chan struct{}, 1)
	g := &gateRunner{does: func(ctx context.Context, _ string, _ int) (int, string) {
		checking <- struct{}{}
		<-ctx.Done()
		return 130, ""
	}}
	h := openHub(t, database(t), works, g.option)
	s := launchGated(t, h, "p", gate.Spec{Gates: []string{"x"}})
	<-checking
	assert.True(t, h.Busy())
	waits := must(h.Continue(context.Background(), ContinueSpec{From: s.HumanLayerSession, Prompt: "next"}))(t)
	assert.Equal(t, domain.Queued, must(h.Query().ByTurn(context.Background(), waits.Turn.ID))(t).State)
	must(h.Interrupt(context.Background(), s.HumanLayerSession, "enough"))(t)
	l := awaitGates(t, h, s)
	assert.Equal(t, []any{domain.LoopStopped, "enough"}, []any{l.State, l.Reason})
	assert.Equal(t, domain.Completed, await(t, h, waits).State)
	assert.ErrorContains(t, errorOf(h.Interrupt(context.Background(), s.HumanLayerSession, "")), "has ended already")
}

// Ending the first turn of a loop ends the one that works now.
func TestALaterTurnIsEndedByTheFirst(t *testing.T) {
	second := make(chan struct{}, 1)
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if strings.HasPrefix(x.p.Prompt, "Your work was checked") {
			second <- struct{}{}
			return hang(ctx, x)
		}
		return completed
	}, passes(100).option)
	s := launchGated(t, h, "p", gate.Spec{Gates: []string{"x"}})
	<-second
	must(h.Interrupt(context.Background(), s.HumanLayerSession, ""))(t)
	l := awaitGates(t, h, s)
	assert.Equal(t, []any{domain.LoopStopped, 2}, []any{l.State, l.Iteration})
}

// If a hub ends while gates run, the next hub runs all of them.
func TestGatesAreCheckedAgainByTheNextHub(t *testing.T) {
	file := database(t)
	checking := make(chan struct{}, 2)
	g := &gateRunner{does: func(ctx context.Context, line string, n int) (int, string) {
		if line == "second" && n == 1 {
			checking <- struct{}{}
			<-ctx.Done()
			return 130, ""
		}
		return 0, ""
	}}
	h := openHub(t, file, works, g.option)
	s := launchGated(t, h, "p", gate.Spec{Gates: []string{"first", "second"}})
	<-checking
	require.NoError(t, h.Close())
	h = openHub(t, file, works, g.option)
	l := awaitGates(t, h, s)
	assert.Equal(t, []any{domain.LoopPassed, 1}, []any{l.State, l.Iteration})
	assert.Equal(t, []string{"first", "second", "first", "second"}, g.lines())
}

// A configured gate is looked up when it runs.
func TestGatesOfTheConfiguration(t *testing.T) {
	var mu sync.Mutex
	list := []config.Gate{{Definition: config.Definition{Name: "tests", Command: []string{"go", "test"}}}}
	g := &gateRunner{does: func(context.Context, string, int) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		list = nil
		return 1, ""
	}}
	h := openHub(t, database(t), works, g.option, func(o *Options) {
		fakeOf(o).current = func(bool) (*config.Config, error) {
			mu.Lock()
			defer mu.Unlock()
			return &config.Config{Gates: list}, nil
		}
	})
	l := awaitGates(t, h, launchGated(t, h, "p", gate.Spec{Gates: []string{"tests"}, MaxIterations: 2}))
	assert.Equal(t, []string{"go test"}, g.lines())
	assert.Equal(t, "the configuration no longer has a gate of that name", l.Results[0].Reason)
}

func TestGatesThatAreRefused(t *testing.T) {
	h := openHub(t, database(t), answers)
	for want, spec := range map[string]gate.Spec{
		"commands that are not empty":   {Gates: []string{" "}},
		"commands that differ":          {Gates: []string{"x", "x"}},
		"a number from 1 to 100":        {Gates: []string{"x"}, MaxIterations: 101},
		"where there are no gates":      {MaxIterations: 3},
		"at most 20 commands":           {Gates: make([]string, 21)},
		"commands of at most 4096 byte": {Gates: []string{strings.Repeat("x", 5000)}},
	} {
		assert.ErrorContains(t, errorOf(h.Launch(context.Background(), LaunchSpec{Prompt: "p", Gates: spec})), want)
	}
	_, err := h.Launch(clientenv.Restrict(context.Background()), LaunchSpec{Prompt: "p", Gates: gate.Spec{Gates: []string{"x"}}})
	assert.ErrorContains(t, err, "does not trust the workspace")
}
