package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// A host is this process as the hub of its project: one server for the editor
// that started it, if one did, and for everybody who comes to its sockets.
type host struct {
	*domain
	srv     *server.Server
	ctx     context.Context // ends everything
	end     context.CancelFunc
	sockets sync.WaitGroup

	kind   string // what the configuration calls a hub like this
	joined joined
	told   func(context.Context) // waits until who is told of tasks has been

	editorGone atomic.Bool
}

// newHost makes a host, which ends with ctx.
func newHost(ctx context.Context, s *Settings, log *logging.Log, c claim, kind string) *host {
	h := &host{domain: newDomain(s, log, c), kind: kind}
	h.ctx, h.end = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { h.endTelling(tellWithin) })
	h.displaced = h.end // an editor starts another process, which joins
	h.claimLost = h.joined.leave
	h.claimedAgain = func() {
		h.joined.end()
		_ = h.listen() // it logs what is wrong
	}
	h.srv = server.New(newRegistry(h), server.Options{
		Limits:   s.Limits,
		Logger:   log.Logger,
		Grace:    handlerGrace,
		Released: debug.FreeOSMemory,
		Trace:    traceOf(log),
	})
	return h
}

// traceOf logs the messages of connections, if that is wanted; else it is nil.
func traceOf(log *logging.Log) func(c *server.Conn, sent bool, message []byte) {
	messages := log.Messages()
	if messages == nil {
		return nil
	}
	return func(c *server.Conn, sent bool, message []byte) {
		messages(fmt.Sprintf("connection %d", c.Number()), sent, message)
	}
}

// traceExecutors is traceOf for executors, by their process ids.
func traceExecutors(log *logging.Log) func(pid int, sent bool, message []byte) {
	messages := log.Messages()
	if messages == nil {
		return nil
	}
	return func(pid int, sent bool, message []byte) {
		messages(fmt.Sprintf("executor %d", pid), sent, message)
	}
}

// joined are the sockets, and who came to them.
type joined struct {
	mu        sync.Mutex // guards the fields below
	cancel    context.CancelFunc
	listeners []net.Listener
}

// sockets are the paths.
func (j *joined) sockets() (paths []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.listeners {
		paths = append(paths, l.Addr().String())
	}
	return paths
}

// begin is a context that ends with ctx or end.
func (j *joined) begin(ctx context.Context) context.Context {
	j.mu.Lock()
	defer j.mu.Unlock()
	ctx, j.cancel = context.WithCancel(ctx)
	return ctx
}

func (j *joined) add(l net.Listener) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.listeners = append(j.listeners, l)
}

// leave closes the sockets: who comes is to find whoever is the hub. Who has
// come stays, for there may be a hub here again in a moment.
func (j *joined) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.listeners {
		l.Close()
	}
	j.listeners = nil
}

// end ends the connections too: at the next one who comes is restored what it
// had.
func (j *joined) end() {
	j.leave()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancel != nil {
		j.cancel()
	}
}

// newRegistry registers every method.
func newRegistry(h *host) *server.Registry {
	reg := server.NewRegistry()
	workspaces := handlers.NewWorkspaces()
	handlers.RegisterCore(reg, handlers.Core{
		Version: h.settings.Version, LogLevel: h.log.Level, Now: time.Now, Issues: h.Issues, Trust: h.trustWorkspace,
		Busy: h.busy, Drain: h.drain, Others: func() bool { return h.srv.ConnCount() > 1 }, Workspaces: workspaces,
	})
	h.told = handlers.RegisterDomain(reg, handlers.Domain{
		Hub: h.Hub, Version: h.settings.Version, Now: time.Now, Stop: h.stop, TakeHistory: h.takeHistory, Clients: h.srvCount, Logger: h.log.Logger, Workspaces: workspaces,
		Kind: h.kind, Sockets: h.joined.sockets,
	})
	if h.settings.TestMethods {
		handlers.RegisterTestMethods(reg)
	}
	return reg
}

func (h *host) srvCount() int { return h.srv.ConnCount() }

// othersCount is how many are connected beside the editor of this process,
// which may have gone.
func (h *host) othersCount() int {
	n := h.srv.ConnCount()
	if !h.editorGone.Load() {
		n--
	}
	return max(n, 0)
}

