//go:build linux || darwin

package socket_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestClientsOfOtherUsersAreRefused(t *testing.T) {
	needRoot(t)
	var text testkit.Text
	path := filepath.Join(open(t), "duet.sock")
	l, err := socket.Options{Logger: slog.New(slog.NewTextHandler(&text, nil))}.Listen(soon(t), path)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() { defer close(done); accept(l) }()
	defer func() { assert.NoError(t, l.Close()); <-done }()

	assert.Contains(t, outputOf(t, nobody, "net.Dial", path), "permission denied", "by the socket's mode")
	assert.NotContains(t, text.String(), "refused")

	require.NoError(t, os.Chmod(path, 0o666))
	assert.Equal(t, "closed", outputOf(t, nobody, "net.Dial", path), "by the peer's uid, without a greeting")
	assert.Equal(t, 1, strings.Count(text.String(), "a client of another user is refused"))
	assert.Contains(t, text.String(), "uid=65534")
	assert.Contains(t, outputOf(t, nobody, "Dial", path), "belongs to user 0 and is not used")

	greeted(t, path)
	assert.Equal(t, 1, strings.Count(text.String(), "refused"))
}

func TestRootIsRefusedByOthers(t *testing.T) {
	needRoot(t)
	dir := open(t)
	require.NoError(t, os.Chown(dir, nobody, nobody))
	path := filepath.Join(dir, "duet.sock")
	_, out, _ := self(t, nobody, "Listen", path)
	require.Equal(t, "listening", line(t, out))
	assert.Equal(t, "closed", connectPlainly(path))

	_, err := socket.Dial(soon(t), path)
	var unsafe *socket.UnsafeError
	require.ErrorAs(t, err, &unsafe)
	assert.ErrorContains(t, err, "belongs to user 65534")

	// A file of ours with another user's listener.
	require.NoError(t, os.Chown(path, 0, 0))
	_, err = socket.Dial(soon(t), path)
	require.ErrorAs(t, err, &unsafe)
	assert.ErrorContains(t, err, "is listened on by user 65534")
}

