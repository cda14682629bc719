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

// Whatever raw JSON holds, what is encoded is text: each half of a surrogate pair alone
// becomes U+FFFD, and nothing else changes.
func TestEncodeMendsSurrogates(t *testing.T) {
	for raw, want := range map[string]string{
		`"\ud83d\ude00"`: `"\ud83d\ude00"`, `"\uD83D\uDE00"`: `"\uD83D\uDE00"`, `"\udbff\udfff"`: `"\udbff\udfff"`,
		`"\ud800"`: `"\ufffd"`, `"\udbffx"`: `"\ufffdx"`, `"\udc00"`: `"\ufffd"`, `"\udfff"`: `"\ufffd"`, `"\uDAaa"`: `"\ufffd"`,
		`"\ud800\ud800\udc00"`: `"\ufffd\ud800\udc00"`, `"\ude00\ud83d"`: `"\ufffd\ufffd"`,
		`"\ud800\u0041"`: `"\ufffd\u0041"`, `"\ud800\n"`: `"\ufffd\n"`,
		`"\u00d8\u0d80\ud7ff\ue000\\ud800\"\ud900"`: `"\u00d8\u0d80\ud7ff\ue000\\ud800\"\ufffd"`,
		"\"\xff\"": "\"\ufffd\"",
	} {
		got, err := frame.Encode(json.RawMessage(raw))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), raw)
	}
	got, err := frame.Encode("<&>")
	require.NoError(t, err)
	assert.Equal(t, `"<&>"`, string(got))
	_, err = frame.Encode(func() {})
	assert.Error(t, err)
}
