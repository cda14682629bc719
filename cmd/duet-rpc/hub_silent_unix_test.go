//go:build unix

package main_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

const (
	// soon keeps a command from waiting long for a hub that does not answer.
	soon = "--answer-within=300ms"
	// lately is for who has a hub that answers before, on a machine that may be slow.
	lately = "--answer-within=4s"
)

// silentDaemon makes the site's hub a daemon that is stopped as by a debugger: it
// listens, and does not answer.
func (s *site) silentDaemon() (pid int) {
	s.t.Helper()
	pid = s.daemon()
	suspend(s.t, pid)
	s.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// Where a hub does not answer every command says so and ends; it can be killed.
func TestHubThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := s.silentDaemon()
	var group sync.WaitGroup
	for _, args := range [][]string{
		{"task", "list"},
		{"session", "list"},
		{"approvals"},
		{"events"},
		{"attach"},
		{"call", "ping"},
		{"prompt", "quiet"},
		{"daemon", "start"},
		{"daemon", "status"},
		{"daemon", "stop"},
	} {
		group.Go(func() {
			_, err := s.command(append([]string{soon}, args...)...)
			assert.ErrorContains(t, err, fmt.Sprintf("exit status 1: duet-rpc: the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid), "%v", args)
		})
	}
	group.Wait()
	out := s.run(soon, "daemon", "stop", "--force")
	assert.Contains(t, out, fmt.Sprintf("killed, since it did not answer (process %d)", pid))
	s.refuses("no hub runs here", "daemon", "stop", "--force")
}

// stranger listens on the site's socket, and is no hub.
func (s *site) stranger() net.Listener {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(s.state(), 0o700))
	require.NoError(s.t, os.MkdirAll(filepath.Dir(s.socketPath()), 0o700))
	l, err := net.Listen("unix", s.socketPath())
	require.NoError(s.t, err)
	s.t.Cleanup(func() { l.Close() })
	require.NoError(s.t, os.Chmod(s.socketPath(), 0o600))
	return l
}

// A program that listens where the hub should, and is none, is neither waited
// for nor killed.
func TestStrangerOnTheHubsSocketDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.stranger()
	s.others.Store(true) // the stranger is not asked to end
	for _, args := range [][]string{{"task", "list"}, {"daemon", "start"}, {"daemon", "stop", "--force"}} {
		_, err := s.command(append([]string{soon}, args...)...)
		assert.ErrorContains(t, err, "does not answer, and it is not this project's hub", "%v", args)
		// A daemon that the command has started ends by itself, maybe later than the command.
		require.Eventually(t, project.Project{StateDir: s.state()}.Unlocked, watchdog/3, pollEvery)
	}
}

// A signal ends a command that waits for a hub which does not answer.
func TestSignalEndsACommandThatWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stranger := s.stranger()
	require.NoError(t, stranger.(*net.UnixListener).SetDeadline(time.Now().Add(watchdog))) // a command that does not ask
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, args := range [][]string{{"task", "list"}, {"prompt", "quiet"}, {"daemon", "stop"}, {"daemon", "start"}} {
			l := s.launch()
			l.args = append(append([]string{"--answer-within=1h"}, args...), l.args...)
			p := l.start(t)
			p.closeStdin() // or it would be context of the prompt
			conn, err := stranger.Accept()
			require.NoError(t, err)
			_, err = conn.Read(make([]byte, 1)) // it has asked
			require.NoError(t, err)
			require.NoError(t, p.cmd.Process.Signal(sig))
			select {
			case <-p.ended:
			case <-time.After(watchdog / 3):
				require.Fail(t, "it goes on", "%v after %v", args, sig)
			}
			assert.Equal(t, 130, p.cmd.ProcessState.ExitCode(), "%v after %v", args, sig)
			conn.Close()
			if slices.Contains(args, "start") {
				p.requireLog("duet-rpc: interrupted; no daemon runs here\n")
			}
		}
	}
}

// A second signal ends a command also where the first has not.
func TestSecondSignalEndsACommandAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := s.daemon()
	p := s.prompt(t, "quiet permit:1")
	p.sees("Allow? ")
	suspend(t, pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	p.sees("press C-c again to end at once")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	<-p.ended
	assert.Equal(t, 130, p.cmd.ProcessState.ExitCode())
}

// Who comes while a process that has the lock opens its socket waits for it,
// but not long for one that has none.
func TestCommandWaitsForTheSocketOfAHub(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.daemonStays.Store(true) // the test is the hub
	p := project.Project{Root: s.root, StateDir: s.state()}
	require.NoError(t, p.Prepare())
	lock, err := p.Lock(t.Context())
	require.NoError(t, err)
	defer lock.Close()
	_, err = s.command(soon, "call", "ping")
	require.Error(t, err)

	done := make(chan error, 1)
	go func() {
		_, err := s.command("call", "ping")
		done <- err
	}()
	l := s.stranger() // as that process would
	defer l.Close()
	go answerAll(l, fmt.Sprintf(`"result":{"protocol":%d}`, hubprocess.Protocol))
	assert.NoError(t, <-done)
}

