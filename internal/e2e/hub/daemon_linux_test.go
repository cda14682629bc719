package hub

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

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// requireDaemon requires that all clients have the same hub, and that this hub is the only daemon.
// It returns the hub's process id.
func requireDaemon(s *e2e.Site, clients ...*e2e.Client) int {
	s.T.Helper()
	hub := e2e.HubOf(s.T, clients[0])
	for _, c := range clients {
		require.Equal(s.T, hub, e2e.HubOf(s.T, c))
		require.NotEqual(s.T, hub, c.Cmd.Process.Pid)
	}
	var daemons []e2e.Running
	require.Eventually(s.T, func() bool { // a daemon that started too late is about to end
		daemons = s.Daemons()
		return len(daemons) == 1
	}, e2e.Watchdog/3, e2e.PollEvery, "expected one daemon: %v", e2e.Deferred(func() string { return strings.Join(s.Processes(), "\n") }))
	require.Equal(s.T, hub, daemons[0].PID)
	require.Equal(s.T, hub, s.LockHolder())
	return hub
}

// A daemon ends after its idle time without clients and without work. A question of a waiting agent
// keeps it.
func TestADaemonEndsByItself(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	config, err := os.OpenFile(filepath.Join(s.Home, "config", "duet", "config.toml"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = config.WriteString("[daemon]\nidle = \"1s\"\n")
	require.NoError(t, errors.Join(err, config.Close()))
	c := s.Open()
	hub := requireDaemon(s, c)
	asking, question := c.Asks("quiet permit:1", "")
	c.Leave()
	later := s.Open()
	require.Equal(t, hub, requireDaemon(s, later), "the agent's question keeps the daemon")
	later.Approve(question.Data.ApprovalID)
	later.Completes(asking)
	later.Leave()
	require.Eventually(t, func() bool { return len(s.Daemons()) == 0 }, e2e.Watchdog/3, e2e.PollEvery, "the daemon still runs")
	log := e2e.ReadFile(t, filepath.Join(s.State(), "daemon.log"))
	assert.Contains(t, log, "so this daemon ends")
	next := s.Open()
	require.NotEqual(t, hub, requireDaemon(s, next), "a client that needs a daemon starts one")
	next.Leave()
}

// A daemon outlives the process group of the editor that started it, and so does a turn.
func TestHubIsADaemon(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	grouped := s.Launch()
	grouped.Attributes = &syscall.SysProcAttr{Setpgid: true}
	first := e2e.NewClient(grouped.Start(t))
	asking := first.Launch("quiet permit:1", "")
	second := s.Open()
	hub := requireDaemon(s, first, second)
	question := second.AwaitQuestion(asking.SessionID)
	require.NoError(t, syscall.Kill(-first.Cmd.Process.Pid, syscall.SIGKILL))
	<-first.Ended
	second.Approve(question.Data.ApprovalID)
	second.Completes(asking)
	require.Equal(t, hub, requireDaemon(s, second))
	second.Leave()
	s.Run("daemon", "stop")
}

// An editor's first replies do not wait for the daemon.
func TestTheFirstReplyIsBeforeTheDaemon(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	require.NoError(t, os.MkdirAll(s.State(), 0o700))
	starting := flock.New(filepath.Join(s.State(), "starting"))
	require.NoError(t, starting.Lock(), "the test plays a process that starts a daemon")
	editor := s.Start()
	editor.RequireCore()
	status, issues := editor.Issues()
	assert.Equal(t, "ok", status, issues)
	assert.Empty(t, s.Daemons())
	var waiting sync.WaitGroup
	waiting.Go(func() { assert.NoError(t, editor.Try("listSessions", object{}, nil), "the request waits for the hub") })
	require.NoError(t, starting.Unlock())
	waiting.Wait()
	requireDaemon(s, editor)
	editor.Leave()
	s.Run("daemon", "stop")
}

// If no daemon can start, the program serves the core methods. It refuses other requests at once
// with the reason, until the user removes the cause.
func TestNoDaemonCanBeStarted(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	require.NoError(t, os.MkdirAll(filepath.Join(s.State(), "daemon.log"), 0o700))
	editor := s.Start()
	editor.RequireCore()
	editor.RequireUnavailable("opening the daemon's log")
	editor.RequireLog("no daemon could be started")
	require.Len(t, editor.RequireDegraded("opening the daemon's log"), 1)
	s.Refuses("opening the daemon's log", "prompt", "quiet")
	require.NoError(t, os.Remove(filepath.Join(s.State(), "daemon.log")))
	require.Eventually(t, func() bool { return editor.Try("listSessions", object{}, nil) == nil }, e2e.Watchdog/3, 100*time.Millisecond)
	editor.Leave()
}

// A daemon outlives its starter and keeps none of its starter's pipes open.
func TestADaemonHoldsNothingOfItsStarter(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	read, write := e2e.NewPipe(t)
	cmd := s.ShellCommand("daemon", "start")
	cmd.ExtraFiles = []*os.File{write}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	write.Close()
	require.NoError(t, read.SetReadDeadline(time.Now().Add(e2e.Watchdog/3)))
	_, err = read.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "the daemon has the pipe open")
	s.Run("daemon", "stop")
}

// A daemon closes its standard output once it listens. Its starter waits for that.
func TestADaemonTellsThatItListens(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.ClearDaemons()
	read, write := e2e.NewPipe(t)
	l := s.Launch("daemon", "start", "--foreground")
	l.Stdout = write
	hub := l.Start(t)
	write.Close()
	said, err := io.ReadAll(read)
	require.NoError(t, err)
	assert.Empty(t, said)
	s.DaemonStays.Store(true)
	s.Run("daemon", "status")

	// After `daemon stop`, the socket disappears and the daemon ends with status 0.
	s.Run("daemon", "stop")
	e2e.RequireNoFile(t, s.SocketPath())
	hub.RequireSuccess()
}

// An editor whose daemon was stopped joins the daemon that another client starts. The editor starts
// none itself, not even at its end.
func TestAnEditorJoinsTheNextDaemon(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	editor := s.Open()
	stop := func() {
		s.Run("daemon", "stop")
		s.DaemonStays.Store(true)
		require.Eventually(t, func() bool { return len(s.Daemons()) == 0 }, e2e.Watchdog/3, e2e.PollEvery, "the daemon still runs") // its process ends a little later than its hub
	}
	stop()
	editor.RequireLog("the hub has gone")
	s.Run("prompt", "quiet")
	editor.Await("the end of the other client's run", func(e e2e.Event) bool {
		return e.Type == "session_status_changed" && e.Data.State == "completed"
	})
	stop()
	_ = editor.Try("shutdown", object{}, nil) // the client may not have seen the end of the hub yet
	editor.RequireGoneWithin(e2e.GoneAfter+e2e.RaceSlack, e2e.StartStopwatch(t))
	s.RequireNobody("after the editor, whose end starts no daemon")
}

// A turn continues without clients. The notice to the next client says so, once for each user.
func TestTheNextClientSaysThatWorkWentOn(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	notice := func(c *e2e.Client) string {
		var r struct{ Notice string }
		c.Call("Subscribe", object{"notices": true}, &r)
		return r.Notice
	}
	for i, want := range []string{
		"1.1 continued without an editor or shell; see when_alone in [daemon]", "",
	} {
		first := s.Start()
		require.Empty(t, notice(first))
		begun := first.Launch("quiet stream:1000000@100", "")
		first.AwaitState(begun.SessionID, "running")
		first.Leave()
		next := s.Start()
		require.Eventually(t, func() bool { return next.Status().Subsystems.IPC.Clients == 1 }, e2e.Watchdog/3, e2e.PollEvery)
		require.Equal(t, want, notice(next), i)
		require.Empty(t, notice(next))
		next.Call("interruptSession", object{"session_id": begun.SessionID}, nil)
		next.AwaitState(begun.SessionID, "interrupted")
		next.Leave()
	}
	s.Run("daemon", "stop")
}

// otherBuild returns a copy of the program with another build id. The tests link to one copy,
// because a copy with the race detector has 80 MB.
func otherBuild(t *testing.T) string {
	t.Helper()
	other := filepath.Join(e2e.ProgramDir, "duet-rpc-other")
	makeOther.Do(func() {
		text := []byte(e2e.ReadFile(t, e2e.Program))
		id := []byte(hubprocess.Build(e2e.Program))
		require.NotEmpty(t, id)
		at := bytes.Index(text, id)
		require.Positive(t, at)
		text[at] ^= 1
		testkit.Program(t, other, text)
	})
	path := filepath.Join(t.TempDir(), "duet-rpc")
	require.NoError(t, os.Link(other, path))
	require.NotEqual(t, hubprocess.Build(e2e.Program), hubprocess.Build(path))
	return path
}

var makeOther sync.Once

func TestIdleDaemonOfAnotherBuildIsReplaced(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	s.Binary = otherBuild(t)
	editor := s.Open()
	editor.Runs("quiet")
	first := e2e.HubOf(t, editor)
	s.Run("session", "list")
	require.Equal(t, first, e2e.HubOf(t, editor), "the hub has a client of its own build")
	editor.Leave()

	out := s.Run("daemon", "status")
	require.Contains(t, out, fmt.Sprintf("process %d,", first), "`daemon status` does not replace the hub")
	var err error
	require.Eventually(t, func() bool { // the daemon may still count the earlier clients
		out, err = s.Command("session", "list")
		return err != nil || s.LockHolder() != first
	}, e2e.Watchdog/3, e2e.PollEvery)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^1 +completed `, out)
	second := s.LockHolder()
	s.Run("session", "list")
	require.Equal(t, second, s.LockHolder(), "a hub of the client's build stays")
	s.Run("daemon", "stop")
}

// A busy daemon of another build runs until the end of its work.
func TestBusyDaemonOfAnotherBuildIsUsed(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	other := otherBuild(t)
	s.Binary = other
	starter := s.Start()
	run := starter.Launch("permit:1", "")
	starter.Subscribe()
	question := starter.AwaitQuestion(run.SessionID)
	first := e2e.HubOf(t, starter)
	starter.Leave()

	s.Binary = e2e.Program
	editor := s.Open()
	require.Equal(t, first, e2e.HubOf(t, editor))
	require.Len(t, editor.RequireDegraded("are of different builds"), 1)
	editor.Approve(question.Data.ApprovalID)
	editor.Completes(run)
	require.Eventually(t, func() bool {
		pid := s.LockHolder()
		return pid != first && pid != 0
	}, e2e.Watchdog/3, e2e.PollEvery, "no other daemon replaces it after its work")
	editor.Runs("quiet") // the subscription continues
	editor.RequireNoIssue()
	editor.Leave()
	s.Run("daemon", "stop")
}

// A daemon starts its executors with its own build after its file was replaced.
func TestTheProgramOfADaemonIsReplaced(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	s.Binary = otherBuild(t)
	editor := s.Open()
	before := e2e.HubOf(t, editor)
	require.NoError(t, os.Remove(s.Binary))
	testkit.Program(t, s.Binary, "#!/bin/sh\nexit 9\n")
	s.Agents("[agents.replaced]\ndriver = \"acp\"\ncommand = ['" + e2e.Program + "', 'demo-agent']\n")
	run := editor.Launch("quiet", "replaced")
	editor.Completes(run)
	require.Equal(t, before, e2e.HubOf(t, editor))
	editor.Leave()
	s.Run("daemon", "stop")
}

// A client does not use a daemon that speaks another protocol, and reports the remedy.
func TestDaemonOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, says string }{
		"newer": {`"result":{"version":"9.8.7","protocol":9,"ends":false}`, "the project's daemon (9.8.7) is of another build and speaks protocol 9"},
		"older": {`"error":{"code":-32601,"message":"Method not found"}`, "the project's daemon (an earlier version) is of another build and speaks protocol 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			l := listenAsStranger(s)
			go answerAll(l, test.answer)
			_, err := s.Command("prompt", "quiet")
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, "`duet-rpc daemon stop` ends it")
			editor := s.Start()
			refused := editor.Refused("launchSession", object{"query": "quiet"})
			assert.Equal(t, "subsystem_unavailable", refused.Kind())
			assert.Contains(t, refused.Message, test.says)
			editor.RequireCore()
			editor.Leave()
		})
	}
}

// `daemon logs -f` prints each new line of the log at once.
func TestTheLogOfADaemonIsFollowed(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	path := filepath.Join(s.State(), "daemon.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	log, err := os.Create(path)
	require.NoError(t, err)
	defer log.Close()
	cmd := s.ShellCommand("daemon", "logs", "-f")
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
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	s.Run("prompt", "quiet")
	for _, args := range [][]string{{"daemon", "logs", "-f"}, {"events", "--since", "0"}, {"events", "--since", "0", "--json"}} {
		cmd := s.ShellCommand(args...)
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
		case <-time.After(e2e.Watchdog / 3):
			_ = cmd.Process.Kill()
			<-ended
			require.Fail(t, "the command still runs", "%v", args)
		}
	}
	s.Run("daemon", "stop")
}

// Fifty clients that start at once start one daemon. If that daemon dies, they start one successor.
func TestFiftyClientsStartOneDaemon(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	var clients [50]*e2e.Client
	for i := range clients {
		clients[i] = s.Start()
	}
	requireOne := func(started int) (hub int) {
		var asked sync.WaitGroup
		for _, c := range clients {
			asked.Go(func() { assert.NoError(t, c.TryAgain("task.stats", object{}, nil)) })
		}
		asked.Wait()
		hub = requireDaemon(s, clients[:]...)
		require.Equal(t, started, strings.Count(s.DaemonLog(), "msg=started"), s.DaemonLog())
		return hub
	}
	first := requireOne(1)
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	require.NotEqual(t, first, requireOne(2))
	for _, c := range clients {
		c.Leave()
	}
	s.Run("daemon", "stop")
}

// If the user's state directory is read-only, no daemon starts. The core methods work, and other
// requests report the remedy.
func TestHomeIsReadOnly(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	state := filepath.Join(s.Home, "state")
	require.NoError(t, os.MkdirAll(state, 0o700))
	readOnly(t, state)
	editor := s.Start()
	editor.RequireCore()
	editor.RequireUnavailable("read-only file system; set DUET_STATE_HOME to a directory that can be written")
	editor.RequireDegraded("DUET_STATE_HOME")
	editor.RequireCore()
	s.Refuses("set DUET_STATE_HOME to a directory that can be written", "prompt", "quiet")
	editor.Leave()

	s.Env = append(s.Env, "DUET_STATE_HOME="+filepath.Join(s.Home, "elsewhere"))
	out := s.Run("prompt", "quiet")
	assert.Contains(t, out, "You asked: quiet")
	s.Run("daemon", "stop")
}

// A daemon starts without another program, such as setsid.
func TestADaemonNeedsNoOtherProgram(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	s.Env = append(s.Env, "PATH="+s.Home)
	editor := s.Open()
	editor.Runs("quiet")
	daemon := requireDaemon(s, editor)
	session, err := unix.Getsid(daemon)
	require.NoError(t, err)
	require.Equal(t, daemon, session, "the daemon leads its own session")
	editor.Leave()
	s.Run("daemon", "stop")
}

// The clock was two years ahead, and is right again. Runs from then continue, and new sessions
// count as the latest.
func TestTheClockJumps(t *testing.T) {
	s, editor := e2e.NewEditorSite(e2e.Parallel(t))
	editor.Runs("quiet")
	asking, question := editor.Asks("permit:1", "")
	editor.Leave() // and the daemon ends
	db := s.OpenDatabase("")
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

	editor = s.Open()
	editor.Approve(question.Data.ApprovalID)
	editor.AwaitThread(asking.ThreadID)
	out := s.Run("prompt", "quiet and new")
	require.Contains(t, out, "You asked: quiet and new")
	out = s.Run("session", "show", "last")
	require.Contains(t, out, "quiet and new", "the last session is the one that began last")
	out = s.Run("session", "list")
	require.Contains(t, strings.SplitN(out, "\n", 3)[1], "quiet and new", "the newest session is the first of the list")
	out = s.Run("events", "--no-follow", "--since", "0")
	require.Greater(t, strings.LastIndex(out, " 3.1 "), strings.LastIndex(out, " 1.1 "), "events are in the order of their numbers")
	editor.Leave()
}

// An editor may send all its requests before it reads: requests for the process itself, and one for
// the daemon.
func TestAnEditorThatReadsLast(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	p := s.Launch().Start(t)
	var all strings.Builder
	const pings = 5_000
	for i := range 2*pings + 1 {
		method := "ping"
		if i == pings {
			method = "task.stats"
		}
		all.WriteString(e2e.Framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s"}`, i, method)))
	}
	_, err := p.Stdin.WriteString(all.String())
	require.NoError(t, err)
	answered := make(map[string]bool)
	for range 2*pings + 1 {
		var r struct{ ID json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(p.Next()), &r))
		answered[string(r.ID)] = true
	}
	require.Len(t, answered, 2*pings+1)
	require.NoError(t, p.Stdin.Close())
	<-p.Ended
}
