//go:build unix && clients

package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/golden"
	"github.com/duet-rpc/duet-rpc/internal/needs"
)

// What the README tells to type in a shell does what it says, in a clone whose
// only agents are the demo agent and one that is called claude. What it tells to
// type in Node and in Emacs is run where those are tested.
func TestReadmeInAShell(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	s := newSite(t)
	s.agents("[agents.claude]\ndriver = \"acp\"\ncommand = [" + `"` + program + `", "demo-agent"]` + "\nenv = { DUET_DEMO_DELAY = \"0\" }\n")
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "bin"), 0o755))
	require.NoError(t, os.Symlink(program, filepath.Join(s.root, "bin", "duet-rpc")))
	run := func(script string) string {
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-e", "-c", script)
		cmd.Dir = s.root
		cmd.Env = append(cleanEnvironment(), s.launch().env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal to ask on
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", script, out)
		return string(out)
	}
	run("git init -q")
	tried := 0
	for block := range strings.SplitSeq(string(readme), "```sh\n") {
		block, _, _ = strings.Cut(block, "```")
		switch {
		case strings.Contains(block, "make install"): // TestReadmeInAFreshClone
			continue
		case strings.Contains(block, "duet-rpc prompt"):
			out := run(`export PATH="$PWD/bin:$PATH"` + "\n" + block)
			assert.Equal(t, 4, strings.Count(out, "— completed; go on with: "), out)
			assert.Contains(t, out, "agent claude")
			assert.Contains(t, out, "You asked: Why does the build fail?")
			assert.Contains(t, out, "You asked: Review this")
			assert.Contains(t, out, "allowed by --yes")
			assert.Contains(t, out, "You asked: And now fix it")
		case strings.Contains(block, "duet-rpc daemon start"):
			run(`export PATH="$PWD/bin:$PATH"` + "\n" + block + "duet-rpc daemon status\nduet-rpc daemon stop\n")
		default:
			assert.NotContains(t, block, "duet-rpc ", "a block that nobody tries")
			continue
		}
		tried++
	}
	assert.Equal(t, 2, tried)
}

// What the README tells to type first does what it says in a clone that was just
// made, for somebody whose home is empty.
func TestReadmeInAFreshClone(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"git", "make", "go", "install"} {
		needs.Tool(t, tool)
	}
	home := t.TempDir()
	clone := filepath.Join(home, "duet-rpc")
	copyTracked(t, "../..", clone)
	var caches []string // those of Go, which would be in the empty home
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		dir, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		caches = append(caches, name+"="+strings.TrimSpace(string(dir)))
	}
	run := func(script string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
		cmd.Dir = clone
		for _, entry := range cleanEnvironment() {
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
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	tried := 0
	for block := range strings.SplitSeq(string(readme), "```sh\n") {
		block, _, _ = strings.Cut(block, "```")
		switch {
		case strings.TrimSpace(block) == "make":
			out := run(block)
			assert.Contains(t, out, `duet-rpc prompt --yes --agent demo "Greet the README's reader"`)
			assert.Contains(t, out, "— completed; go on with: ")
		case strings.Contains(block, "make install"):
			out := run(block + "command -v duet-rpc\nduet-rpc prompt --yes 'Say hello'\n")
			assert.Contains(t, out, `for your shell's profile: export PATH="`+home+`/.local/bin:$PATH"`)
			assert.Contains(t, out, home+"/.local/bin/duet-rpc\n")
			assert.Contains(t, out, "You asked: Say hello")
		default:
			continue
		}
		tried++
	}
	assert.Equal(t, 2, tried)

	install := "go install ./cmd/duet-rpc"
	require.Contains(t, string(readme), "`"+install+"`, which puts it where `go env GOPATH` says")
	out := run(`export GOPATH="$HOME/gopath" GOFLAGS=-mod=readonly GOBIN=` + "\n" +
		"git init -q && git add . && git -c user.name=a -c user.email=a@b.c commit -qm first && git rev-parse --short=12 HEAD\n" +
		install + "\n" + `"$GOPATH/bin/duet-rpc" version && "$GOPATH/bin/duet-rpc" agents && git status --porcelain`)
	revision, said, _ := strings.Cut(out, "\n")
	assert.Regexp(t, `^duet-rpc v0\.0\.0-\d+-`+revision+` .*go1\.`, said, "the version names the commit, of which nothing was changed")
	assert.Contains(t, said, "demo")
	assert.NotContains(t, said, "??")

	for i, block := range strings.Split(string(readme), "```toml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		require.NoError(t, os.MkdirAll(filepath.Join(home, ".config", "duet"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, ".config", "duet", "config.toml"), []byte(block), 0o600))
		run(home + "/.local/bin/duet-rpc config --check")
		assert.Less(t, i, 2)
	}
}

// Each screen in the README is one that TestScreens has seen.
func TestReadmeScreens(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	markers := regexp.MustCompile(`(?m)^<!-- screen: ([a-z0-9-]+) -->$`).FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, markers)
	for _, m := range markers {
		seen, err := os.ReadFile("../../testdata/screens/" + m[1] + ".txt")
		require.NoError(t, err)
		golden.Block(t, "../../README.md", m[0], seen)
	}
	readme, err = os.ReadFile("../../README.md") // which -update has changed
	require.NoError(t, err)
	assert.Equal(t, len(markers), strings.Count(string(readme), "\n```\n$ ")+strings.Count(string(readme), "\n```\n— "), "a screen that no test has seen")
}

// copyTracked copies the files of a repository, as they are now.
func copyTracked(t *testing.T, from, to string) {
	t.Helper()
	list, err := exec.Command("git", "-C", from, "ls-files", "-z").Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(from, name))
		if err != nil || !info.Mode().IsRegular() {
			continue // removed, or a link
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), text, info.Mode().Perm()))
	}
}
