// Package mcp handles the MCP (Model Context Protocol) servers of agents. It tests them when an
// agent starts, reports failing ones in the session, and calls their tools for clients.
package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// This file calls tools of MCP servers
// (https://modelcontextprotocol.io/specification/2025-11-25/server/tools). A server is started or
// connected on the first call, kept for further calls, and ended when idle. The caller checks
// permission.

const (
	startTime = time.Minute     // some download themselves first
	idleTime  = time.Minute     // for further calls
	endTime   = 2 * time.Second // for a server that is to end
)

// ClientsOptions configure Clients. All fields are optional.
type ClientsOptions struct {
	Logger  *slog.Logger
	Version string
	// Started is called before a program gets its first request, and Ended after its end. If this
	// process dies, the mark identifies the program.
	Started func(mark string, pid int)
	Ended   func(mark string)
	// Start limits the start of a server, and Idle is how long it is kept without calls. Default: a
	// minute each.
	Start, Idle time.Duration
	// End limits each step of a server's end. Default: two seconds.
	End time.Duration
}

// Server is a server definition, with the directory and environment of its program.
type Server struct {
	catalog.MCPServer
	Dir         string
	Environment map[string]string
}

// CallError is a server's error response, or the reason why it did not answer.
type CallError struct {
	Server  string
	Message string
	Answer  json.RawMessage // its error object with code, message and data; absent: no answer
}

func (e *CallError) Error() string { return e.Server + ": " + e.Message }

// Tools are the tools of a server.
type Tools struct {
	Name, Version string // as the server reports
	List          []json.RawMessage
}

// Clients holds the connections to servers. Its methods may be called from any goroutine.
type Clients struct {
	opts   ClientsOptions
	ctx    context.Context
	cancel context.CancelFunc
	work   background.Group

	mu       sync.Mutex // guards the fields below
	sessions map[definition]*session
	runner   *process.Runner // nil until a program starts
}

// definition is a hash of a server definition, which may contain secrets.
type definition [sha256.Size]byte

