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

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
)

// A File is the exact content of a file in a workspace.
type File struct {
	Exists bool
	Text   string
	Mode   fs.FileMode // permission bits
	info   fs.FileInfo
}

// ReadExact reads a file byte for byte. A missing file is not an error.
func (w *Workspace) ReadExact(path string) (File, error) {
	f, info, err := w.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	if info.Size() > maxTextFile {
		return File{}, fmt.Errorf("%s has %d bytes, more than the limit of %d", path, info.Size(), maxTextFile)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTextFile))
	return File{true, string(data), info.Mode().Perm(), info}, err
}

// ErrChanged means that a file has changed since it was read.
var ErrChanged = errors.New("the file has been changed in this moment")

// Replace replaces the content of a file that was read before, or deletes the file if text is
// nil. Readers see the old content or the new one, whole. A file keeps its mode. A new file gets
// mode, or the default mode if mode is 0. Replace fails for a file without write permission. It
// returns ErrChanged if the file has changed since was was read. An error means that nothing was
// changed.
func (w *Workspace) Replace(path string, was File, text *string, mode fs.FileMode) error {
	root, name, err := w.locateForUser(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if was.Exists {
		if err := writable(root, name, was.info); err != nil {
			return err
		}
	}
	if text == nil {
		if err := unchanged(root, name, was); err != nil {
			return err
		}
		return errors.Join(root.Remove(name), durable.SyncFiles(root, []string{name}))
	}
	if was.Exists {
		mode = was.Mode
	} else if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(name), ".duet-"+rand.Text())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, cmp.Or(mode, 0o666))
	if err != nil {
		return err
	}
	_, err = f.WriteString(*text)
	if err == nil && mode != 0 {
		err = f.Chmod(mode) // regardless of the umask
	}
	err = cmp.Or(err, f.Sync())
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = unchanged(root, name, was)
	}
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		root.Remove(temp)
		return err
	}
	return durable.SyncFiles(root, []string{name})
}

// ErrGit is part of the error for a file that only git may write.
var ErrGit = errors.New("it belongs to git, which may run it")

// locateForUser is locate for a change on the user's word alone. An agent may have reported a change of
// a hook that it did not make, so that the user's answer writes one.
func (w *Workspace) locateForUser(path string) (*os.Root, string, error) {
	root, name, err := w.locate(path)
	if err == nil && git.IsReserved(filepath.ToSlash(name)) {
		root.Close()
		return nil, "", fmt.Errorf("%s: %w", path, ErrGit)
	}
	return root, name, err
}

// SetExecutable sets or clears the executable bits of a file, for those who may read it.
func (w *Workspace) SetExecutable(path string, on bool) error {
	root, name, err := w.locateForUser(path)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm() &^ 0o111
	if on {
		mode |= mode & 0o444 >> 2
	}
	return root.Chmod(name, mode)
}

// writable checks that a file may be written, because replacing a file needs no permission on the
// file itself.
func writable(root *os.Root, name string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o222 == 0 { // also for a user who could write it anyway, such as root
		return &fs.PathError{Op: "write", Path: name, Err: fs.ErrPermission}
	}
	f, err := root.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err == nil {
		return f.Close()
	}
	return nil // replacing it reports the error
}

// unchanged returns an error if a file differs from the one that was read.
func unchanged(root *os.Root, name string, was File) error {
	now, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if was.Exists {
			return ErrChanged
		}
		return nil
	case err != nil:
		return err
	case !was.Exists || !os.SameFile(now, was.info) || now.Size() != was.info.Size() || !now.ModTime().Equal(was.info.ModTime()):
		return ErrChanged
	}
	return nil
}
