package handlers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerConversation registers the methods for messages of sessions.
func registerConversation(reg *server.Registry, d Domain) {
	handle(reg, d, humanLayerFamily, "getConversation", getConversation,
		server.Doc("Returns the conversation up to a session, with its tool calls, the oldest first. If not all fits, pass next_offset as offset to get more. Texts that are cut say so."))
	handle(reg, d, nativeFamily, "session.items", items,
		server.Doc("Returns the last items of a session, or those before or after another one: what was said and done. Pass next_before as before to get earlier ones."))
	handle(reg, d, nativeFamily, "session.search", search, server.LongRunning(),
		server.Doc("Searches all sessions for words; the last word may be a prefix. The best hits come first."))
}

func getConversation(ctx context.Context, h *hub.Hub, p humanlayer.ConversationParams) (humanlayer.ConversationResult, error) {
	id := p.SessionID
	if id == "" {
		s, err := h.Query().LastOfNative(ctx, p.ClaudeSessionID)
		if err != nil {
			return humanlayer.ConversationResult{}, err
		}
		id = s.HumanLayerSession
	}
	most := room(ctx)
	page := query.Page{Offset: int(min(p.Offset, math.MaxInt32)), Limit: eventsAtMost(p, most), Spoken: humanlayer.IsLines(server.ConnFrom(ctx))}
	c, err := h.Query().Conversation(ctx, id, page)
	if err != nil {
		return humanlayer.ConversationResult{}, err
	}
	return conversationPage(eventsOf(c.Entries)[c.Before:], c.Total, p, most), nil
}

// eventsAtOnce limits the events of a result if the request has no limit: the client would wait for
// seconds for a conversation of 100,000 events.
const eventsAtOnce = 10_000

// leastEvent is a lower limit for the length of an event as JSON, in bytes.
const leastEvent = 128

// eventsAtMost returns how many events to read for a result of most bytes.
func eventsAtMost(p humanlayer.ConversationParams, most int) int {
	fit := most/leastEvent + 1
	if p.Limit == nil || *p.Limit == 0 {
		return min(fit, eventsAtOnce)
	}
	return int(min(*p.Limit, uint(fit)))
}

