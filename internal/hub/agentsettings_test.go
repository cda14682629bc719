package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// in reports the agent's current mode and the modes that it has.
func (x *fakeTurn) in(mode string, has ...string) {
	m := &catalog.Selection{Current: mode}
	for _, id := range has {
		m.Choices = append(m.Choices, domain.Choice{ID: id})
	}
	x.report(catalog.EventSession, catalog.Session{Mode: m})
	x.report(catalog.EventMode, catalog.Mode{Current: mode, Available: has})
}

// choosy is an agent with modes, a model and an option of its own.
func choosy(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
	x.report(catalog.EventSession, catalog.Session{
		Mode:    &catalog.Selection{Current: "ask", Choices: []domain.Choice{{ID: "ask"}, {ID: "code"}}},
		Model:   &catalog.Selection{Current: "small", Choices: []domain.Choice{{ID: "small"}, {ID: "big"}}},
		Options: []catalog.Option{{ID: "thought", Current: "low", Choices: []domain.Choice{{ID: "low"}, {ID: "high"}}}, {ID: "free"}},
	})
	x.say("hello")
	return completed
}

// An agent that was allowed to leave plan mode may change files again. The next turn continues in
// the new mode.
func TestThePolicyFollowsTheAgentsMode(t *testing.T) {
	claude := []string{"default", "acceptEdits", "plan", "bypassPermissions"}
	path := database(t)
	h := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.in("plan", claude...)
		x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "a"})))
		x.in("default", claude...)
		x.say(", " + verdictText(x.ask(ctx, "Write", map[string]string{"file_path": "b"})))
		return completed
	})
	s := must(h.Launch(t.Context(), LaunchSpec{Prompt: "p", Mode: catalog.ModePlan, SessionAlias: "a"}))(t)
	approve(t, h, pendingOf(t, h, 1)[0], "")
	s = await(t, h, s)
	assert.Equal(t, []any{", yes user_approved", "default"}, []any{s.Result, s.AgentMode})
	require.NoError(t, h.Close())

	var asked, goesOn []string
	h = openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		stands, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.p.SessionToken})
		assert.NoError(t, err)
		asked, goesOn = append(asked, x.p.PermissionMode), append(goesOn, stands.AgentMode)
		return completed
	})
	s = must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "on"}))(t)
	await(t, h, s)
	mode := catalog.ModePlan
	must(h.Settings().Update(t.Context(), s.UUID, domain.SettingsChanged{Mode: &mode}))(t)
	s = must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "on"}))(t)
	s = await(t, h, s)
	await(t, h, must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "on", Fork: true}))(t))
	assert.Equal(t, []string{"default", "", ""}, goesOn, "in the mode that it was in, unless a client has asked for another one since")
	assert.Equal(t, []string{"plan", "plan", "plan"}, asked)
}

func TestAForkBeginsInNoModeInWhichToolsMayPassUnasked(t *testing.T) {
	for _, c := range []struct{ asked, is, want string }{
		{"plan", "", "plan"},
		{"plan", "plan", "plan"},
		{"plan", "acceptEdits", "default"},
		{"code", "code", "default"},
		{"code", "", "default"},
		{"bypassPermissions", "", "default"},
		{"default", "plan", "default"},
	} {
		turn := domain.Turn{Mode: c.asked, AgentMode: c.is}
		forkMode(&turn, "")
		assert.Equal(t, c.want, turn.Mode, c)
		assert.Contains(t, []string{"", "plan"}, turn.AgentMode, c)
	}
}

func TestAQuestionIsAnsweredWhenTheAgentConfirmsItsMode(t *testing.T) {
	confirm := make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.in("default", "default", "acceptEdits")
		asked := make(chan catalog.RequestPermissionResult)
		go func() { asked <- x.ask(ctx, "Write", map[string]string{"file_path": "a"}) }()
		<-confirm
		x.in("acceptEdits", "default", "acceptEdits")
		x.say(verdictText(<-asked))
		return completed
	})
	s := launch(t, h, "p")
	pendingOf(t, h, 1)
	mode := catalog.ModeAcceptEdits
	must(h.Settings().Update(t.Context(), s.UUID, domain.SettingsChanged{Mode: &mode}))(t)
	pendingOf(t, h, 1) // the agent has not entered the requested mode
	close(confirm)
	assert.Equal(t, "yes mode=acceptEdits", await(t, h, s).Result)
}

