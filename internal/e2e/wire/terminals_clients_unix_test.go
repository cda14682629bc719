//go:build unix && clients

package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// With tmux the terminal is a window of a tmux session. Other terminals can join the session, and
// it outlives them.
func TestAttachToTmux(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	dir, tmux := newTmux(t)
	s.Daemon()
	c := s.Lines()
	spawn := func() (id string) {
		return c.Spawn(object{
			"use_tmux": true, "tmux_session_name": "work", "tmux_window_name": "w1", "cwd": s.Root,
			"env": object{"TMUX_TMPDIR": dir, "SHELL": "/bin/sh", "PS1": "$ "},
		}).ID
	}
	w := s.Window(80, 24, "attach", spawn())
	w.Shows("w1")
	w.Types("echo o-n-e | tr -d -\r")
	w.Shows("one")
	require.Equal(t, "work", listTerminals(s)[0].Tmux)
	out := s.Run("attach")
	assert.Contains(t, out, "tmux work, ")

	// A second terminal joins the same session, which remains when the first terminal closes.
	other := s.Window(80, 24, "attach", spawn())
	other.Shows("one")
	c.Call("terminal.close", object{"terminal_id": listTerminals(s)[0].ID}, nil)
	w.Leaves()
	other.Types("echo t-w-o | tr -d -\r")
	other.Shows("two")
	s.Run("daemon", "stop", "--force")
	assert.Equal(t, 1, other.Leaves(), "its hub has gone")
	out, err := tmux("list-sessions", "-F", "#{session_name}")
	require.NoError(t, err, out)
	assert.Equal(t, "work\n", out)
}

// attach runs a command in a tmux session and ends with it, also without a terminal.
func TestAttachRunsACommandInTmux(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	dir, _ := newTmux(t)
	s.Env = append(s.Env, "TMUX_TMPDIR="+dir)
	s.Daemon()
	s.Run("--root", s.Root, "attach", "--new", "--tmux", "work", "--", "sh", "-c", "echo ran >ran.txt")
	text := e2e.ReadFile(t, filepath.Join(s.Root, "ran.txt"))
	assert.Equal(t, "ran\n", text)
}

// newTmux returns a directory for the sockets of a private tmux, and a function that runs its
// commands. The test's end kills its server.
func newTmux(t *testing.T) (dir string, tmux func(args ...string) (string, error)) {
	t.Helper()
	program := testkit.NeedTool(t, "tmux")
	dir, err := os.MkdirTemp("/tmp", "tmux") // a socket's path has to be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	tmux = func(args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(e2e.CleanEnvironment(), "TMUX_TMPDIR="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _, _ = tmux("kill-server") })
	return dir, tmux
}

// pythonClient is a client in Python. It starts a terminal, uses its descriptor, detaches, and then
// uses events.
const pythonClient = `
import json, os, select, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(sys.argv[1])
pending, fds, events = b"", [], []

def message():
    global pending
    while b"\n" not in pending:
        data, new, flags, _ = socket.recv_fds(s, 65536, 4)
        assert data, "the hub has gone"
        assert not flags & socket.MSG_CTRUNC
        pending, fds[len(fds):] = pending + data, new
    line, pending = pending.split(b"\n", 1)
    return json.loads(line)

def call(method, **params):
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
    while True:
        m = message()
        if m.get("id") == method:
            return m["result"]
        events.append(m["params"])

def read_until(fd, text):
    seen, until = b"", time.time() + 30
    while text not in seen:
        assert select.select([fd], [], [], until - time.time())[0], seen
        seen += os.read(fd, 4096)

def event(kind):
    e = events.pop(0) if events else message()["params"]
    assert e["kind"] == kind, e
    return e["data"]

t = call("spawn_terminal", shell="sh", args=["-c", sys.argv[2]], cols=33, rows=7, descriptor=True)
(fd,) = fds
fds.clear()
read_until(fd, b"7 33\r\n")
os.write(fd, b"snake\r")
read_until(fd, b"got snake\r\n")
os.close(fd)
assert call("terminal.detach", terminal_id=t["terminal_id"]) == {"detached": True}
assert not call("terminal.attach", terminal_id=t["terminal_id"])["taken"]
call("terminal.write", terminal_id=t["terminal_id"], data="event\r")
seen = ""
while "got event\r\n" not in seen:
    seen += event("terminal.output")["data"]
call("terminal.write", terminal_id=t["terminal_id"], data="bye\r")
assert event("terminal.exited")["exit_code"] == 3
assert not fds
print("well")
`

