// Package project finds the directory that a session works in and the place of Duet's state for
// it. It makes sure that one process at a time is the hub of a project.
package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/durable"
)

const (
	configName = ".duet.toml"
	gitName    = ".git"
)

// A Project is a directory and the place of Duet's state for it. Both paths are absolute and
// free of symbolic links. The zero value is not usable.
type Project struct {
	// Root is the directory that agents work in.
	Root string
	// StateDir is the project's directory below the user's state directory, see [StateHome].
	// Duet never reads state from Root. StateDir need not exist before [Project.Prepare].
	StateDir string
	// Notes name ignored files, and how to enable them.
	Notes []string

	// unmoved is why the state of a moved project could not be moved, or nil.
	unmoved error
}

// Find returns the project of explicit, which must be a directory. If explicit is empty, it
// returns that of the working directory: the nearest ancestor with .duet.toml, .git or a state
// directory, else the working directory itself. Files of other users do not count, nor do those
// in the home directory, or in a directory for temporary files or of the system. Find creates
// nothing, but renames the state of a project that was moved to this root.
func (o Owners) Find(explicit string) (Project, error) {
	home, _ := os.UserHomeDir() // without a home no root is the home directory
	return finder{home: home, getenv: os.Getenv, owners: o}.find(explicit)
}

// finder holds the system's values that Find uses.
type finder struct {
	home   string
	getenv func(string) string
	owners Owners
}

func (f finder) find(explicit string) (Project, error) {
	states, err := statesOf(f.getenv)
	if err != nil {
		return Project{}, err
	}
	var p Project
	if explicit != "" {
		p.Root, err = explicitRoot(explicit)
	} else {
		p.Root, p.Notes, err = f.findRoot(states)
	}
	if err != nil {
		return Project{}, err
	}
	dir, moved := states.of(p.Root)
	if p.StateDir = dir; moved != nil {
		p.unmoved = states.moveState(*moved, p.Root)
	}
	if explicit == "" && !SameFile(p.Root, f.home) && f.reserved(p.Root) {
		p.Notes = append(p.Notes,
			fmt.Sprintf("%s is a directory for many projects, not a project: go to a project's directory, or name one with --root", p.Root))
	}
	if err := f.owners.CheckFile(p.ConfigFile()); err != nil {
		if note := err.Error(); !slices.Contains(p.Notes, note) {
			p.Notes = append(p.Notes, note)
		}
	}
	return p, nil
}

// findRoot goes up from the working directory. The notes name markers that belong to other
// users.
func (f finder) findRoot(states states) (root string, notes []string, err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", nil, fmt.Errorf("finding the project: %w", err)
	}
	if cwd, err = filepath.EvalSymlinks(cwd); err != nil {
		return "", nil, fmt.Errorf("finding the project: %w", err)
	}
	if root := states.ofWorktree(cwd); root != "" {
		return root, nil, nil
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		for _, marker := range []string{configName, gitName} {
			path := filepath.Join(dir, marker)
			if _, err := os.Lstat(path); err != nil {
				continue
			}
			if err := f.owners.CheckFile(path); err != nil {
				notes = append(notes, err.Error())
			} else if !f.reserved(dir) {
				return dir, notes, nil
			}
		}
		if states.has(dir) && !f.reserved(dir) {
			return dir, notes, nil
		}
		if dir == filepath.Dir(dir) {
			return cwd, notes, nil
		}
	}
}

// A NoDirectoryError reports that the directory of a project, its value, does not exist.
type NoDirectoryError string

func (e NoDirectoryError) Error() string {
	return "finding the project: there is no directory " + string(e)
}

func (NoDirectoryError) Unwrap() error { return fs.ErrNotExist }

func explicitRoot(path string) (string, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the project %s: %w", path, err)
	}
	if root, err = filepath.EvalSymlinks(root); errors.Is(err, fs.ErrNotExist) {
		return "", NoDirectoryError(path)
	} else if err != nil {
		return "", fmt.Errorf("finding the project: %w", err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return "", fmt.Errorf("finding the project: %w", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("the project's root %s is no directory", path)
	}
	return root, nil
}

// ConfigFile returns the project's configuration file, which need not exist.
func (p Project) ConfigFile() string { return filepath.Join(p.Root, configName) }

// Database returns the file of the project's store.
func (p Project) Database() string { return filepath.Join(p.StateDir, "duet.db") }

// ErrNoDatabase reports that a project has no database yet.
var ErrNoDatabase = errors.New("this project has no sessions yet")

// HasDatabase reports whether the project has a database.
func (p Project) HasDatabase() bool {
	_, err := os.Lstat(p.Database())
	return !errors.Is(err, fs.ErrNotExist)
}

// Prepare creates the state directory (mode 0700). It may be called again at any time. Errors
// are those of [Project.Check]; Prepare corrects a mode that lets others in. It refuses a
// directory on a network file system: SQLite's write-ahead log and file locks do not work there
// (https://sqlite.org/wal.html).
func (p Project) Prepare() error {
	if p.unmoved != nil {
		return p.unmoved
	}
	if err := MakePrivate(p.StateDir); err != nil {
		return err
	}
	if name := networkFileSystem(p.StateDir); name != "" {
		return &NetworkError{Path: p.StateDir, FileSystem: name}
	}
	return nil
}

// MakePrivate creates a state directory and its parent (mode 0700), or corrects the mode of one that
// exists. It returns a [NotPrivateError] if one of them is a symbolic link, a file or a directory of
// another user, who could plant files in it.
func MakePrivate(dir string) error {
	for _, dir := range []string{filepath.Dir(dir), dir} {
		if err := durable.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			return &uncreatedError{err}
		}
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			err = durable.SyncDirectory(filepath.Dir(dir))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return &uncreatedError{err}
		}
		info, err := checkStateDir(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm() == 0o700 {
			continue
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("closing the state directory to others: %w", err)
		}
	}
	return nil
}

// Check returns a [NotPrivateError] if the state directory is a symbolic link, a file or a
// directory of another user. It returns a [MovedError] if a hub uses the state at the project's
// old path. A missing directory is not an error.
func (p Project) Check() error {
	if p.unmoved != nil {
		return p.unmoved
	}
	_, err := checkStateDir(p.StateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func checkStateDir(dir string) (fs.FileInfo, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("looking at the state directory: %w", err)
	}
	if err := checkPrivate(dir, info); err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &NotPrivateError{Path: dir, Reason: "is no directory"}
	}
	return info, nil
}

// An uncreatedError reports that the state directory cannot be created.
type uncreatedError struct{ err error }

func (e *uncreatedError) Error() string {
	return fmt.Sprintf("creating the state directory: %v; set %s to a directory that can be written",
		e.err, StateVariable)
}

func (e *uncreatedError) Unwrap() error { return e.err }

// A NetworkError reports that the state directory is on a network file system.
type NetworkError struct {
	Path       string
	FileSystem string // such as NFS
}

func (e *NetworkError) Error() string {
	return fmt.Sprintf("the state directory %s is on a network file system (%s), where a database can be damaged: set %s to a directory on "+
		"a local disk", e.Path, e.FileSystem, StateVariable)
}
