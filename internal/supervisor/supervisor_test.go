//go:build unix

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
	"github.com/duet-rpc/duet-rpc/internal/witness"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	role   = "DUET_SUPERVISOR_TEST" // what the test's program is when it is started again
	within = time.Minute
	// atOnce spares the race detector's second at the end of a process.
	atOnce = "GORACE=atexit_sleep_ms=0"
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "executor":
		serveInherited()
	case "deaf": // it never reads
		fmt.Fprintln(os.Stderr, "deaf")
		time.Sleep(time.Minute)
	case "gone": // it never connects
	case "agent":
		time.Sleep(time.Minute)
	default:
		goleak.VerifyTestMain(m)
		return
	}
	os.Exit(0)
}

// tiny is an executor that does what its prompts say.
type tiny struct {
	catalog.Executor
	daemon func() catalog.Daemon
	pid    string
	crash  func()
	works  func() bool // whether the programs of those that work run still
}

// serveInherited is an executor process.
func serveInherited() {
	link := os.NewFile(3, "hub")
	conn, err := net.FileConn(link)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	link.Close()
	serve(conn, tiny{
		pid: fmt.Sprint(os.Getpid()), crash: func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }, works: func() bool { return true },
	})
}

// serve is an executor, until the link ends.
func serve(conn net.Conn, x tiny) {
	reg := server.NewRegistry()
	var peer *server.Conn
	connected := make(chan struct{})
	x.daemon = func() catalog.Daemon { <-connected; return catalogrpc.Daemon(peer) }
	catalogrpc.RegisterExecutor(reg, x)
	peer = server.New(reg, server.Options{}).Connect(context.Background(), conn, frame.NDJSON)
	close(connected)
	<-peer.Done()
}

func (x tiny) StopTask(context.Context, catalog.StopTaskParams) (catalog.StopTaskResult, error) {
	return catalog.StopTaskResult{}, nil
}

// ReleaseSession ends no agent of a conversation whose name says that it works.
func (x tiny) ReleaseSession(_ context.Context, p catalog.ReleaseSessionParams) (catalog.ReleaseSessionResult, error) {
	return catalog.ReleaseSessionResult{Released: !strings.Contains(p.SessionID, "works") || !x.works()}, nil
}

func (x tiny) Shutdown(context.Context, catalog.ShutdownParams) (catalog.ShutdownResult, error) {
	return catalog.ShutdownResult{Status: "idle"}, nil
}

// ExecutePrompt answers in its stop reason.
func (x tiny) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	answer := func(v any) (catalog.ExecutePromptResult, error) {
		return catalog.ExecutePromptResult{Status: catalog.StatusCompleted, StopReason: fmt.Sprint(v)}, nil
	}
	switch p.Prompt {
	case "pid":
		return answer(x.pid)
	case "environment":
		return answer(strings.Join(os.Environ(), "\n"))
	case "crash":
		x.crash()
	case "hang":
		<-ctx.Done()
	case "long line":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 1<<20))
		return answer("written")
	case "refuse":
		return catalog.ExecutePromptResult{}, &jsonrpc2.Error{Code: -32000, Message: "I will not"}
	case "key":
		_, err := x.daemon().GetAPIKey(ctx, catalog.GetAPIKeyParams{Service: "x"})
		return answer(err)
	case "terminal": // of its own task, and of another executor's
		for _, task := range []string{p.TaskID, "another's", ""} {
			_ = x.daemon().TerminalStarted(ctx, catalog.TerminalStartedParams{TerminalID: "t", TaskID: task})
			_ = x.daemon().TerminalOutput(ctx, catalog.TerminalOutputParams{TerminalID: "t", TaskID: task})
			_ = x.daemon().TerminalExit(ctx, catalog.TerminalExitParams{TerminalID: "t", TaskID: task})
		}
		_, err := x.daemon().GetAPIKey(ctx, catalog.GetAPIKeyParams{}) // when it is answered they have been read
		return answer(err)
	case "session": // of its own conversation, and of others
		for _, of := range []string{p.SessionID, "b", ""} {
			for _, task := range []string{p.TaskID, "another's", ""} {
				_ = x.daemon().ReportSession(ctx, catalog.ReportSessionParams{SessionID: of, TaskID: task})
			}
		}
		_, err := x.daemon().GetAPIKey(ctx, catalog.GetAPIKeyParams{})
		return answer(err)
	case "agent", "agent and crash":
		self, _ := os.Executable()
		agent := exec.Command(self)
		agent.Env = []string{role + "=agent", catalog.MarkVariable + "=mark-" + p.TaskID}
		agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a kill of our group does not reach it
		if err := agent.Start(); err != nil {
			return answer(err)
		}
		data, _ := json.Marshal(catalog.Process{PID: agent.Process.Pid, Mark: "mark-" + p.TaskID})
		_ = x.daemon().ReportMessage(ctx, catalog.ReportMessageParams{EventType: catalog.EventProcess, EventData: data})
		_, _ = x.daemon().GetAPIKey(ctx, catalog.GetAPIKeyParams{}) // when it is answered the report has been read
		if p.Prompt == "agent and crash" {
			x.crash()
		}
		return answer(agent.Process.Pid)
	}
	return answer("")
}

