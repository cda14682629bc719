package server_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// Unserved receives messages that get no error response, because they were not requests.
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
	c := connect(t, reg, frame.NDJSON, server.Options{Unserved: func(_ *server.Conn, method string, err error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, method+": "+err.Error())
	}})
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
