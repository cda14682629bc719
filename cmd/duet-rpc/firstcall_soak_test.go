//go:build soak

package main_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first request that needs the hub waits for the daemon to start, and for a connection to it
// where one runs.
func TestFirstHubCall(t *testing.T) {
	fast, err := fastProgram()
	require.NoError(t, err)
	s := newDaemonSite(t)
	s.binary = fast
	const rounds = 20
	first := func() (took time.Duration) {
		editor := s.start()
		editor.call("ping", object{}, nil)
		began := time.Now()
		editor.call("task.stats", object{}, nil)
		took = time.Since(began)
		editor.leave()
		return took
	}
	var without, with []time.Duration
	for range rounds {
		without = append(without, first())
		with = append(with, first())
		_, err := s.command("daemon", "stop")
		require.NoError(t, err)
		s.daemonStays.Store(true)
	}
	slices.Sort(without)
	slices.Sort(with)
	t.Logf("no daemon: %v (%v to %v); a daemon: %v (%v to %v)", without[rounds/2], without[0], without[rounds-1], with[rounds/2], with[0], with[rounds-1])
	assert.Less(t, without[rounds/2], 120*time.Millisecond)
	assert.Less(t, with[rounds/2], 20*time.Millisecond)
}
