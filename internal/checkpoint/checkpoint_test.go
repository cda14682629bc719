//go:build unix

package checkpoint_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// usersView returns the user's view of a repository, and the bytes of the files that only the
// user's git writes.
func (w *world) usersView() map[string]string {
	view := map[string]string{
		"status": w.git("status", "--porcelain"),
		"fsck":   w.git("fsck", "--no-dangling", "--strict"),
		"log":    w.git("log", "--all", "--format=%H %D"),
		"stash":  w.git("stash", "list"),
	}
	for line := range strings.Lines(w.git("for-each-ref")) {
		if !strings.Contains(line, "refs/duet/") {
			view["refs"] += line
		}
	}
	for _, name := range []string{"index", "HEAD", "config", "ORIG_HEAD", "packed-refs", "info/exclude", "logs/HEAD"} {
		text, _ := os.ReadFile(filepath.Join(w.dir, ".git", name))
		view[name] = string(text)
	}
	_, err := os.Stat(filepath.Join(w.dir, ".git", "logs", "refs", "duet"))
	view["reflog"] = fmt.Sprint(os.IsNotExist(err))
	return view
}

func TestTakeLeavesTheRepositoryAsItIs(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1", "dir/b": "2"})
	w.git("config", "core.logAllRefUpdates", "always")
	w.write(map[string]string{"a": "stashed"})
	w.git("stash")
	w.write(map[string]string{"a": "changed", "new": "n", "staged": "s"})
	w.git("add", "staged")
	w.write(map[string]string{".git/index.lock": "locked"})
	before := w.usersView() // git status does not write a locked index

	first := w.take()
	assert.Equal(t, testkit.ReadFiles(t, w.dir), w.recorded(first))
	w.write(map[string]string{"a": "2"})
	second := w.take()
	_, err := w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
	require.NoError(t, err)
	assert.Equal(t, before, w.usersView())
	_, err = w.Prune(t.Context(), func(checkpoint.Checkpoint) bool { return false })
	require.NoError(t, err)
	assert.Equal(t, before, w.usersView())
	assert.NotContains(t, w.git("for-each-ref"), "refs/duet")
}

func TestTakeReturnsTheSameCheckpointForTheSameFiles(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*world{"git": newRepository(t, map[string]string{"a": "1"}), "no git": newWorld(t)} {
		t.Run(name, func(t *testing.T) {
			first := w.take()
			assert.Equal(t, first, w.take())
			w.write(map[string]string{"b": "1"})
			second := w.take()
			assert.NotEqual(t, first.ID, second.ID)
			w.write(map[string]string{"b": ""})
			third := w.take()
			assert.NotEqual(t, first.ID, third.ID, "a later checkpoint has another id")
			list, err := w.open().List(t.Context())
			require.NoError(t, err)
			assert.Equal(t, []checkpoint.Checkpoint{first, second, third}, list)
			changes, err := w.Changes(t.Context(), first.ID, third.ID)
			require.NoError(t, err)
			assert.Empty(t, changes)
		})
	}
}

// Each change comes within the clock tick of the last checkpoint, so the file may keep its size and
// time.
func TestTakeSeesQuickChanges(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "0"})
	for i := range 20 {
		w.write(map[string]string{"a": fmt.Sprint(i % 10)})
		assert.Equal(t, fmt.Sprint(i%10), w.recorded(w.take())["a"])
	}
}

func TestMessagesAndTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t).open()
	began := time.Now().Truncate(time.Second) // as git stores it
	for i, message := range []string{"", "one", "two\n\nlines\n", "a\n\nSkipped:\nspecial \"x\"\n", "\n\nSkipped:\n", "nul\x00", "\xff"} {
		w.write(map[string]string{"a": fmt.Sprint(i)})
		c, err := w.Take(t.Context(), message)
		require.NoError(t, err)
		assert.WithinRange(t, c.Time, began, time.Now())
		list, err := w.List(t.Context())
		require.NoError(t, err)
		c.Message = strings.ReplaceAll(c.Message, "\x00", "")
		assert.Equal(t, c, list[i])
	}
}

// markers returns a script that records its runs, and a function that returns the records.
func markers(t *testing.T) (script string, ran func() string) {
	dir := t.TempDir()
	note := filepath.Join(dir, "ran")
	script = testkit.Program(t, filepath.Join(dir, "marker"), "#!/bin/sh\necho \"$0 $*\" >> "+note+"\ncat\n")
	return script, func() string {
		text, _ := os.ReadFile(note)
		return string(text)
	}
}

