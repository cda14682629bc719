package main_test

import (
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A terminal that is closed takes nothing with it: the question stays open, the session goes on.
func TestTheTerminalIsClosed(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"with a question": "permit:1", "at work": "quiet stream:1000000@100"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDaemonSite(t)
			tty := openTerminal(t)
			require.NoError(t, pty.Setsize(tty.theirs, &pty.Winsize{Rows: 24, Cols: 80}))
			l := s.launch()
			l.args = append([]string{"prompt", query}, l.args...)
			l.stdin, l.stdout, l.stderr = tty.theirs, tty.theirs, tty.theirs
			l.attributes = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			p := &prompting{process: l.start(t), tty: tty}
			if name == "with a question" {
				p.sees("[n]o")
			} else {
				p.sees("chunk 3")
			}
			if err := unix.IoctlSetInt(int(tty.theirs.Fd()), unix.TIOCVHANGUP, 0); err != nil { // for root alone
				require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP)) // as the shell does
			}
			<-p.ended
			require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
			editor := s.start()
			var r struct {
				Session struct {
					Status string `json:"status"`
				} `json:"session"`
			}
			editor.call("getSessionState", object{"session_id": "task-0001"}, &r)
			require.Equal(t, map[string]string{"with a question": "waiting_input", "at work": "running"}[name], r.Session.Status)
			editor.call("interruptSession", object{"session_id": "task-0001"}, nil)
			editor.leave()
			_, err := s.command("daemon", "stop")
			require.NoError(t, err)
		})
	}
}
