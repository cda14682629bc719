package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Target is the server that a Client connects to: a [Socket], a [Command], an [Opener] or an
// existing connection ([OverTransport]).
type Target interface {
	fmt.Stringer
	// open opens a connection; ctx bounds only the opening.
	open(ctx context.Context) (server.Transport, error)
	properties() properties
}

type properties struct {
	framing   frame.Framing // the default
	reconnect bool          // the default
	once      bool          // cannot be opened a second time
}

// A Socket is the path of a Unix socket.
type Socket string

func (s Socket) String() string { return "socket " + string(s) }

func (s Socket) properties() properties { return properties{framing: frame.NDJSON, reconnect: true} }

func (s Socket) open(ctx context.Context) (server.Transport, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", string(s))
	if err != nil {
		return nil, err // the error names the socket
	}
	return socket.ReceivingFiles(conn), nil
}

// An Opener opens connections of any other kind; ctx bounds only the opening.
type Opener func(ctx context.Context) (server.Transport, error)

func (o Opener) String() string { return "opener" }

func (o Opener) properties() properties { return properties{framing: frame.NDJSON, reconnect: true} }

func (o Opener) open(ctx context.Context) (server.Transport, error) { return o(ctx) }

// OverTransport returns a Target for an existing connection, such as one end of a [server.Pipe].
// The Client closes it. It is for one Dial and cannot be reconnected.
func OverTransport(t server.Transport, f frame.Framing) Target { return &existing{t: t, framing: f} }

type existing struct {
	t       server.Transport
	framing frame.Framing
	mu      sync.Mutex
	taken   bool
}

func (e *existing) String() string { return "a transport that was there" }

func (e *existing) properties() properties { return properties{framing: e.framing, once: true} }

func (e *existing) open(context.Context) (server.Transport, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken {
		return nil, errors.New("the transport is in use already")
	}
	e.taken = true
	return e.t, nil
}
