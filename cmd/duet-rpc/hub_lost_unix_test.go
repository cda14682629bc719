//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	// lately gives a working hub enough time to answer on a slow machine.
	lately = "--answer-within=4s"
)

// Every command reports a hub that does not answer, and ends. `daemon stop --force` kills such a
// hub.
func TestHubThatDoesNotAnswer(t *testing.T) {
	for name, silence := range map[string]func(t *testing.T, s *site, pid int){
		"stopped":          func(t *testing.T, _ *site, pid int) { suspendHub(t, pid) },
		"without a socket": func(t *testing.T, s *site, _ int) { require.NoError(t, os.Remove(s.socketPath())) }, // a logout may remove it
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(parallel(t))
			pid := s.daemon()
			silence(t, s, pid)
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
					assert.ErrorContains(t, err, fmt.Sprintf("(process %d)", pid), "%v", args)
					assert.ErrorContains(t, err, "does not answer; `duet-rpc daemon stop --force` ends it", "%v", args)
				})
			}
			group.Wait()
			out, err := s.command(soon, "doctor")
			require.Error(t, err)
			assert.Contains(t, out, "does not answer")
			out = s.run(soon, "daemon", "stop", "--force")
			assert.Contains(t, out, fmt.Sprintf("killed, since it did not answer (process %d)", pid))
			s.refuses("no hub runs here", "daemon", "stop", "--force")
		})
	}
}

// While another process starts a daemon and does not finish, a command that needs one names the
// hub that does not answer, and without a hub that other process.
func TestStartThatDoesNotFinish(t *testing.T) {
	s := newSite(parallel(t))
	pid := s.daemon()
	starting, err := project.Project{StateDir: s.state()}.LockStart(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Remove(s.socketPath()))
	_, err = s.command(soon, "daemon", "start")
	require.ErrorContains(t, err, fmt.Sprintf("the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	s.run(soon, "daemon", "stop", "--force")
	_, err = s.command("--answer-within=1s", "daemon", "start") // long enough to see the other process once
	require.ErrorContains(t, err, fmt.Sprintf("process %d starts a daemon here, and has not finished within 2s: try again, or end that process", os.Getpid()))
	require.NoError(t, starting.Close())
	s.run("daemon", "start")
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

// A command reports a program on the hub's socket that is no hub. It does not kill that program.
func TestStrangerOnTheHubsSocketDoesNotAnswer(t *testing.T) {
	s := newSite(parallel(t))
	s.stranger()
	s.others.Store(true) // otherwise the site would send daemon.stop to the stranger
	for _, args := range [][]string{
		{soon, "task", "list"},
		{lately, "daemon", "start"}, // time for the daemon that it starts to find the socket in use, and to end
		{soon, "daemon", "stop", "--force"},
	} {
		_, err := s.command(args...)
		assert.ErrorContains(t, err, "does not answer, and it is not this project's hub", "%v", args)
		// A daemon that the command has started ends by itself, maybe later than the command.
		require.Eventually(t, project.Project{StateDir: s.state()}.Unlocked, watchdog/3, pollEvery)
	}
}

// A signal ends a command that waits for a hub which does not answer.
func TestSignalEndsACommandThatWaits(t *testing.T) {
	s := newSite(parallel(t))
	stranger := s.stranger()
	require.NoError(t, stranger.(*net.UnixListener).SetDeadline(time.Now().Add(watchdog))) // limits the wait for a command that does not connect
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, args := range [][]string{{"task", "list"}, {"prompt", "quiet"}, {"daemon", "stop"}, {"daemon", "start"}} {
			l := s.launch(append([]string{"--answer-within=1h"}, args...)...)
			p := l.start(t)
			p.closeStdin() // an open stdin would be context of the prompt
			conn, err := stranger.Accept()
			require.NoError(t, err)
			_, err = conn.Read(make([]byte, 1)) // the command has sent a request
			require.NoError(t, err)
			require.NoError(t, p.cmd.Process.Signal(sig))
			select {
			case <-p.ended:
			case <-time.After(watchdog / 3):
				require.Fail(t, "the command still runs", "%v after %v", args, sig)
			}
			assert.Equal(t, 130, p.cmd.ProcessState.ExitCode(), "%v after %v", args, sig)
			conn.Close()
			if slices.Contains(args, "start") {
				p.requireLog("duet-rpc: interrupted; no daemon runs here\n")
			}
		}
	}
}

// A second signal ends a command that the first one has not ended.
func TestSecondSignalEndsACommandAtOnce(t *testing.T) {
	s := newSite(parallel(t))
	pid := s.daemon()
	p := s.prompt(t, "quiet permit:1")
	p.sees("Allow? ")
	suspendHub(t, pid)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	p.sees("press C-c again to end at once")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	<-p.ended
	assert.Equal(t, 130, p.cmd.ProcessState.ExitCode())
}

// A command waits while the holder of the hub's lock opens its socket. Without a socket, it fails
// after its time limit.
func TestCommandWaitsForTheSocketOfAHub(t *testing.T) {
	s := newSite(parallel(t))
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
	l := s.stranger() // the lock holder opens its socket
	defer l.Close()
	go answerAll(l, fmt.Sprintf(`"result":{"protocol":%d}`, hubprocess.Protocol))
	assert.NoError(t, <-done)
}

// answerAll sends the same answer to each request on the connections of a listener, until the
// listener closes.
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
				if len(m.ID) > 0 { // a message without an id is the client's environment
					_, _ = conn.Write(frame.Append(nil, frame.LSP, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)))
				}
			}
		}()
	}
}