func TestAPythonClientTakesADescriptor(t *testing.T) {
	t.Parallel()
	python := testkit.NeedTool(t, "python3")
	s := e2e.NewSite(t)
	s.Daemon()
	ctx, cancel := context.WithTimeout(context.Background(), e2e.Watchdog/3)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-c", pythonClient, s.SocketPath(), echoes).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "well\n", string(out))
}

// page is a page whose script renders its content, as most frameworks do.
const page = `<!doctype html><html><head><title>Walnuts</title><link rel="stylesheet" href="/style.css"></head>
<body><div id="root"></div><img src="/none.png"><script type="module" src="/app.js"></script></body></html>`

const pageScript = `
const root = document.getElementById("root");
root.textContent = "rendered " + location.pathname;
console.log(root.textContent, getComputedStyle(root).color, root.getBoundingClientRect().height > 0, { nested: [1, null] });
if (location.pathname === "/") {
  console.warn("careful");
  setTimeout(() => { brokenFunction(); });
  Promise.reject(new Error("no luck"));
  history.pushState({}, "", "/users/5?tab=a#b");
}
`

// A previewing is a running duet-rpc preview with its output.
type previewing struct {
	*e2e.Process
	t       *testing.T
	address string
	lines   chan pageSaid
	said    []pageSaid
}

// A pageSaid is one report of a page, as --json prints it.
type pageSaid struct {
	Kind, Level, Message, URL, Stack string
	Line, Column                     int
}

// startPreview starts duet-rpc preview and collects the reports of its pages.
func startPreview(s *e2e.Site, t *testing.T, args ...string) *previewing {
	t.Helper()
	l := s.Launch(append([]string{"preview", "--capture", "--json"}, args...)...)
	p := &previewing{Process: l.Start(t), t: t, lines: make(chan pageSaid, 1000)}
	out := bufio.NewScanner(p.Stdout)
	require.True(t, out.Scan(), "the preview printed no address: %s", p.Log)
	var reported struct{ URL string }
	require.NoError(t, json.Unmarshal(out.Bytes(), &reported))
	p.address = reported.URL
	go func() {
		defer close(p.lines)
		for out.Scan() {
			var m pageSaid
			if json.Unmarshal(out.Bytes(), &m) == nil {
				p.lines <- m
			}
		}
	}()
	return p
}

// says waits for a report of a page.
func (p *previewing) says(what string, is func(pageSaid) bool) {
	p.t.Helper()
	for _, m := range p.said {
		if is(m) {
			return
		}
	}
	for late := time.After(e2e.Watchdog * 2 / 3); ; {
		select {
		case m, more := <-p.lines:
			require.True(p.t, more, "the preview has ended before a page said %s: %v; %s", what, p.said, p.Log)
			p.said = append(p.said, m)
			if is(m) {
				return
			}
		case <-late:
			require.FailNow(p.t, "no page says "+what, "but %v; %s", p.said, p.Log)
		}
	}
}

// logs waits for a console message of a page.
func (p *previewing) logs(level, message string) {
	p.t.Helper()
	p.says(message, func(m pageSaid) bool { return m.Kind == "console" && m.Level == level && m.Message == message })
}

// chromium returns the path of Chromium, or skips the test without one.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("DUET_TEST_CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	testkit.SkipMissing(t, "there is no Chromium: run .ci/install, or name one with DUET_TEST_CHROMIUM")
	return ""
}

