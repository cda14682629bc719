package origin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func newKey(t *testing.T) Key {
	t.Helper()
	key, err := LoadKey(env("XDG_STATE_HOME", filepath.Join(t.TempDir(), "state")))
	require.NoError(t, err)
	return key
}

// made is a place with a database that was made there.
func made(t *testing.T, key Key) (Place, string) {
	t.Helper()
	p := At(filepath.Join(t.TempDir(), "duet.db"), key)
	require.NoError(t, os.WriteFile(p.path+".new", []byte("content"), 0o600))
	id := NewID()
	require.NoError(t, p.Install(p.path+".new", id))
	require.NoError(t, p.Seal(id, Finding{}))
	return p, id
}

// noID is for databases whose id is not to be asked for.
func noID(t *testing.T) func() (string, error) {
	return func() (string, error) { t.Error("the database was read"); return "", nil }
}

func says(id string) func() (string, error) { return func() (string, error) { return id, nil } }

func TestKinds(t *testing.T) {
	key := newKey(t)
	for name, c := range map[string]struct {
		change func(t *testing.T, p Place) Place
		id     string // that the database says; "": it is not asked; "=": its own
		want   Kind
	}{
		"as it was": {func(_ *testing.T, p Place) Place { return p }, "", Ours},
		"none": {func(t *testing.T, p Place) Place {
			require.NoError(t, os.Remove(p.path))
			return p
		}, "", None},
		"no mark": {func(t *testing.T, p Place) Place {
			require.NoError(t, os.Remove(p.markPath()))
			return p
		}, "", Foreign},
		"another key": {func(t *testing.T, p Place) Place { return At(p.path, newKey(t)) }, "", Foreign},
		"no key":      {func(_ *testing.T, p Place) Place { return At(p.path, Key{}) }, "", Foreign},
		"a mark that was changed": {func(t *testing.T, p Place) Place {
			text, err := os.ReadFile(p.markPath())
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(p.markPath(), []byte(strings.Replace(string(text), `"inode": `, `"inode": 1`, 1)), 0o600))
			return p
		}, "", Foreign},
		"a mark that is none": {func(t *testing.T, p Place) Place {
			require.NoError(t, os.WriteFile(p.markPath(), []byte("{"), 0o600))
			return p
		}, "", Foreign},
		"moved": {func(t *testing.T, p Place) Place { return moved(t, p) }, "", Moved},
		"moved, and there is another one now": {func(t *testing.T, p Place) Place {
			q := moved(t, p)
			require.NoError(t, os.MkdirAll(filepath.Dir(p.path), 0o700))
			require.NoError(t, os.WriteFile(p.path, nil, 0o600))
			return q
		}, "", Copied},
		"a copy": {func(t *testing.T, p Place) Place { return copied(t, p, filepath.Dir(p.path)+"2") }, "=", Copied},
		"another file in its place": {func(t *testing.T, p Place) Place {
			return copied(t, p, filepath.Dir(p.path))
		}, "=", Copied},
		"another database in its place": {func(t *testing.T, p Place) Place {
			return copied(t, p, filepath.Dir(p.path))
		}, "theirs", Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			p, id := made(t, key)
			p = c.change(t, p)
			read := says(c.id)
			switch c.id {
			case "":
				read = noID(t)
			case "=":
				read = says(id)
			}
			found, err := p.Look(read)
			require.NoError(t, err)
			assert.Equal(t, c.want, found.Kind)
			assert.Empty(t, found.Strange)
			if c.want != None && c.want != Foreign {
				assert.Equal(t, id, found.ID)
			}
		})
	}
}

// moved moves a database with its directory.
func moved(t *testing.T, p Place) Place {
	t.Helper()
	dir := filepath.Dir(p.path)
	require.NoError(t, os.Rename(dir, dir+"2"))
	return At(filepath.Join(dir+"2", filepath.Base(p.path)), p.key)
}

// copied makes other files of the same content in dir.
func copied(t *testing.T, p Place, dir string) Place {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	to := At(filepath.Join(dir, filepath.Base(p.path)), p.key)
	for _, suffix := range []string{"", ".origin"} {
		content, err := os.ReadFile(p.path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(to.path+suffix))
		require.NoError(t, os.WriteFile(to.path+suffix, content, 0o600))
	}
	return to
}