// A running daemon opens the sockets of --listen, too: of `daemon start` and of an editor. They stay
// open until it ends. What it cannot open is said on the standard error of the process that wants
// it, in health and in the status.
func TestListenAtARunningDaemon(t *testing.T) {
	s := newSite(parallel(t))
	pid := s.daemon()
	extra, editors := filepath.Join(s.home, "extra.sock"), filepath.Join(s.home, "editors.sock")
	assert.Equal(t, pid, s.daemon("--listen", extra))
	assert.Equal(t, pid, s.daemon("--listen", extra), "the daemon listens there already")
	require.Equal(t, pid, hubOf(t, newLineClient(t, extra)))

	taken := filepath.Join(s.root, "taken")
	writeFile(t, taken, "mine")
	s.refuses("cannot open the socket of --listen: listening on "+taken, "daemon", "start", "--listen", taken)
	s.args = []string{"--listen", editors, "--listen", taken}
	editor := s.start()
	require.Equal(t, pid, hubOf(t, editor))
	require.Equal(t, pid, hubOf(t, newLineClient(t, editors)))
	const problem = "cannot open the socket of --listen: listening on "
	editor.process.requireLog(problem + taken)
	var health struct{ Issues []string }
	editor.call("health", object{}, &health)
	assert.Contains(t, strings.Join(health.Issues, "\n"), problem+taken)
	s.args = nil
	assert.Contains(t, s.run("daemon", "status"), problem+taken)
	editor.leave()
	requireSocket(t, editors)

	require.NoError(t, os.Remove(taken))
	assert.Equal(t, pid, s.daemon("--listen", taken))
	assert.NotContains(t, s.run("daemon", "status"), problem)
	s.run("daemon", "stop")
	for _, path := range []string{extra, editors, taken} {
		requireNoFile(t, path)
	}
}

