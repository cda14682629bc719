package host

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/editorfiles"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

// A host is this process as the hub of its project: one server for the editor
// that started it, if one did, and for everybody who comes to its sockets.
type host struct {
	settings *hubprocess.Settings
	log      *logging.Log
	kind     string        // what the configuration calls a hub like this
	problem  string        // that this process is the hub, though it should not be; or ""
	trouble  func() string // what else health is to tell; may be nil

	editorFiles editorfiles.Readers

	claim   *claim
	srv     *server.Server
	sockets sockets
	linger  linger
	life    *life[*openHub]
	idle    chan struct{} // has one in it when no agent is at work any more

	ending   func()                // is called when a connection begins to end; may be nil
	notified func(context.Context) // waits until subscribers know what has happened
	serving  sync.WaitGroup        // the life, and connections and sockets
}

// begin begins the life of the hub. A signal ends ctx; with now the hub is opened
// at once.
func (h *host) begin(ctx context.Context, now bool) {
	if now {
		h.life.attempts.want()
	}
	h.serving.Go(func() { h.life.run(ctx) })
}

// close ends the host, and everything that it runs.
func (h *host) close() {
	h.life.end()
	closing, cancel := context.WithTimeout(context.Background(), hubGrace)
	defer cancel()
	select {
	case <-h.life.over:
	case <-closing.Done():
		if _, _, over := h.life.attempts.result(); !over {
			h.log.Warn("the hub was still being opened")
			return // and the claim ends with the process: it may be about to use the database
		}
		<-h.life.over
	}
	ended := make(chan struct{})
	go func() { // until the connections have ended, or the process has
		h.serving.Wait()
		close(ended)
	}()
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
	defer context.AfterFunc(h.life.ctx, cancel)()
	if err := h.srv.Serve(ctx, t, frame.LSP); err != nil {
		h.log.Error("the connection failed", "err", err)
	}
}

// pipe is a connection to the host inside the process; served is closed when the
// host's side of it has ended, and counts no more.
func (h *host) pipe() (near server.Transport, served <-chan struct{}) {
	near, far := server.Pipe()
	ended := make(chan struct{})
	h.serving.Go(func() {
		defer close(ended)
		h.serveEditor(h.life.ctx, far)
	})
	return near, ended
}

// stayForOthers returns when the editor has gone and nobody is connected any
// more, or the host has ended.
func (h *host) stayForOthers() {
	if h.linger.editorGone() {
		h.stays()
		h.log.Info("the editor has gone; others are still here", "connections", h.connections())
	}
	<-h.life.ctx.Done()
}

// Hub waits for the hub. Its error is a *domain.Error of KindUnavailable.
func (h *host) Hub(ctx context.Context) (*hub.Hub, error) {
	open, err := h.life.attempts.get(ctx)
	if err != nil {
		return nil, err
	}
	return open.hub, nil
}

// nextHub waits for another hub than one that was lost. Its error is that of ctx.
func (h *host) nextHub(ctx context.Context, lost *hub.Hub) (*hub.Hub, error) {
	open, err := h.life.attempts.next(ctx, func(open *openHub) bool { return open.hub == lost })
	if err != nil {
		return nil, err
	}
	return open.hub, nil
}

// ready is the hub, or nil where there is none, or none yet.
func (h *host) ready() *hub.Hub {
	if open, ok := h.life.attempts.ready(); ok {
		return open.hub
	}
	return nil
}

// busy reports whether agents are at work.
func (h *host) busy() bool {
	ready := h.ready()
	return ready != nil && ready.Busy()
}

// pause waits until no agent is at work, as long as ctx lasts, and lets no other begin unless
// the process stays.
func (h *host) pause(ctx context.Context) {
	if ready := h.ready(); ready != nil {
		ready.Pause(ctx)
	}
}

// staysWithout reports whether the process goes on when one of the connections ends: a daemon
// does, and a process that serves others.
func (h *host) staysWithout() bool { return h.kind == config.HubDaemon || h.connections() > 1 }

// connectionEnded notes that a connection has ended.
func (h *host) connectionEnded() {
	if h.linger.connectionEnded(); h.kind == config.HubDaemon || h.linger.others() > 0 {
		h.stays()
	}
}

// stays lets work begin again that a client stopped with its shutdown: the process serves
// others.
func (h *host) stays() {
	if ready := h.ready(); ready != nil {
		ready.Resume()
	}
}

func (h *host) connections() int { return h.srv.ConnCount() }

// issues lists what is wrong, without waiting.
func (h *host) issues() (issues []string) {
	if h.trouble != nil {
		if why := h.trouble(); why != "" {
			issues = append(issues, why)
		}
	}
	if h.problem != "" {
		p, _ := h.claim.of()
		issues = append(issues, p.ShortenPaths(h.problem))
	}
	switch open, err, over := h.life.attempts.result(); {
	case !over:
		return issues
	case err != nil:
		return append(issues, err.Error())
	default:
		return append(issues, open.hub.Issues()...)
	}
}