// stop ends the host: at once with force, else when what runs has ended, or
// DrainWithin is over.
func (h *host) stop(force bool) {
	go func() {
		if !force {
			ctx, cancel := context.WithTimeout(context.Background(), DrainWithin)
			defer cancel()
			h.drain(ctx)
		}
		// Who is attached does not take over at once: it was meant to stop.
		if c := h.claimed(); c.lock != nil {
			if err := c.project.MarkStopped(); err != nil {
				h.log.Debug("the stop could not be noted", "err", err)
			}
		}
		h.endTelling(tellStopWithin)
	}()
}

// How long the end may take to tell who is told of tasks what it does to them.
const (
	tellWithin     = 400 * time.Millisecond // after a signal: of the 2 s
	tellStopWithin = 2 * time.Second        // after daemon.stop
)

// endTelling ends the host when who is told of tasks has been told that they
// are interrupted.
func (h *host) endTelling(within time.Duration) {
	defer h.end()
	if hub := h.ready(); hub != nil && h.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if hub.Abandon(ctx) == nil {
			h.told(ctx)
		}
	}
}

// listen opens the sockets: the project's own, and those of --listen. What
// cannot be opened is logged; an editor on pipes does without. The error is
// that of the project's own.
func (h *host) listen() error {
	c := h.claimed()
	if c.lock == nil {
		return nil
	}
	if _, err := socket.RaiseFileLimit(); err != nil {
		h.log.Debug("the limit of open files stays as it is", "err", err)
	}
	ctx := h.joined.begin(h.ctx)
	// First: who is answered on the project's own finds them open.
	for _, path := range h.settings.Listen {
		if err := h.listenAt(ctx, path); err != nil {
			h.log.Error("a socket of --listen cannot be opened", "err", err)
		}
	}
	path, indirect, err := socket.Path(c.project.StateDir)
	if err == nil {
		err = h.listenAt(ctx, path)
	}
	if err == nil && indirect {
		err = socket.Announce(c.project.StateDir, path)
	}
	if err != nil {
		h.log.Warn("the project's socket cannot be opened; other editors cannot join", "err", err)
	}
	return err
}

func (h *host) listenAt(ctx context.Context, path string) error {
	l, err := socket.Options{Logger: h.log.Logger}.Listen(ctx, path)
	if err != nil {
		return err
	}
	h.joined.add(l)
	h.log.Info("listening", "socket", path)
	h.sockets.Go(func() {
		if err := h.srv.ServeListener(ctx, socket.Senders(l)); err != nil && !errors.Is(err, net.ErrClosed) {
			h.log.Error("a socket failed", "socket", path, "err", err)
		}
	})
	return nil
}

// listenAfter is when the sockets are opened: the first reply comes first, and
// who wants to join tries again.
const listenAfter = 10 * time.Millisecond

// begin opens the sockets and the hub, beside whatever else is done.
func (h *host) begin() {
	h.sockets.Go(func() {
		select {
		case <-time.After(listenAfter):
			_ = h.listen()
		case <-h.ctx.Done():
			return
		}
		select {
		case <-time.After(openAfter - listenAfter):
			h.open()
		case <-h.ctx.Done():
		}
	})
}

// linger waits, when the editor has gone, until nobody is connected any more,
// or the host ends.
func (h *host) linger() {
	h.editorGone.Store(true)
	if h.srv.ConnCount() == 0 {
		return
	}
	h.log.Info("the editor has gone; others are still here", "connections", h.srv.ConnCount())
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for h.srv.ConnCount() > 0 {
		select {
		case <-look.C:
		case <-h.ctx.Done():
			return
		}
	}
}

// close ends the host, and everything that it runs.
func (h *host) close() {
	h.end()
	closing, cancel := context.WithTimeout(context.Background(), domainGrace)
	defer cancel()
	_, _ = h.openNoMore(closing) // which may open sockets
	ended := make(chan struct{})
	go func() {
		h.sockets.Wait()
		close(ended)
	}()
	h.domain.close(closing)
	select {
	case <-ended:
	case <-closing.Done():
	}
}

// serveEditor serves an editor on its pipes until it goes, or ctx or the host
// ends.
func (h *host) serveEditor(ctx context.Context, t server.Transport) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	if err := h.srv.Serve(ctx, t, frame.LSP); err != nil {
		h.log.Error("the connection failed", "err", err)
	}
}
