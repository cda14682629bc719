//go:build linux || darwin

package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A directory is held open, so that checks on it stay valid when its path begins to mean another
// one.
type directory struct {
	*os.File
	path string
}

// fileID identifies a file as long as it exists.
type fileID struct{ device, inode uint64 }

func (d *directory) fd() int { return int(d.Fd()) }

func (d *directory) join(name string) string { return filepath.Join(d.path, name) }

// openParent opens the directory of path, which is absolute, and creates it if it is missing.
func openParent(path string) (d *directory, name string, err error) {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("creating the directory of the socket: %w", err)
	}
	d, err = openDirectory(dir)
	return d, name, err
}

// openDirectory opens dir if only we and root can replace files in it.
func openDirectory(dir string) (*directory, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := open(dir, flags|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		// A link that we or root made, such as macOS's /tmp, is as safe as the directory. A link
		// of another user may be a trap.
		var stat unix.Stat_t
		if unix.Lstat(dir, &stat) == nil && isType(stat, unix.S_IFLNK) && !trusted(stat) {
			return nil, unsafeDirectory(dir, fmt.Sprintf("is a symbolic link of user %d", stat.Uid))
		}
		fd, err = open(dir, flags)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	d := &directory{File: os.NewFile(uintptr(fd), dir), path: dir}
	if err := d.check(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *directory) check() error {
	var stat unix.Stat_t
	if err := unix.Fstat(d.fd(), &stat); err != nil {
		return &os.PathError{Op: "stat", Path: d.path, Err: err}
	}
	if !trusted(stat) {
		return unsafeDirectory(d.path, fmt.Sprintf("belongs to user %d", stat.Uid))
	}
	if stat.Mode&0o022 != 0 && stat.Mode&unix.S_ISVTX == 0 {
		return &UnsafeError{
			Path: d.path, Reason: "can be written to by other users",
			Remedy: "chmod go-w " + d.path + ", or choose another path for the socket",
		}
	}
	return nil
}

func unsafeDirectory(path, reason string) error {
	return &UnsafeError{Path: path, Reason: reason, Remedy: "choose another path for the socket"}
}

// trusted reports whether a file belongs to us, or to root, whom nothing keeps out.
func trusted(stat unix.Stat_t) bool { return int(stat.Uid) == os.Geteuid() || stat.Uid == 0 }

func isType(stat unix.Stat_t, kind uint32) bool { return uint32(stat.Mode)&unix.S_IFMT == kind }

// lock waits until no other process creates or removes a socket in the directory.
func (d *directory) lock(ctx context.Context) (unlock func(), err error) {
	switch err := flock(d.fd(), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return func() { _ = flock(d.fd(), unix.LOCK_UN) }, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return d.waitForLock(ctx)
	}
	// Not every file system has locks on directories, for example some network ones; a socket
	// works there without.
	return func() {}, nil
}

// waitForLock waits for the lock. The system call cannot be interrupted: after a timeout a
// goroutine stays until the lock is free, and releases it at once.
func (d *directory) waitForLock(ctx context.Context) (unlock func(), err error) {
	const patience = 5 * time.Second // holders need milliseconds
	own, err := unix.Openat(d.fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: d.path, Err: err}
	}
	locked, gaveUp := make(chan error), make(chan struct{})
	defer close(gaveUp)
	go func() {
		err := flock(own, unix.LOCK_EX)
		select {
		case locked <- err:
		case <-gaveUp: // the caller has given up
			unix.Close(own)
		}
	}()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case err := <-locked:
		if err != nil {
			unix.Close(own)
			return nil, &os.PathError{Op: "flock", Path: d.path, Err: err}
		}
		return func() { unix.Close(own) }, nil
	case <-waiting.Done():
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("waiting for the lock of %s: %w", d.path, err)
	}
	return nil, fmt.Errorf("another process has held the lock (flock) of %s for %v: end it or choose another path",
		d.path, patience)
}

func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (d *directory) idOf(name string) (fileID, error) {
	var stat unix.Stat_t
	if err := unix.Fstatat(d.fd(), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fileID{}, os.NewSyscallError("fstatat", err)
	}
	return idOf(stat), nil
}

func idOf(stat unix.Stat_t) fileID {
	return fileID{device: uint64(stat.Dev), inode: stat.Ino}
}

// removeIf removes name if it is the file with that id. Another file, or none, is not an error.
func (d *directory) removeIf(name string, id fileID) error {
	switch now, err := d.idOf(name); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return err
	case now != id:
		return nil
	}
	if err := unix.Unlinkat(d.fd(), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return os.NewSyscallError("unlinkat", err)
	}
	return nil
}

func open(path string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Open(path, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// privateDirectory reports whether path is a directory that belongs to us and that no other user
// can write to.
func privateDirectory(path string) bool {
	var stat unix.Stat_t
	return unix.Stat(path, &stat) == nil && isType(stat, unix.S_IFDIR) &&
		int(stat.Uid) == os.Geteuid() && stat.Mode&0o022 == 0
}

// readPrivate reads a file that only we can have written, up to most bytes.
func readPrivate(path string, most int) ([]byte, error) {
	// O_NONBLOCK because opening a pipe would wait for its other end.
	fd, err := open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, &UnsafeError{Path: path, Reason: "is a symbolic link", Remedy: ourSocketsOnly}
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EOPNOTSUPP):
		return nil, &UnsafeError{Path: path, Reason: "is a socket", Remedy: ourSocketsOnly}
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if reason := notPrivate(stat); reason != "" {
		return nil, &UnsafeError{Path: path, Reason: reason, Remedy: ourSocketsOnly}
	}
	return io.ReadAll(io.LimitReader(f, int64(most)))
}

func notPrivate(stat unix.Stat_t) string {
	switch {
	case isType(stat, unix.S_IFLNK):
		return "is a symbolic link"
	case !isType(stat, unix.S_IFREG):
		return "is no regular file"
	case int(stat.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", stat.Uid)
	case stat.Mode&0o022 != 0:
		return "can be written to by other users"
	}
	return ""
}

// checkReplaceable returns an error unless path is free or a file of ours.
func checkReplaceable(path string) error {
	var stat unix.Stat_t
	switch err := unix.Lstat(path, &stat); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	if reason := notPrivate(stat); reason != "" {
		return &OccupiedError{Path: path, Reason: reason}
	}
	return nil
}

// An entry is the file with a name in a directory, links not followed.
type entry struct {
	id      fileID
	stat    unix.Stat_t
	address string // to connect to, while the entry is open
	close   func()
}

// foreign says why the entry is not a socket of ours; it is empty for one that is.
func (e *entry) foreign() string {
	switch {
	case isType(e.stat, unix.S_IFLNK):
		return "is a symbolic link"
	case !isType(e.stat, unix.S_IFSOCK):
		return "is no socket"
	case int(e.stat.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", e.stat.Uid)
	}
	return ""
}

// connect connects once, or a few times if a refusal could mean that the listener is busy, which
// the system does not distinguish.
func (e *entry) connect(ctx context.Context) (net.Conn, error) {
	const between = 20 * time.Millisecond
	for try := 1; ; try++ {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", e.address)
		if try == refusalsBeforeStale || !errors.Is(err, unix.ECONNREFUSED) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(between):
		}
	}
}
