package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stranger is a user id without an account here.
const stranger = 54321

// theirs returns owners for which a stranger owns the files of some names, and we own all
// others.
func theirs(safe []string, paths ...string) Owners {
	var infos []fs.FileInfo
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil {
			infos = append(infos, info)
		}
	}
	return Owners{
		Safe: func() []string { return safe },
		ownerOf: func(info fs.FileInfo) (int, bool) {
			for _, foreign := range infos {
				if os.SameFile(foreign, info) {
					return stranger, true
				}
			}
			return os.Geteuid(), true
		},
	}
}

// place makes directories and files below one of its own, free of links.
func place(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o700))
		} else {
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		}
	}
	return dir
}

func finderIn(dir string, owners Owners) finder {
	env := map[string]string{"XDG_STATE_HOME": filepath.Join(dir, "state")}
	return finder{home: filepath.Join(dir, "home"), getenv: func(name string) string { return env[name] }, owners: owners}
}

// A stranger's file or directory does not make a project.
func TestMarkersOfOthersCountForNothing(t *testing.T) {
	for _, marker := range []string{".duet.toml", ".git/"} {
		for name, c := range map[string]struct {
			foreign, safe, want string
			notes               int
		}{
			"the file":                    {foreign: "a/b/" + marker, want: "a", notes: 1},
			"its directory":               {foreign: "a/b", want: "a", notes: 1},
			"its directory, made safe":    {foreign: "a/b", safe: "a/b", want: "a/b"},
			"the file, made safe":         {foreign: "a/b/" + marker, safe: "a/b", want: "a/b"},
			"all below made safe":         {foreign: "a/b/" + marker, safe: "a/*", want: "a/b"},
			"all made safe":               {foreign: "a/b/" + marker, safe: "*", want: "a/b"},
			"a directory above made safe": {foreign: "a/b/" + marker, safe: "a", want: "a", notes: 1},
			"a directory below made safe": {foreign: "a/b/" + marker, safe: "a/b/c", want: "a", notes: 1},
			"nothing":                     {want: "a/b"},
			"one in between":              {foreign: "a/b/c", want: "a/b"},
		} {
			t.Run(marker+" "+name, func(t *testing.T) {
				dir := place(t, "home/", "a/.git/", "a/b/"+marker, "a/b/c/")
				safe := c.safe
				if safe != "*" && safe != "" {
					safe = filepath.Join(dir, safe)
				}
				t.Chdir(filepath.Join(dir, "a/b/c"))
				p, err := finderIn(dir, theirs([]string{safe}, filepath.Join(dir, c.foreign))).find("")
				require.NoError(t, err)
				assert.Equal(t, filepath.Join(dir, c.want), p.Root)
				require.Len(t, p.Notes, c.notes)
				for _, note := range p.Notes {
					assert.Contains(t, note, "belongs to user 54321 and is not used")
					assert.Contains(t, note, "safe_directories")
				}
			})
		}
	}
}

// Shared directories, and the home directory, are never found on the way up, even if another user
// has put a file there.
func TestReservedDirectoriesAreNoProject(t *testing.T) {
	markers := []string{"tmp/.git/", "tmp/.duet.toml", "tmp/work/deep/", "up/.git/", "up/home/.git/", "up/home/x/", "up/home/p/.git/", "up/home/p/q/", "sticky/.git/", "sticky/x/"}
	dir := place(t, markers...)
	f := finderIn(dir, Owners{})
	f.home = filepath.Join(dir, "up/home")
	f.getenv = func(name string) string {
		return map[string]string{"TMPDIR": filepath.Join(dir, "tmp"), "XDG_STATE_HOME": filepath.Join(dir, "state")}[name]
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "sticky"), 0o777|fs.ModeSticky))
	for cwd, want := range map[string]string{
		"tmp/work/deep": "tmp/work/deep", "up/home/x": "up/home/x", "up/home/p/q": "up/home/p", "sticky/x": "sticky/x", "sticky": "sticky", "tmp": "tmp", "up/home": "up/home",
	} {
		if runtime.GOOS == "windows" && strings.HasPrefix(cwd, "sticky") {
			continue
		}
		t.Chdir(filepath.Join(dir, cwd))
		p, err := f.find("")
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, want), p.Root)
		if cwd == "sticky" || cwd == "tmp" || cwd == "up/home" {
			assert.Equal(t, cwd != "up/home", len(p.Notes) == 1, "%s: %v", cwd, p.Notes)
		} else {
			assert.Empty(t, p.Notes, cwd)
		}
	}
	t.Chdir(dir)
	p, err := f.find("tmp")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "tmp"), p.Root, "--root may say so")
	assert.Empty(t, p.Notes)
}

func TestDirectoriesOfTheSystem(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("they have other names")
	}
	f := finder{home: "/home/me", getenv: func(string) string { return "" }}
	for _, dir := range []string{
		"/", "/tmp", "/var/tmp", "/private/tmp", "/usr", "/usr/local", "/usr/lib/node_modules/x", "/usr/share", "/usr/src", "/etc", "/etc/nginx", "/home", "/home/me", "/root", "/opt",
		"/var", "/var/lib", "/proc/self", "/dev", "/sys/kernel", "/bin", "/run", "/Users", "/System/x", "/Library",
	} {
		assert.True(t, f.reserved(dir), dir)
	}
	for _, dir := range []string{
		"/home/me/p", "/home/me/etc", "/home/other/p", "/usr/src/app", "/usr/local/src/p", "/opt/p", "/srv/p", "/var/www/p", "/var/lib/jenkins/p", "/code", "/code/p", "/tmp/p", "/dev/shm/p", "/workspaces/p", "/app",
	} {
		assert.False(t, f.reserved(dir), dir)
	}
	f.home = "/usr/share/service"
	assert.False(t, f.reserved("/usr/share/service/p"), "below a home, wherever that is")
	assert.True(t, f.reserved("/usr/share/service"))
	f.home = "/"
	assert.True(t, f.reserved("/etc"))
}

func TestWhoCounts(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	require.NoError(t, err)
	of := func(uid int) Owners { return Owners{ownerOf: func(fs.FileInfo) (int, bool) { return uid, true }} }
	assert.NoError(t, of(0).Check("/a/b", info))
	assert.NoError(t, of(os.Geteuid()).Check("/a/b", info))
	assert.Error(t, of(stranger).Check("/a/b", info))
	assert.NoError(t, Owners{ownerOf: func(fs.FileInfo) (int, bool) { return 0, false }}.Check("/a/b", info), "where the owner is unknown")
	t.Setenv("SUDO_UID", "54321")
	assert.Equal(t, os.Geteuid() == 0, of(stranger).Check("/a/b", info) == nil, "who became root with sudo")
	assert.Error(t, of(stranger+1).Check("/a/b", info))
}
