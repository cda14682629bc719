package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestIntercept(t *testing.T) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		var seen []string
		c := connect(t, standard(), f, server.Options{Intercept: func(_ *server.Conn, m *frame.Message) bool {
			seen = append(seen, string(m.Body))
			return m.Method == nil || string(m.Method) == `"mine"`
		}})
		idless, mine := `{"jsonrpc":"2.0","result":{"event":1}}`, `{"jsonrpc":"2.0","id":7,"method":"mine"}`
		echo, reply := `{"jsonrpc":"2.0","id":1,"method":"echo","params":5}`, `{"jsonrpc":"2.0","id":1,"result":5}`
		c.send(idless, mine)
		assert.Equal(t, reply, c.ask(echo), "what was taken is not answered, the rest is served")
		assert.Equal(t, "["+reply+"]", c.ask("["+idless+","+echo+","+mine+"]"), "also in a batch")
		require.NoError(t, c.close())
		assert.Equal(t, []string{idless, mine, echo, idless, echo, mine}, seen)
		assert.NotContains(t, c.log.String(), "no request of ours")
	}
}
