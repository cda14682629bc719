package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	// linkQueue is small: when it is full, a report blocks, and with it the agent.
	linkQueue    = 1 << 20
	linkRequests = 4096
	linkPatience = 365 * 24 * time.Hour // reports wait as long as the hub lives
)

// LinkOptions returns the limits of the link, for either end of it.
func LinkOptions(logger *slog.Logger) server.Options {
	return server.Options{
		Limits:         frame.Limits{MaxFrame: catalogrpc.MaxMessage, Timeout: -1},
		Logger:         logger,
		MaxLine:        catalogrpc.MaxMessage,
		MaxQueued:      linkQueue,
		MaxLongRunning: linkRequests,
		CallTimeout:    linkPatience,
	}
}

// Inherited returns the link that the hub passed in the descriptor named by
// [catalogrpc.FDVariable]. It can be called once: it closes the descriptor. Child processes do
// not inherit the connection.
func Inherited() (net.Conn, error) {
	text := os.Getenv(catalogrpc.FDVariable)
	if text == "" {
		return nil, errors.New(catalogrpc.FDVariable + " is not set: the executor is started by the hub, not by hand")
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s is %q: it must be the number of a descriptor above 2", catalogrpc.FDVariable, text)
	}
	f := os.NewFile(uintptr(fd), "hub")
	defer f.Close()
	conn, err := net.FileConn(f) // a copy with close-on-exec
	if err != nil {
		return nil, fmt.Errorf("descriptor %d, which %s names, is no socket: %w", fd, catalogrpc.FDVariable, err)
	}
	return conn, nil
}

// Serve runs an executor for the hub at the other end of conn until the hub shuts it down, ctx
// ends, or the link breaks. When it returns, all agents and terminals have ended: if the hub is
// gone they are killed at once. It sets the options EditorFiles and Exit.
func Serve(ctx context.Context, conn net.Conn, opts Options) error {
	// The hub may call before the executor can answer, which needs the link.
	gated := &gatedConn{Conn: conn, ready: make(chan struct{})}
	var link server.Transport = gated
	if c, ok := conn.(*net.UnixConn); ok {
		link = gatedSender{gated, socket.Sender{UnixConn: c}}
	}
	hub := &struct {
		catalog.Daemon
		catalog.EditorFiles
	}{}
	var rpc *server.Conn
	opts.EditorFiles, opts.Exit = hub, func() { rpc.End() }
	x := New(hub, opts)
	reg := server.NewRegistry()
	catalogrpc.RegisterExecutor(reg, x)
	rpc = server.New(reg, LinkOptions(opts.Logger)).Connect(ctx, link, frame.NDJSON)
	hub.Daemon, hub.EditorFiles = catalogrpc.Daemon(rpc), catalogrpc.EditorFiles(rpc)
	close(gated.ready)

	<-rpc.Stopping()
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	x.Close(dead)
	<-rpc.Done()
	return nil
}

// gatedSender is a gatedConn that can send terminals' descriptors.
type gatedSender struct {
	*gatedConn
	files socket.Sender
}

func (c gatedSender) WriteFile(p []byte, f *os.File) (int, error) { return c.files.WriteFile(p, f) }

// gatedConn blocks reads until ready is closed.
type gatedConn struct {
	net.Conn
	ready chan struct{}
}

func (c *gatedConn) Read(p []byte) (int, error) {
	<-c.ready
	return c.Conn.Read(p)
}
