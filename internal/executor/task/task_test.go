package task_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// A witness is a hub that records reports.
type witness struct {
	task.Hub
	reports []catalog.ReportMessageParams
	errors  []catalog.ReportErrorParams
	refuses error
}

func (w *witness) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	w.reports = append(w.reports, p)
	return w.refuses
}

func (w *witness) ReportError(_ context.Context, p catalog.ReportErrorParams) error {
	w.errors = append(w.errors, p)
	return w.refuses
}

func newTask(t *testing.T, w *witness) *task.Task {
	t.Helper()
	dir := t.TempDir()
	of := task.New(t.Context(), t.Context(), w, slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{
		SessionToken: "token", TaskID: "task-1", CWD: dir, Launch: &catalog.AgentLaunch{Name: "agent", Root: dir},
	})
	t.Cleanup(of.Close)
	return of
}

func TestReportsCarryNumberAndTask(t *testing.T) {
	w := &witness{}
	of := newTask(t, w)
	of.Text("m1", "", "one")
	of.Text("m1", "", "")
	of.Text("m1", "", " <more>")
	of.EndMessage()
	of.Text("m1", "", "two")
	of.Usage(catalog.TokenUsage{InputTokens: 7})
	require.Len(t, w.reports, 4)
	for i, r := range w.reports {
		assert.EqualValues(t, i+1, r.Sequence)
		assert.Equal(t, "token", r.SessionToken)
		assert.Equal(t, "task-1", r.TaskID)
	}
	assert.Equal(t, `{"message_id":"m1","delta":{"text":" <more>"}}`, string(w.reports[1].EventData), "the text has no HTML escapes")
	result := of.Result("end_turn", nil)
	assert.Equal(t, catalog.ExecutePromptResult{
		Status: catalog.StatusCompleted, MessageCount: 2, TokenUsage: &catalog.TokenUsage{InputTokens: 7}, StopReason: "end_turn", Agent: "agent",
	}, result)
	of.Close()
	of.Text("m1", "", "late")
	of.Problem(task.CodeAgent, "late")
	assert.Len(t, w.reports, 4, "a closed task reports nothing")
	assert.Empty(t, w.errors)
}

func TestFailureOfATask(t *testing.T) {
	failed := &task.Failure{Code: task.CodeAgent, Message: "no credit \xff left"}
	for name, c := range map[string]struct {
		before  func(*task.Task, *witness)
		reason  string
		failed  *task.Failure
		status  string
		message string
	}{
		"the agent's own end":           {reason: "end_turn", status: catalog.StatusCompleted},
		"the agent took a cancel":       {reason: "cancelled", status: catalog.StatusCancelled},
		"it was stopped":                {before: func(of *task.Task, _ *witness) { of.Stop() }, failed: failed, status: catalog.StatusCancelled},
		"the driver says why":           {failed: failed, status: catalog.StatusFailed, message: "no credit \uFFFD left"},
		"the first of what went wrong":  {before: func(of *task.Task, _ *witness) { of.Fail("A", "first"); of.Fail("B", "second") }, status: catalog.StatusFailed, message: "first"},
		"the driver's counts before it": {before: func(of *task.Task, _ *witness) { of.Fail("A", "first") }, failed: failed, status: catalog.StatusFailed, message: "no credit \uFFFD left"},
		"it went wrong, and the agent took that for a cancel": {
			before: func(of *task.Task, _ *witness) { of.Fail("A", "first") }, reason: "cancelled", status: catalog.StatusFailed, message: "first",
		},
		"the hub did not take a report": {
			before: func(of *task.Task, w *witness) { w.refuses = errors.New("full"); of.Text("", "", "x") }, reason: "end_turn", status: catalog.StatusFailed,
			message: "output is missing: the hub did not accept the agent's output: full",
		},
		"what could not be encoded": {
			before: func(of *task.Task, _ *witness) { of.Event(catalog.EventPlan, func() {}) }, reason: "end_turn", status: catalog.StatusFailed,
			message: "output is missing: an event of type plan could not be encoded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{}
			of := newTask(t, w)
			if c.before != nil {
				c.before(of, w)
			}
			result := of.Result(c.reason, c.failed)
			assert.Equal(t, c.status, result.Status)
			if c.message == "" {
				assert.Nil(t, result.Error)
			} else if assert.NotNil(t, result.Error) {
				assert.Equal(t, c.message, result.Error.Message)
			}
		})
	}
}

func TestDroppedLinesAreReported(t *testing.T) {
	w := &witness{}
	of := newTask(t, w)
	for range 7 {
		of.Garbage([]byte(strings.Repeat("x", 300)))
	}
	of.Event(catalog.EventRaw, strings.Repeat("x", 48<<20))
	of.Result("end_turn", nil)
	assert.Empty(t, w.reports)
	require.Len(t, w.errors, 5+1+1)
	assert.True(t, strings.HasSuffix(w.errors[0].Error.Message, ": "+strings.Repeat("x", 200)), "the beginning of the line")
	assert.Equal(t, task.CodeLineTooLong, w.errors[5].Error.Code)
	assert.Contains(t, w.errors[6].Error.Message, "7 lines in all")
}
