package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// The details of a question are the content of its tool call before it runs, without its title
// and input. Text that is too long to store is shown with its own request.
func TestDetails(t *testing.T) {
	long := strings.Repeat("x", maxDetails+1)
	call := func(status, text string) string {
		return fmt.Sprintf(`{"toolCallId":"1","status":%q,"title":"Bash","kind":"execute","content":[{"type":"content","content":{"type":"text","text":%q}}]}`, status, text)
	}
	for name, c := range map[string]struct {
		reported []string // tool_call and tool_call_update
		asked    string
		want     string
	}{
		"in the request":             {nil, call("pending", "Running: ls"), "Running: ls"},
		"before the request":         {[]string{call("pending", "Running: ls")}, `{"toolCallId":"1"}`, "Running: ls"},
		"the request's own counts":   {[]string{call("pending", "old")}, call("pending", "new"), "new"},
		"its result is none":         {[]string{call("pending", "old"), call("in_progress", "result")}, `{"toolCallId":"1"}`, ""},
		"too long to remember":       {[]string{call("pending", "old"), call("pending", long)}, `{"toolCallId":"1"}`, ""},
		"too long, in the request":   {nil, call("pending", long), long},
		"the title says it":          {nil, call("pending", " Bash "), ""},
		"the input says it":          {nil, strings.Replace(call("pending", "make it"), "{", `{"rawInput":{"command":"ls","description":"make it"},`, 1), ""},
		"a plan is no details":       {nil, strings.Replace(call("pending", "1. look"), "execute", "switch_mode", 1), ""},
		"a call that says nothing":   {nil, `{"toolCallId":"1"}`, ""},
		"beside an input of another": {nil, strings.Replace(call("pending", "why"), "{", `{"rawInput":{"command":"ls"},`, 1), "why"},
	} {
		t.Run(name, func(t *testing.T) {
			turn := &turn{Task: &task.Task{}, subagents: &subagents{}, isKimi: new(atomic.Bool)}
			for _, raw := range c.reported {
				var u toolUpdate
				require.NoError(t, json.Unmarshal([]byte(raw), &u))
				turn.tools.update(&u, u.call())
			}
			open, err := turn.takePermission([]byte(`{"toolCall":` + c.asked + `,"options":[]}`))
			require.NoError(t, err)
			assert.Equal(t, c.want, (&agent{}).question(turn, &open.request, turn.tools.state(open)).Details)
		})
	}
}

// A thought that is not text is reported as content, and a block of an unknown type is dropped.
func TestContentOfThoughts(t *testing.T) {
	var got []string
	replay := NewReplay(func(r catalog.ReplayedPart) { got = append(got, r.EventType+" "+string(r.EventData)) })
	const content = `"content":{"type":"image","mimeType":"image/png","data":"AAEC"}`
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_thought_chunk",`+content+`,"_meta":{"claudeCode":{"parentToolUseId":"c"}}}`), false)
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_message_chunk",`+content+`}`), false)
	replay.Update(nil, []byte(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"smell"}}`), false)
	replay.Close()
	assert.Equal(t, []string{
		`content {` + content + `,"parent_id":"c","thought":true}`,
		`content {` + content + `}`,
		`raw {"sessionUpdate":"agent_thought_chunk","content":{"type":"smell"}}`,
	}, got)
}
