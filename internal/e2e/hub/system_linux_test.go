//go:build clients

package hub

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// smallDisk puts the project and its state on one small disk.
func smallDisk(s *e2e.Site, size string) {
	s.T.Helper()
	err := syscall.Mount("tmpfs", s.Root, "tmpfs", 0, "mode=0755,size="+size)
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		s.T.Skip("only root can mount a small disk")
	}
	require.NoError(s.T, err)
	s.T.Cleanup(func() { _ = syscall.Unmount(s.Root, syscall.MNT_DETACH) })
	onDisk, state := filepath.Join(s.Root, "state"), filepath.Join(s.Home, "state")
	require.NoError(s.T, os.Mkdir(onDisk, 0o700))
	require.NoError(s.T, os.MkdirAll(state, 0o700))
	require.NoError(s.T, syscall.Mount(onDisk, state, "", syscall.MS_BIND, ""))
	s.T.Cleanup(func() {
		s.EndDaemons() // first: the unmounted state does not show them
		_ = syscall.Unmount(state, syscall.MNT_DETACH)
	})
}

// fillDisk writes a file until the disk is full, and returns its path.
func fillDisk(s *e2e.Site) (path string) {
	s.T.Helper()
	path = filepath.Join(s.Root, "ballast")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(s.T, err)
	defer f.Close()
	for block := make([]byte, 64<<10); ; {
		n, err := f.Write(block)
		if err == nil {
			continue
		}
		require.ErrorIs(s.T, err, syscall.ENOSPC)
		if n == 0 && len(block) == 1 {
			return path
		}
		block = block[:max(1, len(block)/16)]
	}
}

