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
	// lately is for who has a hub that answers before, on a machine that may be slow.
	lately = "--answer-within=4s"
)

// silentDaemon makes the site's hub a daemon that is stopped as by a debugger: it
// listens, and does not answer.
func (s *site) silentDaemon() (pid int) {
	s.t.Helper()
	pid = s.daemon()
	suspendHub(s.t, pid)
	return pid
}

// Where a hub does not answer every command says so and ends; it can be killed.
func TestHubThatDoesNotAnswer(t *testing.T) {
	s := newSite(parallel(t))
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
	s := newSite(parallel(t))
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
	s := newSite(parallel(t))
	stranger := s.stranger()
	require.NoError(t, stranger.(*net.UnixListener).SetDeadline(time.Now().Add(watchdog))) // a command that does not ask
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, args := range [][]string{{"task", "list"}, {"prompt", "quiet"}, {"daemon", "stop"}, {"daemon", "start"}} {
			l := s.launch(append([]string{"--answer-within=1h"}, args...)...)
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

// Who comes while a process that has the lock opens its socket waits for it,
// but not long for one that has none.
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
	s := newSite(parallel(t))
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
	editor.await("that the hub is silent", func(e event) bool { return e.Type == "hub_silent" })
	editor.requireDegraded(fmt.Sprintf("process %d", pid))
	e = editor.refused("launchSession", object{"query": "quiet kept back"})
	assert.Contains(t, string(e.Data), `"retry":true`)

	// One that comes now.
	late := s.start()
	late.requireCore()
	e = late.refused("listSessions", object{})
	assert.Contains(t, e.Message, fmt.Sprintf("the hub (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	late.requireIssue(fmt.Sprintf("process %d", pid))

	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	editor.await("that the hub answers", func(e event) bool { return e.Type == "hub_answers" })
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

// So does the user at a prompt; the hub handles their answers when
// the hub goes on.
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
	s := newSite(parallel(t))
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

// A hub whose directory is removed or replaced under it, as git clean -fdx does,
// confirms nothing that is lost; a moment later there is one hub again.
func TestStateDirectoryIsRemovedUnderAHub(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(t *testing.T, s *site){
		"removed":             removeState,
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

			// There is a hub again, for the editors that were there and for those that come.
			var begun launched
			require.Eventually(t, func() bool {
				return editor.try("launchSession", object{"query": "quiet three"}, &begun) == nil
			}, watchdog/3, 100*time.Millisecond, "there is no hub again")
			next := s.lockHolder()
			assert.NotEqual(t, hub, next)
			third := s.open()
			for _, c := range []*client{other, third} {
				require.Eventually(t, func() bool { // the editor that has just lost its hub learns it
					var status struct{ PID int }
					return c.try("daemon.status", object{}, &status) == nil && status.PID == next
				}, watchdog/3, 100*time.Millisecond, "another editor has another hub")
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

// removeState removes the state directory. The hub may create files in it meanwhile.
func removeState(t *testing.T, s *site) {
	require.Eventually(t, func() bool { return os.RemoveAll(s.state()) == nil }, watchdog/3, pollEvery)
}

// requireNotOf requires that a daemon which has lost its files has confirmed nothing: the request
// failed, or the next daemon has got it.
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

// Where another process has become the hub meanwhile the old one ends: there is one at any time.
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
	require.Eventually(t, func() bool { return syscall.Kill(hub, 0) != nil }, watchdog/3, pollEvery, "process %d goes on", hub)
	require.NoError(t, lock.Close())
	require.Eventually(t, func() bool { return editor.try("listSessions", object{}, nil) == nil }, watchdog/3, pollEvery)
	editor.leave()
}

// A daemon whose project is removed ends.
func TestDaemonEndsWithItsProject(t *testing.T) {
	s := newSite(parallel(t))
	pid := s.daemon()
	require.NoError(t, os.RemoveAll(s.root))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, watchdog/3, pollEvery, "process %d goes on", pid)
	assert.NoDirExists(t, s.root, "and it is not made again")
}

// A hub whose write-ahead log, or its index, is removed confirms nothing that is
// lost, and what it confirmed before is there after a kill.
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
				require.Len(t, confirmed, 10, "there is a hub again")
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

// What keeps the hub from being opened can be mended while the editor's process
// runs.
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
			}, watchdog/3, pollEvery, "it works again")
			c.subscribe()
			c.runs("quiet")
			health.Issues = nil
			c.call("health", object{}, &health)
			assert.Empty(t, health.Issues)

			// And it is the hub for others.
			second := s.open()
			assert.Equal(t, hubOf(t, c), hubOf(t, second))
			leave(second, c)
		})
	}
}

// However a hub ends, a client that follows tasks learns once how each has ended,
// also who came to another hub then.
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
			s.awaitRelease(process)                                // until then it refuses what is asked
			for attached.try("task.stats", object{}, nil) != nil { // what needs a hub
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

// takeovers is how often the hub is killed in one project.
const takeovers = 5

// workingWithin is how long an editor whose hub was killed may be without one.
const workingWithin = 2 * time.Second

// When the daemon is killed, another takes its place at once, and no editor loses
// anything but what it was just asking.
func TestTakeover(t *testing.T) {
	t.Parallel()
	fast := fastProgram(t)
	takeOver(t, fast, takeovers, workingWithin)
}

// takeOver kills the hub of four editors' project again and again.
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

		// Runs are under way: one that talks, one that asks, one that waits.
		talking := editors[0].launch(fmt.Sprintf("quiet stream:100000@400 round %d", round), "")
		asking := editors[1].launch(fmt.Sprintf("quiet permit:1 round %d", round), "")
		question := editors[2].awaitQuestion(asking.SessionID)
		editors[2].await("text", func(e event) bool {
			return e.Type == "message_delta" && e.Data.SessionID == talking.SessionID
		})
		behind := make([]int64, len(editors)) // the last number each has seen
		for i, c := range editors {
			c.awaitText(talking)
			c.awaitQuestion(asking.SessionID)
			behind[i] = lastSeq(c.seen())
		}

		// Each editor has requests pending, and asks on as soon as it learns
		// that they are lost.
		var group sync.WaitGroup
		var mu sync.Mutex
		var killed *stopwatch // since then
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
		// The hub has what they ask.
		require.Eventually(t, func() bool { return len(editors[0].pending()) >= 1+len(editors) }, watchdog/3, pollEvery, "the prompts do not come to ask")

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
		assert.Equal(t, successor, hubOf(t, lines), "who has the lock listens")
		lines.conn.Close()

		// What ran is interrupted, what was asked is still asked; everybody is
		// sent both, and a new client receives the same.
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
		for _, c := range editors { // it goes on where it asked
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

// lastSeq is the highest number among events.
func lastSeq(events []event) (last int64) {
	for _, e := range events {
		last = max(last, e.Seq)
	}
	return last
}
