package hub

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

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
