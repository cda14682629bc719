package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

func gated() (*server.Registry, *gate) {
	reg := standard()
	return reg, addGate(reg)
}

func TestLongRunningRequestsRunBesideOthers(t *testing.T) {
	reg, g := gated()
	c := connect(t, reg, frame.LSP, server.Options{})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"gate","params":{"name":"first"}}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"gate","params":{"name":"second"}}`)
	assert.Equal(t, `{"jsonrpc":"2.0","id":3,"result":null}`, c.ask(`{"jsonrpc":"2.0","id":3,"method":"echo"}`))
	assert.ElementsMatch(t, []string{"first", "second"}, []string{<-g.entered, <-g.entered})
	close(g.open)
	assert.ElementsMatch(t, []string{`{"jsonrpc":"2.0","id":1,"result":"open"}`, `{"jsonrpc":"2.0","id":2,"result":"open"}`},
		[]string{c.next(), c.next()})
	require.NoError(t, c.close())
}

// Messages behind a request wait until its handler calls Release. Beside too many long-running requests
// they wait until it has ended.
func TestReleasingRequests(t *testing.T) {
	reg, g := gated()
	begun, release, end := make(chan int), make(chan int), make(chan int)
	var done atomic.Bool
	server.Handle(reg, "done", func(context.Context, struct{}) (bool, error) { return done.Load(), nil })
	server.Handle(reg, "launch", func(ctx context.Context, _ struct{}) (string, error) {
		begun <- 1
		<-release
		done.Store(true)
		server.Release(ctx)
		server.Release(ctx)
		select {
		case <-end:
			return "launched", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, server.Releasing())
	c := connect(t, reg, frame.LSP, server.Options{MaxLongRunning: 2})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"launch"}`)
	<-begun
	answered := make(chan string)
	go func() { answered <- c.ask(`{"jsonrpc":"2.0","id":2,"method":"done"}`) }()
	release <- 1
	assert.Equal(t, `{"jsonrpc":"2.0","id":2,"result":true}`, <-answered)
	end <- 1
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"launched"}`, c.next())

	c.send(`{"jsonrpc":"2.0","id":3,"method":"launch"}`)
	<-begun
	release <- 1
	assert.Contains(t, c.ask(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":3}}`), `"id":3,"error":{"code":-32800`)

	c.send(`{"jsonrpc":"2.0","id":4,"method":"gate"}`, `{"jsonrpc":"2.0","id":5,"method":"gate"}`)
	<-g.entered
	<-g.entered
	c.send(`{"jsonrpc":"2.0","id":6,"method":"launch"}`)
	<-begun
	go c.send(`{"jsonrpc":"2.0","id":7,"method":"echo"}`)
	release <- 1
	end <- 1
	assert.Equal(t, `{"jsonrpc":"2.0","id":6,"result":"launched"}`, c.next())
	assert.Equal(t, `{"jsonrpc":"2.0","id":7,"result":null}`, c.next())
	close(g.open)
	require.NoError(t, c.close())
}

func TestCancelRequest(t *testing.T) {
	reg, g := gated()
	c := connect(t, reg, frame.LSP, server.Options{})
	for _, id := range []string{`7`, `"seven"`, `0`} {
		c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"gate"}`)
		<-g.entered
		c.silent(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"other"}}`)
		c.silent(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{}}`)
		c.silent(`{"jsonrpc":"2.0","method":"$/cancelRequest"}`)
		c.silent(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":[5]}`)
		assert.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32800,"message":"Request cancelled","data":{"kind":"cancelled"}}}`,
			c.ask(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":`+id+`}}`))
		c.silent(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":` + id + `}}`) // too late
	}
	require.NoError(t, c.close())
}

