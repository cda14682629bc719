//go:build unix

package checkpoint_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{
		"same": "s", "modified": "1\n2\n", "deleted": "d\n", "moved": strings.Repeat("line\n", 50), "mode": "m", "type": "t", "binary": "\x00",
	})
	first := w.take()
	w.write(map[string]string{
		"modified": "1\n3\n4\n", "deleted": "", "moved": "", "new\tname": strings.Repeat("line\n", 50) + "more\n", "type": "", "binary": "\x00\x01", "added": "a\n",
	})
	w.write(map[string]string{"type": "-> same"})
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "mode"), 0o755))
	second := w.take()

	changes, err := w.Changes(t.Context(), first.ID, second.ID)
	require.NoError(t, err)
	content := make(map[string]string)
	for i := range changes {
		c := &changes[i]
		for _, blob := range []*string{&c.OldBlob, &c.NewBlob} {
			if *blob != "" {
				text, err := w.Read(t.Context(), *blob)
				require.NoError(t, err)
				content[*blob], *blob = string(text), string(text)
			}
		}
	}
	const file, executable, link = 0o100644, 0o100755, 0o120000
	moved := strings.Repeat("line\n", 50)
	assert.Equal(t, []checkpoint.Change{
		{Kind: checkpoint.Added, Path: "added", NewMode: file, NewBlob: "a\n", NewSize: 2, AddedLines: 1},
		{Kind: checkpoint.Modified, Path: "binary", OldPath: "binary", OldMode: file, NewMode: file, OldBlob: "\x00", NewBlob: "\x00\x01", OldSize: 1, NewSize: 2, Binary: true},
		{Kind: checkpoint.Deleted, Path: "deleted", OldPath: "deleted", OldMode: file, OldBlob: "d\n", OldSize: 2, DeletedLines: 1},
		{Kind: checkpoint.ModeChanged, Path: "mode", OldPath: "mode", OldMode: file, NewMode: executable, OldBlob: "m", NewBlob: "m", OldSize: 1, NewSize: 1},
		{Kind: checkpoint.Modified, Path: "modified", OldPath: "modified", OldMode: file, NewMode: file, OldBlob: "1\n2\n", NewBlob: "1\n3\n4\n", OldSize: 4, NewSize: 6, AddedLines: 2, DeletedLines: 1},
		{Kind: checkpoint.Renamed, Path: "new\tname", OldPath: "moved", OldMode: file, NewMode: file, OldBlob: moved, NewBlob: moved + "more\n", OldSize: 250, NewSize: 255, AddedLines: 1},
		{Kind: checkpoint.TypeChanged, Path: "type", OldPath: "type", OldMode: file, NewMode: link, OldBlob: "t", NewBlob: "same", OldSize: 1, NewSize: 4, AddedLines: 1, DeletedLines: 1},
	}, changes)

	for _, id := range []checkpoint.ID{"", "HEAD", "--output=x", checkpoint.ID(strings.Repeat("0", 40))} {
		_, err := w.Changes(t.Context(), first.ID, id)
		assert.ErrorIs(t, err, checkpoint.ErrUnknown)
		_, err = w.Read(t.Context(), string(id))
		assert.ErrorIs(t, err, checkpoint.ErrUnknown)
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("big ", 1<<20)
	for name, c := range map[string]struct {
		to, from, disk map[string]string // disk is written after the checkpoint from
		paths          []string
		partial        bool
		want           map[string]string
		conflicts      []string
	}{
		"everything": {
			to: map[string]string{"a": "1", "b": "2", "c/d": "3"}, from: map[string]string{"a": "x", "b": "", "new/file": "n"},
			want: map[string]string{"a": "1", "b": "2", "c/d": "3"},
		},
		"large files": {
			to: map[string]string{"a": big + "a", "b": big + "b"}, from: map[string]string{"a": "", "b": "x"},
			want: map[string]string{"a": big + "a", "b": big + "b"},
		},
		"some files": {
			to: map[string]string{"a": "1", "b": "2", "c/d": "3", "cc": "4"}, from: map[string]string{"a": "x", "b": "x", "c/d": "x", "cc": "x"}, paths: []string{"b", "c/d"},
			want: map[string]string{"a": "x", "b": "2", "c/d": "3", "cc": "x"},
		},
		"a file in the place of a directory with other files": {
			to: map[string]string{"a": "1"}, from: map[string]string{"a": "", "a/b": "b", "a/mine": "mine"}, paths: []string{"a", "a/b"}, partial: true,
			want: map[string]string{"a/b": "b", "a/mine": "mine"}, conflicts: []string{"a", "a/b"},
		},
		"no files": {
			to: map[string]string{"a": "1"}, from: map[string]string{"a": "x"}, paths: []string{},
			want: map[string]string{"a": "x"},
		},
		"an edit since": {
			to: map[string]string{"a": "1", "b": "2"}, from: map[string]string{"a": "x", "b": "x"}, disk: map[string]string{"b": "edited"},
			want: map[string]string{"a": "x", "b": "edited"}, conflicts: []string{"b"},
		},
		"an edit since, in part": {
			to: map[string]string{"a": "1", "b": "2"}, from: map[string]string{"a": "x", "b": "x"}, disk: map[string]string{"b": "edited"}, partial: true,
			want: map[string]string{"a": "1", "b": "edited"}, conflicts: []string{"b"},
		},
		"an edit of a file that neither restores": {
			to: map[string]string{"a": "1", "b": "2"}, from: map[string]string{"a": "x"}, disk: map[string]string{"b": "edited"},
			want: map[string]string{"a": "1", "b": "edited"},
		},
		"restored already": {
			to: map[string]string{"a": "1", "b": "2"}, from: map[string]string{"a": "x", "b": ""}, disk: map[string]string{"a": "1"},
			want: map[string]string{"a": "1", "b": "2"},
		},
		"deleted since": {
			to: map[string]string{"a": "1"}, from: map[string]string{"a": "x"}, disk: map[string]string{"a": ""},
			want: map[string]string{}, conflicts: []string{"a"},
		},
		"created since": {
			to: map[string]string{"a": "1"}, from: map[string]string{"a": ""}, disk: map[string]string{"a": "mine"},
			want: map[string]string{"a": "mine"}, conflicts: []string{"a"},
		},
		"an ignored file in the place of a file": {
			to: map[string]string{"a": "1"}, from: map[string]string{"a": "", ".gitignore": "a\n"}, disk: map[string]string{"a": "mine"}, paths: []string{"a"},
			want: map[string]string{"a": "mine", ".gitignore": "a\n"}, conflicts: []string{"a"},
		},
		"an ignored file in a directory that goes": {
			to: map[string]string{".gitignore": "i\n"}, from: map[string]string{"d/a": "1"}, disk: map[string]string{"d/i": "mine"},
			want: map[string]string{".gitignore": "i\n", "d/i": "mine"},
		},
		"a directory for a file": {
			to: map[string]string{"a": "1"}, from: map[string]string{"a": "", "b": "b"}, disk: nil,
			want: map[string]string{"a": "1"},
		},
		"a file becomes a directory again": {
			to: map[string]string{"d/e/f": "1", "d/g": "2"}, from: map[string]string{"d": ""}, disk: map[string]string{},
			want: map[string]string{"d/e/f": "1", "d/g": "2"},
		},
		"a link since": {
			to: map[string]string{"a": "1"}, from: map[string]string{"a": "x"}, disk: map[string]string{"a": "-> ../outside"},
			want: map[string]string{"a": "-> ../outside"}, conflicts: []string{"a"},
		},
		"a link with the wanted content behind it": {
			to: map[string]string{"a": "1", "b": "x"}, from: map[string]string{"a": "x"}, disk: map[string]string{"a": "-> b"},
			want: map[string]string{"a": "-> b", "b": "x"}, conflicts: []string{"a"},
		},
		"links": {
			to: map[string]string{"a": "-> somewhere", "b": "-> 1"}, from: map[string]string{"b": "-> 2"},
			want: map[string]string{"a": "-> somewhere", "b": "-> 1"},
		},
		"a special file since": {
			to: map[string]string{"a": "1"}, from: map[string]string{"a": "x"}, disk: map[string]string{"a": "fifo"},
			want: map[string]string{}, conflicts: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write(map[string]string{"../outside/kept": "outside"})
			w.write(c.to)
			to := w.take()
			w.write(c.from)
			from := w.take()
			for name, text := range c.disk {
				if text == "fifo" {
					w.write(map[string]string{name: ""})
					require.NoError(t, syscall.Mkfifo(filepath.Join(w.dir, name), 0o600))
				} else {
					w.write(map[string]string{name: text})
				}
			}
			done, err := w.Restore(t.Context(), from.ID, to.ID, checkpoint.RestoreOptions{Paths: c.paths, Partial: c.partial})
			var conflicts []string
			for _, conflict := range done.Conflicts {
				conflicts = append(conflicts, conflict.Path)
			}
			assert.Equal(t, c.conflicts, conflicts)
			if c.conflicts != nil && !c.partial {
				var all *checkpoint.ConflictError
				require.ErrorAs(t, err, &all)
				assert.Equal(t, done.Conflicts, all.Conflicts)
				assert.Empty(t, done.Written, done.Removed)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, c.want, testkit.ReadFiles(t, w.dir))
			assert.Equal(t, map[string]string{"kept": "outside"}, testkit.ReadFiles(t, filepath.Join(w.home, "outside")))
		})
	}
}