// browse opens an address in a headless browser. The test's end kills it.
func browse(t *testing.T, address string) {
	t.Helper()
	chromium := chromium(t)
	home, err := os.MkdirTemp("", "chromium") // its helpers may write there while they end
	require.NoError(t, err)
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-breakpad", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+home, "--remote-debugging-port=0", address)
	cmd.Env = append(e2e.CleanEnvironment(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = os.RemoveAll(home)
	})
}

// writeProject writes files of the project.
func writeProject(s *e2e.Site, files map[string]string) {
	s.T.Helper()
	for name, text := range files {
		path := filepath.Join(s.Root, name)
		e2e.WriteFile(s.T, path, text)
	}
}

// A browser shows a page through the hub. The hub stores the page's reports, and can navigate and
// refresh the page.
func TestAPageInABrowser(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := e2e.NewSite(t)
	writeProject(s, map[string]string{"dist/index.html": page, "dist/app.js": pageScript, "dist/style.css": "#root { color: rgb(1, 2, 3) }"})
	person := s.Start()
	p := startPreview(s, t)
	browse(t, p.address)
	p.logs("log", `rendered / rgb(1, 2, 3) true {"nested":[1,null]}`)
	p.logs("warn", "careful")
	p.says("the thrown error", func(m pageSaid) bool {
		return m.Kind == "error" && m.Message == "Uncaught ReferenceError: brokenFunction is not defined" && m.URL == "/app.js" && m.Line == 7 && m.Stack != ""
	})
	p.says("the rejected promise", func(m pageSaid) bool { return m.Kind == "error" && m.Message == "Unhandled rejection: Error: no luck" })
	p.says("its address", func(m pageSaid) bool {
		return m.Kind == "navigation" && m.URL == "/users/5?tab=a#b" && m.Message == "Walnuts"
	})
	p.says("the missing image", func(m pageSaid) bool {
		return m.Kind == "error" && m.URL != "" && m.Line == 0 && filepath.Base(m.Message) == "none.png"
	})

	s.Run("preview", "navigate", "/about")
	p.logs("log", `rendered /about rgb(1, 2, 3) true {"nested":[1,null]}`)
	writeProject(s, map[string]string{"dist/app.js": `console.info("built again")`})
	s.Run("preview", "refresh")
	p.logs("info", "built again")

	// A missing page reloads when a build has made it. The place of an error is that of the page's own text.
	later := func(title string) {
		p.says(title, func(m pageSaid) bool { return m.Kind == "navigation" && m.URL == "/later.html" && m.Message == title })
	}
	writeProject(s, map[string]string{"dist/later.html": "<title>Before</title>"})
	s.Run("preview", "navigate", "/later.html")
	later("Before")
	require.NoError(t, os.Remove(filepath.Join(s.Root, "dist", "later.html")))
	s.Run("preview", "refresh")
	later("")
	writeProject(s, map[string]string{"dist/later.html": "<!doctype html><html><head><script>missing()</script>"})
	s.Run("preview", "refresh")
	p.says("the error", func(m pageSaid) bool {
		return m.Kind == "error" && m.URL == "/later.html" && m.Line == 1 && m.Column == 36 && strings.Contains(m.Stack, "/later.html:1:36")
	})
	s.Run("preview", "navigate", "/about")

	out := s.Run("preview", "console", "--problems")
	e2e.RequireParts(t, out, "warn: careful (/", "uncaught: ReferenceError: brokenFunction is not defined (/app.js:7:")
	assert.NotContains(t, out, "built again")

	// The preview continues with a new hub.
	s.CrashHub()
	writeProject(s, map[string]string{"dist/app.js": `console.info("of another hub")`})
	require.Eventually(t, func() bool {
		var reported struct{ Shown int }
		person.Call("refresh", object{}, &reported)
		return reported.Shown > 0
	}, e2e.Watchdog*2/3, e2e.PollEvery, "the preview does not show the pages of the new hub")
	p.logs("info", "of another hub")
	person.Leave()
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	<-p.Ended
	assert.Equal(t, 130, p.Cmd.ProcessState.ExitCode())
}
