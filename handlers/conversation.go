package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/jsonwalk"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerConversation registers what was said and changed in sessions (HumanLayer), and a search of ours.
func registerConversation(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "getConversation", getConversation,
		server.Doc("Tells what was said up to a session, with its tool calls, the oldest first. If not all fits, next_offset says how to go on; texts that were cut say so."))
	handle(reg, d, sessionFamily, "getSessionSnapshots", getSessionSnapshots,
		server.Doc("Tells which files a session changed, and how, and what was decided about each change."))
	handle(reg, d, sessionFamily, "session.decideChange", decideChange, server.LongRunning(),
		server.Doc("Accepts or reverts a change of a session, a hunk or all of a file, or takes that back; everybody is told by the event change_decided. It is done by what stands in the file: where the lines of a hunk are not there any more, or several times so that it is not clear which are meant, nothing is changed (`changed_since`). What somebody else has changed elsewhere in the file stays. Others of data.kind: `change_not_found`, `bad_state` (a hunk that is reverted is to be accepted), `not_kept` (of a binary file, which can only be accepted), `outside_workspace`, `not_writable`."))
	handle(reg, d, sessionFamily, "searchConversations", searchConversations, server.LongRunning(),
		server.Doc("Finds what was said in any conversation by words; the last may be the beginning of one. The best come first."))
}

type conversationParams struct {
	SessionID       string `json:"session_id,omitempty" doc:"The session; every id of the run will do. This or claude_session_id is needed."`
	ClaudeSessionID string `json:"claude_session_id,omitempty" doc:"The agent's own id of the conversation."`
	Offset          uint   `json:"offset,omitempty" doc:"How many events to leave out at the beginning."`
	Limit           *uint  `json:"limit,omitempty" doc:"How many events; absent or 0: all that fit, 10,000 at most."`
}

func (p conversationParams) check() error {
	if p.ClaudeSessionID != "" {
		return nil
	}
	return need("session_id", p.SessionID)
}

type conversationResult struct {
	Events     []*conversationEvent `json:"events"`
	Total      int                  `json:"total" doc:"How many events there are."`
	NextOffset *int                 `json:"next_offset,omitempty" doc:"There are more: pass this as offset."`
}

// A conversationEvent is one of HumanLayer's, and ours.
type conversationEvent struct {
	ID              int64     `json:"id"`
	SessionID       string    `json:"session_id" doc:"Of the session in which it happened."`
	ClaudeSessionID string    `json:"claude_session_id"`
	Sequence        int       `json:"sequence" doc:"From 1, over the whole conversation."`
	EventType       string    `json:"event_type" doc:"message, thinking, tool_call, tool_result or system; with LSP framing also plan, diff for a file that the session has changed, and approval for what a human has answered."`
	CreatedAt       time.Time `json:"created_at"`
	Role            string    `json:"role,omitempty" doc:"user or assistant."`
	Content         string    `json:"content,omitempty"`

	ToolID            string `json:"tool_id,omitempty"`
	ToolName          string `json:"tool_name,omitempty"`
	ToolInputJSON     string `json:"tool_input_json,omitempty" doc:"The input, as a string that holds JSON."`
	ParentToolUseID   string `json:"parent_tool_use_id,omitempty"`
	ToolResultForID   string `json:"tool_result_for_id,omitempty"`
	ToolResultContent string `json:"tool_result_content,omitempty"`
	IsCompleted       bool   `json:"is_completed" doc:"Of a tool call: it has ended. Of anything else: it is whole."`
	ApprovalStatus    string `json:"approval_status,omitempty" doc:"pending, approved, denied, responded, expired or cancelled."`
	ApprovalID        string `json:"approval_id,omitempty"`
	RefusedBy         string `json:"refused_by,omitempty" doc:"Of a tool call and its result: who did not let it run, as an approval's decided_by. One that failed otherwise has none."`
	Refusal           string `json:"refusal,omitempty" doc:"Why, in words."`

	Seq      int64           `json:"seq,omitempty" doc:"Of the event in the log that changed it last."`
	Key      string          `json:"key,omitempty" doc:"By which message_delta and thinking_delta name it."`
	Title    string          `json:"title,omitempty" doc:"Of a tool call: what it does, in words."`
	ToolKind string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Status   string          `json:"status,omitempty" doc:"Of a tool call: pending, in_progress, completed or failed. Of a message: cancelled, if it was taken back before the agent was given it; the agent is not told of it later."`
	Data     json.RawMessage `json:"data,omitempty" doc:"Of a tool call: paths, diffs, terminal, attachments, _meta. Of a message or a thought: attachments, _meta: the agent's own, at most 8 KiB. Of a plan: entries. Of a diff: path, added, removed, binary. Of an approval: approval_id, type, decision, title, response_text, input_was_edited, decided_by, explanation."`
}

