package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func (h *Hub) applyPlan(t store.Tx, r *report, run domain.Run) error {
	var plan catalog.Plan
	if err := json.Unmarshal(r.data, &plan); err != nil {
		return err
	}
	if plan.Entries == nil {
		plan.Entries = []catalog.PlanEntry{}
	}
	if err := h.announce(t, run, planOf(plan)); err != nil {
		return err
	}
	if err := h.note(t, run, kindPlan, "", planText(plan), encode(planNote{plan.Entries})); err != nil {
		return err
	}
	run.Metadata = withMember(run.Metadata, "plan", encode(plan.Entries))
	return t.UpdateRun(run)
}

func planOf(plan catalog.Plan) domain.PlanChanged {
	changed := domain.PlanChanged{Entries: make([]domain.PlanEntry, len(plan.Entries))}
	for i, e := range plan.Entries {
		changed.Entries[i] = domain.PlanEntry(e)
	}
	return changed
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
	return h.announce(t, run, domain.UsageReported{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens,
		ContextUsed: u.ContextUsed, ContextSize: u.ContextSize, CostUSD: u.CostUSD,
	})
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
		if item.Seq, err = h.announceMessage(t, run, domain.MessageAdded{Type: kindSystem, Key: item.Key, Role: "system", Text: text, Subtype: "session_replaced"}); err != nil {
			return err
		}
		if err := t.InsertItem(&item); err != nil {
			return err
		}
	}
	return h.announce(t, run, domain.NativeSessionChanged{NativeSession: n.SessionID, Replaced: lost})
}

// fileDiff is a file change and its unified diff.
type fileDiff struct {
	catalog.FileChange
	diff           string
	added, removed int
}

func (h *Hub) applyChange(t store.Tx, r *report, run domain.Run) error {
	d := r.diff
	change := domain.Change{Run: run.ID, Path: d.Path, Before: d.Before, After: d.After, Binary: d.Binary, Seq: t.Seq() + 1, Updated: t.Now()}
	if err := t.PutChange(change); err != nil {
		return err
	}
	changed := domain.FileChanged{Path: d.Path, Diff: d.diff, Added: d.added, Removed: d.removed, Binary: d.Binary}
	if len(changed.Diff) > maxEventText {
		cut := strings.LastIndexByte(changed.Diff[:maxEventText], '\n') + 1
		changed.Diff, changed.Truncated = changed.Diff[:cut], true
	}
	if err := h.announce(t, run, changed); err != nil {
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
