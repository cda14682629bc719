package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// An attachment is a process that another one's hub serves: it passes its
// editor's messages on. When that one has gone it starts a daemon, if that is
// what the configuration wants, or else becomes the hub itself.
type attachment struct {
	settings *Settings
	log      *logging.Log
	ctx      context.Context
	project  project.Project
	daemon   bool // the hub is to be a daemon
	others   *others
	relay    *relay.Relay
	problem  atomic.Pointer[SilentError] // why no hub could be joined lately

	// For the relay's goroutine that connects alone.
	host  *host // once this process is the hub
	begun bool  // a hub was looked for
}

// attachEditor serves an editor by the hub of another process, until the
// editor goes or its context ends; as the hub, it serves others until ctx does.
func attachEditor(ctx, editorCtx context.Context, s *Settings, log *logging.Log, p project.Project, daemon bool, editor server.Transport, o *others) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &attachment{settings: s, log: log, ctx: ctx, project: p, daemon: daemon, others: o}
	early := newEarlyServer(ctx, s, log, a.trouble)
	opts := relay.Options{
		Connect: a.connect, Early: early.answer, Limits: s.Limits, Logger: log.Logger,
		Silence: s.AnswerWithin, Silent: a.silent, Problem: a.nobody, Long: early.isLong,
	}
	if messages := log.Messages(); messages != nil {
		opts.Trace = func(sent bool, message []byte) { messages("editor", sent, message) }
	}
	a.relay = relay.New(editor, opts)
	err := a.relay.Run(editorCtx)
	if err != nil {
		log.Error("the connection failed", "err", err)
	}
	if a.host != nil {
		a.host.stayForOthers()
		a.host.close()
	}
	log.Info("stopped")
	return nil
}

const (
	// connectPause is how long an attached process waits before it looks again
	// for a hub, or a lock that is free.
	connectPause = 10 * time.Millisecond
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
	}
	fresh := !a.begun
	a.begun = true
	for {
		if t, err := dialSocket(ctx, a.settings, a.project); err == nil {
			a.log.Info("attached to the project's hub")
			a.problem.Store(nil)
			return t, nil
		} else if ctx.Err() != nil {
			return nil, err
		} else {
			a.noteSilence(err)
		}
		// A hub that was stopped on purpose stays so until the editor needs one;
		// an editor that has just been started does not know of any stop.
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
		c := claimProject(a.settings)
		if !c.held() && (c.why() == nil || a.daemon) {
			return a.become(c, problem), nil
		}
		if !c.held() {
			return nil, c.why()
		}
		if a.daemon {
			a.log.Debug("another process has the lock and does not answer", "holder", c.why(), "problem", problem)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(connectPause):
		}
	}
}

// noteSilence notes whether a hub could not be joined since it does not answer.
func (a *attachment) noteSilence(err error) {
	var silent *SilentError
	if errors.As(err, &silent) && a.problem.Load() == nil {
		a.log.Warn(silent.Error())
	}
	a.problem.Store(silent)
}

// silent says of a hub that has been joined, and does not answer, who it is.
func (a *attachment) silent() string {
	ctx, cancel := context.WithTimeout(a.ctx, time.Second)
	defer cancel()
	pid, held := a.project.Holder(ctx)
	path, _ := socket.Find(a.project.StateDir)
	return a.project.ShortenPaths((&SilentError{PID: pid, Held: held, path: path}).Error())
}

// nobody says why no hub could be joined; "": there is none, or it is not known.
func (a *attachment) nobody() string {
	if silent := a.problem.Load(); silent != nil {
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
	return EnsureDaemon(ctx, a.settings, a.project)
}

// become makes this process the hub. A problem is why it had to.
func (a *attachment) become(c *claim, problem string) server.Transport {
	if problem != "" {
		a.log.Warn(problem)
	} else {
		a.log.Info("the hub has gone; this process takes its place")
	}
	a.host = newHost(a.settings, a.log, c, config.HubEmbedded)
	a.host.problem = problem
	a.others.of.Store(a.host)
	a.host.begin(a.ctx, true) // somebody waits for it
	return a.host.pipe()
}
