package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/server"
)

// BenchmarkReading compares the two connections for JSON-RPC with updates of an agent: Conn, and that
// of package server.
func BenchmarkReading(b *testing.B) {
	const line = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0123456789","update":` +
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a few words of a reply, and some more"}}}}` + "\n"
	const lines = 1000
	output := bytes.Repeat([]byte(line), lines)
	count := func(b *testing.B, read func(took func(update []byte))) {
		b.ReportAllocs()
		n, updates := 0, 0
		for b.Loop() {
			read(func(update []byte) {
				if len(update) > 0 {
					updates++
				}
			})
			n += lines
		}
		if updates != n {
			b.Fatalf("%d of %d updates were read", updates, n)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/update")
	}
	b.Run("acp", func(b *testing.B) {
		count(b, func(took func([]byte)) {
			acp.NewConn(io.Discard, acp.Handler{Update: func(_, update []byte, _ bool) { took(update) }}).Read(bytes.NewReader(output))
		})
	})
	b.Run("server", func(b *testing.B) {
		count(b, func(took func([]byte)) {
			srv := server.New(server.NewRegistry(), server.Options{
				Logger: slog.New(slog.DiscardHandler),
				OnNotification: func(_ *server.Conn, _ string, params json.RawMessage) {
					if rawjson.Member(params, "sessionId") != nil {
						took(rawjson.Member(params, "update"))
					}
				},
			})
			if err := srv.Serve(context.Background(), memory{bytes.NewReader(output)}, frame.NDJSON); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// memory is a transport with that input.
type memory struct{ io.Reader }

func (memory) Write(p []byte) (int, error)      { return len(p), nil }
func (memory) Close() error                     { return nil }
func (memory) SetReadDeadline(time.Time) error  { return nil }
func (memory) SetWriteDeadline(time.Time) error { return nil }
