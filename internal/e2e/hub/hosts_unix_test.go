//go:build unix

package hub

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// A far site is a site that is reached as a host: by a command that records the process of each line.
type farSite struct {
	*e2e.Site
	lines string // the file with the processes
}

func newFarSite(t *testing.T) farSite {
	t.Helper()
	s := e2e.NewSite(t)
	lines := filepath.Join(s.Home, "lines")
	s.Agents(fmt.Sprintf(`[hosts.far]
command = ["sh", "-c", 'test -e %[1]s.down && { echo "no way there" >&2; exit 255; }; echo $$ >>%[1]s; test -e %[1]s.silent && exec sleep 1000; exec "$@"', "line"]
program = %[2]q
`, lines, e2e.Program))
	return farSite{s, lines}
}

// open starts an editor with --host and a subscription.
func (f farSite) open() *e2e.Client {
	over := *f.Site
	over.Args = []string{"--host", "far", "--test-methods"}
	return over.Open()
}

// cut kills the process of the last line.
func (f farSite) cut() {
	f.T.Helper()
	all := strings.Fields(e2e.ReadFile(f.T, f.lines))
	require.NotEmpty(f.T, all)
	pid, err := strconv.Atoi(all[len(all)-1])
	require.NoError(f.T, err)
	require.NoError(f.T, syscall.Kill(pid, syscall.SIGKILL))
}

// When the line to a host breaks the agent there goes on: the editor's pending request is lost, its
// subscription has no gap, and a question that another client answers there is answered here.
func TestLineBreaks(t *testing.T) {
	f := newFarSite(e2e.Parallel(t))
	f.Args = []string{"--test-methods"}
	there := f.Open() // a client on the host itself
	here := f.open()
	l := here.Launch("write it", "")
	q := here.Open(e2e.AnyQuestion)

	pending := make(chan error, 1)
	go func() { pending <- here.Try("test.sleep", map[string]any{"ms": 60_000}, nil) }()
	here.Call("ping", map[string]any{}, nil) // so the one before is on the line
	f.cut()
	err := <-pending
	require.Equal(t, "hub_lost", e2e.KindOf(t, err))
	require.ErrorContains(t, err, "the line to far broke before an answer came")

	there.Call("approval.decide", map[string]any{"approval": q.ID, "decision": "approve"}, nil)
	here.Completes(l)

	// While the host cannot be reached requests say so.
	require.NoError(t, os.WriteFile(f.lines+".down", nil, 0o600))
	f.cut()
	require.Eventually(t, func() bool {
		err := here.Try("session.list", map[string]any{}, nil)
		return err != nil && strings.Contains(err.Error(), "far: no way there")
	}, e2e.Watchdog, e2e.PollEvery)
	m := there.Runs("quiet")
	there.Completes(m)
	require.NoError(t, os.Remove(f.lines+".down"))
	here.Completes(m)
	assert.Equal(t, seen(there), seen(here), "no event is missing, none came twice")
	e2e.Leave(here, there)
}

// seen returns the events of a client, without pieces of text, which may come in one piece.
func seen(c *e2e.Client) (list []string) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, e := range c.Events {
		if e.Seq > 0 && e.Type != "message_delta" {
			list = append(list, fmt.Sprintf("%d %s", e.Seq, e.Type))
		}
	}
	return list
}

// What a command prints that runs on a host has no effect on the terminal here.
func TestHostCannotDriveTheTerminal(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Agents(fmt.Sprintf(`[hosts.evil]
command = ["sh", "-c", 'case "$*" in *config*) printf "red \033[31mred\n"; printf "red \033[31mred\n" >&2;; *) exec "$@";; esac', "line"]
program = %q
`, e2e.Program))
	w := s.Window(80, 24, "--host", "evil", "config")
	assert.Zero(t, w.Leaves())
	printed := w.Printed.String()
	assert.Equal(t, 2, strings.Count(printed, "U+001B"), "%q", printed)
	assert.NotContains(t, printed, "\x1b[31m")
}

// While a host is silent, a terminal has the sessions that it had last. C-c leaves no process of the line behind.
func TestListOfAllProjectsDoesNotWaitForAHost(t *testing.T) {
	f := newFarSite(e2e.Parallel(t))
	f.Daemon()
	f.Run("prompt", "--yes", "quiet figs")
	f.Run("session", "list", "--all-projects")
	e2e.WriteFile(t, f.lines+".silent", "")
	w := f.Window(200, 24, "session", "list", "--all-projects")
	w.Shows("asking far", "far:", "quiet figs")
	_ = w.Cmd.Process.Signal(os.Interrupt) // a slow machine's list may have ended
	w.Leaves()
}