// asked is the hub as executors see it.
type asked struct {
	catalog.Daemon
	mu       sync.Mutex
	reported []string
}

func (a *asked) GetAPIKey(context.Context, catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error) {
	return catalog.GetAPIKeyResult{}, errors.New("there is none")
}

func (a *asked) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reported = append(a.reported, string(p.EventData))
	return nil
}

func (a *asked) told(what string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reported = append(a.reported, what)
	return nil
}

func (a *asked) ReportSession(_ context.Context, p catalog.ReportSessionParams) error {
	return a.told("session " + p.SessionID + " after " + p.TaskID)
}

func (a *asked) ReportRefused(task string, why error) { _ = a.told("refused: " + task) }

func (a *asked) TerminalStarted(_ context.Context, p catalog.TerminalStartedParams) error {
	return a.told("started " + p.TaskID)
}

func (a *asked) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
	return a.told("output " + p.TaskID)
}

func (a *asked) TerminalExit(_ context.Context, p catalog.TerminalExitParams) error {
	return a.told("exit " + p.TaskID)
}

func newSupervisor(t *testing.T, change ...func(*Options)) *Supervisor {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	opts := Options{
		Daemon: &asked{}, MostIdle: 10, Command: []string{self}, Environment: []string{role + "=executor", "LISTED=yes", atOnce},
		WireError: func(err error) error { return &jsonrpc2.Error{Code: -32077, Message: "told: " + err.Error()} },
	}
	for _, f := range change {
		f(&opts)
	}
	s := New(opts)
	t.Cleanup(func() { closed(t, s) })
	return s
}

// closed ends the executors, and fails if that takes long.
func closed(t *testing.T, s *Supervisor) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	s.Close(ctx)
	assert.NoError(t, ctx.Err(), "they had to be killed")
	assert.Zero(t, s.Count())
}

// requireNone waits until the executors have gone that there are.
func requireNone(t *testing.T, s *Supervisor) {
	t.Helper()
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.processes))
	s.mu.Unlock()
	for _, p := range left {
		select {
		case <-p.exited:
		case <-time.After(within):
			require.Fail(t, "an executor is left")
		}
	}
	require.Zero(t, s.Count())
}

func acp(thread string) catalog.LeaseRequest {
	return catalog.LeaseRequest{Thread: thread, Agent: "a", Driver: "acp"}
}

func command(thread string) catalog.LeaseRequest {
	return catalog.LeaseRequest{Thread: thread, Agent: "c", Driver: "command"}
}

func acquire(t *testing.T, s *Supervisor, want catalog.LeaseRequest) catalog.Lease {
	t.Helper()
	l, err := s.Acquire(context.Background(), want)
	require.NoError(t, err)
	return l
}

func prompt(t *testing.T, l catalog.Lease, text string) string {
	t.Helper()
	r, err := l.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: text, TaskID: fmt.Sprint(os.Getpid(), "-", t.Name())})
	require.NoError(t, err)
	return r.StopReason
}

func alive(pid string) bool {
	status, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(status))
	return len(fields) < 3 || fields[2] != "Z" // a zombie only waits for its parent
}

func needsProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
}

