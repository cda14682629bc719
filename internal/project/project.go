// Package project finds the directory that a session works in and the place
// where Duet keeps its state for it, and sees to it that one process at a time
// is the hub of a project.
package project

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/ownership"
)

const (
	stateName  = ".duet"
	configName = ".duet.toml"
	gitName    = ".git"
)

// markers are what a project's root contains.
func markers() []string { return []string{stateName, configName, gitName} }

// A Project is a directory and the place of Duet's state for it. Both paths
// are absolute and free of symbolic links. The zero value is of no use.
type Project struct {
	// Root is the directory that agents work in.
	Root string
	// StateDir is Root/.duet, or a directory below the user's state directory
	// where Root cannot be written, is somebody else's, the home directory, or
	// one for temporary files or of the system. It need not exist before
	// [Project.Prepare].
	StateDir string
	// Notes say what was passed over, and what to do where that was meant.
	Notes []string
}

// Find gives the project of explicit, which must be a directory, or, where
// explicit is empty, that of the working directory: the nearest ancestor with
// .duet, .duet.toml or .git that count, else the working directory itself. What
// somebody else owns does not count, nor does what stands in a directory for
// temporary files or of the system, or in the home directory. It creates
// nothing.
func (o Owners) Find(explicit string) (Project, error) {
	home, _ := os.UserHomeDir() // without a home no root is the home directory
	return finder{home: home, getenv: os.Getenv, writable: writable, owners: o}.find(explicit)
}

// finder is what Find asks the system for.
type finder struct {
	home     string
	getenv   func(string) string
	writable func(dir string) bool
	owners   Owners
}

func (f finder) find(explicit string) (Project, error) {
	var p Project
	var err error
	if explicit != "" {
		p.Root, err = explicitRoot(explicit)
	} else {
		p.Root, p.Notes, err = f.findRoot()
	}
	if err != nil {
		return Project{}, err
	}
	if p.StateDir, err = f.stateDir(p.Root); err != nil {
		return Project{}, err
	}
	if explicit == "" && !SameFile(p.Root, f.home) && f.reserved(p.Root) {
		p.Notes = append(p.Notes, fmt.Sprintf("%s is no project, but a place for others; what is kept for it is in %s: go to a project's directory, or name one with --root", p.Root, p.StateDir))
	}
	if err := f.owners.CheckFile(p.ConfigFile()); err != nil {
		if note := err.Error(); !slices.Contains(p.Notes, note) {
			p.Notes = append(p.Notes, note)
		}
	}
	return p, nil
}

// findRoot goes up from the working directory. The notes tell of markers that
// are somebody else's.
func (f finder) findRoot() (root string, notes []string, err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", nil, fmt.Errorf("finding the project: %w", err)
	}
	if cwd, err = filepath.EvalSymlinks(cwd); err != nil {
		return "", nil, fmt.Errorf("finding the project: %w", err)
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		for _, marker := range markers() {
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
		if dir == filepath.Dir(dir) {
			return cwd, notes, nil
		}
	}
}

// A noDirectoryError says that there is no such directory.
type noDirectoryError string

func (e noDirectoryError) Error() string {
	return "finding the project: there is no directory " + string(e)
}

func (noDirectoryError) Unwrap() error { return fs.ErrNotExist }

