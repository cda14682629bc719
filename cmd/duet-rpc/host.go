package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
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

	editorGone atomic.Bool
}

// newHost makes a host, which ends with ctx.
func newHost(ctx context.Context, s *settings, log *logging.Log, c claim) *host {
	h := &host{domain: newDomain(s, log, c)}
	h.ctx, h.end = context.WithCancel(ctx)
	h.claimedAgain = func() { _ = h.listen() } // it logs what is wrong
	h.srv = server.New(newRegistry(h), server.Options{
		Limits:   s.limits,
		Logger:   log.Logger,
		Grace:    handlerGrace,
		Released: debug.FreeOSMemory,
	})
	return h
}

// newRegistry registers every method.
func newRegistry(h *host) *server.Registry {
	reg := server.NewRegistry()
	workspaces := handlers.NewWorkspaces()
	handlers.RegisterCore(reg, handlers.Core{
		Version: buildVersion(), LogLevel: h.log.Level, Now: time.Now, Issues: h.Issues, Trust: h.trustWorkspace,
		Busy: h.busy, Drain: h.drain, Others: func() bool { return h.srv.ConnCount() > 1 }, Workspaces: workspaces,
	})
	handlers.RegisterDomain(reg, handlers.Domain{
		Hub: h.Hub, Version: buildVersion(), Now: time.Now, Stop: h.stop, Clients: h.srvCount, Logger: h.log.Logger, Workspaces: workspaces,
	})
	if h.settings.testMethods {
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
// drainFor is over.
func (h *host) stop(force bool) {
	go func() {
		if !force {
			ctx, cancel := context.WithTimeout(context.Background(), drainFor)
			defer cancel()
			h.drain(ctx)
		}
		// Who is attached does not take over at once: it was meant to stop.
		if c := h.claimed(); c.lock != nil {
			if err := os.WriteFile(stoppedMark(c.project), nil, 0o600); err != nil {
				h.log.Debug("the stop could not be noted", "err", err)
			}
		}
		h.end()
	}()
}

// stoppedMark is the file that says that the hub was stopped on purpose. It
// goes when there is a hub again.
func stoppedMark(p project.Project) string { return filepath.Join(p.StateDir, "stopped") }

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
	path, indirect, err := socket.Path(c.project.StateDir)
	if err == nil {
		err = h.listenAt(path)
	}
	if err == nil && indirect {
		err = socket.Announce(c.project.StateDir, path)
	}
	if err != nil {
		h.log.Warn("the project's socket cannot be opened; other editors cannot join", "err", err)
	}
	for _, path := range h.settings.listen {
		if err := h.listenAt(path); err != nil {
			h.log.Error("a socket of --listen cannot be opened", "err", err)
		}
	}
	return err
}

func (h *host) listenAt(path string) error {
	l, err := socket.Options{Logger: h.log.Logger}.Listen(h.ctx, path)
	if err != nil {
		return err
	}
	h.log.Info("listening", "socket", path)
	h.sockets.Go(func() {
		if err := h.srv.ServeListener(h.ctx, socket.Senders(l)); err != nil {
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
	h.openNoMore() // which may open sockets
	closing, cancel := context.WithTimeout(context.Background(), domainGrace)
	defer cancel()
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
