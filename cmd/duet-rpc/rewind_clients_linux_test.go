//go:build clients

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// The files go back to before a turn, in the shell and in a conversation, and the rewind is undone.
func TestRewindInTheShell(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents("\n[checkpoints]\nenabled = true\n")
	// A checkpoint takes longer than a turn.
	git, err := exec.LookPath("git")
	require.NoError(t, err)
	slow := t.TempDir()
	testkit.Program(t, filepath.Join(slow, "git"), "#!/bin/sh\n[ \"$1\" != mktag ] || sleep 1\nexec "+git+" \"$@\"\n")
	s.env = append(s.env, "PATH="+slow+":"+os.Getenv("PATH"))
	editor := s.start() // the hub goes on while it does
	editor.call("task.stats", object{}, nil)
	for i, args := range [][]string{{"one"}, {"-c", "two"}} {
		_, problem, err := s.commandIn(s.root, append([]string{"prompt", "--yes"}, args...)...)
		require.NoError(t, err, problem)
		// It waits for the checkpoints. Else the one after the turn might have changes of the next turn.
		_, problem, err = s.commandIn(s.root, "rewind", fmt.Sprintf("task-%04d", i+1), "--dry-run")
		require.NoError(t, err, problem)
	}
	demo := filepath.Join(s.root, "demo.txt")
	two, err := os.ReadFile(demo)
	require.NoError(t, err)
	ask := func(want string, args ...string) {
		t.Helper()
		out, problem, err := s.commandIn(s.root, append([]string{"rewind"}, args...)...)
		require.NoError(t, err, problem)
		assert.Contains(t, out+problem, want)
	}
	ask("— restores demo.txt +0 -1", "task-0002", "--dry-run")
	_, problem, err := s.commandIn(s.root, "rewind", "task-0002")
	require.Error(t, err)
	assert.Contains(t, problem, "no file was restored: run `duet-rpc rewind task-0002` on a terminal, or add --yes")
	now, err := os.ReadFile(demo)
	require.NoError(t, err)
	assert.Equal(t, string(two), string(now))

	ask("1 file restored; take it back with: duet-rpc rewind task-0001 --undo", "task-0001", "--yes")
	assert.NoFileExists(t, demo)
	ask("the rewind is undone: 1 file restored", "task-0001", "--undo")
	now, err = os.ReadFile(demo)
	require.NoError(t, err)
	assert.Equal(t, string(two), string(now))

	require.NoError(t, os.WriteFile(demo, []byte("mine\n"), 0o600))
	ask("stays, edited since: demo.txt", "task-0002", "--dry-run")
	p := s.talk(t, "prompt", "-c")
	p.sees(idleFooter)
	p.keys("/rewind\r")
	p.sees("stays, edited since: demo.txt")
	p.sees("Go back in the conversation? [y]es, [a]ll of them, [k]eep the files, [n]o: ")
	p.keys("a")
	p.sees("1 file restored")
	p.sees("your next prompt continues from before task-0002")
	p.keys(" again\r")
	p.sees("Allow? ")
	p.keys("y")
	p.sees("tokens")
	p.sees(idleFooter)
	p.leaves()
	var list struct {
		Sessions []struct {
			Query  string
			Thread string `json:"thread_id"`
		}
	}
	editor.call("listSessions", nil, &list)
	editor.leave()
	require.Len(t, list.Sessions, 3)
	assert.Equal(t, "two again", list.Sessions[0].Query)
	assert.NotEqual(t, list.Sessions[0].Thread, list.Sessions[1].Thread)
	now, err = os.ReadFile(demo)
	require.NoError(t, err)
	assert.Equal(t, "Turn 1: one\nTurn 1: two again\n", string(now))
}
