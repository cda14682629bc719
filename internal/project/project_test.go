package project_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// tree makes files and, for names that end in a slash, directories. It returns their directory,
// free of links.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if name[len(name)-1] == '/' {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	return dir
}

// elsewhere sets HOME and the state home to directories of the test.
func elsewhere(t *testing.T) (home, state string) {
	t.Helper()
	dir := tree(t, "home/", "state/")
	home, state = filepath.Join(dir, "home"), filepath.Join(dir, "state")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("XDG_STATE_HOME", state)
	return home, state
}

func TestRoot(t *testing.T) {
	for _, test := range []struct {
		name  string
		files []string
		cwd   string
		want  string
	}{
		{"a configuration", []string{"a/.duet.toml", "a/b/c/"}, "a/b/c", "a"},
		{"a repository", []string{"a/.git/", "a/b/c/"}, "a/b/c", "a"},
		{"a worktree, where .git is a file", []string{"a/.git", "a/b/c/"}, "a/b/c", "a"},
		{"the nearest wins", []string{"a/.duet.toml", "a/b/.git/", "a/b/c/"}, "a/b/c", "a/b"},
		{"the directory itself", []string{"a/.git/", "a/b/.duet.toml"}, "a/b", "a/b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, state := elsewhere(t)
			dir := tree(t, test.files...)
			t.Chdir(filepath.Join(dir, test.cwd))
			p, err := project.Owners{}.Find("")
			require.NoError(t, err)
			assert.Equal(t, filepath.Join(dir, test.want), p.Root)
			assert.Equal(t, filepath.Join(state, "duet", "projects"), filepath.Dir(p.StateDir))
			assert.Regexp(t, "^"+test.want[strings.LastIndex(test.want, "/")+1:]+"-[0-9a-f]{16}$", filepath.Base(p.StateDir))
			assert.Equal(t, filepath.Join(p.StateDir, "duet.db"), p.Database())
			assert.Equal(t, filepath.Join(p.Root, ".duet.toml"), p.ConfigFile())
		})
	}
}

func TestRootWithoutAMarkerIsTheWorkingDirectory(t *testing.T) {
	elsewhere(t)
	dir := tree(t, "a/")
	for up := dir; up != filepath.Dir(up); up = filepath.Dir(up) {
		for _, marker := range []string{".duet.toml", ".git"} {
			if _, err := os.Lstat(filepath.Join(up, marker)); err == nil {
				t.Skipf("the machine's temporary directory is in a project, %s", up)
			}
		}
	}
	t.Chdir(filepath.Join(dir, "a"))
	p, err := project.Owners{}.Find("")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "a"), p.Root)
}

func TestExplicitRoot(t *testing.T) {
	elsewhere(t)
	dir := tree(t, ".git/", "a/", "file")
	require.NoError(t, os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "link")))
	t.Chdir(dir)
	for _, explicit := range []string{"a", "./a/", "link", filepath.Join(dir, "link")} {
		p, err := project.Owners{}.Find(explicit)
		require.NoError(t, err, explicit)
		assert.Equal(t, filepath.Join(dir, "a"), p.Root, explicit)
	}
	_, err := project.Owners{}.Find("file")
	assert.ErrorContains(t, err, "no directory")
	_, err = project.Owners{}.Find("missing")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestStateHome(t *testing.T) {
	home := tree(t, "state/")
	env := map[string]string{"HOME": home}
	getenv := func(name string) string { return env[name] }
	for _, test := range []struct{ xdg, want string }{
		{"", filepath.Join(home, ".local", "state", "duet")},
		{"relative", filepath.Join(home, ".local", "state", "duet")},
		{filepath.Join(home, "state"), filepath.Join(home, "state", "duet")},
	} {
		env["XDG_STATE_HOME"] = test.xdg
		got, err := project.StateHome(getenv)
		require.NoError(t, err)
		assert.Equal(t, test.want, got)
	}
	env[project.StateVariable] = filepath.Join(home, "mine")
	got, err := project.StateHome(getenv)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(home, "mine"), got)
	env[project.StateVariable] = "relative"
	_, err = project.StateHome(getenv)
	require.ErrorContains(t, err, "not an absolute path")
	got, err = project.ConfigHome(getenv)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(home, ".config", "duet"), got)
}

func TestPrepare(t *testing.T) {
	elsewhere(t)
	p, err := project.Owners{}.Find(tree(t, ".git/"))
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, p.Prepare())
		for _, dir := range []string{p.StateDir, filepath.Dir(p.StateDir)} {
			info, err := os.Lstat(dir)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm(), dir)
			// The second call removes the access of others.
			require.NoError(t, os.Chmod(dir, 0o755))
		}
	}
	entries, err := os.ReadDir(p.Root)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is put into the tree")
}

