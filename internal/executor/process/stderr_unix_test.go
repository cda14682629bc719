//go:build unix

package process_test

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// A slowReader is a log handler that blocks the reader of a process's stderr until ended is
// closed.
type slowReader struct {
	slog.Handler
	once  sync.Once
	ended chan struct{}
}

func (s *slowReader) Handle(context.Context, slog.Record) error {
	s.once.Do(func() { <-s.ended })
	return nil
}

// After the end of a process its last words are complete, even with some still in the pipe: the
// call waits for the reader.
func TestLastWordsAreComplete(t *testing.T) {
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
			got := make(chan string, 1)
			go func() { got <- words(p) }()
			for range 1000 { // long enough for a call that does not wait
				runtime.Gosched()
			}
			assert.Empty(t, got, "the call waits")
			close(log.ended)
			assert.Contains(t, <-got, "two")
		})
	}
}
