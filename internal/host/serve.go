package host

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// However it ends, the process is gone within 2 s. What is waited for meanwhile has
// a grace each; together they may be longer, so EndWithin bounds them all.
const (
	handlerGrace = 1400 * time.Millisecond
	hubGrace     = 900 * time.Millisecond // for executors to be gone
	logGrace     = 400 * time.Millisecond

	// EndWithin is how long a process takes at most to end after a signal, and an
	// editor's process after the last whom it serves has begun to leave.
	EndWithin = 1900 * time.Millisecond
)

// calmMemory is how much memory the process may have before it collects
// garbage more eagerly than it otherwise would, in bytes. It is no limit.
const calmMemory = 48 << 20

// Serve serves the editor that started this process until it goes or a
// signal comes.
func Serve(ctx context.Context, s *hubprocess.Settings) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(calmMemory)
	}
	transport, err := stdio.Take()
	if err != nil {
		return fmt.Errorf("cannot serve on standard input and output: %w", err)
	}
	// A peer, or a reader of the log, that closed its end is seen by the write
	// that fails. Notify, not Ignore: what is ignored stays ignored in child
	// processes.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	log := s.OpenLog()
	defer log.Close(logGrace)
	log.Info("started", "version", s.Version, "pid", os.Getpid(), "level", s.LogLevel.String(), "sink", log.Sink)
	e := newEditorProcess(s, log)
	e.exit = os.Exit
	ctx, stop := untilSignal(ctx, log, e.hungUp)
	defer stop()
	err = e.run(ctx, transport)
	log.Info("stopped")
	return err
}

// An editorProcess is a process that an editor started. Either another process is
// the project's hub, and the editor's messages are passed on to it, or this one
// is:
//
//	claiming ── the lock was free ─────────► hub ── the editor has gone ──► lingering ──► ended
//	    │                                     ▲
//	    └─ another process has it ──► joined ─┘ that one has gone
//
// What the hub goes through is a [life]; what a process goes through that has
// joined one is an [attachment].
type editorProcess struct {
	settings *hubprocess.Settings
	log      *logging.Log

	// editor ends when the editor is not to be served any more: others may be.
	editor     context.Context
	editorGone context.CancelFunc
	hub        atomic.Pointer[host] // nil while another process is it

	daemon bool // the hub is to be a daemon, unless the configuration says otherwise

	exit func(status int) // ends the process at once; nil: it takes as long as it takes
}

func newEditorProcess(s *hubprocess.Settings, log *logging.Log) *editorProcess {
	e := &editorProcess{settings: s, log: log}
	e.editor, e.editorGone = context.WithCancel(context.Background())
	return e
}

// run serves the editor at the other end of a transport until it goes, and others
// who have come until they have gone, too. A signal ends ctx.
func (e *editorProcess) run(ctx context.Context, t server.Transport) error {
	defer e.editorGone()
	if hubprocess.WantsDaemon(e.settings) || e.daemon && !hubprocess.SaysHub(e.settings) {
		if p, err := e.settings.Project(); err == nil {
			e.join(ctx, p, true, t)
			return nil
		}
	}
	c := claimProject(e.settings)
	if c.held() {
		e.log.Info("another process is this project's hub; attaching to it", "hub", c.why())
		if len(e.settings.Listen) > 0 {
			e.log.Warn("--listen has no effect here: that process listens")
		}
		p, _ := c.of()
		e.join(ctx, p, false, t)
		return nil
	}
	h := newHost(e.settings, e.log, c, config.HubEmbedded)
	h.ending = e.ending
	e.hub.Store(h)
	h.begin(ctx, false)
	h.serveEditor(e.editor, t)
	h.stayForOthers()
	h.close()
	return nil
}

// join has another process's hub serve the editor; if that goes this process may
// become the hub.
func (e *editorProcess) join(ctx context.Context, p project.Project, daemon bool, t server.Transport) {
	context.AfterFunc(ctx, e.editorGone)
	if h := attachEditor(ctx, e, p, daemon, t); h != nil {
		h.stayForOthers()
		h.close()
	}
}

// hungUp is called at a SIGHUP, which is what an editor sends that exits. If there
// are others only the connection to the editor ends, and it reports true.
func (e *editorProcess) hungUp() (others bool) {
	h := e.hub.Load()
	if h == nil || h.linger.others() == 0 {
		return false
	}
	e.editorGone()
	return true
}
