package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
)

// A conversation continues with another agent. The new agent starts its own session, gets the
// transcript, and inherits no accepted permissions.
func TestAConversationGoesOnWithAnotherAgent(t *testing.T) {
	var names atomic.Pointer[[]string]
	names.Store(&[]string{"old", "new"})
	var daemon catalog.Daemon
	var mu sync.Mutex // guards said
	reported := map[string][]string{}
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		before, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.p.SessionToken})
		if err != nil {
			return catalog.ExecutePromptResult{Status: catalog.StatusFailed}
		}
		x.report(catalog.EventNativeSession, catalog.NativeSession{SessionID: "of " + x.p.Agent})
		x.in("code", "ask", "code")
		model := ""
		if before.ModelConfig != nil {
			model = before.ModelConfig.Model
		}
		mu.Lock()
		defer mu.Unlock()
		daemon = x.daemon
		reported[x.p.Prompt] = []string{x.p.Agent, before.NativeSessionID, x.p.PermissionMode, before.AgentMode, model, before.Options["o"]}
		for _, m := range before.Messages {
			reported[x.p.Prompt] = append(reported[x.p.Prompt], m.Content)
		}
		return completed
	}, func(o *Options) { o.Agents = named{&names} })
	heard := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventAgentSession}}, -1)
	s, err := h.Launch(t.Context(), LaunchSpec{Prompt: "one", Agent: "old", Model: "big", Mode: "code", Settings: domain.Settings{SkipPermissions: true, AutoAcceptEdits: true, Options: map[string]string{"o": "v"}}})
	require.NoError(t, err)
	await(t, h, s)
	other, unknown := "new", "nobody"
	_, _, err = h.Settings().SetAgent(t.Context(), s.UUID, threadsettings.Change{Agent: &unknown})
	require.Equal(t, domain.KindUnknownAgent, kindOf(t, err))
	changed, live, err := h.Settings().SetAgent(t.Context(), s.UUID, threadsettings.Change{Agent: &other})
	require.NoError(t, err)
	assert.False(t, live)
	assert.Equal(t, []any{"new", "old", ""}, []any{changed.Thread.Agent, changed.Agent, changed.Thread.NativeSession})
	assert.False(t, changed.Thread.Settings.SkipPermissions)
	assert.False(t, changed.Thread.Settings.AutoAcceptEdits)

	// Late session updates of the previous agent have no effect.
	mu.Lock()
	require.NoError(t, daemon.ReportSession(t.Context(), catalog.ReportSessionParams{SessionID: s.Thread.UUID, TaskID: s.UUID, Session: catalog.Session{Commands: []domain.AgentCommand{{Name: "late"}}}}))
	mu.Unlock()

	next, err := h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "two"})
	require.NoError(t, err)
	next = await(t, h, next)
	assert.Equal(t, []any{s.Thread.ID, "new", domain.Completed}, []any{next.Thread.ID, next.Agent, next.State})
	mu.Lock()
	assert.Equal(t, map[string][]string{
		"one": {"old", "", "code", "", "big", "v"}, "two": {"new", "", "default", "", "", "", "one"},
	}, reported)
	mu.Unlock()
	c, err := h.query.Conversation(t.Context(), next.SessionID, query.Page{})
	require.NoError(t, err)
	var notes []string
	for _, e := range c.Entries {
		if e.Role == "system" {
			notes = append(notes, e.Content)
		}
	}
	assert.Equal(t, []string{"new continues here; until now the agent was old."}, notes)

	for _, e := range heard.all() {
		assert.Empty(t, e.Payload.(domain.AgentSessionChanged).Commands)
	}

	// Setting the current agent again is no change.
	same, _, err := h.Settings().SetAgent(t.Context(), next.UUID, threadsettings.Change{Agent: &other})
	require.NoError(t, err)
	assert.Equal(t, "of new", same.Thread.NativeSession)
}

