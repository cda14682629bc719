package relay

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// For any input from the editor and the hub, relayed messages stay valid JSON. The relay answers
// the requests to a lost hub.
func FuzzEnvelopes(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"Subscribe","params":{"since":5,"a":[1]}}`, `{"id":1,"result":{"subscription_id":"one"}}`,
		`{"id":2,"method":"Unsubscribe","params":[{"subscription_id":"old"}]}`, `[{"id":"x","method":"a"},{"id":7,"result":1},5]`,
		`{"method":"event","params":{"subscription_id":"old","seq":3,"event":{}}}`, `{"method":"heartbeat","params":{"subscription_id":"old"}}`,
		`{"id":null,"error":{"data":{"reason":"batch-too-large"}}}`, `[{"id":7,"method":"ask"},{"id":7,"method":"ask"}]`, `{"id":7,"result":1}`,
		`{"method":"sh\u0075tdown","id":1e3}`, `{}`, `[]`, `5`, ` {"id" : "a" , "id":"b","params":null,"method":"task.x"} `,
	} {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, fromEditor, fromHub []byte) {
		var m frame.Message
		a, b := server.Pipe()
		defer a.Close()
		defer b.Close()
		r := New(a, Options{})
		r.subs.open[`"old"`] = &subscription{id: `"old"`, last: 2}
		hubSays := func() {
			if !frame.Parse(fromHub, &m) {
				return
			}
			var body []byte
			switch {
			case m.Kind == frame.Array:
				body = r.batchFromHub(&m)
			case m.Kind == frame.Object && m.Method != nil:
				body = r.callFromHub(&m)
			case m.Kind == frame.Object:
				r.calls.response(&m)
			}
			assert.True(t, body == nil || json.Valid(body), "%s", body)
		}
		hubSays()
		if frame.Parse(fromEditor, &m) {
			r.register(&m)
			if answer := unsent(fromEditor, lostUnsent); answer != nil {
				require.True(t, json.Valid(answer), "%s", answer)
			}
		}
		hubSays()
		r.subs.hubGone()
		for _, request := range r.restoration() {
			require.True(t, json.Valid(request), "%s", request)
		}
		for _, answer := range r.calls.answerAll(lostUnanswered) {
			require.True(t, json.Valid(answer), "%s", answer)
		}
		require.True(t, r.calls.none())
	})
}
