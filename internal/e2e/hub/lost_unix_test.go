//go:build unix

package hub

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
	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// soon keeps a command from waiting long for a hub that does not answer.
const soon = "--answer-within=300ms"

// Every command reports a hub that does not answer, and ends. `daemon stop --force` kills such a
// hub.
func TestHubThatDoesNotAnswer(t *testing.T) {
	for name, silence := range map[string]func(t *testing.T, s *e2e.Site, pid int){
		"stopped":          func(t *testing.T, _ *e2e.Site, pid int) { e2e.SuspendHub(t, pid) },
		"without a socket": func(t *testing.T, s *e2e.Site, _ int) { require.NoError(t, os.Remove(s.SocketPath())) }, // a logout may remove it
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			pid := s.Daemon()
			silence(t, s, pid)
			var group sync.WaitGroup
			for _, args := range [][]string{
				{"session", "list", "--turns"},
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
					_, err := s.Command(append([]string{soon}, args...)...)
					assert.ErrorContains(t, err, fmt.Sprintf("(process %d)", pid), "%v", args)
					assert.ErrorContains(t, err, "does not answer; `duet-rpc daemon stop --force` ends it", "%v", args)
				})
			}
			group.Wait()
			out, err := s.Command(soon, "doctor")
			require.Error(t, err)
			assert.Contains(t, out, "does not answer")
			out = s.Run(soon, "daemon", "stop", "--force")
			assert.Contains(t, out, fmt.Sprintf("killed, since it did not answer (process %d)", pid))
			s.Refuses("no daemon runs here", "daemon", "stop", "--force")
		})
	}
}

