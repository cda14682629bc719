package hub

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// requireIdle waits until Idle reports want.
func requireIdle(t *testing.T, h *Hub, want bool, why string) {
	t.Helper()
	require.Eventually(t, func() bool {
		idle, err := h.Idle(t.Context())
		return assert.NoError(t, err) && idle == want
	}, time.Minute, time.Millisecond, why)
}

func TestIdle(t *testing.T) {
	release := make(chan struct{})
	var daemon catalog.Daemon
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		daemon = x.daemon
		select {
		case <-release:
		case <-ctx.Done():
		}
		return completed
	}, func(o *Options) { o.Limits.MaxRuns = 1 })
	requireIdle(t, h, true, "nothing was begun")
	s := launch(t, h, "one")
	requireIdle(t, h, false, "a run is active")
	release <- struct{}{}
	s = await(t, h, s)
	requireIdle(t, h, true, "it has ended")

	background := func(tasks ...domain.BackgroundTask) {
		require.NoError(t, daemon.ReportSession(t.Context(), catalog.ReportSessionParams{
			SessionID: s.Thread.UUID, TaskID: s.UUID, Session: catalog.Session{Background: append([]domain.BackgroundTask{}, tasks...)},
		}))
	}
	background(domain.BackgroundTask{ID: "b", Title: "make"})
	requireIdle(t, h, false, "its agent works in the background")
	background()
	requireIdle(t, h, true, "that has ended")
}

func TestWhatClientsHaveBegunIsInterrupted(t *testing.T) {
	h := openHub(t, database(t), hang)
	of := map[string]domain.State{domain.SourceSession: domain.Interrupted, domain.SourceTask: domain.Interrupted, domain.SourceTrigger: domain.Running}
	runs := map[string]domain.Session{}
	for source := range of {
		s, err := h.Launch(t.Context(), LaunchSpec{Prompt: source, Source: source})
		require.NoError(t, err)
		runs[source] = inState(t, h, s, domain.Running)
	}
	h.InterruptWork(t.Context(), "alone")
	for source, want := range of {
		s := inState(t, h, runs[source], want)
		assert.Equal(t, want, s.Run.State, source)
	}
}

func TestAHubWithATriggerIsNotIdle(t *testing.T) {
	r := rules(config.Trigger{ID: "mend", Type: "run.failed", Action: notifies})
	h := openHub(t, database(t), answers, r.option)
	executed(t, h)
	requireIdle(t, h, false, "a trigger is on")
	require.NoError(t, h.Triggers().SwitchAll(t.Context(), false))
	requireIdle(t, h, true, "none is")
}
