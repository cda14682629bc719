//go:build linux || darwin

package socket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

const (
	roleVariable = "DUET_SOCKET_TEST_ROLE"
	pathVariable = "DUET_SOCKET_TEST_PATH"
	nobody       = 65534
	patience     = time.Minute // a loaded machine; no wait is that long
)

func TestMain(m *testing.M) {
	path := os.Getenv(pathVariable)
	switch role := os.Getenv(roleVariable); role {
	case "":
		goleak.VerifyTestMain(m)
	case "net.Dial":
		fmt.Println(connectPlainly(path))
	case "Dial":
		conn, err := socket.Dial(context.Background(), path)
		fmt.Println("connected:", conn != nil, err)
	case "Listen":
		l, err := socket.Listen(context.Background(), path)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("listening")
		go accept(l)
		_, _ = io.Copy(io.Discard, os.Stdin)
		l.Close()
	case "few files":
		serveWithFewFiles(path)
	case "RaiseFileLimit":
		raise()
	default:
		panic(role)
	}
}

// connectPlainly returns the result of a client that checks nothing.
func connectPlainly(path string) string {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return "closed"
	}
	return fmt.Sprint("read: ", err)
}

// accept greets clients with a byte and keeps them until they leave.
func accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if _, err := conn.Write([]byte("!")); err == nil {
				_, _ = io.Copy(conn, conn)
			}
		}()
	}
}

// self starts this test program in a role, as user uid, or as the current user if uid is 0. It
// ends with the test at the latest.
func self(t *testing.T, uid int, role, path string) (stdin io.Closer, stdout io.Reader, cmd *exec.Cmd) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	if uid != 0 {
		// Other users cannot enter Go's own directory for it.
		program = filepath.Join(open(t), "socket.test")
		require.NoError(t, copyProgram(program))
	}
	cmd = exec.Command(program)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, pathVariable+"="+path)
	cmd.Stderr = os.Stderr
	if uid != 0 {
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return in, out, cmd
}

// outputOf returns the whole output of a role.
func outputOf(t *testing.T, uid int, role, path string) string {
	t.Helper()
	_, out, _ := self(t, uid, role, path)
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}

// line returns the first line of a role's output.
func line(t *testing.T, from io.Reader) string {
	t.Helper()
	var text []byte
	for b := make([]byte, 1); ; text = append(text, b[0]) {
		if _, err := from.Read(b); err != nil || b[0] == '\n' {
			return string(text)
		}
	}
}

func copyProgram(to string) error {
	from, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}

// open returns a short directory that other users can enter.
func open(t *testing.T) string {
	t.Helper()
	dir := short(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// short returns a directory whose path leaves room in a socket address.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "duet")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	return dir
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func listen(t *testing.T, path string) *socket.Listener {
	t.Helper()
	l, err := socket.Listen(soon(t), path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// served is a listener that greets and echoes.
func served(t *testing.T, path string) *socket.Listener {
	t.Helper()
	l := listen(t, path)
	done := make(chan struct{})
	go func() { defer close(done); accept(l) }()
	t.Cleanup(func() { assert.NoError(t, l.Close()); <-done })
	return l
}

// stale leaves a socket without a listener.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
}

func greeted(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := socket.Dial(soon(t), path)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.ReadFull(conn, make([]byte, 1))
	require.NoError(t, err, "the listener greets")
	return conn
}
