//go:build clients

package main_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// smallDisk puts the project and its state on one disk of their own.
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
		s.endDaemons() // of which nothing can be found afterwards
		_ = syscall.Unmount(state, syscall.MNT_DETACH)
	})
}

// fill writes a file until the disk takes no more.
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

// fillWithout takes the room that there is, but nothing of what the hub gives
// up when it finds none. It ends when there is nothing left or the hub has
// given that up.
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
			return // looked at afterwards: free is without it
		}
		switch err := syscall.Fallocate(int(f.Fd()), 0, size, free); {
		case err == nil:
			size += free
		case !errors.Is(err, syscall.EINTR): // ENOSPC: another process was faster
			require.ErrorIs(s.t, err, syscall.ENOSPC)
		}
	}
}

// A full disk ends the runs that cannot be kept, and says so; everything else
// works on, and all does as soon as there is room.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		query string
		fill  func(*site, *client)
	}{
		{"that a run fills", "stream:10000000", func(*site, *client) {}},
		{"that something else fills", "stream:10000000@2000", func(s *site, _ *client) { s.fillWithout() }},
		// What the hub gave up has gone too: the end is kept when there is room.
		{"that something else fills for good", "stream:10000000@2000", func(s *site, c *client) {
			s.fillWithout()
			require.Eventually(s.t, func() bool {
				_, issues := c.issues()
				return strings.Contains(strings.Join(issues, "\n"), "disk is full")
			}, watchdog/3, pollEvery, "health does not say so")
			ballast := s.fill()
			c.requireCore()
			require.NoError(s.t, os.Remove(ballast))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(parallel(t))
			if !strings.Contains(test.query, "@") { // it writes all that there is room for, which takes the race detector minutes
				s.binary = fastProgram(t)
			}
			s.smallDisk("24m")
			c := s.open()
			kept := c.launch("quiet", "")
			c.awaitEnd(kept.SessionID)
			said := c.conversation(kept.SessionID)
			asking, question := c.asks("permit:1", "")

			require.Eventually(t, func() bool {
				info, err := os.Stat(filepath.Join(s.state(), "reserve"))
				return err == nil && info.Size() == 1<<20
			}, watchdog/3, pollEvery, "nothing is set aside")
			// The rest of the disk, so that it does not take long.
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
			assert.Contains(t, partly, "chunk 1 chunk 2 ", "what it said so far is there")
			for key, text := range textsOf(c.seen()) {
				if strings.HasPrefix(key, streaming.SessionID) {
					assert.True(t, strings.HasPrefix(partly, text) || strings.HasPrefix(text, partly) && len(partly) > 100_000, "and is what was reported")
				}
			}
			assert.Equal(t, said, c.conversation(kept.SessionID))
			c.requireDegraded("disk is full")
			found, err := s.command("doctor")
			assert.ErrorContains(t, err, "something is wrong: hub")
			assert.Regexp(t, `(?m)^wrong +hub +process \d+, .*: the disk is full; free some space`, found)

			// While there is no room: a request says so, and none hangs.
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
			assert.Less(t, strings.Count(c.log.String(), "\n"), 30, "and the log is not flooded")
			assert.Less(t, strings.Count(s.daemonLog(), "\n"), 30, "nor is the daemon's")

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

// A disk that is full from the start is no reason not to start.
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
	assert.Contains(t, found, kept.TaskID)
	c = s.start()
	c.requireCore()
	assert.Equal(t, said, c.conversation(kept.SessionID), "what there is can be read")
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

// A project that is begun on a full disk says so, and is none the worse once there is
// room: it can be found again.
func TestAProjectBeginsOnAFullDisk(t *testing.T) {
	s := newSite(parallel(t))
	s.smallDisk("8m")
	ballast := s.fill()
	for range 2 { // the first leaves something behind
		_, said, err := s.commandIn(s.root, "prompt", "quiet")
		require.Error(t, err)
		assert.Regexp(t, "the disk is full; free some space|no space left on device", said)
		assert.NotContains(t, said, "doctor", "which knows no more")
	}
	require.NoError(t, os.Remove(ballast))
	_, said, err := s.commandIn(s.root, "prompt", "quiet")
	require.NoError(t, err, said)
	assert.FileExists(t, filepath.Join(s.state(), "project.json"))
}

// A prompt ends and says why where there is no room even for the end of its session.
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
			if strings.Contains(lines.Text(), "— task-0001 · ") {
				begins()
			}
		}
	}()
	select {
	case <-begun:
	case <-time.After(watchdog / 3):
		cmd.Process.Kill()
		<-read
		require.Fail(t, "it does not begin", said.String())
	}
	stop, filled := make(chan struct{}), make(chan struct{})
	go func() { // all that the hub gives up, too, as soon as it does
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
		t.Error("it does not end", said)
	}
	assert.Error(t, cmd.Wait())
	assert.Contains(t, said.String(), "failed: the disk is full")
}

// A limit of the system that is reached is reported wherever a user looks.
func TestAWatchLimitIsTold(t *testing.T) {
	s := newSite(parallel(t), "[[triggers]]\nid = \"files\"\nsource = \"watch\"\npaths = [\"src\"]\naction = { type = \"notify\", message = \"{{payload.path}}\" }\n")
	for i := range 40 {
		require.NoError(t, os.MkdirAll(filepath.Join(s.root, "src", fmt.Sprint(i)), 0o755))
	}
	s.watchAtMost(30) // the hub has some for its own files
	editor := s.start()
	const reported = "directories are not watched: the system allows no more watches (sysctl fs.inotify.max_user_watches)"
	require.Eventually(t, func() bool {
		status := editor.status()
		return status.Health == "degraded" && strings.Contains(strings.Join(status.Issues, "; "), reported)
	}, watchdog/3, pollEvery, "no limit is reported")
	out, err := s.shellCommand("triggers").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, strings.Join(strings.Fields(string(out)), " "), reported)
	out2, _ := s.command("doctor", "--json")
	assert.Contains(t, out2, reported)

	// What is watched stays so.
	editor.subscribe()
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "src", "here"), []byte("x"), 0o600))
	editor.await("a trigger", func(e event) bool {
		return e.Type == "trigger_executed" && strings.Contains(string(e.Raw), "src/here")
	})
	editor.leave()
}

// watchAtMost runs the hub on a system that lets it watch so many directories.
func (s *site) watchAtMost(n int) {
	s.t.Helper()
	unshare := testkit.NeedTool(s.t, "unshare")
	if out, err := exec.Command(unshare, "--user", "--map-root-user", "sh", "-c", "echo 9 >/proc/sys/user/max_inotify_watches").CombinedOutput(); err != nil {
		testkit.SkipMissing(s.t, "no limit of one's own can be set here: "+string(out))
	}
	// A shell would not keep the arguments apart that the program is given.
	script := filepath.Join(s.home, "limited")
	text := fmt.Sprintf("#!/bin/sh\nexec %s --user --map-root-user sh -c 'echo %d >/proc/sys/user/max_inotify_watches; exec \"$@\"' sh %s \"$@\"\n", unshare, n, program)
	testkit.Program(s.t, script, text)
	s.binary = script
}

// clientsOfAKind is how often each kind of client is started and ended.
const clientsOfAKind = 100

// Whatever ends a client, no process of it is left, and the daemon is the one of before.
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
