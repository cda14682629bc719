package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A witness is a connection that records what it receives and sends.
type witness struct {
	*Conn
	mu       sync.Mutex // guards the fields below
	said     bytes.Buffer
	seen     []string
	requests int
}

func newWitness() *witness {
	w := &witness{requests: 1 << 30}
	see := func(format string, args ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, fmt.Sprintf(format, args...))
	}
	w.Conn = NewConn(w, Handler{
		Update:   func(_, u []byte, _ bool) { see("update %s", u) },
		Response: func(_, _ []byte) { see("response") },
		Request:  func(string, []byte) bool { w.requests--; return w.requests >= 0 },
		Serve: func(ctx context.Context, method string, _ json.RawMessage) (any, error) {
			switch method {
			case "wait":
				<-ctx.Done()
				return nil, MethodNotFound(method)
			case "fail":
				return nil, io.ErrNoProgress
			}
			see("serve %s", method)
			return nil, nil
		},
		Notice:  func(method string, _ []byte) { see("notice %s", method) },
		Garbage: func(line []byte) { see("garbage %s", line) },
		TooLong: func(n int64) { see("too long %d", n) },
	})
	return w
}

func (w *witness) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(line)
}

// takes returns what it received and sent for an agent's output.
func (w *witness) takes(output string) (seen []string, said string) {
	w.Read(strings.NewReader(output))
	return w.seen, w.said.String()
}

func TestRead(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, c := range []struct{ name, line, seen, said string }{
		{"update", `{"method":"session/update","params":{"update":{"a":1}}}`, `update {"a":1}`, ""},
		{"update as a request", `{"id":1,"method":"session/update","params":{"update":{}}}`, `update {};serve session/update`, ok},
		{"update without one", `{"method":"session/update"}`, `garbage same`, ""},
		{"request", `{"id":1,"method":"fs/read_text_file"}`, "serve fs/read_text_file", ok},
		{"request that fails", `{"id":1,"method":"fail"}`, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"multiple Read calls return no data or error"}}`},
		{"notification", `{"method":"_x"}`, "notice _x", ""},
		{"null id", `{"id":null,"method":"_x"}`, "notice _x", ""},
		{"cancel", `{"method":"$/cancel_request","params":{}}`, "", ""},
		{"request that is taken back", `{"id":1,"method":"wait"}` + "\n" + `{"method":"$/cancel_request","params":{"requestId":1}}`, "", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found","data":{"method":"wait"}}}`},
		{"response", `{"id":1,"result":{}}`, "response", ""},
		{"error", `{"id":1,"error":{"code":1,"message":"m"}}`, "response", ""},
		{"neither", `{"a":1}`, "garbage same", ""},
		{"array", `[]`, "garbage same", ""},
		{"half", `{"id":1,`, "garbage same", ""},
		{"method of a wrong type", `{"method":{}}`, "garbage same", ""},
		{"version of a wrong type", `{"jsonrpc":2,"id":1,"result":{}}`, "garbage same", ""},
		{"carriage return", "{\"id\":1,\"result\":{}}\r", "response", ""},
		{"blank", "  ", "", ""},
		{"question that is no UTF-8", "{\"id\":1,\"method\":\"session/request_permission\",\"params\":\"\xff\"}", "garbage {\"id\":1,\"method\":\"session/request_permission\",\"params\":\"\uFFFD\"}", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the message is not valid UTF-8, so what runs could differ from what the user sees"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen, said := newWitness().takes(c.line)
			assert.Equal(t, strings.ReplaceAll(c.seen, "same", c.line), strings.Join(seen, ";"))
			assert.Equal(t, c.said, strings.TrimSuffix(said, "\n"))
		})
	}
}

