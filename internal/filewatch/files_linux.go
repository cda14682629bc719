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

// What is heard of: of a directory that leads to a file, of one in which something
// with a name is looked for, and of a file. A file is written when its writer
// closes it, so that nobody reads half of it.
const (
	eventsOnTheWay = unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW
	eventsOfNames  = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB | unix.IN_ONLYDIR
	eventsOfFile   = unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_MOVE_SELF | unix.IN_DONT_FOLLOW
)

// mostSteps is how many directories and links may lead to a file; the system
// itself follows 40 links.
const mostSteps = 1000

// Files watches files by absolute paths. They need not exist, nor the directories
// that lead to them; links are followed, and each may be replaced. It tells when one
// of the files may be another one, or another text: who looks at them after Files has
// returned, and after each telling, misses nothing. What is written through memory
// (mmap) is not told, nor what was written to a file that its writer keeps open.
//
// C is closed if the system cannot tell any more, such as when a path leads to
// another machine. An error is [ErrBlind]. Who has made a watch closes it.
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

// files are watched by one goroutine.
type files struct {
	paths   []string
	file    *os.File        // the inotify descriptor
	watched map[int32]*spot // by watch descriptor
}

// A spot is what is watched: something that is all of interest, or a directory in
// which names are.
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
	f := &files{paths: paths, file: os.NewFile(uintptr(fd), "inotify")} // it does not block, so that Close ends a Read
	if err := f.renew(); err != nil {
		f.file.Close()
		return nil, err
	}
	return f, nil
}

// read tells of changes until the file is closed.
func (f *files) read(changes chan<- struct{}) {
	events := make([]byte, 4096) // whole events, each of at most unix.SizeofInotifyEvent + unix.NAME_MAX + 1 bytes
	for {
		n, err := f.file.Read(events)
		if err != nil {
			return // it was closed
		}
		if !f.concern(events[:n]) {
			continue
		}
		// Watched first: what happens from here on is told again.
		if err := f.renew(); err != nil {
			close(changes)
			return
		}
		select {
		case changes <- struct{}{}:
		default: // it is known already
		}
	}
}

// concern reports whether there is an event that matters among these.
func (f *files) concern(events []byte) bool {
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
		case p == nil: // of what is not watched any more
		case name != "":
			if p.names[name] {
				return true
			}
		case p.itself || mask&unix.IN_ATTRIB == 0: // of a directory all but that leads elsewhere
			return true
		}
	}
	return false
}

// renew watches what leads to the files now, and nothing else. An error is
// [ErrBlind].
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

// follow watches what leads to a path, as far as there is something. What it finds
// gone on its way is told of by what it has watched before.
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
			_, err := f.watch(fd, next, eventsOnTheWay)
			if errors.Is(err, unix.EACCES) && isDirectory(next) { // what we may not read others seldom may move
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
		// It is the last, a link, or not there.
		here, err := f.watch(fd, dir, eventsOfNames)
		switch {
		case isGone(err):
			return nil
		case err != nil:
			return err
		case isElsewhere(dir):
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
		case len(rest) > 1 && info.IsDir(): // since it was tried
		case len(rest) > 1:
			return nil
		default:
			if isElsewhere(next) {
				return ErrBlind
			}
			file, err := f.watch(fd, next, eventsOfFile)
			if err == nil {
				file.itself = true
			} else if isLimit(err) {
				return err
			}
			return nil // one that may not be read has no text; the directory tells when it may
		}
	}
	return nil // links in a circle lead nowhere; the first one tells when it is replaced
}

// watch adds what is to be heard of a path.
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

// isLimit reports whether the system lets nobody watch more.
func isLimit(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM) }

// isGone reports whether what was to be watched is not there any more.
func isGone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }
