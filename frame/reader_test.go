package frame_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// drain reads everything and returns one line for each outcome: the body of a
// message, or code, reason and id of a refusal.
func drain(src io.Reader, f frame.Framing, limits frame.Limits) []string {
	r := frame.NewReader(src, f, limits)
	return drainReader(r)
}

func drainReader(r *frame.Reader) []string {
	var got []string
	var m frame.Message
	for len(got) < 100_000 { // more than any input here yields
		err := r.Next(&m)
		var refusal *frame.Refusal
		switch {
		case err == nil:
			got = append(got, string(m.Body))
		case errors.As(err, &refusal):
			line := fmt.Sprintf("%d %s", refusal.Code(), refusal.Reason)
			if refusal.ID != nil {
				line += " id=" + string(refusal.ID)
			}
			got = append(got, line)
		case errors.Is(err, frame.ErrTimeout):
			got = append(got, "timeout")
		case err == io.EOF:
			return got
		default:
			return append(got, err.Error())
		}
	}
	panic(fmt.Sprintf("a Reader does not come to an end; last outcome: %s", got[len(got)-1]))
}

func lsp(body string) string {
	return string(frame.Append(nil, frame.LSP, []byte(body)))
}

const (
	ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	bye  = `{"jsonrpc":"2.0","method":"exit"}`
)

// small limits keep the inputs short: 100 bytes of body, 120 of header.
var small = frame.Limits{MaxFrame: 100, MaxHeader: 120}

