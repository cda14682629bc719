package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestCalls(t *testing.T) {
	s := serve(t, standard())
	for _, f := range []frame.Framing{frame.NDJSON, frame.LSP} {
		t.Run(f.String(), func(t *testing.T) {
			ctx := context.Background()
			c := dial(t, client.Socket(s.path), client.WithFraming(f))
			assert.Equal(t, client.Connected, c.State())
			var got map[string]string
			require.NoError(t, c.Call(ctx, "echo", map[string]string{"a": "größer <&>\n"}, &got))
			assert.Equal(t, map[string]string{"a": "größer <&>\n"}, got)
			var raw json.RawMessage
			require.NoError(t, c.Call(ctx, "echo", nil, &raw))
			assert.Equal(t, "null", string(raw))
			require.NoError(t, c.Call(ctx, "echo", []int{1}, nil))

			err := c.Call(ctx, "fail", nil, nil)
			var e *client.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, &client.Error{Code: -32000, Message: "Task not found: x", Data: json.RawMessage(`{"kind":"task_not_found"}`)}, e)
			assert.ErrorIs(t, err, client.Kind("task_not_found"))
			assert.NotErrorIs(t, err, client.Kind("queue_full"))
			assert.Equal(t, client.Kind("task_not_found"), client.KindOf(fmt.Errorf("wrapped: %w", err)))
			assert.Equal(t, "Task not found: x (-32000)", err.Error())
			err = c.Call(ctx, "nothing", nil, nil)
			require.ErrorAs(t, err, &e)
			assert.EqualValues(t, -32601, e.Code)
			assert.Empty(t, client.KindOf(err))
			assert.Empty(t, client.KindOf(errors.New("another")))

			var n int
			assert.ErrorContains(t, c.Call(ctx, "echo", "text", &n), "client: echo: decode the result")
			assert.ErrorContains(t, c.Call(ctx, "echo", make(chan int), nil), "client: echo: encode the params")
			assert.NoError(t, c.Notify(ctx, "echo", 1))
		})
	}
}

// A call that fails with the configured kind of error is sent again while that may help. A
// SentOnce call is not, nor is a call with any other error.
func TestResend(t *testing.T) {
	reg := standard()
	var asked, losses atomic.Int64
	lost := server.NewError(-32042, "Hub lost", map[string]string{"kind": "hub_lost"})
	lose := func(context.Context, struct{}) (int, error) {
		if n := asked.Add(1); n <= losses.Load() {
			return 0, lost
		}
		return 1, nil
	}
	server.Handle(reg, "lose", lose)
	server.Handle(reg, "event.subscribe", func(ctx context.Context, p struct{}) (map[string]string, error) {
		_, err := lose(ctx, p)
		return map[string]string{"subscription_id": "1"}, err
	})
	server.Handle(reg, "Unsubscribe", func(context.Context, struct{}) (bool, error) { return true, nil })
	s := serve(t, reg)
	for name, x := range map[string]struct {
		losses int64
		kind   client.Kind
		opts   []client.CallOption
		asked  int64
		fails  bool
	}{
		"until it is served": {2, "hub_lost", nil, 3, false},
		"not for ever":       {100, "hub_lost", nil, 6, true},
		"not twice":          {2, "hub_lost", []client.CallOption{client.SentOnce()}, 1, true},
		"another kind":       {2, "queue_full", nil, 1, true},
		"unless it is asked": {2, "", nil, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			losses.Store(x.losses)
			c := dial(t, client.Socket(s.path), client.WithFraming(frame.LSP), client.WithResend(x.kind))
			err := c.Call(t.Context(), "lose", nil, nil, x.opts...)
			assert.Equal(t, x.fails, client.KindOf(err) == "hub_lost", "%v", err)
			assert.Equal(t, x.asked, asked.Load())
			if len(x.opts) > 0 {
				return
			}
			asked.Store(0)
			sub, err := eventstream.Subscribe(t.Context(), c, eventstream.Options{}, func(eventstream.Event) {})
			assert.Equal(t, x.fails, client.KindOf(err) == "hub_lost", "%v", err)
			assert.Equal(t, x.asked, asked.Load())
			if err == nil {
				sub.Close()
			}
		})
	}
}

func TestDialFails(t *testing.T) {
	_, err := client.Dial(context.Background(), client.Socket("/nowhere/s"))
	assert.ErrorContains(t, err, "client: connect to socket /nowhere/s: ")
	_, err = client.Dial(context.Background(), client.Command("/nowhere/program"))
	assert.ErrorContains(t, err, "start /nowhere/program")
	one, other := server.Pipe()
	defer other.Close()
	target := client.OverTransport(one, frame.LSP)
	_, err = client.Dial(context.Background(), target, client.WithReconnect(true))
	assert.ErrorContains(t, err, "cannot be opened again")
	c := dial(t, target)
	_, err = client.Dial(context.Background(), target)
	assert.ErrorContains(t, err, "in use already")
	require.NoError(t, c.Close())
}

