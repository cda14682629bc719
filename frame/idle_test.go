package frame_test

import (
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
)

// The Reader keeps a large buffer while frames come, and releases it once after a second without
// any.
func TestALargeBufferIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		r := frame.NewReader(far, frame.LSP, frame.Limits{})
		released := 0
		r.Released = func() { released++ }
		big := lsp(`"` + strings.Repeat("x", 3<<20) + `"`)
		go func() {
			for range 3 {
				near.Write([]byte(big))
				time.Sleep(900 * time.Millisecond)
			}
			time.Sleep(time.Hour)
			near.Write([]byte(lsp(ping)))
			time.Sleep(time.Hour)
			near.Write([]byte(lsp(ping)))
			time.Sleep(time.Hour)
			near.Close()
		}()
		var m frame.Message
		for range 3 {
			require.NoError(t, r.Next(&m))
			assert.Zero(t, released)
		}
		for range 2 {
			require.NoError(t, r.Next(&m))
			assert.Equal(t, ping, string(m.Body))
			assert.Equal(t, 1, released)
		}
		assert.Error(t, r.Next(&m))
	})
}

// Timeouts in every state of a Reader; the next good frame is served.
func TestTimeouts(t *testing.T) {
	const pause, rest = "<pause>", "<rest>" // a rest is shorter than the time for a frame
	for _, c := range []struct {
		name    string
		framing frame.Framing
		in      string
		want    []string
	}{
		{"in a header", frame.LSP, "Content-Le" + pause + lsp(ping), []string{"timeout", ping}},
		{"in a header, which goes on", frame.LSP, "Content-Le" + pause + "ngth: 5\r\n\r\n12345" + lsp(ping), []string{"timeout", ping}},
		{"in a body", frame.LSP, "Content-Length: 40\r\n\r\n{" + pause + lsp(ping), []string{"timeout", ping}},
		{"in a body, which goes on", frame.LSP, "Content-Length: 40\r\n\r\n" + ping[:5] + pause + ping[5:] + lsp(bye), []string{"timeout", bye}},
		{"in an oversize body", frame.LSP, "Content-Length: 400\r\n\r\nxxx" + pause + "xxx" + lsp(ping), []string{"-32600 oversize", "timeout", ping}},
		{"in the beginning of an oversize body", frame.LSP, `Content-Length: 400` + "\r\n\r\n" + `{"id":7,` + pause + lsp(ping), []string{"-32600 oversize", "timeout", ping}},
		{"in an oversize body that has told its id", frame.LSP, `Content-Length: 400` + "\r\n\r\n" + `{"id":7,"method":"m",` + pause + lsp(ping), []string{"-32600 oversize", "timeout", ping}},
		{"in front of an oversize body", frame.LSP, "Content-Length: 400\r\n\r\n" + pause + lsp(ping), []string{"-32600 oversize", "timeout", ping}},
		{"in the beginning of a body above 1 GiB", frame.LSP, "Content-Length: 1073741825\r\n\r\n{" + pause + lsp(ping), []string{"-32600 oversize", ping}},
		{"in a line that is too long", frame.NDJSON, `{"id":7,"method":"` + strings.Repeat("m", 200) + pause + "\"}\n" + ping + "\n", []string{"-32600 oversize", ping}},
		{"in a body of another charset", frame.LSP, "Content-Type: application/vscode-jsonrpc; charset=x\r\nContent-Length: 40\r\n\r\nx" + pause + lsp(ping), []string{"-32600 bad-charset", "timeout", ping}},
		{"many times", frame.LSP, "C" + pause + "C" + pause + "Content-Length: 5\r\n" + pause + lsp(ping) + pause + lsp(ping), []string{"timeout", "timeout", ping, ping}},
		{"never between frames", frame.LSP, pause + lsp(ping) + pause + "\r\n" + pause + lsp(ping), []string{ping, ping}},
		{"never in garbage", frame.LSP, "a b" + pause + "c d" + pause + lsp(ping), []string{"-32700 length-mismatch", ping}},
		{"behind garbage", frame.LSP, "a b\r\n" + rest + "Content-Le" + rest + "ngth: 40\r\n\r\n" + ping + lsp(bye), []string{"-32700 length-mismatch", ping, bye}},
		{"behind a header that is wrong", frame.LSP, "Content-Length: x" + rest + "\r\n\r\nContent-Length: 40\r\n\r\n" + rest + ping, []string{"-32600 bad-content-length", ping}},
		{"behind an oversize body", frame.LSP, "Content-Length: 400\r\n\r\nxxx" + rest + strings.Repeat("x", 397) + "Content-Length: 40\r\n\r\n" + rest + ping, []string{"-32600 oversize", ping}},
		{"in a frame that comes in parts", frame.LSP, "Content-Le" + rest + "ngth: 40\r\n" + rest + lsp(ping), []string{"timeout", ping}},
		{"in a line", frame.NDJSON, `{"a":` + pause + "1}\n" + ping + "\n", []string{"timeout", ping}},
		{"never in blanks", frame.NDJSON, "  " + pause + ping + "\n", []string{ping}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				go func() {
					defer near.Close()
					for part := range strings.SplitSeq(c.in, pause) {
						for i, piece := range strings.Split(part, rest) {
							if i > 0 {
								time.Sleep(20 * time.Second)
							}
							near.Write([]byte(piece))
							synctest.Wait()
						}
						time.Sleep(31 * time.Second)
					}
				}()
				got := drain(far, c.framing, small)
				for i := range got {
					got[i] = strings.TrimSpace(got[i])
				}
				assert.Equal(t, c.want, got)
			})
		})
	}
}

// The Reader refuses a body over the limit as soon as it has read its header: the peer may wait
// for that answer before it sends the body.
func TestOversizeIsRefusedBeforeItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		go near.Write([]byte("Content-Length: 20000000\r\n\r\n"))
		began := time.Now()
		var refusal *frame.Refusal
		require.ErrorAs(t, frame.NewReader(far, frame.LSP, frame.Limits{}).Next(&frame.Message{}), &refusal)
		assert.Equal(t, frame.ReasonOversize, refusal.Reason)
		assert.Nil(t, refusal.ID)
		assert.Zero(t, time.Since(began))
	})
}

// No timeout occurs if none is wanted, or if the source has no deadlines.
func TestWithoutTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go func() {
			defer near.Close()
			near.Write([]byte(lsp(ping)[:30]))
			time.Sleep(1000 * time.Hour)
			near.Write([]byte(lsp(ping)[30:]))
		}()
		assert.Equal(t, []string{ping}, drain(far, frame.LSP, frame.Limits{Timeout: -1}))
	})
}
