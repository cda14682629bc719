package frame_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
)

// sourcegraph's Conn runs on our streams, both ways, and among refused frames.
func TestObjectStream(t *testing.T) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		t.Run(f.String(), func(t *testing.T) {
			near, far := net.Pipe()
			conn := jsonrpc2.NewConn(context.Background(), frame.NewObjectStream(far, f, small),
				jsonrpc2.HandlerWithError(func(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
					return r.Params, nil
				}))
			r := frame.NewReader(near, f, frame.Limits{})
			ask := func(raw []byte) string {
				go near.Write(raw)
				var m frame.Message
				require.NoError(t, r.Next(&m))
				return string(m.Body)
			}
			good := frame.Append(nil, f, []byte(`{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}`))
			assert.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":[1]}`, ask(good))
			assert.Contains(t, ask(frame.Append(nil, f, []byte(`{]`))), `"reason":"invalid-json"`)
			assert.Contains(t, ask(frame.Append(nil, f, []byte(`[]`))), `"reason":"invalid-request"`)
			assert.Contains(t, ask(frame.Append(nil, f, []byte(`{"id":7}`))), `"id":7,"error":{"code":-32600`)
			assert.Contains(t, ask(frame.Append(nil, f, make([]byte, 200))), `"reason":"oversize"`)
			assert.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":[1]}`, ask(good))

			answered := make(chan error)
			var answer string
			go func() { answered <- conn.Call(context.Background(), "question", nil, &answer) }()
			var m frame.Message
			require.NoError(t, r.Next(&m))
			_, err := near.Write(frame.Append(nil, f, frame.ResultBody(m.ID, []byte(`"yes"`))))
			require.NoError(t, err)
			require.NoError(t, <-answered)
			assert.Equal(t, "yes", answer)
			near.Close()
			<-conn.DisconnectNotify()
		})
	}
}

// A value that is no json.Unmarshaler is decoded too.
func TestObjectStreamDecodesAnything(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	s := frame.NewObjectStream(far, frame.NDJSON, frame.Limits{})
	go near.Write([]byte("{\"a\":1}\n"))
	var v map[string]json.Number
	require.NoError(t, s.ReadObject(&v))
	assert.Equal(t, map[string]json.Number{"a": "1"}, v)
	near.Close()
	assert.Error(t, s.ReadObject(&v))
	assert.Error(t, s.WriteObject(make(chan int)))
	assert.Error(t, s.WriteObject("nobody there"))
}

// A halfOpen reads its input, and no write to it succeeds.
type halfOpen struct{ *strings.Reader }

var errHalfOpen = errors.New("no write succeeds")

func (halfOpen) Write([]byte) (int, error) { return 0, errHalfOpen }
func (halfOpen) Close() error              { return nil }

// A refusal that cannot be sent ends the stream.
func TestObjectStreamEndsWhenARefusalCannotBeTold(t *testing.T) {
	s := frame.NewObjectStream(halfOpen{strings.NewReader("{]\n{}\n")}, frame.NDJSON, frame.Limits{})
	var v any
	assert.ErrorIs(t, s.ReadObject(&v), errHalfOpen)
}

// A value that cannot be encoded is not written.
func TestObjectStreamWritesNothingThatIsNoJSON(t *testing.T) {
	s := frame.NewObjectStream(halfOpen{strings.NewReader("")}, frame.NDJSON, frame.Limits{})
	var unsupported *json.UnsupportedTypeError
	assert.ErrorAs(t, s.WriteObject(make(chan int)), &unsupported)
	assert.ErrorIs(t, s.WriteObject(1), errHalfOpen)
}

// A message of another kind is refused without an id.
func TestObjectStreamRefusesWithoutAnIDWhatHasNone(t *testing.T) {
	near, far := net.Pipe()
	s := frame.NewObjectStream(far, frame.NDJSON, frame.Limits{})
	go func() {
		var v map[string]any
		_ = s.ReadObject(&v)
		far.Close()
	}()
	go near.Write([]byte("[{\"id\":7}]\n"))
	var m frame.Message
	require.NoError(t, frame.NewReader(near, frame.NDJSON, frame.Limits{}).Next(&m))
	assert.Equal(t, "null", string(m.ID))
	near.Close()
}
