//go:build clients

package main_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// stranger is a user who owns nothing here.
const stranger = 65534

// requireRoot skips a test that needs to be two users.
func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user, too")
	}
}

// asStranger connects to a socket as another user: the system asks for the user
// of the thread that connects, and this one is never used again.
func asStranger(path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and it ends with the goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), stranger, ^uintptr(0)); errno != 0 {
			done <- result{nil, errno}
			return
		}
		conn, err := net.Dial("unix", path)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// Another user gets nothing, whatever the modes of files have become.
func TestAnotherUserIsRefused(t *testing.T) {
	requireRoot(t)
	t.Parallel()
	s := newSite(t)
	s.clearDaemons()
	temporary := t.TempDir() // the socket of a long state directory is in there
	s.env = []string{"TMPDIR=" + temporary}
	s.daemon()
	_, err := asStranger(s.socketPath())
	require.ErrorIs(t, err, unix.EACCES, "by the modes")

	for _, dir := range []string{s.state(), filepath.Dir(s.socketPath())} {
		for ; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
	}
	require.NoError(t, os.Chmod(s.socketPath(), 0o666))
	conn, err := asStranger(s.socketPath())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(watchdog/3)))
	_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	answer, err := io.ReadAll(conn)
	assert.Empty(t, answer, "not a word")
	if err != nil {
		assert.ErrorIs(t, err, unix.ECONNRESET)
	}
	_, err = s.command("daemon", "stop")
	require.NoError(t, err, "its own user is served on")
}

// Another user's file at the socket's path stays there, and
// no process connects to it.
func TestAnotherUsersSocketStays(t *testing.T) {
	requireRoot(t)
	t.Parallel()
	s := newSite(t)
	s.clearDaemons()
	require.NoError(t, os.MkdirAll(s.state(), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Dir(s.socketPath()), 0o700))
	l, err := net.Listen("unix", s.socketPath())
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.Lchown(s.socketPath(), stranger, stranger))
	before, err := os.Lstat(s.socketPath())
	require.NoError(t, err)
	for _, args := range [][]string{{"daemon", "start"}, {"daemon", "start", "--foreground"}, {"daemon", "status"}, {"prompt", "quiet"}, {"task", "list"}} {
		_, err = s.command(args...)
		require.ErrorContains(t, err, fmt.Sprintf("belongs to user %d and is not", stranger), args)
		require.NotContains(t, err.Error(), "opener")
		s.requireNobody("after " + args[0])
	}
	editor := s.start()
	refused := editor.refused("launchSession", object{"query": "quiet"})
	assert.Equal(t, "subsystem_unavailable", refused.kind())
	assert.Contains(t, refused.Message, fmt.Sprintf("belongs to user %d and is not used", stranger))
	editor.requireCore()
	editor.leave()
	after, err := os.Lstat(s.socketPath())
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after))
	require.NoError(t, l.(*net.UnixListener).SetDeadline(time.Now()))
	_, err = l.Accept()
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "no process has connected")
}
