package preview

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unicode"
)

// mostLinks is how many symbolic links [reach] follows, as many as Linux does.
const mostLinks = 40

var (
	errHidden   = fmt.Errorf("%w: it is hidden", fs.ErrNotExist)
	errReplaced = errors.New("another process replaced it while it was opened")
)

// A place is a file or a directory below a root, without any symbolic link on the way to it.
type place struct {
	dirs []*os.Root // the root, which belongs to the caller, and the directories below it
	name string     // of a file in the last of dirs; "" if the place is that directory
	info fs.FileInfo
}

func (p *place) dir() *os.Root { return p.dirs[len(p.dirs)-1] }

// close closes the directories below the root.
func (p *place) close() {
	for len(p.dirs) > 1 {
		p.pop()
	}
}

func (p *place) pop() {
	p.dir().Close()
	p.dirs = p.dirs[:len(p.dirs)-1]
}

// take returns the last directory, which the caller closes, and closes the others.
func (p *place) take() *os.Root {
	dir := p.dir()
	p.dirs = p.dirs[:len(p.dirs)-1]
	p.close()
	return dir
}

// open opens a file for reading, if it still is what [reach] found. It does not wait for a
// pipe.
func (p *place) open() (*os.File, error) {
	if p.name == "" {
		return nil, syscall.EISDIR
	}
	f, err := p.dir().OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := same(p.info, f.Stat); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// reach finds the file or directory of a name below root. It follows symbolic links itself,
// so isHidden sees each element of the resolved path; linked says that a link led there. It
// opens each directory on the way and checks that it opened the one it looked at: no link
// that comes into its place later leads elsewhere. The place is never nil; close it.
func reach(root *os.Root, name string, isHidden func(part string, linked bool) bool) (*place, error) {
	p := &place{dirs: []*os.Root{root}}
	todo := strings.Split(name, "/")
	named := len(todo) // elements at the end of todo that name has, not a link
	for links := 0; len(todo) > 0; {
		part, linked := todo[0], len(todo) > named
		todo = todo[1:]
		named = min(named, len(todo))
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			if len(p.dirs) == 1 {
				return p, fmt.Errorf("%w: it leads out of the directory", fs.ErrNotExist)
			}
			p.pop()
			continue
		case isHidden(part, linked):
			return p, errHidden
		}
		info, err := p.dir().Lstat(part)
		if err != nil {
			return p, err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := p.dir().Readlink(part)
			if err != nil {
				return p, err
			}
			if links++; links > mostLinks || filepath.IsAbs(to) || filepath.VolumeName(to) != "" {
				return p, errors.New("its symbolic link leads out of the directory, or in a circle")
			}
			todo = append(strings.Split(filepath.ToSlash(to), "/"), todo...)
		case info.IsDir():
			dir, err := p.dir().OpenRoot(part)
			if err != nil {
				return p, err
			}
			p.dirs = append(p.dirs, dir)
			if err := same(info, func() (fs.FileInfo, error) { return dir.Stat(".") }); err != nil {
				return p, err
			}
		case len(todo) > 0:
			return p, fmt.Errorf("%w: %s is no directory", fs.ErrNotExist, part)
		default:
			p.name, p.info = part, info
		}
	}
	return p, nil
}

// same returns an error if opened is another file than looked.
func same(looked fs.FileInfo, opened func() (fs.FileInfo, error)) error {
	now, err := opened()
	if err == nil && !os.SameFile(looked, now) {
		err = errReplaced
	}
	return err
}

func hiddenAlways(part string, _ bool) bool { return hidden(part) }

// hidden reports whether a name begins with a dot. Such files are for programs (.git,
// .env), but for those of RFC 8615. Some file systems ignore invisible characters in a
// name, and Windows has short names (GIT~1): those are hidden too.
func hidden(part string) bool {
	if runtime.GOOS == "windows" && strings.Contains(part, "~") {
		return true
	}
	visible := strings.TrimLeftFunc(part, func(r rune) bool { return unicode.Is(unicode.Cf, r) })
	return strings.HasPrefix(visible, ".") && part != "." && part != ".well-known"
}
