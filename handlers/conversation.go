package handlers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/changereview"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerConversation registers the methods for messages and changed files of sessions (HumanLayer),
// and the search, which is Duet's own.
func registerConversation(reg *server.Registry, d Domain) {
	handle(reg, d, humanLayerFamily, "getConversation", getConversation,
		server.Doc("Returns the conversation up to a session, with its tool calls, the oldest first. If not all fits, pass next_offset as offset to get more. Texts that are cut say so."))
	handle(reg, d, humanLayerFamily, "getSessionSnapshots", getSessionSnapshots, server.Releasing(), // it may look for a checkpoint
		server.Doc("Returns the files that a session changed, their diffs, and the decision about each change."))
	handle(reg, d, sessionFamily, "session.decideChange", decideChange, server.LongRunning(),
		server.Doc("Accepts or reverts a change of a session, one hunk or a whole file, or withdraws that decision. All clients get the event change_decided. Duet searches for the hunk's lines in the current file; if they are gone or not unique, it changes nothing (`changed_since`). Other edits of the file stay. Other values of data.kind: `change_not_found`, `bad_state` (accepting a reverted hunk), `not_kept` (a binary file can only be accepted), `outside_workspace`, `not_writable`."))
	handle(reg, d, sessionFamily, "session.rewind", rewind, server.LongRunning(),
		server.Doc("Restores the files that a session and the later sessions of its conversation have changed, shell commands included, to their state before the session. Files that others have changed since are left alone, unless all is set. The conversation stays as it is; fork_from and prompt are for a fork that continues it from there. Refused while the conversation works, with all also while another one works in its directory, and undo if nothing was rewound (`bad_state`)."))
	handle(reg, d, sessionFamily, "searchConversations", searchConversations, server.LongRunning(),
		server.Doc("Searches all conversations for words; the last word may be a prefix. The best hits come first."))
}

func getConversation(ctx context.Context, h *hub.Hub, p protocol.ConversationParams) (protocol.ConversationResult, error) {
	id := p.SessionID
	if id == "" {
		s, err := h.Query().LastOfNative(ctx, p.ClaudeSessionID)
		if err != nil {
			return protocol.ConversationResult{}, err
		}
		id = s.HumanLayerSession
	}
	most := room(ctx)
	page := query.Page{Offset: int(min(p.Offset, math.MaxInt32)), Limit: eventsAtMost(p, most), Spoken: !protocol.Of(server.ConnFrom(ctx)).ShowsNotes}
	c, err := h.Query().Conversation(ctx, id, page)
	if err != nil {
		return protocol.ConversationResult{}, err
	}
	return conversationPage(eventsOf(c.Entries)[c.Before:], c.Total, p, most), nil
}

// eventsAtOnce limits the events of a result if the request has no limit: the client would wait for
// seconds for a conversation of 100,000 events.
const eventsAtOnce = 10_000

// leastEvent is a lower limit for the length of an event as JSON, in bytes.
const leastEvent = 128

// eventsAtMost returns how many events to read for a result of most bytes.
func eventsAtMost(p protocol.ConversationParams, most int) int {
	fit := most/leastEvent + 1
	if p.Limit == nil || *p.Limit == 0 {
		return min(fit, eventsAtOnce)
	}
	return int(min(*p.Limit, uint(fit)))
}