// NewClients returns Clients. Close them after use.
func NewClients(ctx context.Context, opts ClientsOptions) *Clients {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Started == nil {
		opts.Started, opts.Ended = func(string, int) {}, func(string) {}
	}
	opts.Start, opts.Idle, opts.End = cmp.Or(opts.Start, startTime), cmp.Or(opts.Idle, idleTime), cmp.Or(opts.End, endTime)
	c := &Clients{opts: opts, sessions: make(map[definition]*session)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// Close ends all servers. Pending calls fail.
func (c *Clients) Close(ctx context.Context) error {
	c.cancel()
	c.mu.Lock()
	runner := c.runner
	for key, s := range c.sessions {
		delete(c.sessions, key)
		s.stopIdling()
	}
	c.mu.Unlock()
	if runner != nil {
		runner.Kill()
	}
	err := c.work.Close(ctx)
	if runner != nil && err == nil {
		runner.Close()
	}
	return err
}

// Connected reports whether a server is started or connected.
func (c *Clients) Connected(s Server) bool {
	key, err := s.definition()
	c.mu.Lock()
	defer c.mu.Unlock()
	return err == nil && c.sessions[key] != nil
}

// Tools lists the tools of a server. The error is a [*CallError], or that of ctx.
func (c *Clients) Tools(ctx context.Context, server Server) (tools Tools, err error) {
	err = c.with(ctx, server, func(ctx context.Context, s *mcp.ClientSession) error {
		if info := s.InitializeResult(); info != nil && info.ServerInfo != nil {
			tools.Name, tools.Version = info.ServerInfo.Name, info.ServerInfo.Version
		}
		tools.List, err = listTools(ctx, s)
		return err
	})
	return tools, err
}

// Limits of a tool list. A server may return another page for each request.
const (
	mostPages     = 100
	mostTools     = 1000
	mostToolBytes = 4 << 20
)

// errTooMany means that a tool list exceeds these limits. The server keeps running.
var errTooMany = errors.New("its list of tools is refused")

// listTools reads all pages of the list.
func listTools(ctx context.Context, s *mcp.ClientSession) (list []json.RawMessage, err error) {
	cursor, size := "", 0
	for range mostPages {
		page, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, tool := range page.Tools {
			raw, err := json.Marshal(tool)
			if err != nil {
				return nil, err
			}
			list = append(list, raw)
			if size += len(raw); size > mostToolBytes {
				return nil, fmt.Errorf("%w: it has more than %d MiB", errTooMany, mostToolBytes>>20)
			}
			if len(list) > mostTools {
				return nil, fmt.Errorf("%w: it has more than %d tools", errTooMany, mostTools)
			}
		}
		switch page.NextCursor {
		case "":
			return list, nil
		case cursor:
			return nil, fmt.Errorf("%w: the server gives the same cursor twice", errTooMany)
		}
		cursor = page.NextCursor
	}
	return nil, fmt.Errorf("%w: it has more than %d pages", errTooMany, mostPages)
}

// Call calls a tool of a server. arguments is an object or absent. A failing tool is a result that
// says so. The error is a [*CallError], or that of ctx.
func (c *Clients) Call(ctx context.Context, server Server, tool string, arguments json.RawMessage) (result json.RawMessage, err error) {
	err = c.with(ctx, server, func(ctx context.Context, s *mcp.ClientSession) error {
		p := &mcp.CallToolParams{Name: tool}
		if len(arguments) > 0 {
			p.Arguments = arguments
		}
		r, err := s.CallTool(ctx, p)
		if err != nil {
			return err
		}
		result, err = json.Marshal(r)
		return err
	})
	return result, err
}

func (s Server) definition() (d definition, err error) {
	text, err := json.Marshal(s)
	return sha256.Sum256(text), err
}

// with calls do with a session of a server, and starts one if necessary.
func (c *Clients) with(ctx context.Context, server Server, do func(context.Context, *mcp.ClientSession) error) error {
	key, err := server.definition()
	if err != nil {
		return err
	}
	s, err := c.use(key, server)
	if err != nil {
		return err
	}
	defer c.release(key, s)
	select {
	case <-s.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.err == nil {
		calling, stop := context.WithCancel(ctx)
		defer context.AfterFunc(c.ctx, stop)()
		err = do(calling, s.client)
		stop()
	} else {
		err = s.err
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case c.ctx.Err() != nil:
		return &CallError{Server: server.Name, Message: "duet-rpc is ending"}
	case !errors.As(err, new(*jsonrpc.Error)) && !errors.Is(err, errTooMany): // the server is gone: the next call starts it again
		c.drop(key, s)
		if text := s.howEnded(); text != "" {
			err = errors.New("its program " + text)
		}
	}
	return server.explain(err)
}

// explain converts an error for clients.
func (s Server) explain(err error) *CallError {
	e := &CallError{Server: s.Name, Message: err.Error()}
	if answered, ok := errors.AsType[*jsonrpc.Error](err); ok {
		e.Message = answered.Message
		e.Answer, _ = json.Marshal(answered)
		if !json.Valid(e.Answer) {
			e.Answer = nil
		}
	}
	e.Message = withoutSecrets(e.Message, s.MCPServer, s.Environment)
	e.Answer = json.RawMessage(withoutSecrets(string(e.Answer), s.MCPServer, s.Environment))
	if !json.Valid(e.Answer) {
		e.Answer = nil
	}
	return e
}

// use returns a session of a server; the caller must release it.
func (c *Clients) use(key definition, server Server) (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[key]
	if s == nil {
		s = &session{ready: make(chan struct{}), ending: make(chan struct{}), ended: make(chan struct{})}
		if c.ctx.Err() != nil || !c.work.Go(func() { c.serve(key, s, server) }) {
			return nil, &CallError{Server: server.Name, Message: "duet-rpc is ending"}
		}
		c.sessions[key] = s
	}
	s.users++
	s.stopIdling()
	return s, nil
}

// release returns a session, which ends after the idle time.
func (c *Clients) release(key definition, s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.users--; s.users == 0 && c.sessions[key] == s {
		s.idle = time.AfterFunc(c.opts.Idle, func() { c.endIdle(key, s) })
	}
}

func (c *Clients) endIdle(key definition, s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.users == 0 && c.sessions[key] == s {
		delete(c.sessions, key)
		close(s.ending)
	}
}

// drop makes the next call start another session.
func (c *Clients) drop(key definition, s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[key] == s {
		delete(c.sessions, key)
		s.stopIdling()
		close(s.ending)
	}
}

// start starts a program.
func (c *Clients) start(spec process.Spec) (*process.Process, error) {
	c.mu.Lock()
	if c.runner == nil {
		c.runner = process.NewRunner(c.ctx, c.opts.Logger, process.Grace{Interrupt: c.opts.End, Terminate: c.opts.End})
	}
	runner := c.runner
	c.mu.Unlock()
	p, err := runner.Start(spec)
	if err == nil {
		c.opts.Started(p.Mark, p.PID)
	}
	return p, err
}

// serve starts a session, and ends it when requested or when the server ends.
func (c *Clients) serve(key definition, s *session, server Server) {
	ctx, cancel := context.WithCancel(c.ctx) // also ends the reading of a stream
	defer cancel()
	late := time.AfterFunc(c.opts.Start, cancel)
	s.transport, s.err = transportTo(server, c.start)
	if s.err == nil {
		client := mcp.NewClient(&mcp.Implementation{Name: "duet-rpc", Version: cmp.Or(c.opts.Version, "0")},
			&mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}, Logger: slog.New(slog.DiscardHandler)})
		s.client, s.err = client.Connect(ctx, s.transport.to, nil)
		if s.err != nil && ctx.Err() != nil && c.ctx.Err() == nil {
			s.err, s.late = fmt.Errorf("it does not answer within %v", c.opts.Start), true
		}
	}
	late.Stop()
	failed := s.err != nil
	close(s.ready)
	if !failed {
		closed := make(chan struct{})
		go func() { // ends when the session is closed below
			_ = s.client.Wait()
			close(closed)
		}()
		select {
		case <-closed:
		case <-s.ending:
		case <-ctx.Done():
		}
		tooLong := time.AfterFunc(c.opts.End, cancel)
		_ = s.client.Close() // for an address, ends the session on the server
		<-closed
		tooLong.Stop()
	}
	c.drop(key, s)
	s.transport.close(c.opts.End, c.opts.Ended)
	close(s.ended)
}

// session is a connection to a server.
type session struct {
	ready     chan struct{} // closed when client or err is set
	ending    chan struct{} // closed to request the end
	ended     chan struct{} // closed after the end
	client    *mcp.ClientSession
	err       error
	late      bool // err is a timeout
	transport transport

	users int         // guarded by Clients.mu
	idle  *time.Timer // guarded by Clients.mu; nil: in use, or never used
}

func (s *session) stopIdling() {
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
}

// howEnded describes how the server's program ended by itself, or returns "". The session has ended
// or is about to.
func (s *session) howEnded() string {
	if s.transport.program == nil {
		return ""
	}
	<-s.ended
	if s.late || !s.transport.endedItself {
		return ""
	}
	return s.transport.program.ExitText()
}

// transport is the connection to a server.
type transport struct {
	to      mcp.Transport
	program *process.Process // nil for an address
	stop    func()           // stops reading its output

	endedItself bool // the program ended unrequested; set when closed
}

// close ends the program and waits for its end.
func (t *transport) close(within time.Duration, ended func(mark string)) {
	p := t.program
	if p == nil {
		return
	}
	p.CloseInput()
	if t.endedItself = p.Wait(within); !t.endedItself {
		p.Terminate()
	}
	t.stop()
	ended(p.Mark)
}

// transportTo starts a server's program, or returns the transport to its address.
func transportTo(server Server, start func(process.Spec) (*process.Process, error)) (transport, error) {
	switch server.Type {
	case "http":
		return transport{to: &mcp.StreamableClientTransport{
			Endpoint: server.URL, HTTPClient: server.client(), DisableStandaloneSSE: true, MaxRetries: -1,
		}}, nil
	case "sse":
		return transport{to: &mcp.SSEClientTransport{Endpoint: server.URL, HTTPClient: server.client()}}, nil
	}
	env := process.NewEnvironment(server.Environment, server.Env)
	path, err := env.Find(server.Command, server.Dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return transport{}, fmt.Errorf("the program %q is not an executable file", server.Command)
	case err != nil:
		return transport{}, fmt.Errorf("the program %q was not found: install it, or correct the server's command in the configuration",
			server.Command)
	}
	p, err := start(process.Spec{Path: path, Argv: append([]string{server.Command}, server.Args...), CWD: server.Dir, Env: env, Stdin: true})
	if err != nil {
		return transport{}, fmt.Errorf("it could not be started: %w", err)
	}
	out, stop := p.Output()
	return transport{to: &mcp.IOTransport{Reader: io.NopCloser(out), Writer: input{p}}, program: p, stop: stop}, nil
}

// input is the input of a program.
type input struct{ *process.Process }

func (i input) Close() error {
	i.CloseInput()
	return nil
}

// client returns an HTTP client that sends a server's headers with each request. It follows no
// redirects, because the headers are for that address only.
func (s Server) client() *http.Client {
	return &http.Client{
		Transport:     headers{s.Headers, &http.Transport{Proxy: http.ProxyFromEnvironment}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type headers struct {
	values map[string]string
	to     *http.Transport
}

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(h.values) > 0 {
		r = r.Clone(r.Context())
		for name, value := range h.values {
			r.Header.Set(name, value)
		}
	}
	return h.to.RoundTrip(r)
}

// CloseIdleConnections implements the interface that http.Client looks for.
func (h headers) CloseIdleConnections() { h.to.CloseIdleConnections() }
