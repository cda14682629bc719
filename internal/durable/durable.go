// Package durable changes files so that a change survives a power cut once the call has returned.
// A power cut during the call leaves the old state or the new one. A rename alone does not: the disk
// may have the new name and not the text, or neither.
//
// Its functions may be called from any goroutine. Callers lock what they write.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// temporary begins the names of the files that Replace writes. A kill leaves one at most.
const temporary = ".duet-"

// Replace writes a file as a whole, with the permissions, whatever the umask. The directory must
// exist. A symbolic link at the path is replaced, not followed.
func Replace(path string, text []byte, permissions fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), temporary+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(permissions), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDirectory(filepath.Dir(path))
}

// Remove deletes a file or an empty directory. A missing one is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := SyncDirectory(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// MkdirAll makes a directory and its parents, as [os.MkdirAll] does.
func MkdirAll(path string, permissions fs.FileMode) error {
	var made []string
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		made = append(made, filepath.Dir(dir))
	}
	err := os.MkdirAll(path, permissions)
	for _, dir := range made {
		if err == nil {
			err = SyncDirectory(dir)
		}
	}
	return err
}

// Rename renames a file or a directory, as [os.Rename] does.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(SyncDirectory(filepath.Dir(to)), SyncDirectory(filepath.Dir(from)))
}

// Unknown reports whether an error of a file says neither that the file is missing nor that it may not be
// used: for example, the disk fails, or the process has too many open files. The next attempt may succeed.
func Unknown(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) &&
		!errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) && !errors.Is(err, syscall.EISDIR) && !errors.Is(err,
		syscall.ENAMETOOLONG)
}

// SyncFiles writes regular files below a root to the disk, with their names. Other files and
// missing ones are left out: their directories have what there is to know of them.
func SyncFiles(root *os.Root, names []string) error {
	directories := make(map[string]bool)
	for _, name := range names {
		for dir := filepath.Dir(name); !directories[dir]; dir = filepath.Dir(dir) {
			directories[dir] = true
		}
		info, err := root.Lstat(name)
		if Unknown(err) {
			return err
		}
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := syncIn(root, name); err != nil {
			return err
		}
	}
	for dir := range directories {
		if err := syncIn(root, dir); err != nil {
			return err
		}
	}
	return nil
}

// syncIn leaves out a file or directory that has gone, or that may not be read.
func syncIn(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || err != nil && isNoDirectory(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFile(f)
}
