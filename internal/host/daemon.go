package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// Daemon makes this process the project's hub until a signal comes, ctx ends or a client stops
// it. It closes standard output when it listens, because the process that started it waits for
// that. If standard output is a pipe and the daemon fails before, it writes the reason there:
// the log may be on a full disk.
func Daemon(ctx context.Context, s *hubprocess.Settings) error {
	err := runDaemon(ctx, s)
	if err == nil {
		return nil
	}
	if info, statErr := os.Stdout.Stat(); statErr == nil && info.Mode()&os.ModeNamedPipe != 0 {
		fmt.Println(err)
	}
	return err
}

// claimWithin is how long another process that has just taken the lock may take to write its id.
const claimWithin = time.Second

func runDaemon(ctx context.Context, s *hubprocess.Settings) error {
	log := s.OpenLog()
	defer log.Close(logGrace)
	ctx, stop := untilSignal(ctx, s, log)
	defer stop()
	p, lock, err := claim(ctx, s)
	if err != nil {
		return errors.New(whyUnavailable(p, err))
	}
	defer lock.Close()
	d, err := newDaemon(ctx, s, log, p, lock)
	if err != nil {
		return errors.New(whyUnavailable(p, err)) // the process that started this one adds what that means
	}
	defer d.close()
	if err := d.listen(); err != nil {
		return fmt.Errorf("clients cannot reach the daemon: %w", err)
	}
	if err := stdio.CloseOutput(); err != nil {
		log.Debug("cannot tell the starting process that the daemon listens", "err", err)
	}
	d.rest.Reset(restAfter)
	if err := d.lifecycle.run(ctx); err != nil {
		log.Error("the daemon ends", "err", err)
		return err
	}
	return nil
}

// claim takes the lock of the project, which makes this process its hub.
func claim(ctx context.Context, s *hubprocess.Settings) (project.Project, *project.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, claimWithin)
	defer cancel()
	p, err := s.Project()
	if err != nil {
		return p, nil, err
	}
	lock, err := p.Claim(ctx)
	return p, lock, err
}

// A daemon is the hub of its project: one server for the clients that connect to its sockets.
type daemon struct {
	settings  *hubprocess.Settings
	log       *logging.Log
	project   project.Project
	hub       *openHub
	srv       *server.Server
	sockets   sockets
	builds    *builds
	lifecycle *lifecycle
	notified  func(context.Context) // waits until subscribers have received all events
	rest      *time.Timer           // calls giveBack
	resting   atomic.Bool           // memory was given back, and no message has come since
	waking    sync.WaitGroup

	ctx     context.Context // of the connections
	end     context.CancelFunc
	serving sync.WaitGroup // a goroutine for each socket that is or was open

	mu     sync.Mutex
	vacant time.Time // when the last connection ended, or the process began
}

// newDaemon opens the project's hub.
func newDaemon(
	ctx context.Context, s *hubprocess.Settings, log *logging.Log, p project.Project, lock *project.Lock,
) (*daemon, error) {
	log.Info("started", "version", s.Version, "pid", os.Getpid(), "project", p.Root)
	files := new(handlers.Readers)
	d := &daemon{settings: s, log: log, project: p, vacant: time.Now()}
	h, err := openProject(context.WithoutCancel(ctx),
		hubOptions{settings: s, log: log, project: p, lock: lock, editorFiles: files, idle: d.giveBackNow})
	if err != nil {
		return nil, err
	}
	d.hub = h
	d.ctx, d.end = context.WithCancel(context.Background())
	d.rest = time.AfterFunc(restAfter, d.giveBack)
	d.builds = newBuilds(hubprocess.Build(runningProgram()), func() int { return d.srv.ConnCount() })
	d.lifecycle = newLifecycle(d, partOf(s, interruptsPart), log.Logger)
	var reg *server.Registry
	reg, d.notified = newRegistry(s, log, handlers.Core{Issues: d.issues, Build: d.meet}, handlers.Domain{
		Hub:  func(context.Context) (*hub.Hub, error) { return h.hub, nil },
		Stop: d.lifecycle.stop, Clients: d.clients, EditorFiles: files, Sockets: d.sockets.paths,
		Unserved: d.sockets.unserved, Projects: Projects{Settings: s, Own: p, Hub: h.hub},
		Listen: func(_ context.Context, path string) error { return d.sockets.add(d.ctx, path) },
	})
	d.srv = server.New(reg, server.Options{
		Limits: s.Limits, Logger: log.Logger, Grace: handlerGrace, RandomCallIDs: true, Trace: traceOf(log),
		MethodHint: handlers.MethodHint,
		Observer:   server.Observer{Released: d.giveBackNow, Received: d.wake, Ended: d.connectionEnded},
	})
	d.sockets = sockets{server: d.srv, log: log.Logger, extra: s.Listen, serving: &d.serving}
	return d, nil
}

