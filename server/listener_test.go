package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
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
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
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
	srv := server.New(server.NewRegistry(), server.Options{Observer: server.Observer{Released: func() { released.Add(1) }}})
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

// Ending and Ended run for each connection, when it begins to end and when it is no
// longer counted.
func TestTheEndOfAConnectionIsTold(t *testing.T) {
	var srv *server.Server
	left := make(chan int, 2)
	leaving := make(chan int, 2)
	srv = server.New(server.NewRegistry(), server.Options{Observer: server.Observer{
		Ending: func() { leaving <- srv.ConnCount() },
		Ended:  func() { left <- srv.ConnCount() },
	}})
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

// Unserved receives failed notifications and unreadable messages, but no failed requests.
func TestWhatIsNotServedIsTold(t *testing.T) {
	var mu sync.Mutex
	var reported []string
	reg := server.NewRegistry()
	type params struct {
		N int `json:"n"`
	}
	server.Handle(reg, "note", func(_ context.Context, p params) (struct{}, error) {
		if p.N == 1 {
			return struct{}{}, errors.New("not one")
		}
		return struct{}{}, nil
	})
	c := connect(t, reg, frame.NDJSON, server.Options{Observer: server.Observer{Unserved: func(_ *server.Conn, method string, err error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, method+": "+err.Error())
	}}})
	c.silent(`{"jsonrpc":"2.0","method":"note","params":{"n":2}}`)
	c.silent(`{"jsonrpc":"2.0","method":"note","params":{"n":1}}`)
	c.silent(`{"jsonrpc":"2.0","method":"note","params":{"n":"x"}}`)
	assert.Contains(t, c.ask(`{"jsonrpc":"2.0","id":1,"method":"note","params":{"n":1}}`), "-32603")
	assert.Contains(t, c.ask(`{"jsonrpc":`), "-32700")
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, reported, 3, "%q", reported)
	assert.Equal(t, "note: not one", reported[0])
	assert.Contains(t, reported[1], "note: ")
	assert.Contains(t, reported[2], "invalid-json")
}

// owning returns a registry with a method, begin, that runs a goroutine of its connection; conn
// returns that connection.
func owning(run func(ctx context.Context)) (reg *server.Registry, conn func() *server.Conn) {
	var last *server.Conn
	reg = server.NewRegistry()
	server.Handle(reg, "begin", func(ctx context.Context, _ struct{}) (bool, error) {
		last = server.ConnFrom(ctx)
		return last.Go(run), nil
	})
	return reg, func() *server.Conn { return last }
}

const begin = `{"jsonrpc":"2.0","id":1,"method":"begin"}`

func TestAConnectionWaitsForItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		ended := 0
		reg, conn := owning(func(ctx context.Context) {
			assert.NoError(t, server.ConnFrom(ctx).Notify(ctx, "news", nil), "it can send")
			<-ctx.Done()
			assert.Error(t, server.ConnFrom(ctx).Notify(context.Background(), "news", nil), "nothing can be sent any more")
			<-goOn
			ended++
		})
		c := connect(t, reg, frame.LSP, server.Options{})
		c.send(begin)
		for range 2 { // the notification and the reply, in any order
			c.next()
		}
		synctest.Wait()
		select {
		case <-conn().Done():
			t.Error("the connection has ended too early")
		default:
		}
		c.end.Close()
		time.Sleep(time.Hour) // longer than any grace
		assert.Empty(t, c.served, "the goroutine has not returned")
		select {
		case <-conn().Done():
			t.Error("a connection with a goroutine has not ended")
		default:
		}
		close(goOn)
		require.NoError(t, <-c.served)
		assert.Equal(t, 1, ended)
		<-conn().Done()
	})
}

func TestAConnectionThatHasEndedStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, conn := owning(func(ctx context.Context) { <-ctx.Done() })
		c := connect(t, reg, frame.LSP, server.Options{})
		require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":true}`, c.ask(begin))
		require.NoError(t, c.close())
		assert.False(t, conn().Go(func(context.Context) { t.Error("a goroutine started after the end of its connection") }))
	})
}

