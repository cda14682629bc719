//go:build unix

package e2e

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A Window is duet-rpc in a terminal of its own, in front of a user.
type Window struct {
	T       testing.TB
	Cmd     *exec.Cmd
	Keys    *os.File
	Printed *testkit.Text
	ended   chan struct{}
}

// Window runs duet-rpc in a new terminal.
func (s *Site) Window(cols, rows uint16, args ...string) *Window {
	s.T.Helper()
	return s.WindowIn(nil, cols, rows, args...)
}

// WindowIn runs duet-rpc in a new terminal, with more in its environment.
func (s *Site) WindowIn(environment []string, cols, rows uint16, args ...string) *Window {
	s.T.Helper()
	cmd := s.ShellCommand(args...)
	cmd.Env = append(append(cmd.Env, "TERM=xterm"), environment...)
	keys, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	require.NoError(s.T, err)
	w := &Window{T: s.T, Cmd: cmd, Keys: keys, Printed: &testkit.Text{}, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		_, _ = io.Copy(w.Printed, keys) // until EIO, when the last process has closed its side
		_ = cmd.Wait()
	}()
	s.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-w.ended
		keys.Close()
	})
	return w
}

// Types types a text.
func (w *Window) Types(text string) {
	w.T.Helper()
	_, err := io.WriteString(w.Keys, text)
	require.NoError(w.T, err)
}

// Shows waits until the window has printed the texts.
func (w *Window) Shows(texts ...string) {
	w.T.Helper()
	for _, text := range texts {
		w.Printed.AwaitPart(w.T, text)
	}
}

// Leaves waits for the end of the program and returns the exit status.
func (w *Window) Leaves() int {
	w.T.Helper()
	select {
	case <-w.ended:
	case <-time.After(Watchdog / 3):
		require.Fail(w.T, "the program does not end", w.Printed.String())
	}
	return w.Cmd.ProcessState.ExitCode()
}

// PrintedIn returns the output of a terminal in events. An event may end within a line.
func PrintedIn(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		var d struct{ Data string }
		if (e.Type == "terminal.output" || e.Type == "terminal_output") && json.Unmarshal(e.Raw, &d) == nil {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// Escape begins a colour sequence.
const Escape = "\x1b["

// A Terminal is a pseudo-terminal in raw mode. The test types into Ours, and Printed collects the
// programs' output on Theirs.
type Terminal struct {
	Ours, Theirs *os.File
	Printed      *testkit.Text
	modes        *term.State // before a program has the terminal
}

// IsRestored asserts that the terminal has the modes with which OpenTerminal returned it.
func (t Terminal) IsRestored(tb testing.TB) {
	tb.Helper()
	now, err := term.GetState(int(t.Theirs.Fd()))
	require.NoError(tb, err)
	assert.Equal(tb, t.modes, now, "the modes of the terminal")
}

// OpenTerminal opens a pseudo-terminal, which the test's end closes.
func OpenTerminal(t *testing.T) Terminal {
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	_, err = term.MakeRaw(int(theirs.Fd()))
	require.NoError(t, err)
	modes, err := term.GetState(int(theirs.Fd()))
	require.NoError(t, err)
	printed := &testkit.Text{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(printed, ours)
	}()
	t.Cleanup(func() {
		theirs.Close()
		ours.Close()
		<-done
	})
	return Terminal{ours, theirs, printed, modes}
}
