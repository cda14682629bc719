// Package interrupt is what C-c and the other signals that ask a command to end
// do to it.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Status is the exit status after C-c, as a shell has it.
const Status = 130

// Err says that a signal came first.
var Err = errors.New("interrupted")

// notify sends the signals that ask a command to end to a channel.
func notify(signals chan<- os.Signal) {
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// Until is a context that the first signal ends. A second one ends
// the process at once, whatever it waits for. stop gives the signals back.
func Until(parent context.Context) (ctx context.Context, stop func()) {
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

// Signals are the signals that ask a command to end which looks at them
// itself: one that comes while the one before has not been looked at ends the
// process at once. stop gives the signals back.
func Signals() (taken <-chan os.Signal, stop func()) {
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

// Or does something that a signal ends by calling cancel. Its error is [Err] then.
func Or(signals <-chan os.Signal, cancel func(), do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-signals:
		cancel()
		if err := <-done; err != nil {
			return Err
		}
		return nil
	}
}
