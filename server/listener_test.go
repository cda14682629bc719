package server_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// A pipeListener accepts connections in memory, whose time synctest controls.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial(t *testing.T) net.Conn {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	l.conns <- theirs
	return ours
}

func TestServeListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		reg, g := gated()
		srv := server.New(reg, server.Options{Grace: time.Minute})
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error)
		go func() { served <- srv.ServeListener(ctx, l) }()

		request := []byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":[true]}`)
		for name, x := range map[string]struct {
			framing frame.Framing
			before  string
		}{
			"lines":                    {frame.NDJSON, ""},
			"lines after white space":  {frame.NDJSON, "\n \r\n"},
			"frames":                   {frame.LSP, ""},
			"frames after blank lines": {frame.LSP, "\r\n"},
		} {
			conn := l.dial(t)
			must(conn.Write(frame.Append([]byte(x.before), x.framing, request)))(t, name)
			var m frame.Message
			require.NoError(t, frame.NewReader(conn, x.framing, frame.Limits{}).Next(&m), name)
			assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":[true]}`, string(m.Body), name)
		}
		l.dial(t).Close() // sends nothing and leaves

		// At the end every connection ends, also an idle one that never sent anything.
		silent, busy := l.dial(t), l.dial(t)
		must(busy.Write(frame.Append(nil, frame.NDJSON, []byte(`{"jsonrpc":"2.0","id":1,"method":"gate"}`))))(t)
		<-g.entered
		cancel()
		var m frame.Message
		require.NoError(t, frame.NewReader(busy, frame.NDJSON, frame.Limits{}).Next(&m))
		assert.Contains(t, string(m.Body), "-32800")
		require.NoError(t, <-served)
		assert.Error(t, failureOf(silent.Read(make([]byte, 1))))
		assert.Zero(t, srv.ConnCount())
	})
}

// Released is called after many connections have ended, so that memory can return to the system.
func TestReleasedWhenACrowdHasGone(t *testing.T) {
	var released atomic.Int32
	srv := server.New(server.NewRegistry(), server.Options{Released: func() { released.Add(1) }})
	come := func() {
		ours, theirs := server.Pipe()
		theirs.Close()
		require.NoError(t, srv.Serve(context.Background(), ours, frame.LSP))
	}
	for n := range 199 {
		assert.EqualValues(t, n/100, released.Load())
		come()
	}
	come()
	assert.EqualValues(t, 2, released.Load())
}

// ConnEnding and ConnEnded run for each connection, when it begins to end and when it is no
// longer counted.
func TestTheEndOfAConnectionIsTold(t *testing.T) {
	var srv *server.Server
	left := make(chan int, 2)
	leaving := make(chan int, 2)
	srv = server.New(server.NewRegistry(), server.Options{
		ConnEnding: func() { leaving <- srv.ConnCount() },
		ConnEnded:  func() { left <- srv.ConnCount() },
	})
	first, one := server.Pipe()
	other, two := server.Pipe()
	for _, t := range []server.Transport{first, other} {
		srv.Connect(context.Background(), t, frame.LSP)
	}
	one.Close()
	assert.Equal(t, 2, <-leaving)
	assert.Equal(t, 1, <-left)
	two.Close()
	assert.Equal(t, 1, <-leaving)
	assert.Equal(t, 0, <-left)
}
