//go:build unix && soak

package main_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// restartWithin is how long a process that follows a killed one may take to
// its first reply from the store.
const restartWithin = 100 * time.Millisecond

// A project with a history is served again at once after a kill.
//
// It is the program as it is shipped: the race detector makes it several times
// slower. It does not run in parallel with other tests.
func TestRestartServesAtOnce(t *testing.T) {
	fast, err := fastProgram()
	require.NoError(t, err)
	start := func(s *site) (*client, time.Duration) {
		l := s.launch()
		l.binary = fast
		began := time.Now()
		c := newClient(l.start(t))
		c.call("task.stats", object{}, nil)
		return c, time.Since(began)
	}
	s := newSite(t)
	c, _ := start(s)
	c.subscribe()
	for range 30 { // each with an agent of its own, which a crash leaves to be looked for
		c.awaitEnd(c.launch("stream:2000 tools:20", "").SessionID)
	}
	var took, empty []time.Duration
	for range 15 {
		c.launch("permit:1", "")
		c.launch("stream:1000000", "")
		c.launch("tools:1000000", "")
		c.subscribe()
		c.await("text", func(e event) bool { return e.Type == "message_delta" })
		c.crash()
		var d time.Duration
		c, d = start(s)
		took = append(took, d.Round(100*time.Microsecond))

		another, d := start(newSite(t)) // in a project that has no history yet
		another.leave()
		empty = append(empty, d.Round(100*time.Microsecond))
	}
	c.leave()
	slices.Sort(took)
	slices.Sort(empty)
	median := len(took) / 2
	t.Logf("until the first reply from the store: new median %v; after a kill median %v, worst %v", empty[median], took[median], took[len(took)-1])
	// How long a start takes at all depends on what else the machine does.
	assert.Less(t, took[median], max(restartWithin, 4*empty[median]))
}
