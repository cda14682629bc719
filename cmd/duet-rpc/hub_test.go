//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// command runs the program as from a shell in the project, and returns what
// it printed. Its environment is the site's.
func (s *site) command(args ...string) (stdout string, err error) {
	s.t.Helper()
	l := s.counted()
	cmd := exec.Command(program, slices.Concat(l.first, args, l.args)...)
	cmd.Dir = s.root
	cmd.Env = append(append(cleanEnvironment(), homeless(s.t)...), l.env...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "daemon start":
		s.daemonStays.Store(true)
	case "daemon stop":
		defer s.daemonStays.Store(false)
	}
	s.clients.Add(1)
	defer s.left()
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w: %s", err, problem.String())
	}
	return out.String(), err
}

// run is command for a command that must succeed.
func (s *site) run(args ...string) (stdout string) {
	s.t.Helper()
	stdout, err := s.command(args...)
	require.NoError(s.t, err, "%q", args)
	return stdout
}

// refuses is command for a command that must fail and say why.
func (s *site) refuses(why string, args ...string) {
	s.t.Helper()
	_, err := s.command(args...)
	require.ErrorContains(s.t, err, why, "%q", args)
}

// commandIn runs the program in a directory, with no root named.
func (s *site) commandIn(dir string, args ...string) (stdout, stderr string, err error) {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(append(append(cleanEnvironment(), homeless(s.t)...), s.counted().env...), "DUET_ROOT=", "PWD="+dir)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	s.clients.Add(1)
	defer s.left()
	err = cmd.Run()
	return out.String(), problem.String(), err
}

// daemon starts a daemon, which is killed should the test not end it.
func (s *site) daemon(args ...string) (pid int) {
	s.t.Helper()
	out, err := s.command(append([]string{"daemon", "start", "--json"}, args...)...)
	require.NoError(s.t, err)
	var status struct{ PID int }
	require.NoError(s.t, json.Unmarshal([]byte(out), &status), out)
	require.NotZero(s.t, status.PID)
	process, err := os.FindProcess(status.PID)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		if s.t.Failed() && s.lockHolder() == status.PID {
			_ = process.Kill()
		}
	})
	return status.PID
}

// requireNoFile waits until there is no such file.
func requireNoFile(t testing.TB, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}, watchdog/3, pollEvery, "%s is still there", path)
}

// lasting are the events up to a number that look the same whenever they are
// received, by their numbers.
func lasting(events []event, upTo int64) map[int64]string {
	m := make(map[int64]string)
	for _, e := range events {
		if !transient(e) && e.Seq <= upTo && !bytes.Contains(e.Raw, []byte(`"replayed":true`)) {
			m[e.Seq] = e.Type + " " + string(e.Raw)
		}
	}
	return m
}

// requireRising requires that events came in their order.
func requireRising(t testing.TB, events []event) {
	t.Helper()
	last := int64(0)
	for _, e := range events {
		if e.Seq == 0 || bytes.Contains(e.Raw, []byte(`"replayed":true`)) {
			continue
		}
		require.Greater(t, e.Seq, last, "numbers only rise: %s %s", e.Type, e.Raw)
		last = e.Seq
	}
}

// Editors on one project see the same, whichever of them it began in, and
// each may answer; the first answer wins.
func TestEditorsShare(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSite(parallel(t))
			var editors []*client
			for range n {
				c := s.open()
				editors = append(editors, c)
			}
			hub := s.lockHolder()
			for _, c := range editors {
				require.Equal(t, hub, hubOf(t, c))
			}
			var last event
			for i, c := range editors {
				begun := c.launch(fmt.Sprintf("permit:1 stream:50 round %d", i), "")
				question := editors[(i+1)%n].awaitQuestion(begun.SessionID)
				var won []int
				var lost []string
				var mu sync.Mutex
				var group sync.WaitGroup
				for j, c := range editors {
					group.Go(func() {
						var r struct {
							Success bool   `json:"success"`
							Error   string `json:"error"`
							Status  string `json:"status"`
						}
						err := c.try("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "comment": fmt.Sprint("by ", j)}, &r)
						mu.Lock()
						defer mu.Unlock()
						if assert.NoError(t, err) && r.Success {
							won = append(won, j)
						} else {
							lost = append(lost, r.Error)
							assert.Equal(t, "approved", r.Status)
						}
					})
				}
				group.Wait()
				require.Len(t, won, 1, "the first answer wins, and only that")
				for _, text := range lost {
					assert.Contains(t, text, "already")
				}
				for j, c := range editors {
					last = c.awaitEnd(begun.SessionID)
					assert.Equal(t, "completed", last.Data.State)
					resolved := c.awaitAnswer(question.Data.ApprovalID)
					assert.Contains(t, string(resolved.Raw), fmt.Sprint("by ", won[0]), "editor %d", j)
				}
			}
			want := lasting(editors[0].seen(), last.Seq)
			require.NotEmpty(t, want)
			for i, c := range editors {
				requireRising(t, c.seen())
				assert.Equal(t, want, lasting(c.seen(), last.Seq), "editor %d", i)
				assert.Equal(t, textsOf(editors[0].seen()), textsOf(c.seen()), "editor %d", i)
			}
			for _, c := range editors[1:] {
				c.leave()
			}
			editors[0].leave()
		})
	}
}

