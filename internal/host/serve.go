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
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// However it ends, the process is gone within 2 s: running handlers have the
// grace, then the log the rest.
const (
	handlerGrace = 1400 * time.Millisecond
	hubGrace     = 900 * time.Millisecond // for executors to be gone
	logGrace     = 400 * time.Millisecond

	// EndWithin is how long a process takes at most to end after a signal.
	EndWithin = 1900 * time.Millisecond
)

// calmMemory is how much memory the process may have before it collects
// garbage more eagerly than it otherwise would, in bytes. It is no limit.
const calmMemory = 48 << 20

// Serve serves the editor that started this process until it goes or a
// signal comes.
func Serve(ctx context.Context, s *Settings) error {
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

	editor, editorGone := context.WithCancel(context.Background())
	defer editorGone()
	others := &others{editorGone: editorGone}
	ctx, stop := untilSignal(ctx, log, others.goOn)
	defer stop()
	if WantsDaemon(s) {
		if p, err := s.Project(); err == nil {
			context.AfterFunc(ctx, editorGone)
			return attachEditor(ctx, editor, s, log, p, true, transport, others)
		}
	}
	c := claimProject(s)
	if c.held() {
		log.Info("another process is this project's hub; attaching to it", "hub", c.why())
		if len(s.Listen) > 0 {
			log.Warn("--listen has no effect here: that process listens")
		}
		p, _ := c.of()
		context.AfterFunc(ctx, editorGone)
		return attachEditor(ctx, editor, s, log, p, false, transport, others)
	}
	h := newHost(s, log, c, config.HubEmbedded)
	others.of.Store(h)
	h.begin(ctx, false)
	h.serveEditor(editor, transport)
	h.stayForOthers()
	h.close()
	log.Info("stopped")
	return nil
}

// others are those beside its editor whom this process serves as the hub.
type others struct {
	of         atomic.Pointer[host] // nil while it is not the hub
	editorGone func()
}

// goOn is told of a SIGHUP, which is what an editor sends that exits. If there
// are others only the connection to the editor ends, and it reports true.
func (o *others) goOn() bool {
	h := o.of.Load()
	if h == nil || h.linger.others() == 0 {
		return false
	}
	o.editorGone()
	return true
}