// makeHostile makes each setting, hook and attribute that can start a program start the script.
func makeHostile(t *testing.T, dir, script string) {
	testkit.HostileRepository(t, dir, script)
	attributes := "* filter=evil diff=evil merge=evil text\nb filter=both\n[attr]binary filter=evil\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitattributes"), []byte(attributes), 0o644))
}

func TestHostileRepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1", "b": "2"})
	for _, name := range []string{"nested", "sub/deep"} {
		require.NoError(t, os.MkdirAll(filepath.Join(w.dir, name), 0o755))
		gitIn(t, filepath.Join(w.dir, name), "init", "-q")
		gitIn(t, filepath.Join(w.dir, name), "commit", "-q", "--allow-empty", "-m", "x")
	}
	from := newRepositoryIn(t, filepath.Join(w.home, "from"))
	w.git("submodule", "--quiet", "add", from, "module")
	w.git("commit", "-q", "-m", "module")
	script, ran := markers(t)
	for _, dir := range []string{"nested", "sub/deep", "module", "."} {
		makeHostile(t, filepath.Join(w.dir, dir), script)
	}

	first := w.take()
	w.write(map[string]string{"a": "changed", "b": "", "c/d": "new", "nested/x": "x", "module/x": "x"})
	second := w.take()
	_, err := w.Changes(t.Context(), first.ID, second.ID)
	require.NoError(t, err)
	_, err = w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
	require.NoError(t, err)
	assert.Equal(t, "1", testkit.ReadFiles(t, w.dir)["a"])
	_, err = w.Prune(t.Context(), func(checkpoint.Checkpoint) bool { return false })
	require.NoError(t, err)
	assert.Empty(t, ran())
	assert.NoFileExists(t, filepath.Join(w.dir, ".git", "trace"))

	assert.ElementsMatch(t, []checkpoint.Skipped{
		{Path: "module", Reason: checkpoint.Nested}, {Path: "nested", Reason: checkpoint.Nested}, {Path: "sub/deep", Reason: checkpoint.Nested},
	}, first.Skipped)
	gitIn(t, w.dir, "-c", "core.worktree="+w.dir, "update-ref", "refs/x", "HEAD")
	assert.NotEmpty(t, ran(), "the marker can run")
}

// newRepositoryIn makes a repository with one commit of the file f.
func newRepositoryIn(t *testing.T, dir string) string {
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("f"), 0o644))
	gitIn(t, dir, "init", "-q")
	gitIn(t, dir, "add", "f")
	gitIn(t, dir, "commit", "-q", "-m", "x")
	return dir
}

// A directory with recorded files that becomes a repository does not run git there.
func TestRecordedDirectoryBecomesRepository(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1", "sub/b": "2"})
	first := w.take()
	sub := newRepositoryIn(t, filepath.Join(w.dir, "sub"))
	script, ran := markers(t)
	makeHostile(t, sub, script)
	w.write(map[string]string{"sub/b": "3"})
	second := w.take()
	_, err := w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
	require.NoError(t, err)
	assert.Empty(t, ran())
}

func TestBytesAreRecordedAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"true", "input", "false"} {
		t.Run("autocrlf="+setting, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"x": "x"})
			w.git("config", "core.autocrlf", setting)
			want := map[string]string{
				"x":              "x",
				"crlf":           "a\r\nb\r\n",
				"mixed":          "a\r\nb\n",
				"lf.eol":         "a\nb\n",
				"id":             "$Id: 123 $\n$Id$\n",
				"utf16":          "\xff\xfea\x00\r\x00\n\x00",
				"lfs":            "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n",
				".gitattributes": "* text=auto\n*.eol eol=crlf\nid ident\nutf16 working-tree-encoding=UTF-16\nlfs filter=lfs diff=lfs merge=lfs -text\n",
			}
			w.write(want)
			first := w.take()
			assert.Equal(t, want, w.recorded(first))
			w.write(map[string]string{"crlf": "", "mixed": "", "lf.eol": "", "id": "", "utf16": "", "lfs": "1"})
			_, err := w.Restore(t.Context(), w.take().ID, first.ID, checkpoint.RestoreOptions{})
			require.NoError(t, err)
			assert.Equal(t, want, testkit.ReadFiles(t, w.dir))
		})
	}
}