var lspCases = []struct {
	name string
	in   string
	want []string
}{
	{"one frame", lsp(ping), []string{ping}},
	{"two frames", lsp(ping) + lsp(bye), []string{ping, bye}},
	{"nothing", "", nil},
	{"only blank lines", "\r\n\n  \r\n", nil},

	// Header variants.
	{"any case", "cOnTeNt-LeNgTh: 40\r\n\r\n" + ping, []string{ping}},
	{"bare LF", "Content-Length: 40\n\n" + ping, []string{ping}},
	{"blanks around", "Content-Length \t:\t  40 \t\r\n\r\n" + ping, []string{ping}},
	{"no blank after the colon", "Content-Length:40\r\n\r\n" + ping, []string{ping}},
	{"unknown headers", "X-Foo: bar\r\nContent-Length: 40\r\nEmpty:\r\n\r\n" + ping, []string{ping}},
	{"every letter", "AZaz09!|~: bar\r\nContent-Length: 40\r\n\r\n" + ping, []string{ping}},
	{"blank lines before", "\r\n\n \t\r\n" + lsp(ping), []string{ping}},
	{"leading zeros", "Content-Length: 00000000000000000000000000000040\r\n\r\n" + ping, []string{ping}},
	{"equal duplicates", "Content-Length: 40\r\nContent-Length: 040\r\n\r\n" + ping, []string{ping}},
	{"a print that looks like a header", "DEBUG: starting\n" + lsp(ping), []string{ping}},

	// Content-Type.
	{"type", "Content-Type: application/vscode-jsonrpc\r\n" + lsp(ping), []string{ping}},
	{"charset utf-8", "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n" + lsp(ping), []string{ping}},
	{"charset UTF8 quoted", "Content-Type: Application/VSCode-JSONRPC;charset=\"UTF8\"\r\n" + lsp(ping), []string{ping}},
	{"charset last", "Content-Type: application/vscode-jsonrpc; v=\"a;b\"; charset=Utf-8\r\n" + lsp(ping), []string{ping}},
	{"type json", "Content-Type: application/json\r\n" + lsp(ping) + lsp(bye), []string{"-32600 unsupported-content-type id=7", bye}},
	{"type vim-jsonrpc", "Content-Type: application/vim-jsonrpc; charset=utf-8\r\n" + lsp(ping), []string{ping}},
	{"type +json", "Content-Type: application/a.b+json\r\n" + lsp(ping) + lsp(bye), []string{"-32600 unsupported-content-type id=7", bye}},
	{"type that ends in jsonrpc", "Content-Type: application/a.b+JSONrpc; charset=\"utf-8\"\r\n" + lsp(ping), []string{ping}},
	{"type of nothing but a suffix", "Content-Type: application/-jsonrpc\r\n" + lsp(ping) + lsp(bye), []string{"-32600 unsupported-content-type id=7", bye}},
	{"type jsonrpc, other charset", "Content-Type: application/jsonrpc; charset=latin1\r\n" + lsp(ping) + lsp(bye), []string{"-32600 bad-charset", bye}},
	{"other type", "Content-Type: application/json-seq\r\n" + lsp(ping) + lsp(bye), []string{"-32600 unsupported-content-type id=7", bye}},
	{"other type, notification", "Content-Type: text/plain\r\n" + lsp(bye) + lsp(ping), []string{"-32600 unsupported-content-type", ping}},
	{"other type, response", "Content-Type: text/plain\r\n" + lsp(`{"jsonrpc":"2.0","id":7,"result":1}`) + lsp(ping), []string{"-32600 unsupported-content-type", ping}},
	{"other type, id of the wrong type", "Content-Type: text/plain\r\n" + lsp(`{"id":[7],"method":"m"}`) + lsp(ping), []string{"-32600 unsupported-content-type", ping}},
	{"other type, not JSON behind a request", "Content-Type: text/plain\r\n" + lsp(`{"id":7,"method":"m"`) + lsp(ping), []string{"-32600 unsupported-content-type", ping}},
	{"other type, batch", "Content-Type: text/plain\r\n" + lsp("["+ping+"]") + lsp(ping), []string{"-32600 unsupported-content-type", ping}},
	{"other type, not JSON", "Content-Type: text/plain\r\n" + lsp("nope") + lsp(ping), []string{"-32600 unsupported-content-type", ping}},
	{"other type and charset", "Content-Type: text/plain; charset=latin1\r\n" + lsp(ping) + lsp(bye), []string{"-32600 unsupported-content-type id=7", bye}},
	{"other charset", "Content-Type: application/vscode-jsonrpc; charset=latin1\r\n" + lsp(ping) + lsp(bye), []string{"-32600 bad-charset", bye}},
	{"charset without value", "Content-Type: application/vscode-jsonrpc; charset\r\n" + lsp(ping) + lsp(bye), []string{"-32600 bad-charset", bye}},
	{"other type, cut body", "Content-Type: text/plain\r\nContent-Length: 40\r\n\r\n{}", []string{"-32700 length-mismatch"}},
	{"other charset, cut body", "Content-Type: application/vscode-jsonrpc; charset=x\r\nContent-Length: 40\r\n\r\n{}", []string{"-32600 bad-charset"}},

	// Content-Length.
	{"at the limit", lsp(`"` + strings.Repeat("x", 98) + `"`), []string{`"` + strings.Repeat("x", 98) + `"`}},
	{"over the limit", lsp(`"`+strings.Repeat("x", 99)+`"`) + lsp(ping), []string{"-32600 oversize", ping}},
	{"over the limit, request", lsp(`{"id":7,"method":"m","params":"`+strings.Repeat("x", 99)+`"}`) + lsp(ping), []string{"-32600 oversize", ping}},
	{"over the limit, cut", "Content-Length: 101\r\n\r\n{", []string{"-32600 oversize"}},
	{"over 1 GiB", "Content-Length: 1073741825\r\n\r\n{}" + lsp(ping), []string{"-32600 oversize", ping}},
	{"past 2^63", "Content-Length: 9223372036854775808\r\n\r\n{}" + lsp(ping), []string{"-32600 oversize", ping}},
	{"past 2^64", "Content-Length: 99999999999999999999999\r\n\r\n{}" + lsp(ping), []string{"-32600 oversize", ping}},
	{"missing", "Content-Type: application/vscode-jsonrpc\r\n\r\n" + ping + lsp(bye), []string{"-32600 missing-content-length", bye}},
	{"no digits", "Content-Length: abc\r\n\r\n" + ping + lsp(bye), []string{"-32600 bad-content-length", bye}},
	{"empty", "Content-Length:\r\n\r\n" + ping + lsp(bye), []string{"-32600 bad-content-length", bye}},
	{"negative", "Content-Length: -40\r\n\r\n" + ping + lsp(bye), []string{"-32600 bad-content-length", bye}},
	{"plus", "Content-Length: +40\r\n\r\n" + ping + lsp(bye), []string{"-32600 bad-content-length", bye}},
	{"hexadecimal", "Content-Length: 0x28\r\n\r\n" + ping + lsp(bye), []string{"-32600 bad-content-length", bye}},
	{"fraction", "Content-Length: 40.0\r\n\r\n" + ping + lsp(bye), []string{"-32600 bad-content-length", bye}},
	{"two numbers", "Content-Length: 40 40\r\n\r\n" + ping + lsp(bye), []string{"-32600 bad-content-length", bye}},
	{"differing duplicates", "Content-Length: 40\r\nContent-Length: 41\r\n\r\n" + ping + lsp(bye), []string{"-32600 bad-content-length", bye}},

	// Header size: everything up to and including the blank line counts.
	{"header at the limit", "X: " + strings.Repeat("x", 120-3-2-20-2) + "\r\nContent-Length: 40\r\n\r\n" + ping, []string{ping}},
	{"header over the limit", "X: " + strings.Repeat("x", 121-3-2-20-2) + "\r\nContent-Length: 40\r\n\r\n" + ping + lsp(bye), []string{"-32600 header-too-large", bye}},
	{"header over the limit, length first", "Content-Length: 40\r\nX: " + strings.Repeat("x", 500) + "\r\n\r\n" + ping + lsp(bye), []string{"-32600 header-too-large", bye}},
	{"header over the limit in many lines", strings.Repeat("X: y\r\n", 200) + "Content-Length: 40\r\n\r\n" + ping + lsp(bye), []string{"-32600 header-too-large", bye}},
	{"a long print without a newline", strings.Repeat("x", 500) + lsp(ping), []string{"-32600 header-too-large", ping}},
	{"a long print with a newline", strings.Repeat("x", 500) + "\n" + lsp(ping), []string{"-32600 header-too-large", ping}},
	{"header over the limit, no end", strings.Repeat("X: y\r\n", 200), []string{"-32600 header-too-large"}},

	// Body.
	{"empty body", "Content-Length: 0\r\n\r\n" + lsp(ping), []string{"-32700 invalid-json", ping}},
	{"blank body", lsp("  ") + lsp(ping), []string{"-32700 invalid-json", ping}},
	{"not JSON", lsp(`{"jsonrpc":`) + lsp(ping), []string{"-32700 invalid-json", ping}},
	{"two values", lsp(`{}{}`) + lsp(ping), []string{"-32700 invalid-json", ping}},
	{"byte order mark", lsp("\ufeff{}") + lsp(ping), []string{"-32700 invalid-json", ping}},
	{"not UTF-8", lsp("\"\xff\"") + lsp(ping), []string{"-32700 invalid-utf8", ping}},
	{"surrogate in UTF-8", lsp("\"\xed\xa0\x80\"") + lsp(ping), []string{"-32700 invalid-utf8", ping}},
	{"not UTF-8 outside a string", lsp("\xff") + lsp(ping), []string{"-32700 invalid-utf8", ping}},
	{"scalar", lsp("5") + lsp(ping), []string{"5", ping}},

	// Lengths that are wrong.
	{"announced too short", "Content-Length: 10\r\n\r\n" + ping + lsp(bye), []string{"-32700 invalid-json", bye}},
	{"announced too short, but JSON", "Content-Length: 2\r\n\r\n{}" + ping + lsp(bye), []string{"{}", "-32700 length-mismatch", bye}},
	{"announced too long", "Content-Length: 45\r\n\r\n" + ping + lsp(bye) + lsp(ping), []string{"-32700 invalid-json", ping}},
	{"the input ends in a body", "Content-Length: 41\r\n\r\n" + ping, []string{"-32700 length-mismatch"}},
	{"the input ends before a body", "Content-Length: 41\r\n\r\n", []string{"-32700 length-mismatch"}},
	{"the input ends in a header", "Content-Length: 41\r\n", []string{"-32700 length-mismatch"}},
	{"the input ends in a name", lsp(ping) + "Conte", []string{ping, "-32700 length-mismatch"}},

	// Garbage.
	{"a print before a header", "hello" + lsp(ping), []string{"-32700 length-mismatch", ping}},
	{"a print with spaces", "hello world, this is a print" + lsp(ping), []string{"-32700 length-mismatch", ping}},
	{"a print with a colon", "hello: world" + lsp(ping), []string{"-32700 length-mismatch", ping}},
	{"a type header with a print that has a header in it", "Content-Type: text/plain\r\nX: y Content-Length: 40\r\n\r\n" + ping + lsp(bye), []string{"-32700 length-mismatch", ping, bye}},
	{"printed lines", "hello world\nand more\n\n" + lsp(ping), []string{"-32700 length-mismatch", ping}},
	{"one answer for a run of garbage", "a b" + "\nContent-Length: x\r\n\r\n{{{}" + "\x00\x01\xff:::\n" + lsp(ping) + "more of it" + lsp(bye), []string{"-32700 length-mismatch", ping, "-32700 length-mismatch", bye}},
	{"garbage then a type header", "}}\r\nContent-Type: text/plain\r\n" + lsp(ping), []string{"-32700 length-mismatch", "-32600 unsupported-content-type id=7"}},
	{"a type in the middle of a line is garbage", "}}Content-Type: text/plain\r\n" + lsp(ping), []string{"-32700 length-mismatch", ping}},
	{"a length without digits is garbage", "}}Content-Length: x Content-Length: 1x " + lsp(ping), []string{"-32700 length-mismatch", ping}},
	{"a line without a colon in a header", "Content-Length: 40\r\nnothing\r\n\r\n" + ping + lsp(bye), []string{"-32700 length-mismatch", bye}},
	{"after an oversize body", lsp(strings.Repeat("x", 200)) + "junk junk" + lsp(ping), []string{"-32600 oversize", "-32700 length-mismatch", ping}},
	{"only garbage", "hello world", []string{"-32700 length-mismatch"}},
}

