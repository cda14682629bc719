//go:build clients

package main_test

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

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// smallDisk puts the project and its state on one small disk.
func (s *site) smallDisk(size string) {
	s.t.Helper()
	err := syscall.Mount("tmpfs", s.root, "tmpfs", 0, "mode=0755,size="+size)
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		s.t.Skip("only root can mount a small disk")
	}
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = syscall.Unmount(s.root, syscall.MNT_DETACH) })
	onDisk, state := filepath.Join(s.root, "state"), filepath.Join(s.home, "state")
	require.NoError(s.t, os.Mkdir(onDisk, 0o700))
	require.NoError(s.t, os.MkdirAll(state, 0o700))
	require.NoError(s.t, syscall.Mount(onDisk, state, "", syscall.MS_BIND, ""))
	s.t.Cleanup(func() {
		s.endDaemons() // first: the unmounted state does not show them
		_ = syscall.Unmount(state, syscall.MNT_DETACH)
	})
}

// fill writes a file until the disk is full, and returns its path.
func (s *site) fill() (path string) {
	s.t.Helper()
	path = filepath.Join(s.root, "ballast")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	defer f.Close()
	for block := make([]byte, 64<<10); ; {
		n, err := f.Write(block)
		if err == nil {
			continue
		}
		require.ErrorIs(s.t, err, syscall.ENOSPC)
		if n == 0 && len(block) == 1 {
			return path
		}
		block = block[:max(1, len(block)/16)]
	}
}

// fillWithout fills the disk, but not the reserve that the hub releases on a full disk. It returns
// when no space is left or the reserve is gone.
func (s *site) fillWithout() {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.root, "ballast"), os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	defer f.Close()
	reserve := filepath.Join(s.state(), "reserve")
	for size := int64(0); ; {
		var disk syscall.Statfs_t
		require.NoError(s.t, syscall.Statfs(s.root, &disk))
		free := int64(disk.Bavail) * disk.Bsize
		if _, err := os.Stat(reserve); err != nil || free == 0 {
			return // checked after Statfs, so that free excludes the reserve
		}
		switch err := syscall.Fallocate(int(f.Fd()), 0, size, free); {
		case err == nil:
			size += free
		case !errors.Is(err, syscall.EINTR): // ENOSPC: another process was faster
			require.ErrorIs(s.t, err, syscall.ENOSPC)
		}
	}
}