func TestIgnoredFiles(t *testing.T) {
	w := newRepository(t, map[string]string{".gitignore": "build/\n*.o\n", "a": "1"})
	t.Setenv("HOME", w.home)
	w.write(map[string]string{"build/kept": "k", "build/b": "b", "x.o": "o", "private": "p", "global": "g", "xdg": "x"})
	w.git("add", "-f", "build/kept")
	w.write(map[string]string{".git/info/exclude": "private\n", "../ignore": "global\n"})
	w.git("config", "--global", "core.excludesFile", "~/ignore")
	recorded := func() []string {
		var names []string
		for name := range w.recorded(w.take()) {
			names = append(names, name)
		}
		return names
	}
	assert.ElementsMatch(t, []string{".gitignore", "a", "build/kept", "xdg"}, recorded(), "a checkpoint has a tracked file although git ignores it")
	w.write(map[string]string{".git/info/exclude": "xdg\n"})
	assert.NotContains(t, recorded(), "global")
	assert.Contains(t, recorded(), "private")
	w.write(map[string]string{"build/kept": "changed"})
	assert.Equal(t, "changed", w.recorded(w.take())["build/kept"])
	w.git("config", "--global", "--unset", "core.excludesFile")
	w.write(map[string]string{"../.config/git/ignore": "x2\n", "x2": "2"})
	w.open()
	assert.NotContains(t, recorded(), "x2")
	w.git("add", "-f", "build/b")
	assert.Contains(t, recorded(), "build/b")
}

func TestStateInsideOfTheProject(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	w.opts.State = filepath.Join(w.dir, "odd [name]*")
	w.open()
	c, err := w.Take(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"a": "1"}, w.recorded(c))
}

func TestSkippedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.MaxFileSize = 10
	w.write(map[string]string{"small": "0123456789", "large": "0123456789+", "grows": "1", "pipe": "1", ".GIT/x": "x", "sub/.Git": "x"})
	newRepositoryIn(t, filepath.Join(w.dir, "nested"))
	first := w.take()
	assert.Equal(t, map[string]string{"small": "0123456789", "grows": "1", "pipe": "1"}, w.recorded(first))
	assert.ElementsMatch(t, []checkpoint.Skipped{
		{Path: ".GIT/x", Reason: checkpoint.Reserved},
		{Path: "sub/.Git", Reason: checkpoint.Reserved},
		{Path: "large", Reason: checkpoint.TooLarge},
		{Path: "nested", Reason: checkpoint.Nested},
	}, first.Skipped)

	w.write(map[string]string{"grows": "0123456789+", "pipe": ""})
	require.NoError(t, syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(w.dir, "new-pipe"), 0o600))
	second := w.take()
	assert.Equal(t, map[string]string{"small": "0123456789"}, w.recorded(second))
	assert.Contains(t, second.Skipped, checkpoint.Skipped{Path: "grows", Reason: checkpoint.TooLarge})
	assert.Contains(t, second.Skipped, checkpoint.Skipped{Path: "pipe", Reason: checkpoint.Special})

	_, err := w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
	var conflict *checkpoint.ConflictError
	require.ErrorAs(t, err, &conflict, "Restore does not overwrite a skipped file")
	assert.Len(t, conflict.Conflicts, 2)

	w.write(map[string]string{"grows": "2"})
	assert.Equal(t, map[string]string{"small": "0123456789", "grows": "2"}, w.recorded(w.take()))
}

func TestListsAtMost200SkippedFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.MaxFileSize = 1
	for i := range 203 {
		w.write(map[string]string{fmt.Sprint(i): "large"})
	}
	c := w.take()
	assert.Len(t, c.Skipped, 200)
	assert.Equal(t, 3, c.MoreSkipped)
	list, err := w.List(t.Context())
	require.NoError(t, err)
	assert.Equal(t, c, list[0])
}

func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(map[string]string{"a": "1", "b": "1", "c": "1"})
	w.opts.MaxFiles = 3
	w.open()
	w.take()
	w.write(map[string]string{"d": "1"})
	_, err := w.Take(t.Context(), "")
	var many *checkpoint.TooManyFilesError
	require.ErrorAs(t, err, &many)
	assert.Equal(t, 3, many.Limit)
	w.write(map[string]string{"d": ""})
	w.take()
}

