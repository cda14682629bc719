package conversation

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

// maxMessage is how long a message may get in bytes, give or take a piece: what an
// agent says beyond it becomes another message, so that one is never too long to be
// held, sent and found.
const maxMessage = 1 << 20

// An openMessage is the message that a run's agent is writing: what the pieces in
// the log have added up to, and no item holds yet.
type openMessage struct {
	isOpen  bool
	thought bool
	key     string // our id of the message
	agentID string // the agent's id of it
	parent  string // the tool call of the sub-agent that writes it
	text    strings.Builder
	meta    json.RawMessage // of its pieces together, see patched
	said    json.RawMessage // of the last piece that had some
	length  int             // of text, as of [domain.MessageDelta]
}

// add puts a piece at the end of the text.
func (m *openMessage) add(text string, meta json.RawMessage) {
	m.text.WriteString(text)
	m.length += unitsOf(text)
	if meta != nil && !bytes.Equal(meta, m.said) { // each piece may repeat it
		m.meta, m.said = patched(m.meta, meta), meta
	}
}

// data is what the message has beside its text, or nil.
func (m *openMessage) data() domain.ItemData { return withMeta(nil, m.meta) }

// withMeta is the data of a message with the agent's _meta, nil if there is nothing.
func withMeta(data domain.ItemData, meta json.RawMessage) domain.ItemData {
	c, _ := data.(domain.MessageContent)
	if c.Meta = meta; c.Meta == nil && c.Blocks == nil {
		return nil
	}
	return c
}

// metaOf is the agent's _meta of a message.
func metaOf(data domain.ItemData) json.RawMessage {
	c, _ := data.(domain.MessageContent)
	return c.Meta
}

// unitsOf is how many UTF-16 code units a text takes.
func unitsOf(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// kind is the kind of the item that it becomes.
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

// openMessages are the open messages of runs. They are used by the change that is
// under way, and by no two at once. When a change was undone they are forgotten, and
// made again from the log.
type openMessages struct {
	ctx   context.Context
	byRun map[int64]*openMessage
}

// has reports whether it is known whether a run has a message that is open.
func (o *openMessages) has(_ store.Tx, run int64) bool { return o.byRun[run] != nil }

// drop forgets the open message of a run.
func (o *openMessages) drop(_ store.Tx, run int64) { delete(o.byRun, run) }

// of is the open message of a run, from the log if it is not in memory.
func (o *openMessages) of(t store.Tx, run int64) (*openMessage, error) {
	if m := o.byRun[run]; m != nil {
		return m, nil
	}
	pieces, err := t.OpenDeltas(o.ctx, run)
	if err != nil {
		return nil, err
	}
	m := messageOf(pieces)
	o.byRun[run] = m
	return m, nil
}

// Open is the message of a run that is being written, as the item that it will
// become, or nil.
func Open(ctx context.Context, r store.Reader, run int64) (*domain.Item, error) {
	pieces, err := r.OpenDeltas(ctx, run)
	if err != nil || len(pieces) == 0 {
		return nil, err
	}
	m := messageOf(pieces)
	last := pieces[len(pieces)-1]
	return &domain.Item{
		Thread: last.Thread, Run: run, Kind: m.kind(), Key: m.key, ParentID: m.parent, Role: "assistant", Content: m.text.String(), Data: m.data(),
		Seq: last.Seq, Created: pieces[0].Time, Updated: last.Time,
	}, nil
}

// messageOf is what pieces in the log add up to.
func messageOf(pieces []domain.Event) *openMessage {
	m := &openMessage{}
	for _, e := range pieces {
		d, ok := e.Payload.(domain.MessageDelta)
		if !ok { // it could not be read
			continue
		}
		if d.Key != m.key { // cannot be: the one before was closed
			m.text.Reset()
			m.length, m.meta, m.said = 0, nil, nil
		}
		m.isOpen, m.thought, m.key, m.parent = true, d.Thought, d.Key, d.ParentID
		m.add(d.Text, d.Meta)
	}
	return m
}
