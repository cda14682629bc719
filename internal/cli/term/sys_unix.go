//go:build unix

package term

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Modes are the modes that a terminal had before this process changed them.
type Modes struct{ were unix.Termios }

// ReadModes returns the modes of a terminal; nil if they are unknown.
func ReadModes(terminal *os.File) *Modes {
	were, err := unix.IoctlGetTermios(int(terminal.Fd()), getModes)
	if err != nil {
		return nil
	}
	return &Modes{*were}
}

// EachKey makes a terminal deliver each key at once and unchanged, without echo. C-c and C-z keep
// their meaning. A read returns nothing if nothing was typed. It returns false if that failed.
func (m *Modes) EachKey(terminal *os.File) bool {
	return m.set(terminal, func(modes *unix.Termios) {
		modes.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
		modes.Iflag &^= unix.ICRNL | unix.IXON
		modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 0, 0
	})
}

// HideKeys turns off a terminal's echo, unless this process is in the background, where a shell
// shows what the user types. It returns false if nothing was changed.
func (m *Modes) HideKeys(terminal *os.File) bool {
	return InForeground(terminal) && m.set(terminal, func(modes *unix.Termios) { modes.Lflag &^= unix.ECHO })
}

// InForeground reports whether this process, and not a shell, has the keys of its terminal.
func InForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// HideLine turns off a terminal's echo except for newlines. It returns false if that failed.
func (m *Modes) HideLine(terminal *os.File) bool {
	return m.set(terminal, func(modes *unix.Termios) {
		modes.Lflag &^= unix.ECHO
		modes.Lflag |= unix.ICANON | unix.ECHONL
	})
}

// Restore gives a terminal its modes back.
func (m *Modes) Restore(terminal *os.File) { m.set(terminal, func(*unix.Termios) {}) }

func (m *Modes) set(terminal *os.File, change func(modes *unix.Termios)) bool {
	now := m.were
	change(&now)
	return unix.IoctlSetTermios(int(terminal.Fd()), setModes, &now) == nil
}

// Continued reports when this process continues after it was stopped (C-z, then fg). stop ends
// that.
func Continued() (again <-chan os.Signal, stop func()) { return receive(syscall.SIGCONT) }

// Resized reports when the size of the terminal changes. stop ends that.
func Resized() (changes <-chan os.Signal, stop func()) { return receive(syscall.SIGWINCH) }

// Stopped reports C-z, which then does not stop this process: call [Stop] when the terminal is
// ready for that. stop ends that.
func Stopped() (stops <-chan os.Signal, stop func()) { return receive(syscall.SIGTSTP) }

// Stop stops this process until it is continued.
func Stop() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }

func receive(sig os.Signal) (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, sig)
	return signals, func() { signal.Stop(signals) }
}

// watchReader calls gone when the reader of a pipe or socket is gone. stop ends that and waits
// until the watcher has ended.
func watchReader(file *os.File, gone func()) (stop func()) {
	ended, end, err := os.Pipe()
	if err != nil { // the next write returns the error
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			fds := []unix.PollFd{{Fd: int32(file.Fd())}, {Fd: int32(ended.Fd()), Events: unix.POLLIN}}
			_, err := unix.Poll(fds, -1)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err == nil && fds[1].Revents == 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
				gone()
			}
			return
		}
	}()
	return func() {
		end.Close()
		<-done
		ended.Close()
	}
}

// WaitReadable waits until a file has data or has ended, and reports whether that happened in time.
func WaitReadable(f *os.File, within time.Duration) bool {
	deadline := time.Now().Add(within)
	for {
		left := max(0, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, int((left+time.Millisecond-1)/time.Millisecond))
		switch {
		case err == nil:
			return n > 0
		case !errors.Is(err, unix.EINTR):
			return true // reading returns the error
		}
	}
}

// stopWithin is how long Stop of an [Input] waits for its goroutine. That ends at once, unless C-c
// has discarded the line that it is about to read.
const stopWithin = time.Second

// A waker ends the wait for input.
type waker struct{ waits, wakes *os.File }

func newWaker() (waker, error) {
	waits, wakes, err := os.Pipe()
	return waker{waits, wakes}, err
}

func (w waker) wake() { w.wakes.Close() }

func (w waker) close() { w.waits.Close() }

// read waits for input of a terminal and reads it. ok is false if wake was called first. It
// selects, because macOS cannot poll /dev/tty.
func (w waker) read(terminal *os.File, into []byte) (n int, ok bool, err error) {
	in, end := int(terminal.Fd()), int(w.waits.Fd())
	for {
		var ready unix.FdSet
		ready.Set(in)
		ready.Set(end)
		switch _, err := unix.Select(max(in, end)+1, &ready, nil, nil, nil); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, true, err
		case ready.IsSet(end):
			return 0, false, nil
		}
		n, err := unix.Read(in, into)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, true, err
		case n > 0:
			return n, true, nil
		case !deliversKeys(terminal):
			return 0, true, io.EOF
		} // otherwise C-c has discarded the key
	}
}

// deliversKeys reports whether a terminal that is not closed delivers each key.
func deliversKeys(terminal *os.File) bool {
	modes, err := unix.IoctlGetTermios(int(terminal.Fd()), getModes)
	return err == nil && modes.Lflag&unix.ICANON == 0
}

// typedAlready reads what was typed on a terminal that delivers each key.
func typedAlready(terminal *os.File) (typed []byte) {
	if !deliversKeys(terminal) {
		return nil
	}
	for into := make([]byte, chunk); ; {
		if !WaitReadable(terminal, 0) {
			return typed
		}
		n, err := unix.Read(int(terminal.Fd()), into)
		if n <= 0 || err != nil {
			return typed
		}
		typed = append(typed, into[:n]...)
	}
}
