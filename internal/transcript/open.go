package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf16"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// maxMessage is the length in bytes, plus at most one piece, at which a message ends and the rest
// becomes another one. It limits the memory and size of a message.
const maxMessage = 1 << 20

// openMessage is the message that a turn's agent is writing: the pieces in the log that no item
// holds yet.
type openMessage struct {
	isOpen  bool
	thought bool
	key     string // Duet's id of the message
	agentID string // the agent's id of the message
	parent  string // the tool call of the writing sub-agent
	text    strings.Builder
	meta    json.RawMessage // merged _meta of its pieces, see patched
	said    json.RawMessage // _meta of the last piece that had one
	length  int             // length of text, see [domain.MessageDelta]
}

// add appends a piece to the text.
func (m *openMessage) add(text string, meta json.RawMessage) {
	m.text.WriteString(text)
	m.length += unitsOf(text)
	if meta != nil && !bytes.Equal(meta, m.said) { // pieces may repeat it
		m.meta, m.said = patched(m.meta, meta), meta
	}
}

// data returns the data of the message besides its text, or nil.
func (m *openMessage) data() domain.ItemData { return withMeta(nil, m.meta) }

// withMeta returns the data of a message with the agent's _meta, or nil if there is none.
func withMeta(data domain.ItemData, meta json.RawMessage) domain.ItemData {
	c, _ := data.(domain.MessageContent)
	if c.Meta = meta; c.Meta == nil && c.Blocks == nil {
		return nil
	}
	return c
}

// metaOf returns the agent's _meta of a message.
func metaOf(data domain.ItemData) json.RawMessage {
	c, _ := data.(domain.MessageContent)
	return c.Meta
}

// unitsOf returns the length of a text in UTF-16 code units.
func unitsOf(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// kind returns the kind of its item.
func (m *openMessage) kind() string {
	if m.thought {
		return domain.ItemThinking
	}
	return domain.ItemMessage
}

// goesOn reports whether a piece belongs to the message.
func (m *openMessage) goesOn(d catalog.ContentDelta, thought bool) bool {
	other := d.MessageID != "" && m.agentID != "" && d.MessageID != m.agentID
	return m.thought == thought && m.parent == d.ParentID && m.text.Len() < maxMessage && !other
}

// openMessages holds the open messages of turns. Only the current transaction uses it. A rollback
// clears it, and it is read from the log again.
type openMessages struct {
	ctx    context.Context
	byTurn map[int64]*openMessage
}

// has reports whether the open message of a turn is in memory.
func (o *openMessages) has(_ store.Tx, turn int64) bool { return o.byTurn[turn] != nil }

// drop removes the open message of a turn from memory.
func (o *openMessages) drop(_ store.Tx, turn int64) { delete(o.byTurn, turn) }

// of returns the open message of a turn, from the log if it is not in memory.
func (o *openMessages) of(t store.Tx, turn int64) (*openMessage, error) {
	if m := o.byTurn[turn]; m != nil {
		return m, nil
	}
	pieces, err := t.OpenDeltas(o.ctx, turn)
	if err != nil {
		return nil, err
	}
	m := messageOf(pieces)
	o.byTurn[turn] = m
	return m, nil
}

// Open returns the unfinished message of a turn as the item that it will become, or nil.
func Open(ctx context.Context, r store.Reader, turn int64) (*domain.Item, error) {
	pieces, err := r.OpenDeltas(ctx, turn)
	if err != nil || len(pieces) == 0 {
		return nil, err
	}
	m := messageOf(pieces)
	last := pieces[len(pieces)-1]
	return &domain.Item{
		Session: last.Session, Turn: turn, Kind: m.kind(), Key: m.key, ParentID: m.parent, Role: "assistant", Content: m.text.String(),
		Data: m.data(),
		Seq:  last.Seq, Created: pieces[0].Time, Updated: last.Time,
	}, nil
}

// messageOf returns the message that consists of pieces in the log.
func messageOf(pieces []domain.Event) *openMessage {
	m := &openMessage{}
	for _, e := range pieces {
		d, ok := e.Payload.(domain.MessageDelta)
		if !ok { // unreadable
			continue
		}
		if d.Key != m.key { // cannot happen: the previous message was closed
			m.text.Reset()
			m.length, m.meta, m.said = 0, nil, nil
		}
		m.isOpen, m.thought, m.key, m.parent = true, d.Thought, d.Key, d.ParentID
		m.add(d.Text, d.Meta)
	}
	return m
}