func TestACrashTakesOnlyItsOwnRun(t *testing.T) {
	s := newSupervisor(t)
	a, b := acquire(t, s, acp("a")), acquire(t, s, acp("b"))
	pidA, pidB := prompt(t, a, "pid"), prompt(t, b, "pid")
	for range 5 {
		_, err := a.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "crash"})
		require.ErrorIs(t, err, jsonrpc2.ErrClosed)
		a.Release()
		a = acquire(t, s, acp("a")) // at once, while the dead one is still being buried
		next := prompt(t, a, "pid")
		assert.NotEqual(t, pidA, next)
		pidA = next
	}
	assert.Equal(t, pidB, prompt(t, b, "pid"))
	a.Release()
	b.Release()
}

func TestAnAnswerThatIsAnErrorIsAFailureAndNoCrash(t *testing.T) {
	s := newSupervisor(t)
	l := acquire(t, s, acp("a"))
	defer l.Release()
	r, err := l.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "refuse"})
	require.NoError(t, err)
	assert.Equal(t, catalog.StatusFailed, r.Status)
	assert.Equal(t, &catalog.ExecutionError{Code: "EXECUTOR_ERROR", Message: "I will not"}, r.Error)
	assert.Contains(t, prompt(t, l, "key"), "told: there is none", "and errors of ours arrive there")
	assert.Contains(t, prompt(t, l, "key"), "-32077")
	assert.Equal(t, "written", prompt(t, l, "long line"))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = l.ExecutePrompt(ctx, catalog.ExecutePromptParams{Prompt: "hang"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	again := acquire(t, s, acp("a"))
	assert.Equal(t, prompt(t, l, "pid"), prompt(t, again, "pid"), "whoever gave up did not lose the executor")
	again.Release()
}

func TestTerminalsOfOthersTasksAreNoneOfItsBusiness(t *testing.T) {
	daemon := &asked{}
	s := newSupervisor(t, func(o *Options) { o.Daemon = daemon })
	l := acquire(t, s, acp("a"))
	defer l.Release()
	other := acquire(t, s, acp("b"))
	defer other.Release()
	_, err := other.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "pid", TaskID: "another's"})
	require.NoError(t, err)
	_, err = l.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "terminal", TaskID: "own"})
	require.NoError(t, err)
	daemon.mu.Lock()
	defer daemon.mu.Unlock()
	assert.Equal(t, []string{"started own", "output own", "exit own", "started ", "output ", "exit "}, daemon.reported)
}

// An executor tells of the sessions of its own conversations, between two of its own
// tasks; that it tells of others is held against none of its runs.
func TestSessionsOfOthersAreNoneOfItsBusiness(t *testing.T) {
	daemon := &asked{}
	s := newSupervisor(t, func(o *Options) { o.Daemon = daemon })
	l := acquire(t, s, acp("a"))
	defer l.Release()
	other := acquire(t, s, acp("b"))
	defer other.Release()
	_, err := other.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "pid", TaskID: "another's"})
	require.NoError(t, err)
	_, err = l.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "session", SessionID: "a", TaskID: "own"})
	require.NoError(t, err)
	daemon.mu.Lock()
	defer daemon.mu.Unlock()
	assert.Equal(t, []string{"session a after own"}, daemon.reported)
}

// Agents of this version and of those before it are found by their marks, and
// nobody else is.
func TestAgentsThatLostTheirExecutorAreEnded(t *testing.T) {
	needsProc(t)
	start := func(environment ...string) (pid string) {
		self, err := os.Executable()
		require.NoError(t, err)
		agent := exec.Command(self)
		agent.Env = append(environment, role+"=agent")
		agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, agent.Start())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = agent.Wait() }()
		t.Cleanup(func() { _ = agent.Process.Kill(); <-ended })
		return fmt.Sprint(agent.Process.Pid)
	}
	mark := fmt.Sprint("mark-", os.Getpid())
	today, earlier := start(catalog.MarkVariable+"="+mark), start("DUET_AGENT="+mark+"-earlier")
	others := []string{start("DUET_AGENT=claude"), start("DUET_AGENT=")}
	pidOf := func(pid string) int {
		n, err := strconv.Atoi(pid)
		require.NoError(t, err)
		return n
	}
	KillAgents([]domain.Process{{PID: pidOf(today), Mark: mark}, {PID: pidOf(earlier), Mark: mark + "-earlier"}, {PID: 1}})
	for _, pid := range []string{today, earlier} {
		witness.AwaitExit(t, pidOf(pid))
	}
	for _, pid := range others {
		assert.True(t, alive(pid))
	}
}