func explicitRoot(path string) (string, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the project %s: %w", path, err)
	}
	if root, err = filepath.EvalSymlinks(root); errors.Is(err, fs.ErrNotExist) {
		return "", noDirectoryError(path)
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

func (f finder) stateDir(root string) (string, error) {
	own := filepath.Join(root, stateName)
	if !SameFile(root, f.home) && !f.reserved(root) && f.isOurs(root, own) && f.canHold(root, own) {
		return own, nil
	}
	base, err := StateHome(f.getenv)
	if err != nil {
		return "", fmt.Errorf("%s cannot hold the project's state: %w", root, err)
	}
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(base, hex.EncodeToString(sum[:8])), nil
}

// isOurs tells whether what is in root/.duet can only be this user's doing. One
// of somebody else's in somebody else's directory that is safe is theirs, and
// each has a state.
func (f finder) isOurs(root, own string) bool {
	info, err := os.Stat(root)
	if err != nil || f.owners.Check(root, info) != nil {
		return false
	}
	state, err := os.Lstat(own)
	return err != nil || !ownership.IsForeign(state) || !ownership.IsForeign(info)
}

// canHold tells whether the state can be in own. A link or a file in its place
// counts as well: Prepare refuses it, where state that silently went elsewhere
// would look lost.
func (f finder) canHold(root, own string) bool {
	info, err := os.Lstat(own)
	if err == nil && info.IsDir() {
		return f.writable(own) || checkPrivate(own, info) != nil
	}
	return err == nil || f.writable(root)
}

// ConfigFile is the project's configuration, which need not exist.
func (p Project) ConfigFile() string { return filepath.Join(p.Root, configName) }

// Database is the file of the project's store.
func (p Project) Database() string { return filepath.Join(p.StateDir, "duet.db") }

// Prepare creates the state directory (mode 0700, with a .gitignore of
// everything) and logs/ in it. It may be called again at any time. What is
// there and is a link, no directory or somebody else's is refused with a
// [NotPrivateError]; what others may read is closed to them.
func (p Project) Prepare() error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.StateDir), 0o700); err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	if err := privateDir(p.StateDir); err != nil {
		return err
	}
	if err := privateDir(filepath.Join(p.StateDir, "logs")); err != nil {
		return err
	}
	return ignoreAll(filepath.Join(p.StateDir, ".gitignore"))
}

// Check gives a [NotPrivateError] if the state directory is a symbolic link, no
// directory or somebody else's, or there is in it or in logs/ what is neither a
// file, a socket nor a directory, or has another name elsewhere: a project that
// came from elsewhere could have a link, and what is written to the state would
// be written to where it leads, or a pipe, which would be waited for; a copy that
// shares its files with the original would share its lock. A directory that does not exist is as it should be.
func (p Project) Check() error {
	for _, dir := range []string{p.StateDir, filepath.Join(p.StateDir, "logs")} {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking at the state directory: %w", err)
		}
		if err := checkPrivate(dir, info); err != nil {
			return err
		}
		if !info.IsDir() {
			return &NotPrivateError{Path: dir, Reason: "is no directory"}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("looking at the state directory: %w", err)
		}
		for _, entry := range entries {
			if err := checkEntry(filepath.Join(dir, entry.Name()), entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEntry looks at what is in the state directory.
func checkEntry(path string, entry fs.DirEntry) error {
	switch entry.Type() {
	case fs.ModeSymlink:
		return &NotPrivateError{Path: path, Reason: "is a symbolic link"}
	case fs.ModeDir, fs.ModeSocket:
		return nil
	case 0:
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has gone meanwhile
		}
		if err != nil {
			return fmt.Errorf("looking at the state directory: %w", err)
		}
		if ownership.Links(info) > 1 {
			return &NotPrivateError{Path: path, Reason: "has another name elsewhere (a hard link)"}
		}
		return nil
	case fs.ModeNamedPipe:
		return &NotPrivateError{Path: path, Reason: "is a named pipe"}
	}
	return &NotPrivateError{Path: path, Reason: "is no regular file"}
}

func privateDir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	if err := checkPrivate(path, info); err != nil {
		return err
	}
	if !info.IsDir() {
		return &NotPrivateError{Path: path, Reason: "is no directory"}
	}
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("closing the state directory to others: %w", err)
	}
	return nil
}

// ignoreAll keeps git from seeing the directory. A file that is there is left
// as it is.
func ignoreAll(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("hiding the state directory from git: %w", err)
	}
	_, err = f.WriteString("*\n")
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // left empty, on a full disk, it would hide nothing, for ever
		return fmt.Errorf("hiding the state directory from git: %w", err)
	}
	return nil
}