// With too many files, a checkpoint has all files that git tracks, and no others.
func TestTrackedFilesAlone(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1", "b": "1", "c": "1"})
	w.opts.MaxFiles = 2
	w.write(map[string]string{"new": "n"})
	first := w.take()
	assert.Equal(t, []checkpoint.Skipped{{Reason: checkpoint.Untracked}}, first.Skipped)
	assert.Equal(t, map[string]string{"a": "1", "b": "1", "c": "1"}, w.recorded(first))
	w.write(map[string]string{"a": "2", "b": "", "newer": "n"})
	second := w.take()
	assert.Equal(t, map[string]string{"a": "2", "c": "1"}, w.recorded(second))
	w.git("add", "newer")
	w.write(map[string]string{"a": "3", "newer": "m"})
	third := w.take()
	assert.Equal(t, map[string]string{"a": "3", "c": "1", "newer": "m"}, w.recorded(third))
	before := w.git("status", "--porcelain")
	fourth := w.take()
	assert.Equal(t, third, fourth)
	assert.Equal(t, before, w.git("status", "--porcelain"))
	restored, err := w.Restore(t.Context(), third.ID, first.ID, checkpoint.RestoreOptions{})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"a", "b"}, restored.Written)
	assert.FileExists(t, filepath.Join(w.dir, "new"), "Restore keeps a file that no checkpoint has")
}

func TestTooMuchNewContent(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1", "tracked": strings.Repeat("x", 200)})
	w.opts.MaxNewBytes = 100
	w.write(map[string]string{"new": strings.Repeat("x", 99)})
	w.take() // git has the tracked file
	w.write(map[string]string{"new": strings.Repeat("y", 50), "newer": strings.Repeat("x", 51)})
	c := w.take()
	assert.Equal(t, []checkpoint.Skipped{{Reason: checkpoint.Untracked}}, c.Skipped)
	assert.Equal(t, map[string]string{"a": "1", "tracked": strings.Repeat("x", 200), "new": strings.Repeat("y", 50)}, w.recorded(c), "the checkpoint still has the earlier files")

	w = newWorld(t)
	w.opts.MaxNewBytes = 100
	w.write(map[string]string{"new": strings.Repeat("x", 101)})
	_, err := w.open().Take(t.Context(), "")
	var large *checkpoint.TooLargeError
	require.ErrorAs(t, err, &large)
	assert.Equal(t, int64(100), large.Limit)
	w.write(map[string]string{"new": "x"})
	w.take()
}

// oddNames are names that need care in git's output.
var oddNames = []string{"sp ace", "new\nline", "tab\t\t", "\"quoted\"", "back\\slash", "-dash", ":colon", "\xff\xfe", "ünïcödé", " lead", "trail ", "dir\n/:(top)x", "*", "#x", "!x", "git~1"}

func TestOddNames(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	want := map[string]string{"a": "1"}
	for i, name := range oddNames {
		want[name] = fmt.Sprint(name, i)
	}
	w.write(want)
	first := w.take()
	assert.Equal(t, want, w.recorded(first))
	for _, name := range oddNames {
		w.write(map[string]string{name: ""})
	}
	second := w.take()
	changes, err := w.Changes(t.Context(), first.ID, second.ID)
	require.NoError(t, err)
	assert.Len(t, changes, len(oddNames))
	_, err = w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
	require.NoError(t, err)
	assert.Equal(t, want, testkit.ReadFiles(t, w.dir))
}

func TestGarbageCollectionOfTheUserKeepsCheckpoints(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	w.write(map[string]string{"untracked": "unique text"})
	first := w.take()
	w.write(map[string]string{"untracked": "", "a": "2"})
	w.take()
	collect := func() { w.git("gc", "--quiet", "--prune=now") }
	collect()
	assert.Equal(t, "unique text", w.recorded(first)["untracked"])
	w.git("pack-refs", "--all")

	n, err := w.Prune(t.Context(), func(c checkpoint.Checkpoint) bool { return c.ID != first.ID })
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	changes, err := w.Changes(t.Context(), w.empty().ID, first.ID)
	require.ErrorIs(t, err, checkpoint.ErrUnknown)
	assert.Empty(t, changes)
	collect()
	assert.NotContains(t, w.git("cat-file", "--batch-all-objects", "--batch"), "unique text")
	w.git("fsck", "--strict")

	_, err = w.Prune(t.Context(), func(checkpoint.Checkpoint) bool { return false })
	require.NoError(t, err)
	collect()
	w.write(map[string]string{"b": "3"})
	c := w.take()
	assert.Equal(t, map[string]string{"a": "2", "b": "3"}, w.recorded(c), "Take uses no index without its checkpoint")
	w.git("fsck", "--strict")
}

