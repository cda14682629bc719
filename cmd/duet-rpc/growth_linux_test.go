//go:build soak

package main_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A hub that has served many runs needs no more memory than one that has served some. The
// heap goes up and down with what is cached, so the lowest of many looks counts.
func TestAHubDoesNotGrowWithItsRuns(t *testing.T) {
	const (
		looks   = 48 // each after a batch of runs
		batch   = 504
		workers = 8
		growth  = 1.15 // of the last quarter, against the second one
	)
	s := newSite(t)
	s.watchdog = 15 * time.Minute
	s.agents("[agents.quick]\ndriver = \"command\"\ncommand = [\"true\", \"{prompt}\"]\n")
	c := s.start()
	hub := hubOf(t, c)
	lowest := [4]float64{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
	for look := range looks {
		var work sync.WaitGroup
		for range workers {
			work.Go(func() {
				for range batch / workers {
					assert.NoError(t, c.try("sendTask", object{"prompt": "p", "agent": "quick"}, nil))
				}
			})
		}
		work.Wait()
		anon := float64(memoryOf(t, hub, "RssAnon")) / (1 << 20)
		quarter := look * len(lowest) / looks
		lowest[quarter] = min(lowest[quarter], anon)
		t.Logf("%d runs: %.1f MB", (look+1)*batch, anon)
	}
	assert.Less(t, lowest[3], growth*lowest[1], "%.1f MB in each quarter at least", lowest)
}
