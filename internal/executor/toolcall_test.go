//go:build unix

package executor_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// The hub is asked again when the agent changes the tool call before the answer reaches it, even
// if the answer is already on its way. A denial stands.
func TestChangedToolCallIsAskedAgain(t *testing.T) {
	const update = `changing {"sessionUpdate":"tool_call_update","toolCallId":"c1",`
	for name, c := range map[string]struct {
		update string
		first  catalog.RequestPermissionResult // given once the hub knows of the update
		asked  int
		input  string
		answer string
	}{
		"its input":                      {update + `"rawInput":{"command":"rm -rf ."}}`, catalog.RequestPermissionResult{Approved: true, ApprovalID: "1"}, 2, `{"command":"rm -rf ."}`, `"optionId":"y"`},
		"its input, in another spelling": {update + `"rawInput":{ "command":"l\u0073"}}`, catalog.RequestPermissionResult{Approved: true}, 1, `{"command":"ls"}`, `"optionId":"y"`},
		"its title":                      {update + `"title":"delete"}`, catalog.RequestPermissionResult{Approved: true}, 2, `{"command":"ls"}`, `"optionId":"y"`},
		"what it shows":                  {update + `"content":[{"type":"content","content":{"type":"text","text":"and all of it"}}]}`, catalog.RequestPermissionResult{Approved: true}, 2, `{"command":"ls"}`, `"optionId":"y"`},
		"a file":                         {update + `"content":[{"type":"diff","path":"/a","newText":"x"}]}`, catalog.RequestPermissionResult{Approved: true}, 2, `{"command":"ls"}`, `"optionId":"y"`},
		"its name, which its kind had":   {update + `"_meta":{"claudeCode":{"toolName":"Bash","parentToolUseId":"c0"}}}`, catalog.RequestPermissionResult{Approved: true}, 1, `{"command":"ls"}`, `"optionId":"y"`},
		"its name, which is another":     {update + `"_meta":{"claudeCode":{"toolName":"KillShell"}}}`, catalog.RequestPermissionResult{Approved: true}, 2, `{"command":"ls"}`, `"optionId":"y"`},
		"nothing":                        {update + `"status":"pending"}`, catalog.RequestPermissionResult{Approved: true}, 1, `{"command":"ls"}`, `"optionId":"y"`},
		"its result begins":              {update + `"status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"a b c"}}]}`, catalog.RequestPermissionResult{Approved: true}, 1, `{"command":"ls"}`, `"optionId":"y"`},
		"it was denied":                  {update + `"status":"failed","title":"other"}`, catalog.RequestPermissionResult{Reason: "user_denied"}, 1, `{"command":"ls"}`, `"optionId":"n"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub()
			p := prompt(t, "plain", c.update)
			asked := filepath.Join(p.CWD, "asked")
			require.NoError(t, unix.Mkfifo(asked, 0o600))
			updated := make(chan struct{})
			h.onReport = func(p catalog.ReportMessageParams) {
				if p.EventType == catalog.EventToolUpdate || p.EventType == catalog.EventToolResult {
					close(updated)
				}
			}
			h.decide = func(_ context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
				if p.Revision > 0 {
					return catalog.RequestPermissionResult{Approved: true}, nil
				}
				assert.NoError(t, os.WriteFile(asked, nil, 0o600), "which the agent reads to its end")
				<-updated
				return c.first, nil
			}
			x := newExecutor(t, h, executor.Options{})
			require.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status)
			last := h.latest()
			assert.JSONEq(t, c.input, string(last.ToolInput))
			assert.Equal(t, c.asked-1, last.Revision)
			for _, asked := range h.asked {
				assert.Equal(t, "1", asked.QuestionID)
			}
			assert.Contains(t, h.text(), c.answer)
		})
	}
}

// latest returns the request with the highest revision.
func (h *hub) latest() catalog.RequestPermissionParams {
	return slices.MaxFunc(h.asked, func(a, b catalog.RequestPermissionParams) int { return a.Revision - b.Revision })
}

// The hub is asked again at once, and it closes the earlier request itself.
func TestOpenQuestionFollowsItsToolCall(t *testing.T) {
	h := newHub()
	again := make(chan struct{})
	p := prompt(t, "plain", `changing {"sessionUpdate":"tool_call_update","toolCallId":"c1","kind":"switch_mode","rawInput":{"plan":"1. all"}}`)
	asked := filepath.Join(p.CWD, "asked")
	require.NoError(t, unix.Mkfifo(asked, 0o600))
	h.decide = func(_ context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
		if p.Revision == 0 {
			assert.NoError(t, os.WriteFile(asked, nil, 0o600))
			<-again
			return catalog.RequestPermissionResult{Cancelled: true}, nil
		}
		close(again)
		return catalog.RequestPermissionResult{Approved: true}, nil
	}
	x := newExecutor(t, h, executor.Options{})
	require.Equal(t, catalog.StatusCompleted, execute(t, x, p).Status)
	assert.Equal(t, "1. all", h.latest().Plan)
	assert.Contains(t, h.text(), `"optionId":"y"`)
}

// An agent that changes its call without end has at most two requests open.
func TestOpenRequestsPerCallAreLimited(t *testing.T) {
	h := newHub()
	var updates, open atomic.Int64
	updated := make(chan struct{})
	h.onReport = func(p catalog.ReportMessageParams) {
		if p.EventType == catalog.EventToolUpdate && updates.Add(1) == 500 {
			close(updated)
		}
	}
	h.decide = func(context.Context, catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
		select {
		case <-updated:
		default: // the hub is slow
			open.Add(1)
			<-updated
		}
		return catalog.RequestPermissionResult{Approved: true}, nil
	}
	x := newExecutor(t, h, executor.Options{})
	require.Equal(t, catalog.StatusCompleted, execute(t, x, prompt(t, "plain", "restless")).Status)
	assert.Contains(t, h.text(), `"optionId":"y"`)
	assert.LessOrEqual(t, open.Load(), int64(2))
	assert.JSONEq(t, `{"n":500}`, string(h.latest().ToolInput))
}
