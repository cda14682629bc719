package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// The end of a process, in parts.
const (
	handlerGrace = 500 * time.Millisecond // for requests that are under way
	hubGrace     = 900 * time.Millisecond // for executors to be gone
	logGrace     = 400 * time.Millisecond

	// EndWithin is how long a process takes at most to end after a signal, and an editor's
	// process after its editor has begun to leave.
	EndWithin = 1900 * time.Millisecond
)

// restAfter is after how long a process gives back the memory that its start needed: after the
// start, after an editor's process has joined a daemon, and after a daemon's last client has gone.
const restAfter = 2 * time.Second

// calmMemory is how much memory an editor's process may have before it collects garbage more
// eagerly than it otherwise would, in bytes. It is no limit.
const calmMemory = 48 << 20

// Serve serves the editor that started this process until the editor leaves or a signal comes.
// It answers the core methods by itself, and relays everything else to the project's daemon.
func Serve(ctx context.Context, s *hubprocess.Settings) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(calmMemory)
	}
	transport, log, stopped, err := begin(s, s.OpenLog())
	if err != nil {
		return err
	}
	defer stopped()
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	e := newEditorProcess(s, log)
	e.exit = os.Exit
	e.direct = len(s.Listen) == 0 // the sockets of --listen are for others, and the daemon's
	e.run(ctx, transport)
	return nil
}

// ServeThrough serves the editor that started this process as [Serve] does, but in another
// protocol: serve speaks it with the editor, until that leaves or its context ends, and with the
// project's hub through a client that never loses its connection. The log is closed at the end.
func ServeThrough(ctx context.Context, s *hubprocess.Settings, log *logging.Log, serve func(ctx context.Context, editor server.Transport, hub *client.Client, log *logging.Log) error) error {
	editor, log, stopped, err := begin(s, log)
	if err != nil {
		return err
	}
	defer stopped()
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	near, far := server.Pipe()
	relaying, end := context.WithCancel(ctx)
	defer end()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { newEditorProcess(s, log).run(relaying, far) })
	hub, err := client.Dial(ctx, client.OverTransport(near, frame.LSP), client.WithLogger(slog.New(slog.DiscardHandler)), client.WithResend(relay.KindHubLost))
	if err != nil {
		end()
		return err
	}
	defer hub.Close()
	return serve(ctx, editor, hub, log)
}

// begin takes standard input and output. stopped is to be called at the end.
func begin(s *hubprocess.Settings, log *logging.Log) (editor server.Transport, _ *logging.Log, stopped func(), err error) {
	if editor, err = stdio.Take(); err != nil {
		log.Close(logGrace)
		return nil, nil, nil, fmt.Errorf("cannot serve on standard input and output: %w", err)
	}
	// A write shows that the editor, or the reader of the log, has closed its end. Notify, not
	// Ignore: what is ignored stays ignored in child processes.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	log.Info("started", "version", s.Version, "pid", os.Getpid(), "level", s.LogLevel.String(), "sink", log.Sink)
	return editor, log, func() {
		log.Info("stopped")
		log.Close(logGrace)
	}, nil
}

// An editorProcess serves one editor. Until a message needs the project's daemon it answers the
// core methods itself, with nothing between the editor and the server. Then it relays:
//
//	looking ── a daemon answers ──► joined ── it has gone ──► looking
//	   │
//	   └── none runs ──► dormant ── the editor needs one ──► one is started ──► looking
//	                        ▲                                      │
//	                        └── it cannot be: what waits is refused ┘
type editorProcess struct {
	settings *hubprocess.Settings
	log      *logging.Log
	exit     func(status int) // ends the process at once; nil: it takes as long as it takes
	direct   bool             // the editor is served without a relay until it needs a daemon

	relay *relay.Relay // nil while the editor is served directly
	rest  *time.Timer  // calls restMemory

	wasJoined atomic.Bool

	mu      sync.Mutex // guards the fields below
	failure error      // why no hub can be had; nil: that is not known to be so
	failed  time.Time  // when a daemon could not be started, if that is why
}

func newEditorProcess(s *hubprocess.Settings, log *logging.Log) *editorProcess {
	return &editorProcess{settings: s, log: log}
}