func TestLSP(t *testing.T) {
	for _, c := range lspCases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, drain(strings.NewReader(c.in), frame.LSP, small), "whole")
			assert.Equal(t, c.want, drain(iotest.OneByteReader(strings.NewReader(c.in)), frame.LSP, small), "byte by byte")
			assert.Equal(t, c.want, drain(iotest.DataErrReader(strings.NewReader(c.in)), frame.LSP, small), "with the last bytes EOF")
		})
	}
}

// TestGoldenInputsInPieces reads the inputs of testdata/frames in pieces of other sizes, with
// the same outcome. The tests of the program check the outcome itself.
func TestGoldenInputsInPieces(t *testing.T) {
	inputs, err := filepath.Glob("../testdata/frames/*.in")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, path := range inputs {
		in, err := os.ReadFile(path)
		require.NoError(t, err)
		whole := drain(bytes.NewReader(in), frame.LSP, frame.Limits{})
		assert.Equal(t, whole, drain(iotest.OneByteReader(bytes.NewReader(in)), frame.LSP, frame.Limits{}), "%s, byte by byte", path)
		assert.Equal(t, whole, drain(iotest.HalfReader(bytes.NewReader(in)), frame.LSP, frame.Limits{}), "%s, in halves", path)
		assert.Equal(t, whole, drain(iotest.DataErrReader(bytes.NewReader(in)), frame.LSP, frame.Limits{}), "%s, with the last bytes EOF", path)
	}
}

