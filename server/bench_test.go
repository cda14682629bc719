package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// replay is a Transport that returns the same bytes a number of times, one chunk a read, and
// discards all writes.
type replay struct {
	chunk []byte
	left  int
}

func (r *replay) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	return copy(p, r.chunk), nil
}

func (*replay) Write(p []byte) (int, error)      { return len(p), nil }
func (*replay) Close() error                     { return nil }
func (*replay) SetReadDeadline(time.Time) error  { return nil }
func (*replay) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkInline measures a small request without system calls: one request a read, and 500 a
// read.
func BenchmarkInline(b *testing.B) {
	reg := server.NewRegistry()
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
		return params, nil
	})
	one := frame.Append(nil, frame.LSP, []byte(`{"jsonrpc":"2.0","id":1000000000,"method":"echo","params":{"n":17,"s":"hello, world","b":[1,2]}}`))
	for _, bench := range []struct {
		name string
		per  int
	}{{"one-by-one", 1}, {"pipelined", 500}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			t := &replay{bytes.Repeat(one, bench.per), b.N/bench.per + 1}
			if err := server.New(reg, server.Options{}).Serve(context.Background(), t, frame.LSP); err != nil {
				b.Fatal(err)
			}
		})
	}
}