// run relays the editor at the other end of a transport until it leaves or ctx ends.
func (e *editorProcess) run(ctx context.Context, t server.Transport) {
	e.rest = time.AfterFunc(restAfter, restMemory)
	defer e.rest.Stop()
	restricted := false
	if e.direct {
		if t, restricted = e.serveCore(ctx, t); t == nil {
			return
		}
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	early := earlyServer{e.coreServer(e.log.WithoutMessages(), nil), serving} // the relay has the messages
	opts := relay.Options{
		Restricted: restricted,
		Connect:    e.connect, Arrival: e.arrival, Early: early.answer, Unavailable: early.exchange, Limits: e.settings.Limits, Logger: e.log.Logger,
		Silence: e.settings.AnswerWithin, Silent: e.whySilent, Long: early.isLong,
		Ending: e.ending, Released: restMemory,
	}
	if messages := e.log.Messages(); messages != nil {
		opts.Trace = func(sent bool, message []byte) { messages("editor", sent, message) }
	}
	e.relay = relay.New(t, opts)
	if err := e.relay.Run(ctx); err != nil {
		e.log.Error("the connection failed", "err", err)
	}
}

// ending is called when the editor begins to leave: the process is gone within EndWithin.
func (e *editorProcess) ending() {
	if e.exit != nil {
		time.AfterFunc(EndWithin, func() { e.exit(0) })
	}
}

// startAgainAfter is for how long the failure to start a daemon is believed.
const startAgainAfter = time.Second

// connect joins the project's daemon. If none runs, one is started once a message of the editor
// needs it.
func (e *editorProcess) connect(ctx context.Context) (server.Transport, error) {
	wanted := relay.Wanted(ctx) || len(e.settings.Listen) > 0 // which are for others
	for {
		p, err := e.settings.Project()
		if err != nil {
			return nil, e.unavailable(err)
		}
		t, err := hubprocess.Connect(ctx, e.settings, p)
		if err == nil {
			e.log.Info("attached to the project's hub")
			e.noteFailure(nil, time.Time{})
			e.wasJoined.Store(true)
			e.rest.Reset(restAfter)
			return t, nil
		}
		if silent := new(hubprocess.SilentError); errors.As(err, &silent) {
			e.relay.NoteProblem(p.ShortenPaths(silent.Error()))
			if !wanted {
				return nil, err // it may answer in a moment
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, err
		case !hubprocess.MayComeYet(err):
			return nil, e.unavailable(err)
		case !wanted && (!e.wasJoined.Load() || p.Stopped()):
			return nil, relay.ErrDormant
		}
		if at, why := e.lastFailure(); time.Since(at) < startAgainAfter {
			return nil, &relay.UnavailableError{Err: why}
		}
		err = e.startDaemon(ctx, p)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, new(*hubprocess.SilentError)):
			return nil, err
		default:
			e.log.Warn("no daemon could be started", "err", err)
			e.noteFailure(err, time.Now())
			return nil, &relay.UnavailableError{Err: err}
		}
	}
}

// arrival returns when another process may have started a daemon, or ctx ends. An editor that
// was never joined has asked for nothing, and needs none.
func (e *editorProcess) arrival(ctx context.Context) {
	p, err := e.settings.Project()
	if err != nil || !e.wasJoined.Load() {
		<-ctx.Done()
		return
	}
	p.AwaitClaim(ctx)
}

// daemonWithin is how long a daemon may take to answer before a message that waits for it is
// answered with an error.
const daemonWithin = 4 * time.Second

func (e *editorProcess) startDaemon(ctx context.Context, p project.Project) error {
	ctx, cancel := context.WithTimeout(ctx, max(daemonWithin, e.settings.AnswerWithin))
	defer cancel()
	e.log.Info("no hub runs here; starting a daemon")
	return hubprocess.EnsureDaemon(ctx, e.settings, p)
}

// unavailable notes why no hub can be had until something is mended.
func (e *editorProcess) unavailable(err error) error {
	e.noteFailure(err, time.Time{})
	return &relay.UnavailableError{Err: err}
}

// noteFailure notes why no hub can be had; nil: one is. started is when one could not be started.
func (e *editorProcess) noteFailure(err error, started time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed, e.failure = started, err
}

func (e *editorProcess) lastFailure() (started time.Time, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed, e.failure
}

// noHub is the error of a request for which no hub can be had.
func (e *editorProcess) noHub() error {
	_, err := e.lastFailure()
	if err == nil {
		return domain.ErrEnding
	}
	p, _ := e.settings.Project()
	return unavailable(p, err)
}

// issues are what health tells while no hub answers.
func (e *editorProcess) issues() (issues []string) {
	if e.relay != nil {
		if why := e.relay.Trouble(); why != "" {
			issues = append(issues, why)
		}
	}
	if _, err := e.lastFailure(); err != nil {
		issues = append(issues, e.noHub().Error())
	}
	return issues
}

// whySilent names a hub that was joined and does not answer.
func (e *editorProcess) whySilent() string {
	p, err := e.settings.Project()
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	pid, held := p.Holder(ctx)
	path, _ := socket.Find(p.StateDir)
	return p.ShortenPaths((&hubprocess.SilentError{PID: pid, Held: held, Path: path}).Error())
}