var ndjsonCases = []struct {
	name string
	in   string
	want []string
}{
	{"one line", ping + "\n", []string{ping}},
	{"CRLF", ping + "\r\n" + bye + "\r\n", []string{ping, bye}},
	{"blank lines", "\n \t\n\r\n" + ping + "\n\n" + bye + "\n", []string{ping, bye}},
	{"no last newline", ping + "\n" + bye, []string{ping, bye}},
	{"blank end", ping + "\n  ", []string{ping}},
	{"at the limit", `"` + strings.Repeat("x", 98) + `"` + "\r\n", []string{`"` + strings.Repeat("x", 98) + `"`}},
	{"over the limit", `"` + strings.Repeat("x", 99) + `"` + "\n" + ping + "\n", []string{"-32600 oversize", ping}},
	{"far over the limit", strings.Repeat("x", 200_000) + "\n" + ping + "\n", []string{"-32600 oversize", ping}},
	{"over the limit, request", `{"id":7,"method":"m","params":"` + strings.Repeat("x", 99) + `"}` + "\n" + ping + "\n", []string{"-32600 oversize", ping}},
	{"over the limit, cut", strings.Repeat("x", 200), []string{"-32600 oversize"}},
	{"not JSON", "{\n" + ping + "\n", []string{"-32700 invalid-json", ping}},
	{"cut", `{"id":`, []string{"-32700 invalid-json"}},
	{"not UTF-8", "\"\xff\"\n" + ping + "\n", []string{"-32700 invalid-utf8", ping}},
}

