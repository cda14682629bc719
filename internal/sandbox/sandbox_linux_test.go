package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/sandbox"
)

// A site is a home directory with a project, and Duet's own directory in it.
type site struct{ home, project, own string }

func newSite(t *testing.T) site {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := site{home, filepath.Join(home, "project"), filepath.Join(home, ".local", "state", "duet")}
	for _, dir := range []string{s.project, s.own, filepath.Join(home, ".ssh"), filepath.Join(home, ".cache", "go")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	return s
}

func (s site) box(root string, write ...string) (*sandbox.Box, error) {
	spec := catalog.Sandbox{Level: domain.SandboxWorkspace, Program: "/usr/bin/bwrap", Write: write, Hide: []string{s.own}}
	return sandbox.New(spec, sandbox.Place{Root: root, CWD: root, Env: map[string]string{"HOME": s.home}})
}

func TestAccess(t *testing.T) {
	s := newSite(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.project, ".git", "hooks"), 0o700))
	cache := filepath.Join(s.home, ".cache")
	box, err := s.box(s.project, cache, filepath.Join(s.home, "missing"), s.own)
	require.NoError(t, err)
	for path, want := range map[string][2]bool{ // may be read, may be written
		filepath.Join(s.project, "new", "file"):    {true, true},
		filepath.Join(s.project, ".git", "config"): {true, false},
		filepath.Join(s.project, ".git", "hooks"):  {true, false},
		filepath.Join(s.home, ".bashrc"):           {true, false},
		s.project + "-other":                       {true, false},
		filepath.Join(s.home, ".ssh", "id"):        {false, false},
		filepath.Join(cache, "go", "a"):            {true, true},
		filepath.Join(s.own, "projects"):           {false, false}, // also if it is to be written
		"/etc/passwd":                              {true, false},
		"/run/user/0/bus":                          {false, false},
	} {
		assert.Equal(t, want, [2]bool{box.CanRead(path), box.CanWrite(path)}, path)
	}
}

// Without a directory of its own the agent could write everything that the user can.
func TestHomeCannotBeTheWorkspace(t *testing.T) {
	s := newSite(t)
	for _, root := range []string{s.home, filepath.Dir(s.home), "/"} {
		_, err := s.box(root)
		assert.ErrorContains(t, err, "contains the home directory", root)
	}
	_, err := s.box(filepath.Join(s.home, ".ssh"))
	assert.ErrorContains(t, err, "the sandbox hides")
}

// A .git file that leads to another place than a worktree of a repository opens nothing there.
func TestGitFileMustBeThatOfAWorktree(t *testing.T) {
	s := newSite(t)
	elsewhere := filepath.Join(s.home, "elsewhere")
	own := filepath.Join(elsewhere, "worktrees", "w")
	require.NoError(t, os.MkdirAll(own, 0o700))
	link, another := filepath.Join(s.project, ".git"), filepath.Join(s.home, "another")
	require.NoError(t, os.WriteFile(another, nil, 0o600))
	for name, text := range map[string]string{
		link: "gitdir: " + own + "\n", filepath.Join(own, "commondir"): "../..\n", filepath.Join(own, "gitdir"): another + "\n",
		filepath.Join(own, "HEAD"): "ref: refs/heads/duet/w\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	box, err := s.box(s.project)
	require.NoError(t, err)
	assert.False(t, box.CanWrite(own))
	assert.False(t, box.CanWrite(link))

	require.NoError(t, os.WriteFile(filepath.Join(own, "gitdir"), []byte(link+"\n"), 0o600))
	box, err = s.box(s.project)
	require.NoError(t, err)
	assert.True(t, box.CanWrite(filepath.Join(own, "index.lock")))
	assert.True(t, box.CanWrite(filepath.Join(elsewhere, "refs", "heads", "duet", "w.lock")))
	for _, name := range []string{
		"config", "hooks/post-commit", "HEAD", "commondir", "info/attributes", "refs/heads/main", "logs/HEAD", "logs/refs/heads/main",
		"worktrees/w/commondir", "worktrees/w/gitdir", "worktrees/w/config.worktree", "worktrees/w/logs/other",
	} {
		assert.False(t, box.CanWrite(filepath.Join(elsewhere, name)), name)
	}
	assert.FileExists(t, filepath.Join(own, "config.worktree"), "the agent cannot make it")

	// The agent may have written HEAD, and links beside its branch.
	head := filepath.Join(own, "HEAD")
	require.NoError(t, os.Symlink(s.home, filepath.Join(elsewhere, "refs", "heads", "duet", "out")))
	for _, name := range []string{"refs/heads/main", "refs/heads/duet/../../../config", "refs/heads/duet/../main", "refs/heads/duet/out/x"} {
		require.NoError(t, os.WriteFile(head, []byte("ref: "+name+"\n"), 0o600))
		box, err = s.box(s.project)
		require.NoError(t, err, name)
		for _, path := range []string{elsewhere + "/config", elsewhere + "/refs/heads/main", elsewhere + "/logs/refs/heads/main", elsewhere + "/logs/config", s.home + "/x", s.home + "/.bashrc"} {
			assert.False(t, box.CanWrite(path), "%s: %s", name, path)
		}
	}

	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(elsewhere, link))
	_, err = s.box(s.project)
	assert.ErrorContains(t, err, "symbolic link")
}

