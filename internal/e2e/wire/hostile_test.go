//go:build soak

package wire

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A gigabyte of nonsense ends no connection and takes little memory. The program serves the first
// good frame after it.
func TestAGigabyteOfNonsense(t *testing.T) {
	for name, nonsense := range map[string]func(*rand.Rand, *bytes.Buffer){
		"random bytes":       func(rng *rand.Rand, b *bytes.Buffer) { randomBytes(rng, b, 1<<20) },
		"hostile structures": hostilePiece,
	} {
		t.Run(name, func(t *testing.T) {
			endure(t, rand.New(rand.NewPCG(testkit.Seed(t), 0)), nonsense)
		})
	}
}

// endure sends a gigabyte of pieces and then a good frame.
func endure(t *testing.T, rng *rand.Rand, nonsense func(*rand.Rand, *bytes.Buffer)) {
	binary := e2e.FastProgram(t)
	p := e2e.Launch{Binary: binary, Args: []string{"--log-level", "error"}}.Start(t)
	p.RequireServing()

	sent := make(chan error, 1)
	go func() { sent <- sendNonsense(p.Stdin, rng, nonsense) }()
	answers := 0
	for {
		body, err := p.Frames.Next()
		require.NoError(t, err)
		if string(body) == `{"jsonrpc":"2.0","id":"the end","result":null}` {
			break
		}
		require.NoError(t, e2e.CheckBody(body))
		answers++
	}
	require.NoError(t, <-sent)
	most := p.Memory(t, "VmHWM")
	t.Logf("%d answers, %d MB of memory at most", answers, most>>20)
	assert.Less(t, most, e2e.HostileMemory)
	p.RequireServing()
	p.Finish()
	assert.NotContains(t, p.Log.String(), "panic")
}

func sendNonsense(w io.Writer, rng *rand.Rand, nonsense func(*rand.Rand, *bytes.Buffer)) error {
	total := 1 << 30
	if e2e.RaceEnabled { // it slows the generation of the pieces
		total = 1 << 27
	}
	var b bytes.Buffer
	for sent := 0; sent < total; {
		b.Reset()
		for b.Len() < 256<<10 {
			nonsense(rng, &b)
		}
		n, err := w.Write(b.Bytes())
		if err != nil {
			return err
		}
		sent += n
	}
	// This tail is longer than any body announced so far. Its last byte ends no line, so the good
	// frame begins in the middle of a line.
	b.Reset()
	b.WriteString(strings.Repeat("}nonsense{", longestSkip/10+1))
	b.WriteString(e2e.Framed(`{"jsonrpc":"2.0","id":"the end","method":"echo"}`))
	_, err := w.Write(b.Bytes())
	return err
}

// longestSkip is the length of the longest body that hostile headers announce and the program
// skips. The program skips no body over 1 GiB.
const longestSkip = 12 << 20

func randomBytes(rng *rand.Rand, b *bytes.Buffer, n int) {
	for range n / 8 {
		v := rng.Uint64()
		b.Write([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)})
	}
}

// hostilePiece appends an input of a broken or malicious client.
func hostilePiece(rng *rand.Rand, b *bytes.Buffer) {
	if rng.IntN(5000) == 0 {
		hugePiece(rng, b)
		return
	}
	some := 1 + rng.IntN(1<<rng.IntN(17)) // mostly small, so that many pieces fit
	switch piece := rng.IntN(340); {
	case piece < 30: // headers that do not end
		b.WriteString(strings.Repeat(pick(rng, "X: y\r\n", "x", "Content-Length", "X:", "\t", "Content-Type: text/plain\r\n"), some/4))
	case piece < 60:
		b.WriteString(strings.Repeat(pick(rng, "\x00", "\r", "\n", "\r\n", " ", ":", "Content-Length:", "Content-Length: 1", "Content-Length: 1\r", "\xff"), some/4))
	case piece < 80:
		randomBytes(rng, b, some)
	case piece < 120:
		b.WriteString("Content-Length: " + pick(rng, "-1", "", "x", "0x10", "1 1", "99999999999999999999", "1073741825", "9223372036854775807", "4294967296\r\nContent-Length: 5") + "\r\n\r\n")
	case piece < 160:
		b.WriteString("Content-Type: " + pick(rng, "text/plain", "application/vscode-jsonrpc; charset=latin1", ";;;", `application/vscode-jsonrpc; charset="`, "") + "\r\n" + e2e.Framed(after[:rng.IntN(len(after))]))
	case piece < 200: // a good message, with one byte changed
		message := []byte(e2e.Framed(echoRequest(`{"text":"` + strings.Repeat("x", some/16) + `"}`)))
		message[rng.IntN(len(message))] = byte(rng.Uint32())
		b.Write(message)
	case piece < 240: // a good message, cut short
		message := e2e.Framed(echoRequest(`"` + strings.Repeat("x", some/16) + `"`))
		b.WriteString(message[:rng.IntN(len(message))])
	case piece < 280:
		b.WriteString(e2e.Framed(pick(rng, "", " ", "{}", "[]", "[[]]", "null", "1e999999999", `"\ud800"`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
			`{"jsonrpc":"2.0","id":1,"method":"nosuch"}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[[[]]]}`, "\xef\xbb\xbf{}", "\xff")))
	case piece < 320:
		for range 1 + rng.IntN(20) {
			b.WriteString(pick(rng, headerTokens...))
		}
	default:
		b.WriteString(e2e.Framed(echoRequest(`"` + strings.Repeat("x", some/16) + `"`)))
	}
}

