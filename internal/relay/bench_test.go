package relay_test

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/server"
)

// relayed returns an editor's end of a relay whose connections are Unix sockets, and the hub's
// end.
func relayed(b *testing.B) (editor, hub *net.UnixConn) {
	ours, editor := sockets(b)
	toHub, hub := sockets(b)
	s := &setting{wire: newWire(b, editor), ran: make(chan error, 1)}
	s.run(ours, relay.Options{Connect: func(ctx context.Context) (server.Transport, error) {
		if toHub == nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		t := toHub
		toHub = nil
		return t, nil
	}})
	return editor, hub
}

func pingPong(b *testing.B, editor io.ReadWriter) {
	one := framed(request(1000000000, "echo", `{"n":17,"s":"hello, world","b":[1,2]}`))
	r := frame.NewReader(editor, frame.LSP, frame.Limits{Timeout: -1})
	var m frame.Message
	b.ReportAllocs()
	for b.Loop() {
		if _, err := editor.Write(one); err != nil {
			b.Fatal(err)
		}
		if err := r.Next(&m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPingPong(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		editor, hub := sockets(b)
		serveOn(b, standard(nil), hub)
		pingPong(b, editor)
	})
	b.Run("relayed", func(b *testing.B) {
		editor, hub := relayed(b)
		serveOn(b, standard(nil), hub)
		pingPong(b, editor)
	})
}

// BenchmarkNotifications sends 200,000 events to an editor with one subscription.
func BenchmarkNotifications(b *testing.B) {
	const n = 200_000
	var all []byte
	for range n {
		all = append(all, framed(`{"jsonrpc":"2.0","method":"event","params":{"subscription_id":"sub_0123456789","seq":17,"event":{"type":"message_delta","timestamp":"2026-01-01T00:00:00Z","data":{"session_id":"s","delta":"some text"}}}}`)...)
	}
	for _, kind := range []string{"direct", "relayed"} {
		b.Run(kind, func(b *testing.B) {
			editor, hub := relayed(b)
			if kind == "direct" {
				editor, hub = sockets(b)
			}
			r := frame.NewReader(editor, frame.LSP, frame.Limits{Timeout: -1})
			var m frame.Message
			if kind == "relayed" { // it knows the subscription
				w := newWire(b, hub)
				if _, err := editor.Write(framed(request(1, "event.subscribe", `{"since":0}`))); err != nil {
					b.Fatal(err)
				}
				w.next()
				w.send(response(1, `{"subscription_id":"sub_0123456789"}`))
				if err := r.Next(&m); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(all)))
			b.ReportAllocs()
			for b.Loop() {
				go func() { _, _ = hub.Write(all) }()
				for range n {
					if err := r.Next(&m); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