func (e *conversationEvent) texts() []*string {
	return []*string{&e.Content, &e.ToolInputJSON, &e.ToolResultContent, &e.Refusal}
}

func getConversation(ctx context.Context, h *hub.Hub, p conversationParams) (conversationResult, error) {
	id := p.SessionID
	if id == "" {
		s, err := h.Query().SessionOfNative(ctx, p.ClaudeSessionID)
		if err != nil {
			return conversationResult{}, err
		}
		id = s.SessionID
	}
	most := room(ctx)
	page := query.Page{Offset: int(min(p.Offset, math.MaxInt32)), Limit: p.atMost(most), Spoken: !protocol.Of(server.ConnFrom(ctx)).ShowsNotes}
	c, err := h.Query().Conversation(ctx, id, page)
	if err != nil {
		return conversationResult{}, err
	}
	return conversationPage(eventsOf(c.Entries)[c.Before:], c.Total, p, most), nil
}

// eventsAtOnce is how many events a result has at most that no limit was given for: a
// conversation of 100,000 would keep its client waiting for seconds.
const eventsAtOnce = 10_000

// leastEvent is less than any event of a conversation has, as JSON, in bytes.
const leastEvent = 128

// atMost is how many events need to be looked at for a result of most bytes.
func (p conversationParams) atMost(most int) int {
	fit := most/leastEvent + 1
	if p.Limit == nil || *p.Limit == 0 {
		return min(fit, eventsAtOnce)
	}
	return int(min(*p.Limit, uint(fit)))
}

// eventsOf makes entries events: a tool call that has a result becomes two.
func eventsOf(entries []query.Entry) []*conversationEvent {
	events := make([]*conversationEvent, 0, len(entries)+len(entries)/2)
	add := func(e conversationEvent) { events = append(events, &e) }
	for _, e := range entries {
		event := conversationEvent{
			ID: 2 * e.ID, SessionID: e.SessionID, ClaudeSessionID: e.Native, EventType: e.Kind, CreatedAt: e.Created.UTC(),
			ParentToolUseID: e.ParentID, Seq: e.Seq,
		}
		if e.Kind != "tool_call" {
			event.Role, event.Content, event.IsCompleted, event.Key, event.Data = e.Role, e.Content, !e.Open, e.Key, protocol.ItemData(e.Data)
			if e.Cancelled {
				event.Status = "cancelled"
			}
			add(event)
			continue
		}
		ended := e.Status == "completed" || e.Status == "failed"
		result := event
		event.Role = "assistant"
		event.ToolID, event.ToolName, event.ToolInputJSON = e.Key, toolName(e.Item), string(e.Input)
		event.Title, event.ToolKind, event.Status, event.Data = e.Title, e.ToolKind, e.Status, protocol.ItemData(e.Data)
		event.IsCompleted, event.ApprovalID = ended, e.Item.Approval
		if e.Approval != nil {
			event.ApprovalID, event.ApprovalStatus = e.Approval.ID, e.Approval.Status
		}
		if details, ok := e.Data.(domain.ToolDetails); ok {
			event.RefusedBy, event.Refusal = details.RefusedBy, details.Refusal
			result.RefusedBy, result.Refusal = details.RefusedBy, details.Refusal
		}
		add(event)
		if ended || e.Result != "" {
			result.ID++
			result.EventType, result.Role, result.CreatedAt = "tool_result", "user", e.Updated.UTC()
			result.ToolResultForID, result.ToolResultContent, result.IsCompleted, result.Status = e.Key, e.Result, ended, e.Status
			add(result)
		}
	}
	return events
}

