//go:build linux || darwin

package socket_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// ends returns the two ends of a connection through a listener.
func ends(t *testing.T) (sender *net.UnixConn, receiver *socket.FileConn) {
	t.Helper()
	path := filepath.Join(short(t), "duet.sock")
	l := listen(t, path)
	conn, err := socket.Dial(soon(t), path)
	require.NoError(t, err)
	accepted, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	require.NoError(t, accepted.SetDeadline(time.Now().Add(patience)))
	receiver = socket.NewFileConn(conn.(*net.UnixConn))
	sender = accepted.(*net.UnixConn)
	t.Cleanup(func() { sender.Close(); receiver.Close() })
	return sender, receiver
}

func read(t *testing.T, r io.Reader, n int) string {
	t.Helper()
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	require.NoError(t, err)
	return string(p)
}

func TestFilesComeWithTheirPayload(t *testing.T) {
	sender, receiver := ends(t)
	_, err := receiver.NextFile()
	require.ErrorIs(t, err, socket.ErrNoFile)

	for _, text := range []string{"first", "second"} {
		_, err := sender.Write([]byte("before "))
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), text)
		require.NoError(t, os.WriteFile(path, []byte("text of "+text), 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		require.NoError(t, socket.SendFile(sender, []byte(text), f))
		require.NoError(t, f.Close())
		_, err = sender.Write([]byte(" after"))
		require.NoError(t, err)
	}
	assert.Equal(t, "before first", read(t, receiver, len("before first")))
	f, err := receiver.NextFile()
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, "text of first", read(t, f, len("text of first")))
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
	require.NoError(t, err)
	assert.NotZero(t, flags&unix.FD_CLOEXEC)

	assert.Equal(t, " afterbefore second after", read(t, receiver, len(" afterbefore second after")))
	f, err = receiver.NextFile()
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, "text of second", read(t, f, len("text of second")))
	_, err = receiver.NextFile()
	require.ErrorIs(t, err, socket.ErrNoFile)

	require.NoError(t, sender.Close())
	_, err = receiver.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF)
}

func TestAPayloadLargerThanTheQueue(t *testing.T) {
	sender, receiver := ends(t)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	require.Error(t, socket.SendFile(sender, nil, f), "no bytes, no file")
	payload := bytes.Repeat([]byte("0123456789"), 1<<18)
	sent := make(chan error)
	go func() { sent <- socket.SendFile(sender, payload, f) }()
	read(t, receiver, 1)
	got, err := receiver.NextFile()
	require.NoError(t, err, "with the first byte")
	got.Close()
	assert.True(t, string(payload[1:]) == read(t, receiver, len(payload)-1))
	require.NoError(t, <-sent)
	_, err = receiver.NextFile()
	assert.ErrorIs(t, err, socket.ErrNoFile, "and once only")
}

func TestATerminalIsPassed(t *testing.T) {
	sender, receiver := ends(t)
	master, tty, err := pty.Open()
	require.NoError(t, err)
	defer tty.Close()
	require.NoError(t, socket.SendFile(sender, []byte("x"), master))
	require.NoError(t, master.Close())
	read(t, receiver, 1)
	got, err := receiver.NextFile()
	require.NoError(t, err)
	_, err = tty.WriteString("hello")
	require.NoError(t, err)
	assert.Equal(t, "hello", read(t, got, 5))

	ended := make(chan error)
	go func() { _, err := got.Read(make([]byte, 1)); ended <- err }()
	require.NoError(t, got.SetReadDeadline(time.Now().Add(10*time.Millisecond)), "it is in Go's poller")
	assert.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	require.NoError(t, got.Close())
}

func TestAPeerCannotUseUpOurFiles(t *testing.T) {
	sender, receiver := ends(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	for range socket.MostQueuedFiles {
		require.NoError(t, socket.SendFile(sender, []byte("x"), w))
	}
	read(t, receiver, socket.MostQueuedFiles)
	assert.Zero(t, receiver.Dropped())
	require.NoError(t, socket.SendFile(sender, []byte("x"), w))
	read(t, receiver, 1)
	assert.EqualValues(t, 1, receiver.Dropped())

	// Many in one message.
	raw, err := w.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		fds := make([]int, 200)
		for i := range fds {
			fds[i] = int(fd)
		}
		_, _, err := sender.WriteMsgUnix([]byte("x"), unix.UnixRights(fds...), nil)
		assert.NoError(t, err)
	}))
	read(t, receiver, 1)
	assert.EqualValues(t, 201, receiver.Dropped())

	for range socket.MostQueuedFiles / 2 {
		f, err := receiver.NextFile()
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.NoError(t, receiver.Close())
	require.NoError(t, w.Close())
	require.NoError(t, r.SetReadDeadline(time.Now().Add(patience)))
	_, err = r.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "every copy of the other end is closed")
	n, err := receiver.Read(make([]byte, 1))
	assert.ErrorIs(t, err, net.ErrClosed)
	assert.Zero(t, n)
}

// A failed call reports 0 bytes read or written, not a negative number.
func TestAFailureCountsNothing(t *testing.T) {
	sender, receiver := ends(t)
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, receiver.SetReadDeadline(time.Now().Add(-time.Second)))
	n, err := receiver.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Zero(t, n)
	require.NoError(t, sender.SetWriteDeadline(time.Now().Add(-time.Second)))
	n, err = socket.Sender{UnixConn: sender}.WriteFile([]byte("x"), f)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.Zero(t, n)
	require.NoError(t, sender.SetWriteDeadline(time.Time{}))

	// The peer leaves with unread bytes: the connection is reset.
	require.NoError(t, receiver.SetReadDeadline(time.Time{}))
	_, err = receiver.Write([]byte("unread"))
	require.NoError(t, err)
	require.NoError(t, sender.Close())
	n, err = receiver.Read(make([]byte, 1))
	require.Error(t, err)
	assert.Zero(t, n)
	n, err = receiver.WriteFile([]byte("x"), f)
	require.Error(t, err)
	assert.Zero(t, n)
}
