package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The cases of testdata/frames that are too large to keep in files.

const (
	maxFrame = 10 << 20
	maxDepth = 10_000
	maxBatch = 1_000

	after       = `{"jsonrpc":"2.0","id":"after","method":"echo","params":["served"]}`
	afterServed = `{"jsonrpc":"2.0","id":"after","result":["served"]}`
)

// refused is the answer to what was refused, up to the end of its message.
func refused(code int, message, reason string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"%s","data":{"reason":"%s"}}}`, code, message, reason)
}

func echoRequest(params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"echo","params":` + params + `}`
}

// textOfFrame is a JSON text that makes an echo request of size bytes.
func textOfFrame(size int) string {
	return `"` + strings.Repeat("x", size-len(echoRequest(`""`))) + `"`
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func batchOf(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"echo"},`, n), ",") + "]"
}

func TestLargeFrames(t *testing.T) {
	oversize := refused(-32600, "Invalid Request: the body is longer than the limit of 10485760 bytes", "oversize")
	notJSON := func(size int) string {
		return refused(-32700, fmt.Sprintf("Parse error: the body of %d bytes is not one valid JSON value", size), "invalid-json")
	}
	atLimit, overLimit := textOfFrame(maxFrame), textOfFrame(maxFrame+1)
	// The request around the nesting is one level of it.
	deepest, tooDeep := nested(maxDepth-1), nested(maxDepth)
	for _, c := range []struct {
		name string
		body string
		want string
	}{
		{"a body of 10485760 bytes is served", echoRequest(atLimit), `{"jsonrpc":"2.0","id":1,"result":` + atLimit + `}`},
		{"a body of 10485761 bytes is refused", echoRequest(overLimit), oversize},
		{"a body of 20 MiB of brackets is refused by its length alone", strings.Repeat("[", 20<<20), oversize},
		{"nesting of 10000 is served", echoRequest(deepest), `{"jsonrpc":"2.0","id":1,"result":` + deepest + `}`},
		{"nesting of 10001 is refused", echoRequest(tooDeep), notJSON(len(echoRequest(tooDeep)))},
		{"nesting of 10001 is refused in a batch", "[" + echoRequest(deepest) + "]", notJSON(len(echoRequest(deepest)) + 2)},
		{"ten million open brackets are refused", strings.Repeat("[", 10_000_000), notJSON(10_000_000)},
		{"ten million open objects are refused", strings.Repeat(`{"":`, 2_500_000), notJSON(10_000_000)},
		{
			"a batch of 1000 is served", batchOf(maxBatch),
			"[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":null},`, maxBatch), ",") + "]",
		},
		{
			"a batch of 1001 is refused", batchOf(maxBatch + 1),
			refused(-32600, "Invalid Request: a batch may hold 1000 requests; send several", "batch-too-large"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := converse(t, launch{}, []byte(framed(c.body)+framed(after)), atOnce)
			// The largest are no text to print where they differ.
			got := requireFrames(t, out)
			require.Len(t, got, 2)
			assert.True(t, c.want == got[0], "want: %.500s\ngot:  %.500s", c.want, got[0])
			assert.Equal(t, afterServed, got[1])
		})
	}
}

// A length that is over the limit is refused before its body has come.
func TestOversizeIsAnsweredAtOnce(t *testing.T) {
	p := run(t)
	p.send("Content-Length: 1073741824\r\n\r\n")
	assert.Contains(t, p.next(), `"reason":"oversize"`)
	p.finish()
}

// Any number of frames may come before the first reply is read, in chunks that
// end anywhere.
func TestPipelinedFramesInRaggedChunks(t *testing.T) {
	const n = 20_000
	var in strings.Builder
	for i := range n {
		in.WriteString(framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo","params":"%s"}`, i, strings.Repeat("x", i%700))))
	}
	p := run(t)
	go func() {
		rest := in.String()
		for chunk := 1; rest != ""; chunk = chunk*5%9973 + 1 {
			size := min(chunk, len(rest))
			if _, err := p.stdin.WriteString(rest[:size]); err != nil {
				return
			}
			rest = rest[size:]
		}
	}()
	for i := range n {
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`, i, strings.Repeat("x", i%700)), p.next())
	}
	p.finish()
}
