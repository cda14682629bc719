//go:build linux || darwin

package socket_test

import (
	"context"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

func TestListenMakesASocketForUsAlone(t *testing.T) {
	was := syscall.Umask(0)
	defer syscall.Umask(was)
	dir := short(t)
	path := filepath.Join(dir, "a", "b", "duet.sock")
	l := served(t, path)
	assert.Equal(t, fs.ModeSocket|0o600, mode(t, path))
	assert.Equal(t, fs.ModeDir|0o700, mode(t, filepath.Dir(path)))
	assert.Equal(t, fs.ModeDir|0o700, mode(t, filepath.Join(dir, "a")))
	assert.Equal(t, path, l.Addr().String())
	conn := greeted(t, path)
	_, err := conn.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	require.NoError(t, err)

	require.NoError(t, l.Close())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.NoError(t, l.Close(), "a second time does nothing")
}

func TestListenIsRelativeToTheWorkingDirectory(t *testing.T) {
	dir := short(t)
	t.Chdir(dir)
	served(t, "@duet.sock") // not an abstract one
	greeted(t, filepath.Join(dir, "@duet.sock"))
	greeted(t, "@duet.sock")
}

func TestNobodyElseCouldConnectAtAnyMoment(t *testing.T) {
	was := syscall.Umask(0)
	defer syscall.Umask(was)
	dir := short(t)
	path := filepath.Join(dir, "duet.sock")
	var seen atomic.Int64
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{"duet.sock", ".duet~"} {
				var stat unix.Stat_t
				if unix.Lstat(filepath.Join(dir, name), &stat) == nil {
					seen.Add(1)
					assert.EqualValues(t, 0o600, stat.Mode&0o777, "the mode of %s", name)
				}
			}
		}
	}()
	for n := 0; n < 300 || seen.Load() == 0; n++ { // the race needs many attempts
		l, err := socket.Listen(soon(t), path)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	close(stop)
	<-watched
}

// Other programs take a socket that refuses for stale, so its name must not exist before it
// listens.
func TestASocketThatHasItsNameAnswers(t *testing.T) {
	path := filepath.Join(short(t), "duet.sock")
	stop, watched := make(chan struct{}), make(chan struct{})
	var answers atomic.Int64
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
			}
			var before, after unix.Stat_t
			if unix.Lstat(path, &before) != nil {
				continue
			}
			conn, err := net.Dial("unix", path)
			if err == nil {
				answers.Add(1)
				conn.Close()
			} else if unix.Lstat(path, &after) == nil && before.Ino == after.Ino && before.Ctim == after.Ctim {
				assert.NoError(t, err)
			}
		}
	}()
	for round := range 300 {
		l, err := socket.Listen(soon(t), path)
		require.NoError(t, err)
		for round == 299 && answers.Load() == 0 { // one answer at least, however the machine schedules
			runtime.Gosched()
		}
		require.NoError(t, l.Close())
	}
	close(stop)
	<-watched
}

func TestListenWhereSomebodyAnswers(t *testing.T) {
	path := filepath.Join(short(t), "duet.sock")
	served(t, path)
	_, err := socket.Listen(soon(t), path)
	var inUse *socket.InUseError
	require.ErrorAs(t, err, &inUse)
	assert.Equal(t, path, inUse.Path)
	assert.ErrorContains(t, err, "stop it or choose another path")
	greeted(t, path)
}

func TestListenReplacesAStaleSocket(t *testing.T) {
	path := filepath.Join(short(t), "duet.sock")
	stale(t, path)
	l := served(t, path)
	greeted(t, path)
	require.NoError(t, l.Close())

	_, out, cmd := self(t, 0, "Listen", path)
	require.Equal(t, "listening", line(t, out))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Equal(t, fs.ModeSocket|0o600, mode(t, path), "a killed process leaves its socket")
	served(t, path)
	greeted(t, path)
}

func TestListenRemovesNothingElse(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, path string){
		"a file":      func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("text"), 0o600)) },
		"a directory": func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
		"a pipe":      func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o600)) },
		"a link to nothing": func(t *testing.T, path string) {
			require.NoError(t, os.Symlink(path+".target", path))
		},
		"a link to a stale socket": func(t *testing.T, path string) {
			stale(t, path+".target")
			require.NoError(t, os.Symlink(path+".target", path))
		},
		"a link to a live socket": func(t *testing.T, path string) {
			served(t, path+".target")
			require.NoError(t, os.Symlink(path+".target", path))
		},
		"a stale socket of another user": func(t *testing.T, path string) {
			needRoot(t)
			stale(t, path)
			require.NoError(t, os.Chown(path, nobody, nobody))
		},
	} {
		for _, where := range []string{"duet.sock", ".duet~"} {
			t.Run(name+" at "+where, func(t *testing.T) {
				dir := short(t)
				path := filepath.Join(dir, where)
				make(t, path)
				before, err := os.Lstat(path)
				require.NoError(t, err)
				_, err = socket.Listen(soon(t), filepath.Join(dir, "duet.sock"))
				var occupied *socket.OccupiedError
				require.ErrorAs(t, err, &occupied)
				assert.Equal(t, path, occupied.Path)
				assert.ErrorContains(t, err, "remove it or choose another path")
				after, err := os.Lstat(path)
				require.NoError(t, err)
				assert.True(t, os.SameFile(before, after))
				assert.Equal(t, before.ModTime(), after.ModTime())
			})
		}
	}
}