func TestAnIDInFlightIsNotUsedAgain(t *testing.T) {
	reg, g := gated()
	c := connect(t, reg, frame.LSP, server.Options{})
	c.send(`{"jsonrpc":"2.0","id":"a","method":"gate"}`)
	<-g.entered
	for _, method := range []string{"gate", "echo"} {
		e := errorOf(t, c.ask(`{"jsonrpc":"2.0","id":"a","method":"`+method+`"}`))
		assert.Equal(t, -32600, e.Code)
		assert.Equal(t, "duplicate-id", e.Data["reason"])
	}
	// null identifies no request, so two requests may have it.
	c.send(`{"jsonrpc":"2.0","id":null,"method":"gate"}`, `{"jsonrpc":"2.0","id":null,"method":"gate"}`)
	<-g.entered
	<-g.entered
	close(g.open)
	for range 3 {
		assert.Contains(t, c.next(), `"result":"open"`)
	}
	// The id is free as soon as the reply has arrived.
	assert.Equal(t, `{"jsonrpc":"2.0","id":"a","result":"open"}`, c.ask(`{"jsonrpc":"2.0","id":"a","method":"gate"}`))
	require.NoError(t, c.close())
}

func TestTooManyLongRunningRequests(t *testing.T) {
	reg, g := gated()
	c := connect(t, reg, frame.LSP, server.Options{})
	for i := range 64 { // the default
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"gate"}`, i))
		<-g.entered
	}
	e := errorOf(t, c.ask(`{"jsonrpc":"2.0","id":64,"method":"gate"}`))
	assert.Equal(t, -32040, e.Code)
	assert.Equal(t, "overloaded", e.Data["kind"])
	c.silent(`{"jsonrpc":"2.0","method":"gate"}`)
	assert.Contains(t, c.ask(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":5}}`), `"id":5,"error"`)
	c.send(`{"jsonrpc":"2.0","id":5,"method":"gate"}`) // the place and the id are free
	<-g.entered
	close(g.open)
	require.NoError(t, c.close())
}

func TestBatchesWithLongRunningRequests(t *testing.T) {
	reg, g := gated()
	c := connect(t, reg, frame.LSP, server.Options{})
	c.send(`[{"jsonrpc":"2.0","id":1,"method":"gate"},{"jsonrpc":"2.0","id":2,"method":"echo"},{"jsonrpc":"2.0","method":"gate"},{"jsonrpc":"2.0","id":1,"method":"echo"}]`)
	<-g.entered
	<-g.entered
	assert.Equal(t, `{"jsonrpc":"2.0","id":3,"result":null}`, c.ask(`{"jsonrpc":"2.0","id":3,"method":"echo"}`))
	close(g.open)
	reply := c.next()
	assert.True(t, strings.HasPrefix(reply, `[{"jsonrpc":"2.0","id":1,"result":"open"},{"jsonrpc":"2.0","id":2,"result":null},{"jsonrpc":"2.0","id":1,"error":{"code":-32600`), reply)
	require.NoError(t, c.close())
}