// toolName is never empty: old clients show nothing else of a tool call.
func toolName(i domain.Item) string {
	switch {
	case i.Tool != "":
		return i.Tool
	case i.Title != "":
		return i.Title
	}
	return i.ToolKind
}

// conversationPage is the page of events that was asked for, of total, as far as
// it fits into most bytes. A client that pages gets whole texts, as far as one
// fits at all; one that does not gets them cut, before events are left out.
func conversationPage(page []*conversationEvent, total int, p conversationParams, most int) conversationResult {
	begin := int(min(p.Offset, uint(total)))
	for i, e := range page {
		e.Sequence = begin + i + 1
	}
	if p.Limit != nil && *p.Limit > 0 {
		page = page[:min(*p.Limit, uint(len(page)))]
		page = whole(page, most)
	} else {
		page = page[:min(len(page), eventsAtOnce)]
		if fitting(page, most) < len(page) {
			withoutData(page)
		}
		page = fit(page, most)
	}
	r := conversationResult{Total: total, Events: page}
	if r.Events == nil {
		r.Events = []*conversationEvent{}
	}
	if next := begin + len(page); next < total {
		r.NextOffset = &next
	}
	return r
}

// whole is as much of a page as fits, at least one event: that is cut if it
// alone does not.
func whole(page []*conversationEvent, most int) []*conversationEvent {
	n := fitting(page, most)
	if n > 0 || len(page) == 0 {
		return page[:n]
	}
	withoutData(page[:1])
	return fit(page[:1], most)
}

// withoutData leaves out what cannot be cut and is most often the longest:
// getSessionSnapshots has the diffs, too.
func withoutData(page []*conversationEvent) {
	const most = 4 << 10
	for _, e := range page {
		if len(e.Data) > most {
			e.Data = fitRaw(e.Data, most)
		}
	}
}

const (
	hitsByDefault = 20
	hitsAtMost    = 200
)

type searchParams struct {
	Query  string `json:"query" doc:"The words: 64 at most, each counted once."`
	Limit  *uint  `json:"limit,omitempty" doc:"How many; 20 unless told, 200 at most."`
	Offset uint   `json:"offset,omitempty" doc:"How many to leave out at the beginning."`
}

func (p searchParams) check() error { return need("query", p.Query) }

type searchResult struct {
	Hits       []*searchHit `json:"hits"`
	NextOffset *int         `json:"next_offset,omitempty" doc:"There may be more: pass this as offset."`
}

type searchHit struct {
	SessionID string    `json:"session_id"`
	RunID     string    `json:"run_id"`
	ThreadID  string    `json:"thread_id"`
	Title     string    `json:"title" doc:"Of the session."`
	Agent     string    `json:"agent"`
	EventID   int64     `json:"event_id" doc:"The id of the event in getConversation, which has plans, diffs and approvals with LSP framing only."`
	EventType string    `json:"event_type"`
	Role      string    `json:"role,omitempty"`
	ToolName  string    `json:"tool_name,omitempty"`
	Snippet   string    `json:"snippet" doc:"What was found, marked by « and »."`
	Rank      float64   `json:"rank" doc:"Lower is better."`
	CreatedAt time.Time `json:"created_at"`
}

func (s *searchHit) texts() []*string { return []*string{&s.Snippet, &s.Title} }

