package handlers

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerItems registers the methods for messages of sessions.
func registerItems(reg *server.Registry, d Domain) {
	handle(reg, d, nativeFamily, "session.items", items,
		server.Doc("Returns the last items of a session, or those before or after another one: what was said and done. Pass next_before as "+
			"before to get earlier ones."))
	handle(reg, d, nativeFamily, "session.search", search, server.LongRunning(),
		server.Doc("Searches all sessions for words; the last word may be a prefix. The best hits come first."))
}

const (
	itemsByDefault = 100
	itemsAtMost    = 1000
)

func items(ctx context.Context, h *hub.Hub, p protocol.ItemsParams) (protocol.ItemList, error) {
	if p.AgentSessionID != "" {
		last, err := h.Query().LastOfNative(ctx, p.AgentSessionID)
		if err != nil {
			return protocol.ItemList{}, err
		}
		p.Session = protocol.Ref(last.HumanLayerSession)
	}
	if p.Uncut != nil {
		return uncutItems(ctx, h, p)
	}
	limit := protocol.PageSize(p.Limit, itemsByDefault, itemsAtMost)
	entries, err := entriesFor(ctx, h, p, limit+2) // see pageOf
	if err != nil {
		return protocol.ItemList{}, err
	}
	list := make([]*protocol.SessionItem, len(entries))
	for n, e := range entries {
		list[n] = itemOf(e)
	}
	list, all := pageOf(list, limit, protocol.Room(ctx), p.After == nil)
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

// uncutItems returns items for a dialect.
func uncutItems(ctx context.Context, h *hub.Hub, p protocol.ItemsParams) (protocol.ItemList, error) {
	found, err := h.Query().Transcript(ctx, string(cmp.Or(p.Session, p.Turn)), query.Page{
		Turn: p.Turn != "", Offset: p.Uncut.Offset, Limit: p.Uncut.Limit, Spoken: p.Uncut.Spoken,
	})
	list := make([]*protocol.SessionItem, len(found.Entries))
	for n, e := range found.Entries {
		list[n] = itemOf(e)
	}
	return protocol.ItemList{Items: list, Of: found.Turn, Skipped: found.Before, Total: found.Total}, err
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
		ID: e.ID, Turn: domain.Turn{Session: e.Of.Session, Number: e.Of.Number}.Name(), TurnUUID: e.Of.HumanLayerSession,
		TurnState: e.Of.State,
		Seq:       e.Seq, CreatedAt: e.Created.UTC(), UpdatedAt: e.Updated.UTC(), Item: protocol.ItemOf(e.Item), Approval: e.Item.Approval,
		Open: e.Open, Withdrawn: e.Cancelled, Of: e.Item,
	}
	if e.Approval != nil {
		i.ApprovalStatus = protocol.ApprovalStatus(e.Approval.Status)
	}
	switch d := e.Data.(type) {
	case domain.Plan:
		i.Entries = d.Entries
	case domain.FileNote:
		i.Change = &d
	case domain.ApprovalNote:
		i.Answer = &protocol.AnswerNote{
			Approval: d.ApprovalID, Type: protocol.ApprovalType(d.Type), Status: protocol.ApprovalStatus(d.Decision), Title: d.Title,
			Response: d.Response, DecidedBy: cmp.Or(d.DecidedBy, domain.DecidedByUser), DecidedIn: d.DecidedIn, Edited: d.Edited, Explanation: d.Explanation, Delivery: d.Delivery,
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
	n := min(protocol.Fitting(list, most), limit)
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
	if protocol.EncodedSize(i) < most {
		return
	}
	raw, err := json.Marshal(i)
	var cut protocol.SessionItem
	if err == nil {
		err = json.Unmarshal(protocol.FitRaw(raw, most-ofMark), &cut)
	}
	if err != nil || cut.Type == "" {
		cut = protocol.SessionItem{
			ID: i.ID, Turn: i.Turn, TurnUUID: i.TurnUUID, TurnState: i.TurnState, Seq: i.Seq, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
			Open: i.Open,
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
	limit := protocol.PageSize(p.Limit, hitsByDefault, hitsAtMost)
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
			Turn: s.Turn.Name(), Session: s.Session.ID, TurnUUID: s.HumanLayerSession, SessionUUID: s.Session.UUID, Title: sessionTitleOf(s),
			Agent: s.Agent,
			Item:  hit.ID, Key: hit.Key, Type: protocol.ItemOf(hit.Item).Type, Role: hit.Role, ToolName: hit.Tool, Snippet: hit.Snippet,
			Rank:      hit.Rank,
			CreatedAt: hit.Created.UTC(),
		})
	}
	r := protocol.SearchResult{Hits: protocol.Fit(hits, protocol.Room(ctx))}
	if n := len(r.Hits); n > 0 && (n < len(hits) || len(found) == limit) {
		next := offset + n
		r.NextOffset = &next
	}
	return r, nil
}

// registerAttachments registers the method that returns the bytes of attachments. It is Duet's own.
func registerAttachments(reg *server.Registry, d Domain) {
	handle(reg, d, nativeFamily, "attachment.get", getAttachment,
		server.Doc("Returns the bytes of an image, audio or resource, by the attachment_id in an event or item. If not all fits, pass "+
			"next_offset as offset to get more."))
}

func getAttachment(ctx context.Context, h *hub.Hub, p protocol.AttachmentParams) (protocol.AttachmentResult, error) {
	const envelope = 1024 // the members around the data
	most := max(base64.StdEncoding.DecodedLen(max(protocol.Room(ctx)-envelope, 0))-3, 1)
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