// While another process starts a daemon and does not finish, a command that needs one names the
// hub that does not answer, and without a hub that other process.
func TestStartThatDoesNotFinish(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	pid := s.Daemon()
	starting, err := project.Project{StateDir: s.State()}.LockStart(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Remove(s.SocketPath()))
	_, err = s.Command(soon, "daemon", "start")
	require.ErrorContains(t, err, fmt.Sprintf("the daemon (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	s.Run(soon, "daemon", "stop", "--force")
	_, err = s.Command("--answer-within=1s", "daemon", "start") // long enough to see the other process once
	require.ErrorContains(t, err, fmt.Sprintf("process %d starts a daemon here, and has not finished within 2s: try again, or end that process", os.Getpid()))
	require.NoError(t, starting.Close())
	s.Run("daemon", "start")
}

// listenAsStranger listens on the site's socket, and is no hub.
func listenAsStranger(s *e2e.Site) net.Listener {
	s.T.Helper()
	require.NoError(s.T, os.MkdirAll(s.State(), 0o700))
	require.NoError(s.T, os.MkdirAll(filepath.Dir(s.SocketPath()), 0o700))
	l, err := net.Listen("unix", s.SocketPath())
	require.NoError(s.T, err)
	s.T.Cleanup(func() { l.Close() })
	require.NoError(s.T, os.Chmod(s.SocketPath(), 0o600))
	return l
}

// A command reports a program on the hub's socket that is no hub. It does not kill that program.
func TestStrangerOnTheHubsSocketDoesNotAnswer(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	listenAsStranger(s)
	s.Others.Store(true) // otherwise the site would send daemon.stop to the stranger
	for _, args := range [][]string{
		{soon, "session", "list", "--turns"},
		{e2e.Lately, "daemon", "start"}, // time for the daemon that it starts to find the socket in use, and to end
		{soon, "daemon", "stop", "--force"},
	} {
		_, err := s.Command(args...)
		assert.ErrorContains(t, err, "does not answer, and it is not this project's daemon", "%v", args)
		// A daemon that the command has started ends by itself, maybe later than the command.
		require.Eventually(t, project.Project{StateDir: s.State()}.Unlocked, e2e.Watchdog/3, e2e.PollEvery)
	}
}

// A signal ends a command that waits for a hub which does not answer.
func TestSignalEndsACommandThatWaits(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	stranger := listenAsStranger(s)
	require.NoError(t, stranger.(*net.UnixListener).SetDeadline(time.Now().Add(e2e.Watchdog))) // limits the wait for a command that does not connect
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, args := range [][]string{{"session", "list", "--turns"}, {"prompt", "quiet"}, {"daemon", "stop"}, {"daemon", "start"}} {
			l := s.Launch(append([]string{"--answer-within=1h"}, args...)...)
			p := l.Start(t)
			p.CloseStdin() // an open stdin would be context of the prompt
			conn, err := stranger.Accept()
			require.NoError(t, err)
			_, err = conn.Read(make([]byte, 1)) // the command has sent a request
			require.NoError(t, err)
			require.NoError(t, p.Cmd.Process.Signal(sig))
			select {
			case <-p.Ended:
			case <-time.After(e2e.Watchdog / 3):
				require.Fail(t, "the command still runs", "%v after %v", args, sig)
			}
			assert.Equal(t, 130, p.Cmd.ProcessState.ExitCode(), "%v after %v", args, sig)
			conn.Close()
			if slices.Contains(args, "start") {
				p.RequireLog("duet-rpc: interrupted; no daemon runs here\n")
			}
		}
	}
}

// A command waits while the holder of the hub's lock opens its socket. Without a socket, it fails
// after its time limit.
func TestCommandWaitsForTheSocketOfAHub(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.DaemonStays.Store(true) // the test is the hub
	p := project.Project{Root: s.Root, StateDir: s.State()}
	require.NoError(t, p.Prepare())
	lock, err := p.Lock(t.Context())
	require.NoError(t, err)
	defer lock.Close()
	_, err = s.Command(soon, "call", "ping")
	require.Error(t, err)

	done := make(chan error, 1)
	go func() {
		_, err := s.Command("call", "ping")
		done <- err
	}()
	l := listenAsStranger(s) // the lock holder opens its socket
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
	s := e2e.NewSite(e2e.Parallel(t))
	pid := s.Daemon()
	extra, editors := filepath.Join(s.Home, "extra.sock"), filepath.Join(s.Home, "editors.sock")
	assert.Equal(t, pid, s.Daemon("--listen", extra))
	assert.Equal(t, pid, s.Daemon("--listen", extra), "the daemon listens there already")
	require.Equal(t, pid, e2e.HubOf(t, e2e.NewLineClient(t, extra)))

	taken := filepath.Join(s.Root, "taken")
	e2e.WriteFile(t, taken, "mine")
	s.Refuses("cannot open the socket of --listen: listening on "+taken, "daemon", "start", "--listen", taken)
	s.Args = []string{"--listen", editors, "--listen", taken}
	editor := s.Start()
	require.Equal(t, pid, e2e.HubOf(t, editor))
	require.Equal(t, pid, e2e.HubOf(t, e2e.NewLineClient(t, editors)))
	const problem = "cannot open the socket of --listen: listening on "
	editor.Process.RequireLog(problem + taken)
	var health struct{ Issues []string }
	editor.Call("health", object{}, &health)
	assert.Contains(t, strings.Join(health.Issues, "\n"), problem+taken)
	s.Args = nil
	assert.Contains(t, s.Run("daemon", "status"), problem+taken)
	editor.Leave()
	requireSocket(t, editors)

	require.NoError(t, os.Remove(taken))
	assert.Equal(t, pid, s.Daemon("--listen", taken))
	assert.NotContains(t, s.Run("daemon", "status"), problem)
	s.Run("daemon", "stop")
	for _, path := range []string{extra, editors, taken} {
		e2e.RequireNoFile(t, path)
	}
}

// An editor learns of a suspended hub from the error of its request, and from health. So does a new
// editor. When the hub continues, the editors continue, and no request has run twice.
func TestEditorsOfAHubThatDoesNotAnswer(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Args = []string{e2e.Lately}
	pid := s.Daemon()
	editor := s.Open()
	editor.Runs("quiet before")
	e2e.SuspendHub(t, pid)

	e := editor.Refused("launchSession", object{"query": "quiet sent"})
	assert.Equal(t, "hub_silent", e.Kind())
	assert.Contains(t, e.Message, fmt.Sprintf("the daemon (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	assert.Contains(t, string(e.Data), `"retry":false`)
	editor.Await("the hub_silent event", func(e e2e.Event) bool { return e.Type == "hub_silent" })
	editor.RequireDegraded(fmt.Sprintf("process %d", pid))
	e = editor.Refused("launchSession", object{"query": "quiet kept back"})
	assert.Contains(t, string(e.Data), `"retry":true`)

	// A new editor starts while the hub is suspended.
	late := s.Start()
	late.RequireCore()
	e = late.Refused("listSessions", object{})
	assert.Contains(t, e.Message, fmt.Sprintf("the daemon (process %d) does not answer; `duet-rpc daemon stop --force` ends it", pid))
	late.RequireIssue(fmt.Sprintf("process %d", pid))

	require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	editor.Await("the hub_answers event", func(e e2e.Event) bool { return e.Type == "hub_answers" })
	editor.Runs("quiet after")
	var queries []string
	for _, session := range editor.Sessions() {
		queries = append(queries, session.Query)
	}
	assert.ElementsMatch(t, []string{"quiet before", "quiet sent", "quiet after"}, queries)
	editor.RequireNoIssue()
	require.Eventually(t, func() bool { return late.Try("listSessions", object{}, nil) == nil }, e2e.Watchdog/3, 100*time.Millisecond)
	e2e.Leave(editor, late)
}

// If another process holds the database, the error names that process and the command that ends it.
func TestDatabaseThatIsLockedByAnother(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	release := s.HoldDatabase()
	c := s.Start()
	e := c.Refused("listSessions", object{})
	assert.Equal(t, "subsystem_unavailable", e.Kind())
	assert.Contains(t, e.Message, "is in the hands of another process, which does not let go of it")
	assert.Contains(t, e.Message, fmt.Sprintf("it is process %d, which `kill -9 %d` ends", os.Getpid(), os.Getpid()))
	c.RequireIssue(fmt.Sprintf("process %d", os.Getpid()))
	release()
	require.Eventually(t, func() bool { return c.Try("listSessions", object{}, nil) == nil }, e2e.Watchdog/3, 100*time.Millisecond, "the database is available again")
	c.Leave()
}

// A hub whose state directory is removed or replaced confirms nothing that is lost. A moment later
// there is one hub again.
func TestStateDirectoryIsRemovedUnderAHub(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(t *testing.T, s *e2e.Site){
		"removed": func(t *testing.T, s *e2e.Site) { // the hub may create files in it meanwhile
			require.Eventually(t, func() bool { return os.RemoveAll(s.State()) == nil }, e2e.Watchdog/3, e2e.PollEvery)
		},
		"moved away": func(t *testing.T, s *e2e.Site) {
			require.NoError(t, os.Rename(s.State(), filepath.Join(s.Home, "away")))
		},
		"the lock is removed": func(t *testing.T, s *e2e.Site) { require.NoError(t, os.Remove(filepath.Join(s.State(), "lock"))) },
	} {
		t.Run(name, func(t *testing.T) {
			s, editor := e2e.NewEditorSite(e2e.Parallel(t))
			other := s.Open()
			hub := e2e.HubOf(t, other)
			editor.Runs("quiet one")

			remove(t, s)
			requireNotOf(s, hub, editor.Try("launchSession", object{"query": "quiet two"}, nil))

			// One new hub serves the old editors and a new one.
			var begun e2e.Launched
			require.Eventually(t, func() bool {
				return editor.Try("launchSession", object{"query": "quiet three"}, &begun) == nil
			}, e2e.Watchdog/3, 100*time.Millisecond, "no new hub serves the editor")
			next := s.LockHolder()
			assert.NotEqual(t, hub, next)
			third := s.Open()
			for _, c := range []*e2e.Client{other, third} {
				require.Eventually(t, func() bool { // the editor may not have seen the loss of its hub yet
					var status struct{ PID int }
					return c.Try("daemon.status", object{}, &status) == nil && status.PID == next
				}, e2e.Watchdog/3, 100*time.Millisecond, "the editors have different hubs")
			}
			editor.RequireNoIssue()
			begun = third.Launch("quiet four", "")
			for _, c := range []*e2e.Client{editor, other, third} {
				c.Completes(begun)
			}
			for _, c := range []*e2e.Client{third, other, editor} {
				c.Leave()
			}
		})
	}
}

// requireNotOf requires that a daemon without its files has confirmed nothing: the request failed,
// or the next daemon has received it.
func requireNotOf(s *e2e.Site, hub int, err error) {
	s.T.Helper()
	if err == nil {
		require.NotEqual(s.T, hub, s.LockHolder())
		return
	}
	var e *e2e.WireError
	require.ErrorAs(s.T, err, &e)
	if e.Kind() != "hub_lost" {
		require.Equal(s.T, "subsystem_unavailable", e.Kind())
		require.Contains(s.T, e.Message, "the project's directory or its state was removed, moved or replaced")
	}
}

// A hub ends after another process has become the hub, so that there is only one.
func TestHubThatWasReplacedEnds(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	editor := s.Start()
	editor.Launch("quiet", "")
	hub := e2e.HubOf(t, editor)
	p := project.Project{Root: s.Root, StateDir: filepath.Join(s.Home, "other")}
	require.NoError(t, p.Prepare())
	lock, err := p.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Rename(s.State(), filepath.Join(s.Home, "away")))
	require.NoError(t, os.Rename(p.StateDir, s.State()))
	require.Eventually(t, func() bool { return syscall.Kill(hub, 0) != nil }, e2e.Watchdog/3, e2e.PollEvery, "process %d still runs", hub)
	require.NoError(t, lock.Close())
	require.Eventually(t, func() bool { return editor.Try("listSessions", object{}, nil) == nil }, e2e.Watchdog/3, e2e.PollEvery)
	editor.Leave()
}

// A daemon ends after the removal of its project.
func TestDaemonEndsWithItsProject(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	pid := s.Daemon()
	require.NoError(t, os.RemoveAll(s.Root))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, e2e.Watchdog/3, e2e.PollEvery, "process %d still runs", pid)
	assert.NoDirExists(t, s.Root, "the daemon does not create the project again")
}

// A hub whose write-ahead log or its index is removed confirms nothing that is lost. Confirmed
// sessions survive a kill.
func TestWriteAheadLogIsRemovedUnderAHub(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"-wal", "-shm"} {
		for _, how := range []string{"removed", "replaced"} {
			t.Run(end+" "+how, func(t *testing.T) {
				s, editor := e2e.NewEditorSite(e2e.Parallel(t))
				hub := e2e.HubOf(t, editor)
				confirmed := []e2e.Launched{editor.Launch("quiet one", "")}
				editor.AwaitEnd(confirmed[0].SessionID)

				file := filepath.Join(s.State(), "duet.db"+end)
				require.NoError(t, os.Remove(file))
				if how == "replaced" {
					require.NoError(t, os.WriteFile(file, nil, 0o600))
				}
				requireNotOf(s, hub, editor.Try("launchSession", object{"query": "quiet two"}, nil))
				for deadline := time.Now().Add(e2e.Watchdog / 3); time.Now().Before(deadline) && len(confirmed) < 10; {
					var begun e2e.Launched
					if editor.Try("launchSession", object{"query": "quiet three"}, &begun) == nil {
						confirmed = append(confirmed, begun)
					}
				}
				require.Len(t, confirmed, 10, "no new hub confirms sessions")
				editor.Crash()

				next := s.Start()
				for _, run := range confirmed {
					assert.NoError(t, next.Try("getSessionState", object{"session_id": run.SessionID}, nil), "%s was confirmed", run.SessionID)
				}
				next.Leave()
			})
		}
	}
}

