package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// newDaemonSite returns a site whose daemon stays until the test stops it.
func newDaemonSite(t testing.TB, more ...string) *site {
	t.Helper()
	s := newSite(t, more...)
	s.daemonStays.Store(true)
	s.clearDaemons()
	return s
}

// clearDaemons kills the site's daemons after a failed test, and shows their log.
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

// daemons returns the site's processes that started as daemons.
func (s *site) daemons() (list []running) {
	for _, r := range s.running() {
		if strings.Contains(r.command, " daemon start --foreground ") {
			list = append(list, r)
		}
	}
	return list
}

// requireDaemon requires that all clients have the same hub, and that this hub is the only daemon.
// It returns the hub's process id.
func (s *site) requireDaemon(clients ...*client) int {
	s.t.Helper()
	hub := hubOf(s.t, clients[0])
	for _, c := range clients {
		require.Equal(s.t, hub, hubOf(s.t, c))
		require.NotEqual(s.t, hub, c.cmd.Process.Pid)
	}
	var daemons []running
	require.Eventually(s.t, func() bool { // a daemon that started too late is about to end
		daemons = s.daemons()
		return len(daemons) == 1
	}, watchdog/3, pollEvery, "expected one daemon: %v", deferred(func() string { return strings.Join(s.processes(), "\n") }))
	require.Equal(s.t, hub, daemons[0].pid)
	require.Equal(s.t, hub, s.lockHolder())
	return hub
}

// A daemon ends after its idle time without clients and without work. A question of a waiting agent
// keeps it.
func TestADaemonEndsByItself(t *testing.T) {
	s := newDaemonSite(parallel(t))
	config, err := os.OpenFile(filepath.Join(s.home, "config", "duet", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = config.WriteString("[daemon]\nidle = \"1s\"\n")
	require.NoError(t, errors.Join(err, config.Close()))
	c := s.open()
	hub := s.requireDaemon(c)
	asking, question := c.asks("quiet permit:1", "")
	c.leave()
	later := s.open()
	require.Equal(t, hub, s.requireDaemon(later), "the agent's question keeps the daemon")
	later.approve(question.Data.ApprovalID)
	later.completes(asking)
	later.leave()
	require.Eventually(t, func() bool { return len(s.daemons()) == 0 }, watchdog/3, pollEvery, "the daemon still runs")
	log := readFile(t, filepath.Join(s.state(), "daemon.log"))
	assert.Contains(t, log, "so this daemon ends")
	next := s.open()
	require.NotEqual(t, hub, s.requireDaemon(next), "a client that needs a daemon starts one")
	next.leave()
}

// A daemon outlives the process group of the editor that started it, and so does a run.
func TestHubIsADaemon(t *testing.T) {
	s := newDaemonSite(parallel(t))
	grouped := s.launch()
	grouped.attributes = &syscall.SysProcAttr{Setpgid: true}
	first := newClient(grouped.start(t))
	asking := first.launch("quiet permit:1", "")
	second := s.open()
	hub := s.requireDaemon(first, second)
	question := second.awaitQuestion(asking.SessionID)
	require.NoError(t, syscall.Kill(-first.cmd.Process.Pid, syscall.SIGKILL))
	<-first.ended
	second.approve(question.Data.ApprovalID)
	second.completes(asking)
	require.Equal(t, hub, s.requireDaemon(second))
	second.leave()
	s.run("daemon", "stop")
}

// An editor's first replies do not wait for the daemon.
func TestTheFirstReplyIsBeforeTheDaemon(t *testing.T) {
	s := newDaemonSite(parallel(t))
	require.NoError(t, os.MkdirAll(s.state(), 0o700))
	starting := flock.New(filepath.Join(s.state(), "starting"))
	require.NoError(t, starting.Lock(), "the test plays a process that starts a daemon")
	editor := s.start()
	editor.requireCore()
	status, issues := editor.issues()
	assert.Equal(t, "ok", status, issues)
	assert.Empty(t, s.daemons())
	var waiting sync.WaitGroup
	waiting.Go(func() { assert.NoError(t, editor.try("listSessions", object{}, nil), "the request waits for the hub") })
	require.NoError(t, starting.Unlock())
	waiting.Wait()
	s.requireDaemon(editor)
	editor.leave()
	s.run("daemon", "stop")
}

// If no daemon can start, the program serves the core methods. It refuses other requests at once
// with the reason, until the user removes the cause.
func TestNoDaemonCanBeStarted(t *testing.T) {
	s := newSite(parallel(t))
	require.NoError(t, os.MkdirAll(filepath.Join(s.state(), "daemon.log"), 0o700))
	editor := s.start()
	editor.requireCore()
	editor.requireUnavailable("opening the daemon's log")
	editor.requireLog("no daemon could be started")
	require.Len(t, editor.requireDegraded("opening the daemon's log"), 1)
	s.refuses("opening the daemon's log", "prompt", "quiet")
	require.NoError(t, os.Remove(filepath.Join(s.state(), "daemon.log")))
	require.Eventually(t, func() bool { return editor.try("listSessions", object{}, nil) == nil }, watchdog/3, 100*time.Millisecond)
	editor.leave()
}

// A daemon outlives its starter and keeps none of its starter's pipes open.
func TestADaemonHoldsNothingOfItsStarter(t *testing.T) {
	s := newSite(parallel(t))
	read, write := newPipe(t)
	cmd := s.shellCommand("daemon", "start")
	cmd.ExtraFiles = []*os.File{write}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	write.Close()
	require.NoError(t, read.SetReadDeadline(time.Now().Add(watchdog/3)))
	_, err = read.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "the daemon has the pipe open")
	s.run("daemon", "stop")
}

// A daemon closes its standard output once it listens. Its starter waits for that.
func TestADaemonTellsThatItListens(t *testing.T) {
	s := newSite(parallel(t))
	s.clearDaemons()
	read, write := newPipe(t)
	l := s.launch("daemon", "start", "--foreground")
	l.stdout = write
	hub := l.start(t)
	write.Close()
	said, err := io.ReadAll(read)
	require.NoError(t, err)
	assert.Empty(t, said)
	s.daemonStays.Store(true)
	s.run("daemon", "status")

	// After `daemon stop`, the socket disappears and the daemon ends with status 0.
	s.run("daemon", "stop")
	requireNoFile(t, s.socketPath())
	hub.requireSuccess()
}

// An editor whose daemon was stopped joins the daemon that another client starts. The editor starts
// none itself, not even at its end.
func TestAnEditorJoinsTheNextDaemon(t *testing.T) {
	s := newDaemonSite(parallel(t))
	editor := s.open()
	stop := func() {
		s.run("daemon", "stop")
		s.daemonStays.Store(true)
		require.Eventually(t, func() bool { return len(s.daemons()) == 0 }, watchdog/3, pollEvery, "the daemon still runs") // its process ends a little later than its hub
	}
	stop()
	editor.requireLog("the hub has gone")
	s.run("prompt", "quiet")
	editor.await("the end of the other client's run", func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.State == "completed"
	})
	stop()
	_ = editor.try("shutdown", object{}, nil) // the client may not have seen the end of the hub yet
	editor.requireGoneWithin(goneAfter+raceSlack, startStopwatch(t))
	s.requireNobody("after the editor, whose end starts no daemon")
}

