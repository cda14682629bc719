//go:build linux || darwin

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// patience bounds each wait of these tests.
const patience = time.Minute

// fileParams are the parameters of filed's methods.
type fileParams struct {
	Text string `json:"text"`
	Fail bool   `json:"fail,omitempty"`
	Pad  int    `json:"pad,omitempty"`
}

// filed returns a registry whose method file replies with the reading end of a pipe that contains a
// text. The test receives the writing ends.
func filed(t *testing.T) (*server.Registry, chan *os.File) {
	reg, writers := server.NewRegistry(), make(chan *os.File, 100)
	server.HandleRaw(reg, "echo", func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil })
	h := func(ctx context.Context, p fileParams) (string, error) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		must(io.WriteString(w, p.Text))(t)
		writers <- w
		t.Cleanup(func() { w.Close() })
		if err := server.ReplyFile(ctx, r); err != nil {
			return "", server.NewError(-32050, err.Error(), nil)
		}
		if p.Fail {
			return "", errors.New("no")
		}
		return p.Text + strings.Repeat("x", p.Pad), nil
	}
	server.Handle(reg, "file", h, server.LongRunning())
	server.Handle(reg, "file.inline", h)
	return reg, writers
}

// pair returns the ends of a connection: one that sends files, and one that receives them.
func pair(t *testing.T) (ours socket.Sender, peer *socket.FileConn) {
	path := filepath.Join(t.TempDir(), "s")
	l := must(net.Listen("unix", path))(t)
	defer l.Close()
	conn := must(net.Dial("unix", path))(t)
	accepted := must(socket.Senders(l).Accept())(t)
	peer = socket.NewFileConn(conn.(*net.UnixConn))
	require.NoError(t, peer.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { peer.Close() })
	return accepted.(socket.Sender), peer
}

func serveFiles(t *testing.T, reg *server.Registry, opts server.Options) *socket.FileConn {
	ours, peer := pair(t)
	ended := make(chan error, 1)
	go func() { ended <- server.New(reg, opts).Serve(context.Background(), ours, frame.NDJSON) }()
	t.Cleanup(func() {
		peer.Close()
		<-ended
	})
	return peer
}

// closedSoon requires that the other end of a pipe closes. poll reports this for any requested
// events.
func closedSoon(t *testing.T, w *os.File) {
	t.Helper()
	require.NoError(t, must(w.SyscallConn())(t).Control(func(fd uintptr) {
		reported := []unix.PollFd{{Fd: int32(fd)}}
		n, err := 0, error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(reported, int(patience.Milliseconds()))
		}
		require.NoError(t, err)
		require.Equal(t, 1, n, "the file is still open")
	}))
	require.ErrorIs(t, failureOf(w.Write([]byte("x"))), unix.EPIPE)
}

// Each file comes with its own reply, at any position among other replies.
func TestFilesGoWithTheirReplies(t *testing.T) {
	reg, writers := filed(t)
	peer := serveFiles(t, reg, server.Options{})
	const n = 60
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `{"jsonrpc":"2.0","id":%d,"method":"echo","params":[%d]}`+"\n", 1000+i, i)
		if i%3 == 0 {
			fmt.Fprintf(&out, `{"jsonrpc":"2.0","id":%d,"method":"file","params":{"text":"file %d","pad":%d}}`+"\n", i, i, i*300)
		}
		if i%10 == 9 { // the peer keeps at most 16 unclaimed files
			must(io.WriteString(peer, out.String()))(t)
			out.Reset()
			readReplies(t, peer, 10+countOfThree(i-9, i))
		}
	}
	for range n / 3 {
		(<-writers).Close()
	}
}

func countOfThree(from, to int) (n int) {
	for i := from; i <= to; i++ {
		if i%3 == 0 {
			n++
		}
	}
	return n
}

// readReplies reads byte by byte. A file must come no later than its reply's first byte, and not
// before the preceding reply.
func readReplies(t *testing.T, peer *socket.FileConn, n int) {
	t.Helper()
	for range n {
		var line []byte
		var file *os.File
		for b := make([]byte, 1); len(line) == 0 || line[len(line)-1] != '\n'; {
			must(peer.Read(b))(t)
			line = append(line, b...)
			if f, err := peer.NextFile(); err == nil {
				require.Nil(t, file)
				require.Len(t, line, 1, "with the first byte")
				file = f
			}
		}
		var m struct {
			ID     int
			Result json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &m))
		if m.ID >= 1000 {
			require.Nil(t, file, "%s", line)
			continue
		}
		require.NotNil(t, file, "%.100s", line)
		want := fmt.Sprint("file ", m.ID)
		text := make([]byte, len(want))
		must(io.ReadFull(file, text))(t)
		require.Equal(t, want, string(text))
		require.NoError(t, file.Close())
	}
}

