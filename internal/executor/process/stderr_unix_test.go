//go:build unix

package process_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// A slowReader is a log that holds up who reads a process's stderr until the process
// has ended, and a little longer.
type slowReader struct {
	slog.Handler
	once  sync.Once
	ended chan struct{}
}

func (s *slowReader) Handle(context.Context, slog.Record) error {
	s.once.Do(func() {
		<-s.ended
		time.Sleep(50 * time.Millisecond)
	})
	return nil
}

// What a process complained of last is known with its end, also if it is still in the
// pipe then.
func TestTheLastWordsOfAProcessAreWhole(t *testing.T) {
	for what, words := range map[string]func(*process.Process) string{
		"LastWords":     (*process.Process).LastWords,
		"LastComplaint": (*process.Process).LastComplaint,
		"ExitText":      (*process.Process).ExitText,
	} {
		t.Run(what, func(t *testing.T) {
			log := &slowReader{Handler: slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}), ended: make(chan struct{})}
			runner := process.NewRunner(t.Context(), slog.New(log), process.Grace{})
			defer runner.Close()
			p, err := runner.Start(process.Spec{
				Path: "/bin/sh", Argv: []string{"sh", "-c", `echo one >&2; read -r go; echo two >&2; exit 3`},
				CWD: t.TempDir(), Env: process.Environment{}, Stdin: true,
			})
			require.NoError(t, err)
			out, stop := p.Output()
			defer stop()
			<-p.Complained()
			_, err = p.Write([]byte("go\n"))
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, out)
			<-p.Done()
			close(log.ended)
			assert.Contains(t, words(p), "two")
		})
	}
}
