package host

import (
	"bytes"
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/server"
)

// isCore reports whether a method's answer is the same with or without a hub.
func isCore(method string) bool {
	switch method {
	case "initialize", "ping", "health", "echo", "version", "listMethods", "describeMethods", "rpc.discover", "setLogLevel", "shutdown", "exit",
		"test.panic", "test.fail":
		return true
	}
	return false
}

// serveCore serves the editor until a message needs the daemon. It returns the transport, which
// begins with that message, and whether the editor does not trust the workspace. next is nil if
// the editor has left, or ctx has ended.
func (e *editorProcess) serveCore(ctx context.Context, t server.Transport) (next server.Transport, restricted bool) {
	srv := e.coreServer(e.log, e.ending)
	var last []byte // a method that needs no daemon, which most messages of a burst name
	next, err := srv.ServeUntil(ctx, t, frame.LSP, func(m *frame.Message) bool {
		if m.Kind == frame.Object && last != nil && bytes.Equal(m.Method, last) {
			return false
		}
		if e.needsDaemon(srv, m, &restricted) {
			return true
		}
		switch string(m.Method) {
		case `"ping"`, `"echo"`, `"version"`:
			last = bytes.Clone(m.Method)
		}
		return false
	})
	if err != nil {
		e.log.Error("the connection failed", "err", err)
	}
	return next, restricted
}

// needsDaemon reports whether a message is for the daemon, and records the workspace trust from
// an initialize. A running daemon answers requests about the process.
func (e *editorProcess) needsDaemon(methods *server.Server, m *frame.Message, restricted *bool) bool {
	if needsHub(methods, m) {
		return true
	}
	for one := range m.Objects() {
		switch method, _ := rawjson.Text(one.Method); string(method) {
		case "initialize":
			*restricted = relay.Restricts(one, *restricted)
		case "health", "setLogLevel":
			if p, err := e.settings.Project(); err == nil && !p.Unlocked() {
				return true
			}
		}
	}
	return false
}

// coreServer makes a server for an editor while there is no hub: it answers the core methods,
// and refuses the others with the reason. ending, if set, is called when a connection begins to
// end.
func (e *editorProcess) coreServer(log *logging.Log, ending func()) *server.Server {
	reg, _ := newRegistry(e.settings, log, handlers.Core{Issues: e.issues}, handlers.Domain{
		Hub:  func(context.Context) (*hub.Hub, error) { return nil, e.noHub() },
		Stop: func(bool) {},
	})
	return server.New(reg, server.Options{
		Limits: e.settings.Limits, Logger: log.Logger, Grace: handlerGrace, Trace: traceOf(log),
		MethodHint: handlers.MethodHint, Observer: server.Observer{Released: RestMemory, Ending: ending},
	})
}

// needsHub reports whether a message contains a request or a notification that needs a hub. Any
// process gives the same answer to all others: core methods and unknown ones. A response is for
// a hub that has gone.
func needsHub(methods *server.Server, m *frame.Message) bool {
	for one := range m.Objects() {
		if method, ok := rawjson.Text(one.Method); ok && !isCore(string(method)) &&
			methods.Method(string(method)) != nil {
			return true
		}
	}
	return false
}

// An earlyServer answers an editor, for a relay, while there is no hub. It may be used by any
// goroutine.
type earlyServer struct {
	*server.Server
	ctx context.Context
}

// isLong reports whether requests of a method may take long.
func (s earlyServer) isLong(method []byte) bool {
	m := s.Method(string(method))
	return m != nil && m.LongRunning && !m.Releasing // while one waits for git, the hub answers
}

// answer answers a message that needs no hub; answered is false for one that does. The response
// is nil for a notification.
func (s earlyServer) answer(m *frame.Message) (response []byte, answered bool) {
	if needsHub(s.Server, m) {
		return nil, false
	}
	return s.exchange(m.Body), true
}

// exchange answers a message; if it needs a hub, with the reason why there is none. The response
// is nil for a notification.
func (s earlyServer) exchange(body []byte) (response []byte) {
	t := oneMessage{Reader: bytes.NewReader(frame.Append(nil, frame.LSP, body)), Writer: new(bytes.Buffer)}
	limits := frame.Limits{MaxFrame: 1<<30 - 1} // the message is our own
	var m frame.Message
	if s.Serve(s.ctx, t, frame.LSP) != nil || frame.NewReader(t.Writer, frame.LSP, limits).Next(&m) != nil {
		return nil
	}
	return m.Body
}

// oneMessage is a transport that delivers one message of the peer and then ends.
type oneMessage struct {
	*bytes.Reader
	Writer *bytes.Buffer
}

func (m oneMessage) Write(p []byte) (int, error)    { return m.Writer.Write(p) }
func (oneMessage) Close() error                     { return nil }
func (oneMessage) SetReadDeadline(time.Time) error  { return nil }
func (oneMessage) SetWriteDeadline(time.Time) error { return nil }
