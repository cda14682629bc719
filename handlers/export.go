package handlers

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"hash"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/export"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerExport registers session.export.
func registerExport(reg *server.Registry, d Domain) {
	handle(reg, d, nativeFamily, "session.export", exports{sessions{Domain: d}}.export, server.LongRunning(),
		server.Doc("Returns the transcript of a session or a turn as a document, part by part: Markdown, or the JSON of docs/export.md. If "+
			"there is more, pass next as after, with the same other parameters. The document ends at the items that exist at the first "+
			"request. Refused if the place at which a part was cut has changed since (`changed_since`): start again without after."))
}

type exports struct{ sessions }

// The stages of a document.
const (
	exportHead = iota
	exportItems
	exportTail
)

// A place is where a part of a document begins. A client gets it as next.
type place struct {
	Format protocol.ExportFormat `json:"f"`
	Turn   string                `json:"t"`           // the uuid of the last turn
	Only   bool                  `json:"o,omitempty"` // only the items of that turn
	Last   int64                 `json:"l,omitempty"` // the last item of that turn at the first request; 0: it had none

	Stage int    `json:"s,omitempty"`
	After int64  `json:"a,omitempty"` // the last item before the place with an id
	Some  bool   `json:"i,omitempty"` // there are items before
	Skip  int    `json:"k,omitempty"` // how many bytes behind all this the client has
	Sum   uint64 `json:"h,omitempty"` // the hash of these bytes
}

