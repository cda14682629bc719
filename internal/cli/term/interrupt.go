package term

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// This file is what C-c and the other signals that ask a command to end
// do to it.

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
