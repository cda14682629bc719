package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// specMethods returns the methods of the examples in the JSON-RPC 2.0 specification, section 7.
// They take positional parameters, so they are raw.
func specMethods() *server.Registry {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "subtract", func(_ context.Context, raw json.RawMessage) (json.RawMessage, error) {
		var named struct{ Minuend, Subtrahend int }
		var positional [2]int
		if json.Unmarshal(raw, &positional) == nil {
			named.Minuend, named.Subtrahend = positional[0], positional[1]
		} else if err := json.Unmarshal(raw, &named); err != nil {
			return nil, err
		}
		return json.Marshal(named.Minuend - named.Subtrahend)
	})
	server.HandleRaw(reg, "sum", func(_ context.Context, raw json.RawMessage) (json.RawMessage, error) {
		var numbers []int
		if err := json.Unmarshal(raw, &numbers); err != nil {
			return nil, err
		}
		sum := 0
		for _, n := range numbers {
			sum += n
		}
		return json.Marshal(sum)
	})
	server.HandleRaw(reg, "get_data", func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`["hello",5]`), nil
	})
	for _, name := range []string{"update", "notify_hello", "notify_sum"} {
		server.HandleRaw(reg, name, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, errors.New("a notification's error goes nowhere")
		})
	}
	return reg
}

// TestSpecificationExamples runs every example of section 7, in order. The comparison omits
// clarifications after the canonical message and the data member.
func TestSpecificationExamples(t *testing.T) {
	for _, example := range []struct{ name, in, want string }{
		{"positional parameters", `{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}`, `{"jsonrpc": "2.0", "result": 19, "id": 1}`},
		{"positional parameters, the other way", `{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}`, `{"jsonrpc": "2.0", "result": -19, "id": 2}`},
		{"named parameters", `{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}`, `{"jsonrpc": "2.0", "result": 19, "id": 3}`},
		{"named parameters, the other way", `{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}`, `{"jsonrpc": "2.0", "result": 19, "id": 4}`},
		{"a notification", `{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}`, ""},
		{"a notification of an unknown method", `{"jsonrpc": "2.0", "method": "foobar"}`, ""},
		{"an unknown method", `{"jsonrpc": "2.0", "method": "foobar", "id": "1"}`, `{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}`},
		{"invalid JSON", `{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]`, `{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}`},
		{"an invalid request", `{"jsonrpc": "2.0", "method": 1, "params": "bar"}`, `{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}`},
		{"a batch of invalid JSON", `[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]`, `{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}`},
		{"an empty array", `[]`, `{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}`},
		{"an invalid batch", `[1]`, `[{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}]`},
		{"an invalid batch of three", `[1,2,3]`, `[{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
			{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
			{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}]`},
		{
			"a batch", `[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
			{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
			{"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
			{"foo": "boo"},
			{"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
			{"jsonrpc": "2.0", "method": "get_data", "id": "9"}]`,
			`[{"jsonrpc": "2.0", "result": 7, "id": "1"},
			{"jsonrpc": "2.0", "result": 19, "id": "2"},
			{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
			{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "5"},
			{"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"}]`,
		},
		{"a batch of notifications", `[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}]`, ""},
	} {
		t.Run(example.name, func(t *testing.T) {
			c := connect(t, specMethods(), frame.LSP, server.Options{})
			if example.want == "" {
				c.silent(example.in)
			} else {
				assert.JSONEq(t, example.want, canonical(t, c.ask(example.in)))
			}
			require.NoError(t, c.close())
		})
	}
}

// canonical reduces error objects to the members in the specification's examples.
func canonical(t *testing.T, response string) string {
	var v any
	require.NoError(t, json.Unmarshal([]byte(response), &v))
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, r := range list {
		if e, ok := r.(map[string]any)["error"].(map[string]any); ok {
			e["message"], _, _ = strings.Cut(e["message"].(string), ":")
			delete(e, "data")
		}
	}
	return string(must(json.Marshal(v))(t))
}

