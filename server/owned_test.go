package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

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
			t.Error("it lives")
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
		assert.False(t, conn().Go(func(context.Context) { t.Error("no one would wait for it") }))
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