// With the user's own key two files are not the same one because they have the
// same inode, one after the other.
func TestAFileIsKnownByItsBirth(t *testing.T) {
	a := fileID{Inode: 1, Born: 2}
	assert.True(t, a.is(a))
	assert.False(t, a.is(fileID{Inode: 1, Born: 3}))
	assert.False(t, a.is(fileID{Inode: 2, Born: 2}))
	assert.True(t, a.is(fileID{Inode: 1}), "where it is not known")
	assert.False(t, fileID{}.is(fileID{}))
}

func TestAKeyOfTheEnvironment(t *testing.T) {
	key, err := LoadKey(env(KeyVariable, "0123456789abcdef"))
	require.NoError(t, err)
	p, id := made(t, key)
	p = copied(t, p, filepath.Dir(p.path))
	found, err := p.Look(says(id))
	require.NoError(t, err)
	assert.Equal(t, Ours, found.Kind, "the key, the place and the database are the same")
	found, err = p.Look(says("theirs"))
	require.NoError(t, err)
	assert.Equal(t, Foreign, found.Kind)
	require.NoError(t, os.WriteFile(p.path+"-wal", []byte("log"), 0o600))
	found, err = p.Look(says(id))
	require.NoError(t, err)
	assert.Equal(t, Copied, found.Kind, "who knows whose log that is")

	other := copied(t, p, filepath.Dir(p.path)+"2")
	found, err = other.Look(says(id))
	require.NoError(t, err)
	assert.Equal(t, Copied, found.Kind)

	_, err = LoadKey(env(KeyVariable, "0123456789abcde"))
	require.ErrorContains(t, err, "at least 16")
	assert.NotContains(t, err.Error(), "0123456789abcde")
}

func TestFilesBesideADatabase(t *testing.T) {
	key := newKey(t)
	p, id := made(t, key)
	require.NoError(t, os.WriteFile(p.path+"-wal", []byte("log"), 0o600)) // the one that Seal has made
	found, err := p.Look(noID(t))
	require.NoError(t, err)
	assert.Empty(t, found.Strange)

	require.NoError(t, os.Remove(p.path+"-wal"))
	require.NoError(t, os.WriteFile(p.path+"-wal", []byte("theirs"), 0o600))
	require.NoError(t, os.WriteFile(p.path+"-journal", []byte("theirs"), 0o600))
	found, err = p.Look(noID(t))
	require.NoError(t, err)
	assert.Equal(t, Ours, found.Kind)
	assert.Equal(t, []string{p.path + "-wal", p.path + "-journal"}, found.Strange)
	now := time.Unix(1e9, 0)
	dir, err := p.SetStrangeAside(now, found.Strange)
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(dir, "duet.db-wal"))
	assert.NoFileExists(t, p.path+"-wal")
	assert.FileExists(t, p.path)

	// Without a database nothing beside it counts.
	require.NoError(t, p.Seal(id, found))
	require.NoError(t, os.Remove(p.path))
	require.NoError(t, os.WriteFile(p.path+"-wal", []byte("log"), 0o600))
	found, err = p.Look(noID(t))
	require.NoError(t, err)
	assert.Equal(t, None, found.Kind)
	assert.Equal(t, []string{p.path + "-wal"}, found.Strange)

	// Nothing is overwritten.
	require.NoError(t, os.WriteFile(p.path, nil, 0o600))
	again, err := p.SetAside(now)
	require.NoError(t, err)
	assert.NotEqual(t, dir, again)
	assert.Equal(t, []string{filepath.Join(again, "duet.db")}, p.Aside())
	at, err := p.Taken(filepath.Join(again, "duet.db"))
	require.NoError(t, err)
	assert.FileExists(t, at)
	assert.Empty(t, p.Aside())
}

// A process that dies between the mark and the name has not lost anything.
func TestWhatWasBegunIsFinished(t *testing.T) {
	key := newKey(t)
	p, _ := made(t, key)
	made := p.path + ".new"
	require.NoError(t, os.WriteFile(made, nil, 0o600))
	_, finished := p.Finish(made)
	assert.False(t, finished, "it was not marked")
	file, _, err := look(made)
	require.NoError(t, err)
	require.NoError(t, key.writeMark(p.markPath(), mark{ID: "new", Path: p.path, File: file}))
	require.NoError(t, os.Remove(p.path))
	id, finished := p.Finish(made)
	assert.True(t, finished)
	assert.Equal(t, "new", id)
	found, err := p.Look(noID(t))
	require.NoError(t, err)
	assert.Equal(t, Ours, found.Kind)
}

