//go:build unix

package main_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

const escape = "\x1b[" // how colour begins

// terminal is a pseudo-terminal: what a user types goes into ours and what
// programs print on theirs is kept in printed. Bytes pass as they are.
type terminal struct {
	ours, theirs *os.File
	printed      *testkit.Text
}

func openTerminal(t *testing.T) terminal {
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	_, err = term.MakeRaw(int(theirs.Fd()))
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
	return terminal{ours, theirs, printed}
}

func TestOnATerminalItPrintsHelp(t *testing.T) {
	tty := openTerminal(t)
	p := launch{stdin: tty.theirs}.start(t)
	help, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	p.requireSuccess()
	assert.Contains(t, string(help), "Usage:")
	assert.NotContains(t, string(help), escape)
	assert.Empty(t, p.log.String())
}

func TestOnATerminalItServesWhenTold(t *testing.T) {
	for _, args := range [][]string{{"--stdio"}, {"serve"}, {"serve", "--stdio"}} {
		tty := openTerminal(t)
		p := launch{args: args, stdin: tty.theirs}.start(t)
		_, err := tty.ours.WriteString(framed(after))
		require.NoError(t, err)
		assert.Equal(t, afterServed, p.next())
		_, err = tty.ours.WriteString(framed(`{"jsonrpc":"2.0","method":"exit"}`))
		require.NoError(t, err)
		assert.Empty(t, p.rest())
		p.requireSuccess()
	}
}

// A person may type a frame: the terminal's driver hands over whole lines, and
// ^D ends the input.
func TestOnATerminalAFrameCanBeTyped(t *testing.T) {
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	defer ours.Close()
	defer theirs.Close()
	p := launch{args: []string{"--stdio"}, stdin: theirs}.start(t)
	_, err = ours.WriteString("Content-Length: 66\r\r" + after + "\r")
	require.NoError(t, err)
	assert.Equal(t, afterServed, p.next())
	_, err = ours.WriteString("\x04")
	require.NoError(t, err)
	assert.Empty(t, p.rest())
	p.requireSuccess()
}

// Frames go to a terminal as they would go into a pipe.
func TestFramesOnATerminalHaveNoColour(t *testing.T) {
	tty := openTerminal(t)
	p := launch{stdout: tty.theirs}.start(t)
	p.send(framed(after))
	tty.printed.Await(t, func(text string) bool { return text == framed(afterServed) }, "the reply")
	p.closeStdin()
	p.requireSuccess()
	assert.Equal(t, framed(afterServed), tty.printed.String())
}

func TestLogIsColouredOnATerminalAlone(t *testing.T) {
	for _, c := range []struct {
		name     string
		launch   launch
		coloured bool
	}{
		{"as it is", launch{}, true},
		{"--no-color", launch{args: []string{"--no-color"}}, false},
		{"--no-color=false", launch{args: []string{"--no-color=false"}}, true},
		{"NO_COLOR", launch{env: []string{"NO_COLOR=1"}}, false},
		{"NO_COLOR=0 is set too", launch{env: []string{"NO_COLOR=0"}}, false},
		{"an empty NO_COLOR is none", launch{env: []string{"NO_COLOR="}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tty := openTerminal(t)
			c.launch.stderr = tty.theirs
			p := c.launch.start(t)
			p.requireServing()
			p.finish()
			tty.printed.AwaitPart(t, "stopped")
			assert.Contains(t, tty.printed.String(), "started")
			assert.Equal(t, c.coloured, contains(tty.printed, escape), "%q", tty.printed)
		})
	}
	t.Run("a pipe", func(t *testing.T) {
		p := run(t)
		p.requireServing()
		p.finish()
		assert.Contains(t, p.log.String(), "msg=stopped")
		assert.NotContains(t, p.log.String(), escape)
	})
	t.Run("a file, though standard error is a terminal", func(t *testing.T) {
		tty := openTerminal(t)
		path := t.TempDir() + "/log"
		p := launch{stderr: tty.theirs, env: []string{"DUET_RPC_LOG=" + path}}.start(t)
		p.requireServing()
		p.finish()
		log := readFile(t, path)
		assert.Contains(t, log, "msg=stopped")
		assert.NotContains(t, log, escape)
		assert.Empty(t, tty.printed.String())
	})
}

// Whatever the log says of a peer's bytes, they must not steer the terminal.
func TestLogOnATerminalEscapesWhatAPeerSent(t *testing.T) {
	tty := openTerminal(t)
	p := launch{args: []string{"--no-color", "--log-level", "debug"}, stderr: tty.theirs}.start(t)
	p.send(framed(`{"jsonrpc":"2.0","method":"\u001b[2Jnosuch\r\n\u0007"}`))
	p.send(framed(`{"jsonrpc":"2.0","id":"\u001b[2J","result":1}`))
	p.requireServing()
	p.finish()
	tty.printed.AwaitPart(t, "stopped")
	assert.Contains(t, tty.printed.String(), "nosuch")
	assert.NotContains(t, tty.printed.String(), "\x1b")
	assert.NotContains(t, tty.printed.String(), "\x07")
}

// With DUET_RPC_DEBUG=1, or AIWG's AIWG_IPC_DEBUG=1, every message is in the
// log, whatever its level, without the secrets in it; also in that of a process
// which is attached, and between hub and executor.
func TestLogHasEveryMessageIfAsked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"DUET_RPC_DEBUG", "AIWG_IPC_DEBUG"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.env = append(s.env, name+"=1", "DUET_RPC_LOG_LEVEL=error")
			hub := s.open()
			hub.runs("quiet")
			attached := s.start()
			require.Equal(t, hubOf(t, hub), hubOf(t, attached))
			for _, c := range []*client{attached, hub} {
				_ = c.try("secret.provide", object{"request_id": "r", "secret": secret}, nil)
				_ = c.try("get_execution_context", object{"session_token": secret}, nil)
				c.leave()
				log := c.log.String()
				assert.Contains(t, log, `msg=received`)
				assert.Contains(t, log, `msg=sent`)
				assert.Regexp(t, `received.*\\"method\\":\\"secret\.provide\\"`, log)
				assert.Regexp(t, `\\"request_id\\":\\"r\\".*\(redacted\)|\(redacted\).*\\"request_id\\":\\"r\\"`, log)
				assert.NotContains(t, log, secret)
			}
			daemon := readFile(t, filepath.Join(s.state(), "daemon.log"))
			assert.Regexp(t, `msg=sent peer="executor \d+".*execute_prompt`, daemon)
			assert.NotContains(t, daemon, secret)
			assert.NotRegexp(t, `session_token\\":\\"[^(]`, hub.log.String(), "of executors")
		})
	}
	s := newSite(t)
	c := s.start()
	_ = hubOf(t, c)
	c.leave()
	assert.NotContains(t, c.log.String(), "msg=received", "unless asked")
}
