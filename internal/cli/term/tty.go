package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// Terminal input, sizes and signals.

// Yes asks a question on the terminal that is standard input, and reads the answer from in.
// Any other answer than yes means no.
func Yes(in io.Reader, out io.Writer, question string) (bool, error) {
	DiscardTyped(os.Stdin)
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("reading the answer: %w", err)
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", nil
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(file any) bool {
	f := fileOf(file)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// fileOf returns the file behind a reader or writer: itself, or the result of its method File;
// nil if there is none.
func fileOf(out any) *os.File {
	switch out := out.(type) {
	case *os.File:
		return out
	case interface{ File() *os.File }:
		return out.File()
	}
	return nil
}

// Size returns the size of the terminal that out writes to. ok is false if out is no terminal,
// or its size is unknown.
func Size(out io.Writer) (columns, rows int, ok bool) {
	f := fileOf(out)
	if f == nil {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	return columns, rows, err == nil && columns > 0 && rows > 0
}

// IsDumb reports whether the terminal can neither move its cursor nor show colours, like those
// of some editors.
func IsDumb() bool { return os.Getenv("TERM") == "dumb" }

// Draws reports whether out is a terminal with cursor control and a known size.
func Draws(out io.Writer) bool {
	if term := os.Getenv("TERM"); term == "dumb" || term == "" && runtime.GOOS != "windows" || !IsTerminal(out) {
		return false
	}
	_, _, ok := Size(out)
	return ok
}

// C-c and other signals that end a command.

// Status is the exit status after C-c, as in a shell.
const Status = 130

// ErrInterrupted says that a signal arrived first.
var ErrInterrupted = errors.New("interrupted")

// notify sends the signals that ask a command to end to a channel.
func notify(signals chan<- os.Signal) {
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// endAtOnce returns a function that ends this process with the terminal as it is now: the program may have
// changed it by then, and waits for something else.
func endAtOnce() func() {
	for _, f := range []*os.File{os.Stdin, os.Stderr} {
		modes := ReadModes(f)
		if modes == nil || !IsTerminal(f) {
			continue
		}
		return func() {
			if InForeground(f) { // a shell has its own modes
				modes.Restore(f)
				if Draws(f) {
					fmt.Fprint(f, PasteOff)
				}
			}
			os.Exit(Status)
		}
	}
	return func() { os.Exit(Status) }
}

// UntilInterrupted returns a context that ends with the first signal. A second signal ends the
// process at once. stop restores the default handling.
func UntilInterrupted(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, stopped, end := make(chan os.Signal, 2), make(chan struct{}), endAtOnce()
	var taking sync.WaitGroup
	notify(signals)
	taking.Go(func() {
		select {
		case <-signals:
			cancel()
		case <-stopped:
			return
		}
		select {
		case <-signals:
			end()
		case <-stopped:
		}
	})
	return ctx, func() { signal.Stop(signals); close(stopped); taking.Wait(); cancel() }
}

// Interrupts returns a channel with the signals that ask a command to end. If a signal arrives
// before the command has received the previous one, the process ends at once. stop restores
// the default handling.
func Interrupts() (taken <-chan os.Signal, stop func()) {
	signals, stopped, next, end := make(chan os.Signal, 2), make(chan struct{}), make(chan os.Signal, 1), endAtOnce()
	var taking sync.WaitGroup
	notify(signals)
	taking.Go(func() {
		for {
			select {
			case sig := <-signals:
				select {
				case next <- sig:
				default:
					end()
				}
			case <-stopped:
				return
			}
		}
	})
	return next, func() { signal.Stop(signals); close(stopped); taking.Wait() }
}

// OrInterrupted runs do. A signal calls cancel, and the error is [ErrInterrupted] then.
func OrInterrupted(signals <-chan os.Signal, cancel func(), do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-signals:
		cancel()
		if err := <-done; err != nil {
			return ErrInterrupted
		}
		return nil
	}
}

// WhileRead returns a context that ends, with the cause [syscall.EPIPE], when the reader of
// out is gone, as in `duet-rpc events | head -1`. A command that waits for events would
// otherwise notice only at its next output. It works for pipes and sockets, if the system
// supports it. The caller must call stop.
func WhileRead(parent context.Context, out io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	end := func() { cancel(context.Canceled) }
	file, ok := out.(*os.File)
	if !ok {
		return ctx, end
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return ctx, end
	}
	stopWatching := watchReader(file, func() { cancel(syscall.EPIPE) })
	return ctx, func() { stopWatching(); end() }
}
