package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/dialect/native"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// The parts of [hubprocess.Settings.EndWithin], in percent.
const (
	executorsPart  = 47 // for executors to end
	interruptsPart = 21 // until subscribers have the last events of interrupted turns
	relayPart      = 95 // for the daemon's last responses
)

// partOf returns a part of the time limit for the end of a process.
func partOf(s *hubprocess.Settings, percent time.Duration) time.Duration {
	return s.EndWithin * percent / 100
}

const (
	handlerGrace = 500 * time.Millisecond // for running requests to end by themselves, at the end
	logGrace     = 400 * time.Millisecond // for the log to be written, at the end
)

// restAfter is the delay before a process returns the memory that its start needed. The delay
// begins after the start, after an editor's process has joined a daemon, and after a daemon's
// last client has gone.
const restAfter = 2 * time.Second

// calmMemory is how much memory an editor's process may use before it collects garbage more
// often, in bytes. It is not a limit.
const calmMemory = 48 << 20

// Serve serves the editor that started this process until the editor leaves or a signal comes.
// It answers the core methods itself, and relays all other messages to the project's daemon.
func Serve(ctx context.Context, s *hubprocess.Settings) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(calmMemory)
	}
	transport, log, stopped, err := begin(s, s.OpenLog())
	if err != nil {
		return err
	}
	defer stopped()
	ctx, stop := untilSignal(ctx, s, log)
	defer stop()
	e, err := newEditorProcess(s, log)
	if err != nil {
		return err
	}
	e.exit = os.Exit
	e.direct = len(s.Listen) == 0 // the sockets of --listen are for other clients, and the daemon opens them
	e.run(ctx, transport)
	return nil
}

// ServeThrough serves the editor that started this process as [Serve] does, but in another
// protocol. serve speaks it with the editor, until the editor leaves or the context ends. It
// reaches the project's hub through a client that reconnects. ServeThrough closes the log at the
// end.
func ServeThrough(
	ctx context.Context, s *hubprocess.Settings, log *logging.Log,
	serve func(ctx context.Context, editor server.Transport, hub *client.Client, log *logging.Log) error,
) error {
	editor, log, stopped, err := begin(s, log)
	if err != nil {
		return err
	}
	defer stopped()
	ctx, stop := untilSignal(ctx, s, log)
	defer stop()
	process, err := newEditorProcess(s, log)
	if err != nil {
		return err
	}
	near, far := server.Pipe()
	relaying, end := context.WithCancel(ctx)
	defer end()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { process.run(relaying, far) })
	hub, err := client.Dial(ctx, client.OverTransport(near, frame.LSP),
		client.WithLogger(slog.New(slog.DiscardHandler)), client.WithResend(relay.KindHubLost))
	if err != nil {
		end()
		return err
	}
	defer hub.Close()
	return serve(ctx, editor, hub, log)
}

// begin takes standard input and output. The caller must call stopped at the end.
func begin(
	s *hubprocess.Settings, log *logging.Log,
) (editor server.Transport, _ *logging.Log, stopped func(), err error) {
	if editor, err = stdio.Take(); err != nil {
		log.Close(logGrace)
		return nil, nil, nil, fmt.Errorf("cannot serve on standard input and output: %w", err)
	}
	// A write shows that the editor, or the reader of the log, has closed its end. Notify, not
	// Ignore: child processes inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if input, ok := editor.(interface{ AwaitHangUp() bool }); ok {
		go func() { // lives as long as the process
			if input.AwaitHangUp() { // its reader may be busy, or wait for a peer
				time.AfterFunc(s.EndWithin, func() { os.Exit(0) })
			}
		}()
	}
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
//	                        └── start fails: refuse queued messages ┘
type editorProcess struct {
	settings *hubprocess.Settings
	log      *logging.Log
	exit     func(status int) // ends the process at once; nil: it ends without a limit
	direct   bool             // the editor is served without a relay until it needs a daemon

	relay *relay.Relay // nil while the editor is served directly
	rest  *time.Timer  // calls RestMemory

	wasJoined atomic.Bool

	beginning sync.Mutex // held while a session begins on a host of its own

	mu      sync.Mutex           // guards the fields below
	there   *hubprocess.Settings // those of a session's own host, once one has begun; nil: settings
	remote  *hubprocess.Host     // of the project; nil: this machine, or awaited
	awaited error                // why there is no host yet: each session has its own
	failure error                // why no hub is available; nil: unknown, or one is
	failed  time.Time            // when a daemon failed to start, if that is the reason
}

