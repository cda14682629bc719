//go:build unix

package executor_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// A hub is a catalog.Daemon that keeps what it is told.
type hub struct {
	context  catalog.GetExecutionContextResult
	decide   func(context.Context, catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error)
	key      func(service string) (string, error)
	onReport func(catalog.ReportMessageParams)
	refuse   func(catalog.ReportMessageParams) error

	mu      sync.Mutex
	reports []catalog.ReportMessageParams
	errors  []catalog.ReportErrorParams
	asked   []catalog.RequestPermissionParams
	output  map[string]string
	started []catalog.TerminalStartedParams
	exits   []catalog.TerminalExitParams
	ends    []catalog.ReportCompletionParams
	begun   map[string]int // how often what a prompt stands on was asked, by token
	changed chan struct{}  // closed and replaced at each report
}

func newHub() *hub {
	return &hub{output: make(map[string]string), begun: make(map[string]int), changed: make(chan struct{})}
}

func (h *hub) note(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *hub) GetAPIKey(_ context.Context, p catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error) {
	key, err := h.key(p.Service)
	return catalog.GetAPIKeyResult{APIKey: key}, err
}

func (h *hub) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	h.note(func() { h.asked = append(h.asked, p) })
	if h.decide == nil {
		return catalog.RequestPermissionResult{Approved: true}, nil
	}
	return h.decide(ctx, p)
}

func (h *hub) GetExecutionContext(_ context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
	h.note(func() { h.begun[p.SessionToken]++ })
	return h.context, nil
}

func (h *hub) CreateMessage(context.Context, catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	return catalog.CreateMessageResult{}, nil
}

func (h *hub) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	h.note(func() { h.reports = append(h.reports, p) })
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
	h.note(func() { h.errors = append(h.errors, p) })
	return nil
}

func (h *hub) ReportCompletion(_ context.Context, p catalog.ReportCompletionParams) error {
	h.note(func() { h.ends = append(h.ends, p) })
	return nil
}

func (h *hub) TerminalStarted(_ context.Context, p catalog.TerminalStartedParams) error {
	h.note(func() { h.started = append(h.started, p) })
	return nil
}

func (h *hub) TerminalOutput(_ context.Context, p catalog.TerminalOutputParams) error {
	h.note(func() { h.output[p.TerminalID] += p.Encoding + ":" + p.Data })
	return nil
}

func (h *hub) TerminalExit(_ context.Context, p catalog.TerminalExitParams) error {
	h.note(func() { h.exits = append(h.exits, p) })
	return nil
}

// text is all that the agent said.
func (h *hub) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
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

// types are the types of what was reported, without repetitions.
func (h *hub) types() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var types []string
	for _, r := range h.reports {
		if len(types) == 0 || types[len(types)-1] != r.EventType {
			types = append(types, r.EventType)
		}
	}
	return types
}

func (h *hub) data(kind string) (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.reports {
		if r.EventType == kind {
			all = append(all, string(r.EventData))
		}
	}
	return all
}

// contexts is how often somebody with that token asked what a prompt stands on.
func (h *hub) contexts(token string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.begun[token]
}

// reportsOf is how much was reported of a task.
func (h *hub) reportsOf(task string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.reports {
		if r.TaskID == task {
			n++
		}
	}
	return n
}

func (h *hub) codes() (codes []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.errors {
		codes = append(codes, e.Error.Code)
	}
	return codes
}

// wait waits until the hub has been told what is looked for.
func (h *hub) wait(t *testing.T, found func() bool, why string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		h.mu.Lock()
		changed := h.changed
		h.mu.Unlock()
		if found() {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			require.FailNow(t, "it was never reported: "+why)
		}
	}
}

var quick = executor.Grace{Cancel: 300 * time.Millisecond, Interrupt: 200 * time.Millisecond, Terminate: 200 * time.Millisecond}

// newExecutor makes an executor that is closed, and has left no process
// behind, when the test ends.
func newExecutor(t *testing.T, h *hub, opts executor.Options) *executor.Executor {
	if opts.Grace == (executor.Grace{}) {
		opts.Grace = quick
	}
	x := executor.New(h, opts)
	t.Cleanup(func() {
		x.Close(context.Background())
		requireNobody(t, h)
	})
	return x
}

// requireNobody requires that no process lives that carries a mark which the
// hub was told of.
func requireNobody(t *testing.T, h *hub) {
	t.Helper()
	for _, data := range h.data(catalog.EventProcess) {
		var p catalog.Process
		require.NoError(t, json.Unmarshal([]byte(data), &p))
		require.NotEmpty(t, p.Mark)
		assert.Eventually(t, func() bool { return len(marked(p.Mark)) == 0 }, time.Minute, 20*time.Millisecond,
			"every process of the agent has to be gone: %v", marked(p.Mark))
	}
}

// marked lists the processes with that mark (on Linux; none elsewhere).
func marked(mark string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && strings.Contains(string(env), catalog.MarkVariable+"="+mark) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, file+" "+string(line))
		}
	}
	return found
}

// prompt is a prompt for the fake agent of that kind.
func prompt(t *testing.T, kind, text string) catalog.ExecutePromptParams {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
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
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	result, err := x.ExecutePrompt(ctx, p)
	require.NoError(t, err)
	return result
}
