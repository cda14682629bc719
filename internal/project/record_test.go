package project_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// begin finds the project at root, and begins and ends a hub there.
func begin(t *testing.T, root string) (project.Project, project.Record) {
	t.Helper()
	p, err := project.Owners{}.Find(root)
	require.NoError(t, err)
	lock, err := p.Claim(t.Context())
	require.NoError(t, err)
	require.NoError(t, lock.Unrecorded)
	require.NoError(t, lock.Close())
	return p, lock.Record
}

func TestAProjectThatWasMovedFindsItsState(t *testing.T) {
	elsewhere(t)
	dir := tree(t, "old/")
	old, moved, again := filepath.Join(dir, "old"), filepath.Join(dir, "moved \xff"), filepath.Join(dir, "again")
	first, r := begin(t, old)
	require.NoError(t, os.WriteFile(first.Database(), []byte("history"), 0o600))
	assert.Empty(t, r.MovedFrom)

	require.NoError(t, os.Rename(old, moved))
	second, r := begin(t, moved)
	assert.NotEqual(t, first.StateDir, second.StateDir)
	assert.NoDirExists(t, first.StateDir)
	content, err := os.ReadFile(second.Database())
	require.NoError(t, err)
	assert.Equal(t, "history", string(content))
	assert.Equal(t, old, string(r.MovedFrom))
	assert.True(t, r.ReplacedAt.IsZero())

	require.NoError(t, os.Rename(moved, again))
	third, r := begin(t, again)
	assert.Equal(t, old, string(r.MovedFrom), "the database has still the paths of the first place")
	require.NoError(t, third.PathsMoved())
	_, r = begin(t, again)
	assert.Empty(t, r.MovedFrom)
}

// The state moves with the directory, even if another one has taken its old place meanwhile.
func TestAProjectWhoseOldPlaceWasTakenFindsItsState(t *testing.T) {
	elsewhere(t)
	dir := tree(t, "old/")
	old, moved := filepath.Join(dir, "old"), filepath.Join(dir, "moved")
	_, first := begin(t, old)
	require.NoError(t, os.Rename(old, moved))
	require.NoError(t, os.Mkdir(old, 0o700))
	_, r := begin(t, moved)
	assert.Equal(t, first.ID, r.ID)
	assert.True(t, r.ReplacedAt.IsZero())
	_, r = begin(t, old)
	assert.NotEqual(t, first.ID, r.ID, "the other directory begins with none")
}

func TestACopyHasNoHistory(t *testing.T) {
	elsewhere(t)
	dir := tree(t, "old/", "copy/")
	first, _ := begin(t, filepath.Join(dir, "old"))
	second, r := begin(t, filepath.Join(dir, "copy"))
	assert.DirExists(t, first.StateDir)
	assert.NotEqual(t, first.StateDir, second.StateDir)
	assert.Empty(t, r.MovedFrom)
}

func TestAProjectIsNotTakenFromAHub(t *testing.T) {
	elsewhere(t)
	dir := tree(t, "old/")
	p, err := project.Owners{}.Find(filepath.Join(dir, "old"))
	require.NoError(t, err)
	lock, err := p.Claim(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(dir, "old"), filepath.Join(dir, "new")))
	require.ErrorContains(t, lock.Record.CheckRoot(), "was removed or moved")

	there, err := project.Owners{}.Find(filepath.Join(dir, "new"))
	require.NoError(t, err)
	var moved *project.MovedError
	for _, err := range []error{there.Check(), there.Prepare()} {
		require.ErrorAs(t, err, &moved)
		assert.Equal(t, os.Getpid(), moved.PID)
	}
	require.NoError(t, lock.Close())
	_, r := begin(t, filepath.Join(dir, "new"))
	assert.Equal(t, filepath.Join(dir, "old"), string(r.MovedFrom))
}