func searchConversations(ctx context.Context, h *hub.Hub, p searchParams) (searchResult, error) {
	limit := pageSize(p.Limit, hitsByDefault, hitsAtMost)
	offset := int(min(p.Offset, 1<<31-1))
	found, err := h.Query().Search(ctx, p.Query, limit, offset)
	if err != nil {
		return searchResult{}, err
	}
	hits := make([]*searchHit, 0, len(found))
	for _, hit := range found {
		s, err := h.Query().SessionOf(ctx, hit.Run)
		if err != nil {
			return searchResult{}, err
		}
		hits = append(hits, &searchHit{
			SessionID: s.SessionID, RunID: s.RunID, ThreadID: s.Thread.UUID, Title: titleOf(s), Agent: s.Agent,
			EventID: 2 * hit.ID, EventType: hit.Kind, Role: hit.Role, ToolName: hit.Tool, Snippet: hit.Snippet, Rank: hit.Rank,
			CreatedAt: hit.Created.UTC(),
		})
	}
	r := searchResult{Hits: fit(hits, room(ctx))}
	if n := len(r.Hits); n > 0 && (n < len(hits) || len(found) == limit) {
		next := offset + n
		r.NextOffset = &next
	}
	return r, nil
}

type snapshotsResult struct {
	Snapshots []*snapshot `json:"snapshots"`
	Diff      string      `json:"diff" doc:"All changes as one unified diff, to be applied in the session's directory."`
}

// A snapshot is a file that a session changed.
type snapshot struct {
	SessionID string    `json:"session_id"`
	ToolID    string    `json:"tool_id" doc:"Always empty: what counts is what the session made of the file."`
	FilePath  string    `json:"file_path"`
	Content   string    `json:"content" doc:"The file before the session; empty if there was none."`
	Before    *string   `json:"before" doc:"The file before the session; null if there was none, or it is binary."`
	After     *string   `json:"after" doc:"The file as it was left; null if it is gone, or binary."`
	Binary    bool      `json:"binary"`
	Diff      string    `json:"diff" doc:"The change as a unified diff."`
	Hunks     []hunk    `json:"hunks" doc:"The hunks of diff, in order; session.decideChange decides about each. None where it is binary, an empty file, or too much to be told."`
	State     string    `json:"state" doc:"open, accepted or reverted: what was decided about all of it; open, too, where its hunks differ."`
	CreatedAt time.Time `json:"created_at"`
}

// A hunk is one change of a file, with the lines around it.
type hunk struct {
	ID       string `json:"id" doc:"The same as long as the change is."`
	OldStart int    `json:"old_start" doc:"As in its head in diff: of no lines 0."`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start" doc:"In the file as the session left it; what was reverted is not reckoned in."`
	NewLines int    `json:"new_lines"`
	Added    int    `json:"added" doc:"How many lines."`
	Removed  int    `json:"removed"`
	State    string `json:"state" doc:"open, accepted or reverted."`
}

func hunksOf(f changereview.File) []hunk {
	list := make([]hunk, 0, len(f.Hunks))
	for _, h := range f.Hunks {
		list = append(list, hunk{h.ID, h.OldStart, h.OldLines, h.NewStart, h.NewLines, h.Added, h.Removed, h.State})
	}
	return list
}

func (s *snapshot) texts() []*string {
	list := []*string{&s.Content, &s.Diff}
	for _, text := range []*string{s.Before, s.After} {
		if text != nil {
			list = append(list, text)
		}
	}
	return list
}

func getSessionSnapshots(ctx context.Context, h *hub.Hub, p sessionParams) (snapshotsResult, error) {
	s, err := h.Query().Session(ctx, p.SessionID)
	if err != nil {
		return snapshotsResult{}, err
	}
	files, err := h.Review().Files(ctx, s)
	if err != nil {
		return snapshotsResult{}, err
	}
	return snapshotsOf(s, files, room(ctx)), nil
}

// snapshotsOf leaves half of most bytes to the diff, which is worth most, and a quarter at most
// to the hunks.
func snapshotsOf(s domain.Session, files []changereview.File, most int) snapshotsResult {
	r := snapshotsResult{Snapshots: []*snapshot{}}
	var all strings.Builder
	hunksLeft := most / 4
	for _, f := range files {
		one := &snapshot{
			SessionID: s.SessionID, FilePath: f.Path, Before: copied(f.Before), After: copied(f.After), Binary: f.Binary,
			Diff: f.Diff, Hunks: hunksOf(f), State: f.State, CreatedAt: f.Updated.UTC(),
		}
		if f.Binary {
			one.Diff = "Binary file " + f.Path + " differs\n"
		}
		if f.Before != nil {
			one.Content = *f.Before
		}
		if size := encodedSize(one.Hunks); size <= hunksLeft {
			hunksLeft -= size
		} else {
			one.Hunks = []hunk{}
		}
		all.WriteString(one.Diff)
		r.Snapshots = append(r.Snapshots, one)
	}
	r.Diff = all.String()
	for limit := most / 2; encodedSize(r.Diff) > most/2; limit /= 2 {
		r.Diff = protocol.Cut(r.Diff, limit)
	}
	r.Snapshots = fit(r.Snapshots, most-encodedSize(r.Diff))
	return r
}