// After a user has deleted the refs, no checkpoint lacks objects.
func TestRefsDeletedByTheUser(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	w.write(map[string]string{"b": "only here"})
	w.take()
	for line := range strings.Lines(w.git("for-each-ref", "refs/duet")) {
		w.git("update-ref", "-d", strings.Fields(line)[2])
	}
	w.git("gc", "--quiet", "--prune=now")
	assert.Equal(t, map[string]string{"a": "1", "b": "only here"}, w.recorded(w.take()))
	w.git("fsck", "--strict")
}

func TestProjectWithoutGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(map[string]string{"a": "1", "dir/b": "2", "link": "-> dir"})
	var ids []checkpoint.ID
	for i := range 5 {
		w.write(map[string]string{"a": fmt.Sprint(i) + strings.Repeat("x", i), "noise": strings.Repeat(fmt.Sprint(i), 1000)})
		ids = append(ids, w.take().ID)
	}
	objects := func() string {
		dirs, err := filepath.Glob(filepath.Join(w.state, "own-*"))
		require.NoError(t, err)
		return gitIn(t, w.dir, "--git-dir="+dirs[0], "cat-file", "--batch-all-objects", "--batch")
	}
	require.Contains(t, objects(), "3333333")
	n, err := w.Prune(t.Context(), func(c checkpoint.Checkpoint) bool { return c.ID == ids[4] })
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	assert.NotContains(t, objects(), "3333333")
	assert.Contains(t, objects(), "4444444")
	assert.Equal(t, testkit.ReadFiles(t, w.dir), w.recorded(w.take()))
	assert.NoDirExists(t, filepath.Join(w.dir, ".git"))

	w.git("init", "-q")
	w.open().take()
	assert.Contains(t, w.git("for-each-ref"), "refs/duet/", "Take uses the new repository")
}