// A directory that the agent replaced by a link in an earlier turn opens nothing.
func TestLinksOfTheAgentAreRefused(t *testing.T) {
	s := newSite(t)
	other := filepath.Join(s.home, "other")
	require.NoError(t, os.MkdirAll(filepath.Join(other, "sub"), 0o700))
	link := filepath.Join(s.project, "link")
	require.NoError(t, os.Symlink(other, link))
	alias := filepath.Join(s.home, "alias")
	require.NoError(t, os.Symlink(s.project, alias))
	make := func(root, cwd string, more ...string) error {
		spec := catalog.Sandbox{Level: domain.SandboxWorkspace, Program: "/usr/bin/bwrap"}
		_, err := sandbox.New(spec, sandbox.Place{Root: root, CWD: cwd, Directories: more, Env: map[string]string{"HOME": s.home}})
		return err
	}
	require.NoError(t, make(s.project, s.project))
	require.NoError(t, make(alias, alias), "a link outside")
	for _, err := range []error{
		make(s.project, link), make(s.project, filepath.Join(link, "sub")), make(s.project, filepath.Join(alias, "link", "sub")),
		make(s.project, s.project, link), make(s.project, s.project, "link/sub"),
	} {
		assert.ErrorContains(t, err, "is a link in a directory that the agent may write")
	}
	_, err := s.box(s.project, link)
	assert.ErrorContains(t, err, "is a link in a directory that the agent may write", "sandbox_write")
}

// The agent cannot rename a directory around a protected path: it is a mount point.
func TestParentsOfProtectedPathsArePinned(t *testing.T) {
	s := newSite(t)
	s.own = filepath.Join(s.project, "a", "b", "state")
	require.NoError(t, os.MkdirAll(s.own, 0o700))
	box, err := s.box(s.project)
	require.NoError(t, err)
	command := strings.Join(box.Command("/bin/true", []string{"true"}, s.project, 3), " ")
	for _, dir := range []string{s.project, filepath.Join(s.project, "a"), filepath.Join(s.project, "a", "b")} {
		assert.Contains(t, command, "--bind "+dir+" "+dir+" ")
	}
}

func TestEnvironmentLeadsNowhereElse(t *testing.T) {
	s := newSite(t)
	box, err := s.box(s.project)
	require.NoError(t, err)
	env := box.Environment(map[string]string{
		"PATH": "/bin", "SSH_AUTH_SOCK": "/run/agent", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/bus", "DISPLAY": ":0", "WAYLAND_DISPLAY": "w",
		"TMUX": "/tmp/tmux", "XDG_RUNTIME_DIR": "/run/user/0", "DOCKER_HOST": "unix:///var/run/docker.sock", "TMPDIR": "/var/folders",
	})
	assert.Equal(t, map[string]string{"PATH": "/bin"}, env)
}

// standIn puts a program named bwrap on an otherwise empty PATH; "" puts none there.
func standIn(t *testing.T, script string) {
	dir := t.TempDir()
	if script != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	t.Setenv("PATH", dir)
}

func TestFindSaysWhyThereIsNoSandbox(t *testing.T) {
	var finder sandbox.Finder
	for script, want := range map[string]string{
		"": "install the package bubblewrap",
		"echo 'bwrap: No permissions to create new namespace' >&2; exit 1":                     "bwrap: No permissions to create new namespace",
		`echo "bwrap: Can't mount proc on /newroot/proc: Operation not permitted" >&2; exit 1`: "systempaths=unconfined",
		"exit 3": "exit status 3",
	} {
		standIn(t, script)
		_, err := finder.Find(t.Context(), domain.SandboxWorkspace)
		var refused *domain.Error
		require.ErrorAs(t, err, &refused, script)
		assert.Equal(t, domain.KindSandbox, refused.Kind)
		assert.Contains(t, refused.Message, want)
	}
	standIn(t, `case "$*" in *--unshare-net*) exit 1;; esac`)
	found, err := finder.Find(t.Context(), domain.SandboxWorkspace)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(found, "/bwrap"))
	_, err = finder.Find(t.Context(), domain.SandboxOffline)
	assert.Error(t, err, "each level is tried")
	_, err = finder.Find(t.Context(), domain.SandboxWorkspace, filepath.Dir(found))
	assert.ErrorContains(t, err, "install the package bubblewrap", "an agent can write there")
}
