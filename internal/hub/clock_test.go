package hub

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
)

// A wallClock is a system clock that a test sets. Timers do not follow it.
type wallClock struct{ off atomic.Int64 }

// set sets the clock back, or forward.
func (c *wallClock) set(by time.Duration) { c.off.Add(int64(by)) }

func (c *wallClock) option(o *Options) {
	o.Now = func() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }
	withoutPolling(o)
}

// A bypass is no longer than its time when the clock is set back, also before the process starts again.
func TestBypassEndsAlthoughTheClockWasSetBack(t *testing.T) {
	for name, restart := range map[string]bool{"in a process": false, "and started again": true} {
		t.Run(name, func(t *testing.T) {
			file := database(t)
			synctest.Test(t, func(t *testing.T) {
				clock := new(wallClock)
				h := openHub(t, file, askOnce, clock.option)
				first := launchIn(t, h, "a", "p")
				synctest.Wait()
				yes, minute := true, time.Minute
				must(h.Settings().Update(context.Background(), first.SessionID, threadsettings.Change{SkipPermissions: &yes, SkipPermissionsTimeout: &minute}))(t)
				assert.Equal(t, "yes mode=bypassPermissions", await(t, h, first).Result)
				time.Sleep(30 * time.Second)
				clock.set(-5 * time.Hour)
				if restart {
					require.NoError(t, h.Close())
					h = openHub(t, file, askOnce, clock.option)
				}
				assert.Equal(t, "yes mode=bypassPermissions", await(t, h, launchIn(t, h, "a", "p")).Result)
				time.Sleep(time.Minute)
				launchIn(t, h, "a", "p")
				pendingOf(t, h, 1)
			})
		})
	}
}