// fillDiskWithoutReserve fills the disk, but not the reserve that the hub releases on a full disk. It returns
// when no space is left or the reserve is gone.
func fillDiskWithoutReserve(s *e2e.Site) {
	s.T.Helper()
	f, err := os.OpenFile(filepath.Join(s.Root, "ballast"), os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(s.T, err)
	defer f.Close()
	reserve := filepath.Join(s.State(), "reserve")
	for size := int64(0); ; {
		var disk syscall.Statfs_t
		require.NoError(s.T, syscall.Statfs(s.Root, &disk))
		free := int64(disk.Bavail) * disk.Bsize
		if _, err := os.Stat(reserve); err != nil || free == 0 {
			return // checked after Statfs, so that free excludes the reserve
		}
		switch err := syscall.Fallocate(int(f.Fd()), 0, size, free); {
		case err == nil:
			size += free
		case !errors.Is(err, syscall.EINTR): // ENOSPC: another process was faster
			require.ErrorIs(s.T, err, syscall.ENOSPC)
		}
	}
}

// A full disk fails the turns that Duet cannot store, with the reason. Everything else works, and
// new turns work once there is space.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		query string
		fill  func(*e2e.Site, *e2e.Client)
	}{
		{"that a turn fills", "stream:10000000", func(*e2e.Site, *e2e.Client) {}},
		{"that something else fills", "stream:10000000@2000", func(s *e2e.Site, _ *e2e.Client) { fillDiskWithoutReserve(s) }},
		// The released reserve is full too, so the hub stores the turn's end once there is space.
		{"that something else fills for good", "stream:10000000@2000", func(s *e2e.Site, c *e2e.Client) {
			fillDiskWithoutReserve(s)
			require.Eventually(s.T, func() bool {
				_, issues := c.Issues()
				return strings.Contains(strings.Join(issues, "\n"), "disk is full")
			}, e2e.Watchdog/3, e2e.PollEvery, "health does not report the full disk")
			ballast := fillDisk(s)
			c.RequireCore()
			require.NoError(s.T, os.Remove(ballast))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			if !strings.Contains(test.query, "@") { // the turn fills the disk, which takes minutes with the race detector
				s.Binary = e2e.FastProgram(t)
			}
			smallDisk(s, "24m")
			c := s.Open()
			kept := c.Runs("quiet")
			said := c.Said(kept.SessionID)
			asking, question := c.Asks("permit:1", "")

			require.Eventually(t, func() bool {
				info, err := os.Stat(filepath.Join(s.State(), "reserve"))
				return err == nil && info.Size() == 1<<20
			}, e2e.Watchdog/3, e2e.PollEvery, "the hub has no reserve")
			// The test fills most of the disk itself, to save time.
			var disk syscall.Statfs_t
			require.NoError(t, syscall.Statfs(s.Root, &disk))
			require.NoError(t, os.WriteFile(filepath.Join(s.Root, "large"), make([]byte, int64(disk.Bavail)*disk.Bsize-2<<20), 0o600))
			streaming := c.Launch(test.query, "")
			chunks := regexp.MustCompile(`chunk [2-9]\d* `)
			c.Await("text", func(e e2e.Event) bool {
				return e.Type == "message_delta" && e.Data.SessionID == streaming.SessionID && chunks.Match(e.Raw)
			})
			test.fill(s, c)
			end := c.EndsAs(streaming.SessionID, "failed", "STORE_FULL")
			assert.Contains(t, end.Data.Error, "the disk is full")

			c.RequireCore()
			assert.Equal(t, end.Data.State, c.Session(streaming.SessionID).State)
			partly := c.Said(streaming.SessionID)
			assert.Contains(t, partly, "chunk 1 chunk 2 ", "the transcript has the agent's first text")
			for key, text := range textsOf(c.Seen()) {
				if strings.HasPrefix(key, streaming.SessionID) {
					assert.True(t, strings.HasPrefix(partly, text) || strings.HasPrefix(text, partly) && len(partly) > 100_000, "the transcript matches the reported text")
				}
			}
			assert.Equal(t, said, c.Said(kept.SessionID))
			c.RequireDegraded("disk is full")
			found, err := s.Command("doctor")
			assert.ErrorContains(t, err, "something is wrong: hub")
			assert.Regexp(t, `(?m)^wrong +hub +process \d+, .*: the disk is full; free some space`, found)

			// Without space, a request fails with the reason and does not hang.
			fillDisk(s)
			for range 3 {
				err := c.Try("launchSession", object{"query": strings.Repeat("much ", 1_000_000)}, nil)
				var refused *e2e.WireError
				require.ErrorAs(t, err, &refused)
				assert.Contains(t, refused.Message, "disk is full")
			}

			require.NoError(t, os.Remove(filepath.Join(s.Root, "ballast")))
			require.NoError(t, os.Remove(filepath.Join(s.Root, "large")))
			c.GoesOn(streaming, "quiet")
			c.Runs("quiet")
			require.Eventually(t, func() bool { status, _ := c.Issues(); return status == "ok" }, time.Minute, e2e.PollEvery, "health does not recover")
			c.Leave()
			assert.Less(t, strings.Count(c.Log.String(), "\n"), 30, "the log stays short")
			assert.Less(t, strings.Count(s.DaemonLog(), "\n"), 30, "the daemon's log stays short")

			c = s.Open()
			assert.Equal(t, said, c.Said(kept.SessionID))
			assert.Equal(t, "STORE_FULL", c.Session(streaming.SessionID).ErrorCode)
			open := c.Approval(question.Data.ApprovalID)
			require.Equal(t, "pending", open.Status, "a question outlives its turn")
			require.True(t, open.Stale)
			c.Approve(question.Data.ApprovalID)
			c.AwaitThread(asking.ThreadID)
			c.Leave()
		})
	}
}

// The program starts on a full disk.
func TestStartOnAFullDisk(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	smallDisk(s, "8m")
	c := s.Start()
	kept := c.Launch("quiet", "")
	c.Subscribe()
	c.AwaitEnd(kept.SessionID)
	said := c.Said(kept.SessionID)
	c.Leave()
	ballast := fillDisk(s)
	found := s.Run("session", "list")
	assert.Contains(t, found, "quiet")
	c = s.Start()
	c.RequireCore()
	assert.Equal(t, said, c.Said(kept.SessionID), "the stored transcript is readable")
	refused := c.Refused("launchSession", object{"query": strings.Repeat("much ", 1_000_000)})
	assert.Contains(t, refused.Message, "the disk is full")
	c.RequireDegraded("disk is full")
	c.RequireCore()
	require.NoError(t, os.Remove(ballast))
	c.Leave()

	c = s.Open()
	assert.Equal(t, said, c.Said(kept.SessionID))
	c.Runs("quiet")
	c.Leave()
}

// A new project on a full disk reports the reason. It works once there is space, and its state has
// project.json.
func TestAProjectBeginsOnAFullDisk(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	smallDisk(s, "8m")
	ballast := fillDisk(s)
	for range 2 { // the first attempt leaves files behind
		_, said, err := s.CommandIn(s.Root, "prompt", "quiet")
		require.Error(t, err)
		assert.Regexp(t, "the disk is full; free some space|no space left on device", said)
		assert.NotContains(t, said, "doctor", "doctor knows no more")
	}
	require.NoError(t, os.Remove(ballast))
	s.RunIn(s.Root, "prompt", "quiet")
	assert.FileExists(t, filepath.Join(s.State(), "project.json"))
}

