package trigger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const patience = time.Minute

func write(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, file := range files {
		name := filepath.Join(dir, filepath.FromSlash(file))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(time.Now().String()), 0o644))
	}
}

// watching starts a watcher and waits until it watches everything: it has received a change of its
// own file, which no spec matches.
func watching(t *testing.T, opts watchOptions) *watcher {
	t.Helper()
	w := startWatch(context.Background(), opts)
	t.Cleanup(w.Close)
	stop := time.After(patience)
	for n := 0; w.Status().Received == 0 && w.Status().Problem == ""; n++ {
		write(t, opts.Root, fmt.Sprintf("probe-%d.probe", n))
		select {
		case <-stop:
			t.Fatal("nothing is watched")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return w
}

func next(t *testing.T, w *watcher) changeBatch {
	t.Helper()
	select {
	case b := <-w.Batches:
		return b
	case <-time.After(patience):
		t.Fatal("no batch came")
		return changeBatch{}
	}
}

// until collects batches until n different files were reported.
func until(t *testing.T, w *watcher, files int) (paths map[string]bool) {
	t.Helper()
	paths = make(map[string]bool)
	for len(paths) < files {
		for _, p := range next(t, w).Paths {
			paths[p] = true
		}
	}
	return paths
}

func watchedSpec(s watchSpec) watchSpec {
	s.ID, s.Debounce = "t", 100*time.Millisecond
	s.Ignore = append(s.Ignore, "*.probe")
	return s
}

func TestChangesOfFilesAreTold(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "there.go", "sub/old.go", "node_modules/x/y.go", ".git/config", ".gitignore", "docs/a.md")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("build/\n*.log\n!keep.log\n"), 0o644))
	w := watching(t, watchOptions{Root: dir, Exclude: []string{filepath.Join(dir, "state")}, Specs: []watchSpec{watchedSpec(watchSpec{})}})
	write(t, dir, "node_modules/x/z.go", ".git/HEAD", "state/db", "build/out", "x.log", "keep.log", "there.go", "deep/er/new.go", "sub/old.go")
	paths := until(t, w, 4)
	for _, want := range []string{"keep.log", "there.go", "deep/er/new.go", "sub/old.go"} {
		assert.True(t, paths[want], want)
	}
	write(t, dir, "deep/er/est/more.go") // in a directory created after the start
	assert.True(t, until(t, w, 1)["deep/er/est/more.go"])
	require.NoError(t, os.Remove(filepath.Join(dir, "there.go")))
	b := next(t, w)
	for b.Deleted == 0 { // on a slow machine the changes arrive in parts
		b = next(t, w)
	}
	assert.Contains(t, b.Paths, "there.go")
	// Newly ignored files are not reported.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "deep", ".gitignore"), []byte("er/\n"), 0o644))
	assert.True(t, until(t, w, 1)["deep/.gitignore"])
	write(t, dir, "deep/er/new.go", "deep/seen.go")
	for seen := false; !seen; {
		b = next(t, w)
		assert.NotContains(t, b.Paths, "deep/er/new.go")
		seen = slices.Contains(b.Paths, "deep/seen.go")
	}
}

func TestASpecSaysWhatItIsFor(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "src/a.go", "src/a.txt", "other/a.go", "README.md")
	w := watching(t, watchOptions{Root: dir, Specs: []watchSpec{watchedSpec(watchSpec{Paths: []string{"src/", "*.md"}, Extensions: []string{".go", ".md"}, Ignore: []string{"testdata/"}, Kinds: []changeKind{changeModify}})}})
	write(t, dir, "src/a.txt", "other/a.go", "src/testdata/a.go", "src/a.go", "README.md")
	assert.Equal(t, map[string]bool{"src/a.go": true, "README.md": true}, until(t, w, 2))
}

// Editors write a new file and rename it: that modifies the existing file.
func TestAFileThatIsReplacedIsModified(t *testing.T) { synctest.Test(t, testReplaced) }

func testReplaced(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.go")
	events := make(chan fsnotify.Event)
	w := startWatch(context.Background(), watchOptions{Root: dir, Specs: []watchSpec{watchedSpec(watchSpec{})}, system: func() (notifier, <-chan fsnotify.Event, <-chan error, error) {
		return silent{}, events, nil, nil
	}})
	defer w.Close()
	tell := func(file string, op fsnotify.Op) {
		events <- fsnotify.Event{Name: filepath.Join(dir, file), Op: op}
	}
	tell("nothing", fsnotify.Write) // the watcher is running
	for _, seen := range []bool{true, false} {
		write(t, dir, "a.go.tmp")
		if seen {
			tell("a.go.tmp", fsnotify.Create)
			tell("a.go.tmp", fsnotify.Write)
		}
		require.NoError(t, os.Rename(filepath.Join(dir, "a.go.tmp"), filepath.Join(dir, "a.go")))
		if !seen { // the notification arrives after the deletion
			tell("a.go.tmp", fsnotify.Create)
		}
		tell("a.go.tmp", fsnotify.Rename)
		tell("a.go", fsnotify.Create)
		b := next(t, w)
		assert.Equal(t, []any{[]string{"a.go"}, 1, 1}, []any{b.Paths, b.Count, b.Modified}, seen)
	}
}

// Changes made before the start are reported once.
func TestWhatWasMissedIsTold(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "before.go", "after.go")
	since := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "before.go"), since.Add(-time.Minute), since.Add(-time.Minute)))
	for _, kinds := range [][]changeKind{nil, {changeCreate}, {changeModify}} {
		w := startWatch(context.Background(), watchOptions{Root: dir, Specs: []watchSpec{watchedSpec(watchSpec{Since: since, Kinds: kinds})}})
		b := next(t, w)
		assert.Equal(t, []string{"after.go"}, b.Paths)
		w.Close()
	}
}

func TestManyFilesAreOneBatch(t *testing.T) {
	p := newPending(watchedSpec(watchSpec{}))
	start := time.Now()
	for i := range 20_000 {
		for range 2 {
			p.note(fmt.Sprintf("dir/%d", i), changeModify, start.Add(time.Duration(i)*time.Microsecond))
		}
	}
	last := start.Add(19_999 * time.Microsecond)
	assert.Equal(t, last.Add(100*time.Millisecond), p.due())
	b, ok := p.take()
	require.True(t, ok)
	assert.Equal(t, []any{20_000, 20_000, 100}, []any{b.Count, b.Modified, len(b.Paths)})
	assert.Equal(t, last, b.Last)
	_, ok = p.take()
	assert.False(t, ok)
	for i := range mostFiles + 500 {
		p.note(fmt.Sprintf("dir/%d", i), changeCreate, start)
	}
	assert.Len(t, p.became, mostFiles)
	b, _ = p.take()
	assert.Equal(t, mostFiles+500, b.Count)
}

// The same with existing files.
func TestThousandsOfFilesAreToldAtOnce(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		write(t, dir, fmt.Sprintf("d%d/first", i))
	}
	s := watchedSpec(watchSpec{})
	s.Debounce = 100 * time.Millisecond
	w := watching(t, watchOptions{Root: dir, Specs: []watchSpec{s}})
	for i := range manyFiles {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("d%d/f%d", i%20, i)), nil, 0o644))
	}
	reported := 0
	for reported < manyFiles {
		reported += next(t, w).Count
	}
	assert.GreaterOrEqual(t, reported, manyFiles)
}

func TestAStreamOfChangesIsToldAllTheSame(t *testing.T) {
	p := newPending(watchedSpec(watchSpec{}))
	start := time.Now()
	for i := range 1000 {
		p.note("a", changeModify, start.Add(time.Duration(i)*50*time.Millisecond))
	}
	assert.Equal(t, start.Add(longestWait), p.due())
}

func TestWhatCameAndWentIsNotTold(t *testing.T) {
	now := time.Now()
	p := newPending(watchedSpec(watchSpec{}))
	for _, kind := range []changeKind{changeCreate, changeModify, changeDelete} {
		p.note("gone", kind, now)
	}
	_, ok := p.take()
	assert.False(t, ok)
	p.note("gone", changeCreate, now)
	p.note("gone", changeDelete, now)
	p.note("gone", changeCreate, now)
	p.note("new", changeDelete, now)
	p.note("new", changeCreate, now)
	b, ok := p.take()
	require.True(t, ok)
	assert.Equal(t, []any{2, 1, 1, 0}, []any{b.Count, b.Created, b.Modified, b.Deleted})
}

// A build creates and deletes many files before it writes its output.
func TestWhatStaysBehindManyFilesThatCameAndWentIsTold(t *testing.T) {
	now := time.Now()
	p := newPending(watchedSpec(watchSpec{}))
	comeAndGo := func(n int) {
		for i := range n {
			p.note(fmt.Sprintf("tmp/%d", i), changeCreate, now)
			p.note(fmt.Sprintf("tmp/%d", i), changeDelete, now)
		}
	}
	comeAndGo(2 * mostPaths)
	p.note("made", changeModify, now)
	b, ok := p.take()
	require.True(t, ok)
	assert.Equal(t, []any{1, []string{"made"}}, []any{b.Count, b.Paths})

	// More than the limit.
	comeAndGo(mostFiles)
	_, ok = p.take()
	assert.False(t, ok)
	comeAndGo(mostFiles)
	p.note("made", changeModify, now)
	b, ok = p.take()
	require.True(t, ok)
	assert.Equal(t, []any{1, []string{"."}}, []any{b.Count, b.Paths})

	p = newPending(watchedSpec(watchSpec{Kinds: []changeKind{changeDelete}}))
	for i := range 2 * mostPaths {
		p.note(fmt.Sprintf("src/%d", i), changeModify, now)
	}
	p.note("gone", changeDelete, now)
	b, ok = p.take()
	require.True(t, ok)
	assert.Equal(t, []any{1, []string{"gone"}}, []any{b.Count, b.Paths})
}

// limited is a system with a limit of watched directories.
type limited struct {
	notifier
	mu   sync.Mutex
	left int
}

func (l *limited) Add(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return fmt.Errorf("watching %s: %w", dir, syscall.ENOSPC)
	}
	l.left--
	return l.notifier.Add(dir)
}

func TestALimitOfTheSystemIsTold(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/x", "b/x", "c/x", "d/e/x", "top")
	w := startWatch(context.Background(), watchOptions{Root: dir, Specs: []watchSpec{watchedSpec(watchSpec{})}, system: func() (notifier, <-chan fsnotify.Event, <-chan error, error) {
		n, events, errs, err := ofSystem()
		return &limited{notifier: n, left: 3}, events, errs, err
	}})
	defer w.Close()
	stop := time.After(patience)
	for w.Status().Problem == "" {
		select {
		case <-stop:
			t.Fatal("no limit is reported")
		case <-time.After(time.Millisecond):
		}
	}
	assert.Equal(t, 3, w.Status().Directories)
	assert.Contains(t, w.Status().Problem, "2 directories are not watched")
	assert.Contains(t, w.Status().Problem, "fs.inotify.max_user_watches")
	write(t, dir, "top") // existing watches stay
	assert.True(t, until(t, w, 1)["top"])

	none := startWatch(context.Background(), watchOptions{Root: dir, Specs: []watchSpec{watchedSpec(watchSpec{})}, system: func() (notifier, <-chan fsnotify.Event, <-chan error, error) {
		return nil, nil, nil, os.NewSyscallError("inotify_init1", syscall.EMFILE)
	}})
	none.ended.Wait()
	assert.Contains(t, none.Status().Problem, "fs.inotify.max_user_instances")
}

// After an overflow, the watcher searches for changed files.
func TestChangesThatTheSystemLeavesOutAreLookedFor(t *testing.T) { synctest.Test(t, testOverflow) }

func testOverflow(t *testing.T) {
	dir := t.TempDir()
	events, errs := make(chan fsnotify.Event), make(chan error)
	w := startWatch(context.Background(), watchOptions{Root: dir, Specs: []watchSpec{watchedSpec(watchSpec{})}, system: func() (notifier, <-chan fsnotify.Event, <-chan error, error) {
		return silent{}, events, errs, nil
	}})
	defer w.Close()
	events <- fsnotify.Event{Name: filepath.Join(dir, "nothing"), Op: fsnotify.Write} // the watcher is running
	write(t, dir, "a", "b/c")
	errs <- fsnotify.ErrEventOverflow
	b := next(t, w)
	assert.ElementsMatch(t, []string{"a", "b/c"}, b.Paths)
	errs <- errors.New("odd")
	events <- fsnotify.Event{}
	assert.Equal(t, "odd", w.Status().Problem)
}

type silent struct{}

func (silent) Add(string) error    { return nil }
func (silent) Remove(string) error { return nil }
func (silent) Close() error        { return nil }

func TestOnlyDirectoriesThatMatterAreWatched(t *testing.T) {
	for _, c := range []struct {
		dir, pattern string
		leads        bool
	}{
		{"src", "src/", true},
		{"src/a/b", "src", true},
		{"src", "src/a/*.go", true},
		{"src/b", "src/a/*.go", false},
		{"docs", "src/", false},
		{"docs", "*.md", true},
		{"docs/a", "**/x", true},
		{"s", "src", false},
		{"src", "src/*/x", true},
		{"srcs", "src", false},
	} {
		assert.Equal(t, c.leads, leadsTo(c.dir, c.pattern), "%s %s", c.dir, c.pattern)
	}
	if runtime.GOOS == "windows" {
		return
	}
	dir := t.TempDir()
	write(t, dir, "src/a/x.go", "vendor/b/x.go")
	w := watching(t, watchOptions{Root: dir, Specs: []watchSpec{watchedSpec(watchSpec{Paths: []string{"src/"}})}})
	assert.Equal(t, 3, w.Status().Directories)
}

// The cost of a project's ignore files is limited.
func TestLinesOfIgnoreFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	lines := strings.Repeat("*.ignored\n", mostIgnoreLines)
	for i := range 6 {
		write(t, dir, fmt.Sprintf("%d/x", i))
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i), ".gitignore"), []byte(lines), 0o600))
	}
	tr := &tree{
		root: dir, add: func(string) error { return nil }, remove: func(string) {}, wanted: func(string) bool { return true },
		ignores: make(map[string]list), files: make(map[uint64]struct{}),
	}
	walk := func() { tr.walk(".", func() bool { return false }, func(string, fs.DirEntry) {}) }
	walk()
	assert.Equal(t, mostPatterns, tr.patterns)
	assert.Equal(t, 2*mostIgnoreLines, tr.unread)
	assert.Contains(t, tr.problem(), "lines of .gitignore files are not heeded")
	for i := range 6 {
		tr.forget(fmt.Sprint(i))
	}
	assert.Zero(t, tr.patterns, "what is gone makes room")
}
