package origin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/ownership"
)

// A Place is where the database of a project is. Who changes something there
// must have the project's lock.
type Place struct {
	path string
	key  Key
}

// At is the place of the database at an absolute path that is free of symbolic
// links.
func At(path string, key Key) Place { return Place{path, key} }

// markPath is where the mark is.
func (p Place) markPath() string { return p.path + ".origin" }

// A Kind is what is known of a database.
type Kind int

// The kinds of databases.
const (
	None    Kind = iota // there is none
	Ours                // made here
	Moved               // made by this user, and moved here since: it is at its old place no more
	Copied              // of what this user made: the other one may be in use, or is newer
	Foreign             // nobody knows who made it, or it was made before there were marks
)

// A Finding is what [Place.Look] found.
type Finding struct {
	Kind Kind
	ID   string // of the database; "" where Kind is None or Foreign
	Was  string // the path that its mark names
	// Strange are files beside a database of this user's that SQLite would take
	// for a part of it, and that nobody of this user's has put there.
	Strange []string

	file fileID // which was looked at
}

// Look tells what the database is, and changes nothing. readID reads the id
// that a database which may be anybody's holds itself; it is only called where
// a mark fits the user and not the file. What is in the place of a database or
// beside it and is no file of this user's alone is an *UnusableError.
func (p Place) Look(readID func() (string, error)) (Finding, error) {
	for _, suffix := range companions() {
		if _, _, err := look(p.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Finding{}, err
		}
	}
	m, err := p.key.readMark(p.markPath())
	if err != nil && !errors.Is(err, errNoMark) {
		return Finding{}, err
	}
	marked := err == nil
	file, _, err := look(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Finding{Kind: None, Strange: p.beside()}, nil
	case err != nil:
		return Finding{}, err
	case !marked:
		return Finding{Kind: Foreign}, nil
	}
	found := Finding{ID: m.ID, Was: m.Path, file: file}
	switch {
	case m.File.is(file) && (m.Path == p.path || p.isGone(m.Path)):
		found.Kind = Ours
		if m.Path != p.path {
			found.Kind = Moved
		}
		found.Strange = p.strange(m)
		return found, nil
	case m.File.is(file): // a snapshot of a whole file system, or a new file where the old one was
		found.Kind = Copied
		return found, nil
	}
	// The mark is the user's, and the file is not the one that was marked. The
	// id is known to whoever has the one or the other, and to nobody else.
	if id, err := readID(); err != nil || id != m.ID {
		return Finding{Kind: Foreign}, nil // whatever it is, it is not what was marked
	}
	found.Kind = Copied
	if p.key.portable && m.Path == p.path && len(p.beside()) == 0 {
		found.Kind = Ours
	}
	return found, nil
}

// isGone reports whether the database is at its old place no more, or is the
// very same file there, as where a directory is mounted twice.
func (p Place) isGone(old string) bool {
	was, err := os.Lstat(old)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDirectory)
	}
	now, err := os.Lstat(p.path)
	return err == nil && os.SameFile(was, now)
}

