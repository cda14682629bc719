package background

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCloseWaitsForEveryGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		var ended atomic.Int32
		for n := range 3 {
			require.True(t, g.Go(func() {
				time.Sleep(time.Duration(n) * time.Second)
				ended.Add(1)
			}))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, g.Close(ctx), context.DeadlineExceeded)
		assert.False(t, g.Go(func() { t.Error("a closed group starts nothing") }))
		require.NoError(t, g.Close(t.Context()))
		assert.EqualValues(t, 3, ended.Load())
		require.NoError(t, g.Close(t.Context()), "a second time")
	})
}

// Goroutines may call Go while another closes the group.
func TestGoBesideClose(t *testing.T) {
	for range 200 {
		var g Group
		var callers sync.WaitGroup
		var running atomic.Int32
		for range 4 {
			callers.Go(func() {
				g.Go(func() {
					running.Add(1)
					defer running.Add(-1)
				})
			})
		}
		require.NoError(t, g.Close(t.Context()))
		assert.Zero(t, running.Load())
		callers.Wait()
		assert.False(t, g.Go(func() {}))
	}
}
