//go:build unix

package executor_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/procenv"
)

// must returns the value of a call that may not fail: must(f(x))(t).
func must[T any](value T, err error) func(t testing.TB, why ...any) T {
	return func(t testing.TB, why ...any) T {
		t.Helper()
		require.NoError(t, err, why...)
		return value
	}
}

// errorOf returns the error of a call that has to fail.
func errorOf[T any](_ T, err error) error { return err }

// A hub is a catalog.Daemon that records what it receives.
type hub struct {
	terminalRecord
	context  catalog.GetExecutionContextResult
	decide   func(context.Context, catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error)
	key      func(service string) (string, error)
	onReport func(catalog.ReportMessageParams)
	refuse   func(catalog.ReportMessageParams) error
	begin    func(context.Context, catalog.BeginTurnParams) (catalog.BeginTurnResult, error)

	// The lock of Terminals guards the fields below.
	reports []catalog.ReportMessageParams
	errors  []catalog.ReportErrorParams
	asked   []catalog.RequestPermissionParams
	started []catalog.TerminalStartedParams
	before  string // the last report before the latest terminal
	ends    []catalog.ReportCompletionParams
	between []catalog.ReportSessionParams
	turns   []catalog.BeginTurnParams // that were requested
	late    []catalog.ReportLateParams
	titles  []string       // of the agent's session, in order
	begun   map[string]int // requests for the context of a prompt, by token
}

func newHub() *hub {
	return &hub{begun: make(map[string]int)}
}

// hubAndExecutor returns a hub and an executor for it.
func hubAndExecutor(t *testing.T) (*hub, *executor.Executor) {
	h := newHub()
	return h, newExecutor(t, h, executor.Options{})
}

// answers makes the hub answer each request for permission like this.
func (h *hub) answers(result catalog.RequestPermissionResult, err error) {
	h.decide = func(context.Context, catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
		return result, err
	}
}

func (h *hub) GetAPIKey(_ context.Context, p catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error) {
	key, err := h.key(p.Service)
	return catalog.GetAPIKeyResult{APIKey: key}, err
}

func (h *hub) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	h.Note(func() { h.asked = append(h.asked, p) })
	if h.decide == nil {
		return catalog.RequestPermissionResult{Approved: true}, nil
	}
	return h.decide(ctx, p)
}

func (h *hub) GetExecutionContext(_ context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
	h.Note(func() { h.begun[p.SessionToken]++ })
	return h.context, nil
}

func (h *hub) BeginTurn(ctx context.Context, p catalog.BeginTurnParams) (catalog.BeginTurnResult, error) {
	h.Note(func() { h.turns = append(h.turns, p) })
	if h.begin == nil {
		return catalog.BeginTurnResult{}, errors.New("no turn is begun in this test")
	}
	return h.begin(ctx, p)
}

func (h *hub) CreateMessage(context.Context, catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	return catalog.CreateMessageResult{}, nil
}

func (h *hub) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	h.Note(func() {
		h.reports = append(h.reports, p)
		var s catalog.Session
		if p.EventType == catalog.EventSession && json.Unmarshal(p.EventData, &s) == nil {
			h.note(s)
		}
	})
	if h.onReport != nil {
		h.onReport(p)
	}
	if h.refuse != nil {
		return h.refuse(p)
	}
	return nil
}

func (h *hub) ReportProgress(context.Context, catalog.ReportProgressParams) error { return nil }

func (h *hub) ReportError(_ context.Context, p catalog.ReportErrorParams) error {
	h.Note(func() { h.errors = append(h.errors, p) })
	return nil
}

func (h *hub) ReportCompletion(_ context.Context, p catalog.ReportCompletionParams) error {
	h.Note(func() { h.ends = append(h.ends, p) })
	return nil
}

func (h *hub) ReportSession(_ context.Context, p catalog.ReportSessionParams) error {
	h.Note(func() {
		h.between = append(h.between, p)
		h.note(p.Session)
	})
	return nil
}

// note records a report of the agent's session. The caller holds the lock.
func (h *hub) note(s catalog.Session) {
	if s.Info != nil {
		h.titles = append(h.titles, s.Info.Title)
	}
}

func (h *hub) TerminalStarted(_ context.Context, p catalog.TerminalStartedParams) error {
	h.Note(func() {
		h.started = append(h.started, p)
		h.before = h.reports[len(h.reports)-1].EventType
	})
	return nil
}

// The tests of this package run no commands of the hub.
func (h *hub) CommandStarted(context.Context, catalog.CommandStartedParams) error { return nil }
func (h *hub) CommandOutput(context.Context, catalog.CommandOutputParams) error   { return nil }

// text returns all text of the agent.
func (h *hub) text() string {
	h.Lock()
	defer h.Unlock()
	var b strings.Builder
	for _, r := range h.reports {
		if r.EventType == catalog.EventContentDelta {
			var d catalog.ContentDelta
			json.Unmarshal(r.EventData, &d)
			b.WriteString(d.Delta.Text)
		}
	}
	return b.String()
}

