package frame_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/frame"
)

const smallRequest = `{"jsonrpc":"2.0","id":1000000000,"method":"echo","params":{"n":17,"s":"hello, world","b":[1,2]}}`

// loop is an endless source that repeats some bytes.
type loop struct {
	data []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.data[l.at:])
	l.at = (l.at + n) % len(l.data)
	return n, nil
}

// BenchmarkSmallFrame measures the hot path: it reads one small frame, finds its envelope and
// writes its reply. It must not allocate.
func BenchmarkSmallFrame(b *testing.B) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		b.Run(f.String(), func(b *testing.B) {
			one := frame.Append(nil, f, []byte(smallRequest))
			r := frame.NewReader(&loop{data: bytes.Repeat(one, 1000)}, f, frame.Limits{})
			var m frame.Message
			var out []byte
			b.SetBytes(int64(len(one)))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Next(&m); err != nil {
					b.Fatal(err)
				}
				out = frame.AppendResult(out[:0], f, m.ID, m.Params)
			}
		})
	}
}

func mixedPayload(n int) string {
	var s strings.Builder
	s.WriteString(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"`)
	for s.Len() < n/2 {
		s.WriteString(`	if err := s.handle(ctx, \"textDocument/didChange\", params); err != nil { // größer\n`[1:])
	}
	s.WriteString(`","items":[0`)
	for i := 0; s.Len() < n; i++ {
		fmt.Fprintf(&s, `,{"range":{"start":{"line":%d,"character":%d},"end":{"line":%d,"character":9}},"severity":2,"message":"unused variable","ok":true}`, i, i%80, i)
	}
	s.WriteString(`]}}`)
	return s.String()
}

func BenchmarkParse(b *testing.B) {
	bodies := map[string]string{
		"small": smallRequest,
		"mixed": mixedPayload(1 << 20),
		"ascii": `{"jsonrpc":"2.0","id":1,"method":"echo","params":"` + strings.Repeat("The quick brown fox. ", 50_000) + `"}`,
	}
	for _, name := range []string{"small", "mixed", "ascii"} {
		body := []byte(bodies[name])
		b.Run(name, func(b *testing.B) {
			var m frame.Message
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if !frame.Parse(body, &m) {
					b.Fatal("not valid")
				}
			}
		})
		b.Run(name+"/encoding-json-valid", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if !json.Valid(body) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

// BenchmarkLargeFrame reads frames of 9.5 MB, the first of which has to make
// the buffer grow, from a source that gives 64 KiB at a time.
func BenchmarkLargeFrame(b *testing.B) {
	for _, f := range []frame.Framing{frame.LSP, frame.NDJSON} {
		b.Run(f.String(), func(b *testing.B) {
			one := frame.Append(nil, f, []byte(mixedPayload(9_500_000)))
			var m frame.Message
			b.SetBytes(int64(len(one)))
			for b.Loop() {
				r := frame.NewReader(&pieces{data: one}, f, frame.Limits{})
				if err := r.Next(&m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// pieces gives its data 64 KiB at a time.
type pieces struct{ data []byte }

func (p *pieces) Read(b []byte) (int, error) {
	n := copy(b[:min(len(b), 64<<10)], p.data)
	p.data = p.data[n:]
	return n, nil
}

// BenchmarkGarbage measures how fast a Reader gets through input that is not a frame. The last
// kinds are the worst known: each answer to them costs a scan of a whole header section.
func BenchmarkGarbage(b *testing.B) {
	for name, unit := range map[string]string{
		"json":                 `{"some":"json","that":"nobody","announced":1}`,
		"headers-without-end":  "X: y\r\n",
		"types-without-length": "Content-Type: x\r\n\r\n",
		"lengths-inside-lines": "X: y Content-Length: 5\r\n",
		"types-and-lengths":    "Content-Type: x\r\nX: y Content-Length: 5\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			garbage := bytes.Repeat([]byte(unit), 1<<20/len(unit))
			b.SetBytes(int64(len(garbage)))
			for b.Loop() {
				r := frame.NewReader(bytes.NewReader(garbage), frame.LSP, frame.Limits{})
				var m frame.Message
				for r.Next(&m) != io.EOF {
				}
			}
		})
	}
}
