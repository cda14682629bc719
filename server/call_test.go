package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// asking returns a registry with long-running methods that call the peer.
func asking() *server.Registry {
	reg := standard()
	server.Handle(reg, "ask", func(ctx context.Context, p struct {
		Timeout int `json:"timeout,omitempty"`
	},
	) (json.RawMessage, error) {
		if p.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(p.Timeout)*time.Second)
			defer cancel()
		}
		var answer json.RawMessage
		err := server.ConnFrom(ctx).Call(ctx, "question", map[string]int{"n": 1}, &answer)
		return answer, errorAsData(err)
	}, server.LongRunning())
	server.Handle(reg, "askInline", func(ctx context.Context, _ struct{}) (int, error) {
		return 0, errorAsData(server.ConnFrom(ctx).Call(ctx, "question", nil, nil))
	})
	return reg
}

// errorAsData turns the error of Call into data for a test.
func errorAsData(err error) error {
	if err == nil {
		return nil
	}
	return server.NewError(-32099, "call failed", map[string]string{"err": err.Error()})
}

func TestCallsToThePeer(t *testing.T) {
	c := connect(t, asking(), frame.LSP, server.Options{})
	for i, x := range []struct{ answer, want string }{
		{`"result":{"a":[1]}`, `"result":{"a":[1]}`},
		{`"result":null`, `"result":null`},
		{`"error":{"code":-32001,"message":"no"}`, `jsonrpc2: code -32001 message: no`},
		{`"error":"no object"`, `the peer answered with a malformed error`},
		{`"error":null,"result":false`, `"result":false`},
		{`"result":5,"extra":{}`, `"result":5`},
	} {
		question := c.ask(`{"jsonrpc":"2.0","id":"q","method":"ask"}`)
		var asked struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(question), &asked))
		assert.Equal(t, "question", asked.Method)
		assert.JSONEq(t, `{"n":1}`, string(asked.Params))
		c.silent(`{"jsonrpc":"2.0","id":12345,"result":"nobody asked"}`)
		c.silent(`{"jsonrpc":"2.0","id":null,"result":"nobody asked"}`)
		assert.Contains(t, c.ask(`{"jsonrpc":"2.0","id":`+string(asked.ID)+`,`+x.answer+`}`), x.want, "case %d", i)
		c.silent(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":"twice"}`)
	}
	assert.Contains(t, c.ask(`{"jsonrpc":"2.0","id":1,"method":"askInline"}`), "register the method with LongRunning")
	require.NoError(t, c.close())
}

// With random ids, a late response to another connection's call matches no call here.
func TestIDsOfCallsMayBeRandom(t *testing.T) {
	seen := make(map[string]bool)
	for range 20 {
		c := connect(t, asking(), frame.LSP, server.Options{RandomCallIDs: true})
		for n := range 2 {
			c.send(`{"jsonrpc":"2.0","id":` + strconv.Itoa(n) + `,"method":"ask"}`)
			id := string(testkit.JSONMember(t, c.next(), "id"))
			assert.False(t, seen[id], id)
			seen[id] = true
			exact, err := strconv.ParseUint(id, 10, 53)
			assert.NoError(t, err, "%d", exact)
			c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":1}`)
			c.next()
		}
	}
}

func TestCallsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, asking(), frame.LSP, server.Options{})
		for params, after := range map[string]time.Duration{`{"timeout":3}`: 3 * time.Second, `{}`: 30 * time.Second} {
			began := time.Now()
			question := c.ask(`{"jsonrpc":"2.0","id":"q","method":"ask","params":` + params + `}`)
			assert.Contains(t, c.next(), "context deadline exceeded")
			assert.Equal(t, after, time.Since(began))
			var asked struct{ ID json.RawMessage }
			require.NoError(t, json.Unmarshal([]byte(question), &asked))
			c.silent(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":"late"}`)
		}
		require.NoError(t, c.close())
	})
}

func TestCallsEndWithTheConnection(t *testing.T) {
	ours, theirs := server.Pipe()
	srv := server.New(standard(), server.Options{})
	conn := srv.Connect(context.Background(), ours, frame.LSP)
	result := make(chan error)
	go func() { result <- conn.Call(context.Background(), "question", nil, nil) }()
	r := frame.NewReader(theirs, frame.LSP, frame.Limits{})
	var m frame.Message
	require.NoError(t, r.Next(&m))
	theirs.Close()
	assert.ErrorIs(t, <-result, jsonrpc2.ErrClosed)
	<-conn.Done()
	assert.ErrorIs(t, conn.Call(context.Background(), "question", nil, nil), jsonrpc2.ErrClosed)
	assert.ErrorIs(t, conn.Notify(context.Background(), "note", nil), jsonrpc2.ErrClosed)
	assert.ErrorIs(t, conn.Send(context.Background(), "note"), jsonrpc2.ErrClosed)
	assert.Zero(t, srv.ConnCount())
}