func TestKindsOfRepositories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make   func(w *world)
		shared bool // the objects are in the user's repository
	}{
		"linked worktree": {func(w *world) {
			w.git("worktree", "add", "-q", filepath.Join(w.home, "tree"))
			w.dir = filepath.Join(w.home, "tree")
		}, true},
		"submodule": {func(w *world) {
			from := w.dir
			w.dir = filepath.Join(w.home, "parent")
			require.NoError(w, os.Mkdir(w.dir, 0o755))
			w.git("init", "-q")
			w.git("submodule", "--quiet", "add", from, "module")
			w.dir = filepath.Join(w.dir, "module")
		}, true},
		"sparse checkout": {func(w *world) {
			w.git("sparse-checkout", "set", "--sparse-index", "dir")
			assert.NoFileExists(w, filepath.Join(w.dir, "other", "c"))
		}, true},
		"partial clone": {func(w *world) {
			w.git("config", "uploadpack.allowFilter", "true")
			from := w.dir
			w.dir = filepath.Join(w.home, "clone")
			gitIn(w, w.home, "clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+from, w.dir)
			w.git("sparse-checkout", "set", "dir")
			w.git("checkout", "-q", "main")
		}, true},
		"clone with alternates": {func(w *world) {
			from := w.dir
			w.dir = filepath.Join(w.home, "clone")
			gitIn(w, w.home, "clone", "-q", "--shared", from, w.dir)
		}, true},
		"shallow clone": {func(w *world) {
			w.commit(map[string]string{"second": "2"})
			from := w.dir
			w.dir = filepath.Join(w.home, "clone")
			gitIn(w, w.home, "clone", "-q", "--depth=1", "file://"+from, w.dir)
		}, true},
		"sha256": {func(w *world) {
			w.dir = filepath.Join(w.home, "sha256")
			gitIn(w, w.home, "init", "-q", "--object-format=sha256", "sha256")
			w.commit(map[string]string{"dir/b": "2"})
		}, true},
		"separate git directory": {func(w *world) {
			w.git("init", "-q", "--separate-git-dir", filepath.Join(w.home, "elsewhere"))
		}, true},
		"split index": {func(w *world) { w.git("update-index", "--split-index") }, true},
		"without commits": {func(w *world) {
			w.dir = filepath.Join(w.home, "fresh")
			gitIn(w, w.home, "init", "-q", "fresh")
		}, true},
		"unknown extension": {func(w *world) {
			w.git("config", "core.repositoryFormatVersion", "1")
			w.git("config", "extensions.refStorage", "reftable")
		}, false},
		"broken configuration": {func(w *world) { w.write(map[string]string{".git/config": "[core\n"}) }, false},
		"repository of another user": {func(w *world) {
			if os.Geteuid() != 0 {
				testkit.SkipMissing(w, "only root can change the owner of a file")
			}
			require.NoError(w, os.Chown(filepath.Join(w.dir, ".git", "objects"), 12345, 12345))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1", "dir/b": "2", "other/c": "3", ".gitignore": "ignored\n*.log\n"})
			w.write(map[string]string{"tracked.log": "l"})
			w.git("add", "-f", "tracked.log")
			w.git("commit", "-q", "-m", "y")
			c.make(w)
			w.opts.Dir = w.dir
			w.write(map[string]string{"ignored": "i", ".gitignore": "ignored\n*.log\n", "dir/b": "changed", "dir/new": "n"})
			first := w.take()
			want := testkit.ReadFiles(t, w.dir)
			delete(want, "ignored")
			if !c.shared { // the index decides which ignored files git tracks
				want = only(want, "dir/b", "dir/new")
				assert.Subset(t, w.recorded(first), want)
			} else {
				assert.Equal(t, want, w.recorded(first))
				assert.Contains(t, w.git("for-each-ref"), "refs/duet/")
				w.git("fsck", "--strict")
			}
			own, err := filepath.Glob(filepath.Join(w.state, "own-*"))
			require.NoError(t, err)
			assert.Equal(t, c.shared, len(own) == 0)

			w.write(map[string]string{"dir/b": "", "dir/new": "m"})
			second := w.take()
			_, err = w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
			require.NoError(t, err)
			assert.Equal(t, "changed", testkit.ReadFiles(t, w.dir)["dir/b"])
			_, err = w.Prune(t.Context(), func(c checkpoint.Checkpoint) bool { return c.ID == first.ID })
			require.NoError(t, err)
			assert.Subset(t, w.recorded(first), map[string]string{"dir/b": "changed"})
		})
	}
}

func TestProjectBelowARepository(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"top": "1", "part/a": "2", ".gitignore": "/alone/\n"})
	w.opts.Dir = filepath.Join(w.dir, "part")
	w.open()
	assert.Equal(t, w.dir, w.Top())
	assert.Contains(t, w.recorded(w.take()), "top")

	w.write(map[string]string{"alone/b": "3"})
	w.opts.Dir = filepath.Join(w.dir, "alone")
	w.open()
	assert.Equal(t, w.opts.Dir, w.Top())
	c := w.take()
	changes, err := w.Changes(t.Context(), c.ID, c.ID)
	require.NoError(t, err)
	assert.Empty(t, changes)
	own, _ := filepath.Glob(filepath.Join(w.state, "own-*"))
	assert.Len(t, own, 1)
}

func TestEnvironmentOfTheCallerIsNotUsed(t *testing.T) {
	w := newRepository(t, map[string]string{"a": "1"})
	script, ran := markers(t)
	for name, value := range map[string]string{
		"GIT_DIR": w.home, "GIT_INDEX_FILE": filepath.Join(w.home, "index"), "GIT_WORK_TREE": w.home, "GIT_EXTERNAL_DIFF": script,
		"GIT_OBJECT_DIRECTORY": w.home, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": script,
		"GIT_LITERAL_PATHSPECS": "x", "GIT_NAMESPACE": "n", "GIT_EXEC_PATH": w.home,
	} {
		t.Setenv(name, value)
	}
	w.open()
	c, err := w.Take(t.Context(), "")
	require.NoError(t, err)
	changes, err := w.Changes(t.Context(), c.ID, c.ID)
	require.NoError(t, err)
	assert.Empty(t, changes)
	assert.Empty(t, ran())
}

// A directory of objects that only its creator can write would prevent the group's pushes.
func TestSharedRepositoryStaysShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git("init", "-q", "--shared=group")
	w.write(map[string]string{"a": "1"})
	w.take()
	w.empty()
	dirs, err := filepath.Glob(filepath.Join(w.dir, ".git", "objects", "??"))
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o070), info.Mode().Perm()&0o070, dir)
	}
}