// A full disk fails the runs that Duet cannot store, with the reason. Everything else works, and
// new runs work once there is space.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		query string
		fill  func(*site, *client)
	}{
		{"that a run fills", "stream:10000000", func(*site, *client) {}},
		{"that something else fills", "stream:10000000@2000", func(s *site, _ *client) { s.fillWithout() }},
		// The released reserve is full too, so the hub stores the run's end once there is space.
		{"that something else fills for good", "stream:10000000@2000", func(s *site, c *client) {
			s.fillWithout()
			require.Eventually(s.t, func() bool {
				_, issues := c.issues()
				return strings.Contains(strings.Join(issues, "\n"), "disk is full")
			}, watchdog/3, pollEvery, "health does not report the full disk")
			ballast := s.fill()
			c.requireCore()
			require.NoError(s.t, os.Remove(ballast))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(parallel(t))
			if !strings.Contains(test.query, "@") { // the run fills the disk, which takes minutes with the race detector
				s.binary = fastProgram(t)
			}
			s.smallDisk("24m")
			c := s.open()
			kept := c.runs("quiet")
			said := c.conversation(kept.SessionID)
			asking, question := c.asks("permit:1", "")

			require.Eventually(t, func() bool {
				info, err := os.Stat(filepath.Join(s.state(), "reserve"))
				return err == nil && info.Size() == 1<<20
			}, watchdog/3, pollEvery, "the hub has no reserve")
			// The test fills most of the disk itself, to save time.
			var disk syscall.Statfs_t
			require.NoError(t, syscall.Statfs(s.root, &disk))
			require.NoError(t, os.WriteFile(filepath.Join(s.root, "large"), make([]byte, int64(disk.Bavail)*disk.Bsize-2<<20), 0o600))
			streaming := c.launch(test.query, "")
			chunks := regexp.MustCompile(`chunk [2-9]\d* `)
			c.await("text", func(e event) bool {
				return e.Type == "message_delta" && e.Data.SessionID == streaming.SessionID && chunks.Match(e.Raw)
			})
			test.fill(s, c)
			end := c.endsAs(streaming.SessionID, "failed", "STORE_FULL")
			assert.Contains(t, end.Data.Error, "the disk is full")

			c.requireCore()
			assert.Equal(t, end.Data.State, c.session(streaming.SessionID).State)
			partly := c.conversation(streaming.SessionID)
			assert.Contains(t, partly, "chunk 1 chunk 2 ", "the conversation has the agent's first text")
			for key, text := range textsOf(c.seen()) {
				if strings.HasPrefix(key, streaming.SessionID) {
					assert.True(t, strings.HasPrefix(partly, text) || strings.HasPrefix(text, partly) && len(partly) > 100_000, "the conversation matches the reported text")
				}
			}
			assert.Equal(t, said, c.conversation(kept.SessionID))
			c.requireDegraded("disk is full")
			found, err := s.command("doctor")
			assert.ErrorContains(t, err, "something is wrong: hub")
			assert.Regexp(t, `(?m)^wrong +hub +process \d+, .*: the disk is full; free some space`, found)

			// Without space, a request fails with the reason and does not hang.
			s.fill()
			for range 3 {
				err := c.try("launchSession", object{"query": strings.Repeat("much ", 1_000_000)}, nil)
				var refused *wireError
				require.ErrorAs(t, err, &refused)
				assert.Contains(t, refused.Message, "disk is full")
			}

			require.NoError(t, os.Remove(filepath.Join(s.root, "ballast")))
			require.NoError(t, os.Remove(filepath.Join(s.root, "large")))
			c.goesOn(streaming, "quiet")
			c.runs("quiet")
			require.Eventually(t, func() bool { status, _ := c.issues(); return status == "ok" }, time.Minute, pollEvery, "health does not recover")
			c.leave()
			assert.Less(t, strings.Count(c.log.String(), "\n"), 30, "the log stays short")
			assert.Less(t, strings.Count(s.daemonLog(), "\n"), 30, "the daemon's log stays short")

			c = s.open()
			assert.Equal(t, said, c.conversation(kept.SessionID))
			assert.Equal(t, "STORE_FULL", c.session(streaming.SessionID).ErrorCode)
			open := c.approval(question.Data.ApprovalID)
			require.Equal(t, "pending", open.Status, "a question outlives its run")
			require.True(t, open.Stale)
			c.approve(question.Data.ApprovalID)
			c.awaitThread(asking.ThreadID)
			c.leave()
		})
	}
}

// The program starts on a full disk.
func TestStartOnAFullDisk(t *testing.T) {
	s := newSite(parallel(t))
	s.smallDisk("8m")
	c := s.start()
	kept := c.launch("quiet", "")
	c.subscribe()
	c.awaitEnd(kept.SessionID)
	said := c.conversation(kept.SessionID)
	c.leave()
	ballast := s.fill()
	found := s.run("session", "list")
	assert.Contains(t, found, "quiet")
	c = s.start()
	c.requireCore()
	assert.Equal(t, said, c.conversation(kept.SessionID), "the stored conversation is readable")
	refused := c.refused("launchSession", object{"query": strings.Repeat("much ", 1_000_000)})
	assert.Contains(t, refused.Message, "the disk is full")
	c.requireDegraded("disk is full")
	c.requireCore()
	require.NoError(t, os.Remove(ballast))
	c.leave()

	c = s.open()
	assert.Equal(t, said, c.conversation(kept.SessionID))
	c.runs("quiet")
	c.leave()
}

// A new project on a full disk reports the reason. It works once there is space, and its state has
// project.json.
func TestAProjectBeginsOnAFullDisk(t *testing.T) {
	s := newSite(parallel(t))
	s.smallDisk("8m")
	ballast := s.fill()
	for range 2 { // the first attempt leaves files behind
		_, said, err := s.commandIn(s.root, "prompt", "quiet")
		require.Error(t, err)
		assert.Regexp(t, "the disk is full; free some space|no space left on device", said)
		assert.NotContains(t, said, "doctor", "doctor knows no more")
	}
	require.NoError(t, os.Remove(ballast))
	s.runIn(s.root, "prompt", "quiet")
	assert.FileExists(t, filepath.Join(s.state(), "project.json"))
}

