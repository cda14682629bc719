//go:build unix && clients

package main_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// page is a page whose script makes what is to be seen, as those of most frameworks do.
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

// A previewing is duet-rpc preview, with what it prints.
type previewing struct {
	*process
	t       *testing.T
	address string
	lines   chan pageSaid
	said    []pageSaid
}

// A pageSaid is what a page has said, as --json prints it.
type pageSaid struct {
	Kind, Level, Message, URL, Stack string
	Line                             int
}

// preview shows the pages of a site, and captures what they say.
func (s *site) preview(t *testing.T, args ...string) *previewing {
	t.Helper()
	l := s.launch(append([]string{"preview", "--capture", "--json"}, args...)...)
	p := &previewing{process: l.start(t), t: t, lines: make(chan pageSaid, 1000)}
	out := bufio.NewScanner(p.stdout)
	require.True(t, out.Scan(), "it tells no address: %s", p.log)
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

// says waits until a page says something.
func (p *previewing) says(what string, is func(pageSaid) bool) {
	p.t.Helper()
	for _, m := range p.said {
		if is(m) {
			return
		}
	}
	for late := time.After(watchdog * 2 / 3); ; {
		select {
		case m, more := <-p.lines:
			require.True(p.t, more, "the preview has ended before a page said %s: %v; %s", what, p.said, p.log)
			p.said = append(p.said, m)
			if is(m) {
				return
			}
		case <-late:
			require.FailNow(p.t, "no page says "+what, "but %v; %s", p.said, p.log)
		}
	}
}

// logs waits until a page has written something to its console.
func (p *previewing) logs(level, message string) {
	p.t.Helper()
	p.says(message, func(m pageSaid) bool { return m.Kind == "console" && m.Level == level && m.Message == message })
}

// chromium is the program of Chromium, as .ci/install finds it.
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

// browse opens an address in a browser without a window, which is ended with the test.
func browse(t *testing.T, address string) {
	t.Helper()
	chromium := chromium(t)
	home, err := os.MkdirTemp("", "chromium") // its helpers may write there while they end
	require.NoError(t, err)
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-breakpad", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+home, "--remote-debugging-port=0", address)
	cmd.Env = append(cleanEnvironment(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = os.RemoveAll(home)
	})
}

// project writes files of the project.
func (s *site) project(files map[string]string) {
	s.t.Helper()
	for name, text := range files {
		path := filepath.Join(s.root, name)
		writeFile(s.t, path, text)
	}
}

// A browser shows a page through the hub; what the page says arrives, is kept, and the page
// goes where it is sent.
func TestAPageInABrowser(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := newSite(t)
	s.project(map[string]string{"dist/index.html": page, "dist/app.js": pageScript, "dist/style.css": "#root { color: rgb(1, 2, 3) }"})
	person := s.start()
	p := s.preview(t)
	browse(t, p.address)
	p.logs("log", `rendered / rgb(1, 2, 3) true {"nested":[1,null]}`)
	p.logs("warn", "careful")
	p.says("what is thrown", func(m pageSaid) bool {
		return m.Kind == "error" && m.Message == "Uncaught ReferenceError: brokenFunction is not defined" && m.URL == "/app.js" && m.Line == 7 && m.Stack != ""
	})
	p.says("what is rejected", func(m pageSaid) bool { return m.Kind == "error" && m.Message == "Unhandled rejection: Error: no luck" })
	p.says("where it is", func(m pageSaid) bool {
		return m.Kind == "navigation" && m.URL == "/users/5?tab=a#b" && m.Message == "Walnuts"
	})
	p.says("what cannot be loaded", func(m pageSaid) bool {
		return m.Kind == "error" && m.URL != "" && m.Line == 0 && filepath.Base(m.Message) == "none.png"
	})

	s.run("preview", "navigate", "/about")
	p.logs("log", `rendered /about rgb(1, 2, 3) true {"nested":[1,null]}`)
	s.project(map[string]string{"dist/app.js": `console.info("built again")`})
	s.run("preview", "refresh")
	p.logs("info", "built again")

	out := s.run("preview", "console", "--problems")
	assert.Contains(t, out, "warn: careful (/")
	assert.Contains(t, out, "uncaught: ReferenceError: brokenFunction is not defined (/app.js:7:")
	assert.NotContains(t, out, "built again")

	// The hub goes, and another one comes.
	s.crashHub()
	s.project(map[string]string{"dist/app.js": `console.info("of another hub")`})
	require.Eventually(t, func() bool {
		var reported struct{ Shown int }
		person.call("refresh", object{}, &reported)
		return reported.Shown > 0
	}, watchdog*2/3, pollEvery, "it does not show the pages of the next hub")
	p.logs("info", "of another hub")
	person.leave()
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	<-p.ended
	assert.Equal(t, 130, p.cmd.ProcessState.ExitCode())
}
