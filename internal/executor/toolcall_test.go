//go:build unix

package executor_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// The executor asks the hub again when the agent changes the tool call before the answer reaches
// it, even with the answer on its way. A denial is final.
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
			asked := namedPipe(t, p.CWD, "asked")
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
				assert.NoError(t, os.WriteFile(asked, nil, 0o600), "the agent waits for this write")
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

// The executor asks the hub again at once. The hub closes the earlier request itself.
func TestOpenQuestionFollowsItsToolCall(t *testing.T) {
	h := newHub()
	again := make(chan struct{})
	p := prompt(t, "plain", `changing {"sessionUpdate":"tool_call_update","toolCallId":"c1","kind":"switch_mode","rawInput":{"plan":"1. all"}}`)
	asked := namedPipe(t, p.CWD, "asked")
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

// asksFor makes an agent send lines, and returns the hub that recorded the questions.
func asksFor(t *testing.T, lines ...string) *hub {
	t.Helper()
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "tools")
	require.NoError(t, os.WriteFile(filepath.Join(p.CWD, "requests"), []byte(strings.Join(lines, "\n")), 0o600))
	completes(t, x, p)
	return h
}

func asking(call string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":` + call +
		`,"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}`
}

func updating(update string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + update + `}}`
}

// The name of a tool is the agent's name, or the name of its kind. The title is text for users.
func TestTitleIsNoToolName(t *testing.T) {
	for call, want := range map[string]struct {
		name   string
		byKind bool
	}{
		`{"toolCallId":"1","kind":"other","title":"Read all"}`:                                                                        {"other", true},
		`{"toolCallId":"1","title":"Read all"}`:                                                                                       {"other", true},
		`{"toolCallId":"1","kind":"Read","title":"Bash"}`:                                                                             {"other", true},
		`{"toolCallId":"1","kind":"execute","title":"Read all"}`:                                                                      {"Bash", true},
		`{"toolCallId":"1","kind":"edit","title":"Read all","_meta":null}`:                                                            {"Edit", true},
		`{"toolCallId":"1","kind":"edit","title":"x","_meta":{"claudeCode":{"toolName":"Write"}}}`:                                    {"Write", false},
		`{"toolCallId":"1","kind":"other","title":"x","_meta":{"claudeCode":{"toolName":"mcp__a__b"}}}`:                               {"mcp__a__b", false},
		`{"toolCallId":"1","kind":"other","title":"x","_meta":{"claudeCode":{"toolName":" "}}}`:                                       {"other", true},
		`{"toolCallId":"1","kind":"execute","title":"x","_meta":{"claudeCode":{"toolName":"Read","toolname":"Bash"}}}`:                {"Bash", true},
		`{"toolCallId":"1","kind":"execute","title":"x","_meta":{"claudecode":{"toolName":"Read"}}}`:                                  {"Bash", true},
		`{"toolCallId":"1","kind":"execute","title":"x","_meta":{"claudeCode":{"toolName":"Bash"},"claudeCode":{"toolName":"Read"}}}`: {"Bash", true},
	} {
		h := asksFor(t, asking(call))
		if assert.Len(t, h.asked, 1, call) {
			assert.Equal(t, want.name, h.asked[0].ToolName, call)
			assert.Equal(t, want.byKind, h.asked[0].NameByKind, call)
		}
	}
	h := asksFor(t,
		updating(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"other","title":"x","_meta":{"claudeCode":{"toolName":"mcp__a__b"}}}`),
		asking(`{"toolCallId":"1","kind":"execute","title":"y"}`))
	require.Len(t, h.asked, 1)
	assert.Equal(t, "mcp__a__b", h.asked[0].ToolName, "the agent has named it before")
	assert.False(t, h.asked[0].NameByKind)
}

// Rules match each file in a diff that the user sees, also in diffs of earlier updates.
func TestQuestionIncludesPathsOfDiffs(t *testing.T) {
	h := asksFor(t,
		updating(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"edit","title":"x","content":[{"type":"diff","path":"/etc/hosts","newText":"y"}]}`),
		asking(`{"toolCallId":"1","title":"x","locations":[{"path":"src/a"}]}`))
	require.Len(t, h.asked, 1)
	require.Len(t, h.asked[0].Diffs, 1)
	assert.ElementsMatch(t, []string{"src/a", "/etc/hosts"}, h.asked[0].Paths)
}

func TestAmbiguousRequestIsRefused(t *testing.T) {
	for call, want := range map[string]string{
		`{"toolCallId":"1","kind":"execute","rawInput":{"command":"a"},"RawInput":{"command":"b"}}`:   "-32602",
		`{"toolCallId":"1","kind":"execute","rawInput":{"command":"a"},"rawInput":{"command":"b"}}`:   "-32602",
		`{"toolCallId":"1","kind":"edit","content":[{"type":"diff","path":"a","path":"b"}]}`:          "-32602",
		"{\"toolCallId\":\"1\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"a \xff\"}}":           "UTF-8",
		`{"toolCallId":"1","kind":"edit","locations":[{"path":"a","Path":"b"}]}`:                      "-32602",
		`{"toolCallId":"1","kind":"execute","rawInput":{"command":"a"}},"toolcall":{"toolCallId":""}`: "-32602",
	} {
		h := asksFor(t, asking(call))
		assert.Empty(t, h.asked, "%s", call)
		assert.Contains(t, h.text(), want, call)
		assert.NotEmpty(t, h.codes(), "users get an error")
	}
	h := asksFor(t,
		updating("{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"1\",\"kind\":\"execute\",\"title\":\"x\",\"rawInput\":{\"command\":\"a \xff\"}}"),
		asking(`{"toolCallId":"1","kind":"execute"}`), asking(`{"toolCallId":"1","rawInput":{"command":"b"}}`))
	require.Len(t, h.asked, 1, "but the second has an input of its own")
	assert.JSONEq(t, `{"command":"b"}`, string(h.asked[0].ToolInput))
	assert.Equal(t, []string{"PERMISSION_FAILED"}, h.codes())
}

// The hub gets the input of the agent byte for byte.
func TestInputIsUnchanged(t *testing.T) {
	for _, input := range []string{
		`{"command":"a","Command":"b"}`, `{"command":"a","command":"b"}`, `{"n":1e400,"m":12345678901234567890,"x":"\ud800"}`, `{"command":["/bin/bash","-lc","ls"]}`,
	} {
		h := asksFor(t, asking(`{"toolCallId":"1","kind":"execute","rawInput":`+input+`}`))
		require.Len(t, h.asked, 1)
		assert.Equal(t, input, string(h.asked[0].ToolInput))
	}
}

// A reported tool call with a kind, but without a name, gives no second name to a file write
// without permission.
func TestKindOfCallDoesNotNameFileWrites(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plain", "tools")
	require.NoError(t, os.WriteFile(filepath.Join(p.CWD, "requests"), []byte(strings.Join([]string{
		updating(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"edit","title":"x","locations":[{"path":"new.txt"}]}`),
		`{"jsonrpc":"2.0","id":0,"method":"fs/write_text_file","params":{"sessionId":"s","path":"` + filepath.Join(p.CWD, "new.txt") + `","content":"x"}}`,
	}, "\n")), 0o600))
	execute(t, x, p)
	require.Len(t, h.asked, 1)
	assert.Equal(t, []string{"Write"}, h.asked[0].Unasked)
}
