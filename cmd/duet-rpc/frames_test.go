package main_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A frameCase is a conversation in testdata/frames, whose README describes the files.
type frameCase struct {
	name string
	in   []byte
	out  string // the path of the golden file
	args []string
}

func frameCases(t *testing.T) []frameCase {
	inputs, err := filepath.Glob("../../testdata/frames/*.in")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	var cases []frameCase
	for _, path := range inputs {
		base := strings.TrimSuffix(path, ".in")
		in := readFile(t, path)
		args, err := os.ReadFile(base + ".args")
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		cases = append(cases, frameCase{filepath.Base(base), []byte(in), base + ".out", append(strings.Fields(string(args)), unhurried)})
	}
	return cases
}

// frameModes are the ways in which the bytes of a case reach the program and come back. Each
// returns the program's output. A file for one system may add modes.
var frameModes = []struct {
	name     string
	converse func(*testing.T, frameCase) []byte
}{
	{"pipes", func(t *testing.T, c frameCase) []byte { return converse(t, launch{args: c.args}, c.in, atOnce) }},
	{"pipes, logging everything", func(t *testing.T, c frameCase) []byte {
		return converse(t, launch{args: append(c.args, "--log-level", "debug")}, c.in, atOnce)
	}},
	{"pipes, byte by byte", func(t *testing.T, c frameCase) []byte {
		send := byteByByte
		if len(c.in) > 4<<10 { // each byte is a system call for both sides
			send = atOnce
		}
		return converse(t, launch{args: c.args}, c.in, send)
	}},
	{"files", throughFiles},
}

// timestamp matches what a golden file replaces by a fixed time of the same length.
var timestamp = regexp.MustCompile(`"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)

// TestGoldenFrames plays each case in one mode. frame.TestGoldenInputsInPieces covers the other
// ways to read the bytes. `make soak` plays each case in each mode.
func TestGoldenFrames(t *testing.T) {
	for i, c := range frameCases(t) {
		for j, mode := range frameModes {
			if !testkit.Soak && i%len(frameModes) != j {
				continue
			}
			t.Run(c.name+"/"+mode.name, func(t *testing.T) {
				t.Parallel()
				got := mode.converse(t, c)
				requireFrames(t, got)
				testkit.GoldenBytes(t, c.out, timestamp.ReplaceAll(got, []byte(`"timestamp":"2000-01-01T00:00:00.000Z"`)))
			})
		}
	}
}

// throughFiles runs `duet-rpc <in >out`.
func throughFiles(t *testing.T, c frameCase) []byte {
	in, err := os.Open(strings.TrimSuffix(c.out, ".out") + ".in")
	require.NoError(t, err)
	defer in.Close()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	launch{args: c.args, stdin: in, stdout: out}.start(t).requireSuccess()
	return []byte(readFile(t, out.Name()))
}

// Each file of a case belongs to an input.
func TestGoldenFramesBelongTogether(t *testing.T) {
	for _, pattern := range []string{"*.out", "*.args"} {
		paths, err := filepath.Glob("../../testdata/frames/" + pattern)
		require.NoError(t, err)
		for _, path := range paths {
			require.FileExists(t, strings.TrimSuffix(path, filepath.Ext(path))+".in")
		}
	}
}

// converse starts the program, sends it in, closes its standard input and
// returns its whole standard output. The program must succeed.
func converse(t *testing.T, l launch, in []byte, send func(io.Writer, []byte)) []byte {
	t.Helper()
	p := l.start(t)
	go func() {
		send(p.stdin, in)
		p.stdin.Close()
	}()
	out, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	p.requireSuccess()
	return out
}

// atOnce ignores a write error: it means that the program has ended, and the output shows that.
func atOnce(w io.Writer, in []byte) { _, _ = w.Write(in) }

func byteByByte(w io.Writer, in []byte) {
	for i := range in {
		if _, err := w.Write(in[i : i+1]); err != nil {
			return
		}
	}
}

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
			out := converse(t, launch{}, []byte(framed(c.body)+framed(after)), atOnce)
			// The largest replies are too long for a failure message.
			got := requireFrames(t, out)
			require.Len(t, got, 2)
			assert.True(t, c.want == got[0], "want: %.500s\ngot:  %.500s", c.want, got[0])
			assert.Equal(t, afterServed, got[1])
		})
	}
}

// The program refuses a length over the limit before the body arrives.
func TestOversizeIsAnsweredAtOnce(t *testing.T) {
	p := run(t)
	p.send("Content-Length: 1073741824\r\n\r\n")
	assert.Contains(t, p.next(), `"reason":"oversize"`)
	p.finish()
}

// The client may send any number of frames before it reads the first reply, in chunks that end
// anywhere.
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

const tooSlow = "a frame did not arrive whole in time"

// requireTimeouts waits until the log reports n incomplete frames.
func (p *process) requireTimeouts(n int) {
	p.t.Helper()
	p.log.Await(p.t, func(log string) bool { return strings.Count(log, tooSlow) >= n }, fmt.Sprintf("%d incomplete frames", n))
}

// The program drops an incomplete frame without an answer, any number of times. It also drops the
// late rest of the frame. Then it serves the next good frame.
func TestAFrameThatStopsArrivingIsDropped(t *testing.T) {
	launches := map[string]launch{
		"by flag":        {args: []string{"--read-timeout", "50ms"}},
		"by environment": {env: []string{"DUET_RPC_READ_TIMEOUT=0.05"}},
	}
	for name, l := range launches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := l.start(t)
			whole := framed(after)
			header := len(whole) - len(after)
			for i, stop := range []int{1, 10, header - 4, header - 1, header, header + 1, len(whole) - 1} {
				p.send(whole[:stop])
				p.requireTimeouts(i + 1)
				p.send(whole[stop:])
				p.requireServing()
			}
			p.finish()
		})
	}
}

// The read timeout also applies to a skipped body. The program has answered that frame before.
func TestASkippedBodyThatStopsArrivingIsDropped(t *testing.T) {
	p := run(t, "--read-timeout", "50ms")
	p.send("Content-Length: 10485761\r\n\r\nsome of it")
	require.Contains(t, p.next(), `"reason":"oversize"`)
	p.requireTimeouts(1)
	p.requireServing()
	p.finish()
}

// The read timeout does not apply between frames, even after blank lines or garbage.
func TestIdlenessIsNoTimeout(t *testing.T) {
	for name, between := range map[string]string{"nothing": "", "blank lines": "\r\n \r\n", "garbage": "a stray print"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout = 50 * time.Millisecond
			p := run(t, "--read-timeout", timeout.String())
			p.requireServing()
			p.send(between)
			if name == "garbage" {
				require.Contains(t, p.next(), `"reason":"length-mismatch"`)
			}
			time.Sleep(3 * timeout) // machine: idleness is time in which nothing comes; on a slow machine there is more of it
			p.requireServing()
			p.finish()
			require.NotContains(t, p.log.String(), tooSlow)
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
		"served":                  framed(echoRequest(`["` + secret + `"]`)),
		"wrong level":             framed(object),
		"wrong params":            framed(with(`["` + secret + `","` + secret + `"]`)),
		"wrong member":            framed(with(`{"level":{"` + secret + `":1}}`)),
		"wrong version":           framed(strings.Replace(object, "2.0", secret, 1)),
		"wrong method":            framed(`{"jsonrpc":"2.0","id":1,"method":{"` + secret + `":1}}`),
		"wrong id":                framed(`{"jsonrpc":"2.0","id":["` + secret + `"],"method":"ping"}`),
		"a result for no request": framed(`{"jsonrpc":"2.0","id":5,"result":"` + secret + `"}`),
		"an error for no request": framed(`{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"` + secret + `"}}`),
		"a cancellation":          framed(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":"` + secret + `"}`),
		"a notification":          framed(`{"jsonrpc":"2.0","method":"nosuch","params":"` + secret + `"}`),
		"a batch":                 framed(`["` + secret + `",` + object + `]`),
		"oversize":                framed(echoRequest(`"` + secret + strings.Repeat(".", 500) + `"`)),
		"header too large":        "X-Key: " + strings.Repeat(secret, 100) + "\r\n" + framed(object),
		"missing content length":  "X-Key: " + secret + "\r\n\r\n" + object,
		"bad content length":      "Content-Length: " + secret + "\r\n\r\n" + object,
		"other type":              "Content-Type: text/" + secret + "\r\n" + framed(object),
		"other charset":           "Content-Type: application/vscode-jsonrpc; charset=" + secret + "\r\n" + framed(object),
		"garbage":                 "a stray print of " + secret + "\n",
		"not JSON":                framed(object + secret),
		"not UTF-8":               framed(object + "\xff"),
		"a cut frame":             "Content-Length: 400\r\n\r\n" + object,
		"a cut header":            "X-Key: " + secret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := launch{args: []string{"--log-level", "debug", "--max-frame-bytes", "400", "--max-header-bytes", "400"}}
			p := l.start(t)
			p.send(in)
			p.closeStdin()
			p.rest()
			p.requireSuccess()
			require.Contains(t, p.log.String(), "msg=stopped")
			require.Greater(t, strings.Count(p.log.String(), "\n"), 2, "the log has a line about the input")
			assert.NotContains(t, p.log.String(), secret)
		})
	}
}

// The log has no value of the environment.
func TestLogKeepsTheEnvironment(t *testing.T) {
	p := launch{args: []string{"--log-level", "debug", "--test-methods"}, env: []string{"SOME_API_KEY=" + secret}}.start(t)
	p.ask(`{"jsonrpc":"2.0","id":1,"method":"test.panic"}`)
	p.finish()
	assert.NotContains(t, p.log.String(), secret)
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
		p := launch{env: []string{"DUET_RPC_LOG=" + path}}.start(t)
		p.requireServing()
		p.finish()
		assert.Empty(t, p.log.String())
	}
	log := readFile(t, target)
	requireParts(t, log, "kept\n", "msg=stopped")
}