// A run continues without clients. The notice to the next client says so, once for each user.
func TestTheNextClientSaysThatWorkWentOn(t *testing.T) {
	s := newDaemonSite(parallel(t))
	notice := func(c *client) string {
		var r struct{ Notice string }
		c.call("Subscribe", object{"notices": true}, &r)
		return r.Notice
	}
	for i, want := range []string{
		"1.1 continued without an editor or shell; see when_alone in [daemon]", "",
	} {
		first := s.start()
		require.Empty(t, notice(first))
		run := first.launch("quiet stream:1000000@100", "")
		first.awaitState(run.SessionID, "running")
		first.leave()
		next := s.start()
		require.Eventually(t, func() bool { return next.status().Subsystems.IPC.Clients == 1 }, watchdog/3, pollEvery)
		require.Equal(t, want, notice(next), i)
		require.Empty(t, notice(next))
		next.call("interruptSession", object{"session_id": run.SessionID}, nil)
		next.awaitState(run.SessionID, "interrupted")
		next.leave()
	}
	s.run("daemon", "stop")
}

// otherBuild returns a copy of the program with another build id. The tests link to one copy,
// because a copy with the race detector has 80 MB.
func otherBuild(t *testing.T) string {
	t.Helper()
	other := filepath.Join(programDir, "duet-rpc-other")
	makeOther.Do(func() {
		text := []byte(readFile(t, program))
		id := []byte(hubprocess.Build(program))
		require.NotEmpty(t, id)
		at := bytes.Index(text, id)
		require.Positive(t, at)
		text[at] ^= 1
		testkit.Program(t, other, text)
	})
	path := filepath.Join(t.TempDir(), "duet-rpc")
	require.NoError(t, os.Link(other, path))
	require.NotEqual(t, hubprocess.Build(program), hubprocess.Build(path))
	return path
}

var makeOther sync.Once