// answerAll answers each request on the connections to a socket in the same way, until the socket
// is closed.
func answerAll(l net.Listener, answer string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			var m frame.Message
			for reader := frame.NewReader(conn, frame.LSP, frame.Limits{}); reader.Next(&m) == nil; {
				if len(m.ID) > 0 { // else it is the client's environment
					_, _ = conn.Write(frame.Append(nil, frame.LSP, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)))
				}
			}
		}()
	}
}

// daemon start does not pass a daemon off as one that listens where it does not.
func TestDaemonStartPretendsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	extra, another := filepath.Join(s.home, "extra.sock"), filepath.Join(s.home, "another.sock")
	pid := s.daemon("--listen", extra)
	assert.Equal(t, pid, s.daemon(), "it is there already")
	assert.Equal(t, pid, s.daemon("--listen", extra), "and listens there")
	s.refuses(fmt.Sprintf("the hub here (process %d) does not listen on %s", pid, another), "daemon", "start", "--listen", another)
	s.run("daemon", "stop")
}

// Editors whose hub is stopped learn it by the answer to their request, and by
// health; so is one that comes meanwhile. When it goes on they go on with it, and
// nothing was done twice.
func TestEditorsOfAHubThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.args = []string{lately}
	pid := s.daemon()
	editor := s.open()
	before := editor.launch("quiet before", "")
	editor.awaitEnd(before.SessionID)
	suspend(t, pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })

	var e *wireError
	require.ErrorAs(t, editor.try("launchSession", object{"query": "quiet sent"}, nil), &e)
	assert.Equal(t, "hub_silent", e.kind())
	assert.Contains(t, e.Message, fmt.Sprintf("the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	assert.Contains(t, string(e.Data), `"retry":false`)
	editor.await("that the hub is silent", func(e event) bool { return e.Type == "hub_silent" })
	editor.requireDegraded(fmt.Sprintf("process %d", pid))
	require.ErrorAs(t, editor.try("launchSession", object{"query": "quiet kept back"}, nil), &e)
	assert.Contains(t, string(e.Data), `"retry":true`)

	// One that comes now.
	late := s.start()
	late.requireCore()
	require.ErrorAs(t, late.try("listSessions", object{}, nil), &e)
	assert.Contains(t, e.Message, fmt.Sprintf("the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	late.requireIssue(fmt.Sprintf("process %d", pid))

	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	editor.await("that the hub answers", func(e event) bool { return e.Type == "hub_answers" })
	editor.runs("quiet after")
	var listed struct {
		Sessions []struct {
			Query string `json:"query"`
		}
	}
	editor.call("listSessions", object{}, &listed)
	var queries []string
	for _, session := range listed.Sessions {
		queries = append(queries, session.Query)
	}
	assert.ElementsMatch(t, []string{"quiet before", "quiet sent", "quiet after"}, queries)
	editor.requireNoIssue()
	require.Eventually(t, func() bool { return late.try("listSessions", object{}, nil) == nil }, watchdog/3, 100*time.Millisecond)
	editor.leave()
	late.leave()
	s.run("daemon", "stop", "--force")
}

// So does the user at a prompt; the hub handles their answers when
// the hub goes on.
func TestPromptTellsOfAHubThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := s.daemon()
	p := s.prompt(t, lately, "hello")
	p.sees("Allow? ")
	suspend(t, pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	p.types("y")
	p.sees(fmt.Sprintf("— the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	p.sees("— the hub answers again")
	p.sees("completed")
	said, status := p.ends()
	assert.Zero(t, status)
	assert.Contains(t, said, "I wrote demo.txt")
	s.run("daemon", "stop")
}

// holdDatabase makes the database of the site and a transaction in it that blocks every other one.
func (s *site) holdDatabase() (release func()) {
	s.t.Helper()
	c := s.open()
	c.leave()
	db := s.openDatabase("?_txlock=immediate")
	s.t.Cleanup(func() { db.Close() })
	tx, err := db.Begin()
	require.NoError(s.t, err)
	return func() { _ = tx.Rollback() }
}

// Where another process holds the database, such as a hub that was stopped in the
// middle of a transaction and whose lock was removed, it is named, and how to end it.
func TestDatabaseThatIsLockedByAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	release := s.holdDatabase()
	c := s.start()
	e := c.refused("listSessions", object{})
	assert.Equal(t, "subsystem_unavailable", e.kind())
	assert.Contains(t, e.Message, "is in the hands of another process, which does not let go of it")
	assert.Contains(t, e.Message, fmt.Sprintf("it is process %d, which `kill -9 %d` ends", os.Getpid(), os.Getpid()))
	c.requireIssue(fmt.Sprintf("process %d", os.Getpid()))
	release()
	require.Eventually(t, func() bool { return c.try("listSessions", object{}, nil) == nil }, watchdog/3, 100*time.Millisecond, "it is there again")
	c.leave()
}
