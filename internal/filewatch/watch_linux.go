package filewatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// A Watch reports changes of one directory, or of files.
type Watch struct {
	// C receives a value when something may have been removed or replaced: the directory, one on
	// its path, or an entry of it; or when the file was written. It is never closed.
	C <-chan struct{}

	file    *os.File
	reading sync.WaitGroup
}

// The watched events: of the directory itself, and of those on its path. The removal or unmount
// of one is always reported, by IN_IGNORED.
const (
	eventsHere  = eventsAbove | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	eventsAbove = unix.IN_MOVE_SELF | unix.IN_ONLYDIR
)

// Directory watches a directory, by a path that is absolute and free of symbolic links, for its
// own move or removal, and that of its entries. For root, also such a path, it watches only the
// former, and only if the system supports it. Earlier changes are not reported. An error is
// [ErrBlind], or the directory's. The caller must close the watch.
func Directory(path, root string) (*Watch, error) {
	fd, err := listen(path)
	if err == nil && !isRemote(root) {
		if err = listenAbove(fd, root); err == nil {
			// The removal of a process's working directory sends no event of its own.
			_, err = unix.InotifyAddWatch(fd, filepath.Dir(root), unix.IN_DELETE|unix.IN_MASK_ADD|unix.IN_ONLYDIR)
			if errors.Is(err, unix.EACCES) {
				err = nil
			}
		}
		if err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return nil, err
	}
	return newWatch(fd), nil
}

// Written watches a file. It may have been written before: a caller that reads it after Written
// has returned misses nothing. An error is [ErrBlind], or the file's. The caller must close the
// watch.
func Written(path string) (*Watch, error) {
	if isRemote(path) {
		return nil, ErrBlind
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBlind, err)
	}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.ENOSPC) {
			err = fmt.Errorf("%w: %w", ErrBlind, err)
		}
		return nil, &os.PathError{Op: "watch", Path: path, Err: err}
	}
	return newWatch(fd), nil
}

func newWatch(fd int) *Watch {
	changes := make(chan struct{}, 1)
	w := &Watch{C: changes, file: os.NewFile(uintptr(fd), "inotify")} // non-blocking, so that Close ends a Read
	w.reading.Go(func() { w.read(changes) })
	return w
}

// listen makes a descriptor from which changes can be read.
func listen(path string) (fd int, err error) {
	if isRemote(path) {
		return -1, ErrBlind
	}
	fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("%w: %w", ErrBlind, err)
	}
	if _, err := unix.InotifyAddWatch(fd, path, eventsHere); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.ENOSPC) { // the user's limit of watches is reached
			err = fmt.Errorf("%w: %w", ErrBlind, err)
		}
		return -1, &os.PathError{Op: "watch", Path: path, Err: err}
	}
	if err := listenAbove(fd, filepath.Dir(path)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// listenAbove watches for the move of a directory, or of one on its path.
func listenAbove(fd int, path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		_, err := unix.InotifyAddWatch(fd, dir, eventsAbove|unix.IN_MASK_ADD)
		switch {
		case errors.Is(err, unix.EACCES): // a directory that we may not read can rarely be moved by others
			err = nil
		case errors.Is(err, unix.ENOSPC): // the user's limit of watches is reached
			err = fmt.Errorf("%w: %w", ErrBlind, err)
		case err != nil:
			err = &os.PathError{Op: "watch", Path: dir, Err: err}
		}
		if err != nil {
			return err
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// Close ends the watch. C receives nothing more.
func (w *Watch) Close() error {
	err := w.file.Close()
	w.reading.Wait()
	return err
}

// read reports that something happened, without details: the receiver checks the files.
func (w *Watch) read(changes chan<- struct{}) {
	events := make([]byte, 4096) // whole events, each of at most unix.SizeofInotifyEvent + unix.NAME_MAX + 1 bytes
	for {
		if _, err := w.file.Read(events); err != nil {
			return // it was closed
		}
		select {
		case changes <- struct{}{}:
		default: // a change is pending already
		}
	}
}

// isRemote reports whether others can change a file system without our kernel.
func isRemote(path string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return true
	}
	switch uint32(fs.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC,
		unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.NCP_SUPER_MAGIC,
		unix.OCFS2_SUPER_MAGIC:
		return true
	}
	return false
}