func TestConcurrentTakes(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"}).open()
	other, err := checkpoint.Open(t.Context(), w.opts)
	require.NoError(t, err)
	errs := make(chan error)
	for i := range 6 {
		go func() {
			name := filepath.Join(w.dir, fmt.Sprint("f", i))
			store := []*checkpoint.Store{w.Store, other}[i%2]
			err := os.WriteFile(name, []byte("x"), 0o644)
			c, err2 := store.Take(context.Background(), "")
			_, err3 := store.Changes(context.Background(), c.ID, c.ID)
			errs <- errors.Join(err, err2, err3)
		}()
	}
	for range 6 {
		require.NoError(t, <-errs)
	}
	assert.Equal(t, testkit.ReadFiles(t, w.dir), w.recorded(w.take()))
}

func TestTakeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	git := testkit.NeedTool(t, "git")
	started := filepath.Join(w.home, "started")
	w.opts.Git = testkit.Program(t, filepath.Join(w.home, "git"), "#!/bin/sh\nif [ \"$1\" = status ]; then sleep 1000 & echo $! > "+started+".new; mv "+started+".new "+started+"; wait; fi\nexec "+git+" \"$@\"\n")
	w.open()
	opts := w.opts
	opts.Git = git
	other, err := checkpoint.Open(t.Context(), opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := w.Take(ctx, "")
		failed <- err
	}()
	var pid int
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(started)
		fmt.Sscan(string(text), &pid)
		return err == nil
	}, time.Minute, time.Millisecond)

	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, err = other.Take(short, "")
	require.ErrorIs(t, err, context.DeadlineExceeded, "one Take at a time")
	_, err = other.List(t.Context())
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	testkit.AwaitExit(t, pid)
}

func TestGitIsTooOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.Git = testkit.Program(t, filepath.Join(w.home, "git"), "#!/bin/sh\necho git version 2.25.1\n")
	_, err := checkpoint.Open(t.Context(), w.opts)
	assert.ErrorContains(t, err, "git 2.25 is too old")
}

func TestRemoveAllDeletesTheRefsOfEachStore(t *testing.T) {
	w := newRepository(t, map[string]string{"a": "1"})
	parent := filepath.Join(w.home, "states")
	w.opts.State = filepath.Join(parent, "here")
	w.open().take()
	gone := newRepository(t, map[string]string{"a": "1"})
	gone.opts.State = filepath.Join(parent, "gone")
	gone.open().take()
	require.NoError(t, os.RemoveAll(gone.dir))
	require.Contains(t, w.git("for-each-ref"), "refs/duet/")
	require.NoError(t, checkpoint.RemoveAll(t.Context(), parent))
	assert.NotContains(t, w.git("for-each-ref"), "refs/duet/")
	assert.NoDirExists(t, parent)
	assert.NoError(t, checkpoint.RemoveAll(t.Context(), parent))
}

// A checkpoint has no changes that begin after its start.
func TestTakeBeforeOthersBegin(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"repository": func(w *world) { w.git("init", "-q") },
		"no git":     func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			prepare(w)
			w.write(map[string]string{"same": "1", "edited": "1", "gone": "1", "dir/a": "1", "dir/b": "1", "file": "1", "users": "1", "users-dir/gone": "1", "script": "1", "link": "-> same"})
			w.open()
			w.take()
			w.write(map[string]string{"users": "2", "users-dir/gone": "", "users-dir/new": "1"})
			before := testkit.ReadFiles(t, w.dir)
			start := checkpoint.NewStart(time.Now(), nil)
			start.Begin()
			w.write(map[string]string{"edited": "2", "gone": "", "dir": "", "file": "", "new": "1", "link": "-> edited"})
			w.write(map[string]string{"dir": "now a file", "file/below": "1"})
			require.NoError(t, os.Chmod(filepath.Join(w.dir, "script"), 0o755))
			c, err := w.TakeBefore(w.Context(), "before", start)
			require.NoError(t, err)
			require.Equal(t, before, w.recorded(c))
			now, err := w.Take(w.Context(), "after")
			require.NoError(t, err)
			require.Equal(t, testkit.ReadFiles(t, w.dir), w.recorded(now))
		})
	}
}

// The program of core.fsmonitor lists the changed files. It runs only in a repository that the user
// trusts.
func TestFSMonitorOfATrustedRepository(t *testing.T) {
	w := newRepository(t, map[string]string{"listed": "1", "other": "1"})
	ran, monitor := filepath.Join(w.home, "ran"), filepath.Join(w.home, `a "monitor"`)
	testkit.Program(t, monitor, "#!/bin/sh\ntouch '"+ran+"'\nprintf 'ours\\0'\ncase $2 in ours) printf 'listed\\0';; *) printf '/\\0';; esac\n")
	w.git("config", "core.fsmonitor", `"`+strings.ReplaceAll(monitor, `"`, `\"`)+`"`)
	isTrusted := false
	w.opts.Trusted = func() bool { return isTrusted }
	w.take()
	require.NoFileExists(t, ran)
	isTrusted = true
	w.take()
	require.FileExists(t, ran)
	// The sizes differ, because git may overlook a second change within a second if the size is the
	// same.
	w.write(map[string]string{"listed": "two", "other": "two"})
	found := w.recorded(w.take())
	require.Equal(t, "two", found["listed"])
	require.Equal(t, "1", found["other"], "the program did not list the file")
	isTrusted = false
	require.Equal(t, "two", w.recorded(w.take())["other"])
}

func TestPruneToASize(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"repository": func(w *world) { w.git("init", "-q", "-b", "main") },
		"with a commit": func(w *world) {
			w.git("init", "-q", "-b", "main")
			w.commit(map[string]string{"first": noise(100_000)})
		},
		"detached": func(w *world) {
			w.git("init", "-q")
			w.commit(map[string]string{"first": noise(100_000)})
			w.git("checkout", "-q", "--detach")
		},
		"partial clone": func(w *world) {
			w.git("init", "-q", "-b", "main")
			w.commit(map[string]string{"outside/a": noise(100_000), "dir/b": "1"})
			w.git("config", "uploadpack.allowFilter", "true")
			from := w.dir
			w.dir = filepath.Join(w.home, "clone")
			w.opts.Dir = w.dir
			gitIn(w, w.home, "clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+from, w.dir)
			w.git("sparse-checkout", "set", "dir")
			w.git("checkout", "-q", "main")
		},
		"no git": func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			prepare(w)
			w.write(map[string]string{"first": noise(100_000), "large": noise(100_000)})
			var numbers []int
			for range 6 { // each adds 6,500 compressed bytes
				w.write(map[string]string{"changed": noise(10_000)})
				numbers = append(numbers, w.take().Number)
			}
			prune := func(most int64, want ...int) {
				t.Helper()
				_, err := w.PruneTo(w.Context(), most)
				require.NoError(t, err)
				list, err := w.List(w.Context())
				require.NoError(t, err)
				var left []int
				for _, c := range list {
					left = append(left, c.Number)
				}
				require.Equal(t, want, left)
			}
			prune(1_000_000, numbers...)
			prune(22_500, numbers[2:]...)
			prune(0, numbers[5])
			w.take()
		})
	}
}

// noise returns a text that hardly compresses.
func noise(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(rand.Text())
	}
	return b.String()
}

// An id that a power cut has left empty is set aside, and checkpoints go on.
func TestDamagedID(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	w.take()
	ids, err := filepath.Glob(filepath.Join(w.opts.State, "*", "id"))
	require.NoError(t, err)
	require.NotEmpty(t, ids)
	for _, id := range ids {
		require.NoError(t, os.WriteFile(id, nil, 0o600))
	}
	var log strings.Builder
	w.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.open()
	w.write(map[string]string{"a": "2"})
	assert.Equal(t, "2", w.recorded(w.take())["a"])
	assert.Contains(t, log.String(), "set aside")
	assert.FileExists(t, ids[0]+".damaged")
}

func TestNamedPipeInTheWay(t *testing.T) {
	if runtime.GOOS != "linux" {
		testkit.SkipMissing(t, "no other system says what a process waits for")
	}
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	w.take()
	ignore := filepath.Join(w.dir, ".gitignore")
	require.NoError(t, syscall.Mkfifo(ignore, 0o600))
	_, err := w.Take(t.Context(), "message")
	var pipe *git.PipeError
	require.ErrorAs(t, err, &pipe)
	assert.Equal(t, ignore, pipe.Path)
	require.NoError(t, os.Remove(ignore))
	w.write(map[string]string{"a": "2"})
	assert.Equal(t, "2", w.recorded(w.take())["a"])
}