// newSendingSite returns a site whose project is a git repository, and a host with another directory of projects. A
// line is cut in the middle of what it writes if the file lines.cut has its number.
func newSendingSite(t *testing.T) (f farSite, git func(args ...string) string) {
	t.Helper()
	s := e2e.NewSite(t)
	lines := filepath.Join(s.Home, "lines")
	s.Agents(fmt.Sprintf(`[hosts.far]
command = ["sh", "-c", 'echo $$ >>%[1]s; cd %[2]q; if test "$(wc -l <%[1]s)" -eq "$(cat %[1]s.cut 2>/dev/null || echo 0)"; then "$@" | { head -c 90; kill -9 $$; }; else exec "$@"; fi', "line"]
directory = "there"
program = %[3]q
`, lines, s.Home, e2e.Program))
	git = func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@localhost", "-C", s.Root}, args...)...)
		cmd.Env = append(e2e.CleanEnvironment(), "HOME="+s.Home, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %q: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	e2e.WriteFile(t, filepath.Join(s.Root, "a"), "1\n")
	git("init", "-q", "-b", "main")
	git("add", "a")
	git("commit", "-q", "-m", "first")
	e2e.WriteFile(t, filepath.Join(s.Home, ".gitconfig"), "[user]\nname = u\nemail = u@localhost\n")
	return farSite{s, lines}, git
}

// An editor's process with --host sends the files here, and lands and discards here what came of them.
func TestEditorSendsItsFiles(t *testing.T) {
	f, git := newSendingSite(e2e.Parallel(t))
	e2e.WriteFile(t, filepath.Join(f.Root, "b"), "not committed\n")
	git("init", "-q", "nested")
	over := *f.Site
	over.Args = nil
	l := over.Launch()
	l.Dir, l.Args = f.Root, []string{"--host", "far"}
	f.Clients.Add(1)
	c := e2e.NewClient(l.Start(t))
	start := map[string]any{"prompt": "write it", "send": true, "mode": "acceptEdits"}
	var started struct {
		Session int64  `json:"session"`
		Turn    string `json:"turn_uuid"`
		NotSent struct {
			Count int      `json:"count"`
			First []string `json:"first"`
		} `json:"not_sent"`
	}
	c.Call("session.start", start, &started)
	assert.Equal(t, 1, started.NotSent.Count)
	assert.Equal(t, []string{"nested/"}, started.NotSent.First)
	require.Eventually(t, func() bool {
		var r struct {
			Turn struct {
				State string `json:"state"`
			} `json:"turn"`
		}
		c.Call("turn.get", map[string]any{"turn": started.Turn}, &r)
		return r.Turn.State == "completed"
	}, e2e.Watchdog, e2e.PollEvery)
	// When a turn has ended its work comes here.
	c.Call("event.subscribe", map[string]any{}, nil)
	var next struct{}
	c.Call("session.prompt", map[string]any{"session": strconv.FormatInt(started.Session, 10), "prompt": "write more"}, &next)
	require.Eventually(t, func() bool {
		return git("for-each-ref", "--format=%(subject)", "refs/duet/hosts") == "Changes of duet/write-it"
	}, e2e.Watchdog, e2e.PollEvery)
	assert.Contains(t, f.RunIn(f.Root, "session", "list"), "1@far")
	session := map[string]any{"session": strconv.FormatInt(started.Session, 10)}
	var landed struct {
		Branch string   `json:"branch"`
		Files  []string `json:"files"`
	}
	c.Call("session.land", session, &landed)
	assert.Equal(t, "main", landed.Branch)
	assert.Equal(t, []string{"demo.txt"}, landed.Files)
	assert.FileExists(t, filepath.Join(f.Root, "demo.txt"))
	assert.Equal(t, "?? b\n?? nested/", git("status", "--porcelain"))
	c.Call("session.discard", session, nil)
	assert.Equal(t, "no_worktree", e2e.KindOf(t, c.Try("session.land", session, nil)))
	assert.Equal(t, "refs/heads/main", git("for-each-ref", "--format=%(refname)"))

	// A daemon on this machine refuses it.
	here := f.Start()
	assert.ErrorContains(t, here.Try("session.start", start, nil), "send")
	e2e.Leave(c, here)
}

// If each session has a host of its own, an editor's process begins one session there, and after that is discarded the next
// one on another host.
func TestEditorsSessionHasItsOwnHost(t *testing.T) {
	f, git := newSendingSite(e2e.Parallel(t))
	f.Agents(fmt.Sprintf(`[hosts.box]
command = ["sh", "-c", 'cd %[1]s/boxes/"$0" || exit; unset XDG_STATE_HOME XDG_CONFIG_HOME; HOME=$PWD; export HOME; exec "$@"', "{host}"]
start = ["mkdir", "-p", "%[1]s/boxes/{host}"]
stop = ["sh", "-c", 'cd %[1]s/boxes/"$0" && { unset XDG_STATE_HOME; HOME=$PWD %[2]s --root %[3]s daemon stop; rm -rf "$PWD"; }', "{host}"]
directory = "there"
program = %[2]q
per = "session"
`, f.Home, e2e.Program, "there/"+filepath.Base(f.Root)))
	boxes := func() []string {
		found, err := filepath.Glob(filepath.Join(f.Home, "boxes", "*"))
		require.NoError(t, err)
		return found
	}
	over := *f.Site
	over.Args = nil
	l := over.Launch()
	l.Dir, l.Args = f.Root, []string{"--host", "box"}
	f.Clients.Add(1)
	c := e2e.NewClient(l.Start(t))
	assert.ErrorContains(t, c.Try("session.list", map[string]any{}, nil), "each session has a box of its own")
	assert.Empty(t, boxes())

	start := map[string]any{"prompt": "write it", "send": true, "mode": "acceptEdits", "start_id": "3e2c2f3a-0a55-4d62-bd8c-6a1d55b6d0a1"}
	var started struct {
		Turn    string `json:"turn_uuid"`
		Session int64  `json:"session"`
	}
	c.Call("session.start", start, &started)
	c.Call("session.start", start, &started) // sent again, it is the same session
	assert.Len(t, boxes(), 1)
	another := map[string]any{"prompt": "write it", "send": true}
	assert.ErrorContains(t, c.Try("session.start", another, nil), "this process works on box-")
	completes := func() {
		t.Helper()
		require.Eventually(t, func() bool {
			var r struct {
				Turn struct {
					State string `json:"state"`
				} `json:"turn"`
			}
			c.Call("turn.get", map[string]any{"turn": started.Turn}, &r)
			return r.Turn.State == "completed"
		}, e2e.Watchdog, e2e.PollEvery)
	}
	completes()
	session := map[string]any{"session": strconv.FormatInt(started.Session, 10)}
	c.Call("session.land", session, nil)
	assert.FileExists(t, filepath.Join(f.Root, "demo.txt"))
	var discarded struct {
		Host string `json:"host"`
	}
	c.Call("session.discard", session, &discarded)
	assert.Equal(t, "removed", discarded.Host)
	assert.Empty(t, boxes())

	another["mode"] = "acceptEdits"
	c.Call("session.start", another, &started)
	completes()
	assert.Len(t, boxes(), 1)
	c.Call("session.discard", map[string]any{"session": strconv.FormatInt(started.Session, 10), "force": true}, &discarded)
	assert.Empty(t, boxes())
	assert.Contains(t, git("for-each-ref", "--format=%(refname)"), "refs/duet/hosts/", "what did not land is kept")
	e2e.Leave(c)
}

// The line is cut in the middle of each of its parts: then nothing is landed or all is, and the next attempt
// lands it.
func TestLandingOverABrokenLine(t *testing.T) {
	f, git := newSendingSite(e2e.Parallel(t))
	run := func(args ...string) (string, error) {
		_, errs, err := f.CommandIn(f.Root, args...)
		return errs, err
	}
	count := func() int { return strings.Count(e2e.ReadFile(t, f.lines), "\n") }
	cut := func(n int) { e2e.WriteFile(t, f.lines+".cut", strconv.Itoa(n)) }
	for n := 1; ; n++ {
		cut(0)
		errs, err := run("prompt", "--on", "far", "--yes", "write it")
		require.NoError(t, err, errs)
		before, from := git("rev-parse", "main"), count()
		session := fmt.Sprintf("%d@far", n)
		cut(from + n)
		_, err = run("land", "--squash", session)
		now := git("rev-parse", "main")
		assert.Empty(t, git("status", "--porcelain"))
		if now != before {
			assert.Equal(t, before, git("rev-parse", "main^"))
		}
		whole := err == nil && count() < from+n
		cut(0)
		errs, err = run("land", "--squash", session)
		require.NoError(t, err, errs)
		assert.Equal(t, before, git("rev-parse", "main^"), "%d: it is landed once", n)
		if whole {
			require.Equal(t, 3, n, "a landing has two lines: to the daemon and to git")
			return
		}
	}
}
