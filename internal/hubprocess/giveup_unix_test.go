//go:build unix

package hubprocess

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain is also a daemon that never answers: it reports that it runs, and ends by a signal.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "daemon" {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		if os.WriteFile(os.Getenv("TEST_RUNS"), []byte(strconv.Itoa(os.Getpid())), 0o600) != nil {
			os.Exit(1)
		}
		<-ended
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A caller that is interrupted while a daemon starts leaves none behind.
func TestInterruptedStarterEndsDaemon(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	require.NoError(t, syscall.Mkfifo(runs, 0o600))
	t.Setenv("TEST_RUNS", runs)
	t.Setenv("DUET_STATE_HOME", filepath.Join(dir, "state"))
	s := &Settings{Root: dir, AnswerWithin: time.Minute}
	p, err := s.Project()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- EnsureDaemon(ctx, s, p) }()
	said, err := os.ReadFile(runs) // once it runs
	require.NoError(t, err)
	cancel()
	assert.ErrorIs(t, <-done, context.Canceled)
	pid, err := strconv.Atoi(string(said))
	require.NoError(t, err)
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "it has ended, and was waited for")
}
