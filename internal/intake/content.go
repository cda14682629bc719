package intake

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// maxTurnContent limits the bytes of content stored for the agent of a turn. Repeated content counts
// once.
const maxTurnContent = 64 << 20

// unpacker extracts the bytes of content from reports, so that the store's writer need not. Invalid
// content becomes an error event that ends nothing. The lock of its Turn guards it. It runs after
// the redactor.
type unpacker struct {
	secrets *redact.Secrets
	pass    func(report)

	kept map[string]bool // attachments of the turn
	size int64           // their total bytes
}

func (u *unpacker) take(r report) {
	switch r.kind {
	case catalog.EventContent:
		var m catalog.MessageContent
		if json.Unmarshal(r.data, &m) != nil {
			u.problem(r.turn, "it is no content")
			return
		}
		if r.blocks = u.read(r.turn, []catalog.ContentBlock{m.Content}); len(r.blocks) == 0 {
			return
		}
		r.data, r.parent, r.thought = nil, m.ParentID, m.Thought
	case catalog.EventToolCall, catalog.EventToolUpdate, catalog.EventToolResult:
		var call catalog.ToolCall
		if bytes.Contains(r.data, []byte(`"content"`)) && json.Unmarshal(r.data, &call) == nil && call.Content != nil {
			r.blocks = u.read(r.turn, call.Content)
			call.Content = nil
			r.data = encode(call)
		}
	}
	u.pass(r)
}

// read returns the valid blocks. The result is not nil.
func (u *unpacker) read(turn int64, blocks []catalog.ContentBlock) []domain.Content {
	list := make([]domain.Content, 0, len(blocks))
	for i, b := range blocks {
		if i == transcript.MaxBlocks {
			u.problem(turn, fmt.Sprintf("it is more than %d blocks", i))
			break
		}
		c, err := transcript.ReadContent(b)
		if err == nil {
			err = u.admit(&c)
		}
		if err != nil {
			u.problem(turn, err.Error())
			continue
		}
		list = append(list, c)
	}
	return list
}

// admit redacts a block's bytes and counts them.
func (u *unpacker) admit(c *domain.Content) error {
	if c.Data == nil {
		return nil
	}
	if !u.secrets.None() {
		if clean := u.secrets.Text(string(c.Data)); clean != string(c.Data) {
			c.Data = []byte(clean)
			transcript.Seal(c)
		}
	}
	if u.kept[c.Attachment] {
		return nil
	}
	if u.size+c.Size > maxTurnContent {
		return fmt.Errorf("with it the prompt's content would be more than %d bytes", maxTurnContent)
	}
	if u.kept == nil {
		u.kept = make(map[string]bool)
	}
	u.kept[c.Attachment] = true
	u.size += c.Size
	return nil
}

func (u *unpacker) problem(turn int64, why string) {
	u.pass(report{turn: turn, kind: catalog.EventError, data: encode(catalog.ReportedError{
		Code: transcript.ContentRefused, Message: "content that the agent sent was left out: " + why,
	})})
}

// redactor removes the secrets of a turn's session from its reports. A secret may be split over
// pieces of a message, so redactor holds back an end that could begin one. For a secret split over
// messages, see [redact.Stream]. The lock of its Turn guards it.
type redactor struct {
	pass   func(report)
	stream redact.Stream
	held   *report // the report of the held text
}

// take redacts a report and passes it on.
func (d *redactor) take(r report) {
	if d.stream.Secrets.None() {
		d.pass(r)
		return
	}
	switch r.kind {
	case catalog.EventContentDelta, catalog.EventThinkingChunk:
		d.takeDelta(r)
		return
	case catalog.EventMode, catalog.EventNativeSession, catalog.EventProcess, catalog.EventPermissionTaken: // these end no message
	case catalog.EventUsage, catalog.EventSession, catalog.EventSilence: // nor do these
		r.data = d.stream.Secrets.JSON(r.data)
	case catalog.EventFileChange: // the project's files are not redacted
		d.flush()
	default:
		d.flush()
		r.data = d.stream.Secrets.JSON(r.data)
	}
	d.pass(r)
}

func (d *redactor) takeDelta(r report) {
	if d.held != nil && !d.held.continuedBy(r) {
		d.flush()
	}
	if r.delta.Meta != nil {
		r.delta.Meta = d.stream.Secrets.JSON(r.delta.Meta)
	}
	shown := d.stream.Add(r.delta.Delta.Text)
	if d.held = nil; d.stream.Holds() {
		rest := r
		d.held = &rest
	}
	if r.delta.Delta.Text = shown; shown != "" {
		d.pass(r)
	}
}

// flush passes on the held text, unless it is too much of a secret: the message ends.
func (d *redactor) flush() {
	if d.held == nil {
		return
	}
	r := *d.held
	d.held = nil
	if r.delta.Delta.Text = d.stream.Border(); r.delta.Delta.Text != "" {
		d.pass(r)
	}
}
