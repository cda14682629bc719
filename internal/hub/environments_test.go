package hub

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
)

// clientOf returns the context of a client that sent a DISPLAY.
func clientOf(t *testing.T, display string) context.Context {
	return clientenv.Context(t.Context(), clientenv.Environment{"DISPLAY": display})
}

// started records the DISPLAY with which agents start, by prompt.
type started struct {
	mu       sync.Mutex
	displays map[string]string
}

func (s *started) note(p catalog.ExecutePromptParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.displays[p.Prompt] = p.Launch.Environment["DISPLAY"]
}

func (s *started) with(prompt string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.displays[prompt]
}

func hubWithDisplay(o *Options) {
	o.Getenv = func(name string) string { return map[string]string{"DISPLAY": "of the hub"}[name] }
}

func (h *Hub) environmentsKept() int {
	h.environments.mu.Lock()
	defer h.environments.mu.Unlock()
	return len(h.environments.byTurn) + len(h.environments.ended)
}

func TestATurnHasTheEnvironmentOfItsClient(t *testing.T) {
	seen := &started{displays: make(map[string]string)}
	release := make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		seen.note(x.p)
		if x.p.Prompt == "first" {
			<-release
		}
		return completed
	}, hubWithDisplay)
	launched := func(ctx context.Context, prompt string) domain.TurnInSession {
		t.Helper()
		return must(h.Launch(ctx, LaunchSpec{Prompt: prompt, Source: domain.SourceTask}))(t)
	}
	first := launched(clientOf(t, "a"), "first")
	queued := must(h.Continue(clientOf(t, "b"), ContinueSpec{From: first.UUID, Prompt: "queued", Source: domain.SourceSession}))(t)
	cancelled := must(h.Continue(clientOf(t, "c"), ContinueSpec{From: first.UUID, Prompt: "cancelled", Source: domain.SourceSession}))(t)
	assert.Equal(t, 3, h.environmentsKept())
	must(h.Interrupt(t.Context(), cancelled.UUID, ""))(t)
	assert.Equal(t, 2, h.environmentsKept())
	close(release)
	await(t, h, queued)
	await(t, h, launched(t.Context(), "without"))
	draft := must(h.Launch(clientOf(t, "d"), LaunchSpec{Prompt: "draft", Source: domain.SourceTask, Draft: true}))(t)
	assert.Zero(t, h.environmentsKept())
	draft = must(h.Continue(clientOf(t, "e"), ContinueSpec{From: draft.UUID}))(t)
	await(t, h, draft)
	for prompt, display := range map[string]string{"first": "a", "queued": "b", "without": "of the hub", "draft": "e"} {
		assert.Equal(t, display, seen.with(prompt), prompt)
	}
	assert.Zero(t, h.environmentsKept())
}

func TestAResumedTurnHasTheEnvironmentOfTheClientThatResumesIt(t *testing.T) {
	path := database(t)
	seen := &started{displays: make(map[string]string)}
	dies := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if x.p.Prompt == "asks" {
			x.ask(ctx, "Write", map[string]string{"file_path": "f"})
		}
		<-ctx.Done()
		return lost
	})
	var left []domain.TurnInSession
	for _, prompt := range []string{"asks", "works"} {
		s := must(dies.Launch(clientOf(t, "a"), LaunchSpec{Prompt: prompt, Source: domain.SourceTask}))(t)
		left = append(left, s)
	}
	question := pendingOf(t, dies, 1)[0]
	inState(t, dies, left[1], domain.Running)
	require.NoError(t, dies.Close())

	var mu sync.Mutex
	var displays []string
	h := openHub(t, path, func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		seen.note(x.p)
		mu.Lock()
		defer mu.Unlock()
		displays = append(displays, x.p.Launch.Environment["DISPLAY"])
		return completed
	}, hubWithDisplay)
	s := must(h.Continue(clientOf(t, "b"), ContinueSpec{From: left[1].UUID, Prompt: "go on", Source: domain.SourceSession}))(t)
	await(t, h, s)
	must(h.Approvals().Decide(clientOf(t, "c"), approval.Decision{ID: question.ID, Decision: "approve"}))(t)
	until(t, h, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(displays) == 2
	}, "the answer resumes the turn")
	assert.Equal(t, []string{"b", "c"}, displays)
}

// A turn that follows failed gates uses the environment of the same client.
func TestGatesGoOnWithTheEnvironmentOfTheClient(t *testing.T) {
	var mu sync.Mutex
	var displays []string
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		mu.Lock()
		defer mu.Unlock()
		displays = append(displays, x.p.Launch.Environment["DISPLAY"])
		return completed
	}, hubWithDisplay, passes(3).option)
	s := must(h.Launch(clientOf(t, "a"), LaunchSpec{Prompt: "p", Source: domain.SourceTask, Gates: gate.Spec{Gates: []string{"true"}}}))(t)
	until(t, h, func() bool {
		l, has, err := h.gates.Of(t.Context(), s.Turn.ID)
		return err == nil && has && l.State == domain.LoopPassed
	}, "the gates pass")
	assert.Equal(t, []string{"a", "a", "a"}, displays)
	h.Drain(t.Context())
	h.environments.tidy(h.gates.Checks)
	assert.Zero(t, h.environmentsKept())
}