func TestWhatAnAgentIsKnownNotToHaveIsRefused(t *testing.T) {
	h := openHub(t, database(t), choosy)
	text := func(s string) *string { return &s }
	options := func(id, value string) map[string]string { return map[string]string{id: value} }
	spec := func(mode, model string, options map[string]string) LaunchSpec {
		return LaunchSpec{Prompt: "p", Mode: mode, Model: model, Settings: domain.Settings{Options: options}}
	}
	first := must(h.Launch(t.Context(), spec("whatever", "it", options("may", "have"))))(t, "it is unknown before it was started")
	await(t, h, first)

	ours := []string{"ask", "code", "default", "acceptEdits", "bypassPermissions"}
	for name, c := range map[string]struct {
		mode, model string
		options     map[string]string
		param       string
		accepted    []string
	}{
		"mode":   {"yolo", "", nil, "permission_mode", ours},
		"blank":  {"ask ", "", nil, "permission_mode", ours},
		"plan":   {"plan", "", nil, "permission_mode", ours},
		"model":  {"", "gpt", nil, "model", []string{"small", "big"}},
		"option": {"", "", options("speed", "x"), "options", []string{"thought", "free"}},
		"value":  {"", "", options("thought", "x"), "options.thought", []string{"low", "high"}},
	} {
		_, launched := h.Launch(t.Context(), spec(c.mode, c.model, c.options))
		change := domain.SettingsChanged{Options: c.options}
		if c.mode != "" {
			change.Mode = text(c.mode)
		}
		if c.model != "" {
			change.Model = text(c.model)
		}
		_, changed := h.Settings().Update(t.Context(), first.UUID, change)
		for _, err := range []error{launched, changed} {
			e := refusal(t, err, name)
			assert.Equal(t, domain.KindInvalid, e.Kind, name)
			assert.Equal(t, c.param, e.Param, name)
			assert.Equal(t, c.accepted, e.Accepted, name)
		}
	}
	for _, good := range []LaunchSpec{
		spec("ask", "big", options("thought", "high")), spec("code", "", options("free", "anything")), spec("acceptEdits", "", nil), spec("default", "", nil), spec("bypassPermissions", "", nil),
	} {
		await(t, h, must(h.Launch(t.Context(), good))(t))
	}
}

func TestAnAgentWithoutModesHasDuets(t *testing.T) {
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.report(catalog.EventSession, catalog.Session{Mode: &catalog.Selection{}, Model: &catalog.Selection{}, Options: []catalog.Option{}})
		return completed
	})
	await(t, h, launch(t, h, "p"))
	for _, bad := range []string{"yolo", "plan "} {
		_, err := h.Launch(t.Context(), LaunchSpec{Prompt: "p", Mode: bad})
		e := refusal(t, err)
		assert.Equal(t, []string{"default", "acceptEdits", "bypassPermissions", "plan"}, e.Accepted)
	}
	must(h.Launch(t.Context(), LaunchSpec{Prompt: "p", Mode: "plan", Model: "any"}))(t)
}

func TestWhatAnAgentIsSetToIsToldAndStays(t *testing.T) {
	path := database(t)
	h := openHub(t, path, choosy)
	reported := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventAgentSession}}, 0)
	s := await(t, h, launchIn(t, h, "a", "p"))
	await(t, h, launchIn(t, h, "a", "again"))
	reported.until(t, func() bool { return len(reported.all()) > 0 })
	require.Len(t, reported.all(), 1, "unchanged values are not reported again")
	got := reported.all()[0].Payload.(domain.AgentSessionChanged)
	assert.Equal(t, "ask", got.Mode())
	assert.Equal(t, "small", got.Model())
	assert.Equal(t, "small", s.Model)
	require.NoError(t, h.Close())

	h = openHub(t, path, choosy)
	s = turnOf(t, h, "a")
	session := must(h.Settings().OfTurn(t.Context(), s))(t)
	assert.Equal(t, got.AgentSession, session.Reported)
	assert.Equal(t, []string{"ask", "code", "default", "acceptEdits", "bypassPermissions"}, session.Modes)
	known := must(h.Settings().OfAgent(t.Context(), ""))(t)
	assert.Equal(t, "fake", known.Agent)
	assert.Equal(t, session, known)
}