func TestAMoveThatIsUnderWay(t *testing.T) {
	p, id := made(t, newKey(t))
	p = moved(t, p)
	found, err := p.Look(noID(t))
	require.NoError(t, err)
	require.NoError(t, p.SealMoving(found))
	found, err = p.Look(noID(t))
	require.NoError(t, err)
	assert.Equal(t, Moved, found.Kind)
	require.NoError(t, p.Seal(id, found))
	found, err = p.Look(noID(t))
	require.NoError(t, err)
	assert.Equal(t, Ours, found.Kind)
}

func TestOneKeyOfMany(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	_, err := FindKey(env("XDG_STATE_HOME", state))
	require.ErrorIs(t, err, ErrNoKey)
	require.NoDirExists(t, state)
	keys := make([]Key, 16)
	var begun sync.WaitGroup
	for i := range keys {
		begun.Go(func() {
			var err error
			keys[i], err = LoadKey(env("XDG_STATE_HOME", state))
			assert.NoError(t, err)
		})
	}
	begun.Wait()
	for _, key := range keys {
		assert.Len(t, key.secret, keyBytes)
		assert.Equal(t, keys[0], key)
	}
	found, err := FindKey(env("XDG_STATE_HOME", state))
	require.NoError(t, err)
	assert.Equal(t, keys[0], found)
	if runtime.GOOS != "windows" {
		for path, want := range map[string]fs.FileMode{state + "/duet": fs.ModeDir | 0o700, state + "/duet/database-key": 0o600} {
			info, err := os.Lstat(path)
			require.NoError(t, err)
			assert.Equal(t, want, info.Mode())
		}
	}
}

// What keeps the key from being made is said of its directory, by its name.
func TestAKeyThatCannotBeMade(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link") // to nothing
	if err := os.Symlink("nowhere", link); err != nil {
		t.Skip("this system makes no symbolic links: ", err) // Windows, without the right to
	}
	_, err := LoadKey(env("XDG_STATE_HOME", link))
	require.ErrorContains(t, err, "cannot be had: the directory "+link+" cannot be made: ")
	assert.NotContains(t, err.Error(), "mkdir")
}

// No two marks have the same sum, wherever their parts end.
func TestPartsOfAMarkDoNotRunTogether(t *testing.T) {
	key := Key{secret: []byte("secret")}
	assert.NotEqual(t, key.sum(mark{ID: "a", Path: "bc"}), key.sum(mark{ID: "ab", Path: "c"}))
	assert.NotEqual(t, key.sum(mark{File: fileID{Inode: 1}}), key.sum(mark{Log: fileID{Inode: 1}}))
}

// A path need not be UTF-8.
func TestAPathOfAnyBytes(t *testing.T) {
	key := newKey(t)
	path := filepath.Join(t.TempDir(), "mark")
	for _, where := range []string{"/a\xff", "/a\xfe", "/a\nb", "/ä\"\\"} {
		require.NoError(t, key.writeMark(path, mark{ID: "x", Path: where}))
		got, err := key.readMark(path)
		require.NoError(t, err)
		assert.Equal(t, where, got.Path)
	}
	require.NoError(t, os.Remove(path))
	_, err := key.readMark(path)
	require.True(t, errors.Is(err, errNoMark))
}

// Between the look at a database and its opening another file can come into its
// place, as by a checkout: that is not made the user's.
func TestADatabaseThatIsReplacedMeanwhileIsNotSealed(t *testing.T) {
	key := newKey(t)
	p, id := made(t, key)
	found, err := p.Look(noID(t))
	require.NoError(t, err)
	unchanged, err := p.Sealed()
	require.NoError(t, err)
	require.NoError(t, os.Link(p.path, p.path+".backup"))
	require.NoError(t, unchanged(), "a backup by hard links changes nothing")
	require.NoError(t, os.Remove(p.path+".backup"))
	require.NoError(t, os.WriteFile(p.path+".other", []byte("theirs"), 0o600))
	require.NoError(t, os.Rename(p.path+".other", p.path))
	require.ErrorIs(t, p.Seal(id, found), ErrReplaced)
	require.ErrorIs(t, p.SealMoving(found), ErrReplaced)
	require.ErrorIs(t, unchanged(), ErrReplaced)
	found, err = p.Look(says(id))
	require.NoError(t, err)
	assert.Equal(t, Copied, found.Kind)
	require.ErrorIs(t, p.Seal(id, found), ErrReplaced, "only what is put into its place is")

	portable := At(p.path, Key{secret: key.secret, portable: true})
	require.NoError(t, os.Remove(p.path+"-wal"))
	found, err = portable.Look(says(id))
	require.NoError(t, err)
	assert.Equal(t, Ours, found.Kind)
	require.NoError(t, portable.Seal(id, found))
}
