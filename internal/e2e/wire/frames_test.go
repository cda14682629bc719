package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// The cases of testdata/frames that are too large to keep in files.

const (
	maxFrame = 10 << 20
	maxDepth = 10_000
	maxBatch = 1_000

	after       = `{"jsonrpc":"2.0","id":"after","method":"echo","params":["served"]}`
	afterServed = `{"jsonrpc":"2.0","id":"after","result":["served"]}`
)

// refused returns the error response to a refused frame.
func refused(code int, message, reason string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"%s","data":{"reason":"%s"}}}`, code, message, reason)
}

func echoRequest(params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"echo","params":` + params + `}`
}

// textOfFrame returns a JSON text that makes an echo request of size bytes.
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
	noRequest := refused(-32600, "Invalid Request: each message of a batch must be an object", "not-an-object")
	// The request itself is one level of the nesting.
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
		{"arrays nested 10000 deep are no request", nested(maxDepth), "[" + noRequest + "]"},
		{
			"a batch of 500 arrays, each nested 9999 deep, has no request", "[" + strings.TrimSuffix(strings.Repeat(nested(maxDepth-1)+",", 500), ",") + "]",
			"[" + strings.TrimSuffix(strings.Repeat(noRequest+",", 500), ",") + "]",
		},
		{
			"three million arrays are refused as a batch", "[" + strings.Repeat("[],", 3_000_000) + "[]]",
			refused(-32600, "Invalid Request: a batch may hold 1000 requests; send several", "batch-too-large"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := e2e.Run(t)
			go e2e.AtOnce(p.Stdin, []byte(e2e.Framed(c.body)+e2e.Framed(after)))
			// The largest replies are too long for a failure message.
			got := p.Next()
			assert.True(t, c.want == got, "want: %.500s\ngot:  %.500s", c.want, got)
			assert.Equal(t, afterServed, p.Next())
			p.Finish() // only now: a busy machine might not serve 10 MB in the time that the end allows
		})
	}
}

// The program refuses a length over the limit before the body arrives.
func TestOversizeIsAnsweredAtOnce(t *testing.T) {
	p := e2e.Run(t)
	p.Send("Content-Length: 1073741824\r\n\r\n")
	assert.Contains(t, p.Next(), `"reason":"oversize"`)
	p.Finish()
}