func TestADirectoryMadeAnewIsNoticed(t *testing.T) {
	elsewhere(t)
	root := filepath.Join(tree(t, "p/"), "p")
	p, first := begin(t, root)
	assert.Zero(t, replaced(t, p))
	require.NoError(t, os.Remove(root))
	require.NoError(t, os.Mkdir(root, 0o700))
	require.ErrorContains(t, first.CheckRoot(), "was replaced")
	before := time.Now()
	p, r := begin(t, root)
	assert.Equal(t, first.ID, r.ID, "it keeps its history")
	assert.False(t, replaced(t, p).Before(before.Truncate(time.Second)), replaced(t, p))
	_, again := begin(t, root)
	assert.True(t, r.ReplacedAt.Equal(again.ReplacedAt), "once")

	kept, err := p.Keep()
	require.NoError(t, err)
	assert.True(t, kept)
	assert.Zero(t, replaced(t, p))
	kept, err = p.Keep()
	require.NoError(t, err)
	assert.False(t, kept)
}

func TestAStateDirectoryMakesAProject(t *testing.T) {
	elsewhere(t)
	dir := tree(t, "a/b/c/")
	begin(t, filepath.Join(dir, "a"))
	t.Chdir(filepath.Join(dir, "a/b/c"))
	p, err := project.Owners{}.Find("")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "a"), p.Root)
}

func TestAll(t *testing.T) {
	elsewhere(t)
	list, err := project.All(os.Getenv)
	require.NoError(t, err)
	assert.Empty(t, list, "before there is a project")
	dir := tree(t, "a/", "b/")
	a, _ := begin(t, filepath.Join(dir, "a"))
	b, _ := begin(t, filepath.Join(dir, "b"))
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(b.StateDir, "project.json"), long, long))
	require.NoError(t, os.Remove(filepath.Join(dir, "b")))
	state := filepath.Dir(a.StateDir)
	require.NoError(t, errors.Join(
		os.Mkdir(filepath.Join(state, "empty"), 0o700), os.WriteFile(filepath.Join(state, "file"), nil, 0o600),
		os.Mkdir(filepath.Join(state, "damaged"), 0o700), os.WriteFile(filepath.Join(state, "damaged", "project.json"), []byte(`{"root":"relative"}`), 0o600)))
	list, err = project.All(os.Getenv)
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, []string{a.StateDir, b.StateDir}, []string{list[0].StateDir, list[1].StateDir}, "also a project whose directory is gone")
}

// A power cut in the middle of it leaves a part of the state, which is no project's and is deleted next time.
func TestForget(t *testing.T) {
	elsewhere(t)
	dir := tree(t, "a/", "b/")
	root := filepath.Join(dir, "a")
	a, _ := begin(t, root)
	b, _ := begin(t, filepath.Join(dir, "b"))
	forget := func(outside error) error {
		return project.Forget(t.Context(), os.Getenv, root, func(stateDir string) error {
			assert.Equal(t, a.StateDir, stateDir)
			return outside
		})
	}
	require.ErrorContains(t, forget(errors.New("not landed")), "forgetting the project: not landed")
	assert.DirExists(t, a.StateDir)
	require.NoError(t, forget(nil))

	begin(t, root)
	half := a.StateDir + ".forgotten"
	require.NoError(t, os.Rename(a.StateDir, half))
	list, err := project.All(os.Getenv)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, b.StateDir, list[0].StateDir)
	var none *project.NoStateError
	require.ErrorAs(t, forget(nil), &none)
	assert.NoDirExists(t, half)
	assert.DirExists(t, b.StateDir)
}

// Editors compute the name, too: emacs/duet-connection.el and vscode/src/hub/root.ts.
func TestTheNameOfAStateDirectory(t *testing.T) {
	assert.Equal(t, "/state/projects/a-project-of---name-that-7d76d87cce8a06d4", project.StateDirIn("/state", "/home/me/a project of ä name that is long"))
}

func replaced(t *testing.T, p project.Project) time.Time {
	t.Helper()
	at, err := p.Replaced()
	require.NoError(t, err)
	return at
}
