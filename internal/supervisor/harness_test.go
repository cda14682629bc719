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
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	role   = "DUET_SUPERVISOR_TEST" // selects the role of the test's program when it is started again
	within = time.Minute
	// atOnce avoids the race detector's delay of one second at the end of a process.
	atOnce = "GORACE=atexit_sleep_ms=0"
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "executor":
		serveInherited()
	case "deaf": // it never reads
		fmt.Fprintln(os.Stderr, "deaf")
		waitToBeKilled()
	case "gone": // it never connects
	case "agent": // started by an executor, and may outlive it
		waitToBeKilled()
	default:
		goleak.VerifyTestMain(m)
		return
	}
	os.Exit(0)
}

// waitToBeKilled waits until a test or the supervisor ends this process. Otherwise the process
// ends itself after a while.
func waitToBeKilled() {
	select {
	case <-make(chan struct{}):
	case <-time.After(within):
	}
}

// tiny is an executor that its prompts control.
type tiny struct {
	catalog.Executor
	daemon func() catalog.Daemon
	pid    string
	crash  func()
	works  func() bool // reports whether the programs of working agents still run
}

// serveInherited runs an executor process.
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

// serve runs an executor, until the link ends.
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

// ReleaseSession refuses to end the agent of a session whose name says that it works.
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
		_, err := x.daemon().GetAPIKey(ctx, catalog.GetAPIKeyParams{}) // its response shows that the notifications were read
		return answer(err)
	case "session": // of its own session, and of others
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
		agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a kill of the executor's group does not reach it
		if err := agent.Start(); err != nil {
			return answer(err)
		}
		data, _ := json.Marshal(catalog.Process{PID: agent.Process.Pid, Mark: "mark-" + p.TaskID})
		_ = x.daemon().ReportMessage(ctx, catalog.ReportMessageParams{EventType: catalog.EventProcess, EventData: data})
		_, _ = x.daemon().GetAPIKey(ctx, catalog.GetAPIKeyParams{}) // its response shows that the report was read
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

func (a *asked) record(what string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reported = append(a.reported, what)
	return nil
}

func (a *asked) ReportSession(_ context.Context, p catalog.ReportSessionParams) error {
	return a.record("session " + p.SessionID + " after " + p.TaskID)
}

func (a *asked) ReportRefused(task string, why error) { _ = a.record("refused: " + task) }

func (a *asked) TerminalStarted(_ context.Context, p catalog.TerminalStartedParams) error {
	return a.record("started " + p.TaskID)
}

func (a *asked) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
	return a.record("output " + p.TaskID)
}

func (a *asked) TerminalExit(_ context.Context, p catalog.TerminalExitParams) error {
	return a.record("exit " + p.TaskID)
}

func newSupervisor(t *testing.T, change ...func(*Options)) *Supervisor {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	opts := Options{
		Daemon: &asked{}, MostIdle: 10, Command: func() []string { return []string{self} }, Environment: []string{role + "=executor", "LISTED=yes", atOnce},
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

// requireNone waits until all current executors have gone.
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

func acp(session string) catalog.LeaseRequest {
	return catalog.LeaseRequest{Session: session, Agent: "a", Driver: "acp"}
}

func command(session string) catalog.LeaseRequest {
	return catalog.LeaseRequest{Session: session, Agent: "c", Driver: "command"}
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
