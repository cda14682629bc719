package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A script is what becomes of what a life does with its parts.
type script struct {
	claimErr error
	openErr  error
	opening  time.Duration // how long it takes to open the hub
	draining time.Duration // how long work takes to finish
	gone     bool          // the project is
	idleFor  time.Duration // without clients it may be, as a daemon
	working  time.Duration // how long the hub has something to do
	client   time.Duration // when the last client leaves
	alone    bool          // work is interrupted then
	other    bool          // all clients are of another build
	comes    bool          // another client comes when the sockets are closed
}

// played are parts that note what a life does with them, and when.
type played struct {
	began   time.Time
	elapsed func() time.Duration // of the bubble, since then

	mu sync.Mutex // guards the fields below
	script
	did   []string
	had   bool // the lock is
	meets chan struct{}
	hubs  []*playedHub
}

type playedHub struct {
	parts *played
	loss  chan struct{}
}

func (p *played) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.did = append(p.did, fmt.Sprintf("%v %s", p.elapsed(), fmt.Sprintf(format, args...)))
}

// claims sets what becomes of the next claim.
func (p *played) claims(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimErr = err
}

// opens sets what becomes of the next opening.
func (p *played) opens(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openErr = err
}

func (p *played) claim(context.Context) (bool, error) {
	p.mu.Lock()
	err, had := p.claimErr, p.had
	p.had = err == nil
	p.mu.Unlock()
	if had && err == nil {
		return false, nil
	}
	p.note("claim: %v", err)
	return err == nil, err
}

func (p *played) release(why error) {
	p.mu.Lock()
	p.had = false
	p.mu.Unlock()
	p.note("release: %v", why)
}

func (p *played) exists() bool { return !p.gone }

func (p *played) listen() error {
	p.note("listen")
	return nil
}

func (p *played) unlisten(all bool) {
	p.note("unlisten: %v", all)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.comes {
		p.client, p.comes = time.Since(p.began), false
	}
}

func (p *played) open(context.Context) (*playedHub, error) {
	time.Sleep(p.opening)
	p.mu.Lock()
	err := p.openErr
	p.mu.Unlock()
	p.note("open: %v", err)
	if err != nil {
		return nil, err
	}
	h := &playedHub{p, make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hubs = append(p.hubs, h)
	return h, nil
}

func (p *played) idleAfter() time.Duration { return p.idleFor }

func (p *played) superseded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.other
}

func (p *played) met() <-chan struct{} { return p.meets }

func (p *played) interruptsAlone() bool { return p.alone }

func (h *playedHub) interruptWork(context.Context) { h.parts.note("interrupt work") }

func (p *played) vacantFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.elapsed()-p.client)
}

func (h *playedHub) idle(context.Context) bool {
	h.parts.note("look")
	return h.parts.elapsed() >= h.parts.working
}

func (p *played) noteStop()                   { p.note("note the stop") }
func (p *played) unavailable(err error) error { return fmt.Errorf("unavailable: %w", err) }

func (h *playedHub) lost() <-chan struct{} { return h.loss }

func (h *playedHub) drain(ctx context.Context) {
	select {
	case <-time.After(h.parts.draining):
		h.parts.note("drained")
	case <-ctx.Done():
		h.parts.note("drained in part")
	}
}

func (h *playedHub) interrupt(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	h.parts.note("interrupt within %v", time.Until(deadline))
}

func (h *playedHub) close(context.Context) { h.parts.note("close") }

// stage is a life of played parts, in a bubble with a clock of its own.
type stage struct {
	*played
	*life[*playedHub]
	t      *testing.T
	signal context.CancelFunc
}

func play(t *testing.T, name string, with script, scene func(s *stage)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{played: &played{script: with}, t: t}
			s.began = time.Now()
			s.elapsed = func() time.Duration { return time.Since(s.began) }
			s.life = newLife(s.played, slog.New(slog.DiscardHandler))
			var ctx context.Context
			ctx, s.signal = context.WithCancel(t.Context())
			s.had = with.claimErr == nil
			go s.run(ctx)
			scene(s)
			s.end()
			<-s.over
		})
	})
}

// at goes on to a time after the beginning.
func (s *stage) at(d time.Duration) {
	time.Sleep(d - time.Since(s.began))
	synctest.Wait()
}

// requires compares what was done since the last time.
func (s *stage) requires(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, want, s.did)
	s.did = nil
}

// forget forgets what was done.
func (s *stage) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = nil
}

// requiresEnd waits for the end and compares what was done until then.
func (s *stage) requiresEnd(want ...string) {
	s.t.Helper()
	<-s.over
	s.requires(want...)
	require.Error(s.t, s.ctx.Err(), "who is connected is told by that")
}

