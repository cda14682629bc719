package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds each wait of a test.
const soon = time.Minute

// wire is the raw end of a connection, for an editor or a simulated hub.
type wire struct {
	t      testing.TB
	end    server.Transport
	reader *frame.Reader
}

func newWire(t testing.TB, end server.Transport) *wire {
	return &wire{t, end, frame.NewReader(end, frame.LSP, frame.Limits{MaxFrame: 64 << 20})}
}

// send sends messages, each in its own frame, in one write.
func (w *wire) send(messages ...string) {
	w.t.Helper()
	_, err := w.end.Write(framed(messages...))
	require.NoError(w.t, err)
}

func framed(messages ...string) (out []byte) {
	for _, m := range messages {
		out = frame.Append(out, frame.LSP, []byte(m))
	}
	return out
}

// next returns the next message.
func (w *wire) next() string {
	w.t.Helper()
	var m frame.Message
	require.NoError(w.t, w.reader.Next(&m))
	return string(m.Body)
}

func (w *wire) ask(message string) string {
	w.t.Helper()
	w.send(message)
	return w.next()
}

// ended requires that the other side closes without a further message.
func (w *wire) ended() {
	w.t.Helper()
	var m frame.Message
	err := w.reader.Next(&m)
	require.Error(w.t, err, "%s", m.Body)
	require.False(w.t, errors.As(err, new(*frame.Refusal)), "%v", err)
}

// askUntilServed repeats a request until the answer is not hub_lost: the relay may notice a lost
// hub late. It skips events.
func (w *wire) askUntilServed(message string) string {
	w.t.Helper()
	w.send(message)
	for {
		switch m := w.next(); {
		case strings.Contains(m, `"hub_lost"`):
			w.send(message)
		case !strings.Contains(m, `"method"`):
			return m
		}
	}
}

// setting is a relay between an editor and simulated hubs.
type setting struct {
	*wire     // the editor's end
	log       *testkit.Text
	hubs      chan server.Transport // the results of Connect, one after the other
	connected chan struct{}         // one value for each call of Connect
	states    chan string
	ran       chan error
	cancel    context.CancelFunc
}

// start starts a relay whose connections are pipes in memory. The functions change its options.
func start(t testing.TB, change ...func(*relay.Options)) *setting {
	s := &setting{
		log: &testkit.Text{}, hubs: make(chan server.Transport, 100), connected: make(chan struct{}, 1000),
		states: make(chan string, 1000), ran: make(chan error, 1),
	}
	opts := relay.Options{
		Connect: func(ctx context.Context) (server.Transport, error) {
			select {
			case s.connected <- struct{}{}:
			default:
			}
			select {
			case hub := <-s.hubs:
				return hub, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		Logger: slog.New(stateHandler{slog.NewTextHandler(s.log, nil), s.states}),
	}
	for _, f := range change {
		f(&opts)
	}
	ours, theirs := server.Pipe()
	s.wire = newWire(t, theirs)
	s.run(ours, opts)
	return s
}

// stateHandler is a log that also reports the states of a relay.
type stateHandler struct {
	slog.Handler
	states chan<- string
}

func (stateHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h stateHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "state" {
			h.states <- a.Value.String()
		}
		return true
	})
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (s *setting) run(editor server.Transport, opts relay.Options) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ran <- relay.New(editor, opts).Run(ctx)
	}()
	s.t.Cleanup(func() {
		s.end.Close()
		cancel()
		<-done
	})
}

// hub lets the relay connect to a simulated hub.
func (s *setting) hub() *wire {
	ours, theirs := server.Pipe()
	s.hubs <- ours
	s.t.Cleanup(func() { theirs.Close() })
	return newWire(s.t, theirs)
}

// serve lets the relay connect to a server. It returns a function that ends the server like a kill.
func (s *setting) serve(srv *server.Server) (kill func()) {
	ours, theirs := server.Pipe()
	s.hubs <- ours
	return serveOn(s.t, srv, theirs)
}

func serveOn(t testing.TB, srv *server.Server, end server.Transport) (kill func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ctx, end, frame.LSP)
	}()
	t.Cleanup(func() {
		end.Close()
		cancel()
		<-done
	})
	return func() { end.Close() }
}

// await waits for a state.
func (s *setting) await(state string) {
	s.t.Helper()
	deadline := time.After(soon)
	for {
		select {
		case got := <-s.states:
			if got == state {
				return
			}
		case <-deadline:
			require.FailNow(s.t, "the relay never became "+state)
		}
	}
}

// returned returns the result of Run.
func (s *setting) returned() error {
	s.t.Helper()
	select {
	case err := <-s.ran:
		s.ran <- err
		return err
	case <-time.After(soon):
		require.FailNow(s.t, "Run did not return")
		return nil
	}
}

// sockets returns a connection over a Unix socket.
func sockets(t testing.TB) (ours, theirs *net.UnixConn) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	c, err := net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	ours, theirs = c.(*net.UnixConn), (<-accepted).(*net.UnixConn)
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
	})
	return ours, theirs
}

// standard returns a server with the methods that most tests need. gate waits until open is closed,
// or its context ends.
func standard(open chan struct{}) *server.Server {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil })
	server.Handle(reg, "ping", func(context.Context, struct{}) (string, error) { return "pong", nil })
	server.HandleRaw(reg, "gate", func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		select {
		case <-open:
			return params, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, server.LongRunning())
	server.HandleRaw(reg, "exit", func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }, server.Final())
	server.Handle(reg, "shutdown", func(context.Context, struct {
		Reason string `json:"reason,omitempty"`
	},
	) (string, error) {
		return "bye", nil
	}, server.Final())
	return server.New(reg, server.Options{MaxLongRunning: 1000})
}

// assertLost asserts that a message answers a lost request.
func assertLost(t testing.TB, id, message string) {
	t.Helper()
	assert.Equal(t, id, string(testkit.JSONMember(t, message, "id")))
	assert.Equal(t, "-32042", string(testkit.JSONMember(t, message, "error.code")))
	assert.JSONEq(t, `{"kind":"hub_lost","retry":true}`, string(testkit.JSONMember(t, message, "error.data")))
	assert.Contains(t, string(testkit.JSONMember(t, message, "error.message")), "sent again")
}

func request(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

func response(id any, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":%s}`, id, result)
}
