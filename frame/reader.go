package frame

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
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

const (
	firstBuffer = 64 << 10    // the buffer of an idle Reader
	keepBuffer  = 1 << 20     // a larger buffer is released when idle …
	idleRelease = time.Second // … for this long
)

// deadliner is the method that a source needs so that a frame can time out. net.Conn has it, and
// so has the transport of standard input and output.
type deadliner interface {
	SetReadDeadline(t time.Time) error
}

// An Input holds the bytes of a stream that were read but not used up, and reads more of them,
// for a [Splitter]. It keeps the clock of the current frame.
type Input struct {
	reader    *Reader // for its hooks
	src       io.Reader
	deadlines deadliner // nil: the source has no deadlines
	limits    Limits

	buf      []byte
	pos, end int   // buf[pos:end] is read and not used
	srcErr   error // came with the last bytes; returned when they are used up

	started  time.Time // start of the current frame; zero: none, or not timed yet
	deadline bool      // the source has a deadline set
}

// Limits returns the effective limits. A Splitter must enforce MaxFrame.
func (in *Input) Limits() Limits { return in.limits }

// Bytes returns the bytes that were read and not used up. They are valid until Fill.
func (in *Input) Bytes() []byte { return in.buf[in.pos:in.end] }

// Discard uses up the first n of Bytes.
func (in *Input) Discard(n int) { in.pos += n }

// EndFrame stops the clock of the current frame, which is whole or was dropped. The next Fill
// inside a frame starts it again.
func (in *Input) EndFrame() {
	if !in.started.IsZero() { // most frames arrive whole, and have no clock
		in.started = time.Time{}
	}
}

// Fill reads at least one byte more, with room for need unused bytes in all. inFrame says that a
// frame has begun: it may then take [Limits].Timeout from the first such Fill on. After that the
// error is [ErrTimeout] until EndFrame; any other error is the source's own, and final.
func (in *Input) Fill(need int, inFrame bool) error {
	if in.srcErr != nil {
		return in.srcErr
	}
	in.reserve(max(need, in.end-in.pos+1))
	if in.reader.BeforeRead != nil {
		in.reader.BeforeRead()
	}
	idle := false
	switch {
	case in.deadlines == nil:
	case inFrame && in.limits.Timeout > 0:
		if in.started.IsZero() {
			in.started = time.Now()
		}
		in.setDeadline(in.started.Add(in.limits.Timeout))
	case in.pos == in.end && len(in.buf) > keepBuffer:
		idle = true
		in.setDeadline(time.Now().Add(idleRelease))
	case in.deadline:
		in.setDeadline(time.Time{})
	}
	for range 100 {
		n, err := in.src.Read(in.buf[in.end:])
		in.end += n
		switch {
		case n > 0:
			in.srcErr = nonTimeout(err)
			return nil
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			in.srcErr = err
			return err
		case idle:
			idle = false
			in.release()
			in.setDeadline(time.Time{})
		case inFrame:
			return ErrTimeout
		default: // a deadline set by the source's owner
			in.setDeadline(time.Time{})
		}
	}
	return io.ErrNoProgress
}

func nonTimeout(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

func (in *Input) setDeadline(t time.Time) {
	in.deadline = !t.IsZero()
	if in.deadlines.SetReadDeadline(t) != nil {
		in.deadlines = nil // this source does not support deadlines after all
	}
}

// reserve makes room to read towards need unused bytes. The buffer grows with the bytes that
// arrive, not with the length that a header announces: a peer can claim any length for free.
func (in *Input) reserve(need int) {
	used := in.end - in.pos
	if used == 0 {
		in.pos, in.end = 0, 0
	}
	if in.pos+need <= len(in.buf) {
		return
	}
	if in.pos > 0 {
		in.pos, in.end = 0, copy(in.buf, in.Bytes())
	}
	if need <= len(in.buf) || used < len(in.buf) {
		return
	}
	size := max(firstBuffer, 2*len(in.buf))
	if need > size {
		size = min(need, 2*size)
	}
	grown := make([]byte, size)
	in.end = copy(grown, in.buf)
	in.buf = grown
}

// release frees a large buffer.
func (in *Input) release() {
	in.buf = make([]byte, firstBuffer)
	in.pos, in.end = 0, 0
	if in.reader.Released != nil {
		in.reader.Released()
	}
}

// Defaults for zero fields of [Limits].
const (
	DefaultMaxFrame  = 10 << 20         // 10 MiB of body
	DefaultMaxHeader = 8 << 10          // 8 KiB of header section
	DefaultTimeout   = 30 * time.Second // for one frame, from its first byte
)

// MaxDepth is how deep arrays and objects may nest before a body counts as invalid JSON. It is
// encoding/json's own bound, so that encoding/json can decode every body that a Reader accepts.
const MaxDepth = rawjson.MaxDepth

// maxSkip is the longest oversize body that is skipped by counting. A larger length is more
// likely a corrupted number than a body that will come, so the Reader looks for the next header
// at once.
const maxSkip = 1 << 30

// Limits bound the cost of one incoming frame. A zero field means its default, such as
// [DefaultMaxFrame].
type Limits struct {
	// MaxFrame is the longest body accepted, in bytes. A line of NDJSON is measured without its
	// line end. A longer body is skipped, not kept.
	MaxFrame int
	// MaxHeader is the longest header section accepted, in bytes, counted up
	// to and including the blank line that ends it. NDJSON has no header.
	MaxHeader int
	// Timeout is how long a frame may take from its first byte to its last.
	// An idle connection never times out. Negative: no limit.
	Timeout time.Duration
}

func (l Limits) withDefaults() Limits {
	if l.MaxFrame <= 0 {
		l.MaxFrame = DefaultMaxFrame
	}
	if l.MaxHeader <= 0 {
		l.MaxHeader = DefaultMaxHeader
	}
	if l.Timeout == 0 {
		l.Timeout = DefaultTimeout
	}
	return l
}
