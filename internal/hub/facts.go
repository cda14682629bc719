package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// planData is what clients see of a plan.
type planData struct {
	ids
	Entries []catalog.PlanEntry `json:"entries"`
}

func (h *Hub) applyPlan(t store.Tx, r *report, run domain.Run) error {
	var plan catalog.Plan
	if err := json.Unmarshal(r.data, &plan); err != nil {
		return err
	}
	if plan.Entries == nil {
		plan.Entries = []catalog.PlanEntry{}
	}
	if err := h.announce(t, EventPlan, run, planData{idsOf(run), plan.Entries}); err != nil {
		return err
	}
	if err := h.note(t, run, kindPlan, "", planText(plan), encode(planNote{plan.Entries})); err != nil {
		return err
	}
	run.Metadata = withMember(run.Metadata, "plan", encode(plan.Entries))
	return t.UpdateRun(run)
}

// planNote is what the conversation holds of a plan.
type planNote struct {
	Entries []catalog.PlanEntry `json:"entries"`
}

// planText is a plan for who knows nothing but texts, and to be found by.
func planText(plan catalog.Plan) string {
	var b strings.Builder
	for _, e := range plan.Entries {
		tick := " "
		if e.Status == "completed" {
			tick = "x"
		}
		fmt.Fprintf(&b, "- [%s] %s\n", tick, e.Content)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// note keeps in a run's conversation what was just announced: where it is new
// at its end, else where it stands.
func (h *Hub) note(t store.Tx, run domain.Run, kind, key, text string, data json.RawMessage) error {
	item, err := t.NotedItem(h.ctx, run.ID, kind, key)
	isNew := errors.Is(err, store.ErrNotFound)
	if err != nil && !isNew {
		return err
	}
	if isNew {
		role := "assistant"
		if kind == kindApproval {
			role = "user"
		}
		item = domain.Item{Thread: run.Thread, Run: run.ID, Kind: kind, Key: key, Role: role, Created: t.Now()}
	}
	item.Seq, item.Content, item.Data, item.Updated = t.Seq(), text, data, t.Now()
	if isNew {
		return t.InsertItem(&item)
	}
	return t.UpdateItem(item)
}

// withMember is an object with one member set.
func withMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &members) // absent, or ours
	members[name] = value
	return encode(members)
}

// usageData is what clients see of what a run has used.
type usageData struct {
	ids
	catalog.Usage
}

func (h *Hub) applyUsage(t store.Tx, r *report, run domain.Run) error {
	var u catalog.Usage
	if err := json.Unmarshal(r.data, &u); err != nil {
		return err
	}
	set := func(field *int64, value int64) {
		if value > 0 {
			*field = value
		}
	}
	k := &run.Tokens
	set(&k.Input, u.InputTokens)
	set(&k.Output, u.OutputTokens)
	set(&k.CacheRead, u.CacheReadTokens)
	set(&k.CacheWrite, u.CacheWriteTokens)
	set(&k.ContextUsed, u.ContextUsed)
	set(&k.ContextSize, u.ContextSize)
	if u.CostUSD > 0 {
		k.CostUSD = u.CostUSD
	}
	if err := t.UpdateRun(run); err != nil {
		return err
	}
	return h.announce(t, EventUsage, run, usageData{idsOf(run), u})
}

// settingsData is what clients see of a change of a thread.
type settingsData struct {
	ids
	EventType          string   `json:"event_type"`
	Title              *string  `json:"title,omitempty"`
	Mode               *string  `json:"permission_mode,omitempty"`
	Model              *string  `json:"model,omitempty"`
	AutoAcceptEdits    *bool    `json:"auto_accept_edits,omitempty"`
	SkipPermissions    *bool    `json:"dangerously_skip_permissions,omitempty"`
	SkipUntil          string   `json:"dangerously_skip_permissions_expires_at,omitempty"`
	Archived           *bool    `json:"archived,omitempty"`
	Reason             string   `json:"reason,omitempty"`
	NativeSession      string   `json:"claude_session_id,omitempty"`
	AgentMode          string   `json:"agent_mode,omitempty"`
	AgentModes         []string `json:"agent_modes,omitempty"`
	SessionWasReplaced bool     `json:"session_was_replaced,omitempty"`
}

func (h *Hub) applyNative(t store.Tx, r *report, run domain.Run) error {
	var n catalog.NativeSession
	if err := json.Unmarshal(r.data, &n); err != nil {
		return err
	}
	thread, err := t.Thread(h.ctx, run.Thread)
	if err != nil {
		return err
	}
	lost := n.Primed && thread.NativeSession != "" && thread.NativeSession != n.SessionID
	thread.NativeSession = n.SessionID
	if err := t.UpdateThread(thread); err != nil {
		return err
	}
	h.forget(t, run.ID)
	if lost {
		const text = "The agent had lost its session; a new one was given the conversation so far."
		item := domain.Item{Thread: run.Thread, Run: run.ID, Kind: kindSystem, Key: fmt.Sprintf("sys-%d", t.Seq()+1), Role: "system", Content: text, Created: t.Now(), Updated: t.Now()}
		if item.Seq, err = h.announceItem(t, run, conversationData{EventType: kindSystem, MessageID: item.Key, Role: "system", Content: text, ContentType: kindSystem, Subtype: "session_replaced"}); err != nil {
			return err
		}
		if err := t.InsertItem(&item); err != nil {
			return err
		}
	}
	return h.announce(t, EventSettings, run, settingsData{ids: idsOf(run), EventType: "native_session", NativeSession: n.SessionID, SessionWasReplaced: lost})
}

// fileDiff is a file change and its unified diff.
type fileDiff struct {
	catalog.FileChange
	diff           string
	added, removed int
}

// diffData is what clients see of a file change.
type diffData struct {
	ids
	Path    string `json:"path"`
	Diff    string `json:"diff"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	Cut     bool   `json:"truncated,omitempty"`
}

var errNoPath = errors.New("a file change without a path")

// diffOf makes the diff of a reported file change.
func (h *Hub) diffOf(data json.RawMessage) (*fileDiff, error) {
	var d fileDiff
	if err := json.Unmarshal(data, &d.FileChange); err != nil {
		return nil, err
	}
	if d.Path == "" {
		return nil, errNoPath
	}
	if d.Binary {
		return &d, nil
	}
	d.diff = diff.Unified(h.opts.Root, d.Path, d.Before, d.After)
	d.added, d.removed = diff.Count(d.diff)
	return &d, nil
}

func (h *Hub) applyChange(t store.Tx, r *report, run domain.Run) error {
	d := r.diff
	change := domain.Change{Run: run.ID, Path: d.Path, Before: d.Before, After: d.After, Binary: d.Binary, Seq: t.Seq() + 1, Updated: t.Now()}
	if err := t.PutChange(change); err != nil {
		return err
	}
	data := diffData{ids: idsOf(run), Path: d.Path, Diff: d.diff, Added: d.added, Removed: d.removed, Binary: d.Binary}
	if len(data.Diff) > maxEventText {
		cut := strings.LastIndexByte(data.Diff[:maxEventText], '\n') + 1
		data.Diff, data.Cut = data.Diff[:cut], true
	}
	if err := h.announce(t, EventDiff, run, data); err != nil {
		return err
	}
	return h.note(t, run, kindDiff, d.Path, d.Path, encode(diffNote{d.Path, d.added, d.removed, d.Binary}))
}

// diffNote is what the conversation holds of a changed file; the change itself
// is in getSessionSnapshots.
type diffNote struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
}
