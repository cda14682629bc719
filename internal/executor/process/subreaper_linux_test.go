package process_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// TestMain makes the test binary a subreaper, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "subreaper" {
		if err := process.RunSubreaper(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// below starts a program under a subreaper. The test's end kills both.
func below(t *testing.T, argv ...string) (*process.Process, error) {
	t.Helper()
	runner := process.NewRunner(t.Context(), slog.New(slog.DiscardHandler), process.Grace{Interrupt: time.Millisecond, Terminate: time.Millisecond})
	t.Cleanup(func() {
		runner.Kill()
		runner.Close()
	})
	return runner.Start(process.Spec{
		Path: argv[0], Argv: argv, CWD: t.TempDir(), Env: process.NewEnvironment(), Merge: true,
		Subreaper: []string{"/proc/self/exe", "subreaper"},
	})
}

// output reads a process's output to its end, and waits for the end of the process.
func output(t *testing.T, p *process.Process) string {
	t.Helper()
	var text []byte
	p.ReadOutput(t.Context(), func(b []byte) { text = append(text, b...) })
	<-p.Done()
	return string(text)
}

func TestSubreaperReportsExit(t *testing.T) {
	for script, want := range map[string]string{
		"exit 3":              "3",
		"exit 200":            "200",
		"kill -TERM $$":       "143 SIGTERM",
		"kill -SEGV $$":       "139 SIGSEGV",
		"kill -KILL $$":       "137 SIGKILL",
		"kill -TERM 0; true":  "143 SIGTERM",
		"trap '' INT; exit 0": "0",
	} {
		t.Run(script, func(t *testing.T) {
			p, err := below(t, "/bin/sh", "-c", script)
			require.NoError(t, err)
			assert.Empty(t, output(t, p))
			code, signal := p.ExitStatus()
			assert.Equal(t, want, fmt.Sprint(code)+map[bool]string{true: " "}[signal != ""]+signal)
		})
	}
}

func TestSubreaperReportsFailedStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "no-program")
	testkit.Program(t, file, "words\n")
	_, err := below(t, file)
	require.ErrorIs(t, err, syscall.ENOEXEC)
	_, err = below(t, filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, syscall.ENOENT)
}

// After the end of a program no descendant is left, not even one that has left its group, its
// session and its environment.
func TestSubreaperKillsDescendants(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, p *process.Process, fifo string){
		"its program has ended": func(t *testing.T, _ *process.Process, fifo string) {
			require.NoError(t, os.WriteFile(fifo, []byte("\n"), 0))
		},
		"it is interrupted": func(_ *testing.T, p *process.Process, _ string) { p.Interrupt() },
		"it is killed":      func(_ *testing.T, p *process.Process, _ string) { p.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			held, finish := filepath.Join(dir, "held"), filepath.Join(dir, "end")
			require.NoError(t, syscall.Mkfifo(held, 0o600))
			require.NoError(t, syscall.Mkfifo(finish, 0o600))
			p, err := below(t, "/bin/sh", "-c", `trap '' TERM
env -i setsid sh -c 'trap "" INT TERM HUP; echo hidden; while :; do sleep 60; done' >`+held+` &
read word <`+finish)
			require.NoError(t, err)
			reader, err := os.Open(held)
			require.NoError(t, err)
			defer reader.Close()
			text := make([]byte, len("hidden\n"))
			_, err = io.ReadFull(reader, text)
			require.NoError(t, err)
			end(t, p, finish)
			output(t, p)
			require.NoError(t, reader.SetReadDeadline(time.Now().Add(time.Minute)))
			_, err = reader.Read(text)
			assert.ErrorIs(t, err, io.EOF, "a process holds the other side")
		})
	}
}
