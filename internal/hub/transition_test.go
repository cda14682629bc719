package hub

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// allowed lists the permitted transitions, including those that the end of an executor or the
// process adds.
var allowed = map[domain.State]string{
	domain.New:          "queued completed running", // completed: imported; running: a question
	domain.Draft:        "queued discarded",
	domain.Queued:       "starting cancelled",
	domain.Starting:     "running interrupting interrupted failed",
	domain.Running:      "waiting_input completed failed interrupting interrupted",
	domain.WaitingInput: "running completed failed interrupting interrupted",
	domain.Interrupting: "interrupted timed_out failed",
}

var everyState = []domain.State{
	domain.New, domain.Draft, domain.Queued, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting,
	domain.Completed, domain.Failed, domain.TimedOut, domain.Cancelled, domain.Interrupted, domain.Discarded,
}

func TestOnlyTheTransitionsOfTheTableAreMade(t *testing.T) {
	h := openHub(t, database(t), hang)
	h.Drain(context.Background()) // nothing starts
	for _, from := range everyState {
		for _, to := range everyState {
			turn := insert(t, h, from)
			before := h.events.Last()
			err := h.write(context.Background(), func(tx store.Tx) error {
				turn := turn
				return h.transition(tx, &turn, to, outcome{code: "CODE", message: "message", stop: "stop"})
			})
			now, rerr := h.store.Turn(context.Background(), turn.ID)
			require.NoError(t, rerr)
			if slices.Contains(strings.Fields(allowed[from]), string(to)) {
				assert.NoError(t, err, "%s to %s", from, to)
				assert.Equal(t, to, now.State)
				assert.Equal(t, to.Ended(), !now.Ended.IsZero(), "%s has an end", to)
				assert.Equal(t, "CODE", now.ErrorCode)
				assert.Equal(t, before+1, h.events.Last(), "one event")
				continue
			}
			assert.Equal(t, domain.KindBadState, kindOf(t, err), "%s to %s", from, to)
			assert.Equal(t, from, now.State)
			assert.Empty(t, now.ErrorCode)
			assert.True(t, now.Ended.IsZero())
			assert.Equal(t, before, h.events.Last(), "nothing is reported")
		}
	}
}

func TestEveryTransitionOfATurnIsTold(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	events := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventTurnState}}, -1)
	s := launch(t, h, "a")
	approve(t, h, pendingOf(t, h, 1)[0], "")
	await(t, h, s)
	want := []string{" queued", "queued starting", "starting running", "running waiting_input", "waiting_input running", "running completed"}
	events.until(t, func() bool { return len(events.states()) == len(want) })
	assert.Equal(t, want, events.states())
}

func TestADraftIsDiscarded(t *testing.T) {
	h := openHub(t, database(t), hang)
	s := must(h.Launch(context.Background(), LaunchSpec{Prompt: "later", Draft: true}))(t)
	assert.Equal(t, domain.Draft, s.State)
	s = must(h.Interrupt(context.Background(), s.UUID, ""))(t)
	assert.Equal(t, domain.Discarded, s.State)
	assert.Equal(t, domain.KindNotCancellable, kindOf(t, errorOf(h.Interrupt(context.Background(), s.UUID, ""))))
	_, err := h.Continue(context.Background(), ContinueSpec{From: s.UUID, Prompt: "go on"})
	assert.Equal(t, domain.KindBadState, kindOf(t, err))
}

// A fork and its session do not look alike in a list.
func TestTitleOfAForkNamesTheOtherSession(t *testing.T) {
	ctx := t.Context()
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed })
	named := await(t, h, must(h.Launch(ctx, LaunchSpec{Prompt: "p", Title: "parser fix"}))(t))
	fork := func(of domain.TurnInSession) domain.TurnInSession {
		return await(t, h, must(h.Continue(ctx, ContinueSpec{From: of.UUID, Prompt: "more", Fork: true}))(t))
	}
	first := fork(named)
	assert.Equal(t, []string{"parser fix (fork of 1)", "parser fix (fork of 1)"}, []string{first.Session.Title, first.Turn.Title})
	assert.Equal(t, "parser fix (fork of 2)", fork(first).Session.Title)
	untitled := await(t, h, must(h.Launch(ctx, LaunchSpec{Prompt: "p"}))(t))
	assert.Empty(t, fork(untitled).Session.Title, "its own prompt tells it from the other one")
}

