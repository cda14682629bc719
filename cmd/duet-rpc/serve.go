package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

// However it ends, the process is gone within 2 s (seed 004's sibling on the
// lifecycle): running handlers have the grace, then the log the rest.
const (
	handlerGrace = 1400 * time.Millisecond
	domainGrace  = 900 * time.Millisecond // for executors to be gone
	logGrace     = 400 * time.Millisecond
	lastResort   = 1900 * time.Millisecond
)

// calmMemory is how much memory the process may have before it collects
// garbage more eagerly than it otherwise would, in bytes. It is no limit.
const calmMemory = 48 << 20

// serveStdio serves the editor that started this process until it goes or a
// signal comes.
func serveStdio(s *settings) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(calmMemory)
	}
	transport, err := server.Stdio()
	if err != nil {
		return fmt.Errorf("cannot serve on standard input and output: %w", err)
	}
	// A peer, or a reader of the log, that closed its end is seen by the write
	// that fails. Notify, not Ignore: what is ignored stays ignored in child
	// processes.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	log := logging.Open(logging.Options{
		Level: s.logLevel.Slog(), Path: os.Getenv("DUET_RPC_LOG"), NoColor: s.noColor,
	})
	defer log.Close(logGrace)
	log.Info("started", "version", buildVersion(), "pid", os.Getpid(), "level", s.logLevel.String(), "sink", log.Sink)

	ctx, stop := untilSignal(log)
	defer stop()
	if wantsDaemon(s) {
		if p, err := findProject(s); err == nil {
			return attachEditor(ctx, s, log, p, true, transport)
		}
	}
	c := claimProject(s)
	if c.held() {
		log.Info("another process is this project's hub; attaching to it", "hub", c.err)
		if len(s.listen) > 0 {
			log.Warn("--listen has no effect here: that process listens")
		}
		return attachEditor(ctx, s, log, c.project, false, transport)
	}
	h := newHost(ctx, s, log, c)
	h.begin()
	h.serveEditor(transport)
	h.linger()
	h.close()
	log.Info("stopped")
	return nil
}

// untilSignal is a context that ends at the first signal that ends a process;
// a second one ends the process at once.
func untilSignal(log *logging.Log) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case sig := <-signals:
			log.Info("ending", "signal", sig.String())
			time.AfterFunc(lastResort, func() { os.Exit(0) })
			cancel()
		case <-ctx.Done():
			return
		}
		<-signals
		os.Exit(0)
	}()
	return ctx, cancel
}
