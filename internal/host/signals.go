package host

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// untilSignal returns a context that ends with parent, or at the first signal that ends a
// process. A second signal ends the process at once. stop restores the signals.
func untilSignal(parent context.Context, log *logging.Log) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, stopped, over := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		defer close(over)
		for {
			select {
			case sig := <-signals:
				if ctx.Err() != nil {
					os.Exit(0)
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
