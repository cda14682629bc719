// Package mcptools is Duet as a server of the Model Context Protocol
// (https://modelcontextprotocol.io/specification/2025-11-25): tools by which an agent
// that speaks no more than that asks people through the inbox, and sees what goes on.
package mcptools

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duet-rpc/duet-rpc/client"
)

const instructions = `Duet asks the people at the project for you, in their editor or shell. request_permission asks whether a tool may run (in Claude Code: --permission-prompt-tool), ask_user asks anything. Both wait for as long as it takes. The other tools show what agents do in the project, and change nothing.`

// Options say how tools are served.
type Options struct {
	Version string
	Logger  *slog.Logger
	CWD     string // where the agent works: paths and rules are read there; "": the project's root
}

// Serve serves the agent at the other end of a stream until it goes, or ctx ends. Then
// what it has asked stays open, and the hub's client is closed.
func Serve(ctx context.Context, agent io.ReadWriteCloser, hub *client.Client, o Options) error {
	t := &tools{hub: hub, opts: o, gone: make(chan struct{})}
	s := mcp.NewServer(&mcp.Implementation{Name: "duet", Title: "Duet", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Logger: slog.New(slog.DiscardHandler),
	})
	t.addQuestions(s)
	t.addViews(s)
	defer context.AfterFunc(ctx, t.leave)()
	err := s.Run(ctx, &mcp.IOTransport{Reader: &watched{agent, t.leave}, Writer: agent, MaxLineLength: mostLine})
	t.leave()
	hub.Close() // not cancelled: what was asked is kept
	t.asking.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// mostLine is how long a message of an agent may be, in bytes.
const mostLine = 32 << 20

// tools are what an agent may call.
type tools struct {
	hub  *client.Client
	opts Options

	gone    chan struct{} // closed when the agent has gone
	leaving sync.Once
	asking  sync.WaitGroup // requests of questions
}

// leave says that the agent has gone.
func (t *tools) leave() { t.leaving.Do(func() { close(t.gone) }) }

// watched is a stream of which it is known that it has ended, before who reads it knows.
type watched struct {
	io.ReadWriteCloser
	ended func()
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadWriteCloser.Read(b)
	if err != nil {
		w.ended()
	}
	return n, err
}
