package host

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/editorfiles"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

// A host is this process as the hub of its project: one server for the clients that connect
// to its sockets.
type host struct {
	settings *hubprocess.Settings
	log      *logging.Log
	trouble  func() string // what else health is to tell; may be nil
	ending   func()        // called when a connection begins to end; may be nil

	editorFiles editorfiles.Readers

	claim    *claim
	srv      *server.Server
	sockets  sockets
	vacant   vacancy
	builds   *builds
	life     *life[*openHub]
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

// meet notes the build of a client. If all clients are of other builds and nothing is to be done,
// this daemon ends.
func (h *host) meet(ctx context.Context, conn *server.Conn, build, version string) handlers.DaemonBuild {
	answer := handlers.DaemonBuild{Version: h.settings.Version, Protocol: hubprocess.Protocol}
	if h.builds.add(ctx, conn, build, version) {
		answer.Ends = h.life.isDeserted()
		h.builds.wake()
	}
	return answer
}

func (h *host) connections() int { return h.srv.ConnCount() }

// issues lists what is wrong, without waiting.
func (h *host) issues() (issues []string) {
	if h.trouble != nil {
		if why := h.trouble(); why != "" {
			issues = append(issues, why)
		}
	}
	if issue := h.builds.issue(h.settings.Version); issue != "" {
		issues = append(issues, issue)
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