// A conversation keeps its agent while a run is active or queued. Approvals that a dead agent left
// open do not carry over to the next agent.
func TestAConversationAtWorkKeepsItsAgent(t *testing.T) {
	var names atomic.Pointer[[]string]
	names.Store(&[]string{"old", "new"})
	path := database(t)
	other := "new"
	asking := func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.ask(ctx, "Write", map[string]string{"file_path": "a"})
		return completed
	}
	withNames := func(o *Options) { o.Agents = named{&names} }
	h := openHub(t, path, asking, withNames)
	s, err := h.Launch(t.Context(), LaunchSpec{Prompt: "one", Agent: "old"})
	require.NoError(t, err)
	pendingOf(t, h, 1)
	_, _, err = h.Settings().SetAgent(t.Context(), s.UUID, threadsettings.Change{Agent: &other})
	require.Equal(t, domain.KindBadState, kindOf(t, err))
	_, err = h.Settings().Update(t.Context(), s.UUID, threadsettings.Change{Agent: &other})
	require.Equal(t, domain.KindBadState, kindOf(t, err))
	require.NoError(t, h.Close())

	h = openHub(t, path, asking, withNames)
	pendingOf(t, h, 1) // the question outlives its agent
	_, _, err = h.Settings().SetAgent(t.Context(), s.UUID, threadsettings.Change{Agent: &other})
	require.NoError(t, err)
	pendingOf(t, h, 0)
}

// A fork may have another agent, and other settings. The conversation that is forked keeps its own.
func TestAForkIsGivenAnotherAgent(t *testing.T) {
	var names atomic.Pointer[[]string]
	names.Store(&[]string{"old", "new"})
	var mu sync.Mutex // guards seen
	seen := map[string][]any{}
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		before, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.p.SessionToken})
		if err != nil {
			return catalog.ExecutePromptResult{Status: catalog.StatusFailed}
		}
		x.report(catalog.EventNativeSession, catalog.NativeSession{SessionID: "of " + x.p.Agent})
		model := ""
		if before.ModelConfig != nil {
			model = before.ModelConfig.Model
		}
		mu.Lock()
		defer mu.Unlock()
		seen[x.p.Prompt] = []any{x.p.Agent, x.p.PermissionMode, model, before.Options, before.ForkNativeSessionID, len(before.Messages)}
		return completed
	}, func(o *Options) { o.Agents = named{&names} })
	s, err := h.Launch(t.Context(), LaunchSpec{Prompt: "one", Agent: "old", Model: "big", Mode: "code", Settings: domain.Settings{Options: map[string]string{"o": "v", "p": "w"}}})
	require.NoError(t, err)
	await(t, h, s)
	for prompt, c := range map[string]struct {
		choice AgentChoice
		want   []any
	}{
		"as it is":      {AgentChoice{}, []any{"old", "default", "big", map[string]string{"o": "v", "p": "w"}, "of old", 1}},
		"same agent":    {AgentChoice{Agent: "old", Mode: "plan", Model: "small", Options: map[string]string{"o": "x"}}, []any{"old", "plan", "small", map[string]string{"o": "x", "p": "w"}, "of old", 1}},
		"another agent": {AgentChoice{Agent: "new", Mode: "acceptEdits", Options: map[string]string{"q": "z"}}, []any{"new", "acceptEdits", "", map[string]string{"q": "z"}, "", 1}},
	} {
		fork, err := h.Continue(t.Context(), ContinueSpec{From: s.UUID, Fork: true, Prompt: prompt, Choice: c.choice})
		require.NoError(t, err)
		await(t, h, fork)
		mu.Lock()
		assert.Equal(t, c.want, seen[prompt], prompt)
		mu.Unlock()
		next, err := h.Continue(t.Context(), ContinueSpec{From: fork.UUID, Prompt: "next"})
		require.NoError(t, err)
		await(t, h, next)
		mu.Lock()
		assert.Equal(t, c.want[:2], seen["next"][:2], "the fork keeps them")
		mu.Unlock()
	}
	_, err = h.Continue(t.Context(), ContinueSpec{From: s.UUID, Fork: true, Prompt: "no", Choice: AgentChoice{Agent: "missing"}})
	require.Equal(t, domain.KindUnknownAgent, kindOf(t, err))
	next, err := h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "on"})
	require.NoError(t, err)
	await(t, h, next)
	mu.Lock()
	assert.Equal(t, []any{"old", "code", "big"}, seen["on"][:3])
	mu.Unlock()
}
