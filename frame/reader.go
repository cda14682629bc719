package frame

import (
	"errors"
	"io"
	"os"
	"time"
)

const (
	firstBuffer = 64 << 10    // what an idle Reader holds
	keepBuffer  = 1 << 20     // a larger buffer is given back when idle …
	idleRelease = time.Second // … for this long
)

// deadliner is what a source needs so that a frame can time out: net.Conn has
// it, and so has server's stdio transport.
type deadliner interface {
	SetReadDeadline(t time.Time) error
}

// A Reader takes messages from a byte stream. It is for one goroutine.
//
// If the source has a method SetReadDeadline(time.Time) error, as a net.Conn
// has, with reads that then fail with os.ErrDeadlineExceeded, frames time out
// as [Limits] say; else they never do. A deadline is set only in the middle of a
// frame, so an idle connection costs nothing and lasts for ever.
type Reader struct {
	// BeforeRead, if set, is called before each read that may block: no whole
	// frame is waiting, so this is the moment to flush what was written.
	BeforeRead func()
	// Released, if set, is called after the Reader has been idle for a second
	// and gave a large buffer back.
	Released func()

	src       io.Reader
	deadlines deadliner // nil: the source has none
	framing   Framing
	limits    Limits

	buf      []byte
	pos, end int   // buf[pos:end] is what has been read and not used
	srcErr   error // came with the last bytes; due when they are used up

	started  time.Time // when the frame under way began; zero: none, or not timed yet
	deadline bool      // the source has a deadline set

	state    state
	fields   int       // atFrame, longHeader: how much of unread is known to be whole header lines
	skipLeft int64     // skippingBody: what is left of it
	maxSkip  int64     // a constant but in tests
	line     lineState // longHeader, resyncing: the line that unread is in
}

// state is where in the stream a Reader is.
type state uint8

const (
	atFrame      state = iota // a frame, or a blank line, begins
	skippingBody              // LSP: inside a body that was refused
	longHeader                // LSP: inside a header section that was refused as too large
	resyncing                 // LSP: looking for the next header
	skippingLine              // NDJSON: inside a line that was refused
)

// NewReader makes a Reader for src. Zero limits mean the defaults.
func NewReader(src io.Reader, framing Framing, limits Limits) *Reader {
	r := &Reader{src: src, framing: framing, limits: limits.withDefaults(), maxSkip: maxSkip}
	r.deadlines, _ = src.(deadliner)
	return r
}

// Limits are the limits in force.
func (r *Reader) Limits() Limits { return r.limits }

// Unread puts head back before what the source will give. It is for a caller
// that looked at the first bytes to detect the framing, and must come before
// the first Next.
func (r *Reader) Unread(head []byte) {
	r.reserve(len(head))
	r.end += copy(r.buf[r.end:], head)
}

// Next reads the next message into m.
//
// A [*Refusal] and [ErrTimeout] are not final: the next call goes on with the
// next frame. Any other error is: io.EOF at the end of the source (a frame
// that was cut short there is refused first), or the source's own error.
func (r *Reader) Next(m *Message) error {
	body, err := r.framing.next(r)
	if err != nil {
		return err
	}
	if Parse(body, m) {
		return nil
	}
	if r.framing == LSP {
		// Was the body what it claimed to be, or was its length wrong? Nobody
		// can tell, so look for a header.
		r.enter(resyncing)
	}
	return BodyRefusal(body)
}

// unread is what has been read and not used. It is valid until more or drop.
func (r *Reader) unread() []byte { return r.buf[r.pos:r.end] }

// drop uses n bytes up.
func (r *Reader) drop(n int) {
	r.pos += n
	r.fields = max(0, r.fields-n)
}

// frameDone ends the clock of the frame under way.
func (r *Reader) frameDone() { r.started = time.Time{} }

// lineState tells what a Reader remembers of the line it is in after it dropped
// that line's beginning.
type lineState struct {
	cut      bool // the beginning was dropped
	hadColon bool // and had a colon in it
}

// enter goes to a state that begins at a line's beginning, as far as anybody
// can tell.
func (r *Reader) enter(s state) {
	r.state = s
	r.line = lineState{}
	r.frameDone()
}

// timedOut drops what came of a frame that took too long.
func (r *Reader) timedOut(next state) {
	r.drop(r.end - r.pos)
	r.enter(next)
}

// wait says for what a Reader waits when it reads.
type wait uint8

const (
	betweenFrames wait = iota // for as long as it takes
	inFrame                   // while the frame's clock runs
	inHead                    // the same, but not through a silence of headPatience
)

// headPatience is the silence after which the answer to a body that is too
// long does not wait for the body's beginning any more.
const headPatience = time.Second

// more reads at least one byte, with room for need unused bytes in all. When
// what it waits for has taken too long, the error is ErrTimeout, which is told
// again and again until the frame is dropped.
func (r *Reader) more(w wait, need int) error {
	if r.srcErr != nil {
		return r.srcErr
	}
	r.reserve(max(need, r.end-r.pos+1))
	if r.BeforeRead != nil {
		r.BeforeRead()
	}
	idle := false
	switch {
	case r.deadlines == nil:
	case w != betweenFrames && (r.limits.Timeout > 0 || w == inHead):
		r.setDeadline(r.frameDeadline(w))
	case r.pos == r.end && len(r.buf) > keepBuffer:
		idle = true
		r.setDeadline(time.Now().Add(idleRelease))
	case r.deadline:
		r.setDeadline(time.Time{})
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		switch {
		case n > 0:
			r.srcErr = nonTimeout(err)
			return nil
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			r.srcErr = err
			return err
		case idle:
			idle = false
			r.release()
			r.setDeadline(time.Time{})
		case w != betweenFrames:
			return ErrTimeout
		default: // somebody else's deadline
			r.setDeadline(time.Time{})
		}
	}
	return io.ErrNoProgress
}

// frameDeadline is when the frame under way, or the wait for its beginning, has
// taken too long.
func (r *Reader) frameDeadline(w wait) (t time.Time) {
	if w == inHead {
		t = time.Now().Add(headPatience)
	}
	if r.limits.Timeout <= 0 {
		return t
	}
	if r.started.IsZero() {
		r.started = time.Now()
	}
	if end := r.started.Add(r.limits.Timeout); t.IsZero() || end.Before(t) {
		t = end
	}
	return t
}

func nonTimeout(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

func (r *Reader) setDeadline(t time.Time) {
	r.deadline = !t.IsZero()
	if r.deadlines.SetReadDeadline(t) != nil {
		r.deadlines = nil // this source cannot after all
	}
}

// reserve makes room to read towards need unused bytes. The buffer grows with
// what has come, not with what a header announced: a length costs a peer
// nothing to claim.
func (r *Reader) reserve(need int) {
	used := r.end - r.pos
	if used == 0 {
		r.pos, r.end = 0, 0
	}
	if r.pos+need <= len(r.buf) {
		return
	}
	if r.pos > 0 {
		r.pos, r.end = 0, copy(r.buf, r.unread())
	}
	if need <= len(r.buf) || used < len(r.buf) {
		return
	}
	size := max(firstBuffer, 2*len(r.buf))
	if need > size {
		size = min(need, 2*size)
	}
	grown := make([]byte, size)
	r.end = copy(grown, r.buf)
	r.buf = grown
}

// release gives a large buffer back.
func (r *Reader) release() {
	r.buf = make([]byte, firstBuffer)
	r.pos, r.end = 0, 0
	if r.Released != nil {
		r.Released()
	}
}