// The reply to a batch is bounded, however small the batch is.
func TestBatchReplyIsBounded(t *testing.T) {
	reg := standard()
	big := strings.Repeat("x", 1<<20)
	ran := 0
	server.Handle(reg, "big", func(context.Context, struct{}) (string, error) { ran++; return big, nil })
	c := connect(t, reg, frame.LSP, server.Options{})
	batch := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"big"},`, 999) + `{"jsonrpc":"2.0","id":1,"method":"big"}]`
	reply := c.ask(batch)
	assert.Less(t, len(reply), 13<<20)
	assert.Contains(t, reply, `"kind":"result_too_large"`)
	assert.Less(t, ran, 12)
	require.NoError(t, c.close())
}

// At any end of a connection, running handlers first get most of the grace. Then their contexts
// end. Finally the connection abandons them.
func TestEndOfAConnection(t *testing.T) {
	ends := map[string]func(c *client){
		"the peer closes":     func(c *client) { c.end.Close() },
		"the context ends":    func(c *client) { c.cancel() },
		"a handler ends it":   func(c *client) { c.send(`{"jsonrpc":"2.0","id":9,"method":"end"}`) },
		"in the middle of it": func(c *client) { c.end.Write([]byte("Content-Le")); c.cancel() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, g := gated()
				c := connect(t, reg, frame.LSP, server.Options{})
				replies := make(chan string, 10)
				c.send(`{"jsonrpc":"2.0","id":1,"method":"gate"}`)
				<-g.entered
				go func() {
					defer close(replies)
					var m frame.Message
					for c.reader.Next(&m) == nil {
						replies <- string(m.Body)
					}
				}()
				began := time.Now()
				end(c)
				require.NoError(t, <-c.served)
				assert.Equal(t, 1125*time.Millisecond, time.Since(began).Round(time.Millisecond), "three quarters of the grace")
				var got []string
				for r := range replies {
					got = append(got, r)
				}
				assert.Contains(t, c.log.String(), `msg=request method=gate duration=1.125s code=-32800 id=1`)
				if name == "the peer closes" { // and receives nothing more
					assert.Empty(t, got)
					return
				}
				require.NotEmpty(t, got)
				assert.Contains(t, got[len(got)-1], `"id":1,"error":{"code":-32800`)
				for _, r := range got {
					assert.NotContains(t, r, "length-mismatch")
				}
			})
		})
	}
}

// A final method answers and ends the connection; it drops later messages. While it waits for
// requests in flight it sees the peer leave.
func TestFinalMethods(t *testing.T) {
	finals := func() (*server.Registry, *gate) {
		reg, g := gated()
		server.Handle(reg, "bye", func(ctx context.Context, p struct {
			Wait uint `json:"wait"`
		},
		) (bool, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Duration(p.Wait)*time.Second)
			defer cancel()
			return server.ConnFrom(ctx).Wait(ctx), nil
		}, server.Final())
		return reg, g
	}
	run := func(name string, test func(t *testing.T, c *client, g *gate)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, g := finals()
				c := connect(t, reg, frame.NDJSON, server.Options{})
				c.send(`{"jsonrpc":"2.0","id":1,"method":"gate"}`)
				<-g.entered
				test(t, c, g)
			})
		})
	}
	const bye = `{"jsonrpc":"2.0","id":2,"method":"bye","params":{"wait":30}}`
	const dropped = `{"jsonrpc":"2.0","id":3,"method":"echo"}`
	run("waits for what is in flight", func(t *testing.T, c *client, g *gate) {
		c.send(bye, dropped, `}{`, `[`+dropped+`]`)
		synctest.Wait()
		close(g.open)
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"open"}`, c.next())
		assert.Equal(t, `{"jsonrpc":"2.0","id":2,"result":true}`, c.next())
		require.NoError(t, <-c.served)
	})
	run("as long as it was told", func(t *testing.T, c *client, g *gate) {
		began := time.Now()
		assert.Equal(t, `{"jsonrpc":"2.0","id":2,"result":false}`, c.ask(bye))
		assert.Equal(t, 30*time.Second, time.Since(began))
		assert.Contains(t, c.next(), `"id":1,"error":{"code":-32800`)
		require.NoError(t, <-c.served)
	})
	run("but not when the peer has gone", func(t *testing.T, c *client, g *gate) {
		c.send(bye)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, c.close())
		assert.LessOrEqual(t, time.Since(began), 1500*time.Millisecond)
	})
	run("and says so if they ended in time all the same", func(t *testing.T, c *client, g *gate) {
		c.send(bye)
		synctest.Wait()
		c.cancel()
		synctest.Wait()
		close(g.open)
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"open"}`, c.next())
		assert.Equal(t, `{"jsonrpc":"2.0","id":2,"result":true}`, c.next())
		require.NoError(t, <-c.served)
	})
	run("nor after a signal", func(t *testing.T, c *client, g *gate) {
		c.send(bye)
		synctest.Wait()
		began := time.Now()
		c.cancel()
		got := []string{c.next(), c.next()}
		assert.Contains(t, strings.Join(got, ""), `"id":1,"error":{"code":-32800`)
		assert.Contains(t, strings.Join(got, ""), `{"jsonrpc":"2.0","id":2,"result":false}`)
		require.NoError(t, <-c.served)
		assert.LessOrEqual(t, time.Since(began), 1500*time.Millisecond)
	})
	run("another one ends it at once", func(t *testing.T, c *client, g *gate) {
		c.send(bye, `{"jsonrpc":"2.0","method":"bye"}`)
		began := time.Now()
		got := []string{c.next(), c.next()}
		assert.Contains(t, strings.Join(got, ""), `{"jsonrpc":"2.0","id":2,"result":false}`)
		require.NoError(t, <-c.served)
		assert.LessOrEqual(t, time.Since(began), 1500*time.Millisecond)
	})
	run("the peer has a moment to close its side", func(t *testing.T, c *client, g *gate) {
		close(g.open)
		c.next()
		began := time.Now()
		c.ask(bye)
		require.NoError(t, <-c.served)
		assert.Equal(t, 100*time.Millisecond, time.Since(began))
	})
	run("and the end does not wait for more than that", func(t *testing.T, c *client, g *gate) {
		close(g.open)
		c.next()
		began := time.Now()
		c.ask(bye)
		require.NoError(t, c.close())
		assert.Zero(t, time.Since(began))
	})
	run("in a batch", func(t *testing.T, c *client, g *gate) {
		close(g.open)
		c.next()
		assert.Equal(t, `[{"jsonrpc":"2.0","id":2,"result":true},{"jsonrpc":"2.0","id":3,"result":null}]`, c.ask(`[`+bye+`,`+dropped+`,`+bye+`]`))
		require.NoError(t, <-c.served)
	})
	run("not if its parameters are wrong", func(t *testing.T, c *client, g *gate) {
		e := errorOf(t, c.ask(`{"jsonrpc":"2.0","id":2,"method":"bye","params":{"wait":-1}}`))
		assert.Equal(t, map[string]any{"param": "wait", "expected": "integer from 0 on", "received": "-1"}, e.Data)
		assert.Equal(t, `{"jsonrpc":"2.0","id":3,"result":null}`, c.ask(dropped))
		require.NoError(t, c.close())
	})
}

func TestEndWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := standard()
		server.Handle(reg, "work", func(context.Context, struct{}) (string, error) {
			time.Sleep(time.Second)
			return "done", nil
		}, server.LongRunning())
		c := connect(t, reg, frame.LSP, server.Options{})
		c.send(`{"jsonrpc":"2.0","id":1,"method":"work"}`)
		synctest.Wait()
		c.cancel()
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"done"}`, c.next())
		require.NoError(t, <-c.served)
	})
}