func TestOneConnectionManyCalls(t *testing.T) {
	s := serve(t, standard())
	c := dial(t, client.Socket(s.path))
	var calls sync.WaitGroup
	for n := range 1000 {
		calls.Go(func() {
			var got int
			if assert.NoError(t, c.Call(context.Background(), "echo", n, &got)) {
				assert.Equal(t, n, got)
			}
		})
	}
	calls.Wait()
}

// A request of 10 MiB, the limit of a server, and its answer.
func TestLongMessages(t *testing.T) {
	s := serve(t, standard())
	c := dial(t, client.Socket(s.path), client.WithFraming(frame.LSP))
	const most = client.DefaultMaxMessage - len("echo") - 64 - len(`""`)
	text := strings.Repeat("x", most)
	var got string
	require.NoError(t, c.Call(context.Background(), "echo", text, &got))
	assert.True(t, got == text)
	err := c.Call(context.Background(), "echo", text+"x", &got)
	assert.ErrorIs(t, err, client.ErrTooLong)
	assert.ErrorIs(t, c.Notify(context.Background(), "echo", text+"x"), client.ErrTooLong)
	require.NoError(t, c.Call(context.Background(), "echo", 1, nil), "the connection lives")

	// As a line it goes out whole too; only the server bounds its lines.
	c = dial(t, client.Socket(s.path))
	assert.ErrorIs(t, c.Call(context.Background(), "echo", text, &got), client.Kind("result_too_large"))
}

func TestIDsAreOneTwoThree(t *testing.T) {
	_, c, e := dialFake(t)
	for n := range 3 {
		result := async(c, "m")
		r := e.next()
		assert.Equal(t, fmt.Sprint(n+1), string(r.ID))
		assert.Nil(t, r.Params)
		e.result(r, "true")
		assert.NoError(t, <-result)
	}
}