// The user can remove the cause of a missing hub while the editor's process runs.
func TestWhatIsMendedWorks(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]struct {
		says          string
		spoil, mended func(s *e2e.Site) error
	}{
		"a mistake in the configuration": {
			says: ".duet.toml:1",
			spoil: func(s *e2e.Site) error {
				return os.WriteFile(filepath.Join(s.Root, ".duet.toml"), []byte("hub = \n"), 0o600)
			},
			mended: func(s *e2e.Site) error { return os.WriteFile(filepath.Join(s.Root, ".duet.toml"), nil, 0o600) },
		},
		"no place for the state": {
			says: "is no directory",
			spoil: func(s *e2e.Site) error {
				return errors.Join(os.MkdirAll(filepath.Dir(s.State()), 0o700), os.WriteFile(s.State(), nil, 0o600))
			},
			mended: func(s *e2e.Site) error { return os.Remove(s.State()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			require.NoError(t, wrong.spoil(s))
			c := s.Start()
			require.ErrorContains(t, c.Try("listSessions", object{}, nil), wrong.says)
			c.RequireCore()
			var health struct{ Issues []string }
			c.Call("health", object{}, &health)
			assert.Contains(t, strings.Join(health.Issues, "\n"), wrong.says)

			require.NoError(t, wrong.mended(s))
			require.Eventually(t, func() bool {
				return c.Try("listSessions", object{}, nil) == nil
			}, e2e.Watchdog/3, e2e.PollEvery, "the editor has no hub after the repair")
			c.Subscribe()
			c.Runs("quiet")
			health.Issues = nil
			c.Call("health", object{}, &health)
			assert.Empty(t, health.Issues)

			// Another editor uses the same hub.
			second := s.Open()
			assert.Equal(t, e2e.HubOf(t, c), e2e.HubOf(t, second))
			e2e.Leave(second, c)
		})
	}
}