// A prompt ends with the reason, even without space for the end of its session.
func TestAPromptEndsOnAFullDisk(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	smallDisk(s, "12m")
	cmd := s.ShellCommand("prompt", "--yes", "stream:10000000@2000")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	said, read := &strings.Builder{}, make(chan struct{})
	begun := make(chan struct{})
	begins := sync.OnceFunc(func() { close(begun) })
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(said, lines.Text())
			if strings.Contains(lines.Text(), "— 1.1 · ") {
				begins()
			}
		}
	}()
	select {
	case <-begun:
	case <-time.After(e2e.Watchdog / 3):
		cmd.Process.Kill()
		<-read
		require.Fail(t, "the prompt does not start", said.String())
	}
	stop, filled := make(chan struct{}), make(chan struct{})
	go func() { // also fills the space that the hub releases
		defer close(filled)
		for {
			select {
			case <-stop:
				return
			default:
				fillDisk(s)
			}
		}
	}()
	defer func() {
		close(stop)
		<-filled
	}()
	select {
	case <-read:
	case <-time.After(e2e.Watchdog / 3):
		cmd.Process.Signal(syscall.SIGQUIT)
		<-read
		t.Error("the prompt does not end", said)
	}
	assert.Error(t, cmd.Wait())
	assert.Contains(t, said.String(), "failed: the disk is full")
}

// The hub's status, `duet-rpc triggers` and `duet-rpc doctor` report a reached watch limit of the
// system.
func TestAWatchLimitIsTold(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), "[[triggers]]\nid = \"files\"\nsource = \"watch\"\npaths = [\"src\"]\naction = { type = \"notify\", message = \"{{payload.path}}\" }\n")
	for i := range 40 {
		require.NoError(t, os.MkdirAll(filepath.Join(s.Root, "src", fmt.Sprint(i)), 0o755))
	}
	watchAtMost(s, 30) // the hub uses some for its own files
	editor := s.Start()
	const reported = "directories are not watched: the system allows no more watches (sysctl fs.inotify.max_user_watches)"
	require.Eventually(t, func() bool {
		status := editor.Status()
		return status.Health == "degraded" && strings.Contains(strings.Join(status.Issues, "; "), reported)
	}, e2e.Watchdog/3, e2e.PollEvery, "the status does not report the limit")
	out, err := s.ShellCommand("triggers").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, strings.Join(strings.Fields(string(out)), " "), reported)
	out2, _ := s.Command("doctor", "--json")
	assert.Contains(t, out2, reported)

	// The hub still watches the other directories.
	editor.Subscribe()
	require.NoError(t, os.WriteFile(filepath.Join(s.Root, "src", "here"), []byte("x"), 0o600))
	editor.Await("a trigger", func(e e2e.Event) bool {
		return e.Type == "trigger_executed" && strings.Contains(string(e.Raw), "src/here")
	})
	editor.Leave()
}

// watchAtMost limits the number of directories that the hub can watch.
func watchAtMost(s *e2e.Site, n int) {
	s.T.Helper()
	unshare := testkit.NeedTool(s.T, "unshare")
	if out, err := exec.Command(unshare, "--user", "--map-root-user", "sh", "-c", "echo 9 >/proc/sys/user/max_inotify_watches").CombinedOutput(); err != nil {
		testkit.SkipMissing(s.T, "cannot set a watch limit here: "+string(out))
	}
	// The inner shell gets the program's arguments as parameters, so that they stay separate.
	script := filepath.Join(s.Home, "limited")
	text := fmt.Sprintf("#!/bin/sh\nexec %s --user --map-root-user sh -c 'echo %d >/proc/sys/user/max_inotify_watches; exec \"$@\"' sh %s \"$@\"\n", unshare, n, e2e.Program)
	testkit.Program(s.T, script, text)
	s.Binary = script
}

// clientsOfAKind is the number of clients of each kind that the test starts and ends.
const clientsOfAKind = 100

