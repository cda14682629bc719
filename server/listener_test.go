package server_test

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestServeListener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	reg, g := gated()
	srv := server.New(reg, server.Options{Grace: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- srv.ServeListener(ctx, l) }()

	dial := func() net.Conn {
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
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
		t.Run(name, func(t *testing.T) {
			conn := dial()
			_, err := conn.Write(frame.Append([]byte(x.before), x.framing, request))
			require.NoError(t, err)
			var m frame.Message
			require.NoError(t, frame.NewReader(conn, x.framing, frame.Limits{}).Next(&m))
			assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":[true]}`, string(m.Body))
		})
	}
	dial().Close() // sends nothing and leaves

	// At the end every connection ends, also an idle one that never sent anything.
	silent, busy := dial(), dial()
	_, err = busy.Write(frame.Append(nil, frame.NDJSON, []byte(`{"jsonrpc":"2.0","id":1,"method":"gate"}`)))
	require.NoError(t, err)
	<-g.entered
	cancel()
	var m frame.Message
	require.NoError(t, frame.NewReader(busy, frame.NDJSON, frame.Limits{}).Next(&m))
	assert.Contains(t, string(m.Body), "-32800")
	require.NoError(t, <-served)
	_, err = silent.Read(make([]byte, 1))
	assert.Error(t, err)
	assert.Zero(t, srv.ConnCount())
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
