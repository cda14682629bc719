package hub

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
		return worksUntil(ctx, release)
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
		s := must(h.Launch(t.Context(), LaunchSpec{Prompt: source, Source: source}))(t)
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

// A hub without writes notices that its files were removed when the system notifies it, or by
// polling. A false notification has no effect.
func TestLossOfAnIdleHub(t *testing.T) {
	for name, reported := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gone atomic.Bool
				var removed chan struct{}
				if reported {
					removed = make(chan struct{}, 1)
				}
				looks := make(chan struct{}, 100)
				lost := make(chan error, 1)
				wrong := errors.New("the lock was removed")
				h := openHub(t, database(t), hang, func(o *Options) {
					o.Removed = removed
					o.Valid = func() error {
						select {
						case looks <- struct{}{}:
						default:
						}
						if gone.Load() {
							return wrong
						}
						return nil
					}
					o.Lost = func(err error) { lost <- err }
				})
				if removed != nil {
					for len(looks) > 0 { // notifications from opening
						<-looks
					}
					removed <- struct{}{}
					<-looks
				}
				require.False(t, h.Health().Lost())
				gone.Store(true)
				if removed != nil {
					removed <- struct{}{}
				}
				select {
				case err := <-lost:
					require.ErrorIs(t, err, wrong)
				case <-time.After(within):
					require.Fail(t, "it does not look")
				}
				assert.True(t, h.Health().Lost())
				assert.Contains(t, strings.Join(h.Health().Issues(), "\n"), "was removed, moved or replaced")
				assert.ErrorContains(t, h.OrEnding(t.Context(), domain.ErrEnding), "was removed, moved or replaced", "a request that its end cuts short")
			})
		})
	}
}