func (s *stage) ask() error {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Hour)
	defer cancel()
	_, err := s.attempts.get(ctx)
	return err
}

func (s *stage) lose() { close(s.hubs[len(s.hubs)-1].loss) }

func TestBeginningOfALife(t *testing.T) {
	play(t, "nobody needs the hub", script{}, func(s *stage) {
		s.at(9 * time.Millisecond)
		s.requires()
		s.at(time.Second)
		s.requires("10ms listen", "100ms listen", "100ms open: <nil>")
	})
	play(t, "it is needed at once", script{}, func(s *stage) {
		require.NoError(s.t, s.ask())
		s.requires("0s listen", "0s open: <nil>")
		s.at(time.Hour)
		s.requires()
	})
	play(t, "it is needed soon", script{}, func(s *stage) {
		s.at(20 * time.Millisecond)
		require.NoError(s.t, s.ask())
		s.requires("10ms listen", "20ms listen", "20ms open: <nil>")
	})
	play(t, "who asks waits no longer than it wants", script{opening: time.Minute}, func(s *stage) {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		defer cancel()
		_, err := s.attempts.get(ctx)
		require.ErrorIs(s.t, err, context.DeadlineExceeded)
		require.NoError(s.t, s.ask())
		s.requires("0s listen", "1m0s open: <nil>")
	})
}

func TestADaemonEndsThatIsNotNeeded(t *testing.T) {
	play(t, "it had no client", script{idleFor: 15 * time.Minute}, func(s *stage) {
		s.requiresEnd("10ms listen", "100ms listen", "100ms open: <nil>",
			"15m0s look", "15m0s unlisten: false", "15m0s look", "15m0s close", "15m0s release: "+errEnding.Error())
	})
	play(t, "its last client leaves, and work goes on", script{idleFor: 15 * time.Minute, client: time.Hour, working: 80 * time.Minute}, func(s *stage) {
		s.at(time.Hour)
		s.forget()
		s.requiresEnd("1h15m0s look", "1h16m0s look", "1h17m0s look", "1h18m0s look", "1h19m0s look",
			"1h20m0s look", "1h20m0s unlisten: false", "1h20m0s look", "1h20m0s close", "1h20m0s release: "+errEnding.Error())
	})
	play(t, "all its clients are of another build", script{idleFor: time.Hour, client: 2 * time.Hour, working: 2500 * time.Millisecond, other: true}, func(s *stage) {
		s.requiresEnd("10ms listen", "100ms listen", "100ms open: <nil>", "1.1s look", "2.1s look", "3.1s look", "3.1s unlisten: false",
			"3.1s look", "3.1s close", "3.1s release: "+errEnding.Error())
	})
	play(t, "a client comes at the last moment", script{idleFor: time.Minute, comes: true}, func(s *stage) {
		s.at(61 * time.Second)
		s.requires("10ms listen", "100ms listen", "100ms open: <nil>", "1m0s look", "1m0s unlisten: false", "1m0s listen")
		require.NoError(s.t, s.ask())
	})
	play(t, "its hub cannot be opened", script{idleFor: time.Minute, openErr: errors.New("broken")}, func(s *stage) {
		s.requiresEnd("10ms listen", "100ms listen", "100ms open: broken", "1m0s unlisten: false", "1m0s release: "+errEnding.Error())
	})
	play(t, "work is interrupted before", script{idleFor: 3 * time.Minute, alone: true, client: 30 * time.Second}, func(s *stage) {
		s.requiresEnd("10ms listen", "100ms listen", "100ms open: <nil>", "1m30s interrupt work", "2m30s interrupt work", "3m30s interrupt work",
			"3m30s look", "3m30s unlisten: false", "3m30s look", "3m30s close", "3m30s release: "+errEnding.Error())
	})
	play(t, "work is interrupted, and it stays", script{alone: true, client: time.Hour}, func(s *stage) {
		s.at(61*time.Minute + time.Second)
		s.requires("10ms listen", "100ms listen", "100ms open: <nil>", "1h1m0s interrupt work")
	})
	play(t, "it never ends by itself", script{}, func(s *stage) {
		s.at(1000 * time.Hour)
		s.requires("10ms listen", "100ms listen", "100ms open: <nil>")
	})
}

