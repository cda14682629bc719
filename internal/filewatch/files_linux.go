package filewatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The watched events: of a directory on the path to a file, of a directory that contains a name
// on the path, and of a file. A file counts as written when its writer closes it, so that no
// reader sees half of it.
const (
	eventsOfParents = unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW
	eventsOfNames   = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB | unix.IN_ONLYDIR
	eventsOfFile    = unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_MOVE_SELF | unix.IN_DONT_FOLLOW
)

// mostSteps is the maximum number of directories and links on the path to a file; the system
// itself follows 40 links.
const mostSteps = 1000

// Files watches files by absolute paths. The files and their directories need not exist; links
// are followed, and each may be replaced. It sends a value when one of the files may be another
// one, or may have changed. A caller that reads the files after Files has returned, and after
// each value, misses nothing. It does not see writes through memory (mmap), nor writes to a file
// that its writer keeps open.
//
// C is closed if the system can no longer watch, for example when a path leads to another
// machine. An error is [ErrBlind]. The caller must close the watch.
func Files(paths ...string) (*Watch, error) {
	f, err := newFiles(paths)
	if err != nil {
		return nil, err
	}
	changes := make(chan struct{}, 1)
	w := &Watch{C: changes, file: f.file}
	w.reading.Go(func() { f.read(changes) })
	return w, nil
}

// files is used by one goroutine.
type files struct {
	paths   []string
	file    *os.File        // the inotify descriptor
	watched map[int32]*spot // by watch descriptor
}

// A spot is a watched path: one whose every event matters, or a directory with the names that
// matter.
type spot struct {
	itself bool
	names  map[string]bool
}

func newFiles(paths []string) (*files, error) {
	if slices.ContainsFunc(paths, func(path string) bool { return !filepath.IsAbs(path) }) {
		return nil, ErrBlind
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBlind, err)
	}
	f := &files{paths: paths, file: os.NewFile(uintptr(fd), "inotify")} // non-blocking, so that Close ends a Read
	if err := f.renew(); err != nil {
		f.file.Close()
		return nil, err
	}
	return f, nil
}

// read reports changes until the file is closed.
func (f *files) read(changes chan<- struct{}) {
	events := make([]byte, 4096) // whole events, each of at most unix.SizeofInotifyEvent + unix.NAME_MAX + 1 bytes
	for {
		n, err := f.file.Read(events)
		if err != nil {
			return // it was closed
		}
		if !f.relevant(events[:n]) {
			continue
		}
		// Watched first: later changes are reported again.
		if err := f.renew(); err != nil {
			close(changes)
			return
		}
		select {
		case changes <- struct{}{}:
		default: // a change is pending already
		}
	}
}

// relevant reports whether one of these events matters.
func (f *files) relevant(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(events))
		mask := binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:end]), "\x00")
		events = events[end:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			return true
		}
		p := f.watched[wd]
		switch {
		case p == nil: // of a path that is no longer watched
		case name != "":
			if p.names[name] {
				return true
			}
		case p.itself || mask&unix.IN_ATTRIB == 0: // of a directory, every event except those of other names
			return true
		}
	}
	return false
}

// renew watches the current paths to the files, and nothing else. An error is [ErrBlind].
func (f *files) renew() error {
	conn, err := f.file.SyscallConn()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBlind, err)
	}
	controlled := conn.Control(func(fd uintptr) {
		before := f.watched
		f.watched = make(map[int32]*spot)
		for _, path := range f.paths {
			if err = f.follow(int(fd), path); err != nil {
				return
			}
		}
		for wd := range before {
			if f.watched[wd] == nil {
				_, _ = unix.InotifyRmWatch(int(fd), uint32(wd)) // it may be gone
			}
		}
	})
	if err = errors.Join(controlled, err); err != nil {
		return fmt.Errorf("%w: %w", ErrBlind, err)
	}
	return nil
}

// follow watches the path to a file, as far as it exists. If a part vanishes meanwhile, the
// earlier watches report it.
func (f *files) follow(fd int, path string) error {
	dir, rest := "/", strings.Split(path, "/")
	for range mostSteps {
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return nil // it is a directory
		}
		name := rest[0]
		if name == ".." {
			dir, rest = filepath.Dir(dir), rest[1:]
			continue
		}
		next := filepath.Join(dir, name)
		if len(rest) > 1 {
			_, err := f.watch(fd, next, eventsOfParents)
			if errors.Is(err, unix.EACCES) && isDirectory(next) { // a directory that we may not read can rarely be moved by others
				err = nil
			}
			if err == nil {
				dir, rest = next, rest[1:]
				continue
			}
			if isLimit(err) {
				return err
			}
		}
		// It is the last, a link, or missing.
		here, err := f.watch(fd, dir, eventsOfNames)
		switch {
		case isGone(err):
			return nil
		case err != nil:
			return err
		case isRemote(dir):
			return ErrBlind
		}
		if here.names == nil {
			here.names = make(map[string]bool)
		}
		here.names[name] = true
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			return nil
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(next)
			if err != nil {
				return nil
			}
			if filepath.IsAbs(target) {
				dir = "/"
			}
			rest = append(strings.Split(target, "/"), rest[1:]...)
		case len(rest) > 1 && info.IsDir(): // it has appeared since
		case len(rest) > 1:
			return nil
		default:
			if isRemote(next) {
				return ErrBlind
			}
			file, err := f.watch(fd, next, eventsOfFile)
			if err == nil {
				file.itself = true
			} else if isLimit(err) {
				return err
			}
			return nil // an unreadable file has no text; the directory reports when it becomes readable
		}
	}
	return nil // links in a circle lead nowhere; the first one reports its replacement
}

// watch adds events of a path.
func (f *files) watch(fd int, path string, heard uint32) (*spot, error) {
	wd, err := unix.InotifyAddWatch(fd, path, heard|unix.IN_MASK_ADD)
	if err != nil {
		return nil, &os.PathError{Op: "watch", Path: path, Err: err}
	}
	p := f.watched[int32(wd)]
	if p == nil {
		p = &spot{}
		f.watched[int32(wd)] = p
	}
	return p, nil
}

func isDirectory(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// isLimit reports whether an error means that a limit of inotify is reached.
func isLimit(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) }

// isGone reports whether an error means that the path no longer exists.
func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }
