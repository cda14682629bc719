//go:build clients

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A prompt works in a worktree; its result is landed or discarded, and the user's files change only
// then.
func TestWorktreesInTheShell(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents("\n[checkpoints]\nenabled = true\n")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", s.root}, args...)...)
		cmd.Env = append(cleanEnvironment(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	run := func(args ...string) string {
		t.Helper()
		out, problem, err := s.commandIn(s.root, args...)
		require.NoError(t, err, problem)
		return out + problem
	}
	refused := func(want string, args ...string) {
		t.Helper()
		_, problem, err := s.commandIn(s.root, args...)
		require.Error(t, err)
		assert.Contains(t, problem, want)
	}
	refused("is in no git repository: run git init and make a commit", "prompt", "--yes", "--worktree", "hello")
	git("init", "-q", "-b", "main")
	git("config", "user.name", "User")
	git("config", "user.email", "user@localhost")
	git("commit", "-q", "--allow-empty", "-m", "first")

	demo := filepath.Join(s.root, "demo.txt")
	said := run("prompt", "--yes", "--worktree", "--title", "The parser", "hello")
	assert.Contains(t, said, "its worktree is on the branch duet/the-parser; bring its changes here with: duet-rpc land task-0001")
	assert.NoFileExists(t, demo)
	assert.Contains(t, run("session", "show", "task-0001"), "on the branch duet/the-parser")
	assert.Contains(t, run("land"), "landed on main: 1 commit, 1 file")
	assert.FileExists(t, demo)
	assert.Empty(t, git("status", "--porcelain"))
	assert.Contains(t, run("land", "task-0001"), "there is nothing new to land")

	// Both sides change the file.
	run("prompt", "--yes", "-c", "again")
	require.NoError(t, os.WriteFile(demo, []byte("mine\n"), 0o600))
	refused("these files of yours are not committed and would be overwritten\n  demo.txt\ncommit or stash them first", "land")
	git("commit", "-qam", "mine")
	head := git("rev-parse", "HEAD")
	refused("nothing was landed: these files conflict with your branch\n  demo.txt\nlet the agent merge: duet-rpc prompt --continue task-0002", "land", "--squash")
	assert.Equal(t, head, git("rev-parse", "HEAD"))
	data, err := os.ReadFile(demo)
	require.NoError(t, err)
	assert.Equal(t, "mine\n", string(data))

	refused("changed file that is not committed: demo.txt", "discard")
	refused("nothing was discarded: run `duet-rpc discard task-0002` on a terminal, or add --yes", "discard")
	refused("duet/the-parser has work that is not landed: run `duet-rpc land task-0002` or `duet-rpc discard task-0002` first", "session", "delete", "--yes", "task-0002")
	refused("has work that is not landed", "projects", "forget", "--yes", s.root)
	p := s.talk(t, "discard")
	p.sees("changed file that is not committed: demo.txt")
	p.sees("Discard the worktree with this work? [y/N]")
	p.types("n")
	p.sees("nothing was discarded")
	assert.Equal(t, 1, p.status())
	said = run("discard", "--yes")
	ref := regexp.MustCompile(`git branch NAME (\S+)`).FindStringSubmatch(said)
	require.NotNil(t, ref, said)
	assert.Contains(t, git("show", ref[1]+":demo.txt"), "again")
	assert.Equal(t, "main", strings.TrimSpace(git("branch", "--format=%(refname:short)")))
	refused("`duet-rpc session fork task-0002 TEXT` continues it in the project's directory", "prompt", "--yes", "-c", "more")
	run("prompt", "--yes", "--worktree", "--title", "Forgotten", "hello")
	run("land")
	run("projects", "forget", "--yes", s.root)
	assert.Equal(t, "main", strings.TrimSpace(git("branch", "--format=%(refname:short)")))
	assert.Equal(t, ref[1], strings.TrimSpace(git("for-each-ref", "--format=%(refname)", "refs/duet")), "the work is still kept, and nothing else")
}