// Restore does not write through a link that replaced a directory.
func TestRestoreFollowsNoLink(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"../outside", "inside", "."} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.write(map[string]string{"d/a": "1", "d/b": "2", "d/c": "3", "inside/z": "z", "../outside/z": "z"})
			first := w.take()
			w.write(map[string]string{"d/a": "x", "d/b": "", "d/n": "n"})
			second := w.take()
			for _, copied := range []string{"../outside/", "inside/", ""} { // has the content of the directory
				w.write(map[string]string{copied + "a": "x", copied + "c": "3", copied + "n": "n"})
			}
			w.write(map[string]string{"d": ""})
			w.write(map[string]string{"d": "-> " + target})
			before := testkit.ReadFiles(t, w.home)
			done, err := w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{Partial: true})
			require.NoError(t, err)
			assert.Len(t, done.Conflicts, 3)
			for name, text := range testkit.ReadFiles(t, w.home) {
				if !strings.HasPrefix(name, "state/") {
					assert.Equal(t, before[name], text, name)
				}
			}
		})
	}
}

func TestRestoreSwapsFilesAndDirectories(t *testing.T) {
	t.Parallel()
	kinds := []map[string]string{
		{"x": "file"}, {"x": "-> link"}, {"x/a": "1"}, {"x/a/b": "2", "x/c": "3"}, {"x/a": "-> ../y"}, {},
	}
	w := newWorld(t)
	w.write(map[string]string{"y": "y"})
	var taken []checkpoint.Checkpoint
	for _, kind := range kinds {
		w.write(map[string]string{"x": ""})
		w.write(kind)
		taken = append(taken, w.take())
	}
	at := taken[len(taken)-1]
	for _, next := range []int{0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0, 2, 4, 0, 3, 0, 5, 1, 3, 1, 4, 1, 5, 2, 5, 3, 5, 0} {
		_, err := w.Restore(t.Context(), at.ID, taken[next].ID, checkpoint.RestoreOptions{})
		require.NoError(t, err)
		want := maps.Clone(kinds[next])
		want["y"] = "y"
		assert.Equal(t, want, testkit.ReadFiles(t, w.dir))
		at = taken[next]
	}

	require.NoError(t, os.Remove(filepath.Join(w.dir, "x")))
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "x", "empty", "too"), 0o755))
	_, err := w.Restore(t.Context(), taken[5].ID, taken[0].ID, checkpoint.RestoreOptions{})
	require.NoError(t, err, "empty directories stop no restore")
	assert.Equal(t, map[string]string{"x": "file", "y": "y"}, testkit.ReadFiles(t, w.dir))
}

func TestRestoreKeepsPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(map[string]string{"a": "1", "b": "1", "c": "1"})
	mode := func(name string, mode os.FileMode) { require.NoError(t, os.Chmod(filepath.Join(w.dir, name), mode)) }
	mode("a", 0o640)
	mode("b", 0o755)
	mode("c", 0o600)
	first := w.take()
	w.write(map[string]string{"a": "2"})
	mode("b", 0o600)
	mode("c", 0o700)
	second := w.take()
	_, err := w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
	require.NoError(t, err)
	for name, want := range map[string]os.FileMode{"a": 0o640, "b": 0o700, "c": 0o600} {
		info, err := os.Stat(filepath.Join(w.dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), name)
	}
}

// After random edits each checkpoint has the files of the model, and a restore of any checkpoint
// brings them back. Edits of ignored files stay.
func TestRandomEdits(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	if testkit.Soak {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			w := newRepository(t, map[string]string{".gitignore": "*.tmp\n"})
			names := []string{"a", "b.tmp", "d", "d/x", "d/y.tmp", "d/e/z", "d/e", "f/g/h", "f/g", "sp ace", "new\nline", "\xff"}
			model := map[string]string{".gitignore": "*.tmp\n"}
			kept := func() map[string]string { // the files of a checkpoint
				recorded := maps.Clone(model)
				maps.DeleteFunc(recorded, func(name, _ string) bool { return strings.HasSuffix(name, ".tmp") })
				return recorded
			}
			type state struct {
				checkpoint.Checkpoint
				files map[string]string
			}
			var states []state
			edit := func() {
				name := names[random.IntN(len(names))]
				for other := range model { // the edit removes the files in its way
					if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") || other == name {
						delete(model, other)
						w.write(map[string]string{other: ""})
					}
				}
				w.write(map[string]string{name: ""})
				if random.IntN(4) > 0 {
					model[name] = fmt.Sprint(random.IntN(5)) + strings.Repeat("\r\nline", random.IntN(3))
					if random.IntN(5) == 0 {
						model[name] = "-> " + model[name]
					}
					w.write(map[string]string{name: model[name]})
					if !strings.HasPrefix(model[name], "-> ") && random.IntN(5) == 0 {
						require.NoError(t, os.Chmod(filepath.Join(w.dir, name), 0o755))
						model[name] = "x " + model[name]
					}
				}
			}
			for range 25 {
				for range random.IntN(5) {
					edit()
				}
				require.Equal(t, model, testkit.ReadFiles(t, w.dir))
				now := state{w.take(), kept()}
				states = append(states, now)
				require.Equal(t, now.files, w.recorded(now.Checkpoint))
				if random.IntN(3) > 0 {
					continue
				}
				back := states[random.IntN(len(states))]
				_, err := w.Restore(t.Context(), now.ID, back.ID, checkpoint.RestoreOptions{})
				var conflict *checkpoint.ConflictError
				if assert.ObjectsAreEqual(err, nil) {
					for name := range kept() {
						delete(model, name)
					}
					maps.Copy(model, back.files)
				} else {
					require.ErrorAs(t, err, &conflict, "an ignored file is in the way")
					require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(model)), func(name string) bool { return strings.HasSuffix(name, ".tmp") }))
				}
				require.Equal(t, model, testkit.ReadFiles(t, w.dir))
			}
			w.git("fsck", "--strict")
		})
	}
}