// A peer that reads late still gets the file.
func TestAFileWaitsForThePeer(t *testing.T) {
	reg, writers := filed(t)
	peer := serveFiles(t, reg, server.Options{MaxQueued: 32 << 20})
	big := strings.Repeat("y", 900_000)
	for i := range 4 {
		must(fmt.Fprintf(peer, `{"jsonrpc":"2.0","id":%d,"method":"echo","params":["%s"]}`+"\n", i, big))(t)
	}
	must(io.WriteString(peer, `{"jsonrpc":"2.0","id":"f","method":"file","params":{"text":"late"}}`+"\n"+
		`{"jsonrpc":"2.0","id":"after","method":"echo"}`+"\n"))(t)
	w := <-writers
	in := bufio.NewReaderSize(peer, 2<<20)
	var ids []string
	for range 6 {
		line := must(in.ReadBytes('\n'))(t)
		var m struct{ ID json.RawMessage }
		require.NoError(t, json.Unmarshal(line, &m))
		ids = append(ids, string(m.ID))
	}
	assert.ElementsMatch(t, []string{"0", "1", "2", "3", `"f"`, `"after"`}, ids)
	f := must(peer.NextFile())(t)
	text := make([]byte, 4)
	must(io.ReadFull(f, text))(t)
	assert.Equal(t, "late", string(text))
	f.Close()
	closedSoon(t, w) // the server has no copy left
}

// If a reply cannot carry a file the handler gets an error, and no file stays open.
func TestRepliesThatCarryNoFile(t *testing.T) {
	reg, writers := filed(t)
	peer := serveFiles(t, reg, server.Options{MaxLine: 4096})
	in := bufio.NewReader(peer)
	for _, c := range []struct{ request, answer string }{
		{`{"jsonrpc":"2.0","id":1,"method":"file.inline","params":{"text":"a"}}`, server.ErrNoFiles.Error()},
		{`[{"jsonrpc":"2.0","id":1,"method":"file","params":{"text":"a"}}]`, server.ErrNoFiles.Error()},
		{`{"jsonrpc":"2.0","id":1,"method":"file","params":{"text":"a","fail":true}}`, "-32603"},
		{`{"jsonrpc":"2.0","id":1,"method":"file","params":{"text":"a","pad":5000}}`, "result_too_large"},
	} {
		must(io.WriteString(peer, c.request+"\n"))(t)
		assert.Contains(t, must(in.ReadString('\n'))(t), c.answer, c.request)
		closedSoon(t, <-writers)
	}
	must(io.WriteString(peer, `{"jsonrpc":"2.0","method":"file","params":{"text":"a"}}`+"\n"))(t)
	closedSoon(t, <-writers)
	assert.ErrorIs(t, failureOf(peer.NextFile()), socket.ErrNoFile)

	near, far := server.Pipe()
	serving := server.New(reg, server.Options{}).Connect(context.Background(), far, frame.LSP)
	calling := server.New(server.NewRegistry(), server.Options{}).Connect(context.Background(), near, frame.LSP)
	assert.ErrorContains(t, calling.Call(context.Background(), "file", fileParams{Text: "a"}, nil), server.ErrNoFiles.Error())
	closedSoon(t, <-writers)
	calling.End()
	<-calling.Done()
	<-serving.Done()
	assert.ErrorIs(t, server.ReplyFile(context.Background(), os.NewFile(^uintptr(0), "none")), server.ErrNoFiles)
}

// The server closes a file for a peer that leaves.
func TestAFileOfAPeerThatGoes(t *testing.T) {
	reg, writers := filed(t)
	peer := serveFiles(t, reg, server.Options{MaxQueued: 32 << 20, Grace: 50 * time.Millisecond})
	must(fmt.Fprintf(peer, `{"jsonrpc":"2.0","id":1,"method":"echo","params":["%s"]}`+"\n", strings.Repeat("y", 900_000)))(t)
	must(io.WriteString(peer, `{"jsonrpc":"2.0","id":"f","method":"file","params":{"text":"never"}}`+"\n"))(t)
	w := <-writers
	require.NoError(t, peer.Close())
	closedSoon(t, w)
}

// A program that calls its peer takes the file after the call has returned.
func TestACallThatBringsAFile(t *testing.T) {
	reg, writers := filed(t)
	ours, peer := pair(t)
	ctx, cancel := context.WithCancel(context.Background())
	serving := server.New(reg, server.Options{}).Connect(ctx, ours, frame.NDJSON)
	calling := server.New(server.NewRegistry(), server.Options{}).Connect(ctx, peer, frame.NDJSON)
	for i := range 20 {
		var text string
		require.NoError(t, calling.Call(ctx, "file", fileParams{Text: fmt.Sprint("f", i)}, &text))
		f := must(server.NextFile(calling))(t)
		got := make([]byte, len(text))
		must(io.ReadFull(f, got))(t)
		assert.Equal(t, text, string(got))
		f.Close()
		closedSoon(t, <-writers)
	}
	assert.ErrorIs(t, failureOf(server.NextFile(serving)), server.ErrNoFiles, "that transport receives none")
	cancel()
	<-serving.Done()
	<-calling.Done()
}
