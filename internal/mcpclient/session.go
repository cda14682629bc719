package mcpclient

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// A session is what was begun with a server.
type session struct {
	ready     chan struct{} // closed when client or err is there
	ending    chan struct{} // closed when it is to end
	ended     chan struct{} // closed when nothing of it is left
	client    *mcp.ClientSession
	err       error
	late      bool // err is that it did not answer
	transport transport

	users int         // guarded by Clients.mu
	idle  *time.Timer // guarded by Clients.mu; nil: it is used, or was never
}

func (s *session) stopIdling() {
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
}

// howEnded says how the server's program has ended by itself, or "". The session has
// ended, or is about to.
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

// A transport is the way to a server.
type transport struct {
	to      mcp.Transport
	program *process.Process // nil: it is no program
	stop    func()           // reading its output

	endedItself bool // the program did, without being asked to; known when it was closed
}

// close ends the program, and waits for that.
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

// transportTo has a server's program started, or is the way to its address.
func transportTo(server Server, start func(process.Spec) (*process.Process, error)) (transport, error) {
	switch server.Type {
	case "http":
		return transport{to: &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: server.client(), DisableStandaloneSSE: true, MaxRetries: -1}}, nil
	case "sse":
		return transport{to: &mcp.SSEClientTransport{Endpoint: server.URL, HTTPClient: server.client()}}, nil
	}
	env := process.NewEnvironment(server.Environment, server.Env)
	path, err := env.Find(server.Command, server.Dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return transport{}, fmt.Errorf("the program %q is no file that may be run", server.Command)
	case err != nil:
		return transport{}, fmt.Errorf("the program %q was not found: install it, or correct the server's command in the configuration", server.Command)
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

// client sends a server's headers with each request, and follows no redirection: they
// are for that address alone.
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

// CloseIdleConnections is called by the client.
func (h headers) CloseIdleConnections() { h.to.CloseIdleConnections() }
