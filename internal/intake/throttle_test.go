package intake

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// slowExecutor takes its time to pause or resume, and may fail to.
type slowExecutor struct {
	pause, resume func() (time.Duration, error)

	mu       sync.Mutex
	shut     bool
	busy     bool
	reported int
}

func (l *slowExecutor) tell(ctx context.Context, shut bool, how func() (time.Duration, error)) error {
	var took time.Duration
	var err error
	l.mu.Lock()
	if l.busy {
		panic("two notifications at once")
	}
	l.busy = true
	l.reported++
	if how != nil {
		took, err = how()
	}
	l.mu.Unlock()
	select {
	case <-time.After(took):
	case <-ctx.Done():
		err = ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	if err == nil {
		l.shut = shut
	}
	return err
}

func (l *slowExecutor) PauseNotifications(ctx context.Context) error {
	return l.tell(ctx, true, l.pause)
}

func (l *slowExecutor) ResumeNotifications(ctx context.Context) error {
	return l.tell(ctx, false, l.resume)
}

func (l *slowExecutor) isShut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shut
}

// times returns the number of calls so far.
func (l *slowExecutor) times() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reported
}

func slowly(d time.Duration) func() (time.Duration, error) {
	return func() (time.Duration, error) { return d, nil }
}

// An executor that pauses late, when it may already resume, resumes.
func TestAnExecutorThatIsToldLateIsNotLeftShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, x := newDesk(t), &slowExecutor{pause: slowly(500 * time.Millisecond)}
		defer d.Join(x)()
		d.disk.held = true
		for range highWater {
			d.report(t, 0, "x")
		}
		time.Sleep(10 * time.Millisecond)
		d.disk.release() // during the call
		time.Sleep(time.Minute)
		assert.False(t, x.isShut(), "its reports have long been kept")
		assert.Equal(t, 2, x.times(), "it was paused and resumed")
	})
}

func TestTheLastThatIsToldCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		ctx, cancel := context.WithCancel(context.Background())
		th := newThrottle(ctx, slog.New(slog.DiscardHandler))
		how := func() (time.Duration, error) { // called with the lease's lock held, by one goroutine at a time
			return time.Duration(rand.IntN(500)) * time.Millisecond, map[bool]error{true: errors.New("not now")}[rand.IntN(4) == 0]
		}
		type joined struct {
			*slowExecutor
			leave func()
		}
		var all []joined
		join := func() {
			l := &slowExecutor{pause: how, resume: how}
			all = append(all, joined{l, th.join(l)})
		}
		settled := func(shut bool) {
			t.Helper()
			time.Sleep(time.Minute)
			for _, l := range all {
				assert.Equal(t, shut, l.isShut())
			}
		}
		join()
		for range 200 {
			shut := false
			for range random.IntN(30) {
				shut = random.IntN(2) == 0
				th.set(shut)
				switch random.IntN(10) {
				case 0:
					join()
				case 1:
					if len(all) > 1 {
						all[0].leave()
						assert.False(t, all[0].busy, "it is notified no more")
						all = all[1:]
					}
				}
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
			th.set(shut)
			settled(shut)
		}
		th.set(true)
		settled(true)
		join() // a new executor gets the current state
		settled(true)
		th.set(false)
		settled(false)
		// Fast changes cause few calls.
		l := &slowExecutor{pause: slowly(time.Second), resume: slowly(time.Second)}
		leave := th.join(l)
		for range 1000 {
			th.set(true)
			th.set(false)
		}
		time.Sleep(time.Minute)
		assert.LessOrEqual(t, l.times(), 2)
		assert.False(t, l.isShut())
		th.set(true)
		leave() // during the call
		assert.False(t, l.busy)
		for _, l := range all {
			l.leave()
		}
		cancel()
	})
}

func TestNobodyIsToldAfterTheHubHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		th := newThrottle(ctx, slog.New(slog.DiscardHandler))
		l := &slowExecutor{pause: func() (time.Duration, error) { return 0, errors.New("never") }}
		leave := th.join(l)
		th.set(true)
		time.Sleep(time.Minute)
		assert.Greater(t, l.times(), 10, "it is tried again")
		assert.Less(t, l.times(), 100, "but not without a pause")
		cancel()
		synctest.Wait()
		reported := l.times()
		th.set(false)
		time.Sleep(time.Minute)
		assert.Equal(t, reported, l.times())
		leave()
	})
}