// A failure is believed for a second; then whoever needs the hub has it tried
// again, and nobody else.
func TestFailureOfALife(t *testing.T) {
	broken := errors.New("broken")
	play(t, "of the hub", script{openErr: broken}, func(s *stage) {
		require.ErrorIs(s.t, s.ask(), broken)
		s.requires("0s listen", "0s open: broken")
		s.at(openAgainAfter)
		require.EqualError(s.t, s.ask(), "unavailable: broken")
		s.requires()
		s.at(time.Hour)
		s.requires()
		s.opens(nil)
		require.NoError(s.t, s.ask())
		s.requires("1h0m0s listen", "1h0m0s open: <nil>")
	})
	play(t, "a need that was served is none", script{openErr: broken}, func(s *stage) {
		require.ErrorIs(s.t, s.ask(), broken)
		s.forget()
		s.attempts.needed <- struct{}{} // of who came when the attempt was about to begin
		s.at(time.Hour)
		s.requires()
	})
	play(t, "of the hub, and then the end", script{openErr: broken}, func(s *stage) {
		require.ErrorIs(s.t, s.ask(), broken)
		s.end()
		<-s.over
		s.at(time.Minute)
		require.ErrorIs(s.t, s.ask(), broken, "nobody will open it any more")
	})
	play(t, "of the claim", script{claimErr: broken}, func(s *stage) {
		require.ErrorIs(s.t, s.ask(), broken)
		s.requires("0s claim: broken")
		s.claims(nil)
		s.at(2 * time.Second)
		require.NoError(s.t, s.ask())
		s.requires("2s claim: <nil>", "2s unlisten: true", "2s listen", "2s open: <nil>")
	})
	play(t, "another process has claimed it meanwhile", script{claimErr: broken}, func(s *stage) {
		require.ErrorIs(s.t, s.ask(), broken)
		s.claims(&project.HeldError{PID: 7})
		s.at(2 * time.Second)
		require.ErrorAs(s.t, s.ask(), new(*project.HeldError))
		s.requiresEnd("0s claim: broken", "2s claim: process 7 holds ", "2s release: "+errEnding.Error())
	})
}

func TestLossOfTheFiles(t *testing.T) {
	lose := func(s *stage) {
		require.NoError(s.t, s.ask())
		s.at(time.Minute)
		s.requires("0s listen", "0s open: <nil>")
		s.lose()
		synctest.Wait()
		s.requires("1m0s unlisten: false", "1m0s close", fmt.Sprint("1m0s release: ", errLost))
		require.ErrorIs(s.t, s.ask(), errLost)
	}
	play(t, "they are there again", script{}, func(s *stage) {
		lose(s)
		s.at(time.Minute + claimAgainAfter - 1)
		require.ErrorIs(s.t, s.ask(), errLost)
		s.at(time.Minute + claimAgainAfter)
		require.NoError(s.t, s.ask())
		s.requires("1m0.3s claim: <nil>", "1m0.3s unlisten: true", "1m0.3s listen", "1m0.3s open: <nil>")
		s.lose() // and so it goes on
		synctest.Wait()
		s.requires("1m0.3s unlisten: false", "1m0.3s close", fmt.Sprint("1m0.3s release: ", errLost))
	})
	play(t, "who has seen a hub go is told of the next one", script{}, func(s *stage) {
		require.NoError(s.t, s.ask())
		lost := s.hubs[0]
		at := make(chan time.Duration, 1)
		go func() {
			hub, err := s.attempts.next(s.t.Context(), func(h *playedHub) bool { return h == lost })
			assert.NoError(s.t, err)
			assert.NotSame(s.t, lost, hub)
			at <- time.Since(s.began)
		}()
		s.at(time.Minute)
		assert.Empty(s.t, at, "it is still there")
		s.opens(errors.New("not whole yet"))
		s.lose()
		s.at(time.Minute + 10*time.Second)
		s.opens(nil)
		s.forget()
		next := time.Minute + claimAgainAfter
		for next <= time.Minute+10*time.Second {
			next += openAgainAfter + time.Millisecond
		}
		assert.Equal(s.t, next, <-at, "it is tried again as soon as the last failure is not believed any more")
	})
	play(t, "who waits for the next hub waits no longer than it wants", script{}, func(s *stage) {
		lose(s)
		ctx, cancel := context.WithTimeout(s.t.Context(), claimAgainAfter/2)
		defer cancel()
		_, err := s.attempts.next(ctx, func(*playedHub) bool { return false })
		require.ErrorIs(s.t, err, context.DeadlineExceeded)
		hub, err := s.attempts.next(s.t.Context(), func(*playedHub) bool { return false })
		require.NoError(s.t, err)
		assert.Same(s.t, s.hubs[1], hub)
		assert.Equal(s.t, time.Minute+claimAgainAfter, time.Since(s.began))
	})
	play(t, "the project has gone", script{gone: true}, func(s *stage) {
		lose(s)
		s.requiresEnd("1m0.3s release: " + errEnding.Error())
	})
	play(t, "another process is the hub now", script{}, func(s *stage) {
		lose(s)
		s.claims(&project.HeldError{PID: 7})
		s.requiresEnd("1m0.3s claim: process 7 holds ", "1m0.3s release: "+errEnding.Error())
	})
	play(t, "they cannot be used yet", script{}, func(s *stage) {
		lose(s)
		s.claims(errors.New("no room"))
		s.at(2 * time.Minute)
		s.requires("1m0.3s claim: no room")
		s.claims(nil)
		require.NoError(s.t, s.ask())
		s.requires("2m0s claim: <nil>", "2m0s unlisten: true", "2m0s listen", "2m0s open: <nil>")
	})
}