func TestNDJSON(t *testing.T) {
	for _, c := range ndjsonCases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, drain(strings.NewReader(c.in), frame.NDJSON, small), "whole")
			assert.Equal(t, c.want, drain(iotest.OneByteReader(strings.NewReader(c.in)), frame.NDJSON, small), "byte by byte")
		})
	}
}

func TestDetect(t *testing.T) {
	for head, want := range map[string]frame.Framing{
		"{": frame.NDJSON, "[": frame.NDJSON, " \r\n\t{": frame.NDJSON,
		"C": frame.LSP, "\nc": frame.LSP, "x": frame.LSP, "\x00": frame.LSP,
	} {
		got, ok := frame.Detect([]byte(head))
		assert.True(t, ok, "%q", head)
		assert.Equal(t, want, got, "%q", head)
	}
	_, ok := frame.Detect([]byte(" \r\n"))
	assert.False(t, ok)
}

func TestUnread(t *testing.T) {
	in := lsp(ping) + lsp(bye)
	for cut := range len(in) {
		r := frame.NewReader(strings.NewReader(in[cut:]), frame.LSP, frame.Limits{})
		r.Unread([]byte(in[:cut]))
		require.Equal(t, []string{ping, bye}, drainReader(r))
	}
}

// Frames of every size up to past the buffer, in chunks of every size.
func TestSizesAndChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var in bytes.Buffer
	var want []string
	for range 300 {
		body := `"` + strings.Repeat("x", int(rng.ExpFloat64()*20_000)) + `"`
		want = append(want, body)
		in.WriteString(lsp(body))
	}
	got := drain(&raggedReader{rng: rng, src: &in}, frame.LSP, frame.Limits{})
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.True(t, want[i] == got[i], "frame %d", i)
	}
}

// raggedReader gives short reads of random length.
type raggedReader struct {
	rng *rand.Rand
	src io.Reader
}

func (r *raggedReader) Read(p []byte) (int, error) {
	return r.src.Read(p[:1+r.rng.IntN(min(len(p), 100_000))])
}

// The real limits, from both sides.
func TestDefaultLimits(t *testing.T) {
	body := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	const limit = 10 << 20
	in := lsp(body(limit)) + lsp(body(limit+1)) + lsp(ping)
	got := drain(strings.NewReader(in), frame.LSP, frame.Limits{})
	require.Len(t, got, 3)
	assert.Len(t, got[0], limit)
	assert.Equal(t, []string{"-32600 oversize", ping}, got[1:])

	head := func(n int) string { // a section of n bytes
		return "X: " + strings.Repeat("x", n-3-2-22) + "\r\nContent-Length: 40\r\n\r\n" + ping
	}
	for limit, want := range map[int]string{22: ping, 21: "-32600 header-too-large", 1: "-32600 header-too-large"} {
		assert.Equal(t, []string{want}, drain(strings.NewReader(lsp(ping)), frame.LSP, frame.Limits{MaxHeader: limit}), "Content-Length alone, at most %d bytes", limit)
	}
	got = drain(strings.NewReader(head(8192)+head(8193)+lsp(bye)), frame.LSP, frame.Limits{})
	assert.Equal(t, []string{ping, "-32600 header-too-large", bye}, got)
}

func TestNestingLimit(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	in := nest(frame.MaxDepth) + "\n" + nest(frame.MaxDepth+1) + "\n" +
		`{"params":` + nest(frame.MaxDepth-1) + "}\n" + `{"params":` + nest(frame.MaxDepth) + "}\n"
	got := drain(strings.NewReader(in), frame.NDJSON, frame.Limits{})
	require.Len(t, got, 4)
	assert.Equal(t, nest(frame.MaxDepth), got[0])
	assert.Equal(t, "-32700 invalid-json", got[1])
	assert.NotEqual(t, "-32700 invalid-json", got[2])
	assert.Equal(t, "-32700 invalid-json", got[3])
}

