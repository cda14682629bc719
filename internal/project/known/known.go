// Package known remembers the projects in which a user has had a hub on this machine,
// so that what is kept in all of them can be listed.
package known

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

const (
	// forgotten is how long a project whose directory is not there is remembered
	// after its last hub: it may be on a disk that is away.
	forgotten = 90 * 24 * time.Hour
	// pathMost is the most that is read of a file of the list, in bytes.
	pathMost = 64 << 10
)

// A List has a file for each project, named after a hash of its root, so that
// processes can add theirs without a lock. The file has the root, quoted as in Go,
// and the time of the project's last hub is that of the file. It may be used by many
// goroutines and processes at once.
type List struct {
	dir string
	now func() time.Time
}

// Default is the user's list, $XDG_STATE_HOME/duet/projects.
func Default(getenv func(string) string) (*List, error) {
	dir, err := project.StateHome(getenv)
	if err != nil {
		return nil, fmt.Errorf("finding the list of projects: %w", err)
	}
	return &List{dir: filepath.Join(dir, "projects"), now: time.Now}, nil
}

// Add notes that a hub begins in the project at root, which is absolute. Projects
// that have been gone for long are forgotten.
func (l *List) Add(root string) error {
	err := os.MkdirAll(l.dir, 0o700)
	if err == nil {
		err = project.CheckPrivate(l.dir)
	}
	if err == nil {
		err = l.write(root)
	}
	if err != nil {
		return fmt.Errorf("adding to the list of projects: %w", err)
	}
	l.forget()
	return nil
}

func (l *List) write(root string) error {
	sum := sha256.Sum256([]byte(root))
	path := filepath.Join(l.dir, hex.EncodeToString(sum[:8]))
	if was, err := read(path); err == nil && was == root {
		return os.Chtimes(path, l.now(), l.now())
	}
	f, err := os.CreateTemp(l.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, strconv.QuoteToASCII(root)+"\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// forget removes projects that have been gone for long, and what a process that was
// killed has left. What cannot be removed stays.
func (l *List) forget() {
	entries, _ := os.ReadDir(l.dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || l.now().Sub(info.ModTime()) < forgotten {
			continue
		}
		path := filepath.Join(l.dir, e.Name())
		if root, err := read(path); err != nil || !isDir(root) {
			_ = os.Remove(path)
		}
	}
}

// Roots are the projects whose directory is there, that with the last hub first. Each
// directory is there once, without symbolic links, whichever paths led to it. Where nothing
// is remembered there are none.
func (l *List) Roots() ([]string, error) {
	err := project.CheckPrivate(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(l.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of projects: %w", err)
	}
	type used struct {
		root string
		last time.Time
	}
	var list []used
	var seen []fs.FileInfo // of the directories in the list
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		root, err := read(filepath.Join(l.dir, e.Name()))
		if err != nil || !isDir(root) {
			continue
		}
		if resolved, err := filepath.EvalSymlinks(root); err == nil {
			root = resolved
		}
		list = append(list, used{root, info.ModTime()})
	}
	slices.SortFunc(list, func(a, b used) int {
		return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.root, b.root))
	})
	var roots []string
	for _, u := range list {
		directory, err := os.Stat(u.root)
		if err != nil || slices.ContainsFunc(seen, func(other fs.FileInfo) bool { return os.SameFile(other, directory) }) {
			continue
		}
		seen = append(seen, directory)
		roots = append(roots, u.root)
	}
	return roots, nil
}

// read is the root that a file of the list has.
func read(path string) (root string, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > pathMost {
		return "", fmt.Errorf("%s is no file of the list", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if root, err = strconv.Unquote(strings.TrimSpace(string(text))); err != nil || !filepath.IsAbs(root) {
		return "", fmt.Errorf("%s names no project", path)
	}
	return root, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