// headerTokens are the parts of headers, and invalid parts. Each number has an end, so that none
// grows to the length of a body that the program would skip.
var headerTokens = []string{
	"Content-Length: ", "content-length:", "Content-Type: ", "Content-Type", "X-Other: ", "application/vscode-jsonrpc", "; charset=utf-8", "; charset=",
	"text/plain", "\r\n", "\n", "\r", "\r\n\r\n", "\n\n", "2\r\n", "66 ", "0\n", "1073741825\r\n", ":", " ", "\t", "x", "{}", "[]", "\x00", "\xff", after,
}

// hugePiece appends a piece of up to 12 MiB.
func hugePiece(rng *rand.Rand, b *bytes.Buffer) {
	switch rng.IntN(6) {
	case 0:
		b.WriteString(e2e.Framed(strings.Repeat(pick(rng, "[", `{"":`, `[{"a":[`), 1<<20)))
	case 1: // a body that does not follow
		fmt.Fprintf(b, "Content-Length: %d\r\n\r\n", rng.IntN(longestSkip))
	case 2: // a body over the limit
		fmt.Fprintf(b, "Content-Length: %d\r\n\r\n%s", longestSkip, bytes.Repeat([]byte{'a'}, longestSkip))
	case 3:
		b.WriteString(e2e.Framed("[" + strings.Repeat("1,", 1+rng.IntN(4<<20)) + "1]"))
	case 4:
		b.WriteString(e2e.Framed(batchOf(1 + rng.IntN(1200))))
	case 5:
		b.WriteString(e2e.Framed(echoRequest(nested(rng.IntN(2 * maxDepth)))))
	}
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }

// manyMembers returns an object with n small members, each with its own name.
func manyMembers(n int) string {
	var b strings.Builder
	b.WriteString(`{"level":"info"`)
	for i := range n {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	b.WriteByte('}')
	return b.String()
}

// An odd message of the maximum length takes a few copies of itself in memory, not a tree of small
// objects.
func TestOddMessagesCostLittleMemory(t *testing.T) {
	binary := e2e.FastProgram(t)
	long := strings.Repeat("x", 10_000_000)
	escaped := strings.Repeat(`\u0041`, len(long)/6)
	request := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}`, method, params)
	}
	for name, message := range map[string]string{
		"many members where none are wanted": request("ping", manyMembers(900_000)),
		"many members where some are wanted": request("setLogLevel", manyMembers(900_000)),
		"one member many times":              request("ping", `{"a":0`+strings.Repeat(`,"a":0`, 1_600_000)+`}`),
		"a long value":                       request("setLogLevel", `{"level":"`+long+`"}`),
		"a long value in escapes":            request("setLogLevel", `{"level":"`+escaped+`"}`),
		"a long value that is not looked at": request("initialize", `{"capabilities":"`+long+`"}`),
		"a long method":                      request(long, `1`),
		"a long method in escapes":           request(escaped, `1`),
		"a long id":                          `{"jsonrpc":"2.0","method":"nosuch","id":"` + long + `"}`,
		"a long name in escapes":             `{"jsonrpc":"2.0","method":"nosuch","id":1,"` + escaped + `":1}`,
		"a long array":                       request("ping", `[1`+strings.Repeat(`,1`, 5_000_000)+`]`),
		"a batch of long replies":            "[" + strings.Repeat(request("rpc.discover", `null`)+",", maxBatch-1) + request("ping", `null`) + "]",
		"a batch of long requests":           "[" + strings.Repeat(request("echo", `"`+long[:10_000]+`"`)+",", maxBatch-1) + request("ping", `null`) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.LessOrEqual(t, len(message), maxFrame)
			p := e2e.Launch{Binary: binary, Args: []string{"--log-level", "error"}}.Start(t)
			for range 3 {
				go e2e.AtOnce(p.Stdin, []byte(e2e.Framed(message)))
				p.Next()
			}
			p.RequireServing()
			most := p.Memory(t, "VmHWM")
			t.Logf("%d MB at most", most>>20)
			assert.Less(t, most, e2e.HostileMemory)
			p.Finish()
		})
	}
}