func copied(s *string) *string {
	if s == nil {
		return nil
	}
	c := *s
	return &c
}

type decideChangeParams struct {
	SessionID string         `json:"session_id" doc:"The session that has made the change; every id of the run will do."`
	Path      string         `json:"path" doc:"A file_path of getSessionSnapshots; one that is relative is so to the session's directory."`
	Hunk      string         `json:"hunk,omitempty" doc:"The id of one hunk; absent: all of the file, all or nothing."`
	Decision  changeDecision `json:"decision" doc:"accept: it was seen, and stays. revert: it is taken back in the file on the disk; a file that the session made is deleted, one that it deleted is there again. reopen: nothing is decided any more; what was reverted is in the file again."`
}

func (p decideChangeParams) check() error {
	return first(need("session_id", p.SessionID), need("path", p.Path))
}

// A changeDecision is what a person says to a change.
type changeDecision string

// Accepted implements schema.Enum.
func (changeDecision) Accepted() []string {
	return []string{changereview.Accept, changereview.Revert, changereview.Reopen}
}

type decideChangeResult struct {
	Path  string `json:"path"`
	State string `json:"state" doc:"Of all of the file, as of getSessionSnapshots."`
	Hunks []hunk `json:"hunks" doc:"All of the file, as they are now."`
}

func decideChange(ctx context.Context, h *hub.Hub, p decideChangeParams) (decideChangeResult, error) {
	s, err := h.Query().Session(ctx, p.SessionID)
	if err != nil {
		return decideChangeResult{}, err
	}
	f, err := h.Review().Decide(ctx, s, changereview.Decision{Path: p.Path, Hunk: p.Hunk, Decision: string(p.Decision)})
	if err != nil {
		return decideChangeResult{}, err
	}
	r := decideChangeResult{f.Path, f.State, hunksOf(f)}
	if encodedSize(r.Hunks) > room(ctx)/2 {
		r.Hunks = []hunk{}
	}
	return r, nil
}

// fitRaw cuts the strings in raw JSON until it fits into most bytes. What
// cannot be made to fit becomes an object that says so. All members stay as they
// stand there, also those that programs may take for one: what a human is shown
// is no one program's reading.
func fitRaw(raw json.RawMessage, most int) json.RawMessage {
	if len(raw) <= most {
		return raw
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) == nil {
		for _, limit := range textCaps {
			if shorter := cutStrings(compact.Bytes(), limit); len(shorter) <= most {
				return shorter
			}
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"trimmed":%d}`, len(raw)))
}

// cutStrings cuts the texts in compact JSON to at most limit bytes each; names
// stay.
func cutStrings(compact []byte, limit int) json.RawMessage {
	out := make([]byte, 0, len(compact))
	for len(compact) > 0 {
		start := bytes.IndexByte(compact, '"')
		if start < 0 {
			break
		}
		end := jsonwalk.String(compact, start)
		out = append(out, compact[:start]...)
		isName := end < len(compact) && compact[end] == ':'
		out = append(out, cutString(compact[start:end], limit, isName)...)
		compact = compact[end:]
	}
	return append(out, compact...)
}

func cutString(quoted []byte, limit int, isName bool) []byte {
	if isName || len(quoted)-2 <= limit { // escaped it is no shorter
		return quoted
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil || len(text) <= limit {
		return quoted
	}
	return encodeText(protocol.Cut(text, limit))
}

func encodeText(text string) []byte {
	b, _ := json.Marshal(text) // a string always can be
	return b
}