// A client of a daemon may leave in any way, also while its run works: the next client's
// sessions run.
func TestWaysToLeaveADaemon(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(c *client){
		"EOF":                   func(c *client) { c.closeStdin() },
		"exit":                  func(c *client) { _ = c.try("exit", nil, nil) },
		"shutdown":              func(c *client) { c.call("shutdown", nil, nil) },
		"shutdown with reason":  func(c *client) { c.call("shutdown", object{"reason": "done"}, nil) },
		"shutdown with timeout": func(c *client) { c.call("shutdown", object{"timeout_ms": 1}, nil) },
		"SIGHUP":                func(c *client) { _ = c.cmd.Process.Signal(syscall.SIGHUP) },
		"SIGTERM":               func(c *client) { _ = c.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGKILL":               func(c *client) { _ = c.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(parallel(t))
			s.daemon()
			first := s.open()
			running, question := first.asks("quiet permit:1", "")
			leave(first)
			<-first.ended
			second := s.open()
			second.runs("quiet")
			second.approve(question.Data.ApprovalID)
			second.completes(running)
			second.leave()
			s.run("daemon", "stop")
		})
	}
}

// A daemon is there until it is stopped.
func TestDaemon(t *testing.T) {
	s := newSite(parallel(t))
	s.refuses("no hub runs here; `duet-rpc daemon start`", "daemon", "status")
	s.refuses("no hub runs here", "daemon", "stop")
	s.refuses("no daemon was started here", "daemon", "logs")

	// A log that has become long is put aside.
	log := filepath.Join(s.state(), "daemon.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o700))
	require.NoError(t, os.WriteFile(log, bytes.Repeat([]byte("old\n"), 2<<20+1), 0o600))

	pid := s.daemon()
	require.Equal(t, pid, s.lockHolder())
	require.Equal(t, pid, s.daemon(), "the second start finds the first one's")
	out := s.run("daemon", "start")
	assert.Equal(t, fmt.Sprintf("a hub runs here already (process %d)\n", pid), out)
	out = s.run("daemon", "status")
	assert.Contains(t, out, fmt.Sprintf("process %d, %s, up ", pid, testVersion))
	out = s.run("daemon", "logs")
	assert.Contains(t, out, "started")
	assert.Contains(t, out, fmt.Sprint("pid=", pid))
	assert.NotContains(t, out, "old")
	info, err := os.Stat(log)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(log + ".1")
	require.NoError(t, err)
	assert.EqualValues(t, 8<<20+4, info.Size())

	// Editors come and go; what they began goes on.
	editor := s.open()
	require.Equal(t, pid, hubOf(t, editor))
	running, question := editor.asks("quiet permit:1", "")
	editor.leave()
	editor = s.open()
	require.Contains(t, editor.pending(), question.Data.ApprovalID)
	require.False(t, editor.pending()[question.Data.ApprovalID].Stale)
	editor.approve(question.Data.ApprovalID)
	editor.completes(running)

	// What runs is waited for.
	running = editor.launch("quiet stream:60@50", "")
	editor.awaitState(running.SessionID, "running")
	out = s.run("daemon", "stop")
	assert.Equal(t, fmt.Sprintf("stopped (process %d)\n", pid), out)
	editor.completes(running)
	requireNoFile(t, s.socketPath())
	_, err = s.command("daemon", "status")
	require.ErrorContains(t, err, "no hub runs here", "an editor starts none before it needs one")
	require.Equal(t, "completed", editor.session(running.SessionID).State)
	require.NotEqual(t, pid, hubOf(t, editor))
	editor.leave()

	// Or not, with --force.
	pid = s.daemon()
	editor = s.open()
	running = editor.launch("quiet stream:100000@50", "")
	editor.awaitState(running.SessionID, "running")
	watch := startStopwatch(t)
	out = s.run("daemon", "stop", "--force")
	watch.assertWithin(t, 5*time.Second)
	assert.Equal(t, fmt.Sprintf("stopped (process %d)\n", pid), out)
	requireNoFile(t, s.socketPath())
	require.Eventually(t, func() bool { // it may be asked before it knows
		var lost *wireError
		err := editor.try("getSessionState", object{"session_id": running.SessionID}, nil)
		return err == nil || !errors.As(err, &lost) || lost.Code != -32042
	}, watchdog/3, pollEvery, "the request may be sent again")
	require.Equal(t, "interrupted", editor.session(running.SessionID).State)
	editor.leave()
	s.requireNobody("after the daemon")
}
