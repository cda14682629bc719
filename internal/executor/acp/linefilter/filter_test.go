package linefilter

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A witness is a filter that writes down what it does.
type witness struct {
	Filter
	sdkGot   bytes.Buffer
	seen     []string
	requests int
}

func newWitness() *witness {
	w := &witness{requests: 1 << 30}
	w.Filter = Filter{
		SDK:      &w.sdkGot,
		Update:   func(u []byte, _ bool) { w.seen = append(w.seen, "update "+string(u)) },
		Response: func(_, _ []byte) { w.seen = append(w.seen, "response") },
		Request:  func(string, []byte) bool { w.requests--; return w.requests >= 0 },
		Refuse:   func(id []byte, err error) { w.seen = append(w.seen, fmt.Sprintf("refuse %s %v", id, err)) },
		Garbage:  func(line []byte) { w.seen = append(w.seen, "garbage "+string(line)) },
		TooLong:  func(n int64) { w.seen = append(w.seen, fmt.Sprint("too long ", n)) },
	}
	return w
}

func TestFilter(t *testing.T) {
	for _, c := range []struct{ name, line, seen, sdk string }{
		{"update", `{"method":"session/update","params":{"update":{"a":1}}}`, `update {"a":1}`, ""},
		{"update as a request", `{"id":1,"method":"session/update","params":{"update":{}}}`, `update {}`, "same"},
		{"update without one", `{"method":"session/update"}`, `garbage same`, ""},
		{"request", `{"id":1,"method":"fs/read_text_file"}`, "", "same"},
		{"notification", `{"method":"_x"}`, "", ""},
		{"null id", `{"id":null,"method":"_x"}`, "", ""},
		{"cancel", `{"method":"$/cancel_request","params":{}}`, "", "same"},
		{"response", `{"id":1,"result":{}}`, "response", "same"},
		{"error", `{"id":1,"error":{"code":1,"message":"m"}}`, "response", "same"},
		{"malformed error", `{"id":1,"error":{"code":"x"}}`, "response", `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the agent answered with a malformed error"}}`},
		{"neither", `{"a":1}`, "garbage same", ""},
		{"array", `[]`, "garbage same", ""},
		{"half", `{"id":1,`, "garbage same", ""},
		{"method of a wrong type", `{"method":{}}`, "garbage same", ""},
		{"version of a wrong type", `{"jsonrpc":2,"id":1,"result":{}}`, "garbage same", ""},
		{"carriage return", "{\"id\":1,\"result\":{}}\r", "response", `{"id":1,"result":{}}`},
		{"blank", "  ", "", ""},
		{"invalid UTF-8", "{\"id\":1,\"result\":\"\xff\"}", "response", "{\"id\":1,\"result\":\"\uFFFD\"}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWitness()
			w.line([]byte(c.line))
			assert.Equal(t, strings.ReplaceAll(c.seen, "same", c.line), strings.Join(w.seen, ";"))
			assert.Equal(t, strings.ReplaceAll(c.sdk, "same", c.line), strings.TrimSuffix(w.sdkGot.String(), "\n"))
		})
	}
}

func TestLimitsOfTheFilter(t *testing.T) {
	line := func(prefix string, n int) string {
		return prefix + strings.Repeat("x", n-len(prefix)-2) + `"}`
	}
	t.Run("32 MiB", func(t *testing.T) {
		w := newWitness()
		input := line(`{"x":"`, MaxLine) + "\n" + line(`{"x":"`, MaxLine+1) + "\n" + `{"id":1,"result":1}` // no newline
		require.ErrorIs(t, w.Run(strings.NewReader(input)), io.EOF)
		require.Len(t, w.seen, 3)
		assert.True(t, strings.HasPrefix(w.seen[0], `garbage {"x"`), "it was read")
		assert.Equal(t, fmt.Sprint("too long ", MaxLine+2), w.seen[1])
		assert.Equal(t, "response", w.seen[2])
	})
	t.Run("the SDK's 10 MiB", func(t *testing.T) {
		w := newWitness()
		w.line([]byte(line(`{"id":1,"result":"`, maxSDKLine)))
		assert.Equal(t, maxSDKLine+1, w.sdkGot.Len())
		w.sdkGot.Reset()
		w.line([]byte(line(`{"id":1,"result":"`, maxSDKLine+1)))
		assert.Less(t, w.sdkGot.Len(), 200)
		w.line([]byte(line(`{"id":2,"method":"m","x":"`, maxSDKLine+1)))
		assert.Contains(t, w.seen, "refuse 2 the message is longer than 10 MiB")
	})
	t.Run("requests", func(t *testing.T) {
		w := newWitness()
		w.requests = 1
		w.line([]byte(`{"id":1,"method":"m"}`))
		w.line([]byte(`{"id":2,"method":"m"}`))
		assert.Equal(t, []string{"refuse 2 too many requests are open"}, w.seen)
	})
}