// However a hub ends, a client that follows tasks receives the end of each task once, even from the
// next hub.
func TestEndOfTasksIsToldWhenTheHubEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, hub int, other *e2e.Client){
		"SIGKILL": func(t *testing.T, hub int, _ *e2e.Client) { require.NoError(t, syscall.Kill(hub, syscall.SIGKILL)) },
		"SIGTERM": func(t *testing.T, hub int, _ *e2e.Client) { require.NoError(t, syscall.Kill(hub, syscall.SIGTERM)) },
		"daemon.stop": func(_ *testing.T, _ int, other *e2e.Client) {
			other.Call("daemon.stop", object{"force": true}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, hub := e2e.NewEditorSite(e2e.Parallel(t))
			before := hub.Launch("quiet permit:1 before", "") // before any client follows tasks
			hub.AwaitQuestion(before.SessionID)
			attached := s.Start()
			process := e2e.HubOf(t, attached)
			require.Equal(t, process, e2e.HubOf(t, hub))
			attached.Call("task.stats", object{}, nil)
			line := s.Lines()
			line.Call("task.stats", object{}, nil)
			after, _ := hub.Asks("quiet permit:1 after", "")
			attached.AwaitNote("event.taskStarted", after.TaskID)

			end(t, process, attached)
			s.AwaitRelease(process)                                // until then the hub refuses requests
			for attached.Try("task.stats", object{}, nil) != nil { // a request that needs a hub
			}
			for _, task := range []e2e.Launched{before, after} {
				attached.AwaitNote("event.taskCancelled", task.TaskID)
			}
			again := attached.Launch("quiet", "")
			attached.AwaitNote("event.taskCompleted", again.TaskID)
			assert.Equal(t, 1, attached.Count("event.taskCancelled", before.TaskID), "once")
			assert.Equal(t, 1, attached.Count("event.taskCancelled", after.TaskID), "once")
			if name == "daemon.stop" { // a signal leaves less time
				line.RequireClosed()
				for _, task := range []e2e.Launched{before, after} {
					assert.Equal(t, 1, line.Count("event.taskCancelled", task.TaskID), "before the connection ended")
				}
			}
			attached.Leave()
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
	fast := e2e.FastProgram(t)
	takeOver(t, fast, takeovers, workingWithin)
}

// takeOver repeatedly kills the hub of a project with four editors.
func takeOver(t *testing.T, binary string, times int, within time.Duration) {
	s := e2e.NewSite(t)
	s.Binary = binary
	s.Args = []string{"--test-methods"}
	var editors []*e2e.Client
	join := func() *e2e.Client {
		c := s.Open()
		editors = append(editors, c)
		return c
	}
	for range 3 {
		join()
	}
	var measured []time.Duration
	known := newLedger()
	for round := range times {
		hub := s.LockHolder()

		// Two turns are active: one streams text, and one waits for an answer.
		talking := editors[0].Launch(fmt.Sprintf("quiet stream:100000@400 round %d", round), "")
		asking := editors[1].Launch(fmt.Sprintf("quiet permit:1 round %d", round), "")
		question := editors[2].AwaitQuestion(asking.SessionID)
		editors[2].Await("text", func(e e2e.Event) bool {
			return e.Type == "message_delta" && e.Data.SessionID == talking.SessionID
		})
		behind := make([]int64, len(editors)) // the last sequence number of each editor
		for i, c := range editors {
			c.AwaitText(talking)
			c.AwaitQuestion(asking.SessionID)
			behind[i] = lastSeq(c.Seen())
		}

		// Each editor has pending requests, and sends others as soon as it learns of their loss.
		var group sync.WaitGroup
		var mu sync.Mutex
		var killed *e2e.Stopwatch // runs since the kill
		type outcome struct {
			lost  []error
			after time.Duration
			pid   int
			err   error
		}
		outcomes := make([]outcome, len(editors))
		pendings := func(c *e2e.Client) []func() error {
			return []func() error{
				func() error { return c.Try("test.sleep", object{"ms": 80_000}, nil) },
				func() error {
					return c.Try("execute_prompt", object{"prompt": "quiet permit:1", "timeout_ms": 80_000}, nil)
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
				err := errors.Join(c.Try("task.stats", object{}, nil), c.Try("daemon.status", object{}, &status))
				mu.Lock()
				defer mu.Unlock()
				outcomes[i] = outcome{lost, killed.Had(), status.PID, err}
			})
		}
		// The hub has the prompts of the editors.
		require.Eventually(t, func() bool { return len(editors[0].Pending()) >= 1+len(editors) }, e2e.Watchdog/3, e2e.PollEvery, "the questions of the prompts are missing")

		mu.Lock()
		killed = e2e.StartStopwatch(t)
		mu.Unlock()
		s.CrashHub()
		group.Wait()
		killed.Ends()
		successor := s.LockHolder()
		var took []time.Duration
		for i, o := range outcomes {
			for _, err := range o.lost {
				var e *e2e.WireError
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
		lines := s.Lines()
		assert.Equal(t, successor, e2e.HubOf(t, lines), "the lock holder listens")
		lines.Conn.Close()

		// The streaming run ends as interrupted, and the question stays open. All editors receive
		// both, and a new client receives the same events.
		for _, c := range editors {
			c.EndsAs(talking.SessionID, "interrupted", "ORPHANED")
			require.True(t, c.Pending()[question.Data.ApprovalID].Stale)
		}
		join()
		next := editors[1].Launch("quiet", "")
		var last int64
		for _, c := range editors {
			end := c.AwaitEnd(next.SessionID)
			assert.Equal(t, "completed", end.Data.State)
			last = end.Seq
		}
		fresh := editors[len(editors)-1].Seen()
		want := lasting(fresh, last)
		texts := textsOf(fresh)
		for i, c := range editors[:3] {
			seen := c.Seen()
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
		answered.Approve(question.Data.ApprovalID)
		for id := range answered.Pending() {
			if id != question.Data.ApprovalID {
				answered.Call("sendDecision", object{"approval_id": id, "decision": "deny", "comment": "no agent asks this now"}, nil)
			}
		}
		for _, c := range editors { // the asking run continues
			c.Await("the question's answer", func(e e2e.Event) bool {
				return e.Type == "approval_resolved" && e.Data.ApprovalID == question.Data.ApprovalID && e.Data.Decision == "approved"
			})
			c.AwaitThread(asking.ThreadID)
		}
		require.False(t, t.Failed(), "round %d", round)
		editors[0].Leave()
		editors = editors[1:]
	}
	slices.Sort(measured)
	t.Logf("from the kill to an answer, for %d editors: median %v, worst %v", len(measured),
		measured[len(measured)/2].Round(time.Millisecond), measured[len(measured)-1].Round(time.Millisecond))

	for _, c := range editors {
		c.Leave()
	}
	e2e.RequireNoFile(t, s.SocketPath())
}

// lastSeq returns the highest sequence number of events.
func lastSeq(events []e2e.Event) (last int64) {
	for _, e := range events {
		last = max(last, e.Seq)
	}
	return last
}
