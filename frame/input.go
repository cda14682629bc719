package frame

import (
	"errors"
	"io"
	"os"
	"time"
)

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