// eventsOf converts entries to events. A tool call with a result becomes two.
func eventsOf(entries []query.Entry) []*protocol.ConversationEvent {
	events := make([]*protocol.ConversationEvent, 0, len(entries)+len(entries)/2)
	add := func(e protocol.ConversationEvent) { events = append(events, &e) }
	for _, e := range entries {
		event := protocol.ConversationEvent{
			ID: 2 * e.ID, SessionID: e.SessionID, ClaudeSessionID: e.Native, EventType: e.Kind, CreatedAt: e.Created.UTC(),
			ParentToolUseID: e.ParentID, Seq: e.Seq,
		}
		switch e.State {
		case domain.Interrupted, domain.Failed, domain.TimedOut, domain.Cancelled:
			event.SessionState = string(e.State)
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

// toolName returns a name that is never empty: old clients show only the name of a tool call.
func toolName(i domain.Item) string {
	return cmp.Or(i.Tool, i.Title, i.ToolKind)
}

// conversationPage returns the part of a page that fits into most bytes; total is the number of all
// events. A client that pages gets whole texts. For another client texts are cut first, and then
// events are left out.
func conversationPage(page []*protocol.ConversationEvent, total int, p protocol.ConversationParams, most int) protocol.ConversationResult {
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
	r := protocol.ConversationResult{Total: total, Events: page}
	if r.Events == nil {
		r.Events = []*protocol.ConversationEvent{}
	}
	if next := begin + len(page); next < total {
		r.NextOffset = &next
	}
	return r
}

// whole returns the first events of a page that fit. It returns at least one, cut if necessary.
func whole(page []*protocol.ConversationEvent, most int) []*protocol.ConversationEvent {
	n := fitting(page, most)
	if n > 0 || len(page) == 0 {
		return page[:n]
	}
	withoutData(page[:1])
	return fit(page[:1], most)
}

// withoutData removes the diffs, which cannot be cut and are usually the longest part. A client gets
// them by getSessionSnapshots.
func withoutData(page []*protocol.ConversationEvent) {
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

func searchConversations(ctx context.Context, h *hub.Hub, p protocol.SearchParams) (protocol.SearchResult, error) {
	limit := pageSize(p.Limit, hitsByDefault, hitsAtMost)
	offset := int(min(p.Offset, 1<<31-1))
	found, err := h.Query().Search(ctx, p.Query, limit, offset)
	if err != nil {
		return protocol.SearchResult{}, err
	}
	hits := make([]*protocol.SearchHit, 0, len(found))
	for _, hit := range found {
		s, err := h.Query().TurnOf(ctx, hit.Turn)
		if err != nil {
			return protocol.SearchResult{}, err
		}
		hits = append(hits, &protocol.SearchHit{
			Turn: s.Turn.Name(), Session: s.Session.ID, SessionID: s.HumanLayerSession, RunID: s.HumanLayerRun, ThreadID: s.Session.UUID, Title: titleOf(s), Agent: s.Agent,
			EventID: 2 * hit.ID, EventType: hit.Kind, Role: hit.Role, ToolName: hit.Tool, Snippet: hit.Snippet, Rank: hit.Rank,
			CreatedAt: hit.Created.UTC(),
		})
	}
	r := protocol.SearchResult{Hits: fit(hits, room(ctx))}
	if n := len(r.Hits); n > 0 && (n < len(hits) || len(found) == limit) {
		next := offset + n
		r.NextOffset = &next
	}
	return r, nil
}

func hunksOf(f changereview.File) []protocol.Hunk {
	list := make([]protocol.Hunk, 0, len(f.Hunks))
	for _, h := range f.Hunks {
		list = append(list, protocol.Hunk{ID: h.ID, OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines, Added: h.Added, Removed: h.Removed, State: h.State})
	}
	return list
}

func modeOf(f changereview.File) *protocol.FileMode {
	if f.Mode == nil {
		return nil
	}
	return &protocol.FileMode{ID: f.Mode.ID, Old: fmt.Sprintf("%o", f.Mode.Old), New: fmt.Sprintf("%o", f.Mode.New), State: f.Mode.State}
}

func getSessionSnapshots(ctx context.Context, h *hub.Hub, p protocol.SessionParams) (protocol.SnapshotsResult, error) {
	s, err := h.Query().Turn(ctx, p.SessionID)
	if err != nil {
		return protocol.SnapshotsResult{}, err
	}
	files, err := h.Review().Files(ctx, s)
	if err != nil {
		return protocol.SnapshotsResult{}, err
	}
	r := snapshotsOf(s, files, room(ctx))
	if len(files) == 0 && s.Turn.State.Ended() {
		server.Release(ctx)
		r.NotRecorded, err = h.NotRecorded(ctx, s)
	}
	return r, err
}

// snapshotsOf returns the changes of files in at most most bytes. The diff gets half of them, the
// hunks a quarter.
func snapshotsOf(s domain.TurnInSession, files []changereview.File, most int) protocol.SnapshotsResult {
	r := protocol.SnapshotsResult{Snapshots: []*protocol.Snapshot{}}
	var all strings.Builder
	hunksLeft := most / 4
	for _, f := range files {
		one := &protocol.Snapshot{
			SessionID: s.HumanLayerSession, FilePath: f.Path, Renamed: f.RenamedFrom, Content: protocol.Value(f.Before), Before: copied(f.Before), After: copied(f.After), Binary: f.Binary,
			Diff: f.Diff, Hunks: hunksOf(f), Mode: modeOf(f), State: f.State, CreatedAt: f.Updated.UTC(),
		}
		if f.Binary {
			one.Diff += "Binary file " + f.Path + " differs\n" // after the mode
		}
		if size := encodedSize(one.Hunks); size <= hunksLeft {
			hunksLeft -= size
		} else {
			one.Hunks = []protocol.Hunk{}
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

func decideChange(ctx context.Context, h *hub.Hub, p protocol.DecideChangeParams) (protocol.DecideChangeResult, error) {
	s, err := h.Query().Turn(ctx, p.SessionID)
	if err != nil {
		return protocol.DecideChangeResult{}, err
	}
	f, err := h.Review().Decide(ctx, s, changereview.Decision{Path: p.Path, Hunk: p.Hunk, Decision: string(p.Decision)})
	if err != nil {
		return protocol.DecideChangeResult{}, err
	}
	r := protocol.DecideChangeResult{Path: f.Path, State: f.State, Hunks: hunksOf(f), Mode: modeOf(f)}
	if encodedSize(r.Hunks) > room(ctx)/2 {
		r.Hunks = []protocol.Hunk{}
	}
	return r, nil
}

func rewind(ctx context.Context, h *hub.Hub, p protocol.RewindParams) (protocol.RewindResult, error) {
	var r hub.Rewound
	var err error
	if p.Undo {
		r, err = h.UndoRewind(ctx, p.SessionID)
	} else {
		r, err = h.Rewind(ctx, hub.RewindSpec{Turn: p.SessionID, All: p.All, Preview: p.Preview})
	}
	result := protocol.RewindResult{Checkpoint: r.Checkpoint, Files: []protocol.RewindFile{}, ForkFrom: r.Turn.ParentHumanLayerSession, Prompt: r.Turn.Prompt}
	for _, f := range r.Files {
		result.Files = append(result.Files, protocol.RewindFile{Path: f.Path, Change: string(f.Kind), Added: f.AddedLines, Removed: f.DeletedLines, Left: f.Left, Detail: f.Detail})
	}
	for _, n := range r.NotRecorded {
		result.NotRecorded = append(result.NotRecorded, protocol.NotRecorded{Path: n.Path, Reason: string(n.Reason)})
	}
	result.MoreNotRecorded = r.MoreNotRecorded
	if r.Turn.ParentHumanLayerSession != "" && err == nil {
		result.ForkTurn, err = h.Query().ParentName(ctx, r.Turn)
	}
	for encodedSize(result.Files) > room(ctx)/2 {
		result.Files = result.Files[:len(result.Files)/2]
		result.More = len(r.Files) - len(result.Files)
	}
	return result, err
}

// fitRaw cuts the strings in raw JSON until it fits into most bytes. If that is not enough, it
// returns an object that says so. It keeps all members, also repeated names: programs differ in which
// one counts, so the user sees all.
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

// cutStrings cuts each string value in compact JSON to limit bytes. It does not cut names.
func cutStrings(compact []byte, limit int) json.RawMessage {
	out := make([]byte, 0, len(compact))
	for len(compact) > 0 {
		start := bytes.IndexByte(compact, '"')
		if start < 0 {
			break
		}
		end := start + 1
		for ; compact[end] != '"'; end++ {
			if compact[end] == '\\' {
				end++
			}
		}
		end++
		out = append(out, compact[:start]...)
		isName := end < len(compact) && compact[end] == ':'
		out = append(out, cutString(compact[start:end], limit, isName)...)
		compact = compact[end:]
	}
	return append(out, compact...)
}

func cutString(quoted []byte, limit int, isName bool) []byte {
	if isName || len(quoted)-2 <= limit { // escaping makes it no shorter
		return quoted
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil || len(text) <= limit {
		return quoted
	}
	return encodeText(protocol.Cut(text, limit))
}

func encodeText(text string) []byte {
	b, _ := json.Marshal(text) // a string has no error
	return b
}

// registerAttachments registers the method that returns the bytes of attachments. It is Duet's own.
func registerAttachments(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "getAttachment", getAttachment,
		server.Doc("Returns the bytes of an image, audio or resource, by the attachment_id in an event or conversation. If not all fits, pass next_offset as offset to get more."))
}

func getAttachment(ctx context.Context, h *hub.Hub, p protocol.AttachmentParams) (protocol.AttachmentResult, error) {
	const envelope = 1024 // the members around the data
	most := max(base64.StdEncoding.DecodedLen(max(room(ctx)-envelope, 0))-3, 1)
	if p.Limit != nil && *p.Limit > 0 {
		most = int(min(*p.Limit, uint(most)))
	}
	offset := int64(min(p.Offset, math.MaxInt32))
	info, part, err := h.Query().Attachment(ctx, p.ID, offset, most)
	if err != nil {
		return protocol.AttachmentResult{}, err
	}
	r := protocol.AttachmentResult{ID: info.ID, MIMEType: info.MIMEType, Size: info.Size, Data: base64.StdEncoding.EncodeToString(part)}
	if next := offset + int64(len(part)); next < info.Size && len(part) > 0 {
		r.NextOffset = &next
	}
	return r, nil
}

func checkContent(p protocol.PromptContent) error {
	_, err := promptWith(p, "")
	return err
}

// A fullPrompt is the text of a prompt with its attachments.
type fullPrompt struct {
	text    string
	content []domain.Content
}

// promptWith returns a prompt with its content. Its error names the wrong block.
func promptWith(p protocol.PromptContent, text string) (fullPrompt, error) {
	list, texts, wrong := conversation.ReadPrompt(p.Content)
	if wrong != nil {
		param := "content"
		if wrong.Index >= 0 {
			param = fmt.Sprintf("content[%d].%s", wrong.Index, wrong.Member)
		}
		return fullPrompt{}, server.InvalidParam(server.ParamError{Param: param, Expected: wrong.Expected, Received: wrong.Received})
	}
	if texts != "" && text != "" {
		texts = "\n\n" + texts
	}
	return fullPrompt{text + texts, list}, nil
}
