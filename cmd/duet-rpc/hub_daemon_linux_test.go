package main_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newDaemonSite is a site whose user wants daemons.
func newDaemonSite(t testing.TB) *site {
	t.Helper()
	s := newSite(t)
	s.daemonStays.Store(true)
	s.clearDaemons()
	return s
}

// clearDaemons kills the daemons that a failed test has left, and shows what
// they logged.
func (s *site) clearDaemons() {
	s.t.Cleanup(func() {
		if !s.t.Failed() {
			return
		}
		for _, d := range s.daemons() {
			_ = syscall.Kill(d.pid, syscall.SIGKILL)
		}
		s.t.Logf("the daemon's log:\n%s", s.daemonLog())
	})
}

// daemonLog is what the daemons of the site have logged.
func (s *site) daemonLog() string {
	log, _ := os.ReadFile(filepath.Join(s.state(), "daemon.log"))
	return string(log)
}

// daemons are the site's processes that were started as daemons.
func (s *site) daemons() (list []running) {
	for _, r := range s.running() {
		if strings.Contains(r.command, " daemon start --foreground ") {
			list = append(list, r)
		}
	}
	return list
}

// requireDaemon requires that all clients have the same hub, which is the only
// daemon, and returns it.
func (s *site) requireDaemon(clients ...*client) int {
	s.t.Helper()
	hub := hubOf(s.t, clients[0])
	for _, c := range clients {
		require.Equal(s.t, hub, hubOf(s.t, c))
		require.NotEqual(s.t, hub, c.cmd.Process.Pid)
	}
	var daemons []running
	require.Eventually(s.t, func() bool { // one that came too late is about to end
		daemons = s.daemons()
		return len(daemons) == 1
	}, watchdog/3, pollEvery, "there is not one daemon: %v", deferred(func() string { return strings.Join(s.processes(), "\n") }))
	require.Equal(s.t, hub, daemons[0].pid)
	require.Equal(s.t, hub, s.lockHolder())
	return hub
}

// A daemon ends by itself when no client has been there for long and nothing is to be done.
// A question that an agent waits for keeps it.
func TestADaemonEndsByItself(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	config, err := os.OpenFile(filepath.Join(s.home, "config", "duet", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = config.WriteString("[daemon]\nidle = \"1s\"\n")
	require.NoError(t, errors.Join(err, config.Close()))
	c := s.start()
	c.subscribe()
	hub := s.requireDaemon(c)
	asking := c.launch("quiet permit:1", "")
	question := c.awaitQuestion(asking.SessionID)
	c.leave()
	later := s.start()
	later.subscribe()
	require.Equal(t, hub, s.requireDaemon(later), "it has waited with the agent")
	later.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	require.Equal(t, "completed", later.awaitEnd(asking.SessionID).Data.State)
	later.leave()
	require.Eventually(t, func() bool { return len(s.daemons()) == 0 }, watchdog/3, pollEvery, "the daemon goes on")
	log, err := os.ReadFile(filepath.Join(s.state(), "daemon.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "so this daemon ends")
	next := s.start()
	next.subscribe()
	require.NotEqual(t, hub, s.requireDaemon(next), "who needs one starts one")
	next.leave()
}

// Where the user wants a daemon, what runs outlives every editor, also those
// that kill their children.
func TestHubIsADaemon(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)

	// Two editors that start at the same time start one daemon.
	grouped := s.launch()
	grouped.attributes = &syscall.SysProcAttr{Setpgid: true}
	first, second := newClient(grouped.start(t)), s.start()
	first.subscribe()
	second.subscribe()
	hub := s.requireDaemon(first, second)

	// An editor is killed with all that it started.
	asking := first.launch("quiet permit:1", "")
	talking := first.launch("quiet stream:40@50", "")
	question := second.awaitQuestion(asking.SessionID)
	second.awaitState(talking.SessionID, "running")
	require.NoError(t, syscall.Kill(-first.cmd.Process.Pid, syscall.SIGKILL))
	<-first.ended
	second.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	assert.Equal(t, "completed", second.awaitEnd(asking.SessionID).Data.State)
	second.leave()

	third := s.start()
	third.subscribe()
	require.Equal(t, hub, s.requireDaemon(third))
	assert.Equal(t, "completed", third.awaitEnd(talking.SessionID).Data.State, "it went on without an editor")

	// A daemon that dies has one successor.
	fourth, fifth := s.start(), s.start()
	fourth.subscribe()
	fifth.subscribe()
	talking = third.launch("quiet stream:100000@50", "")
	fourth.awaitState(talking.SessionID, "running")
	require.Equal(t, hub, hubOf(t, fifth))
	require.NoError(t, syscall.Kill(hub, syscall.SIGKILL))
	for _, c := range []*client{third, fourth, fifth} {
		end := c.awaitEnd(talking.SessionID)
		assert.Equal(t, "ORPHANED", end.Data.ErrorCode)
	}
	require.NotEqual(t, hub, s.requireDaemon(third, fourth, fifth))

	// One that was stopped has none until it is needed.
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)
	third.requireCore()
	_, err = s.command("daemon", "status")
	require.ErrorContains(t, err, "no hub runs here", "a ping needs none")
	require.Equal(t, "interrupted", third.session(talking.SessionID).State)
	s.requireDaemon(third, fourth, fifth)
	_, err = s.command("daemon", "stop", "--force")
	require.NoError(t, err)
	_ = third.try("shutdown", object{}, nil) // it may not have seen yet that the hub has gone
	third.requireGoneWithin(goneAfter+raceSlack, startStopwatch(t))
	fourth.leave()
	fifth.leave()
	s.requireNobody("when the last editor has ended: no daemon is started to hear of it")
}

// The first replies do not wait for the daemon.
func TestTheFirstReplyIsBeforeTheDaemon(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	require.NoError(t, os.MkdirAll(s.state(), 0o700))
	starting := flock.New(filepath.Join(s.state(), "starting"))
	require.NoError(t, starting.Lock(), "as if another process was about to start one")
	editor := s.start()
	editor.requireCore()
	status, issues := editor.issues()
	assert.Equal(t, "ok", status, issues)
	assert.Empty(t, s.daemons())
	var waiting sync.WaitGroup
	waiting.Go(func() { assert.NoError(t, editor.try("listSessions", object{}, nil), "what needs a hub waits for it") })
	require.NoError(t, starting.Unlock())
	waiting.Wait()
	s.requireDaemon(editor)
	editor.leave()
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)
}

// Where no daemon can be started the core methods are served, and what needs a hub is refused at
// once with the reason, until that is mended.
func TestNoDaemonCanBeStarted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.state(), "daemon.log"), 0o700))
	editor := s.start()
	editor.requireCore()
	editor.requireUnavailable("opening the daemon's log")
	editor.requireLog("no daemon could be started")
	status, issues := editor.issues()
	assert.Equal(t, "degraded", status)
	require.Len(t, issues, 1)
	assert.Contains(t, issues[0], "opening the daemon's log")
	_, err := s.command("prompt", "quiet")
	require.ErrorContains(t, err, "opening the daemon's log")
	require.NoError(t, os.Remove(filepath.Join(s.state(), "daemon.log")))
	require.Eventually(t, func() bool { return editor.try("listSessions", object{}, nil) == nil }, watchdog/3, 100*time.Millisecond)
	editor.leave()
}