func TestTheEnvironmentIsWhatIsListed(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HUB", "x")
	s := newSupervisor(t)
	l := acquire(t, s, acp("a"))
	defer l.Release()
	var names []string
	for line := range strings.Lines(prompt(t, l, "environment")) {
		if name := strings.TrimSpace(line); !strings.HasPrefix(name, "GOCOVERDIR") {
			names = append(names, name)
		}
	}
	assert.ElementsMatch(t, []string{role + "=executor", "LISTED=yes", atOnce, "DUET_EXECUTOR_FD=3"}, names)
}

func TestAgentsOfADeadExecutorAreKilled(t *testing.T) {
	needsProc(t)
	for _, how := range []string{"crash", "kill", "close"} {
		t.Run(how, func(t *testing.T) {
			daemon := &asked{}
			s := newSupervisor(t, func(o *Options) { o.Daemon = daemon })
			l := acquire(t, s, acp("a"))
			defer l.Release()
			pid := ""
			if how == "crash" {
				_, err := l.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "agent and crash", TaskID: fmt.Sprint(os.Getpid(), how)})
				require.Error(t, err)
				daemon.mu.Lock()
				require.Len(t, daemon.reported, 1, "the hub is told too")
				var p catalog.Process
				require.NoError(t, json.Unmarshal([]byte(daemon.reported[0]), &p))
				daemon.mu.Unlock()
				pid = fmt.Sprint(p.PID)
			} else {
				pid = prompt(t, l, "agent")
				require.True(t, alive(pid))
			}
			switch how {
			case "kill":
				l.Kill()
			case "close":
				closed(t, s)
			}
			n, err := strconv.Atoi(pid)
			require.NoError(t, err)
			witness.AwaitExit(t, n)
			requireNone(t, s)
		})
	}
}

func TestWhatIsNoExecutor(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		role    string
		says    string
	}{
		"not there":       {[]string{"/no/such/program"}, "", "no such file"},
		"not configured":  {nil, "", "no command"},
		"ends at once":    {nil, "gone", "ended at once"},
		"answers nothing": {nil, "deaf", "did not answer within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSupervisor(t, func(o *Options) {
				o.StartWithin = 300 * time.Millisecond
				if c.role == "" {
					o.Command = c.command
				} else {
					o.Environment = []string{role + "=" + c.role, atOnce}
				}
			})
			if c.role == "gone" {
				s.opts.StartWithin = within
			}
			for range 2 {
				_, err := s.Acquire(context.Background(), acp("a"))
				require.ErrorContains(t, err, c.says)
			}
			requireNone(t, s)
		})
	}
}

func TestCloseLeavesNothingWhateverIsGoingOn(t *testing.T) {
	needsProc(t)
	s := newSupervisor(t)
	busy := acquire(t, s, acp("busy"))
	pid := prompt(t, busy, "pid")
	ended := make(chan error, 1)
	go func() {
		_, err := busy.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "hang"})
		ended <- err
	}()
	var starting sync.WaitGroup
	for i := range 4 {
		starting.Go(func() {
			if l, err := s.Acquire(context.Background(), acp(fmt.Sprint(i))); err == nil {
				l.Release()
			}
		})
	}
	closed(t, s)
	starting.Wait()
	require.Error(t, <-ended)
	assert.False(t, alive(pid))
	_, err := s.Acquire(context.Background(), acp("late"))
	assert.ErrorIs(t, err, errClosed)
	closed(t, s)
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.Environment = []string{role + "=deaf"} })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, acp("a"))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// An executor that somebody else wrote runs one thread of one agent, and is
// started by its own command.
func TestAForeignExecutor(t *testing.T) {
	s := newSupervisor(t, func(o *Options) { o.Command = []string{"/no/such/program"} })
	pids := map[string]bool{}
	for _, w := range []catalog.LeaseRequest{foreign("x", "1"), foreign("x", "2"), foreign("y", "1")} {
		l := acquire(t, s, w)
		pids[prompt(t, l, "pid")] = true
		l.Release()
		again := acquire(t, s, w)
		pids[prompt(t, again, "pid")] = true
		again.Release()
	}
	assert.Len(t, pids, 3)
}
