package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// ServeThrough serves the editor that started this process as [Serve] does, but in
// another protocol: serve speaks it with the editor, until that goes or its context ends,
// and with the project's hub. The client of the hub never loses its connection: it has a
// process's way to the hub, which finds the next one when that has gone.
//
// The hub is a daemon, so that what runs outlives the editor, unless the configuration
// says otherwise or none can be started. Where it is this process, what runs may end
// before the process does. The log is closed at the end.
func ServeThrough(ctx context.Context, s *hubprocess.Settings, log *logging.Log, serve func(ctx context.Context, editor server.Transport, hub *client.Client, log *logging.Log) error) error {
	defer log.Close(logGrace)
	editor, err := stdio.Take()
	if err != nil {
		return fmt.Errorf("cannot serve on standard input and output: %w", err)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // as Serve does
	log.Info("started", "version", s.Version, "pid", os.Getpid(), "level", s.LogLevel.String(), "sink", log.Sink)
	ctx, stop := untilSignal(ctx, log, nil)
	defer stop()
	i, err := joinInside(ctx, s, log)
	if err != nil {
		return err
	}
	err = serve(ctx, editor, i.hub, log)
	i.close(ctx)
	log.Info("stopped")
	return err
}

// An inside is an editor's process whose editor is a part of this program.
type inside struct {
	hub     *client.Client
	process *editorProcess
	ended   chan struct{}
	stop    context.CancelFunc
}

func joinInside(ctx context.Context, s *hubprocess.Settings, log *logging.Log) (*inside, error) {
	e := newEditorProcess(s, log)
	e.daemon = true
	near, far := server.Pipe()
	running, stop := context.WithCancel(ctx)
	i := &inside{process: e, ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(i.ended)
		_ = e.run(running, far) // it has logged why
	}()
	var err error
	i.hub, err = client.Dial(ctx, client.OverTransport(near, frame.LSP), client.WithLogger(slog.New(slog.DiscardHandler)), client.WithResend(relay.KindHubLost))
	if err != nil {
		stop()
		<-i.ended
	}
	return i, err
}

// close ends it when nothing runs any more in a hub that is in this process, or ctx
// ends.
func (i *inside) close(ctx context.Context) {
	if h := i.process.hub.Load(); h != nil {
		for h.busy() {
			select {
			case <-h.idle:
				continue
			case <-ctx.Done():
			case <-h.life.ctx.Done():
			}
			break
		}
	}
	i.hub.Close()
	<-i.ended // others whom a hub in this process serves are waited for
	i.stop()
}