// The client may send any number of frames before it reads the first reply, in chunks that end
// anywhere.
func TestPipelinedFramesInRaggedChunks(t *testing.T) {
	const n = 20_000
	var in strings.Builder
	for i := range n {
		in.WriteString(e2e.Framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo","params":"%s"}`, i, strings.Repeat("x", i%700))))
	}
	p := e2e.Run(t)
	go func() {
		rest := in.String()
		for chunk := 1; rest != ""; chunk = chunk*5%9973 + 1 {
			size := min(chunk, len(rest))
			if _, err := p.Stdin.WriteString(rest[:size]); err != nil {
				return
			}
			rest = rest[size:]
		}
	}()
	for i := range n {
		require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"%s"}`, i, strings.Repeat("x", i%700)), p.Next())
	}
	p.Finish()
}

const tooSlow = "a frame did not arrive whole in time"

// requireTimeouts waits until the log reports n incomplete frames.
func requireTimeouts(p *e2e.Process, n int) {
	p.T.Helper()
	p.Log.Await(p.T, func(log string) bool { return strings.Count(log, tooSlow) >= n }, fmt.Sprintf("%d incomplete frames", n))
}

// The program drops an incomplete frame without an answer, any number of times. It also drops the
// late rest of the frame. Then it serves the next good frame.
func TestAFrameThatStopsArrivingIsDropped(t *testing.T) {
	launches := map[string]e2e.Launch{
		"by flag":        {Args: []string{"--read-timeout", "50ms"}},
		"by environment": {Env: []string{"DUET_RPC_READ_TIMEOUT=0.05"}},
	}
	for name, l := range launches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := l.Start(t)
			whole := e2e.Framed(after)
			header := len(whole) - len(after)
			for i, stop := range []int{1, 10, header - 4, header - 1, header, header + 1, len(whole) - 1} {
				p.Send(whole[:stop])
				requireTimeouts(p, i+1)
				p.Send(whole[stop:])
				p.RequireServing()
			}
			p.Finish()
		})
	}
}

// The read timeout also applies to a skipped body. The program has answered that frame before.
func TestASkippedBodyThatStopsArrivingIsDropped(t *testing.T) {
	p := e2e.Run(t, "--read-timeout", "50ms")
	p.Send("Content-Length: 10485761\r\n\r\nsome of it")
	require.Contains(t, p.Next(), `"reason":"oversize"`)
	requireTimeouts(p, 1)
	p.RequireServing()
	p.Finish()
}

// The read timeout does not apply between frames, even after blank lines or garbage.
func TestIdlenessIsNoTimeout(t *testing.T) {
	for name, between := range map[string]string{"nothing": "", "blank lines": "\r\n \r\n", "garbage": "a stray print"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout = 50 * time.Millisecond
			p := e2e.Run(t, "--read-timeout", timeout.String())
			p.RequireServing()
			p.Send(between)
			if name == "garbage" {
				require.Contains(t, p.Next(), `"reason":"length-mismatch"`)
			}
			time.Sleep(3 * timeout) // machine: idleness is time in which nothing comes; on a slow machine there is more of it
			p.RequireServing()
			p.Finish()
			require.NotContains(t, p.Log.String(), tooSlow)
		})
	}
}

const secret = "hunter2"

// Users paste logs into reports. At no level does the log contain a byte of a refused frame, or a
// parameter.
func TestLogKeepsSecrets(t *testing.T) {
	with := func(params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"setLogLevel","params":%s}`, params)
	}
	object := with(`{"level":"` + secret + `"}`)
	for name, in := range map[string]string{
		"served":                  e2e.Framed(echoRequest(`["` + secret + `"]`)),
		"wrong level":             e2e.Framed(object),
		"wrong params":            e2e.Framed(with(`["` + secret + `","` + secret + `"]`)),
		"wrong member":            e2e.Framed(with(`{"level":{"` + secret + `":1}}`)),
		"wrong version":           e2e.Framed(strings.Replace(object, "2.0", secret, 1)),
		"wrong method":            e2e.Framed(`{"jsonrpc":"2.0","id":1,"method":{"` + secret + `":1}}`),
		"wrong id":                e2e.Framed(`{"jsonrpc":"2.0","id":["` + secret + `"],"method":"ping"}`),
		"a result for no request": e2e.Framed(`{"jsonrpc":"2.0","id":5,"result":"` + secret + `"}`),
		"an error for no request": e2e.Framed(`{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"` + secret + `"}}`),
		"a cancellation":          e2e.Framed(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":"` + secret + `"}`),
		"a notification":          e2e.Framed(`{"jsonrpc":"2.0","method":"nosuch","params":"` + secret + `"}`),
		"a batch":                 e2e.Framed(`["` + secret + `",` + object + `]`),
		"oversize":                e2e.Framed(echoRequest(`"` + secret + strings.Repeat(".", 500) + `"`)),
		"header too large":        "X-Key: " + strings.Repeat(secret, 100) + "\r\n" + e2e.Framed(object),
		"missing content length":  "X-Key: " + secret + "\r\n\r\n" + object,
		"bad content length":      "Content-Length: " + secret + "\r\n\r\n" + object,
		"other type":              "Content-Type: text/" + secret + "\r\n" + e2e.Framed(object),
		"other charset":           "Content-Type: application/vscode-jsonrpc; charset=" + secret + "\r\n" + e2e.Framed(object),
		"garbage":                 "a stray print of " + secret + "\n",
		"not JSON":                e2e.Framed(object + secret),
		"not UTF-8":               e2e.Framed(object + "\xff"),
		"a cut frame":             "Content-Length: 400\r\n\r\n" + object,
		"a cut header":            "X-Key: " + secret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := e2e.Launch{Args: []string{"--log-level", "debug", "--max-frame-bytes", "400", "--max-header-bytes", "400"}}
			p := l.Start(t)
			p.Send(in)
			p.CloseStdin()
			p.Rest()
			p.RequireSuccess()
			require.Contains(t, p.Log.String(), "msg=stopped")
			require.Greater(t, strings.Count(p.Log.String(), "\n"), 2, "the log has a line about the input")
			assert.NotContains(t, p.Log.String(), secret)
		})
	}
}

// The log has no value of the environment.
func TestLogKeepsTheEnvironment(t *testing.T) {
	p := e2e.Launch{Args: []string{"--log-level", "debug", "--test-methods"}, Env: []string{"SOME_API_KEY=" + secret}}.Start(t)
	p.Ask(`{"jsonrpc":"2.0","id":1,"method":"test.panic"}`)
	p.Finish()
	assert.NotContains(t, p.Log.String(), secret)
}

// The program appends to a log file that is a link or a device.
func TestLogFileOfAnyKind(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, []byte("kept\n"), 0o644))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{link, os.DevNull} {
		p := e2e.Launch{Env: []string{"DUET_RPC_LOG=" + path}}.Start(t)
		p.RequireServing()
		p.Finish()
		assert.Empty(t, p.Log.String())
	}
	log := e2e.ReadFile(t, target)
	e2e.RequireParts(t, log, "kept\n", "msg=stopped")
}
