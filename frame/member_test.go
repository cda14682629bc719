package frame_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
)

func TestAMemberIsTheLastWithItsName(t *testing.T) {
	for _, c := range []struct{ object, want string }{
		{`{"a":1,"b":2}`, `2`},
		{`{"b":1,"b":{"b":3}}`, `{"b":3}`},
		{`{"\u0062" : "x" }`, `"x"`},
		{`{"B":1}`, ``},
		{`["b"]`, ``},
		{``, ``},
	} {
		assert.Equal(t, c.want, string(frame.Member([]byte(c.object), "b")), c.object)
	}
}

// A request that begins as nearly all do is read by a way of its own; the same with
// spaces takes the other one. Both find the same, and refuse the same.
func TestUsualStart(t *testing.T) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":17,"method":"echo","params":{"a":[1]}}`,
		`{"jsonrpc":"2.0","id":17,"method":"echo"}`,
		`{"jsonrpc":"2.0","id":0,"method":"echo","params":[]}`,
		`{"jsonrpc":"2.0","id":01,"method":"echo","params":[]}`,
		`{"jsonrpc":"2.0","id":1.5e3,"method":"echo","params":[]}`,
		`{"jsonrpc":"2.0","id":-1,"method":"echo","params":[]}`,
		`{"jsonrpc":"2.0","id":"17","method":"echo","params":[]}`,
		`{"jsonrpc":"2.0","id":null,"method":"echo","params":[]}`,
		`{"jsonrpc":"2.0","id":,"method":"echo","params":[]}`,
		`{"jsonrpc":"2.0","id":17}`,
		`{"jsonrpc":"2.0","id":17,}`,
		`{"jsonrpc":"2.0","id":17`,
		`{"jsonrpc":"2.0","id":17,`,
		`{"jsonrpc":"2.0","id":17,"result":{}}`,
		`{"jsonrpc":"2.0","method":"echo","params":[]}`,
		`{"jsonrpc":"2.0","method":"echo","id":17}`,
		`{"jsonrpc":"2.0","method":"e\u0063ho","id":17}`,
		`{"jsonrpc":"2.0","method":"echo`,
		`{"jsonrpc":"2.0","method":"echo",}`,
		`{"jsonrpc":"2.0","method":"echo"x,"id":1}`,
		"{\"jsonrpc\":\"2.0\",\"method\":\"e\x01cho\",\"id\":1}",
		`{"jsonrpc":"2.0","method":7,"id":1}`,
		`{"jsonrpc":"2.0","id":17,"method":"echo","id":18,"method":"ping","jsonrpc":"1.0"}`,
		`{"jsonrpc":"2.0",}`,
		`{"jsonrpc":"2.0",`,
	} {
		var usual, spaced frame.Message
		ok := frame.Parse([]byte(body), &usual)
		require.Equal(t, frame.Parse([]byte(strings.Replace(body, `{"jsonrpc"`, `{ "jsonrpc" `, 1)), &spaced), ok, body)
		require.Equal(t, json.Valid([]byte(body)), ok, body)
		if ok {
			usual.Body, spaced.Body = nil, nil
			require.Equal(t, spaced, usual, body)
		}
	}
}