// A client that reads an active turn can set its agent. A client that reads an ended turn sets the
// next prompt, and learns that no agent is running. Both hold immediately after the state becomes
// readable.
func TestWhoReadsAStateFindsAllAsItSays(t *testing.T) {
	h := openHub(t, database(t), hang)
	s := launch(t, h, "p")
	settings := forSettings{h}
	turn := inState(t, h, s, domain.Running).Turn
	assert.NotNil(t, settings.LeaseOf(s.Session.ID))
	assert.True(t, h.Busy())
	asked := make(chan struct{})
	require.NoError(t, h.write(t.Context(), func(tx store.Tx) error {
		tx.AfterCommit(func() { // comes before the hub's own
			go func() {
				defer close(asked)
				now, err := h.store.Turn(t.Context(), turn.ID)
				assert.NoError(t, err)
				assert.Equal(t, domain.Interrupted, now.State)
				assert.Nil(t, settings.LeaseOf(s.Session.ID))
				assert.False(t, h.Busy())
			}()
			select {
			case <-asked: // too early
			case <-time.After(50 * time.Millisecond):
			}
		})
		require.NoError(t, h.transition(tx, &turn, domain.Interrupting, outcome{}))
		return h.transition(tx, &turn, domain.Interrupted, outcome{})
	}))
	<-asked
}

// Content that the agent is known not to accept is refused before anything is stored.
func TestContentThatAnAgentIsKnownNotToTakeIsRefused(t *testing.T) {
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.report(catalog.EventSession, catalog.Session{Takes: &domain.PromptTakes{Audio: true}})
		return completed
	})
	with := func(kind string) []domain.Content {
		data := []byte(kind)
		return []domain.Content{{Block: domain.Block{Type: kind, MIMEType: "x/y", Attachment: domain.AttachmentID(data)}, Data: data}}
	}
	image := LaunchSpec{Prompt: "p", Content: with(domain.BlockImage)}
	first := must(h.Launch(t.Context(), image))(t, "it is unknown before it was started")
	await(t, h, first)
	draft := must(h.Launch(t.Context(), LaunchSpec{Prompt: "p", Draft: true}))(t)

	image.Content = with(domain.BlockImage)
	image.Content[0].Data, image.Content[0].Attachment = []byte("another"), domain.AttachmentID([]byte("another"))
	last := h.events.Last()
	for name, try := range map[string]func() error{
		"launch": func() error { _, err := h.Launch(t.Context(), image); return err },
		"continue": func() error {
			_, err := h.Continue(t.Context(), ContinueSpec{From: first.UUID, Prompt: "p", Content: image.Content})
			return err
		},
		"fork": func() error {
			_, err := h.Continue(t.Context(), ContinueSpec{From: first.UUID, Prompt: "p", Content: image.Content, Fork: true})
			return err
		},
		"draft": func() error {
			return errorOf(h.Continue(t.Context(), ContinueSpec{From: draft.UUID, Content: image.Content}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused := refusal(t, try())
			assert.Equal(t, []string{domain.KindInvalid, "content", "what the agent fake takes in prompts: text, audio and links to resources", "content of the type image"},
				[]string{refused.Kind, refused.Param, refused.Expected, refused.Received})
		})
	}
	assert.Equal(t, last, h.events.Last())
	_, err := h.store.Attachment(t.Context(), image.Content[0].Attachment)
	assert.ErrorIs(t, err, store.ErrNotFound, "nothing is kept")
	for _, kind := range []string{domain.BlockAudio, domain.BlockResource} {
		assert.NoError(t, errorOf(h.Continue(t.Context(), ContinueSpec{From: first.UUID, Prompt: "p", Content: with(kind)})))
	}
}

