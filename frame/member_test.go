package frame_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
)

// TestUsualStart compares the fast path for the usual beginning of a request with the slow path,
// which the same request with spaces takes. Both find the same members and refuse the same
// input.
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

// A response is one message in one frame, also without an id or a result.
func TestResponses(t *testing.T) {
	for _, c := range []struct{ id, result, want string }{
		{`7`, `{"a":1}`, `{"jsonrpc":"2.0","id":7,"result":{"a":1}}`},
		{``, ``, `{"jsonrpc":"2.0","id":null,"result":null}`},
		{`"a"`, `5`, `{"jsonrpc":"2.0","id":"a","result":5}`},
	} {
		for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
			assert.Equal(t, string(frame.Append(nil, f, []byte(c.want))), string(frame.AppendResult(nil, f, []byte(c.id), []byte(c.result))))
			assert.Equal(t, "x"+string(frame.AppendResult(nil, f, []byte(c.id), []byte(c.result))), string(frame.AppendResult([]byte("x"), f, []byte(c.id), []byte(c.result))))
		}
		assert.Equal(t, c.want, string(frame.ResultBody([]byte(c.id), []byte(c.result))))
	}
	data := json.RawMessage(`{"a":1}`)
	for want, e := range map[string]*jsonrpc2.Error{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}`:              {Code: -1, Message: "m"},
		`{"jsonrpc":"2.0","id":null,"error":{"code":7,"message":"","data":{"a":1}}}`: {Code: 7, Data: &data},
	} {
		assert.Equal(t, want, string(frame.ErrorBody(nil, e)))
		assert.Equal(t, want+"\n", string(frame.AppendError(nil, frame.NDJSON, nil, e)))
	}
	assert.False(t, frame.LSP.OneLine())
	assert.True(t, frame.NDJSON.OneLine())
}

// The error text of a refusal names the kind of error, the fault and the reason.
func TestARefusalAsAnError(t *testing.T) {
	for reason, want := range map[frame.Reason]string{
		frame.ReasonOversize:       `{"code":-32600,"message":"Invalid Request: why","data":{"reason":"oversize"}}`,
		frame.ReasonLengthMismatch: `{"code":-32700,"message":"Parse error: why","data":{"reason":"length-mismatch"}}`,
	} {
		refusal := &frame.Refusal{Reason: reason, Detail: "why"}
		got, err := json.Marshal(refusal.Wire())
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got))
	}
}

// A batch has the objects among its elements, and no batch.
func TestObjectsOfAMessage(t *testing.T) {
	for body, want := range map[string][]string{
		`{"id":1}`: {`1`}, `[{"id":1},5,[{"id":2}],{"id":3}]`: {`1`, `3`}, `[[{"id":1}]]`: nil, `[]`: nil, `5`: nil,
	} {
		var m frame.Message
		require.True(t, frame.Parse([]byte(body), &m))
		var got []string
		for one := range m.Objects() {
			got = append(got, string(one.ID))
		}
		assert.Equal(t, want, got, body)
	}
}
