package intake

import (
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/redact"
)

// A redactor takes the keys of a run's thread out of its reports. A key may be cut
// in two by the border of pieces of a message, so an end of one that could be the
// beginning of a key is held back; and by the border of messages, see
// [redact.Stream]. It is guarded by the lock of its Run.
type redactor struct {
	pass   func(report)
	stream redact.Stream
	held   *report // the report to which belongs what the stream holds back
}

// take passes a report on without keys.
func (d *redactor) take(r report) {
	if d.stream.Secrets.None() {
		d.pass(r)
		return
	}
	switch r.kind {
	case catalog.EventContentDelta, catalog.EventThinkingChunk:
		d.takeDelta(r)
		return
	case catalog.EventMode, catalog.EventNativeSession, catalog.EventProcess, catalog.EventPermissionTaken: // they end no message
	case catalog.EventUsage, catalog.EventSession, catalog.EventSilence: // nor do these
		r.data = d.stream.Secrets.JSON(r.data)
	case catalog.EventFileChange: // the project's files are what they are
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

// flush passes on what was held back, unless it is too much of a key: the message
// ends.
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