// A session continues with another agent. The new agent starts its own session, gets the
// transcript, and inherits no accepted permissions.
func TestASessionGoesOnWithAnotherAgent(t *testing.T) {
	var names atomic.Pointer[[]string]
	names.Store(&[]string{"old", "new"})
	var daemon catalog.Daemon
	var mu sync.Mutex // guards said
	reported := map[string][]string{}
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
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
	}, func(o *Options) { fakeOf(o).Agents = named{&names} })
	heard := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventAgentSession}}, -1)
	s, err := h.Launch(t.Context(), LaunchSpec{Prompt: "one", Agent: "old", Model: "big", Mode: "code", Settings: domain.Settings{SkipPermissions: true, AutoAcceptEdits: true, Options: map[string]string{"o": "v"}}})
	require.NoError(t, err)
	await(t, h, s)
	other, unknown := "new", "nobody"
	_, _, err = h.Settings().SetAgent(t.Context(), s.UUID, domain.SettingsChanged{Agent: &unknown})
	require.Equal(t, domain.KindUnknownAgent, kindOf(t, err))
	changed, live, err := h.Settings().SetAgent(t.Context(), s.UUID, domain.SettingsChanged{Agent: &other})
	require.NoError(t, err)
	assert.False(t, live)
	assert.Equal(t, []any{"new", "old", ""}, []any{changed.Session.Agent, changed.Agent, changed.Session.NativeSession})
	assert.False(t, changed.Session.Settings.SkipPermissions)
	assert.False(t, changed.Session.Settings.AutoAcceptEdits)

	// Late session updates of the previous agent have no effect.
	mu.Lock()
	require.NoError(t, daemon.ReportSession(t.Context(), catalog.ReportSessionParams{SessionID: s.Session.UUID, TaskID: s.UUID, Session: catalog.Session{Commands: []domain.AgentCommand{{Name: "late"}}}}))
	mu.Unlock()

	next := await(t, h, must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "two"}))(t))
	assert.Equal(t, []any{s.Session.ID, "new", domain.Completed}, []any{next.Session.ID, next.Agent, next.State})
	mu.Lock()
	assert.Equal(t, map[string][]string{
		"one": {"old", "", "code", "", "big", "v"}, "two": {"new", "", "default", "", "", "", "one"},
	}, reported)
	mu.Unlock()
	c := transcriptOf(t, h, next.HumanLayerSession)
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
	same, _, err := h.Settings().SetAgent(t.Context(), next.UUID, domain.SettingsChanged{Agent: &other})
	require.NoError(t, err)
	assert.Equal(t, "of new", same.Session.NativeSession)
}

// A session keeps its agent while a turn is active or queued. Approvals that a dead agent left
// open do not carry over to the next agent.
func TestASessionAtWorkKeepsItsAgent(t *testing.T) {
	var names atomic.Pointer[[]string]
	names.Store(&[]string{"old", "new"})
	path := database(t)
	other := "new"
	asking := func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.ask(ctx, "Write", map[string]string{"file_path": "a"})
		return completed
	}
	withNames := func(o *Options) { fakeOf(o).Agents = named{&names} }
	h := openHub(t, path, asking, withNames)
	s := must(h.Launch(t.Context(), LaunchSpec{Prompt: "one", Agent: "old"}))(t)
	pendingOf(t, h, 1)
	_, _, err := h.Settings().SetAgent(t.Context(), s.UUID, domain.SettingsChanged{Agent: &other})
	require.Equal(t, domain.KindBadState, kindOf(t, err))
	_, err = h.Settings().Update(t.Context(), s.UUID, domain.SettingsChanged{Agent: &other})
	require.Equal(t, domain.KindBadState, kindOf(t, err))
	require.NoError(t, h.Close())

	h = openHub(t, path, asking, withNames)
	pendingOf(t, h, 1) // the question outlives its agent
	_, _, err = h.Settings().SetAgent(t.Context(), s.UUID, domain.SettingsChanged{Agent: &other})
	require.NoError(t, err)
	pendingOf(t, h, 0)
}

// A fork may have another agent, and other settings. The session that is forked keeps its own.
func TestAForkIsGivenAnotherAgent(t *testing.T) {
	var names atomic.Pointer[[]string]
	names.Store(&[]string{"old", "new"})
	var mu sync.Mutex // guards seen
	seen := map[string][]any{}
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
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
	}, func(o *Options) { fakeOf(o).Agents = named{&names} })
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
		fork := must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Fork: true, Prompt: prompt, Choice: c.choice}))(t)
		await(t, h, fork)
		mu.Lock()
		assert.Equal(t, c.want, seen[prompt], prompt)
		mu.Unlock()
		await(t, h, must(h.Continue(t.Context(), ContinueSpec{From: fork.UUID, Prompt: "next"}))(t))
		mu.Lock()
		assert.Equal(t, c.want[:2], seen["next"][:2], "the fork keeps them")
		mu.Unlock()
	}
	_, err = h.Continue(t.Context(), ContinueSpec{From: s.UUID, Fork: true, Prompt: "no", Choice: AgentChoice{Agent: "missing"}})
	require.Equal(t, domain.KindUnknownAgent, kindOf(t, err))
	await(t, h, must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "on"}))(t))
	mu.Lock()
	assert.Equal(t, []any{"old", "code", "big"}, seen["on"][:3])
	mu.Unlock()
}