// A prompt ends with the reason, even without space for the end of its session.
func TestAPromptEndsOnAFullDisk(t *testing.T) {
	s := newSite(parallel(t))
	s.smallDisk("12m")
	cmd := s.shellCommand("prompt", "--yes", "stream:10000000@2000")
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
	case <-time.After(watchdog / 3):
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
				s.fill()
			}
		}
	}()
	defer func() {
		close(stop)
		<-filled
	}()
	select {
	case <-read:
	case <-time.After(watchdog / 3):
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
	s := newSite(parallel(t), "[[triggers]]\nid = \"files\"\nsource = \"watch\"\npaths = [\"src\"]\naction = { type = \"notify\", message = \"{{payload.path}}\" }\n")
	for i := range 40 {
		require.NoError(t, os.MkdirAll(filepath.Join(s.root, "src", fmt.Sprint(i)), 0o755))
	}
	s.watchAtMost(30) // the hub uses some for its own files
	editor := s.start()
	const reported = "directories are not watched: the system allows no more watches (sysctl fs.inotify.max_user_watches)"
	require.Eventually(t, func() bool {
		status := editor.status()
		return status.Health == "degraded" && strings.Contains(strings.Join(status.Issues, "; "), reported)
	}, watchdog/3, pollEvery, "the status does not report the limit")
	out, err := s.shellCommand("triggers").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, strings.Join(strings.Fields(string(out)), " "), reported)
	out2, _ := s.command("doctor", "--json")
	assert.Contains(t, out2, reported)

	// The hub still watches the other directories.
	editor.subscribe()
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "src", "here"), []byte("x"), 0o600))
	editor.await("a trigger", func(e event) bool {
		return e.Type == "trigger_executed" && strings.Contains(string(e.Raw), "src/here")
	})
	editor.leave()
}

// watchAtMost limits the number of directories that the hub can watch.
func (s *site) watchAtMost(n int) {
	s.t.Helper()
	unshare := testkit.NeedTool(s.t, "unshare")
	if out, err := exec.Command(unshare, "--user", "--map-root-user", "sh", "-c", "echo 9 >/proc/sys/user/max_inotify_watches").CombinedOutput(); err != nil {
		testkit.SkipMissing(s.t, "cannot set a watch limit here: "+string(out))
	}
	// The inner shell gets the program's arguments as parameters, so that they stay separate.
	script := filepath.Join(s.home, "limited")
	text := fmt.Sprintf("#!/bin/sh\nexec %s --user --map-root-user sh -c 'echo %d >/proc/sys/user/max_inotify_watches; exec \"$@\"' sh %s \"$@\"\n", unshare, n, program)
	testkit.Program(s.t, script, text)
	s.binary = script
}

// clientsOfAKind is the number of clients of each kind that the test starts and ends.
const clientsOfAKind = 100

