//go:build unix

package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/server"
)

// fdPair is a Transport on two blocking descriptors. It implements deadlines with poll(2), which
// it calls only if there is a deadline. So it never polls for an idle connection, nor before a
// write that fits into the pipe.
type fdPair struct {
	in, out int
	mode    writeMode
	room    pipeRoom
	read    deadline
	write   deadline
	closed  atomic.Bool
	closing closing // wakes calls that wait for a descriptor
}

// writeMode is the way to write without blocking longer than allowed.
type writeMode uint8

const (
	writeWhole  writeMode = iota // a file: one plain write
	writeChunks                  // poll, then no more than what surely fits
	writeNoWait                  // Linux can write the part that fits, and report it
)

func take() (server.Transport, error) {
	in, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("keep standard input: %w", err)
	}
	out, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("keep standard output: %w", err)
	}
	if err := closeOutput(); err != nil {
		return nil, err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = dup2(null, 0)
		unix.Close(null)
	}
	if err != nil {
		return nil, fmt.Errorf("point descriptor 0 at the null device: %w", err)
	}
	return newFDPair(in, out)
}

func closeOutput() error {
	if err := dup2(2, 1); err != nil {
		return fmt.Errorf("point descriptor 1 at standard error: %w", err)
	}
	return nil
}

func newFDPair(in, out int) (*fdPair, error) {
	growPipe(in)
	growPipe(out)
	closing, err := newClosing()
	if err != nil {
		return nil, err
	}
	p := &fdPair{in: in, out: out, mode: writeModeOf(out), closing: closing}
	if !sameDescription(out, 2) { // else other writers share it
		p.room = pipeRoomOf(out)
	}
	return p, nil
}

func (p *fdPair) Read(b []byte) (int, error) {
	if left, has := p.read.left(); has {
		if err := p.wait(p.in, unix.POLLIN, max(left, 0)); err != nil {
			return 0, err
		}
	}
	for {
		n, err := unix.Read(p.in, b)
		switch {
		case n > 0:
			return n, nil
		case err == unix.EINTR:
		case err == unix.EAGAIN: // the parent process left it non-blocking
			if err := p.waitIn(); err != nil {
				return 0, err
			}
		case err == nil, err == unix.EIO: // EIO: a terminal hung up
			return 0, io.EOF
		default:
			return 0, os.NewSyscallError("read", err)
		}
	}
}

func (p *fdPair) waitIn() error {
	left, has := p.read.left()
	left = max(left, 0)
	if !has {
		left = -1
	}
	return p.wait(p.in, unix.POLLIN, left)
}

func (p *fdPair) Write(b []byte) (int, error) {
	left, has := p.write.left()
	left = max(left, 0)
	if !has {
		left = -1
	}
	return p.WriteWithin(b, nil, left)
}

// WriteWithin is the method of that name of a [server.Transport].
func (p *fdPair) WriteWithin(a, b []byte, d time.Duration) (int, error) {
	total := 0
	for len(a)+len(b) > 0 {
		if p.closed.Load() {
			return total, os.ErrClosed
		}
		n, err := p.writeSome(a, b)
		if n > 0 {
			total += n
			fromA := min(n, len(a))
			a, b = a[fromA:], b[n-fromA:]
			continue
		}
		switch err {
		case nil, unix.EINTR:
		case unix.EAGAIN:
			if err := p.wait(p.out, unix.POLLOUT, d); err != nil {
				return total, err
			}
		default:
			if p.closed.Load() { // Close shut the socket down just before the write
				return total, os.ErrClosed
			}
			return total, os.NewSyscallError("write", err)
		}
	}
	return total, nil
}

// writeSome does one write, which does not block; EAGAIN means that nothing fits now.
func (p *fdPair) writeSome(a, b []byte) (int, error) {
	if len(b) == 0 && len(a) <= surelyFits && p.room.take(p.out) {
		return unix.Write(p.out, a)
	}
	p.room.forget()
	if p.mode == writeNoWait {
		n, err := writeNow(p.out, a, b)
		if err != unix.EOPNOTSUPP {
			return n, err
		}
		p.mode = writeChunks // an older kernel
	}
	if len(a) == 0 {
		a = b
	}
	if p.mode == writeChunks {
		if p.wait(p.out, unix.POLLOUT, 0) != nil {
			return 0, unix.EAGAIN
		}
		a = a[:min(len(a), surelyFits)]
	}
	return unix.Write(p.out, a)
}

// wait polls one descriptor for d, or without limit if d is negative, until it is ready or p is
// closed. An error or a hang-up counts as ready: the next call returns it.
func (p *fdPair) wait(fd int, events int16, d time.Duration) error {
	until := time.Now().Add(d)
	for {
		left := -1 // milliseconds
		if d >= 0 {
			left = int((max(0, time.Until(until)) + time.Millisecond - 1) / time.Millisecond)
		}
		fds := [2]unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(p.closing.ended), Events: unix.POLLIN}}
		n, err := unix.Poll(fds[:], left)
		switch {
		case n > 0 && fds[0].Revents != 0:
			return nil
		case n > 0:
			return os.ErrClosed
		case err == unix.EINTR:
		case err != nil:
			return os.NewSyscallError("poll", err)
		case left == 0 || d >= 0 && time.Now().After(until):
			return os.ErrDeadlineExceeded
		}
	}
}

// closing is a pipe whose writing end is closed to wake the goroutines that poll the other end.
// The other end stays open, so that its number is not reused while a goroutine still polls it.
type closing struct{ ended, open int }

func newClosing() (closing, error) {
	syscall.ForkLock.RLock() // so that a child that is starting inherits neither end
	defer syscall.ForkLock.RUnlock()
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		return closing{}, os.NewSyscallError("pipe", err)
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return closing{fds[0], fds[1]}, nil
}

func (p *fdPair) SetReadDeadline(t time.Time) error { p.read.set(t); return nil }

func (p *fdPair) SetWriteDeadline(t time.Time) error { p.write.set(t); return nil }

// Close ends writes that wait, and releases both ends, so that the peer sees it even if the
// process lives on: a hub may outlive its editor. A Read may be using a descriptor, so its
// number must not be reused: from now on it is the null device. A Read that waits holds its end
// until it returns.
func (p *fdPair) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	unix.Close(p.closing.open)
	if !sameDescription(p.out, 2) {
		_ = unix.Shutdown(p.out, unix.SHUT_RDWR) // for a socket; the Read may hold on to it
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer unix.Close(null)
	return errors.Join(replace(p.in, null), replace(p.out, null))
}

// AwaitHangUp waits until the peer has closed its end of the input, also while unread bytes are
// left, and returns true. It returns false after Close.
func (p *fdPair) AwaitHangUp() bool { return p.wait(p.in, hangUp, -1) == nil }

// OutlivesClose reports that only the peer can end a Read.
func (p *fdPair) OutlivesClose() bool { return true }

// replace makes fd, which exec closes, a duplicate of with.
func replace(fd, with int) error {
	if err := dup2(with, fd); err != nil {
		return os.NewSyscallError("dup2", err)
	}
	unix.CloseOnExec(fd)
	return nil
}

// sameDescription reports whether a and b are the same pipe, socket or file.
func sameDescription(a, b int) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a, &x) == nil && unix.Fstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}
