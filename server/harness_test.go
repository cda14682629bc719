package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must returns the value of a call that may not fail: must(f(x))(t).
func must[T any](value T, err error) func(t testing.TB, why ...any) T {
	return func(t testing.TB, why ...any) T {
		t.Helper()
		require.NoError(t, err, why...)
		return value
	}
}

// failureOf returns the error of a call that has to fail.
func failureOf[T any](_ T, err error) error { return err }

// client is the raw other end of a served connection.
type client struct {
	t       *testing.T
	end     server.Transport
	framing frame.Framing
	reader  *frame.Reader
	served  chan error // the result of Serve
	log     *testkit.Text
	cancel  context.CancelFunc
}

// connect serves a connection in memory and returns the other end of it.
func connect(t *testing.T, reg *server.Registry, f frame.Framing, opts server.Options) *client {
	c := &client{t: t, framing: f, served: make(chan error, 1), log: &testkit.Text{}}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	opts.MethodHint = "listMethods lists the methods"
	return c.attach(server.New(reg, opts))
}

func (c *client) attach(srv *server.Server) *client {
	var ours server.Transport
	ours, c.end = server.Pipe()
	c.reader = frame.NewReader(c.end, c.framing, frame.Limits{MaxFrame: 64 << 20})
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go func() { c.served <- srv.Serve(ctx, ours, c.framing) }()
	c.t.Cleanup(func() {
		cancel()
		c.end.Close()
	})
	return c
}

// send sends messages, each in its own frame.
func (c *client) send(messages ...string) {
	c.t.Helper()
	var out []byte
	for _, m := range messages {
		out = frame.Append(out, c.framing, []byte(m))
	}
	must(c.end.Write(out))(c.t)
}

// next returns the next message from the server.
func (c *client) next() string {
	c.t.Helper()
	var m frame.Message
	require.NoError(c.t, c.reader.Next(&m))
	return string(m.Body)
}

// ask sends a message and returns the server's next message.
func (c *client) ask(message string) string {
	c.t.Helper()
	c.send(message)
	return c.next()
}

// silent requires that message gets no response: the response to a later request comes first.
func (c *client) silent(message string) {
	c.t.Helper()
	c.send(message)
	require.JSONEq(c.t, `{"jsonrpc":"2.0","id":"marker","error":{"code":-32601,"message":"Method not found: marker (listMethods lists the methods)","data":{"method":"marker"}}}`,
		c.ask(`{"jsonrpc":"2.0","id":"marker","method":"marker"}`))
}

// close ends the client's end and returns the result of Serve.
func (c *client) close() error {
	c.end.Close()
	return <-c.served
}

// errorOf returns the error in a response.
func errorOf(t *testing.T, response string) (e struct {
	Code    int
	Message string
	Data    map[string]any
},
) {
	t.Helper()
	var r struct{ Error json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(response), &r))
	require.NotNil(t, r.Error, "not an error: %s", response)
	require.NoError(t, json.Unmarshal(r.Error, &e))
	return e
}

// gate is a long-running method that tests open from outside.
type gate struct {
	entered chan string   // the name of a request
	open    chan struct{} // close it to let all requests end
}

type gateParams struct {
	Name string `json:"name,omitempty"`
}

func addGate(reg *server.Registry) *gate {
	g := &gate{entered: make(chan string, 1000), open: make(chan struct{})}
	server.Handle(reg, "gate", func(ctx context.Context, p gateParams) (string, error) {
		g.entered <- p.Name
		select {
		case <-g.open:
			return "open", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}, server.LongRunning())
	return g
}

// standard returns a registry with the methods that most tests need.
func standard() *server.Registry {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
		return params, nil
	})
	server.Handle(reg, "fail", func(context.Context, struct{}) (int, error) {
		return 0, errors.New("secret: /home/someone")
	})
	server.Handle(reg, "teapot", func(context.Context, struct{}) (int, error) {
		return 0, server.NewError(-32050, "I am a teapot", map[string]string{"kind": "teapot"})
	})
	server.Handle(reg, "panic", func(context.Context, struct{}) (int, error) { panic("secret") })
	server.Handle(reg, "end", func(ctx context.Context, _ struct{}) (string, error) {
		server.ConnFrom(ctx).End()
		return "ending", nil
	})
	return reg
}
