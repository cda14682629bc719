package acp_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/acp"
)

// inputFunc is an agent's stdin.
type inputFunc func(line []byte)

func (f inputFunc) Write(line []byte) (int, error) {
	f(line)
	return len(line), nil
}

// The result of a call is taken between the updates before and after it.
func TestResultIsTakenInOrder(t *testing.T) {
	const update = `{"jsonrpc":"2.0","method":"session/update","params":{"update":{"n":1}}}` + "\n"
	out, agent := io.Pipe()
	var order []string
	conn := acp.NewConn(inputFunc(func([]byte) {
		go func() {
			_, _ = io.WriteString(agent, update+`{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`+"\n"+update)
			agent.Close()
		}()
	}), acp.Handler{
		Update:   func(_, _ []byte, _ bool) { order = append(order, "update") },
		Response: func(_, _ []byte) {},
	})
	go conn.Read(out)
	result, err := acp.CallInOrder(context.Background(), conn, "set", nil, func(result json.RawMessage) { order = append(order, string(result)) })
	assert.NoError(t, err)
	assert.Equal(t, `{"ok":true}`, string(result))
	<-conn.Done()
	assert.Equal(t, []string{"update", `{"ok":true}`, "update"}, order)
}
