package host

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
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
// begins with that message, and whether the editor has said that it does not trust the workspace;
// next is nil where the editor has left, or ctx has ended.
func (e *editorProcess) serveCore(ctx context.Context, t server.Transport) (next server.Transport, restricted bool) {
	srv := newCoreServer(e.settings, e.log, handlers.Core{Issues: e.issues}, e.noHub, e.ending)
	var last []byte // a method that needs nothing, which most messages of a burst name
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

// needsDaemon reports whether a message is for the daemon, and notes what an initialize says of
// the workspace. What is asked about the process is for a daemon that runs.
func (e *editorProcess) needsDaemon(methods *server.Server, m *frame.Message, restricted *bool) bool {
	if needsHub(methods, m) {
		return true
	}
	switch m.Kind {
	case frame.Object:
		switch method, _ := frame.Text(m.Method); string(method) {
		case "initialize":
			*restricted = relay.Restricts(m, *restricted)
		case "health", "setLogLevel":
			p, err := e.settings.Project()
			return err == nil && !p.Unlocked()
		}
	case frame.Array:
		var one frame.Message
		for element := range frame.Elements(m.Body) {
			if frame.Parse(element, &one); e.needsDaemon(methods, &one, restricted) {
				return true
			}
		}
	}
	return false
}

// newCoreServer makes a server for an editor while there is no hub: it answers the core methods,
// and refuses the others with the error of noHub. ending, if set, is called when a connection
// begins to end.
func newCoreServer(s *hubprocess.Settings, log *logging.Log, core handlers.Core, noHub func() error, ending func()) *server.Server {
	reg, _ := newRegistry(s, log, core, handlers.Domain{
		Hub:  func(context.Context) (*hub.Hub, error) { return nil, noHub() },
		Stop: func(bool) {},
	})
	return server.New(reg, server.Options{
		Limits: s.Limits, Logger: log.Logger, Grace: handlerGrace, Released: restMemory, ConnEnding: ending, Trace: traceOf(log),
	})
}

// An earlyServer answers messages of an editor, for a relay, while there is no hub. It may be
// used by any goroutine.
type earlyServer struct {
	srv     *server.Server
	serving sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	near   server.Transport
	reader *frame.Reader
	buf    []byte
	marks  int // how many answers were read to their end
}

// newEarlyServer serves until ctx ends.
func newEarlyServer(ctx context.Context, srv *server.Server, log *slog.Logger) *earlyServer {
	near, far := server.Pipe()
	limits := frame.Limits{MaxFrame: 1<<30 - 1, Timeout: -1} // it is our own
	e := &earlyServer{srv: srv, near: near, reader: frame.NewReader(near, frame.LSP, limits)}
	e.serving.Go(func() {
		if err := srv.Serve(ctx, far, frame.LSP); err != nil {
			log.Debug("the core methods are not served any more", "err", err)
		}
	})
	return e
}

func (e *earlyServer) close() {
	e.near.Close()
	e.serving.Wait()
}

// isLong reports whether requests of a method may take long to be answered.
func (e *earlyServer) isLong(method []byte) bool {
	m := e.srv.Method(string(method))
	return m != nil && m.LongRunning
}

// needsHub reports whether a message has a request or a notification that a hub is needed for.
// Everything else is answered the same way by any process: core methods, unknown ones and what
// is no request at all.
func needsHub(methods *server.Server, m *frame.Message) bool {
	switch m.Kind {
	case frame.Object:
		method, ok := frame.Text(m.Method)
		if !ok { // a response is for a hub that has asked
			return m.Method == nil && (m.Result != nil || m.Error != nil)
		}
		return !isCore(string(method)) && methods.Method(string(method)) != nil
	case frame.Array:
		var one frame.Message
		for element := range frame.Elements(m.Body) {
			if frame.Parse(element, &one); needsHub(methods, &one) {
				return true
			}
		}
	}
	return false
}

// answer answers a message for which no hub is needed; answered is false for another one. The
// response is nil if there is none.
func (e *earlyServer) answer(m *frame.Message) (response []byte, answered bool) {
	if needsHub(e.srv, m) {
		return nil, false
	}
	return e.exchange(m.Body), true
}

// refuse answers a message for which no hub can be had.
func (e *earlyServer) refuse(body []byte) (response []byte) { return e.exchange(body) }

// wantsResponse reports whether a message has a response, or more than one in a batch.
func wantsResponse(m *frame.Message) bool {
	switch m.Kind {
	case frame.Object:
		return m.ID != nil || m.Method == nil
	case frame.Array:
		var one frame.Message
		none := true
		for element := range frame.Elements(m.Body) {
			none = false
			if frame.Parse(element, &one); wantsResponse(&one) {
				return true
			}
		}
		return none
	}
	return true
}

// exchange sends a message to the server and returns its response, or nil. A ping behind it
// shows that a message without a response was read.
func (e *earlyServer) exchange(body []byte) (response []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.marks++
	mark := `"duet-early-` + strconv.Itoa(e.marks) + `"`
	e.buf = frame.Append(e.buf[:0], frame.LSP, body)
	e.buf = frame.Append(e.buf, frame.LSP, []byte(`{"jsonrpc":"2.0","id":`+mark+`,"method":"ping"}`))
	if _, err := e.near.Write(e.buf); err != nil {
		return nil // it has ended
	}
	var asked, got frame.Message
	frame.Parse(body, &asked)
	waits, marked := wantsResponse(&asked), false // a long-running request is answered behind the ping
	for (waits || !marked) && e.reader.Next(&got) == nil {
		if string(got.ID) == mark {
			marked = true
			continue
		}
		response, waits = bytes.Clone(got.Body), false
	}
	return response
}