// An editor learns of a suspended hub from the error of its request, and from health. So does a new
// editor. When the hub continues, the editors continue, and no request has run twice.
func TestEditorsOfAHubThatDoesNotAnswer(t *testing.T) {
	s := newSite(parallel(t))
	s.args = []string{lately}
	pid := s.daemon()
	editor := s.open()
	editor.runs("quiet before")
	suspendHub(t, pid)

	e := editor.refused("launchSession", object{"query": "quiet sent"})
	assert.Equal(t, "hub_silent", e.kind())
	assert.Contains(t, e.Message, fmt.Sprintf("the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	assert.Contains(t, string(e.Data), `"retry":false`)
	editor.await("the hub_silent event", func(e event) bool { return e.Type == "hub_silent" })
	editor.requireDegraded(fmt.Sprintf("process %d", pid))
	e = editor.refused("launchSession", object{"query": "quiet kept back"})
	assert.Contains(t, string(e.Data), `"retry":true`)

	// A new editor starts while the hub is suspended.
	late := s.start()
	late.requireCore()
	e = late.refused("listSessions", object{})
	assert.Contains(t, e.Message, fmt.Sprintf("the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	late.requireIssue(fmt.Sprintf("process %d", pid))

	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	editor.await("the hub_answers event", func(e event) bool { return e.Type == "hub_answers" })
	editor.runs("quiet after")
	var queries []string
	for _, session := range editor.sessions() {
		queries = append(queries, session.Query)
	}
	assert.ElementsMatch(t, []string{"quiet before", "quiet sent", "quiet after"}, queries)
	editor.requireNoIssue()
	require.Eventually(t, func() bool { return late.try("listSessions", object{}, nil) == nil }, watchdog/3, 100*time.Millisecond)
	leave(editor, late)
}

// `duet-rpc prompt` reports a suspended hub to the user. The hub handles the user's answer when it
// continues.
func TestPromptTellsOfAHubThatDoesNotAnswer(t *testing.T) {
	s := newSite(parallel(t))
	pid := s.daemon()
	p := s.prompt(t, lately, "hello")
	p.sees("Allow? ")
	suspendHub(t, pid)
	p.types("y", fmt.Sprintf("— the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	p.sees("— the hub answers again", "completed")
	said := p.endsWith(0)
	assert.Contains(t, said, "I wrote demo.txt")
	s.run("daemon", "stop")
}

// holdDatabase creates the site's database, and a transaction in it that blocks every other one.
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

// If another process holds the database, the error names that process and the command that ends it.
func TestDatabaseThatIsLockedByAnother(t *testing.T) {
	s := newSite(parallel(t))
	release := s.holdDatabase()
	c := s.start()
	e := c.refused("listSessions", object{})
	assert.Equal(t, "subsystem_unavailable", e.kind())
	assert.Contains(t, e.Message, "is in the hands of another process, which does not let go of it")
	assert.Contains(t, e.Message, fmt.Sprintf("it is process %d, which `kill -9 %d` ends", os.Getpid(), os.Getpid()))
	c.requireIssue(fmt.Sprintf("process %d", os.Getpid()))
	release()
	require.Eventually(t, func() bool { return c.try("listSessions", object{}, nil) == nil }, watchdog/3, 100*time.Millisecond, "the database is available again")
	c.leave()
}

// A hub whose state directory is removed or replaced confirms nothing that is lost. A moment later
// there is one hub again.
func TestStateDirectoryIsRemovedUnderAHub(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(t *testing.T, s *site){
		"removed": func(t *testing.T, s *site) { // the hub may create files in it meanwhile
			require.Eventually(t, func() bool { return os.RemoveAll(s.state()) == nil }, watchdog/3, pollEvery)
		},
		"moved away":          func(t *testing.T, s *site) { require.NoError(t, os.Rename(s.state(), filepath.Join(s.home, "away"))) },
		"the lock is removed": func(t *testing.T, s *site) { require.NoError(t, os.Remove(filepath.Join(s.state(), "lock"))) },
	} {
		t.Run(name, func(t *testing.T) {
			s, editor := newEditorSite(parallel(t))
			other := s.open()
			hub := hubOf(t, other)
			editor.runs("quiet one")

			remove(t, s)
			s.requireNotOf(hub, editor.try("launchSession", object{"query": "quiet two"}, nil))

			// One new hub serves the old editors and a new one.
			var begun launched
			require.Eventually(t, func() bool {
				return editor.try("launchSession", object{"query": "quiet three"}, &begun) == nil
			}, watchdog/3, 100*time.Millisecond, "no new hub serves the editor")
			next := s.lockHolder()
			assert.NotEqual(t, hub, next)
			third := s.open()
			for _, c := range []*client{other, third} {
				require.Eventually(t, func() bool { // the editor may not have seen the loss of its hub yet
					var status struct{ PID int }
					return c.try("daemon.status", object{}, &status) == nil && status.PID == next
				}, watchdog/3, 100*time.Millisecond, "the editors have different hubs")
			}
			editor.requireNoIssue()
			begun = third.launch("quiet four", "")
			for _, c := range []*client{editor, other, third} {
				c.completes(begun)
			}
			for _, c := range []*client{third, other, editor} {
				c.leave()
			}
		})
	}
}

// requireNotOf requires that a daemon without its files has confirmed nothing: the request failed,
// or the next daemon has received it.
func (s *site) requireNotOf(hub int, err error) {
	s.t.Helper()
	if err == nil {
		require.NotEqual(s.t, hub, s.lockHolder())
		return
	}
	var e *wireError
	require.ErrorAs(s.t, err, &e)
	if e.kind() != "hub_lost" {
		require.Equal(s.t, "subsystem_unavailable", e.kind())
		require.Contains(s.t, e.Message, "the project's directory or its state was removed, moved or replaced")
	}
}

// A hub ends after another process has become the hub, so that there is only one.
func TestHubThatWasReplacedEnds(t *testing.T) {
	s := newSite(parallel(t))
	editor := s.start()
	editor.launch("quiet", "")
	hub := hubOf(t, editor)
	p := project.Project{Root: s.root, StateDir: filepath.Join(s.home, "other")}
	require.NoError(t, p.Prepare())
	lock, err := p.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Rename(s.state(), filepath.Join(s.home, "away")))
	require.NoError(t, os.Rename(p.StateDir, s.state()))
	require.Eventually(t, func() bool { return syscall.Kill(hub, 0) != nil }, watchdog/3, pollEvery, "process %d still runs", hub)
	require.NoError(t, lock.Close())
	require.Eventually(t, func() bool { return editor.try("listSessions", object{}, nil) == nil }, watchdog/3, pollEvery)
	editor.leave()
}

// A daemon ends after the removal of its project.
func TestDaemonEndsWithItsProject(t *testing.T) {
	s := newSite(parallel(t))
	pid := s.daemon()
	require.NoError(t, os.RemoveAll(s.root))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, watchdog/3, pollEvery, "process %d still runs", pid)
	assert.NoDirExists(t, s.root, "the daemon does not create the project again")
}

// A hub whose write-ahead log or its index is removed confirms nothing that is lost. Confirmed
// sessions survive a kill.
func TestWriteAheadLogIsRemovedUnderAHub(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"-wal", "-shm"} {
		for _, how := range []string{"removed", "replaced"} {
			t.Run(end+" "+how, func(t *testing.T) {
				s, editor := newEditorSite(parallel(t))
				hub := hubOf(t, editor)
				confirmed := []launched{editor.launch("quiet one", "")}
				editor.awaitEnd(confirmed[0].SessionID)

				file := filepath.Join(s.state(), "duet.db"+end)
				require.NoError(t, os.Remove(file))
				if how == "replaced" {
					require.NoError(t, os.WriteFile(file, nil, 0o600))
				}
				s.requireNotOf(hub, editor.try("launchSession", object{"query": "quiet two"}, nil))
				for deadline := time.Now().Add(watchdog / 3); time.Now().Before(deadline) && len(confirmed) < 10; {
					var begun launched
					if editor.try("launchSession", object{"query": "quiet three"}, &begun) == nil {
						confirmed = append(confirmed, begun)
					}
				}
				require.Len(t, confirmed, 10, "no new hub confirms sessions")
				editor.crash()

				next := s.start()
				for _, run := range confirmed {
					assert.NoError(t, next.try("getSessionState", object{"session_id": run.SessionID}, nil), "%s was confirmed", run.SessionID)
				}
				next.leave()
			})
		}
	}
}

// The user can remove the cause of a missing hub while the editor's process runs.
func TestWhatIsMendedWorks(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]struct {
		says          string
		spoil, mended func(s *site) error
	}{
		"a mistake in the configuration": {
			says: ".duet.toml:1",
			spoil: func(s *site) error {
				return os.WriteFile(filepath.Join(s.root, ".duet.toml"), []byte("hub = \n"), 0o600)
			},
			mended: func(s *site) error { return os.WriteFile(filepath.Join(s.root, ".duet.toml"), nil, 0o600) },
		},
		"no place for the state": {
			says: "is no directory",
			spoil: func(s *site) error {
				return errors.Join(os.MkdirAll(filepath.Dir(s.state()), 0o700), os.WriteFile(s.state(), nil, 0o600))
			},
			mended: func(s *site) error { return os.Remove(s.state()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(parallel(t))
			require.NoError(t, wrong.spoil(s))
			c := s.start()
			require.ErrorContains(t, c.try("listSessions", object{}, nil), wrong.says)
			c.requireCore()
			var health struct{ Issues []string }
			c.call("health", object{}, &health)
			assert.Contains(t, strings.Join(health.Issues, "\n"), wrong.says)

			require.NoError(t, wrong.mended(s))
			require.Eventually(t, func() bool {
				return c.try("listSessions", object{}, nil) == nil
			}, watchdog/3, pollEvery, "the editor has no hub after the repair")
			c.subscribe()
			c.runs("quiet")
			health.Issues = nil
			c.call("health", object{}, &health)
			assert.Empty(t, health.Issues)

			// Another editor uses the same hub.
			second := s.open()
			assert.Equal(t, hubOf(t, c), hubOf(t, second))
			leave(second, c)
		})
	}
}

// However a hub ends, a client that follows tasks receives the end of each task once, even from the
// next hub.
func TestEndOfTasksIsToldWhenTheHubEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, hub int, other *client){
		"SIGKILL": func(t *testing.T, hub int, _ *client) { require.NoError(t, syscall.Kill(hub, syscall.SIGKILL)) },
		"SIGTERM": func(t *testing.T, hub int, _ *client) { require.NoError(t, syscall.Kill(hub, syscall.SIGTERM)) },
		"daemon.stop": func(_ *testing.T, _ int, other *client) {
			other.call("daemon.stop", object{"force": true}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, hub := newEditorSite(parallel(t))
			before := hub.launch("quiet permit:1 before", "") // before any client follows tasks
			hub.awaitQuestion(before.SessionID)
			attached := s.start()
			process := hubOf(t, attached)
			require.Equal(t, process, hubOf(t, hub))
			attached.call("task.stats", object{}, nil)
			line := s.lines()
			line.call("task.stats", object{}, nil)
			after, _ := hub.asks("quiet permit:1 after", "")
			attached.awaitNote("event.taskStarted", after.TaskID)

			end(t, process, attached)
			s.awaitRelease(process)                                // until then the hub refuses requests
			for attached.try("task.stats", object{}, nil) != nil { // a request that needs a hub
			}
			for _, task := range []launched{before, after} {
				attached.awaitNote("event.taskCancelled", task.TaskID)
			}
			again := attached.launch("quiet", "")
			attached.awaitNote("event.taskCompleted", again.TaskID)
			assert.Equal(t, 1, attached.count("event.taskCancelled", before.TaskID), "once")
			assert.Equal(t, 1, attached.count("event.taskCancelled", after.TaskID), "once")
			if name == "daemon.stop" { // a signal leaves less time
				line.requireClosed()
				for _, task := range []launched{before, after} {
					assert.Equal(t, 1, line.count("event.taskCancelled", task.TaskID), "before the connection ended")
				}
			}
			attached.leave()
		})
	}
}

// takeovers is the number of kills of the hub in one project.
const takeovers = 5

// workingWithin limits the time of an editor without a hub after a kill.
const workingWithin = 2 * time.Second

// After a kill of the daemon, another one takes its place at once. Editors lose only their pending
// requests.
func TestTakeover(t *testing.T) {
	t.Parallel()
	fast := fastProgram(t)
	takeOver(t, fast, takeovers, workingWithin)
}

// takeOver repeatedly kills the hub of a project with four editors.
func takeOver(t *testing.T, binary string, times int, within time.Duration) {
	s := newSite(t)
	s.binary = binary
	s.args = []string{"--test-methods"}
	var editors []*client
	join := func() *client {
		c := s.open()
		editors = append(editors, c)
		return c
	}
	for range 3 {
		join()
	}
	var measured []time.Duration
	known := newLedger()
	for round := range times {
		hub := s.lockHolder()

		// Two runs are active: one streams text, and one waits for an answer.
		talking := editors[0].launch(fmt.Sprintf("quiet stream:100000@400 round %d", round), "")
		asking := editors[1].launch(fmt.Sprintf("quiet permit:1 round %d", round), "")
		question := editors[2].awaitQuestion(asking.SessionID)
		editors[2].await("text", func(e event) bool {
			return e.Type == "message_delta" && e.Data.SessionID == talking.SessionID
		})
		behind := make([]int64, len(editors)) // the last sequence number of each editor
		for i, c := range editors {
			c.awaitText(talking)
			c.awaitQuestion(asking.SessionID)
			behind[i] = lastSeq(c.seen())
		}

		// Each editor has pending requests, and sends others as soon as it learns of their loss.
		var group sync.WaitGroup
		var mu sync.Mutex
		var killed *stopwatch // runs since the kill
		type outcome struct {
			lost  []error
			after time.Duration
			pid   int
			err   error
		}
		outcomes := make([]outcome, len(editors))
		pendings := func(c *client) []func() error {
			return []func() error{
				func() error { return c.try("test.sleep", object{"ms": 80_000}, nil) },
				func() error {
					return c.try("execute_prompt", object{"prompt": "quiet permit:1", "timeout_ms": 80_000}, nil)
				},
			}
		}
		for i, c := range editors {
			group.Go(func() {
				var both sync.WaitGroup
				lost := make([]error, 2)
				for j, ask := range pendings(c) {
					both.Go(func() { lost[j] = ask() })
				}
				both.Wait()
				var status struct{ PID int }
				err := errors.Join(c.try("task.stats", object{}, nil), c.try("daemon.status", object{}, &status))
				mu.Lock()
				defer mu.Unlock()
				outcomes[i] = outcome{lost, killed.had(), status.PID, err}
			})
		}
		// The hub has the prompts of the editors.
		require.Eventually(t, func() bool { return len(editors[0].pending()) >= 1+len(editors) }, watchdog/3, pollEvery, "the questions of the prompts are missing")

		mu.Lock()
		killed = startStopwatch(t)
		mu.Unlock()
		s.crashHub()
		group.Wait()
		killed.ends()
		successor := s.lockHolder()
		var took []time.Duration
		for i, o := range outcomes {
			for _, err := range o.lost {
				var e *wireError
				require.ErrorAs(t, err, &e, "editor %d", i)
				assert.Equal(t, -32042, e.Code, "%v", e)
				assert.JSONEq(t, `{"kind":"hub_lost","retry":true}`, string(e.Data))
			}
			require.NoError(t, o.err, "editor %d", i)
			assert.Equal(t, successor, o.pid, "one process has the lock and answers all")
			assert.Less(t, o.after, within, "editor %d", i)
			took = append(took, o.after)
		}
		measured = append(measured, took...)
		require.NotEqual(t, hub, successor)
		lines := s.lines()
		assert.Equal(t, successor, hubOf(t, lines), "the lock holder listens")
		lines.conn.Close()

		// The streaming run ends as interrupted, and the question stays open. All editors receive
		// both, and a new client receives the same events.
		for _, c := range editors {
			c.endsAs(talking.SessionID, "interrupted", "ORPHANED")
			require.True(t, c.pending()[question.Data.ApprovalID].Stale)
		}
		join()
		next := editors[1].launch("quiet", "")
		var last int64
		for _, c := range editors {
			end := c.awaitEnd(next.SessionID)
			assert.Equal(t, "completed", end.Data.State)
			last = end.Seq
		}
		fresh := editors[len(editors)-1].seen()
		want := lasting(fresh, last)
		texts := textsOf(fresh)
		for i, c := range editors[:3] {
			seen := c.seen()
			requireRising(t, seen)
			got := lasting(seen, last)
			for seq, reported := range want {
				if _, ok := got[seq]; !ok {
					assert.Fail(t, "an event is lost", "editor %d, which had seen %d, did not receive %d %s", i, behind[i], seq, reported)
				}
			}
			for seq, reported := range got {
				assert.Equal(t, want[seq], reported, "event %d of editor %d", seq, i)
			}
			for key, text := range textsOf(seen) {
				assert.Equal(t, texts[key], text, "the text %s of editor %d", key, i)
			}
		}
		known.take(t, fresh)
		answered := editors[round%len(editors)]
		answered.approve(question.Data.ApprovalID)
		for id := range answered.pending() {
			if id != question.Data.ApprovalID {
				answered.call("sendDecision", object{"approval_id": id, "decision": "deny", "comment": "no agent asks this now"}, nil)
			}
		}
		for _, c := range editors { // the asking run continues
			c.await("the question's answer", func(e event) bool {
				return e.Type == "approval_resolved" && e.Data.ApprovalID == question.Data.ApprovalID && e.Data.Decision == "approved"
			})
			c.awaitThread(asking.ThreadID)
		}
		require.False(t, t.Failed(), "round %d", round)
		editors[0].leave()
		editors = editors[1:]
	}
	slices.Sort(measured)
	t.Logf("from the kill to an answer, for %d editors: median %v, worst %v", len(measured),
		measured[len(measured)/2].Round(time.Millisecond), measured[len(measured)-1].Round(time.Millisecond))

	for _, c := range editors {
		c.leave()
	}
	requireNoFile(t, s.socketPath())
}

// lastSeq returns the highest sequence number of events.
func lastSeq(events []event) (last int64) {
	for _, e := range events {
		last = max(last, e.Seq)
	}
	return last
}