// A mute is a transport on which every write fails.
type mute struct{ server.Transport }

var errMute = errors.New("no write succeeds")

func (mute) Write([]byte) (int, error) { return 0, errMute }

// A connection ends when a write fails, even while the peer sends nothing.
func TestAConnectionEndsWhenAWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := server.Pipe()
		defer theirs.Close()
		conn := server.New(standard(), server.Options{}).Connect(t.Context(), mute{ours}, frame.LSP)
		conn.Notify(t.Context(), "note", nil)
		<-conn.Done()
		assert.ErrorIs(t, conn.Notify(t.Context(), "note", nil), errMute)
	})
}

// The response of a peer that leaves at once is not lost.
func TestTheLastResponse(t *testing.T) {
	srv := server.New(standard(), server.Options{})
	for range 300 {
		ours, theirs := server.Pipe()
		conn := srv.Connect(context.Background(), ours, frame.NDJSON)
		go func() {
			frame.NewReader(theirs, frame.NDJSON, frame.Limits{}).Next(&frame.Message{})
			theirs.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":"said"}` + "\n"))
			theirs.Close()
		}()
		var said string
		require.NoError(t, conn.Call(context.Background(), "question", nil, &said))
		assert.Equal(t, "said", said)
		<-conn.Done()
	}
}

// Two connected endpoints of this package call each other.
func TestBothDirections(t *testing.T) {
	a, b := server.Pipe()
	reg := standard()
	server.Handle(reg, "relay", func(ctx context.Context, p struct{ Text string }) (string, error) {
		var back struct{ Text string }
		err := server.ConnFrom(ctx).Call(ctx, "echo", p, &back)
		return "relayed " + back.Text, err
	}, server.LongRunning())
	one := server.New(reg, server.Options{}).Connect(context.Background(), a, frame.NDJSON)
	two := server.New(reg, server.Options{}).Connect(context.Background(), b, frame.NDJSON)
	for _, from := range []*server.Conn{one, two} {
		var got string
		require.NoError(t, from.Call(context.Background(), "relay", map[string]string{"Text": "größer"}, &got))
		assert.Equal(t, "relayed größer", got)
	}
	one.End()
	<-one.Done()
	<-two.Done()
}

// Files makes a transport of the pipes to a child process.
func TestFiles(t *testing.T) {
	fromUs, toThem, err := os.Pipe()
	require.NoError(t, err)
	fromThem, toUs, err := os.Pipe()
	require.NoError(t, err)
	them := server.New(standard(), server.Options{}).Connect(context.Background(), stdio.Files(fromUs, toUs), frame.LSP)
	us := server.New(standard(), server.Options{}).Connect(context.Background(), stdio.Files(fromThem, toThem), frame.LSP)
	big := strings.Repeat("x", 2_000_000)
	var got string
	require.NoError(t, us.Call(context.Background(), "echo", big, &got))
	assert.Equal(t, len(big), len(got))
	us.End()
	<-us.Done()
	<-them.Done()
}