// A message nested too deep is answered, at any depth and width.
func TestReadDeepMessages(t *testing.T) {
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	refused := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the message nests deeper than 100 levels; send less of it, or send it as text"}}` + "\n"
	for _, c := range []struct{ name, line, seen, said string }{
		{"update", `{"method":"session/update","params":{"update":` + nested(MaxDepth-2) + `}}`, "update " + nested(MaxDepth-2), ""},
		{"update that is too deep", `{"method":"session/update","params":{"update":` + nested(MaxDepth-1) + `}}`, "garbage same", ""},
		{"request that is too deep", `{"id":1,"method":"m","params":` + nested(9_000) + `}`, "garbage same", refused},
		{"response that is too deep", `{"id":1,"result":` + nested(9_000) + `}`, "response;garbage same", ""},
		{"deeper than JSON may be", `{"id":1,"method":"m","params":` + nested(1_000_000) + `}`, "garbage same", ""},
		{"wide", `{"method":"session/update","params":{"update":[` + strings.Repeat("[],", 3_000_000) + `0]}}`, "update [" + strings.Repeat("[],", 3_000_000) + "0]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen, said := newWitness().takes(c.line)
			assert.True(t, strings.ReplaceAll(c.seen, "same", c.line) == strings.Join(seen, ";"), "%.200s", seen)
			assert.Equal(t, c.said, said)
		})
	}
}

// A call returns the agent's response, of any kind.
func TestCall(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		result string
		err    string
	}{
		"a result":          {`{"id":1,"result":"r"}`, "r", ""},
		"null":              {`{"id":1,"result":null}`, "", ""},
		"no UTF-8":          {"{\"id\":1,\"result\":\"\xff\"}", "\uFFFD", ""},
		"an error":          {`{"id":1,"error":{"code":7,"message":"m","data":{"a":1}}}`, "", `{"code":7,"message":"m","data":{"a":1}}`},
		"a malformed error": {`{"id":1,"error":{"code":"x"}}`, "", `{"code":-32603,"message":"the agent answered with a malformed error"}`},
		"another type":      {`{"id":1,"result":{}}`, "", "the answer to m cannot be read: json: cannot unmarshal object into Go value of type string"},
		"a deep one":        {`{"id":1,"result":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "", `{"code":-32603,"message":"the message nests deeper than 100 levels; send less of it, or send it as text"}`},
		"another id":        {`{"id":2,"result":"r"}`, "", ErrClosed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWitness()
				go func() {
					synctest.Wait()
					w.Read(strings.NewReader(c.answer))
				}()
				r, err := Call[string](t.Context(), w.Conn, "m", map[string]int{"p": 1})
				assert.Equal(t, c.result, r)
				if c.err == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, c.err)
				}
				<-w.Done()
				assert.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":{"p":1}}`+"\n", w.said.String())
			})
		})
	}
}

// When the context of a call ends, the agent gets a cancel request.
func TestCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWitness()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		_, err := Call[string](ctx, w.Conn, "m", nil)
		require.ErrorIs(t, err, context.Canceled)
		w.Read(strings.NewReader(`{"id":1,"result":"late"}`))
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"m"}`+"\n"+`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`+"\n", w.said.String())
	})
}

func TestLimits(t *testing.T) {
	line := func(prefix string, n int) string {
		return prefix + strings.Repeat("x", n-len(prefix)-2) + `"}`
	}
	t.Run("32 MiB", func(t *testing.T) {
		seen, _ := newWitness().takes(line(`{"x":"`, MaxLine) + "\n" + line(`{"x":"`, MaxLine+1) + "\n" + `{"id":1,"result":1}`) // no newline
		require.Len(t, seen, 3)
		assert.True(t, strings.HasPrefix(seen[0], `garbage {"x"`), "it was read")
		assert.Equal(t, fmt.Sprint("too long ", MaxLine+2), seen[1])
		assert.Equal(t, "response", seen[2])
	})
	t.Run("10 MiB of a request", func(t *testing.T) {
		_, said := newWitness().takes(line(`{"id":2,"method":"m","x":"`, maxRequest+1))
		assert.Contains(t, said, `"id":2,"error":{"code":-32603,"message":"the request is longer than 10 MiB"}`)
	})
	t.Run("requests", func(t *testing.T) {
		w := newWitness()
		w.requests = 1
		_, said := w.takes(`{"id":1,"method":"m"}` + "\n" + `{"id":2,"method":"m"}`)
		assert.Contains(t, said, `"id":2,"error":{"code":-32603,"message":"too many requests are open"}`)
	})
}