func TestListenClearsUpAfterOneThatWasKilledHalfway(t *testing.T) {
	dir := short(t)
	stale(t, filepath.Join(dir, ".duet~"))
	served(t, filepath.Join(dir, "duet.sock"))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestDirectoriesOfSockets(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		refused string
	}{
		{"closed", func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o700)) }, ""},
		{"readable", func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o755)) }, ""},
		{"writable by the group", func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o770)) }, "can be written to by other users"},
		{"writable by all", func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o707)) }, "can be written to by other users"},
		{"sticky", func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o777|fs.ModeSticky)) }, ""},
		{"a link of ours", func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(dir, dir+".real"))
			require.NoError(t, os.Symlink(dir+".real", dir))
		}, ""},
		{"another user's", func(t *testing.T, dir string) {
			needRoot(t)
			require.NoError(t, os.Chown(dir, nobody, nobody))
		}, "belongs to user 65534"},
		{"another user's link", func(t *testing.T, dir string) {
			needRoot(t)
			require.NoError(t, os.Rename(dir, dir+".real"))
			require.NoError(t, os.Symlink(dir+".real", dir))
			require.NoError(t, os.Lchown(dir, nobody, nobody))
		}, "is a symbolic link of user 65534"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(short(t), "run")
			require.NoError(t, os.Mkdir(dir, 0o700))
			test.prepare(t, dir)
			path := filepath.Join(dir, "duet.sock")
			if test.refused == "" {
				served(t, path)
				greeted(t, path)
				return
			}
			_, err := socket.Listen(soon(t), path)
			var unsafe *socket.UnsafeError
			require.ErrorAs(t, err, &unsafe)
			assert.Equal(t, dir, unsafe.Path)
			assert.ErrorContains(t, err, test.refused)
			assert.NoFileExists(t, path)
		})
	}
}

func TestListenRefusesWhatIsNoFileName(t *testing.T) {
	for _, path := range []string{"", "/", short(t) + "/", "a\x00b"} {
		_, err := socket.Listen(soon(t), path)
		assert.Error(t, err, "%q", path)
		_, err = socket.Dial(soon(t), path)
		assert.Error(t, err, "%q", path)
	}
}

func TestCloseRemovesOnlyItsOwn(t *testing.T) {
	t.Run("another listener's", func(t *testing.T) {
		path := filepath.Join(short(t), "duet.sock")
		l := listen(t, path)
		require.NoError(t, os.Remove(path))
		served(t, path)
		require.NoError(t, l.Close())
		greeted(t, path)
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(short(t), "duet.sock")
		l := listen(t, path)
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, l.Close())
		assert.FileExists(t, path)
	})
	t.Run("nothing", func(t *testing.T) {
		path := filepath.Join(short(t), "duet.sock")
		l := listen(t, path)
		require.NoError(t, os.Remove(path))
		assert.NoError(t, l.Close())
	})
	t.Run("in a directory that was renamed", func(t *testing.T) {
		dir := filepath.Join(short(t), "a")
		l := listen(t, filepath.Join(dir, "duet.sock"))
		require.NoError(t, os.Rename(dir, dir+"2"))
		served(t, filepath.Join(dir, "duet.sock"))
		require.NoError(t, l.Close())
		assert.NoFileExists(t, filepath.Join(dir+"2", "duet.sock"))
		greeted(t, filepath.Join(dir, "duet.sock"))
	})
}

func TestCloseEndsAccept(t *testing.T) {
	l := listen(t, filepath.Join(short(t), "duet.sock"))
	failed := make(chan error)
	for range 3 {
		go func() { _, err := l.Accept(); failed <- err }()
	}
	require.NoError(t, l.Close())
	for range 3 {
		assert.ErrorIs(t, <-failed, net.ErrClosed)
	}
	_, err := l.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
}

func TestOfTwoListenersOneWins(t *testing.T) {
	path := filepath.Join(short(t), "duet.sock")
	const starters, rounds = 6, 60
	for round := range rounds {
		if round%2 == 0 {
			stale(t, path)
		}
		var group sync.WaitGroup
		won := make(chan *socket.Listener, starters)
		for range starters {
			group.Go(func() {
				l, err := socket.Listen(soon(t), path)
				if err == nil {
					won <- l
					return
				}
				var inUse *socket.InUseError
				assert.ErrorAs(t, err, &inUse)
			})
		}
		group.Wait()
		require.Len(t, won, 1, "round %d", round)
		l := <-won
		conn, err := socket.Dial(soon(t), path)
		require.NoError(t, err)
		conn.Close()
		require.NoError(t, l.Close())
	}
}

func TestOfTwoProcessesOneWins(t *testing.T) {
	path := filepath.Join(short(t), "duet.sock")
	stale(t, path)
	const starters = 5
	var outs []io.Reader
	for range starters {
		_, out, _ := self(t, 0, "Listen", path)
		outs = append(outs, out)
	}
	won := 0
	for _, out := range outs {
		if said := line(t, out); said == "listening" {
			won++
		} else {
			assert.Contains(t, said, "another process listens on")
		}
	}
	assert.Equal(t, 1, won)
	greeted(t, path)
}

func TestListenWaitsForTheLockAsLongAsItMay(t *testing.T) {
	dir := short(t)
	held, err := os.Open(dir)
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	path := filepath.Join(dir, "duet.sock")

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = socket.Listen(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = socket.Listen(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	got := make(chan error)
	go func() {
		l, err := socket.Listen(soon(t), path)
		if err == nil {
			err = l.Close()
		}
		got <- err
	}()
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_UN))
	assert.NoError(t, <-got)
}