// A daemon outlives who started it, and holds nothing that was open there: neither a
// lock nor the end of a pipe.
func TestADaemonHoldsNothingOfItsStarter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	l := s.launch()
	cmd := exec.Command(program, append([]string{"daemon", "start"}, l.args...)...)
	cmd.Dir = s.root
	cmd.Env = append(cleanEnvironment(), l.env...)
	cmd.ExtraFiles = []*os.File{write}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	write.Close()
	require.NoError(t, read.SetReadDeadline(time.Now().Add(watchdog/3)))
	_, err = read.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "the daemon has the pipe open")
	_, err = s.command("daemon", "stop")
	require.NoError(t, err)
}

// A daemon shows its starter that it listens: its standard output ends then.
func TestADaemonTellsThatItListens(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.clearDaemons()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	l := s.launch()
	l.args = append([]string{"daemon", "start", "--foreground"}, l.args...)
	l.stdout = write
	hub := l.start(t)
	write.Close()
	said, err := io.ReadAll(read)
	require.NoError(t, err)
	assert.Empty(t, said)
	s.daemonStays.Store(true)
	_, err = s.command("daemon", "status")
	require.NoError(t, err, "it answers at once")

	// The client that stopped it finds no hub: another one is started without waiting.
	_, err = s.command("daemon", "stop")
	require.NoError(t, err)
	requireNoFile(t, s.socketPath())
	hub.requireSuccess()
}

// An editor whose daemon was stopped starts none by itself, and joins the one that another
// client starts.
func TestAnEditorJoinsTheNextDaemon(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	editor := s.start()
	editor.subscribe()
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)
	editor.requireLog("the hub has gone")
	s.daemonStays.Store(true)
	require.Eventually(t, func() bool { return len(s.daemons()) == 0 }, watchdog/3, pollEvery, "the daemon goes on") // its process ends a little later than its hub
	_, err = s.command("prompt", "quiet")
	require.NoError(t, err)
	editor.await("the end of a run that it has not begun", func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.State == "completed"
	})
	editor.leave()
	_, err = s.command("daemon", "stop")
	require.NoError(t, err)
}

// Work goes on without a client, and the next one says so: once for each user.
func TestTheNextClientSaysThatWorkWentOn(t *testing.T) {
	t.Parallel()
	s := newDaemonSite(t)
	notice := func(c *client) string {
		var r struct {
			Notice string `json:"notice"`
		}
		c.call("Subscribe", object{"notices": true}, &r)
		return r.Notice
	}
	for i, want := range []string{
		"task-0001 went on while no editor or shell was there; see when_alone in [daemon]", "",
	} {
		first := s.start()
		require.Empty(t, notice(first))
		run := first.launch("quiet stream:1000000@100", "")
		first.awaitState(run.SessionID, "running")
		first.leave()
		next := s.start()
		require.Eventually(t, func() bool {
			var status struct {
				Subsystems struct {
					IPC struct {
						Clients int `json:"clients"`
					} `json:"ipc"`
				} `json:"subsystems"`
			}
			next.call("daemon.status", object{}, &status)
			return status.Subsystems.IPC.Clients == 1
		}, watchdog/3, pollEvery)
		require.Equal(t, want, notice(next), i)
		require.Empty(t, notice(next))
		next.call("interruptSession", object{"session_id": run.SessionID}, nil)
		next.awaitState(run.SessionID, "interrupted")
		next.leave()
	}
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)
}
