//go:build unix

package config_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

func TestFetchEndsWhatItStarted(t *testing.T) {
	const patience = time.Minute
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fetched, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		script := "exec 3>'" + fifo + "'; sleep 60 & echo >&3; wait"
		_, err := config.Key{Command: []string{"sh", "-c", script}}.Fetch(ctx, nil)
		fetched <- err
	}()
	alive, err := os.Open(fifo) // waits for the command to open it
	require.NoError(t, err)
	defer alive.Close()
	_, err = alive.Read(make([]byte, 1)) // sleep has started
	require.NoError(t, err)
	go func() {
		// It ends when the last process that has it open has ended.
		_, err := io.Copy(io.Discard, alive)
		ended <- err
	}()
	cancel()
	for what, done := range map[string]chan error{"Fetch": fetched, "what the command started": ended} {
		select {
		case err := <-done:
			if done == fetched {
				assert.ErrorIs(t, err, context.Canceled)
			}
		case <-time.After(patience):
			t.Errorf("%s has not ended", what)
		}
	}
}

func TestKeyCommandHasALimit(t *testing.T) {
	key := config.Key{Command: []string{"sh", "-c", "echo " + secret + "; test -z \"$DUET_TEST_SLOW\" || sleep 60"}}
	got, err := key.RunFor(t.Context(), time.Minute)
	require.NoError(t, err)
	assert.Equal(t, secret+"\n", got)

	t.Setenv("DUET_TEST_SLOW", "1")
	got, err = key.RunFor(t.Context(), 50*time.Millisecond)
	assert.EqualError(t, err, "the command sh took longer than 50ms")
	assert.Empty(t, got)
}
