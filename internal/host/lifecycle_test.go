package host

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A script describes the behaviour of a daemon.
type script struct {
	draining time.Duration // how long work takes to finish
	idleFor  time.Duration // the limit without clients
	working  time.Duration // how long it is busy
	client   time.Duration // when the last client leaves
	alone    bool          // work is interrupted without clients
	other    bool          // all clients are of another build
	comes    bool          // another client connects when the sockets close
}

// played is a daemon that records the calls of its lifecycle, and their times.
type played struct {
	began time.Time // of the bubble

	mu sync.Mutex // guards the fields below
	script
	did   []string
	loss  chan struct{}
	meets chan bool
}

func (p *played) elapsed() time.Duration { return time.Since(p.began) }

func (p *played) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.did = append(p.did, fmt.Sprintf("%v %s", p.elapsed(), fmt.Sprintf(format, args...)))
}

func (p *played) listen() error {
	p.note("listen")
	return nil
}

func (p *played) unlisten() {
	p.note("unlisten")
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comes {
		p.client, p.comes = p.elapsed(), false
	}
}

func (p *played) superseded() bool              { return p.other }
func (p *played) met() <-chan bool              { return p.meets }
func (p *played) lost() <-chan struct{}         { return p.loss }
func (p *played) idleAfter() time.Duration      { return p.idleFor }
func (p *played) interruptsAlone() bool         { return p.alone }
func (p *played) interruptWork(context.Context) { p.note("interrupt work") }
func (p *played) noteStop()                     { p.note("note the stop") }

func (p *played) vacantFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.elapsed()-p.client)
}

func (p *played) idle(context.Context) bool {
	p.note("look")
	return p.elapsed() >= p.working
}

func (p *played) drain(ctx context.Context) {
	select {
	case <-time.After(p.draining):
		p.note("drained")
	case <-ctx.Done():
		p.note("drained in part")
	}
}

func (p *played) interrupt(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	p.note("interrupt within %v", time.Until(deadline))
}

// stage runs the lifecycle of a played daemon in a bubble with its own clock.
type stage struct {
	*played
	*lifecycle
	t      *testing.T
	signal context.CancelFunc
	over   chan error // gets the result of the lifecycle
}

func play(t *testing.T, name string, with script, scene func(s *stage)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{played: &played{script: with, began: time.Now(), loss: make(chan struct{}), meets: make(chan bool, 1)}, t: t, over: make(chan error, 1)}
			s.lifecycle = newLifecycle(s.played, 400*time.Millisecond, slog.New(slog.DiscardHandler))
			var ctx context.Context
			ctx, s.signal = context.WithCancel(t.Context())
			defer s.signal()
			go func() { s.over <- s.run(ctx) }()
			scene(s)
		})
	})
}

// at advances to a time after the beginning.
func (s *stage) at(d time.Duration) {
	time.Sleep(d - s.elapsed())
	synctest.Wait()
}

// requires compares the calls since the last check.
func (s *stage) requires(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, want, s.did)
	s.did = nil
}

// requiresEnd waits for the end and compares the calls until then.
func (s *stage) requiresEnd(want ...string) {
	s.t.Helper()
	require.NoError(s.t, <-s.over)
	s.requires(want...)
}

