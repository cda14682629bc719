//go:build unix

package executor_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// lateUpdates sends the updates in the file late.json: the lines up to "end" inside the turn, the
// others after it. At a line "wait" the agent waits for the test.
func (a *acpAgent) lateUpdates(m wire, interrupted bool) {
	content, _ := os.ReadFile(filepath.Join(a.cwd, "late.json"))
	for line := range bytes.Lines(content) {
		switch line = bytes.TrimSpace(line); string(line) {
		case "end":
			for interrupted && a.read().Method != "session/cancel" {
			}
			a.reply(m.ID, map[string]any{"stopReason": map[bool]string{false: "end_turn", true: "cancelled"}[interrupted]})
		case "wait":
			a.out.Flush()
			os.ReadFile(filepath.Join(a.cwd, "go")) // a pipe, which the test closes
		default:
			a.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": a.session, "update": json.RawMessage(line)}})
		}
	}
	a.raw(`{"jsonrpc":"2.0","method":"_session/turn_ended","params":{}}`)
	a.out.Flush()
}

// chunkLine is a line of late.json.
func chunkLine(kind, id, text string) string {
	update := map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": text}}
	if id != "" {
		update["messageId"] = id
	}
	line, _ := json.Marshal(update)
	return string(line)
}

// lateText returns the agent's text for a task in reports after its end.
func (h *hub) lateText(task string) string {
	h.Lock()
	defer h.Unlock()
	var b strings.Builder
	for _, r := range h.late {
		var d catalog.ContentDelta
		if r.TaskID == task && json.Unmarshal(r.EventData, &d) == nil {
			b.WriteString(d.Delta.Text)
		}
	}
	return b.String()
}

// Text after a turn belongs to that turn if it continues a message of it, or if the turn was
// interrupted. All other text begins an agent-initiated turn.
func TestLateText(t *testing.T) {
	const message, thought, tool = "agent_message_chunk", "agent_thought_chunk", `{"sessionUpdate":"tool_call","toolCallId":"late-1","title":"Look","kind":"think","status":"completed"}`
	whole := func(id, text string) string {
		return `{"sessionUpdate":"agent_message","messageId":"` + id + `","content":[{"type":"text","text":"` + text + `"}]}`
	}
	for name, c := range map[string]struct {
		lines       []string
		interrupted bool
		first       string   // the text in the first task, late text included
		own         []string // in own-1 and so on
	}{
		"the rest of a message": {
			lines: []string{chunkLine(message, "m1", "one"), "end", chunkLine(message, "m1", " two"), "wait", chunkLine(message, "m1", " three")},
			first: "one two three",
		},
		"of an interrupted turn": {
			lines:       []string{chunkLine(message, "m1", "one"), "end", chunkLine(message, "m1", " two"), "wait", chunkLine(message, "m1", " three")},
			interrupted: true, first: "one two three",
		},
		"another message": {
			lines:       []string{chunkLine(message, "m1", "one"), "end", chunkLine(message, "m2", "two"), chunkLine(message, "m2", " three")},
			interrupted: true, first: "one", own: []string{"two three"},
		},
		"a message after a tool call": {
			lines: []string{chunkLine(message, "m1", "one"), "end", chunkLine(message, "m1", " two"), tool, chunkLine(message, "m1", "three")},
			first: "one two", own: []string{"three"},
		},
		"without ids, interrupted": {
			lines:       []string{chunkLine(message, "", "one"), "end", chunkLine(message, "", " two"), chunkLine(message, "", " three")},
			interrupted: true, first: "one two three",
		},
		"without ids, interrupted, then a tool call": {
			lines:       []string{chunkLine(message, "", "one"), "end", chunkLine(message, "", " two"), tool, chunkLine(message, "", "three")},
			interrupted: true, first: "one two", own: []string{"three"},
		},
		"without ids, not interrupted": {
			lines: []string{chunkLine(message, "", "one"), "end", chunkLine(message, "", "two")},
			first: "one", own: []string{"two"},
		},
		"the rest of a thought": {
			lines: []string{chunkLine(message, "m1", "one"), chunkLine(thought, "t1", "hm"), "end", "wait", chunkLine(thought, "t1", "?")},
			first: "one?",
		},
		"the whole message again, twice": {
			lines: []string{chunkLine(message, "m1", "one"), "end", "wait", whole("m1", "one two"), whole("m1", "one two")},
			first: "one two",
		},
		"the whole message, changed": {
			lines: []string{chunkLine(message, "m1", "one"), "end", whole("m1", "another")},
			first: "one", own: []string{"another"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prompt(t, "plain", "late completes")
			if c.interrupted {
				p.Prompt = "late interrupted"
			}
			p.Launch.QuietMS = 3_600_000
			require.NoError(t, os.WriteFile(filepath.Join(p.CWD, "late.json"), []byte(strings.Join(c.lines, "\n")), 0o600))
			pipe := namedPipe(t, p.CWD, "go")
			h, x, _ := ownTurns(t, p)
			if c.interrupted {
				go stopAtWork(t, h, x)
			}
			execute(t, x, p)
			if strings.Contains(strings.Join(c.lines, "\n"), "wait") {
				require.NoError(t, os.WriteFile(pipe, nil, 0o600))
			}
			h.Await(t, func() bool { begun, ended := h.counts(); return ended >= 1+len(c.own) || begun > len(c.own) }, "the end of each turn")
			said := func() string { return h.said("task-1") + h.lateText("task-1") }
			// The report precedes the next turn.
			h.Await(t, func() bool { begun, _ := h.counts(); return said() == c.first || begun > 0 }, "the late text")
			begun, _ := h.counts()
			require.Equal(t, len(c.own), begun, "agent-initiated turns")
			assert.Equal(t, c.first, said())
			for i, said := range c.own {
				assert.Equal(t, said, h.said([]string{"own-1", "own-2"}[i]))
			}
			p.TaskID, p.Prompt = "task-2", "turn"
			execute(t, x, p)
			assert.Contains(t, h.said("task-2"), "turn 2 ")
		})
	}
}
