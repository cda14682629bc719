package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// An attachment is the connection of an editor to the hub of another process,
// whichever that is. It finds one, and finds the next one when that has gone:
//
//	looking ── somebody answers on the project's socket ──► joined ── it has gone ──► looking
//	   ├── it was stopped on purpose ──► dormant ── the editor needs one ──► looking
//	   ├── the configuration wants a daemon ──► one is started ──► looking
//	   ├── nobody has the project's lock ──► this process is the hub
//	   └── somebody has it, and is about to answer or to end ──► looking, after a pause
//
// The relay asks for each hub by calling connect.
type attachment struct {
	process *editorProcess
	log     *logging.Log
	ctx     context.Context
	project project.Project
	daemon  bool // the hub is to be a daemon
	relay   *relay.Relay
	silence atomic.Pointer[hubprocess.SilentError] // why no hub could be joined lately

	// For the relay's goroutine that connects alone.
	host  *host // once this process is the hub
	begun bool  // a hub was looked for
}

// attachEditor serves an editor by the hub of another process, until the editor
// goes. It returns this process's host, if it became the hub meanwhile.
func attachEditor(ctx context.Context, e *editorProcess, p project.Project, daemon bool, t server.Transport) *host {
	early, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &attachment{process: e, log: e.log, ctx: ctx, project: p, daemon: daemon}
	server := newEarlyServer(early, e.settings, e.log, a.trouble)
	opts := relay.Options{
		Connect: a.connect, Early: server.answer, Limits: e.settings.Limits, Logger: e.log.Logger,
		Silence: e.settings.AnswerWithin, Silent: a.silent, Problem: a.nobody, Long: server.isLong,
		Ending: e.ending,
	}
	if messages := e.log.Messages(); messages != nil {
		opts.Trace = func(sent bool, message []byte) { messages("editor", sent, message) }
	}
	a.relay = relay.New(t, opts)
	if err := a.relay.Run(e.editor); err != nil {
		e.log.Error("the connection failed", "err", err)
	}
	return a.host
}

const (
	// daemonAfter is when the first daemon is started: the first reply comes
	// first.
	daemonAfter = 10 * time.Millisecond
	// daemonWithin is how long a daemon may take to answer before this process
	// is the hub instead. It is less than a message of the editor waits.
	daemonWithin = 4 * time.Second
)

// connect joins the hub, whoever that is: the process that answers on the
// project's socket, or a new daemon, or this process, if nobody has the lock
// any more.
func (a *attachment) connect(ctx context.Context) (server.Transport, error) {
	if a.host != nil { // it has ended: by daemon.stop
		a.host.close()
		a.host = nil
		a.process.hub.Store(nil)
	}
	fresh := !a.begun
	a.begun = true
	var pause hubprocess.Pause
	for {
		t, err := hubprocess.Connect(ctx, a.process.settings, a.project)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		a.noteSilence(err)
		if err == nil {
			a.log.Info("attached to the project's hub")
			return t, nil
		}
		// An editor that has just been started does not know of any stop.
		if a.project.Stopped() && !relay.Wanted(ctx) && !(fresh && a.daemon) {
			return nil, relay.ErrDormant
		}
		problem := ""
		if a.daemon {
			err := a.startDaemon(ctx, fresh)
			if err == nil {
				continue
			}
			if ctx.Err() != nil {
				return nil, err
			}
			problem = fmt.Sprintf("no daemon could be started, so what runs here ends with its editor: %v", err)
		}
		c := claimProject(a.process.settings)
		if !c.held() {
			if c.why() != nil && !a.daemon {
				return nil, c.why()
			}
			return a.become(c, problem), nil
		}
		if a.daemon {
			a.log.Debug("another process has the lock and does not answer", "holder", c.why(), "problem", problem)
		}
		if err := pause.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// noteSilence notes whether a hub could not be joined since it does not answer;
// err is nil if one was joined.
func (a *attachment) noteSilence(err error) {
	var silent *hubprocess.SilentError
	if errors.As(err, &silent) && a.silence.Load() == nil {
		a.log.Warn(silent.Error())
	}
	a.silence.Store(silent)
}

// silent says of a hub that has been joined, and does not answer, who it is.
func (a *attachment) silent() string {
	ctx, cancel := context.WithTimeout(a.ctx, time.Second)
	defer cancel()
	pid, held := a.project.Holder(ctx)
	path, _ := socket.Find(a.project.StateDir)
	return a.project.ShortenPaths((&hubprocess.SilentError{PID: pid, Held: held, Path: path}).Error())
}

// nobody says why no hub could be joined; "": there is none, or it is not known.
func (a *attachment) nobody() string {
	if silent := a.silence.Load(); silent != nil {
		return a.project.ShortenPaths(silent.Error())
	}
	return ""
}

// trouble is what health is to tell while no hub answers.
func (a *attachment) trouble() string {
	if why := a.relay.Silence(); why != "" {
		return why
	}
	return a.nobody()
}

// startDaemon starts a daemon and waits for it; in a fresh process it gives way
// to the first reply.
func (a *attachment) startDaemon(ctx context.Context, fresh bool) error {
	if fresh && !relay.Wanted(ctx) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(daemonAfter):
		}
	}
	ctx, cancel := context.WithTimeout(ctx, daemonWithin)
	defer cancel()
	a.log.Info("no hub runs here; starting a daemon")
	return hubprocess.EnsureDaemon(ctx, a.process.settings, a.project)
}

// become makes this process the hub. A problem is why it had to.
func (a *attachment) become(c *claim, problem string) server.Transport {
	if problem != "" {
		a.log.Warn(problem)
	} else {
		a.log.Info("the hub has gone; this process takes its place")
	}
	a.host = newHost(a.process.settings, a.log, c, config.HubEmbedded)
	a.host.problem = problem
	a.host.ending = a.process.ending
	a.process.hub.Store(a.host)
	a.host.begin(a.ctx, true) // somebody waits for it
	near, _ := a.host.pipe()
	return near
}