func (p place) String() string {
	raw, _ := json.Marshal(p) // strings, numbers and booleans: encoding cannot fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

// placeFor returns where the part of a request begins.
func placeFor(ctx context.Context, h *hub.Hub, p protocol.ExportParams) (at place, err error) {
	format := cmp.Or(p.Format, protocol.ExportMarkdown)
	if p.After != "" {
		raw, err := base64.RawURLEncoding.DecodeString(p.After)
		if err == nil {
			err = json.Unmarshal(raw, &at)
		}
		if err != nil || at.Format != format || at.Skip < 0 || at.Stage < exportHead || at.Stage > exportTail {
			return at, domain.Invalid("after", "the next of an earlier part, with the same format", "another text")
		}
		return at, nil
	}
	t, err := h.Query().Turn(ctx, string(cmp.Or(p.Session, p.Turn)))
	if err != nil {
		return at, err
	}
	at = place{Format: format, Turn: t.HumanLayerSession, Only: p.Turn != ""}
	last, err := h.Query().Items(ctx, at.Turn, query.ItemsPage{Turn: true, Limit: 2}) // one may be unfinished
	for _, e := range last {
		at.Last = max(at.Last, e.ID)
	}
	return at, err
}

const (
	// exportedAtOnce is the size of a part, in bytes of JSON: a small one costs little memory. Only a single
	// long piece makes a longer part.
	exportedAtOnce = 1 << 20
	// exportedItemsRead is the number of items that are read at once.
	exportedItemsRead = 100
)

func (e exports) export(ctx context.Context, h *hub.Hub, p protocol.ExportParams) (protocol.Exported, error) {
	at, err := placeFor(ctx, h, p)
	if err != nil {
		return protocol.Exported{}, err
	}
	part := newPart(at, protocol.Room(ctx))
	form := export.In(at.Format)
	if at.Stage == exportHead {
		err = e.head(ctx, h, part, form)
	}
	if err == nil && part.at.Stage == exportItems && part.isOpen() {
		err = writeItems(ctx, h, part, form)
	}
	if err == nil && part.at.Stage == exportTail && part.isOpen() {
		err = writeTail(ctx, h, part, form)
	}
	switch {
	case err != nil:
		return protocol.Exported{}, err
	case part.changed || part.skip > 0:
		return protocol.Exported{}, domain.Errorf(domain.KindChangedSince,
			"the session has changed at the end of the part before: export it again from the beginning")
	case part.full:
		if part.at.Skip > 0 {
			part.at.Sum = part.since.Sum64()
		}
		return protocol.Exported{Text: part.text.String(), Next: part.at.String()}, nil
	}
	return protocol.Exported{Text: part.text.String()}, nil
}

func (e exports) head(ctx context.Context, h *hub.Hub, part *exportPart, form export.Form) error {
	t, err := e.whole(ctx, h, part.at.Turn)
	if err != nil {
		return err
	}
	protocol.Fit([]*protocol.Turn{t}, protocol.LongestMessage)
	text, err := form.Head(t)
	if err == nil && part.write(text) {
		part.pass(exportItems, 0, false)
	}
	return err
}

func writeItems(ctx context.Context, h *hub.Hub, part *exportPart, form export.Form) error {
	after, some := part.at.After, part.at.Some
	for more := true; more; {
		page, err := h.Query().Items(ctx, part.at.Turn, query.ItemsPage{Turn: part.at.Only, After: &after, Limit: exportedItemsRead})
		if err != nil {
			return err
		}
		if more = len(page) >= exportedItemsRead; more && page[len(page)-1].ID == 0 {
			page = page[:len(page)-1] // it has no id to go on from, so the next page begins with it
		}
		for _, entry := range page {
			if isLast := entry.Of.HumanLayerSession == part.at.Turn; isLast && entry.ID > part.at.Last {
				more = false // this one, and all behind it, are newer than the document
				break
			}
			i := itemOf(entry)
			shorten(i, protocol.LongestMessage)
			text, err := form.Item(i, !some)
			if err != nil || !part.write(text) {
				return err
			}
			if some = true; entry.ID != 0 {
				after = entry.ID
				part.pass(exportItems, after, some)
			}
		}
	}
	part.pass(exportTail, after, some)
	return nil
}

func writeTail(ctx context.Context, h *hub.Hub, part *exportPart, form export.Form) error {
	changed, err := changesWithin(ctx, h, part.at.Turn, protocol.LongestMessage)
	if err != nil {
		return err
	}
	text, err := form.Tail(changed, !part.at.Some)
	if err == nil {
		part.write(text)
	}
	return err
}

// An exportPart takes the pieces of a document from a place on, until it is full.
type exportPart struct {
	at    place       // where the next part begins
	since hash.Hash64 // of the text behind at, without its Skip and Sum
	text  strings.Builder
	size  int // of text in JSON, in bytes; at most room
	room  int

	skip          int // bytes of the next pieces that the client has
	want          uint64
	full, changed bool
}

func newPart(at place, room int) *exportPart {
	p := &exportPart{at: at, since: fnv.New64a(), room: room, skip: at.Skip, want: at.Sum}
	p.at.Skip, p.at.Sum = 0, 0
	return p
}

func (p *exportPart) isOpen() bool { return !p.full && !p.changed }

// write adds a piece. It reports whether there is room for more. It cuts only a piece that does not fit
// into a part of its own.
func (p *exportPart) write(piece string) bool {
	if n := min(p.skip, len(piece)); n > 0 {
		p.add(piece[:n])
		if p.skip -= n; p.skip == 0 && p.since.Sum64() != p.want {
			p.changed = true
			return false
		}
		piece = piece[n:]
	}
	n, size := fittingText(piece, p.room-p.size)
	if p.text.Len() > 0 && (n < len(piece) || p.size+size > exportedAtOnce) {
		n, size = 0, 0
	}
	p.add(piece[:n])
	p.text.WriteString(piece[:n])
	p.size += size
	p.full = n < len(piece)
	return !p.full
}

func (p *exportPart) add(text string) {
	_, _ = p.since.Write([]byte(text)) // it never fails
	p.at.Skip += len(text)
}

// pass says that the next part begins behind all that was written, or later.
func (p *exportPart) pass(stage int, after int64, some bool) {
	p.changed = p.changed || p.skip > 0 // the text that the client has is longer
	p.at.Stage, p.at.After, p.at.Some, p.at.Skip = stage, after, some, 0
	p.since.Reset()
}

// fittingText returns how many bytes at the beginning of a text, in whole characters, fit into most bytes
// of JSON, and an upper limit for their size there.
func fittingText(text string, most int) (n, size int) {
	sizeOfCharacters := 0 // up to n
	for i := range len(text) {
		c := text[i]
		if utf8.RuneStart(c) {
			n, sizeOfCharacters = i, size
		}
		switch {
		case c == '\n' || c == '\t' || c == '\r' || c == '"' || c == '\\':
			size += len(`\n`)
		case c < ' ':
			size += len(`\u0000`)
		case c >= utf8.RuneSelf: // if it is not UTF-8
			size += len("\uFFFD")
		default:
			size++
		}
		if size > most {
			return n, sizeOfCharacters
		}
	}
	return len(text), size
}