// A goroutine starts another while the connection ends: either the connection waits for it, or
// it does not run.
func TestGoroutinesOfGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		reg, _ := owning(func(ctx context.Context) {
			<-ctx.Done()
			server.ConnFrom(ctx).Go(func(ctx context.Context) {
				assert.Error(t, ctx.Err())
				running++
				time.Sleep(time.Minute)
				running--
			})
		})
		c := connect(t, reg, frame.LSP, server.Options{})
		c.ask(begin)
		require.NoError(t, c.close())
		assert.Zero(t, running)
	})
}

func framed(messages ...string) (out []byte) {
	for _, m := range messages {
		out = frame.Append(out, frame.LSP, []byte(m))
	}
	return out
}

// ServeUntil hands a connection over: the next reader gets the message and the bytes read after
// it. Its writes follow the answers to all earlier messages, also to a long-running request.
func TestServeUntil(t *testing.T) {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil })
	release := make(chan struct{})
	server.Handle(reg, "wait", func(context.Context, struct{}) (bool, error) { <-release; return true, nil }, server.LongRunning())
	srv := server.New(reg, server.Options{Logger: slog.New(slog.DiscardHandler)})
	type handed struct {
		next server.Transport
		err  error
	}
	serve := func(ctx context.Context) (server.Transport, chan handed) {
		ours, end := server.Pipe()
		t.Cleanup(func() { end.Close() })
		over := make(chan handed, 1)
		go func() {
			next, err := srv.ServeUntil(ctx, ours, frame.LSP, func(m *frame.Message) bool { return string(m.Method) == `"theirs"` })
			over <- handed{next, err}
		}()
		return end, over
	}

	end, over := serve(t.Context())
	behind := framed(`{"jsonrpc":"2.0","id":3,"method":"theirs","params":[1]}`, `{"jsonrpc":"2.0","id":4,"method":"echo"}`)
	behind = append(behind, "Content-Length: 5\r\n\r\n[1"...) // the half of a frame
	go end.Write(append(framed(`{"jsonrpc":"2.0","id":1,"method":"wait"}`, `{"jsonrpc":"2.0","id":2,"method":"echo","params":["a"]}`), behind...))
	reader := frame.NewReader(end, frame.LSP, frame.Limits{})
	var m frame.Message
	require.NoError(t, reader.Next(&m))
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":["a"]}`, string(m.Body))
	h := <-over
	require.NoError(t, h.err)
	rest := make([]byte, len(behind))
	must(io.ReadFull(h.next, rest))(t)
	require.Equal(t, string(behind), string(rest))
	go h.next.Write(framed(`{"jsonrpc":"2.0","id":3,"result":"theirs"}`))
	close(release)
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"result":true}`, `{"jsonrpc":"2.0","id":3,"result":"theirs"}`} {
		require.NoError(t, reader.Next(&m))
		require.Equal(t, want, string(m.Body))
	}
	go end.Write([]byte("more"))
	must(io.ReadFull(h.next, rest[:4]))(t)
	require.Equal(t, "more", string(rest[:4]))
	assert.Zero(t, srv.ConnCount())
	require.NoError(t, h.next.Close())

	// No handover: the peer leaves, or the context ends.
	end, over = serve(t.Context())
	must(end.Write(framed(`{"jsonrpc":"2.0","method":"echo"}`)))(t)
	require.NoError(t, end.Close())
	require.Equal(t, handed{}, <-over)
	ctx, cancel := context.WithCancel(t.Context())
	_, over = serve(ctx)
	cancel()
	require.Equal(t, handed{}, <-over)

	// The next reader leaves before the earlier messages are answered.
	release = make(chan struct{})
	defer close(release)
	end, over = serve(t.Context())
	go end.Write(framed(`{"jsonrpc":"2.0","id":1,"method":"wait"}`, `{"jsonrpc":"2.0","method":"theirs"}`))
	h = <-over
	require.NoError(t, h.next.Close())
	require.Error(t, failureOf(h.next.Write([]byte("x"))))
}