func TestBroadcast(t *testing.T) {
	srv := server.New(standard(), server.Options{})
	var clients []*client
	for range 3 {
		c := &client{t: t, framing: frame.LSP, served: make(chan error, 1), log: &testkit.Text{}}
		clients = append(clients, c.attach(srv))
		c.ask(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
	}
	assert.Equal(t, 3, srv.ConnCount())
	reached := make(chan int)
	go func() {
		n, err := srv.Broadcast("event.tick", map[string]int{"n": 1})
		assert.NoError(t, err)
		reached <- n
	}()
	for _, c := range clients {
		assert.Equal(t, `{"jsonrpc":"2.0","method":"event.tick","params":{"n":1}}`, c.next())
	}
	assert.Equal(t, 3, <-reached)
	require.NoError(t, clients[0].close())
	assert.Equal(t, 2, srv.ConnCount())
	assert.Error(t, failureOf(srv.Broadcast("event.bad", make(chan int))))
	for _, c := range clients[1:] {
		require.NoError(t, c.close())
	}
	assert.Zero(t, srv.ConnCount())
}

func TestResultsTooLongForALine(t *testing.T) {
	reg := standard()
	server.Handle(reg, "long", func(_ context.Context, p struct{ N int }) (string, error) {
		return strings.Repeat("x", p.N), nil
	})
	for _, f := range []frame.Framing{frame.NDJSON, frame.LSP} {
		c := connect(t, reg, f, server.Options{})
		assert.Greater(t, len(c.ask(`{"jsonrpc":"2.0","id":1,"method":"long","params":{"N":1048000}}`)), 1_048_000)
		reply := c.ask(`{"jsonrpc":"2.0","id":1,"method":"long","params":{"N":1048576}}`)
		if f == frame.NDJSON {
			e := errorOf(t, reply)
			assert.Equal(t, -32041, e.Code)
			assert.Equal(t, "result_too_large", e.Data["kind"])
		} else {
			assert.Greater(t, len(reply), 1<<20)
		}
		require.NoError(t, c.close())
	}
}

func TestRepliesAreOneLine(t *testing.T) {
	reg := standard()
	server.HandleRaw(reg, "pretty", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage("{\n \"a\": [\n1]}"), nil
	})
	for _, f := range []frame.Framing{frame.NDJSON, ownLines{frame.NDJSON}} {
		c := connect(t, reg, f, server.Options{})
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"pretty"}`))
		assert.Equal(t, `[{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}]`, c.ask(`[{"jsonrpc":"2.0","id":1,"method":"pretty"}]`))
		require.NoError(t, c.close())
	}
}

// ownLines is a custom line framing.
type ownLines struct{ frame.Framing }

func (ownLines) String() string { return "own" }

// Exactly these errors mean that the peer has gone.
func TestErrorsOfPeersThatHaveGone(t *testing.T) {
	for _, err := range []error{io.EOF, syscall.EPIPE, syscall.ECONNRESET, syscall.EIO, io.ErrClosedPipe, os.ErrClosed} {
		assert.True(t, server.IsGone(&os.PathError{Op: "write", Err: err}), err)
	}
	assert.False(t, server.IsGone(os.ErrDeadlineExceeded))
	assert.False(t, server.IsGone(nil))
}

// A program that is mainly a client receives everything that is not a request, in order, and
// still serves requests.
func TestClientSide(t *testing.T) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		var seen []string
		c := connect(t, standard(), f, server.Options{
			OnResponse: func(_ *server.Conn, m *frame.Message) { seen = append(seen, string(m.Body)) },
			OnNotification: func(_ *server.Conn, method string, params json.RawMessage) {
				seen = append(seen, method+" "+string(params))
			},
		})
		event, late, bare := `{"jsonrpc":"2.0","result":{"event":1}}`, `{"jsonrpc":"2.0","id":7,"error":{}}`, `{"jsonrpc":"2.0","id":8}`
		note, registered := `{"jsonrpc":"2.0","method":"note","params":[1]}`, `{"jsonrpc":"2.0","method":"echo"}`
		echo, reply := `{"jsonrpc":"2.0","id":1,"method":"echo","params":5}`, `{"jsonrpc":"2.0","id":1,"result":5}`
		c.send(event, note, late, bare, registered, `{"method":"note"}`, `{"jsonrpc":"2.0","method":5}`, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":9}}`)
		assert.Equal(t, reply, c.ask(echo), "nothing else is answered")
		assert.Equal(t, "["+reply+"]", c.ask("["+event+","+echo+","+note+"]"), "also in a batch")
		assert.Contains(t, c.ask(`{"id":2,"method":"echo"}`), `"id":2,"error":{"code":-32600`)
		require.NoError(t, c.close())
		assert.Equal(t, []string{event, "note [1]", late, bare, "echo ", event, "note [1]"}, seen)
		assert.NotContains(t, c.log.String(), "no request of ours")
	}
}

// OnResponse does not receive answers to a Call; it receives the rest.
func TestClientSideCalls(t *testing.T) {
	near, far := server.Pipe()
	seen := make(chan string, 10)
	serving := server.New(standard(), server.Options{}).Connect(context.Background(), far, frame.NDJSON)
	calling := server.New(server.NewRegistry(), server.Options{
		OnResponse: func(_ *server.Conn, m *frame.Message) { seen <- string(m.Body) },
	}).Connect(context.Background(), near, frame.NDJSON)
	require.NoError(t, serving.Send(context.Background(), map[string]any{"jsonrpc": "2.0", "id": 1, "result": "stray"}))
	assert.Equal(t, `{"id":1,"jsonrpc":"2.0","result":"stray"}`, <-seen)
	var result int
	require.NoError(t, calling.Call(context.Background(), "echo", []int{5}, &[]int{}))
	require.Error(t, calling.Call(context.Background(), "echo", []int{5}, &result), "the result does not fit the type")
	assert.Empty(t, seen)
	calling.End()
	<-calling.Done()
	<-serving.Done()
}
