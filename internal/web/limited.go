package web

import (
	"net"
	"sync"
	"sync/atomic"
)

// mostConnections are the TCP connections of a server. One more is closed at once.
const mostConnections = 1024

// newLimited returns a listener that keeps at most mostConnections open.
func newLimited(l net.Listener) net.Listener { return &limited{Listener: l} }

type limited struct {
	net.Listener
	open atomic.Int64
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) > mostConnections {
			l.open.Add(-1)
			c.Close()
			continue
		}
		return &counted{Conn: c, gone: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
	}
}

type counted struct {
	net.Conn
	gone func()
}

func (c *counted) Close() error {
	c.gone()
	return c.Conn.Close()
}