func TestMessagesAfterEndAreDropped(t *testing.T) {
	c := connect(t, standard(), frame.NDJSON, server.Options{})
	must(c.end.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"end"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"echo"}` + "\n")))(t)
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"ending"}`, c.next())
	require.NoError(t, <-c.served)
	var m frame.Message
	assert.Error(t, c.reader.Next(&m))
}

// A handler that ignores its context does not keep the connection.
func TestAStuckHandlerIsLeftBehind(t *testing.T) {
	for _, options := range [][]server.Option{nil, {server.LongRunning()}} {
		synctest.Test(t, func(t *testing.T) {
			reg := standard()
			release := make(chan struct{})
			defer close(release)
			server.Handle(reg, "stuck", func(context.Context, struct{}) (int, error) { <-release; return 0, nil }, options...)
			c := connect(t, reg, frame.LSP, server.Options{})
			c.send(`{"jsonrpc":"2.0","id":1,"method":"stuck"}`)
			synctest.Wait()
			began := time.Now()
			c.cancel()
			require.NoError(t, <-c.served)
			assert.Equal(t, 1500*time.Millisecond, time.Since(began).Round(10*time.Millisecond))
		})
	}
}

func TestAFrameTimesOut(t *testing.T) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, standard(), f, server.Options{})
			ping := `{"jsonrpc":"2.0","id":1,"method":"echo"}`
			whole := string(frame.Append(nil, f, []byte(ping)))
			for range 3 { // any number of times
				time.Sleep(time.Hour) // an idle connection lasts
				must(c.end.Write([]byte(whole[:len(whole)-5])))(t)
				time.Sleep(29 * time.Second)
				must(c.end.Write([]byte(whole[len(whole)-5:])))(t)
				assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":null}`, c.next(), "in time")

				must(c.end.Write([]byte(whole[:10])))(t)
				time.Sleep(20 * time.Second)
				_, err := c.end.Write([]byte(whole[10:20])) // does not restart the clock
				require.NoError(t, err)
				time.Sleep(11 * time.Second)
				must(c.end.Write([]byte(whole[20:] + whole)))(t)
				assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":null}`, c.next(), "the next one")
			}
			require.NoError(t, c.close())
			assert.Equal(t, 3, strings.Count(c.log.String(), "did not arrive whole in time"))
		})
	}
}

func TestBlankLinesStartNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, standard(), frame.LSP, server.Options{})
		must(c.end.Write([]byte("\r\n  \r")))(t)
		time.Sleep(time.Hour)
		must(c.end.Write([]byte("\nContent-Length: 40\r\n\r\n" + `{"jsonrpc":"2.0","id":7,"method":"echo"}`)))(t)
		assert.Equal(t, `{"jsonrpc":"2.0","id":7,"result":null}`, c.next())
		require.NoError(t, c.close())
		assert.NotContains(t, c.log.String(), "in time")
	})
}

// A protocol may have its own cancellation, in both directions.
func TestAnotherCancellation(t *testing.T) {
	reg := server.NewRegistry()
	server.Handle(reg, "wait", func(ctx context.Context, _ struct{}) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, server.LongRunning())
	server.Handle(reg, "ask", func(ctx context.Context, _ struct{}) (string, error) {
		asking, cancel := context.WithCancel(ctx)
		cancel()
		return "asked", errorAsData(server.ConnFrom(ctx).Call(asking, "question", nil, nil))
	}, server.LongRunning())
	c := connect(t, reg, frame.NDJSON, server.Options{
		Cancellation:   server.Cancellation{Method: "$/cancel_request", Member: "requestId", Tell: true},
		OnNotification: func(*server.Conn, string, json.RawMessage) {},
	})
	c.silent(`{"jsonrpc":"2.0","id":"w","method":"wait"}`)
	c.silent(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"w"}}`)
	c.silent(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":"w"}}`)
	assert.Contains(t, c.ask(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"w"}}`), `"code":-32800`)

	var question, back struct {
		ID     json.RawMessage
		Method string
		Params struct{ RequestID json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(c.ask(`{"jsonrpc":"2.0","id":1,"method":"ask"}`)), &question))
	assert.Equal(t, "question", question.Method)
	require.NoError(t, json.Unmarshal([]byte(c.next()), &back))
	assert.Equal(t, "$/cancel_request", back.Method)
	assert.Equal(t, question.ID, back.Params.RequestID)
	assert.Contains(t, c.next(), "context canceled")
	require.NoError(t, c.close())
}

// Arriving runs before the connection looks at the next message.
func TestArriving(t *testing.T) {
	type key struct{}
	arrived := 0
	reg := server.NewRegistry()
	server.Handle(reg, "long", func(ctx context.Context, _ struct{}) (any, error) { return ctx.Value(key{}), nil }, server.LongRunning(),
		server.Arriving(func(ctx context.Context, params json.RawMessage) context.Context {
			arrived++
			return context.WithValue(ctx, key{}, string(params))
		}))
	server.Handle(reg, "arrived", func(context.Context, struct{}) (int, error) { return arrived, nil })
	c := connect(t, reg, frame.LSP, server.Options{})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"long","params":{"a":1}}`, `{"jsonrpc":"2.0","id":2,"method":"arrived"}`)
	both := c.next() + c.next()
	assert.Contains(t, both, `{"jsonrpc":"2.0","id":1,"result":"{\"a\":1}"}`)
	assert.Contains(t, both, `{"jsonrpc":"2.0","id":2,"result":1}`)
	require.NoError(t, c.close())
}