// close ends the daemon, and all its work.
func (d *daemon) close() {
	closing, cancel := context.WithTimeout(context.Background(), partOf(d.settings, executorsPart))
	defer cancel()
	d.end()
	d.rest.Stop()
	d.hub.close(closing)
	d.sockets.close() // before the lock is free: a client that sees the lock free finds no socket
	ended := make(chan struct{})
	go func() { // until the connections or the process have ended
		d.serving.Wait()
		d.waking.Wait() // no message comes any more
		close(ended)
	}()
	select {
	case <-ended:
	case <-closing.Done():
	}
	d.log.Info("stopped")
}

// giveBack returns memory that an idle process does not need, unless the hub works: it calls giveBackNow
// when it is idle again.
func (d *daemon) giveBack() {
	if !d.hub.hub.Busy() {
		d.giveBackNow()
	}
}

func (d *daemon) giveBackNow() {
	RestMemory()
	d.resting.Store(true)
}

// wake is called for each message. The first one after giveBack maps the program again, and the memory
// is given back once more when the daemon has been idle. It does not block.
func (d *daemon) wake() {
	if d.resting.Load() && d.resting.CompareAndSwap(true, false) {
		d.waking.Go(mapProgram)
		d.rest.Reset(restAfter)
	}
}

// meet records the build of a client. If all clients are of other builds and the daemon is idle,
// it ends.
func (d *daemon) meet(ctx context.Context, conn *server.Conn, p protocol.ClientBuildParams) handlers.DaemonBuild {
	answer := handlers.DaemonBuild{Version: d.settings.Version, Protocol: hubprocess.Protocol}
	if p.Observes {
		d.builds.observe(ctx, conn)
		return answer
	}
	if d.builds.add(ctx, conn, p.Build, p.Version) {
		answer.Ends = d.lifecycle.isDeserted(ctx)
		d.builds.wake(answer.Ends)
	}
	return answer
}

// issues lists the current problems, without waiting.
func (d *daemon) issues() (issues []string) {
	if issue := d.builds.issue(d.settings.Version); issue != "" {
		issues = append(issues, issue)
	}
	return append(append(issues, d.sockets.issues()...), d.hub.hub.Issues()...)
}

func (d *daemon) clients() int { return d.builds.clients() }

func (d *daemon) connectionEnded() {
	d.mu.Lock()
	d.vacant = time.Now()
	d.mu.Unlock()
	if d.clients() == 0 {
		d.rest.Reset(restAfter)
	}
}

func (d *daemon) vacantFor() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clients() > 0 {
		return 0
	}
	return time.Since(d.vacant)
}

func (d *daemon) listen() error { return d.sockets.open(d.ctx, d.project) }
func (d *daemon) unlisten()     { d.sockets.close() }

func (d *daemon) superseded() bool { return d.builds.superseded() }
func (d *daemon) met() <-chan bool { return d.builds.met }

func (d *daemon) lost() <-chan struct{}             { return d.hub.gone }
func (d *daemon) interruptWork(ctx context.Context) { d.hub.hub.InterruptWork(ctx, "alone") }
func (d *daemon) drain(ctx context.Context)         { d.hub.hub.Drain(ctx) }

func (d *daemon) idle(ctx context.Context) bool {
	idle, err := d.hub.hub.Idle(ctx)
	return err == nil && idle
}

func (d *daemon) interrupt(ctx context.Context) {
	if d.hub.hub.Abandon(ctx) == nil {
		d.notified(ctx)
	}
}

func (d *daemon) idleAfter() time.Duration {
	c, err := d.settings.Config()
	if err != nil { // health reports the problem
		return config.DefaultDaemonIdle
	}
	return c.DaemonIdle
}

func (d *daemon) interruptsAlone() bool {
	c, err := d.settings.Config()
	return err == nil && c.WhenAlone == config.AloneInterrupt
}

func (d *daemon) noteStop() {
	if err := d.project.MarkStopped(); err != nil {
		d.log.Debug("the stop could not be noted", "err", err)
	}
}

// runningProgram returns the path of the program of this process. On Linux it leads to that
// program even if its file was replaced or removed.
func runningProgram() string {
	const itself = "/proc/self/exe"
	path, err := os.Executable()
	if err != nil {
		return itself
	}
	running, err := os.Stat(itself)
	if err != nil { // not on Linux
		return path
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, running) {
		return itself
	}
	return path // more readable in a list of processes
}

// untilSignal returns a context that ends with parent, or at the first signal that ends a
// process. A second signal ends the process at once. stop restores the signals.
func untilSignal(parent context.Context, s *hubprocess.Settings, log *logging.Log) (ctx context.Context, stop func()) {
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
				time.AfterFunc(s.EndWithin, func() { os.Exit(0) })
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