func TestADaemonEndsThatIsNotNeeded(t *testing.T) {
	play(t, "it had no client", script{idleFor: 15 * time.Minute}, func(s *stage) {
		s.requiresEnd("15m0s look", "15m0s unlisten", "15m0s look")
	})
	play(t, "its last client leaves, and work goes on", script{idleFor: 15 * time.Minute, client: time.Hour, working: 80 * time.Minute}, func(s *stage) {
		s.requiresEnd("1h15m0s look", "1h16m0s look", "1h17m0s look", "1h18m0s look", "1h19m0s look",
			"1h20m0s look", "1h20m0s unlisten", "1h20m0s look")
	})
	play(t, "all its clients are of another build", script{idleFor: time.Hour, client: 2 * time.Hour, working: 2500 * time.Millisecond, other: true}, func(s *stage) {
		s.meets <- true
		s.requiresEnd("0s look", "1s look", "2s look", "3s look", "3s unlisten", "3s look")
	})
	play(t, "its last client of its own build leaves as one of another build comes", script{idleFor: time.Hour, client: 2 * time.Hour, other: true}, func(s *stage) {
		s.at(900 * time.Millisecond)
		s.meets <- false
		s.requiresEnd("1.9s look", "1.9s unlisten", "1.9s look")
	})
	play(t, "a client comes at the last moment", script{idleFor: time.Minute, comes: true}, func(s *stage) {
		s.at(61 * time.Second)
		s.requires("1m0s look", "1m0s unlisten", "1m0s listen")
		require.Empty(s.t, s.over)
	})
	play(t, "work is interrupted before", script{idleFor: 3 * time.Minute, alone: true, client: 30 * time.Second}, func(s *stage) {
		s.requiresEnd("1m30s interrupt work", "2m30s interrupt work", "3m30s interrupt work", "3m30s look", "3m30s unlisten", "3m30s look")
	})
	play(t, "work is interrupted, and it stays", script{alone: true, client: time.Hour}, func(s *stage) {
		s.at(61*time.Minute + time.Second)
		s.requires("1h1m0s interrupt work")
	})
	play(t, "it never ends by itself", script{}, func(s *stage) {
		s.at(1000 * time.Hour)
		s.requires()
		require.Empty(s.t, s.over)
	})
}

func TestADaemonEndsWhenItsFilesAreLost(t *testing.T) {
	play(t, "after a moment", script{}, func(s *stage) {
		s.at(time.Minute)
		close(s.loss)
		require.ErrorIs(s.t, <-s.over, errLost)
		s.requires("1m0s unlisten")
		require.Equal(s.t, time.Minute+lostGrace, s.elapsed())
	})
	play(t, "a signal hurries it", script{}, func(s *stage) {
		close(s.loss)
		s.at(time.Millisecond)
		s.signal()
		require.ErrorIs(s.t, <-s.over, errLost)
		require.Equal(s.t, time.Millisecond, s.elapsed())
	})
}

func TestStopOfADaemon(t *testing.T) {
	play(t, "when work has finished", script{draining: time.Second}, func(s *stage) {
		s.stop(false)
		s.at(time.Millisecond)
		s.stop(false) // not forced either
		s.requiresEnd("1s drained", "1s note the stop", "1s interrupt within 2s")
	})
	play(t, "when it does not finish", script{draining: time.Hour}, func(s *stage) {
		s.stop(false)
		s.requiresEnd("15s drained in part", "15s note the stop", "15s interrupt within 2s")
	})
	play(t, "with force", script{draining: time.Hour}, func(s *stage) {
		s.stop(true)
		s.requiresEnd("0s note the stop", "0s interrupt within 2s")
	})
	play(t, "with force at last", script{draining: time.Hour}, func(s *stage) {
		s.stop(false)
		s.at(time.Second)
		s.stop(true)
		s.requiresEnd("1s drained in part", "1s note the stop", "1s interrupt within 2s")
	})
	play(t, "a signal hurries it", script{draining: time.Hour}, func(s *stage) {
		s.stop(false)
		s.at(time.Second)
		s.signal()
		s.requiresEnd("1s drained in part", "1s interrupt within 400ms")
	})
	play(t, "the files are lost meanwhile", script{draining: time.Hour}, func(s *stage) {
		s.stop(false)
		s.at(time.Second)
		close(s.loss)
		s.requiresEnd("1s drained in part", "1s note the stop", "1s interrupt within 2s")
	})
	play(t, "by a signal", script{}, func(s *stage) {
		s.at(time.Second)
		s.signal()
		s.requiresEnd("1s interrupt within 400ms")
	})
}