func TestPrepareRefusesAStateDirectoryOfOthers(t *testing.T) {
	for reason, plant := range map[string]func(dir string) error{
		"is a symbolic link": func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"is no directory":    func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"belongs to another user": func(dir string) error {
			if os.Geteuid() != 0 {
				return nil // only root can give a directory away
			}
			return errors.Join(os.Mkdir(dir, 0o777), os.Chown(dir, 12345, 12345))
		},
	} {
		t.Run(reason, func(t *testing.T) {
			elsewhere(t)
			p, err := project.Owners{}.Find(tree(t))
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Dir(p.StateDir), 0o700))
			require.NoError(t, plant(p.StateDir))
			if _, err := os.Lstat(p.StateDir); err != nil {
				t.Skip("only root can give a directory away")
			}
			for _, err := range []error{p.Check(), p.Prepare()} {
				var refused *project.NotPrivateError
				require.ErrorAs(t, err, &refused)
				assert.ErrorContains(t, err, reason)
				assert.ErrorContains(t, err, "remove it", "it says what to do")
			}
		})
	}
}

func TestCheckOfWhatIsNotThereYet(t *testing.T) {
	elsewhere(t)
	p, err := project.Owners{}.Find(tree(t))
	require.NoError(t, err)
	require.NoError(t, p.Check())
	require.NoError(t, p.Prepare())
	require.NoError(t, p.Check())
}

func TestCheckPrivate(t *testing.T) {
	file := filepath.Join(tree(t, "file"), "file")
	assert.NoError(t, project.CheckPrivate(file))
	require.NoError(t, os.Chmod(file, 0o622))
	assert.ErrorContains(t, project.CheckPrivate(file), "can be written by other users")
	assert.ErrorIs(t, project.CheckPrivate(file+"x"), os.ErrNotExist)
}

func prepared(t *testing.T) project.Project {
	t.Helper()
	elsewhere(t)
	p, err := project.Owners{}.Find(tree(t))
	require.NoError(t, err)
	require.NoError(t, p.Prepare())
	return p
}

// A process that waits for the hub's lock learns when it is released.
func TestReleased(t *testing.T) {
	p := prepared(t)
	<-p.Released() // it was never held
	lock, err := p.Lock(t.Context())
	require.NoError(t, err)
	released := p.Released()
	select {
	case <-released:
		require.Fail(t, "it is still held")
	case <-time.After(50 * time.Millisecond): // a wrong close would most likely have happened by now
	}
	require.NoError(t, lock.Close())
	<-released
	lock, err = p.Lock(t.Context())
	require.NoError(t, err, "the waiter does not keep it")
	require.NoError(t, lock.Close())
}

func TestLockIsTakenOnce(t *testing.T) {
	p := prepared(t)
	require.True(t, p.Unlocked(), "no process ever had it")
	lock, err := p.Lock(t.Context())
	require.NoError(t, err)
	require.False(t, p.Unlocked())
	_, err = p.Lock(t.Context())
	var held *project.HeldError
	require.ErrorAs(t, err, &held)
	assert.Equal(t, os.Getpid(), held.PID)
	assert.Equal(t, filepath.Join(p.StateDir, "lock"), held.Path)
	assert.ErrorContains(t, err, strconv.Itoa(os.Getpid()))

	require.NoError(t, lock.Close())
	require.NoError(t, lock.Close(), "again")
	require.NoError(t, (*project.Lock)(nil).Close())
	left, err := os.ReadFile(held.Path)
	require.NoError(t, err)
	require.True(t, p.Unlocked())
	assert.Empty(t, left, "the next holder is not mistaken for this one")
	lock, err = p.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

func TestLockOfOneAmongMany(t *testing.T) {
	p := prepared(t)
	var group sync.WaitGroup
	locks := make(chan *project.Lock, 20)
	for range cap(locks) {
		group.Go(func() {
			lock, err := p.Lock(t.Context())
			if err == nil {
				locks <- lock
				return
			}
			var held *project.HeldError
			assert.ErrorAs(t, err, &held)
		})
	}
	group.Wait()
	close(locks)
	require.Len(t, locks, 1)
	require.NoError(t, (<-locks).Close())
}

// A process that checks whether the lock is free does not keep others from taking it.
func TestLockIsTakenWhileOthersLook(t *testing.T) {
	p := prepared(t)
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				p.Unlocked()
				<-p.Released()
			}
		}
	})
	for range 200 {
		lock, err := p.Lock(t.Context())
		if !assert.NoError(t, err) {
			break
		}
		assert.NoError(t, lock.Close())
	}
	close(stop)
	looking.Wait()
}

func TestLockNeedsAContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := prepared(t).Lock(ctx)
	assert.ErrorIs(t, err, context.Canceled)
}

// holdLock makes the test's binary, started by TestLockNeverSurvivesItsProcess, take the lock
// and wait to be killed.
const holdLock = "DUET_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	if root := os.Getenv(holdLock); root != "" {
		p, err := project.Owners{}.Find(root)
		if err == nil {
			_, err = p.Lock(context.Background())
		}
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("held\n")
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLockNeverSurvivesItsProcess(t *testing.T) {
	p := prepared(t)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), holdLock+"="+p.Root)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = stdout.Read(make([]byte, 5))
	require.NoError(t, err)

	_, err = p.Lock(t.Context())
	var held *project.HeldError
	require.ErrorAs(t, err, &held)
	assert.Equal(t, cmd.Process.Pid, held.PID)

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	lock, err := p.Lock(t.Context())
	require.NoError(t, err, "the lock ends with its holder")
	require.NoError(t, lock.Close())
}