func TestEnvelope(t *testing.T) {
	var m frame.Message
	body := ` { "id" : 1e3 , "x":[{}], "\u006dethod" : "a\"b" , "params":{"id":2},"id": "last" ,"jsonrpc":"2.0","error":null,"result":[ ] } `
	require.True(t, frame.Parse([]byte(body), &m))
	assert.Equal(t, frame.Object, m.Kind)
	assert.Equal(t, `"last"`, string(m.ID))
	assert.Equal(t, `"a\"b"`, string(m.Method))
	assert.Equal(t, `{"id":2}`, string(m.Params))
	assert.Equal(t, `"2.0"`, string(m.JSONRPC))
	assert.Equal(t, `null`, string(m.Error))
	assert.Equal(t, `[ ]`, string(m.Result))

	require.True(t, frame.Parse([]byte(` [ 1 , [2,3] ,"x,]" ] `), &m))
	assert.Equal(t, frame.Array, m.Kind)
	var elements []string
	for e := range rawjson.Elements(m.Body) {
		elements = append(elements, string(e))
	}
	assert.Equal(t, []string{"1", "[2,3]", `"x,]"`}, elements)
	for range rawjson.Elements([]byte(" [ ] ")) {
		t.Error("an empty array has an element")
	}
}

// A greedy is a source that records the largest buffer that the reader offered.
type greedy struct {
	io.Reader
	most int
}

func (g *greedy) Read(p []byte) (int, error) {
	g.most = max(g.most, len(p))
	return g.Reader.Read(p)
}

// The Reader does not keep refused bytes, however many there are.
func TestWhatIsRefusedTakesNoRoom(t *testing.T) {
	const much = 4 << 20
	limits := frame.Limits{MaxFrame: 1000, MaxHeader: 1000}
	for name, c := range map[string]struct {
		framing frame.Framing
		in      string
		want    []string
	}{
		"a long line of a header":    {frame.LSP, "X: " + strings.Repeat("x", much) + "\r\n\r\n" + lsp(ping), []string{"-32600 header-too-large", ping}},
		"many lines of a header":     {frame.LSP, strings.Repeat("X: x\r\n", much/6) + "\r\n" + lsp(ping), []string{"-32600 header-too-large", ping}},
		"a long body":                {frame.LSP, lsp(strings.Repeat("x", much)) + lsp(ping), []string{"-32600 oversize", ping}},
		"garbage":                    {frame.LSP, "a b" + strings.Repeat("x", much) + lsp(ping), []string{"-32700 length-mismatch", ping}},
		"garbage of colons":          {frame.LSP, "a b" + strings.Repeat(":", much) + lsp(ping), []string{"-32700 length-mismatch", ping}},
		"blank lines":                {frame.LSP, strings.Repeat("\r\n", much/2) + lsp(ping), []string{ping}},
		"a long line":                {frame.NDJSON, strings.Repeat("x", much) + "\n" + ping + "\n", []string{"-32600 oversize", ping}},
		"a long line of white space": {frame.NDJSON, strings.Repeat(" ", much) + "\n" + ping + "\n", []string{"-32600 oversize", ping}},
		"blank lines between lines":  {frame.NDJSON, strings.Repeat("\n", much) + ping + "\n", []string{ping}},
	} {
		g := &greedy{Reader: strings.NewReader(c.in)}
		assert.Equal(t, c.want, drain(g, c.framing, limits), name)
		assert.LessOrEqual(t, g.most, 64<<10, name)
	}
}

// A header may lie across the end of the buffer.
func TestAHeaderAcrossTheEndOfTheBuffer(t *testing.T) {
	for behind := range 40 {
		first := `"` + strings.Repeat("x", 64<<10-behind-len("Content-Length: 65500\r\n\r\n")) + `"`
		assert.Equal(t, []string{first, ping}, drain(strings.NewReader(lsp(first)+lsp(ping)), frame.LSP, frame.Limits{}), "%d", len(lsp(first)))
	}
}
