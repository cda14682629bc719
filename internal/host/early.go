package host

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

// needsNoHub are the methods whose answer is the same whoever gives it.
func needsNoHub(method string) bool {
	switch method {
	case "initialize", "ping", "health", "echo", "version", "listMethods", "describeMethods", "rpc.discover", "shutdown", "exit":
		return true
	}
	return false
}

// An earlyServer answers an attached editor while there is no hub. It is used
// by one goroutine at a time.
type earlyServer struct {
	host   *host
	near   server.Transport
	reader *frame.Reader
	buf    []byte
}

// newEarlyServer serves the methods of a host that is never opened, until ctx
// ends. Its health tells of trouble, if there is any.
func newEarlyServer(ctx context.Context, s *hubprocess.Settings, log *logging.Log, trouble func() string) *earlyServer {
	h := newHost(s, log.WithoutMessages(), &claim{}, config.HubEmbedded) // the relay has them
	h.trouble = trouble
	near, far := server.Pipe()
	h.serving.Go(func() { h.serveEditor(ctx, far) })
	limits := frame.Limits{MaxFrame: 1<<30 - 1, Timeout: -1} // it is our own
	return &earlyServer{host: h, near: near, reader: frame.NewReader(near, frame.LSP, limits)}
}

// isLong reports whether requests of a method may take long to be answered.
func (e *earlyServer) isLong(method []byte) bool {
	m := e.host.srv.Method(string(method))
	return m != nil && m.LongRunning
}

// answer is the response to a request that needs no hub; nil for another one.
func (e *earlyServer) answer(m *frame.Message) []byte {
	var method string
	if json.Unmarshal(m.Method, &method) != nil || !needsNoHub(method) {
		return nil
	}
	e.buf = frame.Append(e.buf[:0], frame.LSP, m.Body)
	if _, err := e.near.Write(e.buf); err != nil {
		return nil // it has ended
	}
	var response frame.Message
	if e.reader.Next(&response) != nil {
		return nil
	}
	return bytes.Clone(response.Body)
}