// No ended client leaves a process behind, and the daemon stays the same.
func TestClientsLeaveNoProcessBehind(t *testing.T) {
	s := e2e.NewDaemonSite(e2e.Parallel(t))
	first := s.Start()
	daemon := requireDaemon(s, first)
	hello := map[string]string{
		"editor": e2e.Framed(`{"jsonrpc":"2.0","id":1,"method":"task.stats"}`),
		"acp":    `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n",
		"mcp":    `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n",
	}
	for kind, message := range hello {
		for i := range clientsOfAKind {
			l := s.Launch()
			if kind != "editor" {
				l.First = []string{kind}
			}
			p := l.Start(t)
			_, err := p.Stdin.Write([]byte(message))
			require.NoError(t, err)
			_, err = p.Stdout.Read(make([]byte, 1<<10))
			require.NoError(t, err, "%s %d", kind, i)
			if i%2 == 0 {
				require.NoError(t, p.Stdin.Close())
			} else {
				require.NoError(t, p.Cmd.Process.Kill())
			}
			<-p.Ended
		}
	}
	for range clientsOfAKind {
		s.Run("call", "task.stats")
	}
	require.Equal(t, daemon, e2e.HubOf(t, first))
	first.Leave()
	require.Eventually(t, func() bool { return len(s.Running()) == 1 }, e2e.Watchdog/3, e2e.PollEvery, "%v", s.Running())
	s.Run("daemon", "stop")
	s.RequireNobody("after the daemon was stopped")
}

// stranger is the id of another user.
const stranger = 65534

// requireRoot skips a test that must act as a second user, unless root runs it.
func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user, too")
	}
}

// asStranger connects to a socket as another user. The kernel checks the user of the connecting
// thread, so no other goroutine may use that thread again.
func asStranger(path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // without unlock, the thread ends with the goroutine
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

// The daemon refuses another user even with open file modes.
func TestAnotherUserIsRefused(t *testing.T) {
	requireRoot(t)
	s := e2e.NewSite(e2e.Parallel(t))
	s.ClearDaemons()
	temporary := t.TempDir() // the socket of a long state directory is in there
	s.Env = []string{"TMPDIR=" + temporary}
	s.Daemon()
	_, err := asStranger(s.SocketPath())
	require.ErrorIs(t, err, unix.EACCES, "the file modes refuse")

	for _, dir := range []string{s.State(), filepath.Dir(s.SocketPath())} {
		for ; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
	}
	require.NoError(t, os.Chmod(s.SocketPath(), 0o666))
	conn, err := asStranger(s.SocketPath())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(e2e.Watchdog/3)))
	_, _ = io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	answer, err := io.ReadAll(conn)
	assert.Empty(t, answer, "the daemon answers nothing")
	if err != nil {
		assert.ErrorIs(t, err, unix.ECONNRESET)
	}
	s.Run("daemon", "stop")
}

// Another user's file at the socket's path stays there, and
// no process connects to it.
func TestAnotherUsersSocketStays(t *testing.T) {
	requireRoot(t)
	s := e2e.NewSite(e2e.Parallel(t))
	s.ClearDaemons()
	l := listenAsStranger(s)
	require.NoError(t, os.Lchown(s.SocketPath(), stranger, stranger))
	before, err := os.Lstat(s.SocketPath())
	require.NoError(t, err)
	for _, args := range [][]string{{"daemon", "start"}, {"daemon", "start", "--foreground"}, {"daemon", "status"}, {"prompt", "quiet"}, {"session", "list", "--turns"}} {
		_, err = s.Command(args...)
		require.ErrorContains(t, err, fmt.Sprintf("belongs to user %d and is not", stranger), args)
		require.NotContains(t, err.Error(), "opener")
		s.RequireNobody("after " + args[0])
	}
	editor := s.Start()
	refused := editor.Refused("launchSession", object{"query": "quiet"})
	assert.Equal(t, "subsystem_unavailable", refused.Kind())
	assert.Contains(t, refused.Message, fmt.Sprintf("belongs to user %d and is not used", stranger))
	editor.RequireCore()
	editor.Leave()
	after, err := os.Lstat(s.SocketPath())
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after))
	require.NoError(t, l.(*net.UnixListener).SetDeadline(time.Now()))
	_, err = l.Accept()
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "no process has connected")
}

// configurationIn returns the effective configuration in a directory, by key.
func configurationIn(s *e2e.Site, dir string) map[string]string {
	s.T.Helper()
	out := s.RunIn(dir, "config", "--json")
	var reported struct {
		Values []struct {
			Key   string
			Value any
		}
	}
	require.NoError(s.T, json.Unmarshal([]byte(out), &reported))
	values := map[string]string{}
	for _, v := range reported.Values {
		values[v.Key] = fmt.Sprint(v.Value)
	}
	return values
}