func TestADraftIsLaunched(t *testing.T) {
	ctx := context.Background()
	var given prompts
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		given.add(x)
		return completed
	}, func(o *Options) { o.Limits.QueueCap = 1 })
	events := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventTurnState}}, -1)
	draft := func(prompt string) domain.TurnInSession {
		return must(h.Launch(ctx, LaunchSpec{Prompt: prompt, Draft: true, Settings: domain.Settings{MaxTurns: 3}, Metadata: []byte(`{"a":1}`)}))(t)
	}
	title, mode := "Named", "plan"
	own, other := draft("its own"), draft("replaced")
	must(h.Settings().Update(ctx, own.HumanLayerSession, domain.SettingsChanged{Title: &title, Mode: &mode}))(t)
	assert.Equal(t, domain.KindBadState, kindOf(t, errorOf(h.Continue(ctx, ContinueSpec{From: own.HumanLayerSession, Fork: true}))))

	launched, err := h.Continue(ctx, ContinueSpec{From: own.HumanLayerSession, Settings: func(s *domain.Settings) { s.SystemPrompt, s.MaxTurns = "Be kind.", 0 }})
	require.NoError(t, err)
	assert.Equal(t, own.HumanLayerSession, launched.HumanLayerSession, "it is the same turn")
	assert.Equal(t, []any{"Named", "plan", "Be kind.", 3}, []any{launched.Title, launched.Mode, launched.Session.Settings.SystemPrompt, launched.Session.Settings.MaxTurns})
	assert.JSONEq(t, `{"a":1}`, string(launched.Metadata))
	await(t, h, launched)
	launched = must(h.Continue(ctx, ContinueSpec{From: domain.TaskName(other.Task), Prompt: "another", Priority: 7, Metadata: []byte(`{"b":2}`)}))(t)
	assert.Equal(t, []any{"another", 7}, []any{launched.Prompt, launched.Priority})
	assert.JSONEq(t, `{"b":2}`, string(launched.Metadata))
	await(t, h, launched)
	assert.Equal(t, []string{"its own", "another"}, given.all())
	c := transcriptOf(t, h, other.HumanLayerSession)
	require.Len(t, c.Entries, 1)
	assert.Equal(t, "another", c.Entries[0].Content)
	want := []string{"draft queued", "queued starting", "starting running", "running completed"}
	want = append(want, want...)
	events.until(t, func() bool { return len(events.states()) == len(want) })
	assert.Equal(t, want, events.states())

	_, err = h.Continue(ctx, ContinueSpec{From: own.HumanLayerSession})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err), "it is no draft any more, so it is asked something")
}

func TestADraftNeedsRoomInTheQueue(t *testing.T) {
	h := openHub(t, database(t), hang, func(o *Options) { o.Limits.QueueCap = 1 })
	s := must(h.Launch(context.Background(), LaunchSpec{Prompt: "later", Draft: true}))(t)
	h.Drain(context.Background()) // nothing starts
	waiting := launch(t, h, "first")
	assert.Equal(t, domain.KindQueueFull, kindOf(t, errorOf(h.Continue(context.Background(), ContinueSpec{From: s.HumanLayerSession}))))
	must(h.Interrupt(context.Background(), waiting.HumanLayerSession, ""))(t)
	s = must(h.Continue(context.Background(), ContinueSpec{From: s.HumanLayerSession}))(t)
	assert.Equal(t, domain.Queued, s.State)
}