func TestIDsComeBackByteForByte(t *testing.T) {
	c := connect(t, standard(), frame.NDJSON, server.Options{})
	for _, id := range []string{
		`0`, `1`, `-1`, `1.0`, `1e3`, `1E+3`, `-0`, `9007199254740993`, `18446744073709551616`, `1` + strings.Repeat("0", 400),
		`""`, `"a"`, `"\u0061"`, `"ünïcode ✓"`, `"\ud800"`, `"a\/b"`, `null`,
	} {
		assert.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"result":[1]}`, c.ask(`{"jsonrpc":"2.0","id":`+id+`,"method":"echo","params":[1]}`))
	}
	require.NoError(t, c.close())
}

func TestInvalidRequests(t *testing.T) {
	c := connect(t, standard(), frame.LSP, server.Options{MaxBatch: 3})
	for _, x := range []struct{ in, id, reason string }{
		{`{"jsonrpc":"2.0","id":{},"method":"echo"}`, `null`, "invalid-id-type"},
		{`{"jsonrpc":"2.0","id":[1],"method":"echo"}`, `null`, "invalid-id-type"},
		{`{"jsonrpc":"2.0","id":true,"method":"echo"}`, `null`, "invalid-id-type"},
		{`{"id":1,"method":"echo"}`, `1`, "invalid-version"},
		{`{"jsonrpc":"1.0","id":1,"method":"echo"}`, `1`, "invalid-version"},
		{`{"jsonrpc":2.0,"id":1,"method":"echo"}`, `1`, "invalid-version"},
		{`{"jsonrpc":"1.0","method":"echo"}`, `null`, "invalid-version"},
		{`{"jsonrpc":"2.0","id":"x","method":5}`, `"x"`, "invalid-method"},
		{`{"jsonrpc":"2.0","id":"x","method":null}`, `"x"`, "invalid-method"},
		{`{"jsonrpc":"2.0","id":"x"}`, `"x"`, "invalid-method"},
		{`{"jsonrpc":"2.0"}`, `null`, "invalid-method"},
		{`{}`, `null`, "invalid-version"},
		{`5`, `null`, "not-an-object"},
		{`"ping"`, `null`, "not-an-object"},
		{`null`, `null`, "not-an-object"},
		{`[]`, `null`, "empty-batch"},
		{`[1,2,3,4]`, `null`, "batch-too-large"},
	} {
		reply := c.ask(x.in)
		e := errorOf(t, reply)
		assert.Equal(t, -32600, e.Code, x.in)
		assert.Equal(t, x.reason, e.Data["reason"], x.in)
		assert.True(t, strings.HasPrefix(e.Message, "Invalid Request: "), x.in)
		assert.True(t, strings.HasPrefix(reply, `{"jsonrpc":"2.0","id":`+x.id+`,"error"`), "%s: %s", x.in, reply)
	}
	// Names spelt with escapes mean the same.
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, c.ask(`{"jsonrpc":"\u0032.0","\u0069d":1,"method":"e\u0063ho","params":{}}`))
	require.NoError(t, c.close())
}

// A peer whose messages fail repeatedly does not fill the log.
func TestAFailureThatIsRepeatedIsWarnedOfOnce(t *testing.T) {
	c := connect(t, standard(), frame.LSP, server.Options{})
	warnings := func() int { return strings.Count(c.log.String(), `level=WARN msg="request failed"`) }
	for range 100 {
		c.send(`{"jsonrpc":"2.0","method":"fail"}`)
	}
	c.silent(`{"jsonrpc":"2.0","method":"fail"}`)
	assert.Equal(t, 1, warnings())
	c.silent(`{"jsonrpc":"2.0","method":"teapot"}`)
	c.silent(`{"jsonrpc":"2.0","method":"fail"}`)
	assert.Equal(t, 3, warnings(), "the log reports another failure, and then the first one again")
	for id := range 2 { // a caller waits for these
		c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"fail"}`, id))
	}
	assert.Equal(t, 5, warnings())
	require.NoError(t, c.close())
}

func TestErrors(t *testing.T) {
	c := connect(t, standard(), frame.LSP, server.Options{})
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error: the request failed; the log has the cause"}}`,
		c.ask(`{"jsonrpc":"2.0","id":1,"method":"fail"}`))
	assert.Equal(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error: the request failed; the log has the cause"}}`,
		c.ask(`{"jsonrpc":"2.0","id":2,"method":"panic"}`))
	assert.Equal(t, `{"jsonrpc":"2.0","id":3,"error":{"code":-32050,"message":"I am a teapot","data":{"kind":"teapot"}}}`,
		c.ask(`{"jsonrpc":"2.0","id":3,"method":"teapot"}`))
	assert.Equal(t, map[string]any{"method": "nosuch"}, errorOf(t, c.ask(`{"jsonrpc":"2.0","id":4,"method":"nosuch","params":5}`)).Data)
	c.silent(`{"jsonrpc":"2.0","method":"panic"}`)
	require.NoError(t, c.close())
	assert.Contains(t, c.log.String(), "harness_test.go", "the stack is in the log")
}

func TestUnknownNotifications(t *testing.T) {
	c := connect(t, standard(), frame.LSP, server.Options{})
	c.silent(`{"jsonrpc":"2.0","method":"$/quiet"}`)
	c.silent(`{"jsonrpc":"2.0","method":"initialized"}`)
	c.silent(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	c.silent(`{"jsonrpc":"2.0","method":"initialized2"}`)
	c.silent(`{"jsonrpc":"2.0","method":"loud"}`)
	c.silent(`{"jsonrpc":"2.0","id":99,"result":1}`)
	c.silent(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`)
	require.NoError(t, c.close())
	log := c.log.String()
	assert.NotContains(t, log, "quiet")
	assert.NotContains(t, log, "method=initialized\n", "every LSP client sends this notification")
	assert.Contains(t, log, `level=WARN msg="unknown notification ignored" method=initialized2`)
	assert.Contains(t, log, `level=WARN msg="unknown notification ignored" method=loud`)
	assert.Contains(t, log, "response ignored")
}

func TestEchoReturnsAnythingUntouched(t *testing.T) {
	c := connect(t, standard(), frame.LSP, server.Options{})
	for _, params := range []string{`null`, `{}`, `[]`, `[null]`, `5`, `"x"`, `false`, `{"a" : [ 1,  2.50 ],"b":"\ud800"}`, "{\n\"a\":1}"} {
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+params+`}`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"echo","params":`+params+`}`))
	}
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"result":null}`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"echo"}`))
	require.NoError(t, c.close())
}
