//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// A script is a stream of bytes that is known before it flows: a block of
// frames, again and again until repeated bytes of it have passed, then a tail.
// Requests are written from one, and replies are compared with one, so that
// the client neither builds nor parses a message while it measures.
type script struct {
	block    []byte
	repeated int // bytes
	frame    int // length in bytes of each frame in block
	tail     []byte
}

// repeat is a script of count frames taken from a block of frames of one size.
func repeat(block []byte, frame, count int) script {
	return script{block: block, repeated: count * frame, frame: frame}
}

func (s script) size() int { return s.repeated + len(s.tail) }

// piece returns bytes from the given offset on: as many as lie side by side in
// memory, but none from the offset end on.
func (s script) piece(offset, end int) []byte {
	if offset >= s.repeated {
		return s.tail[offset-s.repeated : end-s.repeated]
	}
	from := offset % len(s.block)
	return s.block[from:min(len(s.block), from+min(end, s.repeated)-offset)]
}

// A listener takes what a child writes.
type listener interface {
	hear(b []byte) error
	// answered is the number of whole replies so far.
	answered() int
	done() bool
}

// expectation is a listener that knows the replies beforehand.
type expectation struct {
	script script
	heard  int // bytes
}

func (e *expectation) done() bool    { return e.heard == e.script.size() }
func (e *expectation) answered() int { return e.heard / max(1, e.script.frame) }

func (e *expectation) hear(b []byte) error {
	for len(b) > 0 {
		if e.done() {
			return fmt.Errorf("more than the expected replies: %.120q", b)
		}
		want := e.script.piece(e.heard, min(e.script.size(), e.heard+len(b)))
		if got := b[:len(want)]; !bytes.Equal(got, want) {
			at := 0
			for got[at] == want[at] {
				at++
			}
			return fmt.Errorf("reply %d differs (or is out of order): got %.120q, want %.120q", e.answered(), got[at:], want[at:])
		}
		e.heard += len(want)
		b = b[len(want):]
	}
	return nil
}

// collection is a listener that keeps one reply, whatever it is.
type collection struct {
	bytes  []byte
	header int // length in bytes, 0 until known
	size   int // header and body in bytes, 0 until known
}

func (c *collection) answered() int { return 0 }
func (c *collection) done() bool    { return c.size > 0 && len(c.bytes) == c.size }

func (c *collection) hear(b []byte) error {
	c.bytes = append(c.bytes, b...)
	if c.size == 0 {
		header, body, err := splitHeader(c.bytes)
		if err != nil || header == 0 {
			return err
		}
		c.header, c.size = header, header+body
	}
	if len(c.bytes) > c.size {
		return fmt.Errorf("more than one reply: %.120q", c.bytes[c.size:])
	}
	return nil
}

var errEnded = errors.New("the child closed its stdout")

// converse writes requests until the listener has heard enough. At most window
// requests are unanswered at any time; 0 sets no bound. Descriptors do not
// block meanwhile; where nothing can be done, it waits in poll(2).
func (c *child) converse(requests script, window int, replies listener) error {
	if err := c.setNonblock(true); err != nil {
		return err
	}
	// Trying to read is cheaper than asking first, while replies flow.
	eager := window > 0
	sent, writable, readable := 0, true, eager
	for !replies.done() {
		allowed := requests.size()
		if window > 0 {
			allowed = min(allowed, (replies.answered()+window)*requests.frame)
		}
		for writable && sent < allowed {
			n, err := unix.Write(c.toChild, requests.piece(sent, allowed))
			switch {
			case err == unix.EAGAIN:
				writable = false
			case err == unix.EINTR:
			case err != nil:
				return fmt.Errorf("write to the child: %w", err)
			default:
				sent += n
				readable = readable || eager
			}
		}
		if readable {
			n, err := unix.Read(c.fromChild, c.received)
			switch {
			case err == unix.EAGAIN:
				readable = false
			case err == unix.EINTR:
			case err != nil:
				return fmt.Errorf("read from the child: %w", err)
			case n == 0:
				return errEnded
			default:
				if err := replies.hear(c.received[:n]); err != nil {
					return err
				}
				continue // room for requests may have come up
			}
		}
		var err error
		if readable, writable, err = c.await(sent < allowed); err != nil {
			return err
		}
	}
	return nil
}

// await blocks until there is something to read or, if sending, room to write.
// A child that ended is readable.
func (c *child) await(sending bool) (readable, writable bool, err error) {
	watched := [2]unix.PollFd{{Fd: int32(c.fromChild), Events: unix.POLLIN}, {Fd: int32(c.toChild), Events: unix.POLLOUT}}
	count := 1
	if sending {
		count = 2
	}
	for {
		_, err := unix.Poll(watched[:count], -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false, false, fmt.Errorf("poll: %w", err)
		}
		// A descriptor that is not watched now is assumed to have room: trying is harmless.
		return watched[0].Revents != 0, !sending || watched[1].Revents != 0, nil
	}
}

func (c *child) setNonblock(on bool) error {
	return errors.Join(unix.SetNonblock(c.toChild, on), unix.SetNonblock(c.fromChild, on))
}

// ask sends one request with the id firstID and returns the whole frame of the
// reply, after checking it against params (nil: any result).
func (c *child) ask(request, params []byte) ([]byte, error) {
	var reply collection
	if err := c.converse(repeat(request, len(request), 1), 1, &reply); err != nil {
		return nil, err
	}
	if c.server.verbatim {
		if !bytes.Equal(reply.bytes, request) {
			return nil, fmt.Errorf("not the request: %.120q", reply.bytes)
		}
		return reply.bytes, nil
	}
	return reply.bytes, checkReply(reply.bytes[reply.header:], params)
}

// pingPong exchanges len(latencies) requests, one at a time, over blocking
// descriptors, and notes how long each took.
func (c *child) pingPong(requests, replies script, latencies []time.Duration) error {
	if err := c.setNonblock(false); err != nil {
		return err
	}
	heard := expectation{script: replies}
	for i := range latencies {
		request := requests.piece(i*requests.frame, (i+1)*requests.frame)
		begin := time.Now()
		// A blocking descriptor takes a request this small as a whole.
		if _, err := unix.Write(c.toChild, request); err != nil {
			return fmt.Errorf("write to the child: %w", err)
		}
		got := 0
		for got < replies.frame {
			n, err := unix.Read(c.fromChild, c.received[got:])
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return fmt.Errorf("read from the child: %w", err)
			}
			if n == 0 {
				return errEnded
			}
			got += n
		}
		latencies[i] = time.Since(begin)
		if err := heard.hear(c.received[:got]); err != nil {
			return err
		}
	}
	return nil
}
