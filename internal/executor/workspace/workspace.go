// Package workspace is the files that an agent may access: its directories, reads and writes
// confined to them, and the changes of a prompt.
package workspace

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/sandbox"
)

// maxTextFile limits the files that are read or written for an agent.
const maxTextFile = 10 << 20

// A Workspace is the directories in which an agent may read and write files, except for the hub's
// own directory. Except for Add, its methods may be called from any goroutine.
type Workspace struct {
	CWD   string
	dirs  []string // with links resolved
	state string   // the hub's own directory; "" if it has none
	box   *sandbox.Box
}

// New makes a workspace of two directories. It excludes state, the hub's own directory, wherever
// it is; "" means none.
func New(root, cwd, state string) *Workspace {
	w := &Workspace{CWD: cwd, state: state}
	w.Add(root, cwd)
	return w
}

// Confine limits reads and writes to what the agent itself can do in a sandbox; nil: no limit. Call it
// before any other goroutine uses the workspace.
func (w *Workspace) Confine(box *sandbox.Box) { w.box = box }

// Add adds existing directories; they may be relative to the cwd.
func (w *Workspace) Add(dirs ...string) {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		if abs, err := filepath.Abs(w.Absolute(dir)); err == nil {
			if resolved, err := filepath.EvalSymlinks(abs); err == nil && !slices.Contains(w.dirs, resolved) {
				w.dirs = append(w.dirs, resolved)
			}
		}
	}
}

// Absolute returns path as an absolute path; a relative one starts at the cwd.
func (w *Workspace) Absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.CWD, path)
	}
	return filepath.Clean(path)
}

// locate resolves path, whose end need not exist. It returns the workspace directory that
// contains it, open, and its name in there. A link that changes meanwhile cannot lead out: the
// directory is an os.Root.
func (w *Workspace) locate(path string) (*os.Root, string, error) {
	path = w.Absolute(path)
	resolved, err := resolve(path)
	if err != nil {
		return nil, "", err
	}
	for _, dir := range w.dirs {
		rel, err := filepath.Rel(dir, resolved)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			continue
		}
		if w.isState(resolved) {
			return nil, "", fmt.Errorf("%s: %w", path, ErrState)
		}
		root, err := os.OpenRoot(dir)
		return root, rel, err
	}
	if resolved != path {
		return nil, "", fmt.Errorf("%s leads to %s, which is %w %s", path, resolved, ErrOutside, strings.Join(w.dirs, ", "))
	}
	return nil, "", fmt.Errorf("%s is %w %s", path, ErrOutside, strings.Join(w.dirs, ", "))
}

// ErrOutside is part of the error for a path outside of a workspace.
var ErrOutside = errors.New("outside of")

// ErrHidden and ErrReadOnly are parts of the errors for paths that a sandbox protects.
var (
	ErrHidden   = errors.New("the sandbox hides it")
	ErrReadOnly = errors.New("it is read-only in the sandbox")
)

// ErrState is part of the error for a path to the hub's own files.
var ErrState = errors.New("duet keeps its own state there, which agents neither read nor write")