func TestStopOfALife(t *testing.T) {
	serve := func(s *stage) {
		require.NoError(s.t, s.ask())
		s.requires("0s listen", "0s open: <nil>")
	}
	play(t, "when work has finished", script{draining: time.Second}, func(s *stage) {
		serve(s)
		s.stop(false)
		s.at(time.Millisecond)
		s.stop(false) // no hurry either
		s.requiresEnd("1s drained", "1s note the stop", "1s interrupt within 2s", "1s close", "1s release: "+errEnding.Error())
	})
	play(t, "when it does not finish", script{draining: time.Hour}, func(s *stage) {
		serve(s)
		s.stop(false)
		s.requiresEnd("15s drained in part", "15s note the stop", "15s interrupt within 2s", "15s close", "15s release: "+errEnding.Error())
	})
	play(t, "with force", script{draining: time.Hour}, func(s *stage) {
		serve(s)
		s.stop(true)
		s.requiresEnd("0s note the stop", "0s interrupt within 2s", "0s close", "0s release: "+errEnding.Error())
	})
	play(t, "with force at last", script{draining: time.Hour}, func(s *stage) {
		serve(s)
		s.stop(false)
		s.at(time.Second)
		s.stop(true)
		s.requiresEnd("1s drained in part", "1s note the stop", "1s interrupt within 2s", "1s close", "1s release: "+errEnding.Error())
	})
	play(t, "a signal hurries it", script{draining: time.Hour}, func(s *stage) {
		serve(s)
		s.stop(false)
		s.at(time.Second)
		s.signal()
		s.requiresEnd("1s drained in part", "1s interrupt within 400ms", "1s close", "1s release: "+errEnding.Error())
	})
	play(t, "the files are lost meanwhile", script{draining: time.Hour}, func(s *stage) {
		serve(s)
		s.stop(false)
		s.at(time.Second)
		s.lose()
		s.requiresEnd("1s drained in part", "1s note the stop", "1s interrupt within 2s", "1s close", "1s release: "+errEnding.Error())
	})
	play(t, "while the hub is being opened", script{opening: time.Minute}, func(s *stage) {
		s.attempts.want()
		s.at(time.Second)
		s.stop(false)
		synctest.Wait()
		require.Error(s.t, s.ctx.Err(), "it is not waited for by who is connected")
		s.requiresEnd("0s listen", "1s note the stop", "1m0s open: <nil>", "1m0s close", "1m0s release: "+errEnding.Error())
	})
}

// A signal, and that nobody is there any more, end a life in whatever state it is.
func TestEndOfALifeInEveryState(t *testing.T) {
	for _, c := range []struct {
		state  string
		with   script
		to     func(s *stage)
		signal []string // what is done after a signal, but for the release
		alone  []string // when it is closed
	}{
		{state: "starting", to: func(*stage) {}},
		{
			state: "opening", with: script{opening: time.Second}, to: func(s *stage) { s.attempts.want() },
			signal: []string{"open: <nil>", "close"}, alone: []string{"open: <nil>", "close"},
		},
		{state: "unavailable", with: script{openErr: errors.New("broken")}, to: func(s *stage) { _ = s.ask() }},
		{
			state: "serving", to: func(s *stage) { _ = s.ask() },
			signal: []string{"interrupt within 400ms", "close"}, alone: []string{"close"},
		},
		{state: "losing", to: func(s *stage) {
			_ = s.ask()
			s.lose()
		}},
	} {
		for name, end := range map[string]func(s *stage) []string{
			"signal": func(s *stage) []string { s.signal(); return c.signal },
			"close":  func(s *stage) []string { s.end(); return c.alone },
		} {
			play(t, c.state+", "+name, c.with, func(s *stage) {
				c.to(s)
				synctest.Wait()
				s.forget()
				want := append(end(s), "release: "+errEnding.Error())
				<-s.over
				var did []string
				for _, one := range s.did {
					_, what, _ := strings.Cut(one, " ")
					did = append(did, what)
				}
				assert.Equal(s.t, want, did)
				if len(s.hubs) == 0 && c.state != "unavailable" {
					assert.ErrorIs(s.t, s.ask(), errEnding)
				}
			})
		}
	}
}
