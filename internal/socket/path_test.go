//go:build linux || darwin

package socket_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// longestPath is the maximum length in bytes of a socket's path that every client can use.
var longestPath = map[string]int{"linux": 104, "darwin": 103}[runtime.GOOS]

// ofLength returns a directory whose path has n bytes.
func ofLength(t *testing.T, n int) string {
	t.Helper()
	dir := short(t)
	for len(dir) < n {
		dir = filepath.Join(dir, strings.Repeat("d", min(200, n-len(dir)-1)))
		if n-len(dir) == 1 { // no room for a separator and a name
			dir += "d"
		}
	}
	require.Len(t, dir, n)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return dir
}

// runtimeDir makes XDG_RUNTIME_DIR a directory.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir := short(t)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

func TestPathOfAStateDirectory(t *testing.T) {
	runtimeDir(t)
	longest := ofLength(t, longestPath-len("/duet.sock"))
	path, indirect, err := socket.Path(longest)
	require.NoError(t, err)
	assert.False(t, indirect)
	assert.Equal(t, longest+"/duet.sock", path)

	path, indirect, err = socket.Path(ofLength(t, longestPath-len("/duet.sock")+1))
	require.NoError(t, err)
	assert.True(t, indirect)
	assert.Equal(t, filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "duet"), filepath.Dir(path))
	assert.Regexp(t, `^[0-9a-f]{16}\.sock$`, filepath.Base(path))
}

func TestPathDoesNotDependOnLinks(t *testing.T) {
	runtimeDir(t)
	state := ofLength(t, 200)
	link := filepath.Join(short(t), "link")
	require.NoError(t, os.Symlink(state, link))
	want, _, err := socket.Path(state)
	require.NoError(t, err)
	got, indirect, err := socket.Path(link)
	require.NoError(t, err)
	assert.True(t, indirect)
	assert.Equal(t, want, got)
	other, _, err := socket.Path(ofLength(t, 200))
	require.NoError(t, err)
	assert.NotEqual(t, want, other)
}

func TestPathWithoutARuntimeDirectory(t *testing.T) {
	temporary := short(t)
	own := "duet-" + strconv.Itoa(os.Geteuid())
	for _, test := range []struct {
		name, runtime, temporary, want string
	}{
		{"unset", "", temporary, temporary},
		{"relative", "run", temporary, temporary},
		{"missing", temporary + "/none", temporary, temporary},
		{"open to others", "/tmp", temporary, temporary},
		{"too long", ofLength(t, 100), temporary, temporary},
		{"both too long", ofLength(t, 100), ofLength(t, 100), "/tmp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", test.runtime)
			t.Setenv("TMPDIR", test.temporary)
			path, indirect, err := socket.Path(ofLength(t, 200))
			require.NoError(t, err)
			assert.True(t, indirect)
			assert.Equal(t, filepath.Join(test.want, own), filepath.Dir(path))
		})
	}
	t.Run("of another user", func(t *testing.T) {
		needRoot(t)
		foreign := short(t)
		require.NoError(t, os.Chown(foreign, nobody, nobody))
		t.Setenv("XDG_RUNTIME_DIR", foreign)
		t.Setenv("TMPDIR", temporary)
		path, _, err := socket.Path(ofLength(t, 200))
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(temporary, own), filepath.Dir(path))
	})
}

func TestClientsFindAnIndirectSocketInAnyEnvironment(t *testing.T) {
	runtimeDir(t)
	state := ofLength(t, 200)
	path, _, err := socket.Path(state)
	require.NoError(t, err)
	found, err := socket.Find(state)
	require.NoError(t, err)
	assert.Equal(t, path, found, "before there is a hub")

	served(t, path)
	require.NoError(t, socket.Announce(state, "/older.sock"))
	require.NoError(t, socket.Announce(state, path))
	assert.Equal(t, fs.FileMode(0o600), mode(t, filepath.Join(state, "socket")))
	text, err := os.ReadFile(filepath.Join(state, "socket"))
	require.NoError(t, err)
	assert.Equal(t, path+"\n", string(text))
	files, err := os.ReadDir(state)
	require.NoError(t, err)
	assert.Len(t, files, 1, "nothing else is left")

	runtimeDir(t) // the client's differs
	found, err = socket.Find(state)
	require.NoError(t, err)
	assert.Equal(t, path, found)
	greeted(t, found)
	assert.Equal(t, fs.ModeDir|0o700, mode(t, filepath.Dir(path)))
}

func TestFindOfAShortPathReadsNoFile(t *testing.T) {
	state := short(t)
	require.NoError(t, socket.Announce(state, "/tmp/elsewhere.sock"))
	found, err := socket.Find(state)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(state, "duet.sock"), found)
}

