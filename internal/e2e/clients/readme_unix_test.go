//go:build unix && clients

package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// guides lists the README and the user pages that it links.
var guides = []string{e2e.Root + "/README.md", e2e.Root + "/docs/shell.md", e2e.Root + "/docs/configuration.md", e2e.Root + "/docs/clients.md"}

// blocks returns the fenced blocks of a language in the Markdown files, in order.
func blocks(t *testing.T, language string, files ...string) []string {
	t.Helper()
	var found []string
	for _, file := range files {
		text := e2e.ReadFile(t, file)
		for _, block := range strings.Split(text, "```"+language+"\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			found = append(found, block)
		}
	}
	return found
}

// TestReadmeInAShell runs the shell blocks of the guides in a project with two agents: the demo
// agent and one named claude. The Node and Emacs tests run the blocks of those languages.
func TestReadmeInAShell(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), "[agents.claude]\ndriver = \"acp\"\ncommand = ["+`"`+e2e.Program+`", "demo-agent"]`+"\nenv = { DUET_DEMO_DELAY = \"0\" }\n")
	require.NoError(t, os.Mkdir(filepath.Join(s.Root, "bin"), 0o755))
	require.NoError(t, os.Symlink(e2e.Program, filepath.Join(s.Root, "bin", "duet-rpc")))
	run := func(script string) string {
		ctx, cancel := context.WithTimeout(t.Context(), e2e.Watchdog)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
		cmd.Dir = s.Root
		cmd.Env = append(e2e.CleanEnvironment(), s.Launch().Env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal to ask on
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", script, out)
		return string(out)
	}
	run("git init -q")
	tried := 0
	for _, block := range blocks(t, "sh", guides...) {
		switch {
		case strings.Contains(block, "make install"): // TestReadmeInAFreshClone
			continue
		case strings.Contains(block, "duet-rpc prompt"):
			out := run(`export PATH="$PWD/bin:$PATH"` + "\n" + block)
			assert.Equal(t, 4, strings.Count(out, "— completed; go on with: "), out)
			e2e.RequireParts(t, out, "agent claude", "You asked: Why does the build fail?", "You asked: Review this")
			e2e.RequireParts(t, out, "allowed by --yes", "You asked: And now fix it")
		default:
			assert.NotContains(t, block, "duet-rpc ", "no test runs this block")
			continue
		}
		tried++
	}
	assert.Equal(t, 1, tried)
}

// TestReadmeInAFreshClone runs the first commands of the README in a new clone, with an
// empty home, and checks each configuration example of the guides.
func TestReadmeInAFreshClone(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"git", "make", "go", "install"} {
		testkit.NeedTool(t, tool)
	}
	home := t.TempDir()
	clone := filepath.Join(home, "duet-rpc")
	copyTracked(t, e2e.Root, clone)
	var caches []string // Go's caches, which are otherwise in the empty home
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		dir, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		caches = append(caches, name+"="+strings.TrimSpace(string(dir)))
	}
	run := func(script string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
		cmd.Dir = clone
		for _, entry := range e2e.CleanEnvironment() {
			if !strings.HasPrefix(entry, "HOME=") && !strings.HasPrefix(entry, "XDG_") && !strings.HasPrefix(entry, "MAKE") {
				cmd.Env = append(cmd.Env, entry)
			}
		}
		cmd.Env = append(append(cmd.Env, caches...), "HOME="+home)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal to ask on
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", script, out)
		return string(out)
	}
	tried := 0
	for _, block := range blocks(t, "sh", guides[0]) {
		switch {
		case strings.TrimSpace(block) == "make":
			out := run(block)
			assert.Contains(t, out, `duet-rpc prompt --yes --agent demo "Greet the README's reader"`)
			assert.Contains(t, out, "— completed; go on with: ")
			lines := strings.Split(strings.TrimSpace(out), "\n")
			last := strings.Replace(lines[len(lines)-1], " prompt ", " prompt --yes ", 1)
			assert.Contains(t, run(last), "You asked: Say hello", "the last line is a command that works")
		case strings.Contains(block, "make install"):
			out := run(block + "command -v duet-rpc\nduet-rpc prompt --yes 'Say hello'\n")
			assert.Contains(t, out, `for your shell's profile: export PATH="`+home+`/.local/bin:$PATH"`)
			e2e.RequireParts(t, out, home+"/.local/bin/duet-rpc\n", "You asked: Say hello")
		default:
			continue
		}
		tried++
	}
	assert.Equal(t, 2, tried)

	readme := e2e.ReadFile(t, guides[0])
	install := "go install ./cmd/duet-rpc"
	require.Contains(t, readme, "`"+install+"`, which puts it where `go env GOPATH` says")
	out := run(`export GOPATH="$HOME/gopath" GOFLAGS=-mod=readonly GOBIN=` + "\n" +
		"git init -q && git add . && git -c user.name=a -c user.email=a@b.c commit -qm first && git rev-parse HEAD\n" +
		install + "\n" + `"$GOPATH/bin/duet-rpc" version && "$GOPATH/bin/duet-rpc" agents && git status --porcelain`)
	revision, said, _ := strings.Cut(out, "\n")
	assert.Regexp(t, `^duet-rpc \d+\.\d+\.\d+-dev\+`+revision[:7]+` .*go1\.`, said, "the version names the unmodified commit")
	assert.Contains(t, said, "demo")
	assert.NotContains(t, said, "??")

	examples := blocks(t, "toml", guides...)
	assert.Len(t, examples, 2)
	for _, block := range examples {
		require.NoError(t, os.MkdirAll(filepath.Join(home, ".config", "duet"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, ".config", "duet", "config.toml"), []byte(block), 0o600))
		run(home + "/.local/bin/duet-rpc config --check")
	}
}

// copyTracked copies the tracked files of a repository with their current content.
func copyTracked(t *testing.T, from, to string) {
	t.Helper()
	list, err := exec.Command("git", "-C", from, "ls-files", "-z").Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(from, name))
		if err != nil || !info.Mode().IsRegular() {
			continue // removed, or a link
		}
		text := e2e.ReadFile(t, filepath.Join(from, name))
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), []byte(text), info.Mode().Perm()))
	}
}