// Another user's files in a parent directory, such as /tmp, make no project and no configuration.
func TestAnotherUsersProjectIsNobodysElse(t *testing.T) {
	requireRoot(t)
	s := e2e.NewSite(e2e.Parallel(t))
	shared := filepath.Join(filepath.Dir(s.Root), "shared")
	mine := filepath.Join(shared, "mine")
	require.NoError(t, os.MkdirAll(mine, 0o755))
	theirs := filepath.Join(shared, "theirs")
	deep := filepath.Join(theirs, "deep")
	require.NoError(t, os.MkdirAll(filepath.Join(theirs, ".git"), 0o755))
	require.NoError(t, os.MkdirAll(deep, 0o755))
	for _, dir := range []string{shared, theirs} {
		written("[limits]\nmax_turns = 1\n[[rules]]\neffect = 'deny'\ntool = '*'\n")(t, filepath.Join(dir, ".duet.toml"))
		require.NoError(t, os.Lchown(filepath.Join(dir, ".duet.toml"), stranger, stranger))
	}
	for _, path := range []string{theirs, filepath.Join(theirs, ".git")} {
		require.NoError(t, os.Lchown(path, stranger, stranger))
	}
	require.NoError(t, os.Chmod(shared, 0o777|fs.ModeSticky))

	for _, dir := range []string{mine, deep} {
		assert.Equal(t, "3", configurationIn(s, dir)["limits.max_turns"])
		_, problem, err := s.CommandIn(dir, "trust")
		require.Error(t, err)
		assert.Contains(t, problem, "the project "+dir+" has no .duet.toml, so there is nothing to trust; ")
		assert.Regexp(t, shared+`.*/.duet.toml belongs to user 65534 and is not used: .*safe_directories`, problem)
		said, problem, err := s.CommandIn(dir, "prompt", "quiet")
		require.NoError(t, err, problem)
		assert.NotEmpty(t, said)
		assert.Contains(t, problem, "belongs to user 65534 and is not used")
		require.DirExists(t, stateOf(s, dir), "the directory is a project")
	}
	assert.Equal(t, "3", configurationIn(s, theirs)["limits.max_turns"])
	s.RunIn(theirs, "prompt", "quiet")
	_, problem, err := s.CommandIn(theirs, "trust", "--yes")
	require.Error(t, err)
	assert.Contains(t, problem, ".duet.toml belongs to user 65534 and is not used: take it over with chown, or name its directory in DUET_SAFE_DIRECTORIES")

	// The user can declare the other user's directory safe.
	s.Env = []string{"DUET_SAFE_DIRECTORIES=" + theirs}
	assert.Equal(t, "1", configurationIn(s, theirs)["limits.max_turns"])
	s.Env = nil
	s.Agents("[limits]\nqueue_cap = 7\n")
	config := filepath.Join(s.Home, "config", "duet", "config.toml")
	text := e2e.ReadFile(t, config)
	require.NoError(t, os.WriteFile(config, append([]byte("safe_directories = ['"+shared+"/*']\n"), text...), 0o600))
	assert.Equal(t, "1", configurationIn(s, theirs)["limits.max_turns"])
	assert.Equal(t, "7", configurationIn(s, theirs)["limits.queue_cap"])
	s.RunIn(deep, "daemon", "stop")
	require.NoError(t, os.RemoveAll(stateOf(s, deep)))
	out := s.RunIn(deep, "doctor")
	assert.Regexp(t, `ok +project +`+theirs+`;`, out, "a safe directory can be a project root")
}

// Duet finds no project in a directory for temporary files. The user can name one with --root.
func TestNoProjectIsFoundInAPlaceForTemporaryFiles(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	dir := filepath.Join(filepath.Dir(s.Root), "tmp")
	inside := filepath.Join(dir, "inside")
	require.NoError(t, os.MkdirAll(inside, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	s.Env = []string{"TMPDIR=" + dir}
	s.RunIn(inside, "prompt", "quiet")
	require.DirExists(t, stateOf(s, inside))
	for _, args := range [][]string{{"prompt", "quiet"}, {"prompt", "quiet", "--root", dir}} {
		problem := s.RunIn(dir, args...)
		assert.Equal(t, len(args) == 2, strings.Contains(problem, dir+" is a directory for many projects"), "%s", problem)
	}
	out := s.RunIn(dir, "doctor")
	e2e.RequireParts(t, out, dir+" is a directory for many projects", "name one with --root")
	out, problem, err := s.CommandIn("/", "session", "list", "--turns")
	require.Error(t, err, out)
	assert.Contains(t, problem, "this project has no sessions yet")
}

func stateOf(s *e2e.Site, root string) string {
	there := *s
	there.Root = root
	return there.State()
}