func TestDialWithoutAHub(t *testing.T) {
	dir := short(t)
	stale(t, filepath.Join(dir, "stale"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, name := range []string{"none", "none/duet.sock", "file/duet.sock", "stale"} {
		_, err := socket.Dial(soon(t), filepath.Join(dir, name))
		var unserved *socket.NoListenerError
		require.ErrorAs(t, err, &unserved, name)
		assert.Equal(t, filepath.Join(dir, name), unserved.Path)
		assert.ErrorContains(t, err, "no daemon runs here; `duet-rpc daemon start`")
	}
}

func TestDialFollowsNoLinks(t *testing.T) {
	dir := short(t)
	path := filepath.Join(dir, "duet.sock")
	served(t, filepath.Join(dir, "other.sock"))
	require.NoError(t, os.Symlink("other.sock", path))
	_, err := socket.Dial(soon(t), path)
	var unsafe *socket.UnsafeError
	require.ErrorAs(t, err, &unsafe)
	assert.ErrorContains(t, err, "is a symbolic link")

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = socket.Dial(soon(t), path)
	require.ErrorAs(t, err, &unsafe)
	assert.ErrorContains(t, err, "is no socket")
}

func TestManyClientsAtOnce(t *testing.T) {
	const clients = 1200
	limit, err := socket.RaiseFileLimit()
	require.NoError(t, err)
	if limit < 2*clients+100 {
		t.Skipf("both ends of %d clients need more than the %d files that this system lets a process have", clients, limit)
	}
	path := filepath.Join(short(t), "duet.sock")
	served(t, path)
	conns := make([]net.Conn, clients)
	var group sync.WaitGroup
	for i := range conns {
		group.Go(func() {
			conn, err := socket.Dial(soon(t), path)
			if assert.NoError(t, err) {
				conns[i] = conn
			}
		})
	}
	group.Wait()
	require.False(t, t.Failed())
	for i, conn := range conns { // all of them are connected
		group.Go(func() {
			defer conn.Close()
			assert.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			say := fmt.Sprint(i)
			_, err := io.WriteString(conn, say)
			assert.NoError(t, err)
			answer := make([]byte, 1+len(say))
			_, err = io.ReadFull(conn, answer)
			assert.NoError(t, err)
			assert.Equal(t, "!"+say, string(answer))
		})
	}
	group.Wait()
}

// A queue of one client makes the next one wait on Linux.
func TestDialWaitsForABusyListener(t *testing.T) {
	path := filepath.Join(short(t), "duet.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	require.NoError(t, syscall.Listen(fd, 0))
	first, err := socket.Dial(soon(t), path)
	require.NoError(t, err)
	defer first.Close()

	if !queueIsFull(path) {
		t.Skip("this system's queue is longer than requested")
	}
	_, err = socket.Listen(soon(t), path)
	var inUse *socket.InUseError
	require.ErrorAs(t, err, &inUse, "busy is not stale")

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = socket.Dial(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	second := make(chan error, 1)
	waits := &askedContext{Context: soon(t), asked: make(chan struct{}, 100)}
	go func() {
		conn, err := socket.Dial(waits, path)
		if err == nil {
			conn.Close()
		}
		second <- err
	}()
	for range 5 { // it is queued, and checks now and then whether it may go on waiting
		select {
		case <-waits.asked:
		case err := <-second:
			require.Fail(t, "a full queue accepts no client", "%v", err)
		}
	}
	accepted, _, err := syscall.Accept(fd)
	require.NoError(t, err)
	defer syscall.Close(accepted)
	assert.NoError(t, <-second)
}

// askedContext records each check whether it has ended.
type askedContext struct {
	context.Context
	asked chan struct{}
}

func (c *askedContext) Err() error {
	select {
	case c.asked <- struct{}{}:
	default: // no test counts any more
	}
	return c.Context.Err()
}

// queueIsFull connects once without waiting.
func queueIsFull(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return err != nil
}

func serveWithFewFiles(path string) {
	l, err := socket.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}.Listen(context.Background(), path)
	if err != nil {
		fmt.Println(err)
		return
	}
	limitFiles(24)
	fmt.Println("listening")
	accept(l)
}

func TestAcceptOutlivesALackOfFiles(t *testing.T) {
	path := filepath.Join(short(t), "duet.sock")
	_, out, cmd := self(t, 0, "few files", path)
	require.Equal(t, "listening", line(t, out))
	const clients = 60 // more than there are files
	var waiting sync.WaitGroup
	hasRoom := make(chan net.Conn, clients)
	for range clients {
		conn, err := socket.Dial(soon(t), path)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		waiting.Go(func() {
			_, err := io.ReadFull(conn, make([]byte, 1))
			assert.NoError(t, err, "everybody gets in once others have gone")
			hasRoom <- conn
		})
	}
	// Connected clients leave, so that others can connect.
	for range clients {
		(<-hasRoom).Close()
	}
	waiting.Wait()
	greeted(t, path)
	assert.Nil(t, cmd.ProcessState, "it lives on")
}

func raise() {
	limitFiles(64)
	got, err := socket.RaiseFileLimit()
	var now syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now)
	again, errAgain := socket.RaiseFileLimit()
	fmt.Println(got, now.Cur, again, now.Max, err, errAgain)
}

func limitFiles(n uint64) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	limit.Cur = n
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
}

func TestRaiseFileLimit(t *testing.T) {
	said := strings.Fields(outputOf(t, 0, "RaiseFileLimit", ""))
	require.Len(t, said, 6)
	assert.Equal(t, []string{"<nil>", "<nil>"}, said[4:])
	assert.Equal(t, said[0], said[1])
	assert.Equal(t, said[0], said[2])
	got, err := strconv.ParseUint(said[0], 10, 64)
	require.NoError(t, err)
	assert.Greater(t, got, uint64(64))
}
