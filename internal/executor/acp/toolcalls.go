package acp

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/plan"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

const (
	// maxToolCalls is how many tool calls of a turn are remembered.
	maxToolCalls = 10_000
	// maxDetails is the most bytes that are remembered of what a tool call shows before it
	// runs. A permission request may show more.
	maxDetails = 64 << 10
)

// A toolCall is what is known of a tool call so far.
type toolCall struct {
	named       string // what the agent calls the tool; "" if it has not said
	title, kind string
	input       json.RawMessage
	paths       []string
	diffs       []catalog.FileDiff
	text        string // what it shows until it runs: of a plan the plan, else what the agent says about the call
	todo        bool   // it is opencode's todowrite, by its first title: later ones count what is done
	repaired    bool   // what the agent said of it was no UTF-8, so it is not what it runs
}

// name is what the agent calls the tool, or else what tools of its kind are
// called. The title is for people: rules are never held against it.
func (t *toolCall) name() string {
	if t.named != "" {
		return t.named
	}
	return catalog.ToolOfKind(t.kind)
}

// asPlan is the call as one that may ask whether a plan is carried out.
func (t *toolCall) asPlan() plan.Call {
	return plan.Call{Tool: t.named, Kind: t.kind, Title: t.title, Input: t.input, Text: t.text}
}

// details is what the agent says about the call beside its title and its input: all that is
// known of it where the agent sends no input.
func (t *toolCall) details() string {
	text := strings.TrimSpace(t.text)
	if text == strings.TrimSpace(t.title) {
		return ""
	}
	members, err := toolinput.Members(t.input)
	if err != nil {
		return text
	}
	for _, raw := range members {
		var said string
		if json.Unmarshal(raw, &said) == nil && strings.TrimSpace(said) == text {
			return ""
		}
	}
	return text
}

// toolCalls are the tool calls of a turn by the agent's own ids. The zero value
// has none.
type toolCalls struct {
	mu    sync.Mutex
	calls map[string]*toolCall
}

// note adds to what is known of a tool call, and returns all of it.
func (c *toolCalls) note(u *toolUpdate, call catalog.ToolCall) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.calls[u.ToolCallID]
	if t == nil {
		t = &toolCall{}
		if len(c.calls) < maxToolCalls {
			if c.calls == nil {
				c.calls = make(map[string]*toolCall)
			}
			c.calls[u.ToolCallID] = t
		}
	}
	if u.Title != "" {
		t.title = u.Title
	}
	t.todo = t.todo || strings.EqualFold(u.Title, "todowrite")
	if u.Kind != "" {
		t.kind = u.Kind
	}
	if call.Input != nil && !(toolinput.Empty(call.Input) && t.input != nil) { // it was said before
		t.input = call.Input
	}
	if len(call.Paths) > 0 {
		t.paths = call.Paths
	}
	if len(call.Diffs) > 0 {
		t.diffs = call.Diffs
	}
	if name := strings.TrimSpace(metaString(u.Meta, "claudeCode", "toolName")); name != "" {
		t.named = name
	}
	switch started, isPlan := u.Status != "" && u.Status != "pending", t.asPlan().Asked(); {
	case u.text != "" && (isPlan || !started && len(u.text) <= maxDetails):
		t.text = u.text
	case !isPlan && (started || u.text != ""): // what it shows once it runs is its result
		t.text = ""
	}
	t.repaired = u.repaired || t.repaired && (call.Input == nil || toolinput.Empty(call.Input))
	return *t
}

// names are the names of tools of which what q asks about may be part: besides
// q's own, those that the agent has given calls of its own, and of others that
// do the same.
func (c *toolCalls) names(q catalog.RequestPermissionParams) []string {
	names := append([]string{q.ToolName}, q.Unasked...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.calls {
		same := len(q.Paths) == 0
		for _, p := range t.paths {
			same = same || slices.Contains(q.Paths, filepath.Clean(p))
		}
		if t.kind == q.ToolKind && same {
			names = appendNew(names, t.named)
		}
	}
	return names
}
