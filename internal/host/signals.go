package host

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// untilSignal is a context that ends with parent, or at the first signal that
// ends a process; a second one ends the process at once. A SIGHUP for which goOn,
// if it is not nil, reports true does not count. stop gives the signals back.
func untilSignal(parent context.Context, log *logging.Log, goOn func() bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, stopped, over := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer close(over)
		for {
			select {
			case sig := <-signals:
				switch {
				case ctx.Err() != nil:
					os.Exit(0)
				case sig == syscall.SIGHUP && goOn != nil && goOn():
					log.Info("the editor has hung up; others are still here")
					continue
				}
				log.Info("ending", "signal", sig.String())
				time.AfterFunc(EndWithin, func() { os.Exit(0) })
				cancel()
			case <-stopped:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		<-over
		cancel()
	}
}
