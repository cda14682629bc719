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

// The terminal that started the command.

// Yes asks a question on the terminal that is standard input, and reads the answer from
// in. No answer is no.
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

// IsTerminal reports whether what is written to out, or read from it, is a terminal.
func IsTerminal(file any) bool {
	f := fileOf(file)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// fileOf is the file to which is written what is written to out, by itself or by what
// says so with a method File; nil: there is none.
func fileOf(out any) *os.File {
	switch out := out.(type) {
	case *os.File:
		return out
	case interface{ File() *os.File }:
		return out.File()
	}
	return nil
}

// Size is how many columns and rows the terminal has to which out is written;
// ok is false if it is none, or does not say.
func Size(out io.Writer) (columns, rows int, ok bool) {
	f := fileOf(out)
	if f == nil {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	return columns, rows, err == nil && columns > 0 && rows > 0
}

// IsDumb reports whether the terminal can neither move its cursor nor show colours,
// as those of some editors.
func IsDumb() bool { return os.Getenv("TERM") == "dumb" }

// Draws reports whether out is a terminal that can move its cursor, and knows how
// large it is.
func Draws(out io.Writer) bool {
	if term := os.Getenv("TERM"); term == "dumb" || term == "" && runtime.GOOS != "windows" || !IsTerminal(out) {
		return false
	}
	_, _, ok := Size(out)
	return ok
}

// C-c and other signals that end a command.

// Status is the exit status after C-c, as a shell has it.
const Status = 130

// ErrInterrupted says that a signal came first.
var ErrInterrupted = errors.New("interrupted")

// notify sends the signals that ask a command to end to a channel.
func notify(signals chan<- os.Signal) {
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// UntilInterrupted is a context that the first signal ends. A second one ends
// the process at once, whatever it waits for. stop gives the signals back.
func UntilInterrupted(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, stopped := make(chan os.Signal, 2), make(chan struct{})
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
			os.Exit(Status)
		case <-stopped:
		}
	})
	return ctx, func() { signal.Stop(signals); close(stopped); taking.Wait(); cancel() }
}

// Interrupts are the signals that ask a command to end which looks at them
// itself: one that comes while the one before has not been looked at ends the
// process at once. stop gives the signals back.
func Interrupts() (taken <-chan os.Signal, stop func()) {
	signals, stopped, next := make(chan os.Signal, 2), make(chan struct{}), make(chan os.Signal, 1)
	var taking sync.WaitGroup
	notify(signals)
	taking.Go(func() {
		for {
			select {
			case sig := <-signals:
				select {
				case next <- sig:
				default:
					os.Exit(Status)
				}
			case <-stopped:
				return
			}
		}
	})
	return next, func() { signal.Stop(signals); close(stopped); taking.Wait() }
}

// OrInterrupted does something that a signal ends by calling cancel. Its error is [ErrInterrupted] then.
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

// WhileRead is a context that ends when nobody reads any more what a command prints,
// as in `duet-rpc events | head -1`, with [syscall.EPIPE] as its cause: a command that
// waits for something to print would know only with the next it prints. It is told of
// pipes and sockets alone, where the system can tell. stop has to be called.
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