func TestIdleDaemonOfAnotherBuildIsReplaced(t *testing.T) {
	s := newDaemonSite(parallel(t))
	s.binary = otherBuild(t)
	editor := s.open()
	editor.runs("quiet")
	first := hubOf(t, editor)
	s.run("session", "list")
	require.Equal(t, first, hubOf(t, editor), "the hub has a client of its own build")
	editor.leave()

	out := s.run("daemon", "status")
	require.Contains(t, out, fmt.Sprintf("process %d,", first), "`daemon status` does not replace the hub")
	var err error
	require.Eventually(t, func() bool { // the daemon may still count the earlier clients
		out, err = s.command("session", "list")
		return err != nil || s.lockHolder() != first
	}, watchdog/3, pollEvery)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^1 +completed `, out)
	second := s.lockHolder()
	s.run("session", "list")
	require.Equal(t, second, s.lockHolder(), "a hub of the client's build stays")
	s.run("daemon", "stop")
}

// A busy daemon of another build runs until the end of its work.
func TestBusyDaemonOfAnotherBuildIsUsed(t *testing.T) {
	s := newDaemonSite(parallel(t))
	other := otherBuild(t)
	s.binary = other
	starter := s.start()
	run := starter.launch("permit:1", "")
	starter.subscribe()
	question := starter.awaitQuestion(run.SessionID)
	first := hubOf(t, starter)
	starter.leave()

	s.binary = program
	editor := s.open()
	require.Equal(t, first, hubOf(t, editor))
	require.Len(t, editor.requireDegraded("are of different builds"), 1)
	editor.approve(question.Data.ApprovalID)
	editor.completes(run)
	require.Eventually(t, func() bool {
		pid := s.lockHolder()
		return pid != first && pid != 0
	}, watchdog/3, pollEvery, "no other daemon replaces it after its work")
	editor.runs("quiet") // the subscription continues
	editor.requireNoIssue()
	editor.leave()
	s.run("daemon", "stop")
}

// A daemon starts its executors with its own build after its file was replaced.
func TestTheProgramOfADaemonIsReplaced(t *testing.T) {
	s := newDaemonSite(parallel(t))
	s.binary = otherBuild(t)
	editor := s.open()
	before := hubOf(t, editor)
	require.NoError(t, os.Remove(s.binary))
	testkit.Program(t, s.binary, "#!/bin/sh\nexit 9\n")
	s.agents("[agents.replaced]\ndriver = \"acp\"\ncommand = ['" + program + "', 'demo-agent']\n")
	run := editor.launch("quiet", "replaced")
	editor.completes(run)
	require.Equal(t, before, hubOf(t, editor))
	editor.leave()
	s.run("daemon", "stop")
}

// A client does not use a daemon that speaks another protocol, and reports the remedy.
func TestDaemonOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, says string }{
		"newer": {`"result":{"version":"9.8.7","protocol":9,"ends":false}`, "the project's daemon (9.8.7) is of another build and speaks protocol 9"},
		"older": {`"error":{"code":-32601,"message":"Method not found"}`, "the project's daemon (an earlier version) is of another build and speaks protocol 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(parallel(t))
			l := s.stranger()
			go answerAll(l, test.answer)
			_, err := s.command("prompt", "quiet")
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, "`duet-rpc daemon stop` ends it")
			editor := s.start()
			refused := editor.refused("launchSession", object{"query": "quiet"})
			assert.Equal(t, "subsystem_unavailable", refused.kind())
			assert.Contains(t, refused.Message, test.says)
			editor.requireCore()
			editor.leave()
		})
	}
}

// `daemon logs -f` prints each new line of the log at once.
func TestTheLogOfADaemonIsFollowed(t *testing.T) {
	s := newSite(parallel(t))
	path := filepath.Join(s.state(), "daemon.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	log, err := os.Create(path)
	require.NoError(t, err)
	defer log.Close()
	cmd := s.shellCommand("daemon", "logs", "-f")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	for _, line := range []string{"level=INFO msg=one", "level=INFO msg=two", "level=INFO msg=three"} {
		_, err = log.WriteString(line + "\n")
		require.NoError(t, err)
		require.True(t, lines.Scan())
		assert.Contains(t, lines.Text(), line)
	}
}

// A command that follows a log or events ends when its output loses its reader. It does not wait
// for the next line.
func TestWhoeverFollowsEndsWithItsReader(t *testing.T) {
	s := newSite(parallel(t))
	s.daemon()
	s.run("prompt", "quiet")
	for _, args := range [][]string{{"daemon", "logs", "-f"}, {"events", "--since", "0"}, {"events", "--since", "0", "--json"}} {
		cmd := s.shellCommand(args...)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.True(t, bufio.NewScanner(out).Scan())
		require.NoError(t, out.Close())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(watchdog / 3):
			_ = cmd.Process.Kill()
			<-ended
			require.Fail(t, "the command still runs", "%v", args)
		}
	}
	s.run("daemon", "stop")
}

// Fifty clients that start at once start one daemon. If that daemon dies, they start one successor.
func TestFiftyClientsStartOneDaemon(t *testing.T) {
	s := newDaemonSite(parallel(t))
	var clients [50]*client
	for i := range clients {
		clients[i] = s.start()
	}
	requireOne := func(started int) (hub int) {
		var asked sync.WaitGroup
		for _, c := range clients {
			asked.Go(func() { assert.NoError(t, c.tryAgain("task.stats", object{}, nil)) })
		}
		asked.Wait()
		hub = s.requireDaemon(clients[:]...)
		require.Equal(t, started, strings.Count(s.daemonLog(), "msg=started"), s.daemonLog())
		return hub
	}
	first := requireOne(1)
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	require.NotEqual(t, first, requireOne(2))
	for _, c := range clients {
		c.leave()
	}
	s.run("daemon", "stop")
}

// If the user's state directory is read-only, no daemon starts. The core methods work, and other
// requests report the remedy.
func TestHomeIsReadOnly(t *testing.T) {
	s := newSite(parallel(t))
	state := filepath.Join(s.home, "state")
	require.NoError(t, os.MkdirAll(state, 0o700))
	readOnly(t, state)
	editor := s.start()
	editor.requireCore()
	editor.requireUnavailable("read-only file system; set DUET_STATE_HOME to a directory that can be written")
	editor.requireDegraded("DUET_STATE_HOME")
	editor.requireCore()
	s.refuses("set DUET_STATE_HOME to a directory that can be written", "prompt", "quiet")
	editor.leave()

	s.env = append(s.env, "DUET_STATE_HOME="+filepath.Join(s.home, "elsewhere"))
	out := s.run("prompt", "quiet")
	assert.Contains(t, out, "You asked: quiet")
	s.run("daemon", "stop")
}

// A daemon starts without another program, such as setsid.
func TestADaemonNeedsNoOtherProgram(t *testing.T) {
	s := newDaemonSite(parallel(t))
	s.env = append(s.env, "PATH="+s.home)
	editor := s.open()
	editor.runs("quiet")
	daemon := s.requireDaemon(editor)
	session, err := unix.Getsid(daemon)
	require.NoError(t, err)
	require.Equal(t, daemon, session, "the daemon leads its own session")
	editor.leave()
	s.run("daemon", "stop")
}

// The clock was two years ahead, and is right again. Runs from then continue, and new sessions
// count as the latest.
func TestTheClockJumps(t *testing.T) {
	s, editor := newEditorSite(parallel(t))
	editor.runs("quiet")
	asking, question := editor.asks("permit:1", "")
	editor.leave() // and the daemon ends
	db := s.openDatabase("")
	const ahead = int64(2 * 365 * 24 * time.Hour)
	for table, columns := range map[string][]string{
		"sessions": {"created", "active"}, "turns": {"created", "started", "ended", "active"}, "events": {"at"},
		"items": {"created", "updated"}, "approvals": {"created", "deadline", "decided"},
	} {
		for _, column := range columns {
			_, err := db.Exec(fmt.Sprintf("UPDATE %[1]s SET %[2]s = %[2]s + ? WHERE %[2]s > 0", table, column), ahead)
			require.NoError(t, err, "%s.%s", table, column)
		}
	}
	var latest int64
	require.NoError(t, db.QueryRow("SELECT max(at) FROM events").Scan(&latest))
	require.Greater(t, latest, time.Now().Add(time.Duration(ahead)/2).UnixNano(), "times are in nanoseconds")
	require.NoError(t, db.Close())

	editor = s.open()
	editor.approve(question.Data.ApprovalID)
	editor.awaitThread(asking.ThreadID)
	out := s.run("prompt", "quiet and new")
	require.Contains(t, out, "You asked: quiet and new")
	out = s.run("session", "show", "last")
	require.Contains(t, out, "quiet and new", "the last session is the one that began last")
	out = s.run("session", "list")
	require.Contains(t, strings.SplitN(out, "\n", 3)[1], "quiet and new", "the newest session is the first of the list")
	out = s.run("events", "--no-follow", "--since", "0")
	require.Greater(t, strings.LastIndex(out, " 3.1 "), strings.LastIndex(out, " 1.1 "), "events are in the order of their numbers")
	editor.leave()
}

// An editor may send all its requests before it reads: requests for the process itself, and one for
// the daemon.
func TestAnEditorThatReadsLast(t *testing.T) {
	s := newSite(parallel(t))
	p := s.launch().start(t)
	var all strings.Builder
	const pings = 5_000
	for i := range 2*pings + 1 {
		method := "ping"
		if i == pings {
			method = "task.stats"
		}
		all.WriteString(framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s"}`, i, method)))
	}
	_, err := p.stdin.WriteString(all.String())
	require.NoError(t, err)
	answered := make(map[string]bool)
	for range 2*pings + 1 {
		var r struct{ ID json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(p.next()), &r))
		answered[string(r.ID)] = true
	}
	require.Len(t, answered, 2*pings+1)
	require.NoError(t, p.stdin.Close())
	<-p.ended
}
