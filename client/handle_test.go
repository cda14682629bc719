package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
)

type params = json.RawMessage

func TestNotifications(t *testing.T) {
	s := serve(t, standard())
	for _, f := range []frame.Framing{frame.NDJSON, frame.LSP} {
		c := dial(t, client.Socket(s.path), client.WithFraming(f))
		const count = 500
		var heard, all, named, silenced []string
		done := make(chan struct{})
		c.On("tick", func(raw params) {
			// A handler may make calls and be slow: the reader continues.
			if len(heard) == 0 {
				var got int
				assert.NoError(t, c.Call(context.Background(), "echo", 1, &got))
			}
			heard = append(heard, string(raw))
		})
		c.On(client.All, func(raw params) { all = append(all, string(raw)) })
		c.OnNotification(func(n client.Notification) {
			named = append(named, n.Method+string(n.Params))
			if len(named) == count {
				close(done)
			}
		})
		off := c.On("tick", func(raw params) { silenced = append(silenced, string(raw)) })
		off()
		off()
		c.On("other", func(params) { t.Error("not for me") })
		require.NoError(t, c.Call(context.Background(), "tell", map[string]int{"Count": count}, nil))
		<-done
		require.NoError(t, c.Close())
		require.Len(t, heard, count)
		for n := range count {
			assert.Equal(t, fmt.Sprintf(`{"n":%d}`, n+1), heard[n])
			assert.Equal(t, heard[n], all[n])
			assert.Equal(t, "tick"+heard[n], named[n])
		}
		assert.Empty(t, silenced)
		assert.Zero(t, c.Dropped())
	}
}

// A blocked handler costs only notifications.
func TestHandlersThatDoNotKeepUp(t *testing.T) {
	s := serve(t, standard())
	for name, x := range map[string]struct {
		queue, count int
		want         int
	}{
		"room for all":       {100, 100, 0},
		"one too many":       {100, 101, 1},
		"one at a time":      {1, 3, 2},
		"zero means one":     {0, 2, 1},
		"many, much dropped": {10, 5000, 4990},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, client.Socket(s.path), client.WithQueue(x.queue))
			release := make(chan struct{})
			var once sync.Once
			count := make(chan struct{}, x.count)
			c.On("tick", func(params) {
				once.Do(func() { <-release })
				count <- struct{}{}
			})
			require.NoError(t, c.Call(context.Background(), "tell", map[string]int{"Count": x.count}, nil),
				"the reply comes behind the notifications: they were read")
			assert.EqualValues(t, x.want, c.Dropped())
			close(release)
			for range x.count - x.want {
				<-count
			}
			require.NoError(t, c.Call(context.Background(), "tell", map[string]int{"Count": 1}, nil))
			<-count
			assert.EqualValues(t, x.want, c.Dropped(), "there is room again")
		})
	}
}

func TestLongNotificationsAreBoundedTogether(t *testing.T) {
	_, c, e := dialFake(t)
	release := make(chan struct{})
	defer close(release)
	c.On("big", func(params) { <-release })
	big := strings.Repeat("x", 6<<20)
	for n, dropped := range []int{0, 0, 1, 2} { // 16 MiB hold two of them
		e.say(`{"jsonrpc":"2.0","method":"big","params":["%s"]}`, big)
		e.say(`{"jsonrpc":"2.0","id":"n%d","method":"unknown"}`, n)
		_, err := e.lines.ReadString('\n')
		require.NoError(t, err)
		assert.EqualValues(t, dropped, c.Dropped())
	}
}

func TestRequestsOfTheServer(t *testing.T) {
	s := serve(t, standard())
	ctx := context.Background()
	for _, f := range []frame.Framing{frame.NDJSON, frame.LSP} {
		c := dial(t, client.Socket(s.path), client.WithFraming(f))
		c.Handle("question", func(ctx context.Context, raw params) (any, error) {
			// It may call back.
			var got params
			err := c.Call(ctx, "echo", raw, &got)
			return map[string]params{"answer": got}, err
		})
		c.Handle("refused", func(context.Context, params) (any, error) {
			return nil, fmt.Errorf("wrapped: %w", &client.Error{Code: -32003, Message: "denied", Data: params(`{"kind":"permission_denied"}`)})
		})
		c.Handle("broken", func(context.Context, params) (any, error) { return nil, fmt.Errorf("secret") })
		c.Handle("panics", func(context.Context, params) (any, error) { panic("secret") })
		c.Handle("gone", func(context.Context, params) (any, error) { return 1, nil })
		c.Handle("gone", nil)
		ask := func(method string) (got string, err error) {
			var raw params
			err = c.Call(ctx, "ask", map[string]string{"Method": method}, &raw)
			return string(raw), err
		}
		got, err := ask("question")
		require.NoError(t, err)
		assert.JSONEq(t, `{"answer":{"n":1}}`, got)
		_, err = ask("refused")
		assert.ErrorIs(t, err, client.Kind("permission_denied"))
		assert.EqualError(t, err, "denied (-32003)")
		for method, code := range map[string]int64{"broken": -32603, "panics": -32603, "gone": -32601, "never": -32601} {
			_, err = ask(method)
			var e *client.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, code, e.Code, method)
			assert.NotContains(t, e.Message, "secret")
		}
		c.Handle("gone", func(context.Context, params) (any, error) { return "back", nil })
		got, err = ask("gone")
		require.NoError(t, err)
		assert.Equal(t, `"back"`, got)
		require.NoError(t, c.Close())
	}
}

func TestTheServerMayCancelItsRequest(t *testing.T) {
	_, c, e := dialFake(t)
	ended := make(chan error, 1)
	entered := make(chan struct{})
	c.Handle("human", func(ctx context.Context, _ params) (any, error) {
		close(entered)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	e.say(`{"jsonrpc":"2.0","id":"q","method":"human"}`)
	<-entered
	e.say(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"q"}}`)
	assert.ErrorIs(t, <-ended, context.Canceled)
	line, err := e.lines.ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, `"id":"q","error":{"code":-32800`)
}

// Close in a handler does not wait for that handler.
func TestCloseFromAHandler(t *testing.T) {
	s := serve(t, standard())
	c := dial(t, client.Socket(s.path))
	closed := make(chan struct{})
	c.On("tick", func(params) {
		assert.NoError(t, c.Close())
		close(closed)
	})
	c.Call(context.Background(), "tell", map[string]int{"Count": 1}, nil)
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("Close waits for the handler that called it")
	}
}
