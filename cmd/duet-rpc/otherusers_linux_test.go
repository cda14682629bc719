//go:build clients

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
	s := newSite(parallel(t))
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
	s.run("daemon", "stop")
}

// Another user's file at the socket's path stays there, and
// no process connects to it.
func TestAnotherUsersSocketStays(t *testing.T) {
	requireRoot(t)
	s := newSite(parallel(t))
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

// configured is what is in effect there, by its key.
func (s *site) configured(dir string) map[string]string {
	s.t.Helper()
	out, problem, err := s.commandIn(dir, "config", "--json")
	require.NoError(s.t, err, problem)
	var reported struct {
		Values []struct {
			Key   string
			Value any
		}
	}
	require.NoError(s.t, json.Unmarshal([]byte(out), &reported))
	values := map[string]string{}
	for _, v := range reported.Values {
		values[v.Key] = fmt.Sprint(v.Value)
	}
	return values
}

// What another user puts into a directory above makes no project and no
// configuration, as in /tmp.
func TestAnotherUsersProjectIsNobodysElse(t *testing.T) {
	requireRoot(t)
	s := newSite(parallel(t))
	shared := filepath.Join(filepath.Dir(s.root), "shared")
	mine := filepath.Join(shared, "mine")
	require.NoError(t, os.MkdirAll(mine, 0o755))
	theirs := filepath.Join(shared, "theirs")
	deep := filepath.Join(theirs, "deep")
	require.NoError(t, os.MkdirAll(filepath.Join(theirs, ".git"), 0o755))
	require.NoError(t, os.MkdirAll(deep, 0o755))
	for _, dir := range []string{shared, theirs} {
		written("[limits]\nmax_runs = 1\n[[rules]]\neffect = 'deny'\ntool = '*'\n")(t, filepath.Join(dir, ".duet.toml"))
		require.NoError(t, os.Lchown(filepath.Join(dir, ".duet.toml"), stranger, stranger))
	}
	for _, path := range []string{theirs, filepath.Join(theirs, ".git")} {
		require.NoError(t, os.Lchown(path, stranger, stranger))
	}
	require.NoError(t, os.Chmod(shared, 0o777|fs.ModeSticky))

	for _, dir := range []string{mine, deep} {
		assert.Equal(t, "3", s.configured(dir)["limits.max_runs"])
		_, problem, err := s.commandIn(dir, "trust")
		require.Error(t, err)
		assert.Contains(t, problem, "the project "+dir+" has no .duet.toml, so there is nothing to trust; ")
		assert.Regexp(t, shared+`.*/.duet.toml belongs to user 65534 and is not used: .*safe_directories`, problem)
		said, problem, err := s.commandIn(dir, "prompt", "quiet")
		require.NoError(t, err, problem)
		assert.NotEmpty(t, said)
		assert.Contains(t, problem, "belongs to user 65534 and is not used")
		require.DirExists(t, s.stateOf(dir), "it is its own project")
	}
	assert.Equal(t, "3", s.configured(theirs)["limits.max_runs"])
	_, problem, err := s.commandIn(theirs, "prompt", "quiet")
	require.NoError(t, err, problem)
	_, problem, err = s.commandIn(theirs, "trust", "--yes")
	require.Error(t, err)
	assert.Contains(t, problem, ".duet.toml belongs to user 65534 and is not used: take it over with chown, or name its directory in DUET_SAFE_DIRECTORIES")

	// Until its user says that it is safe.
	s.env = []string{"DUET_SAFE_DIRECTORIES=" + theirs}
	assert.Equal(t, "1", s.configured(theirs)["limits.max_runs"])
	s.env = nil
	s.agents("[limits]\nqueue_cap = 7\n")
	config := filepath.Join(s.home, "config", "duet", "config.toml")
	text := readFile(t, config)
	require.NoError(t, os.WriteFile(config, append([]byte("safe_directories = ['"+shared+"/*']\n"), text...), 0o600))
	assert.Equal(t, "1", s.configured(theirs)["limits.max_runs"])
	assert.Equal(t, "7", s.configured(theirs)["limits.queue_cap"])
	_, _, err = s.commandIn(deep, "daemon", "stop")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(s.stateOf(deep)))
	out, _, err := s.commandIn(deep, "doctor")
	require.NoError(t, err, out)
	assert.Regexp(t, `ok +project +`+theirs+`;`, out, "also as a root")
}

// No project is found where all users have files, though one may be named.
func TestNoProjectIsFoundInAPlaceForTemporaryFiles(t *testing.T) {
	s := newSite(parallel(t))
	dir := filepath.Join(filepath.Dir(s.root), "tmp")
	inside := filepath.Join(dir, "inside")
	require.NoError(t, os.MkdirAll(inside, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	s.env = []string{"TMPDIR=" + dir}
	_, problem, err := s.commandIn(inside, "prompt", "quiet")
	require.NoError(t, err, problem)
	require.DirExists(t, s.stateOf(inside))
	for _, args := range [][]string{{"prompt", "quiet"}, {"prompt", "quiet", "--root", dir}} {
		_, problem, err = s.commandIn(dir, args...)
		require.NoError(t, err, problem)
		assert.Equal(t, len(args) == 2, strings.Contains(problem, dir+" is a directory for many projects"), "%s", problem)
	}
	out, _, err := s.commandIn(dir, "doctor")
	require.NoError(t, err, out)
	assert.Contains(t, out, dir+" is a directory for many projects")
	assert.Contains(t, out, "name one with --root")
	out, problem, err = s.commandIn("/", "task", "list")
	require.Error(t, err, out)
	assert.Contains(t, problem, "this project has no sessions yet")
}

func (s *site) stateOf(root string) string {
	there := *s
	there.root = root
	return there.state()
}