func TestFindAfterAMove(t *testing.T) {
	runtimeDir(t)
	state := ofLength(t, 200)
	before, _, err := socket.Path(state)
	require.NoError(t, err)
	require.NoError(t, socket.Announce(state, before))
	require.NoError(t, os.Rename(state, state+"2"))
	found, err := socket.Find(state + "2")
	require.NoError(t, err)
	assert.NotEqual(t, before, found, "the listener there now is another project's hub")
}

// Another user, on another machine, may have written the file: it must not name a place where
// this directory's hub could not listen.
func TestFindOfAPlaceThatNoHubHas(t *testing.T) {
	runtimeDir(t)
	state := ofLength(t, 200)
	want, _, err := socket.Path(state)
	require.NoError(t, err)
	name, own := filepath.Base(want), "duet-"+strconv.Itoa(os.Geteuid())
	for _, elsewhere := range []string{
		"/tmp/" + name, "/tmp/other/" + name, "/tmp/" + own + "/other.sock", "/tmp/duet-" + strconv.Itoa(os.Geteuid()+1) + "/" + name, "/tmp/" + own + "/../" + name,
	} {
		require.NoError(t, socket.Announce(state, elsewhere))
		found, err := socket.Find(state)
		require.NoError(t, err)
		assert.Equal(t, want, found, elsewhere)
	}
	another := "/tmp/" + own + "/" + name
	require.NoError(t, socket.Announce(state, another))
	found, err := socket.Find(state)
	require.NoError(t, err)
	assert.Equal(t, another, found)
}

func TestFindTrustsOnlyOurFile(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, file string)
		says    string
	}{
		{"a link", func(t *testing.T, file string) {
			require.NoError(t, os.Rename(file, file+".real"))
			require.NoError(t, os.Symlink("socket.real", file))
		}, "is a symbolic link"},
		{"a directory", func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Mkdir(file, 0o700))
		}, "is no regular file"},
		{"writable by others", func(t *testing.T, file string) { require.NoError(t, os.Chmod(file, 0o620)) }, "can be written to by other users"},
		{"another user's", func(t *testing.T, file string) {
			needRoot(t)
			require.NoError(t, os.Chown(file, nobody, nobody))
		}, "belongs to user 65534"},
	} {
		t.Run(test.name, func(t *testing.T) {
			runtimeDir(t)
			state := ofLength(t, 200)
			path, _, err := socket.Path(state)
			require.NoError(t, err)
			require.NoError(t, socket.Announce(state, path))
			file := filepath.Join(state, "socket")
			test.prepare(t, file)

			_, err = socket.Find(state)
			var unsafe *socket.UnsafeError
			require.ErrorAs(t, err, &unsafe)
			assert.ErrorContains(t, err, test.says)

			before, err := os.Lstat(file)
			require.NoError(t, err)
			err = socket.Announce(state, path)
			var occupied *socket.OccupiedError
			require.ErrorAs(t, err, &occupied)
			assert.ErrorContains(t, err, test.says)
			after, err := os.Lstat(file)
			require.NoError(t, err)
			assert.True(t, os.SameFile(before, after))
		})
	}
	for _, text := range []string{"", "/a.sock", "/a.sock\n/b.sock\n", "a.sock\n", "/" + strings.Repeat("a", longestPath) + "\n"} {
		runtimeDir(t)
		state := ofLength(t, 200)
		require.NoError(t, os.WriteFile(filepath.Join(state, "socket"), []byte(text), 0o600))
		_, err := socket.Find(state)
		assert.ErrorContains(t, err, "does not hold one path", "%q", text)
	}
}

func TestLongPaths(t *testing.T) {
	directory := ofLength(t, 700)
	for _, path := range []string{
		filepath.Join(directory, "duet.sock"),
		filepath.Join(short(t), strings.Repeat("n", 255)),
	} {
		if runtime.GOOS != "linux" {
			_, err := socket.Listen(soon(t), path)
			assert.ErrorContains(t, err, "can have at most 103 bytes here")
			continue
		}
		l := served(t, path)
		assert.Equal(t, fs.ModeSocket|0o600, mode(t, path))
		greeted(t, path)
		_, err := socket.Listen(soon(t), path)
		var inUse *socket.InUseError
		require.ErrorAs(t, err, &inUse)
		require.NoError(t, l.Close())
		assert.NoFileExists(t, path)

		_, out, cmd := self(t, 0, "Listen", path)
		require.Equal(t, "listening", line(t, out))
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		_, err = socket.Dial(soon(t), path)
		var unserved *socket.NoListenerError
		require.ErrorAs(t, err, &unserved)
		served(t, path)
		greeted(t, path)
	}
}
