package hub

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// The table of DESIGN section 5, and what the end of an executor or of the
// process adds to it.
var allowed = map[State]string{
	store.Draft:        "queued discarded",
	store.Queued:       "starting cancelled",
	store.Starting:     "running interrupting interrupted failed",
	store.Running:      "waiting_input completed failed interrupting interrupted",
	store.WaitingInput: "running completed failed interrupting interrupted",
	store.Interrupting: "interrupted timed_out failed",
}

var everyState = []State{
	store.Draft, store.Queued, store.Starting, store.Running, store.WaitingInput, store.Interrupting,
	store.Completed, store.Failed, store.TimedOut, store.Cancelled, store.Interrupted, store.Discarded,
}

func TestOnlyTheTransitionsOfTheTableAreMade(t *testing.T) {
	h := openHub(t, database(t), hang)
	h.Drain(context.Background()) // nothing is started
	for _, from := range everyState {
		for _, to := range everyState {
			run := insert(t, h, from)
			before := h.events.last()
			err := h.write(context.Background(), func(tx *store.Tx) error {
				run := run
				return h.transition(tx, &run, to, outcome{code: "CODE", message: "message", stop: "stop"})
			})
			now, rerr := h.store.Run(context.Background(), run.ID)
			require.NoError(t, rerr)
			if slices.Contains(strings.Fields(allowed[from]), string(to)) {
				assert.NoError(t, err, "%s to %s", from, to)
				assert.Equal(t, to, now.State)
				assert.Equal(t, to.Ended(), !now.Ended.IsZero(), "%s has an end", to)
				assert.Equal(t, "CODE", now.ErrorCode)
				assert.Equal(t, before+1, h.events.last(), "one event")
				continue
			}
			assert.Equal(t, KindBadState, kindOf(t, err), "%s to %s", from, to)
			assert.Equal(t, from, now.State)
			assert.Empty(t, now.ErrorCode)
			assert.True(t, now.Ended.IsZero())
			assert.Equal(t, before, h.events.last(), "nothing is told")
		}
	}
}

func TestStatesInTheWordsOfSeed001(t *testing.T) {
	for state, want := range map[State]string{
		store.Queued: "starting", store.Starting: "starting", store.Running: "running", store.WaitingInput: "waiting_input",
		store.Interrupting: "interrupting", store.Completed: "completed", store.Failed: "failed", store.TimedOut: "failed",
		store.Cancelled: "interrupted", store.Interrupted: "interrupted", store.Draft: "draft", store.Discarded: "discarded",
	} {
		assert.Equal(t, want, StatusOf(state))
	}
}

func TestEveryTransitionOfARunIsTold(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	events := subscribe(t, h, Filter{Types: []string{EventStatus}}, -1)
	s := launch(t, h, "a")
	approve(t, h, pendingOf(t, h, 1)[0], "")
	await(t, h, s)
	want := []string{"draft queued", "queued starting", "starting running", "running waiting_input", "waiting_input running", "running completed"}
	require.Eventually(t, func() bool { return len(events.states()) == len(want) }, within, 1e6)
	assert.Equal(t, want, events.states())
}

func TestADraftIsDiscarded(t *testing.T) {
	h := openHub(t, database(t), hang)
	s, err := h.Launch(context.Background(), LaunchSpec{Prompt: "later", Draft: true})
	require.NoError(t, err)
	assert.Equal(t, store.Draft, s.State)
	_, err = h.Continue(context.Background(), ContinueSpec{From: s.UUID, Prompt: "go on"})
	assert.Equal(t, KindBadState, kindOf(t, err))
	s, err = h.Interrupt(context.Background(), s.UUID, "")
	require.NoError(t, err)
	assert.Equal(t, store.Discarded, s.State)
	_, err = h.Cancel(context.Background(), s.UUID, "")
	assert.Equal(t, KindNotCancellable, kindOf(t, err))
}
