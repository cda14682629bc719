//go:build unix

package process_test

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// A program traps signals also if nohup, or the & of a shell, has started Duet.
func TestChildrenDoNotInheritIgnoredSignals(t *testing.T) {
	signals := []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}
	signal.Ignore(signals...)
	defer signal.Reset(signals...)
	runner := process.NewRunner(t.Context(), slog.New(slog.DiscardHandler), process.Grace{})
	defer runner.Close()
	p, err := runner.Start(process.Spec{
		Path: "/bin/sh", Argv: []string{"sh", "-c", `n=0; trap 'n=$((n+1))' HUP INT QUIT; kill -HUP $$; kill -INT $$; kill -QUIT $$; exit $n`},
		CWD: t.TempDir(), Env: process.Environment{},
	})
	require.NoError(t, err)
	_, stop := p.Output()
	defer stop()
	<-p.Done()
	code, _ := p.ExitStatus()
	assert.Equal(t, 3, code)
}