// No ended client leaves a process behind, and the daemon stays the same.
func TestClientsLeaveNoProcessBehind(t *testing.T) {
	s := newDaemonSite(parallel(t))
	first := s.start()
	daemon := s.requireDaemon(first)
	hello := map[string]string{
		"editor": framed(`{"jsonrpc":"2.0","id":1,"method":"task.stats"}`),
		"acp":    `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n",
		"mcp":    `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n",
	}
	for kind, message := range hello {
		for i := range clientsOfAKind {
			l := s.launch()
			if kind != "editor" {
				l.first = []string{kind}
			}
			p := l.start(t)
			_, err := p.stdin.Write([]byte(message))
			require.NoError(t, err)
			_, err = p.stdout.Read(make([]byte, 1<<10))
			require.NoError(t, err, "%s %d", kind, i)
			if i%2 == 0 {
				require.NoError(t, p.stdin.Close())
			} else {
				require.NoError(t, p.cmd.Process.Kill())
			}
			<-p.ended
		}
	}
	for range clientsOfAKind {
		s.run("call", "task.stats")
	}
	require.Equal(t, daemon, hubOf(t, first))
	first.leave()
	require.Eventually(t, func() bool { return len(s.running()) == 1 }, watchdog/3, pollEvery, "%v", s.running())
	s.run("daemon", "stop")
	s.requireNobody("after the daemon was stopped")
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
	s := newSite(parallel(t))
	s.clearDaemons()
	temporary := t.TempDir() // the socket of a long state directory is in there
	s.env = []string{"TMPDIR=" + temporary}
	s.daemon()
	_, err := asStranger(s.socketPath())
	require.ErrorIs(t, err, unix.EACCES, "the file modes refuse")

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
	assert.Empty(t, answer, "the daemon answers nothing")
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
	l := s.stranger()
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

// configured returns the effective configuration in a directory, by key.
func (s *site) configured(dir string) map[string]string {
	s.t.Helper()
	out := s.runIn(dir, "config", "--json")
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

// Another user's files in a parent directory, such as /tmp, make no project and no configuration.
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
		written("[limits]\nmax_turns = 1\n[[rules]]\neffect = 'deny'\ntool = '*'\n")(t, filepath.Join(dir, ".duet.toml"))
		require.NoError(t, os.Lchown(filepath.Join(dir, ".duet.toml"), stranger, stranger))
	}
	for _, path := range []string{theirs, filepath.Join(theirs, ".git")} {
		require.NoError(t, os.Lchown(path, stranger, stranger))
	}
	require.NoError(t, os.Chmod(shared, 0o777|fs.ModeSticky))

	for _, dir := range []string{mine, deep} {
		assert.Equal(t, "3", s.configured(dir)["limits.max_turns"])
		_, problem, err := s.commandIn(dir, "trust")
		require.Error(t, err)
		assert.Contains(t, problem, "the project "+dir+" has no .duet.toml, so there is nothing to trust; ")
		assert.Regexp(t, shared+`.*/.duet.toml belongs to user 65534 and is not used: .*safe_directories`, problem)
		said, problem, err := s.commandIn(dir, "prompt", "quiet")
		require.NoError(t, err, problem)
		assert.NotEmpty(t, said)
		assert.Contains(t, problem, "belongs to user 65534 and is not used")
		require.DirExists(t, s.stateOf(dir), "the directory is a project")
	}
	assert.Equal(t, "3", s.configured(theirs)["limits.max_turns"])
	s.runIn(theirs, "prompt", "quiet")
	_, problem, err := s.commandIn(theirs, "trust", "--yes")
	require.Error(t, err)
	assert.Contains(t, problem, ".duet.toml belongs to user 65534 and is not used: take it over with chown, or name its directory in DUET_SAFE_DIRECTORIES")

	// The user can declare the other user's directory safe.
	s.env = []string{"DUET_SAFE_DIRECTORIES=" + theirs}
	assert.Equal(t, "1", s.configured(theirs)["limits.max_turns"])
	s.env = nil
	s.agents("[limits]\nqueue_cap = 7\n")
	config := filepath.Join(s.home, "config", "duet", "config.toml")
	text := readFile(t, config)
	require.NoError(t, os.WriteFile(config, append([]byte("safe_directories = ['"+shared+"/*']\n"), text...), 0o600))
	assert.Equal(t, "1", s.configured(theirs)["limits.max_turns"])
	assert.Equal(t, "7", s.configured(theirs)["limits.queue_cap"])
	s.runIn(deep, "daemon", "stop")
	require.NoError(t, os.RemoveAll(s.stateOf(deep)))
	out := s.runIn(deep, "doctor")
	assert.Regexp(t, `ok +project +`+theirs+`;`, out, "a safe directory can be a project root")
}

// Duet finds no project in a directory for temporary files. The user can name one with --root.
func TestNoProjectIsFoundInAPlaceForTemporaryFiles(t *testing.T) {
	s := newSite(parallel(t))
	dir := filepath.Join(filepath.Dir(s.root), "tmp")
	inside := filepath.Join(dir, "inside")
	require.NoError(t, os.MkdirAll(inside, 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	s.env = []string{"TMPDIR=" + dir}
	s.runIn(inside, "prompt", "quiet")
	require.DirExists(t, s.stateOf(inside))
	for _, args := range [][]string{{"prompt", "quiet"}, {"prompt", "quiet", "--root", dir}} {
		problem := s.runIn(dir, args...)
		assert.Equal(t, len(args) == 2, strings.Contains(problem, dir+" is a directory for many projects"), "%s", problem)
	}
	out := s.runIn(dir, "doctor")
	requireParts(t, out, dir+" is a directory for many projects", "name one with --root")
	out, problem, err := s.commandIn("/", "task", "list")
	require.Error(t, err, out)
	assert.Contains(t, problem, "this project has no sessions yet")
}

func (s *site) stateOf(root string) string {
	there := *s
	there.root = root
	return there.state()
}