// strange are the files beside a database that its mark does not know.
func (p Place) strange(m mark) (paths []string) {
	for _, path := range p.beside() {
		if id, _, err := look(path); path == p.path+"-wal" && err == nil && m.Log.is(id) {
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// beside are the files beside a database that hold pages of it. The shared
// memory of the log does not: the first who opens it begins it anew.
func (p Place) beside() (paths []string) {
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Lstat(p.path + suffix); err == nil && info.Size() > 0 {
			paths = append(paths, p.path+suffix)
		}
	}
	return paths
}

// NewID is the id of a database that is about to be made.
func NewID() string { return rand.Text() }

// Seal marks the database as this user's, and gives it the write-ahead log that
// belongs to it, unless it has one. It is called before it is opened for
// writing; what is in it then is taken for the user's own. The mark survives a
// power cut from the first thing on that SQLite makes survive one: it syncs the
// directory with the first sync of the log. Where another file is in its place
// than the one that was found, or installed since, that is not marked: the error
// is [ErrReplaced].
func (p Place) Seal(id string, f Finding) error { return p.seal(id, p.path, f) }

// SealMoving is Seal for a database that was moved, and of which something is
// changed because of that: until Seal it is known as moved.
func (p Place) SealMoving(f Finding) error { return p.seal(f.ID, f.Was, f) }

// ErrReplaced says that a database was replaced after it was looked at.
var ErrReplaced = errors.New("another database was put into the place of the project's just now; try again")

func (p Place) seal(id, path string, f Finding) error {
	file, _, err := look(p.path)
	if err != nil {
		return fmt.Errorf("marking the database as yours: %w", err)
	}
	before, err := p.key.readMark(p.markPath())
	if (err != nil || !before.File.is(file)) && (f.Kind != Ours || !f.file.is(file)) {
		return ErrReplaced
	}
	wal, err := os.OpenFile(p.path+"-wal", os.O_CREATE|os.O_WRONLY|ownership.NoFollow|ownership.NonBlocking, 0o600)
	if err != nil {
		return fmt.Errorf("marking the database as yours: %w", err)
	}
	wal.Close()
	log, _, err := look(p.path + "-wal")
	if err != nil {
		return fmt.Errorf("marking the database as yours: %w", err)
	}
	want := mark{ID: id, Path: path, File: file, Log: log}
	if now, err := p.key.readMark(p.markPath()); err == nil && now == want {
		return nil
	}
	return p.key.writeMark(p.markPath(), want)
}

// Sealed gives a function that tells, by [ErrReplaced], when the database is not
// the one any more that the user's mark names. Who opens the database asks it
// before anything of it has an effect.
func (p Place) Sealed() (unchanged func() error, err error) {
	sealed, err := p.key.readMark(p.markPath())
	if err != nil {
		return nil, err
	}
	return func() error {
		info, err := os.Lstat(p.path) // a hard link, such as backups make, changes nothing
		if err == nil {
			var file fileID
			if file, err = identify(p.path, info); err == nil && sealed.File.is(file) {
				return nil
			}
		}
		return ErrReplaced
	}, nil
}

// Install puts a new database, which is whole and closed, into the place of
// none. A process that dies meanwhile leaves either nothing there or the new
// database with its mark.
func (p Place) Install(from, id string) error {
	file, _, err := look(from)
	if err != nil {
		return fmt.Errorf("putting the new database into place: %w", err)
	}
	if err := p.key.writeMark(p.markPath(), mark{ID: id, Path: p.path, File: file}); err != nil {
		return err
	}
	if err = os.Rename(from, p.path); err == nil {
		err = syncDir(filepath.Dir(p.path)) // with the mark
	}
	if err != nil {
		return fmt.Errorf("putting the new database into place: %w", err)
	}
	return nil
}

// Finish puts a new database into place that a process which died had marked,
// and had not got there, and reports whether there was one.
func (p Place) Finish(from string) (id string, finished bool) {
	m, err := p.key.readMark(p.markPath())
	if err != nil || m.Path != p.path {
		return "", false
	}
	file, _, err := look(from)
	if err != nil || !m.File.is(file) {
		return "", false
	}
	return m.ID, os.Rename(from, p.path) == nil
}

// The beginnings of the names of directories with databases that are not used.
const (
	asideName = "set-aside-"
	takenName = "taken-over-"
)

// SetAside moves the database and what lies beside it into a new directory
// there, and returns that.
func (p Place) SetAside(now time.Time) (dir string, err error) {
	return p.setAside(now, p.path+"-wal", p.path+"-shm", p.path+"-journal", p.path)
}

// SetStrangeAside is SetAside for files that [Finding.Strange] lists.
func (p Place) SetStrangeAside(now time.Time, strange []string) (dir string, err error) {
	return p.setAside(now, strange...)
}

func (p Place) setAside(now time.Time, paths ...string) (dir string, err error) {
	dir, err = p.newAside(now)
	if err != nil {
		return "", fmt.Errorf("setting the database aside: %w", err)
	}
	for _, path := range paths {
		err := os.Rename(path, filepath.Join(dir, filepath.Base(path)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("setting the database aside: %w", err)
		}
	}
	if err := errors.Join(syncDir(dir), syncDir(filepath.Dir(dir))); err != nil {
		return "", fmt.Errorf("setting the database aside: %w", err)
	}
	return dir, nil
}

// newAside makes a directory that there was not.
func (p Place) newAside(now time.Time) (dir string, err error) {
	base := filepath.Join(filepath.Dir(p.path), asideName+now.UTC().Format("20060102T150405Z"))
	dir = base
	for n := 2; n < 1000; n++ {
		if err = os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
		dir = fmt.Sprintf("%s-%d", base, n)
	}
	return "", err
}

// Taken renames the directory of a database that was set aside, and of which
// the history has been taken over: it is not told of any more.
func (p Place) Taken(database string) (path string, err error) {
	dir := filepath.Dir(database)
	name, ok := strings.CutPrefix(filepath.Base(dir), asideName)
	if !ok || filepath.Dir(dir) != filepath.Dir(p.path) {
		return database, nil // it was never here
	}
	to := filepath.Join(filepath.Dir(dir), takenName+name)
	if err := os.Rename(dir, to); err != nil {
		return database, err
	}
	return filepath.Join(to, filepath.Base(database)), nil
}

// Aside lists the databases that were set aside, the newest first. Directories
// of that name which came with a project are among them.
func (p Place) Aside() (databases []string) {
	entries, _ := os.ReadDir(filepath.Dir(p.path)) // sorted by name
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(p.path), e.Name(), filepath.Base(p.path))
		if !e.IsDir() || !strings.HasPrefix(e.Name(), asideName) {
			continue
		}
		if _, _, err := look(path); err == nil {
			databases = append([]string{path}, databases...)
		}
	}
	return databases
}
