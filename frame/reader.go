package frame

import (
	"bytes"
	"io"
)

// A Reader takes messages from a byte stream. It is for one goroutine.
//
// If the source has a method SetReadDeadline(time.Time) error, as a net.Conn has, frames time
// out as [Limits] say. Reads must then fail with os.ErrDeadlineExceeded. Other sources never
// time out. A deadline is set only in the middle of a frame, so an idle connection costs nothing
// and never ends.
type Reader struct {
	// BeforeRead, if set, is called before each read that may block. No whole frame is waiting,
	// so the caller can flush its output.
	BeforeRead func()
	// Released, if set, is called after the Reader was idle for a second and released a large
	// buffer.
	Released func()

	in       Input
	splitter Splitter
}

// NewReader makes a Reader for src. Zero limits mean the defaults.
func NewReader(src io.Reader, framing Framing, limits Limits) *Reader {
	r := &Reader{splitter: framing.NewSplitter()}
	r.in = Input{reader: r, src: src, limits: limits.withDefaults()}
	r.in.deadlines, _ = src.(deadliner)
	return r
}

// Limits returns the effective limits.
func (r *Reader) Limits() Limits { return r.in.limits }

// Unread puts head back in front of the source's bytes. A caller that read the first bytes to
// detect the framing uses it, before the first Next.
func (r *Reader) Unread(head []byte) {
	r.in.reserve(len(head))
	r.in.end += copy(r.in.buf[r.in.end:], head)
}

// Rest returns a copy of the bytes that were read from the source and not yet used, for the next
// reader of the source. It must not be called after an error.
func (r *Reader) Rest() []byte { return bytes.Clone(r.in.Bytes()) }

// Next reads the next message into m.
//
// A [*Refusal] and [ErrTimeout] are not final: the next call continues with the next frame. Any
// other error is final: io.EOF at the end of the source, or the source's own error. A frame that
// the end cuts short is refused first.
func (r *Reader) Next(m *Message) error {
	body, err := r.splitter.Next(&r.in)
	if err != nil {
		return err
	}
	if Parse(body, m) {
		return nil
	}
	r.splitter.NotJSON()
	return BodyRefusal(body)
}