// isState reports whether a resolved path, whose end need not exist, is the hub's directory or in
// it, or a hard link to a file in there. It does not compare names, because file systems differ
// in which names are equal.
func (w *Workspace) isState(resolved string) bool {
	if w.state == "" {
		return false
	}
	state, err := os.Stat(w.state)
	if err != nil {
		return false
	}
	if info, err := os.Stat(resolved); err == nil && info.Mode().IsRegular() && w.isStateFile(info) {
		return true
	}
	for dir := resolved; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && os.SameFile(info, state) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// isStateFile reports whether a file is one of the hub's, possibly a hard link outside of its
// directory.
func (w *Workspace) isStateFile(info fs.FileInfo) bool {
	entries, _ := os.ReadDir(w.state)
	for _, e := range entries {
		if own, err := e.Info(); err == nil && os.SameFile(own, info) {
			return true
		}
	}
	return false
}

// resolve follows the links of path as far as it exists. A dangling link is an error: its target
// could be anywhere.
func resolve(path string) (string, error) {
	rest := ""
	for dir := path; ; {
		resolved, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(resolved, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if _, err := os.Lstat(dir); err == nil {
			return "", fmt.Errorf("%s is a link that leads nowhere", dir)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", err
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = parent
	}
}

// Has reports whether the workspace has a file at path.
func (w *Workspace) Has(path string) bool {
	root, name, err := w.locate(path)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(name)
	return err == nil
}

// Covers reports whether a file at path is in the workspace, or would be if it existed.
func (w *Workspace) Covers(path string) bool {
	root, name, err := w.locate(path)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(name)
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// open opens a file for reading.
func (w *Workspace) open(path string) (*os.File, fs.FileInfo, error) {
	root, name, err := w.locate(path)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	info, err := root.Stat(name) // before opening: opening a pipe would block
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	// A link may have changed meanwhile.
	if now, err := f.Stat(); err != nil || w.state != "" && w.isStateFile(now) {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, cmp.Or(err, ErrState))
	}
	if w.box != nil {
		if real, err := pathOf(f); err != nil || !w.box.CanRead(real) {
			f.Close()
			return nil, nil, fmt.Errorf("%s: %w", path, ErrHidden)
		}
	}
	return f, info, nil
}

// ReadText reads a text file, or limit lines of it from line on, counted from 1.
func (w *Workspace) ReadText(path string, line, limit *int) (string, error) {
	f, info, err := w.open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.Size() > maxTextFile {
		return "", fmt.Errorf("%s has %d bytes, more than the limit of %d", path, info.Size(), maxTextFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTextFile))
	if err != nil {
		return "", err
	}
	return Lines(strings.ToValidUTF8(string(data), "\uFFFD"), line, limit), nil
}

// Lines returns at most limit lines of a text, starting at line, counted from 1; nil means all.
func Lines(text string, line, limit *int) string {
	if line != nil {
		for n := 1; n < *line && text != ""; n++ {
			_, text, _ = strings.Cut(text, "\n")
		}
	}
	if limit != nil {
		end := 0
		for n := 0; n < *limit && end < len(text); n++ {
			next := strings.IndexByte(text[end:], '\n')
			if next < 0 {
				end = len(text)
				break
			}
			end += next + 1
		}
		text = text[:end]
	}
	return text
}

// WriteText replaces a file, or creates it with its directories. Readers see the old content or
// the new one, whole.
func (w *Workspace) WriteText(path, text string) error {
	if len(text) > maxTextFile {
		return fmt.Errorf("%s would have %d bytes, more than the limit of %d", path, len(text), maxTextFile)
	}
	root, name, err := w.locate(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if w.box != nil {
		parent, err := w.parent(root, filepath.Dir(name))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer parent.Close()
		root, name = parent, filepath.Base(name) // no link can lead away any more
		if real, err := rootPath(root); err != nil || !w.box.CanWrite(filepath.Join(real, name)) {
			return fmt.Errorf("%s: %w", path, ErrReadOnly)
		}
	}
	mode := fs.FileMode(0o666) // before the umask
	info, err := root.Stat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
	}
	temp := filepath.Join(filepath.Dir(name), ".duet-"+rand.Text())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil && info != nil {
		err = f.Chmod(mode) // an existing file keeps its mode, regardless of the umask
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		root.Remove(temp)
	}
	return err
}

// parent opens a directory of a root, which it makes if it is missing. The agent may replace a
// directory by a link meanwhile, so each one is opened before the next and must be writable in the
// sandbox.
func (w *Workspace) parent(root *os.Root, dir string) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Split(filepath.Clean(dir), string(filepath.Separator)) {
		real, err := rootPath(at)
		if err == nil && !w.box.CanWrite(filepath.Join(real, name)) {
			err = ErrReadOnly
		}
		if err == nil {
			if err = at.Mkdir(name, 0o777); errors.Is(err, fs.ErrExist) {
				err = nil
			}
		}
		if err != nil {
			at.Close()
			return nil, err
		}
		next, err := at.OpenRoot(name)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// rootPath returns the path of an open directory, free of links.
func rootPath(root *os.Root) (string, error) {
	f, err := root.Open(".")
	if err != nil {
		return "", err
	}
	defer f.Close()
	return pathOf(f)
}

// pathOf returns the path of an open file, free of links. Only Linux, which has sandboxes, tells it.
func pathOf(f *os.File) (path string, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	controlled := raw.Control(func(fd uintptr) { path, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) })
	return path, cmp.Or(controlled, err)
}
