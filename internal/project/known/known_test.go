package known

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listIn is a list in a directory of its own, and a place for projects.
func listIn(t *testing.T) (list *List, place string) {
	t.Helper()
	place, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	list, err = Default(func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(place, "state")}[name]
	})
	require.NoError(t, err)
	return list, place
}

// makeDirs makes directories in place.
func makeDirs(t *testing.T, place string, names ...string) (paths []string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(place, name)
		require.NoError(t, os.MkdirAll(path, 0o700))
		paths = append(paths, path)
	}
	return paths
}

func roots(t *testing.T, l *List) []string {
	t.Helper()
	got, err := l.Roots()
	require.NoError(t, err)
	return got
}

func TestTheLastUsedComesFirst(t *testing.T) {
	l, place := listIn(t)
	assert.Empty(t, roots(t, l), "before there was one")
	p := makeDirs(t, place, "a", "b \"quoted\"\nü", "c")
	clock := time.Now()
	l.now = func() time.Time { return clock }
	for _, i := range []int{0, 1, 2, 0} {
		clock = clock.Add(time.Minute)
		require.NoError(t, l.Add(p[i]))
		require.NoError(t, l.Add(p[i]), "again")
	}
	assert.Equal(t, []string{p[0], p[2], p[1]}, roots(t, l))
}

func TestWhatIsGone(t *testing.T) {
	l, place := listIn(t)
	p := makeDirs(t, place, "stays", "away")
	require.NoError(t, l.Add(p[0]))
	require.NoError(t, l.Add(p[1]))
	require.NoError(t, os.Remove(p[1]))
	require.NoError(t, l.Add(p[0]))
	assert.Equal(t, p[:1], roots(t, l))
	makeDirs(t, place, "away")
	assert.ElementsMatch(t, p, roots(t, l), "its disk was away")

	require.NoError(t, os.Remove(p[1]))
	now := time.Now().Add(forgotten + time.Hour)
	l.now = func() time.Time { return now }
	require.NoError(t, l.Add(p[0]))
	makeDirs(t, place, "away")
	assert.Equal(t, p[:1], roots(t, l), "gone for long, it is forgotten")
}

func TestWhatIsNoProjectIsPassedOver(t *testing.T) {
	l, place := listIn(t)
	p := makeDirs(t, place, "a")
	require.NoError(t, l.Add(p[0]))
	for name, text := range map[string]string{"x": "relative", "y": `"relative"`, "z": "", ".new-1": fmt.Sprintf("%q", place)} {
		require.NoError(t, os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(l.dir, "d"), 0o700))
	assert.Equal(t, p, roots(t, l))
}

// A directory may have moved, with a link in its old place, or be named in several ways.
func TestADirectoryIsListedOnce(t *testing.T) {
	l, place := listIn(t)
	p := makeDirs(t, place, "old/project", "other")
	clock := time.Now()
	l.now = func() time.Time { return clock }
	add := func(root string) {
		clock = clock.Add(time.Minute)
		require.NoError(t, l.Add(root))
	}
	add(p[0])
	add(p[1])
	moved := filepath.Join(place, "new")
	require.NoError(t, os.Rename(filepath.Join(place, "old"), moved))
	if err := os.Symlink(moved, filepath.Join(place, "old")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	want := filepath.Join(moved, "project")
	assert.Equal(t, []string{p[1], want}, roots(t, l))
	add(filepath.Join(moved, "project", "..", "project"))
	assert.Equal(t, []string{want, p[1]}, roots(t, l))
	add(want)
	add(want + string(filepath.Separator))
	assert.Equal(t, []string{want, p[1]}, roots(t, l))
}

func TestManyAtOnce(t *testing.T) {
	l, place := listIn(t)
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprint(i))
	}
	p := makeDirs(t, place, names...)
	var all sync.WaitGroup
	for _, root := range append(p, p...) {
		all.Go(func() { assert.NoError(t, l.Add(root)) })
	}
	all.Wait()
	assert.ElementsMatch(t, p, roots(t, l))
}