// A call gets its own answer, whatever else a server sends.
func TestServersThatTalkNonsense(t *testing.T) {
	_, c, e := dialFake(t)
	asked := make(chan struct{}, 100)
	go func() { // beside its requests the client also answers the nonsense
		for {
			line, err := e.lines.ReadString('\n')
			if err != nil {
				return
			}
			if strings.Contains(line, `"method":"m"`) {
				asked <- struct{}{}
			}
		}
	}()
	for n, nonsense := range []string{
		`Listening on port 80`,
		`{"jsonrpc":"2.0","id":999,"result":"nobody asked"}`,
		`{"jsonrpc":"2.0","id":"%d","result":"another type of id"}`,
		`{"jsonrpc":"1.0","id":%d,"result":"another version"}`,
		`{"id":%d,"result":"no version"}`,
		`{"jsonrpc":"2.0","result":"no id"}`,
		`{"jsonrpc":"2.0","result":{"event":5}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
		`{"jsonrpc":"2.0","method":5}`,
		`{"jsonrpc":"2.0"}`,
		`[]`,
		`[{"jsonrpc":"2.0","id":55,"result":1},5]`,
		`12`,
		"\x00\xff",
		`{"jsonrpc":"2.0","id":{"a":1},"method":"m"}`,
	} {
		result := make(chan string, 1)
		go func() {
			var got string
			err := c.Call(context.Background(), "m", nil, &got)
			result <- fmt.Sprint(got, " ", err)
		}()
		<-asked
		if strings.Contains(nonsense, "%d") {
			nonsense = fmt.Sprintf(nonsense, n+1)
		}
		e.say("%s", nonsense)
		e.say(`{"jsonrpc":"2.0","id":%d,"result":"right"}`, n+1)
		assert.Equal(t, "right <nil>", <-result, nonsense)
	}
}

func TestOddAnswers(t *testing.T) {
	_, c, e := dialFake(t)
	for _, x := range []struct{ answer, want string }{
		{`"result":null`, "<nil> <nil>"},
		{`"extra":1`, "<nil> <nil>"}, // {result: undefined} of a JavaScript server
		{`"error":null,"result":5`, "5 <nil>"},
		{`"error":{"code":-1,"message":"no"},"result":5`, "<nil> no (-1)"},
		{`"error":"no object"`, "<nil> the server answered with a malformed error (-32603)"},
	} {
		result := make(chan string, 1)
		go func() {
			var got any
			err := c.Call(context.Background(), "m", nil, &got)
			result <- fmt.Sprint(got, " ", err)
		}()
		e.say(`{"jsonrpc":"2.0","id":%s,%s}`, e.next().ID, x.answer)
		assert.Equal(t, x.want, <-result, x.answer)
	}
}

func TestAnswersInABatch(t *testing.T) {
	_, c, e := dialFake(t)
	heard := make(chan string, 1)
	c.On("note", func(params json.RawMessage) { heard <- string(params) })
	one := async(c, "one")
	a := e.next()
	other := async(c, "other")
	b := e.next()
	e.say(`[{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"b"}},{"jsonrpc":"2.0","method":"note","params":[1]},{"jsonrpc":"2.0","id":%s,"result":1}]`, b.ID, a.ID)
	assert.NoError(t, <-one)
	assert.EqualError(t, <-other, "b (1)")
	assert.Equal(t, "[1]", <-heard)
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c, e := dialFake(t)
		for _, x := range []struct {
			opts  []client.CallOption
			after time.Duration
		}{
			{nil, 30 * time.Second},
			{[]client.CallOption{client.WithTimeout(3 * time.Second)}, 3 * time.Second},
			{[]client.CallOption{client.WithTimeout(time.Hour)}, time.Hour},
		} {
			began := time.Now()
			result := async(c, "slow", x.opts...)
			r := e.next()
			cancelled := e.next()
			assert.Equal(t, "$/cancelRequest", cancelled.Method)
			assert.JSONEq(t, `{"id":`+string(r.ID)+`}`, string(cancelled.Params))
			assert.Nil(t, cancelled.ID)
			err := <-result
			assert.Equal(t, x.after, time.Since(began))
			assert.ErrorIs(t, err, client.ErrTimeout)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.NotErrorIs(t, err, client.ErrDisconnected)
			assert.EqualError(t, err, "client: slow: timeout after "+x.after.String())
			e.result(r, `"late"`)
		}
		// The context's own deadline, and its end.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- c.Call(ctx, "slow", nil, nil) }()
		e.next()
		e.next()
		err := <-result
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, client.ErrTimeout)
		ctx, cancel = context.WithCancel(context.Background())
		go func() { result <- c.Call(ctx, "slow", nil, nil, client.WithTimeout(0)) }()
		e.next()
		time.Sleep(24 * time.Hour) // of the bubble: 0 means no timeout
		assert.Empty(t, result)
		cancel()
		assert.Equal(t, "$/cancelRequest", e.next().Method)
		assert.ErrorIs(t, <-result, context.Canceled)
		c.Close()
	})
}

// A server that reads nothing delays a caller no longer than the timeout, and the queue for it
// stays bounded.
func TestServersThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		c := dial(t, client.Opener(f.open))
		f.accept()
		big := strings.Repeat("x", 1<<20)
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				began := time.Now()
				assert.ErrorIs(t, c.Call(context.Background(), "m", big, nil, client.WithTimeout(5*time.Second)), client.ErrTimeout)
				assert.InDelta(t, 5, time.Since(began).Seconds(), 1)
			})
		}
		calls.Wait()
		assert.ErrorIs(t, c.Notify(context.Background(), "m", big), client.ErrTimeout)
		c.Close()
	})
}

func TestCancellingReachesTheServer(t *testing.T) {
	reg := standard()
	entered, ended := make(chan struct{}), make(chan error, 1)
	server.Handle(reg, "wait", func(ctx context.Context, _ struct{}) (int, error) {
		close(entered)
		<-ctx.Done()
		ended <- ctx.Err()
		return 0, ctx.Err()
	}, server.LongRunning())
	c := dial(t, client.Socket(serve(t, reg).path))
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() { result <- c.Call(ctx, "wait", nil, nil) }()
	<-entered
	cancel()
	assert.ErrorIs(t, <-result, context.Canceled)
	assert.ErrorIs(t, <-ended, context.Canceled)
}

// A message longer than the server accepts is not sent, and the connection continues.
func TestAMessageThatIsTooLongIsNotSent(t *testing.T) {
	const most = 1000
	s := serve(t, standard())
	c := dial(t, client.Socket(s.path), client.WithMaxMessage(most))
	var got string
	require.NoError(t, c.Call(context.Background(), "echo", strings.Repeat("x", most/2), &got))
	assert.Len(t, got, most/2)
	assert.ErrorIs(t, c.Call(context.Background(), "echo", strings.Repeat("x", most), nil), client.ErrTooLong)
	assert.ErrorIs(t, c.Notify(context.Background(), "echo", strings.Repeat("x", most)), client.ErrTooLong)
	require.NoError(t, c.Call(context.Background(), "echo", "on", &got))
}

// Incoming messages are bounded too. A longer result is dropped and logged, its call ends with
// its timeout, and the connection continues.
func TestAResultThatIsTooLongIsDropped(t *testing.T) {
	const most = 1000
	s := serve(t, standard())
	for _, framing := range []frame.Framing{frame.NDJSON, frame.LSP} {
		var log testkit.Text
		c := dial(t, client.Socket(s.path), client.WithFraming(framing), client.WithLimits(frame.Limits{MaxFrame: most}),
			client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		err := c.Call(context.Background(), "echo", strings.Repeat("x", most), nil, client.WithTimeout(50*time.Millisecond))
		assert.ErrorIs(t, err, client.ErrTimeout)
		var got string
		require.NoError(t, c.Call(context.Background(), "echo", strings.Repeat("x", most/2), &got))
		assert.Len(t, got, most/2)
		assert.Contains(t, log.String(), "reason=oversize")
	}
}