func newEditorProcess(s *hubprocess.Settings, log *logging.Log) (*editorProcess, error) {
	remote, err := s.Remote()
	if needs := new(hubprocess.NeedsSessionError); errors.As(err, &needs) {
		return &editorProcess{settings: s, log: log, awaited: needs}, nil
	}
	return &editorProcess{settings: s, log: log, remote: remote}, err
}

// host returns the host of the project, nil for this machine, with its settings. The error says that no session has begun on a
// host of its own yet.
func (e *editorProcess) host() (*hubprocess.Host, *hubprocess.Settings, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.remote, cmp.Or(e.there, e.settings), e.awaited
}

// useHost makes the host of a session, by its settings, that of this process.
func (e *editorProcess) useHost(there *hubprocess.Settings) error {
	h, err := there.Remote()
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.there, e.remote, e.awaited = there, h, nil
	return nil
}

// leaveHost has the next session begin on another host of its own, because that of the last one is removed.
func (e *editorProcess) leaveHost() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.there != nil {
		e.there, e.remote, e.awaited = nil, nil, &hubprocess.NeedsSessionError{Name: e.settings.Host}
	}
}

// run relays the editor at the other end of a transport until it leaves or ctx ends.
func (e *editorProcess) run(ctx context.Context, t server.Transport) {
	e.rest = time.AfterFunc(restAfter, RestMemory)
	defer e.rest.Stop()
	restricted := false
	if e.direct {
		if t, restricted = e.serveCore(ctx, t); t == nil {
			return
		}
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	early := earlyServer{e.coreServer(e.log.WithoutMessages(), nil), serving} // the relay logs the messages
	opts := relay.Options{
		Restricted: restricted,
		Connect:    e.connect, Arrival: e.arrival, Early: early.answer, Unavailable: early.exchange,
		Limits: e.settings.Limits, Logger: e.log.Logger,
		Silence: e.settings.AnswerWithin, Silent: e.whySilent, Long: early.isLong,
		Ending: e.ending, Grace: partOf(e.settings, relayPart), Released: RestMemory,
	}
	if e.settings.Host != "" {
		line := &hubprocess.Host{Host: config.Host{Name: e.settings.Host}}
		opts.Patience, opts.GiveUp = hubprocess.LineWithin, 2*e.settings.AnswerWithin
		opts.Lost, opts.Broken = line.Lost(), line.Broke()
		opts.HubFrame = client.DefaultMaxFrame // a host is third-party
		opts.Take = e.take
		keep := newKeeper(e)
		opts.Event = keep.event
		defer keep.close()
	}
	if messages := e.log.Messages(); messages != nil {
		opts.Trace = func(sent bool, message []byte) { messages("editor", sent, message) }
	}
	e.relay = relay.New(t, opts)
	if err := e.relay.Run(ctx); err != nil {
		e.log.Error("the connection failed", "err", err)
	}
}

// ending is called when the editor begins to leave: the process ends within EndWithin.
func (e *editorProcess) ending() {
	if e.exit != nil {
		time.AfterFunc(e.settings.EndWithin, func() { e.exit(0) })
	}
}

// startAgainAfter is how long the failure to start a daemon is cached.
const startAgainAfter = time.Second

// connect joins the project's daemon. If none runs, it starts one as soon as a message of the
// editor needs it.
func (e *editorProcess) connect(ctx context.Context) (server.Transport, error) {
	wanted := relay.Wanted(ctx) || len(e.settings.Listen) > 0 // which are for other clients
	if e.settings.Host != "" {
		return e.connectHost(ctx, wanted)
	}
	for {
		p, err := e.settings.Project()
		if err != nil {
			return nil, e.unavailable(err)
		}
		t, err := hubprocess.Connect(ctx, e.settings, p)
		if err == nil {
			err = hubprocess.Listen(ctx, e.settings, t, func(refusal string) { e.log.Error(refusal) })
		}
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
				return nil, err // it may answer soon
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

// connectHost joins the daemon on a host. It starts one as soon as a message of the editor needs it.
// While the host cannot be reached, requests get the reason, and the relay tries again.
func (e *editorProcess) connectHost(ctx context.Context, wanted bool) (server.Transport, error) {
	start := hubprocess.StartNever
	switch {
	case wanted:
		start = hubprocess.StartAlways
	case e.wasJoined.Load():
		start = hubprocess.StartUnlessStopped
	}
	h, _, err := e.host()
	if err != nil {
		if !wanted {
			return nil, relay.ErrDormant
		}
		return nil, e.unavailable(err)
	}
	t, err := h.Connect(ctx, start)
	switch {
	case err == nil:
		e.log.Info("attached to the daemon on a host", "host", h.Name)
		e.noteFailure(nil, time.Time{})
		e.wasJoined.Store(true)
		e.rest.Reset(restAfter)
		return t, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case hubprocess.IsNone(err) && !wanted:
		return nil, relay.ErrDormant
	}
	e.log.Warn("the daemon on the host cannot be reached", "err", err)
	return nil, e.unavailable(err)
}

// arrival returns when another process may have started a daemon, or ctx ends. An editor that
// never joined one needs none.
func (e *editorProcess) arrival(ctx context.Context) {
	p, err := e.settings.Project() // which fails for a host
	if err != nil || !e.wasJoined.Load() {
		<-ctx.Done()
		return
	}
	p.AwaitClaim(ctx)
}

// daemonWithin is how long a waiting message gives a daemon to answer, before the message gets
// an error.
const daemonWithin = 4 * time.Second

func (e *editorProcess) startDaemon(ctx context.Context, p project.Project) error {
	ctx, cancel := context.WithTimeout(ctx, max(daemonWithin, e.settings.AnswerWithin))
	defer cancel()
	e.log.Info("no hub runs here; starting a daemon")
	return hubprocess.EnsureDaemon(ctx, e.settings, p)
}

// unavailable records why no hub is available until the user fixes the cause.
func (e *editorProcess) unavailable(err error) error {
	e.noteFailure(err, time.Time{})
	return &relay.UnavailableError{Err: err}
}

// noteFailure records why no hub is available; nil: one is. started is the time of a failed
// start.
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

// noHub returns the error of a request for which there is no hub.
func (e *editorProcess) noHub() error {
	_, err := e.lastFailure()
	if err == nil {
		return domain.ErrEnding
	}
	p, _ := e.settings.Project()
	return unavailable(p, err)
}

// issues are the problems that health reports while no hub answers.
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

// whySilent describes a hub that was joined and does not answer.
func (e *editorProcess) whySilent() string {
	if h, _, _ := e.host(); h != nil {
		return h.Silent()
	}
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

// newRegistry registers every method, with the options that both kinds of processes share. For
// notified see [handlers.RegisterDomain].
func newRegistry(
	s *hubprocess.Settings, log *logging.Log, core handlers.Core, domain handlers.Domain,
) (_ *server.Registry, notified func(context.Context)) {
	reg := server.NewRegistry()
	core.Version, core.LogLevel, core.Now, core.Logger = s.Version, log.Level, time.Now, log.Logger
	core.Trust = func() error { return trustWorkspace(s, log) }
	core.Workspaces = handlers.NewWorkspaces()
	core.Unwatched = handlers.NewUnwatched(func() bool { return project.FirstTime(os.Getenv, "work-went-on") })
	handlers.RegisterCore(reg, core)
	notes, err := agentlink.DefaultNotes(os.Getenv)
	if err != nil {
		log.Debug("cannot store what agents report", "err", err)
	}
	domain.Version, domain.Now, domain.Logger = s.Version, time.Now, log.Logger
	domain.Workspaces, domain.Unwatched = core.Workspaces, core.Unwatched
	domain.AgentNotes, domain.Configuration = notes, s.ConfigFor
	subscribers := handlers.RegisterDomain(reg, domain)
	dialects := dialect.Register(dialectMethods(reg, domain))
	notified = func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() { subscribers(ctx) })
		both.Go(func() { dialects(ctx) })
		both.Wait()
	}
	if s.TestMethods {
		handlers.RegisterTestMethods(reg)
	}
	return reg, notified
}

// dialectMethods returns what the dialects get of the native methods.
func dialectMethods(reg *server.Registry, d handlers.Domain) native.Methods {
	return native.Methods{Registry: reg, Hub: d.Hub, Logger: d.Logger}
}

// traceOf returns a function that logs the messages of connections; nil if message logging is
// off.
func traceOf(log *logging.Log) func(c *server.Conn, sent bool, message []byte) {
	messages := log.Messages()
	if messages == nil {
		return nil
	}
	return func(c *server.Conn, sent bool, message []byte) {
		messages(fmt.Sprintf("connection %d", c.Number()), sent, message)
	}
}

// trustWorkspace trusts the project's file in its current version, because its user trusts the
// workspace in the editor.
func trustWorkspace(s *hubprocess.Settings, log *logging.Log) error {
	if s.Host != "" {
		return nil // the editor's workspace is another directory
	}
	p, err := s.Project()
	if err != nil {
		return err
	}
	file, err := config.Inspect(p.ConfigFile(), os.Getenv)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*project.ForeignError)) {
		return nil // no file to trust
	}
	if err != nil {
		return err
	}
	trusted, err := config.DefaultTrust(os.Getenv)
	if err != nil {
		return err
	}
	log.Info("the editor trusts the workspace", "file", file.File)
	return file.Trust(trusted)
}