// eventsOf converts entries to events. A tool call with a result becomes two.
func eventsOf(entries []query.Entry) []*humanlayer.ConversationEvent {
	events := make([]*humanlayer.ConversationEvent, 0, len(entries)+len(entries)/2)
	add := func(e humanlayer.ConversationEvent) { events = append(events, &e) }
	for _, e := range entries {
		event := humanlayer.ConversationEvent{
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
func conversationPage(page []*humanlayer.ConversationEvent, total int, p humanlayer.ConversationParams, most int) humanlayer.ConversationResult {
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
	r := humanlayer.ConversationResult{Total: total, Events: page}
	if r.Events == nil {
		r.Events = []*humanlayer.ConversationEvent{}
	}
	if next := begin + len(page); next < total {
		r.NextOffset = &next
	}
	return r
}

// whole returns the first events of a page that fit. It returns at least one, cut if necessary.
func whole(page []*humanlayer.ConversationEvent, most int) []*humanlayer.ConversationEvent {
	n := fitting(page, most)
	if n > 0 || len(page) == 0 {
		return page[:n]
	}
	withoutData(page[:1])
	return fit(page[:1], most)
}

// withoutData removes the diffs, which cannot be cut and are usually the longest part. A client gets
// them by getSessionSnapshots.
func withoutData(page []*humanlayer.ConversationEvent) {
	const most = 4 << 10
	for _, e := range page {
		if len(e.Data) > most {
			e.Data = fitRaw(e.Data, most)
		}
	}
}

const (
	itemsByDefault = 100
	itemsAtMost    = 1000
)

func items(ctx context.Context, h *hub.Hub, p protocol.ItemsParams) (protocol.ItemList, error) {
	limit := pageSize(p.Limit, itemsByDefault, itemsAtMost)
	entries, err := entriesFor(ctx, h, p, limit+2) // see pageOf
	if err != nil {
		return protocol.ItemList{}, err
	}
	list := make([]*protocol.SessionItem, len(entries))
	for n, e := range entries {
		list[n] = itemOf(e)
	}
	list, all := pageOf(list, limit, room(ctx), p.After == nil)
	r := protocol.ItemList{Items: list}
	switch {
	case all:
	case p.After != nil:
		r.NextAfter = list[len(list)-1].ID
	default:
		r.NextBefore = list[0].ID
	}
	return r, nil
}

func entriesFor(ctx context.Context, h *hub.Hub, p protocol.ItemsParams, limit int) ([]query.Entry, error) {
	if p.Key != "" { // a few: one of each type at most
		return h.Query().ItemsWithKey(ctx, string(p.Turn), p.Key)
	}
	return h.Query().Items(ctx, string(cmp.Or(p.Session, p.Turn)), query.ItemsPage{
		Turn: p.Turn != "", Before: protocol.Value(p.Before), After: p.After, Limit: limit,
	})
}

func itemOf(e query.Entry) *protocol.SessionItem {
	i := &protocol.SessionItem{
		ID: e.ID, Turn: domain.Turn{Session: e.Of.Session, Number: e.Of.Number}.Name(), TurnUUID: e.Of.HumanLayerSession, TurnState: string(e.Of.State),
		Seq: e.Seq, CreatedAt: e.Created.UTC(), UpdatedAt: e.Updated.UTC(), Item: protocol.ItemOf(e.Item), Approval: e.Item.Approval,
		Open: e.Open, Withdrawn: e.Cancelled,
	}
	if e.Approval != nil {
		i.ApprovalStatus = e.Approval.Status
	}
	switch d := e.Data.(type) {
	case domain.Plan:
		i.Entries = d.Entries
	case domain.FileNote:
		i.Change = &d
	case domain.ApprovalNote:
		i.Answer = &protocol.AnswerNote{
			Approval: d.ApprovalID, Type: d.Type, Status: d.Decision, Title: d.Title, Response: d.Response, DecidedBy: d.DecidedBy,
			DecidedIn: d.DecidedIn, Edited: d.Edited, Explanation: d.Explanation, Delivery: d.Delivery,
		}
	}
	if i.Type == protocol.ItemToolCall {
		i.Open = !i.Ended()
	}
	return i
}

// pageOf returns the last items, or the first ones: at most limit, as many as fit into most bytes. It
// reports whether they are all. It cuts one that is too long on its own. The next page begins at the id of
// the item at the edge, so this is never an unfinished message, which has none: the page is one item
// shorter, or has two.
func pageOf(list []*protocol.SessionItem, limit, most int, last bool) (page []*protocol.SessionItem, all bool) {
	if last {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	n := min(fitting(list, most), limit)
	if n == 0 && len(list) > 0 {
		n = 1
		shorten(list[0], most)
	}
	if n > 0 && n < len(list) && list[n-1].ID == 0 {
		if n--; n == 0 {
			n = 2
			shorten(list[0], most/2)
			shorten(list[1], most/2)
		}
	}
	page = list[:n]
	if last {
		slices.Reverse(page)
	}
	return page, n == len(list)
}

// shorten cuts the texts of an item so that it fits into most bytes. If that is not enough, such as for
// a plan of very many steps, it leaves out all but what the item is and where. An item that fits stays as
// it is.
func shorten(i *protocol.SessionItem, most int) {
	const ofMark = 32 // bytes of the member truncated
	if encodedSize(i) < most {
		return
	}
	raw, err := json.Marshal(i)
	var cut protocol.SessionItem
	if err == nil {
		err = json.Unmarshal(fitRaw(raw, most-ofMark), &cut)
	}
	if err != nil || cut.Type == "" {
		cut = protocol.SessionItem{
			ID: i.ID, Turn: i.Turn, TurnUUID: i.TurnUUID, TurnState: i.TurnState, Seq: i.Seq, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt, Open: i.Open,
			Item: protocol.Item{Type: i.Type, Key: i.Key, Role: i.Role, Status: i.Status},
		}
	}
	cut.Truncated = true
	*i = cut
}

const (
	hitsByDefault = 20
	hitsAtMost    = 200
)

func search(ctx context.Context, h *hub.Hub, p protocol.SearchParams) (protocol.SearchResult, error) {
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
			Turn: s.Turn.Name(), Session: s.Session.ID, TurnUUID: s.HumanLayerSession, SessionUUID: s.Session.UUID, Title: titleOf(s), Agent: s.Agent,
			Item: hit.ID, Key: hit.Key, Type: protocol.ItemOf(hit.Item).Type, Role: hit.Role, ToolName: hit.Tool, Snippet: hit.Snippet, Rank: hit.Rank,
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
	handle(reg, d, nativeFamily, "attachment.get", getAttachment,
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