// types returns the types of the reports, without repetitions.
func (h *hub) types() []string {
	h.Lock()
	defer h.Unlock()
	var types []string
	for _, r := range h.reports {
		if len(types) == 0 || types[len(types)-1] != r.EventType {
			types = append(types, r.EventType)
		}
	}
	return types
}

func (h *hub) data(kind string) (all []string) {
	h.Lock()
	defer h.Unlock()
	for _, r := range h.reports {
		if r.EventType == kind {
			all = append(all, string(r.EventData))
		}
	}
	return all
}

// reportsOf returns the number of reports of a task.
func (h *hub) reportsOf(task string) (n int) {
	h.Lock()
	defer h.Unlock()
	for _, r := range h.reports {
		if r.TaskID == task {
			n++
		}
	}
	return n
}

func (h *hub) codes() (codes []string) {
	h.Lock()
	defer h.Unlock()
	for _, e := range h.errors {
		codes = append(codes, e.Error.Code)
	}
	return codes
}

// quick is for agents that ignore signals; patient for those that react, on a possibly slow
// machine.
var (
	quick   = executor.Grace{Cancel: 300 * time.Millisecond, Interrupt: 200 * time.Millisecond, Terminate: 200 * time.Millisecond, HangUp: 100 * time.Millisecond}
	patient = executor.Grace{Cancel: time.Minute, Interrupt: quick.Interrupt, Terminate: quick.Terminate, HangUp: quick.HangUp}
)

// newExecutor makes an executor. The test's end closes it and requires that no process is left.
func newExecutor(t *testing.T, h *hub, opts executor.Options) *executor.Executor {
	if opts.Grace == (executor.Grace{}) {
		opts.Grace = patient
	}
	opts.SilentAfter = cmp.Or(opts.SilentAfter, time.Hour) // a busy machine must not look like a silent agent
	x := executor.New(h, opts)
	t.Cleanup(func() {
		x.Close(context.Background())
		requireNoProcess(t, h)
	})
	return x
}

// requireNoProcess requires that no process carries a mark that the hub received.
func requireNoProcess(t *testing.T, h *hub) {
	t.Helper()
	var marks []string
	for _, data := range h.data(catalog.EventProcess) {
		var p catalog.Process
		require.NoError(t, json.Unmarshal([]byte(data), &p))
		require.NotEmpty(t, p.Mark)
		marks = append(marks, p.Mark)
	}
	if len(marks) == 0 || len(marked(marks...)) == 0 {
		return
	}
	if !assert.Eventually(t, func() bool { return len(marked(marks...)) == 0 }, time.Minute, 20*time.Millisecond) {
		t.Logf("processes of the agents are left: %v", marked(marks...))
	}
}

// marked lists the processes with one of the marks (on Linux; none elsewhere).
func marked(marks ...string) (found []string) {
	for _, pid := range procenv.Find(func(variable string) bool {
		mark, ok := catalog.MarkIn(variable)
		return ok && slices.Contains(marks, mark)
	}) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		found = append(found, fmt.Sprint(pid, " ", string(line)))
	}
	return found
}

// prompt returns a prompt for the fake agent of that kind.
func prompt(t *testing.T, kind, text string) catalog.ExecutePromptParams {
	dir := must(filepath.EvalSymlinks(t.TempDir()))(t)
	return catalog.ExecutePromptParams{
		SessionToken: "token", SessionID: "s", TaskID: "task-1", Prompt: text, CWD: dir,
		Launch: &catalog.AgentLaunch{
			Name: "fake", Driver: "acp", Command: []string{os.Args[0]}, Root: dir,
			Env: map[string]string{playAgent: kind, "GORACE": "atexit_sleep_ms=0"},
		},
	}
}

func execute(t *testing.T, x *executor.Executor, p catalog.ExecutePromptParams) catalog.ExecutePromptResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return must(x.ExecutePrompt(ctx, p))(t)
}

// completes executes a prompt that has to complete.
func completes(t *testing.T, x *executor.Executor, p catalog.ExecutePromptParams) catalog.ExecutePromptResult {
	t.Helper()
	result := execute(t, x, p)
	assert.Equal(t, catalog.StatusCompleted, result.Status, "%+v", result.Error)
	return result
}

// executing executes a prompt in a goroutine. The channel receives the result.
func executing(t *testing.T, x *executor.Executor, p catalog.ExecutePromptParams) <-chan catalog.ExecutePromptResult {
	done := make(chan catalog.ExecutePromptResult, 1)
	go func() { done <- execute(t, x, p) }()
	return done
}

// stopAtWork stops the task task-1 after the first text of its agent.
func stopAtWork(t *testing.T, h *hub, x *executor.Executor) {
	h.Await(t, func() bool { return h.text() != "" }, "the agent's first text")
	assert.NoError(t, errorOf(x.StopTask(context.Background(), catalog.StopTaskParams{TaskID: "task-1"})))
}

// namedPipe makes a named pipe for an agent and a test.
func namedPipe(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path
}

func (h *hub) ReportLate(_ context.Context, p catalog.ReportLateParams) error {
	h.Note(func() { h.late = append(h.late, p) })
	return nil
}
