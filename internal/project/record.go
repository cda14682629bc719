package project

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	recordName = "project.json"
	// recordMost is the largest project.json that is read, in bytes.
	recordMost = 64 << 10
	// machineIDShort is how much of a machine's id a directory's name has, in bytes.
	machineIDShort = 8
	// nameMost is how much of a root's own name the name of its state directory has, in
	// bytes: a socket's path has at most 104.
	nameMost = 24
)

// A Record is what project.json in a state directory holds: which directory the state
// belongs to. It lets a project that was moved find its state again, and shows when another
// directory has taken the project's place.
type Record struct {
	ID      string   `json:"id"`   // random, for good
	Root    pathText `json:"root"` // absolute, without symbolic links
	Machine string   `json:"machine,omitempty"`
	Identity
	// ReplacedAt is when Root was found to be a directory made anew, or zero. What the user
	// allowed before does not count until they say so, see [Keep].
	ReplacedAt time.Time `json:"replaced_at,omitzero"`
	// MovedFrom is the root that paths in the database are below, if that is not Root.
	MovedFrom pathText `json:"moved_from,omitempty"`

	StateDir string    `json:"-"`
	LastUsed time.Time `json:"-"` // when a hub of the project began last
}

// An Identity tells a directory from every other one, also from one that later has its path
// or its inode.
type Identity struct {
	Device uint64 `json:"device"` // can change when the system starts again
	Inode  uint64 `json:"inode"`
	Born   int64  `json:"born"` // in nanoseconds since 1970; 0 where the system does not know
}

// is reports whether both are the same directory.
func (a Identity) is(b Identity) bool {
	if a == (Identity{}) || a.Inode != b.Inode {
		return false
	}
	if a.Born == 0 || b.Born == 0 {
		return a.Device == b.Device
	}
	return a.Born == b.Born
}

func identityOf(dir string) (Identity, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return Identity{}, err
	}
	return identify(dir, info)
}

// A pathText is a path in JSON. One that is not UTF-8 is quoted as in Go.
type pathText string

// MarshalText implements [encoding.TextMarshaler].
func (p pathText) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(p)) {
		return []byte(p), nil
	}
	return []byte(strconv.QuoteToASCII(string(p))), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *pathText) UnmarshalText(text []byte) error {
	path := string(text)
	if strings.HasPrefix(path, `"`) {
		var err error
		if path, err = strconv.Unquote(path); err != nil {
			return err
		}
	}
	*p = pathText(path)
	return nil
}

// states are the state directories of all projects.
type states struct {
	dir     string
	machine string // "": not known
}

func statesOf(getenv func(string) string) (states, error) {
	home, err := StateHome(getenv)
	if err != nil {
		return states{}, fmt.Errorf("finding the state directory: %w", err)
	}
	return states{filepath.Join(home, "projects"), machineID()}, nil
}

// named returns the state directory of a root by its name alone: where machines share a home
// directory, the second one's has the machine's id.
func (s states) named(root string) string {
	sum := sha256.Sum256([]byte(root))
	name := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '-' || r == '_' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
			return r
		}
		return '-'
	}, filepath.Base(root))
	dir := filepath.Join(s.dir, name[:min(len(name), nameMost)]+"-"+hex.EncodeToString(sum[:8]))
	if r, err := readRecord(dir); err == nil && !s.isHere(r) {
		dir += "-" + s.machine[:machineIDShort]
	}
	return dir
}

// isHere reports whether a record is this machine's.
func (s states) isHere(r Record) bool {
	return s.machine == "" || r.Machine == "" || r.Machine == s.machine
}

// has reports whether a project has a state directory under its own name.
func (s states) has(root string) bool {
	_, err := readRecord(s.named(root))
	return err == nil
}

// of returns the state directory of a root, and, if there is none yet but that of a project
// which was moved to root, the record of that.
func (s states) of(root string) (dir string, moved *Record) {
	dir = s.named(root)
	if _, err := os.Lstat(filepath.Join(dir, recordName)); err == nil {
		return dir, nil
	}
	here, err := identityOf(root)
	if err != nil {
		return dir, nil
	}
	records, _ := s.list() // without it the project begins with no history, as any other does
	for _, r := range records {
		if !s.isHere(r) || !r.is(here) {
			continue
		}
		switch there, err := identityOf(string(r.Root)); {
		case err == nil && SameFile(string(r.Root), root): // by another path, as where case does not count
			return r.StateDir, nil
		case errors.Is(err, fs.ErrNotExist), err == nil && !r.is(there): // also if its old place was taken
			return dir, &r
		}
	}
	return dir, nil
}

// list returns the records of all projects, the last used first.
func (s states) list() ([]Record, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the projects: %w", err)
	}
	var list []Record
	for _, e := range entries {
		if r, err := readRecord(filepath.Join(s.dir, e.Name())); err == nil {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Record) int {
		return cmp.Or(b.LastUsed.Compare(a.LastUsed), cmp.Compare(a.Root, b.Root))
	})
	return list, nil
}

// StateDirIn returns the state directory of the project at root, as [StateDirOf] does, below a
// state home.
func StateDirIn(stateHome, root string) string {
	dir, _ := states{filepath.Join(stateHome, "projects"), machineID()}.of(root)
	return dir
}

// StateDirOf returns the state directory of the project at root, which is absolute and free of
// symbolic links.
func StateDirOf(getenv func(string) string, root string) (string, error) {
	home, err := StateHome(getenv)
	if err != nil {
		return "", fmt.Errorf("finding the state directory: %w", err)
	}
	return StateDirIn(home, root), nil
}

// All returns the records of the user's projects on this machine, the last used first, also
// of those whose root is gone.
func All(getenv func(string) string) ([]Record, error) {
	s, err := statesOf(getenv)
	if err != nil {
		return nil, err
	}
	list, err := s.list()
	return slices.DeleteFunc(list, func(r Record) bool { return !s.isHere(r) }), err
}

func readRecord(stateDir string) (Record, error) {
	path := filepath.Join(stateDir, recordName)
	info, err := os.Lstat(path)
	if err != nil {
		return Record{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > recordMost {
		return Record{}, fmt.Errorf("%s is not a record of a project", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err
	}
	r := Record{StateDir: stateDir, LastUsed: info.ModTime()}
	if err := json.Unmarshal(text, &r); err != nil || !filepath.IsAbs(string(r.Root)) {
		return Record{}, fmt.Errorf("%s is not a record of a project", path)
	}
	return r, nil
}

// CheckRoot returns an error if Root is another directory than the one that was recorded, or is
// gone. It is cheap.
func (r Record) CheckRoot() error {
	here, err := identityOf(string(r.Root))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed or moved", r.Root)
	case err == nil && !r.is(here):
		return fmt.Errorf("%s was replaced", r.Root)
	}
	return nil // or it is not known
}

// write replaces project.json at once.
func (r Record) write() error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(r.StateDir, "."+recordName+"-*")
	if err != nil {
		return fmt.Errorf("writing down the project: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(r.StateDir, recordName))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("writing down the project: %w", err)
	}
	return nil
}

// RecordFile is the file of the project's [Record], which need not exist.
func (p Project) RecordFile() string { return filepath.Join(p.StateDir, recordName) }

// Record returns the record of the project. An error is one of fs.ErrNotExist if the project
// has no state yet.
func (p Project) Record() (Record, error) { return readRecord(p.StateDir) }

// record writes down which directory the state belongs to, for the lock holder. The record is
// right also if it cannot be written.
func (p Project) record(now time.Time) (Record, error) {
	here, err := identityOf(p.Root)
	if err != nil {
		return Record{}, fmt.Errorf("looking at the project: %w", err)
	}
	r, err := readRecord(p.StateDir)
	if err != nil {
		r = Record{ID: rand.Text(), Root: pathText(p.Root), Machine: machineID(), Identity: here, StateDir: p.StateDir}
		return r, r.write()
	}
	if r.is(here) && r.Device == here.Device {
		return r, os.Chtimes(filepath.Join(p.StateDir, recordName), now, now)
	}
	if !r.is(here) {
		r.ReplacedAt = now
	}
	r.Identity = here
	return r, r.write()
}

// Replaced returns when the project's root was found to be a directory made anew, or the zero
// time. Rules, trust and answers from before do not count.
func (p Project) Replaced() time.Time {
	r, err := p.Record()
	if err != nil {
		return time.Time{}
	}
	return r.ReplacedAt
}

// Keep lets count again what the user allowed before the root was replaced. It reports whether
// it was.
func (p Project) Keep() (kept bool, err error) {
	r, err := p.Record()
	if err != nil || r.ReplacedAt.IsZero() {
		return false, err
	}
	r.ReplacedAt = time.Time{}
	return true, r.write()
}

// PathsMoved notes that the database has the paths of the project's new root.
func (p Project) PathsMoved() error {
	r, err := p.Record()
	if err != nil {
		return err
	}
	r.MovedFrom = ""
	return r.write()
}

// A MovedError says that a project was moved while a hub of it runs, whose state is not taken
// from it.
type MovedError struct {
	From string // the old root
	PID  int    // the hub's; 0 where it is not known
}

func (e *MovedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("the project was moved here from %s, where its hub still runs: end that, then try again", e.From)
	}
	return fmt.Sprintf("the project was moved here from %s, where its hub still runs (process %d): end that, then try again", e.From, e.PID)
}

// endsWithin is how long a hub whose root was moved may take to end.
const endsWithin = 2 * time.Second

// moveState gives a state directory the name of another root. Any number of processes may do
// it at once. An error is a *[MovedError] if a hub has the state.
func (s states) moveState(r Record, root string) error {
	from := Project{Root: string(r.Root), StateDir: r.StateDir}
	ctx, cancel := context.WithTimeout(context.Background(), endsWithin)
	defer cancel()
	var held *HeldError
	lock, err := from.Lock(ctx)
	for errors.As(err, &held) && ctx.Err() == nil { // it ends by itself when it sees that its root is gone
		time.Sleep(20 * time.Millisecond)
		lock, err = from.Lock(ctx)
	}
	switch {
	case errors.As(err, &held):
		return &MovedError{From: from.Root, PID: held.PID}
	case errors.Is(err, fs.ErrNotExist): // another process was quicker
		return nil
	case err != nil && held != nil:
		return &MovedError{From: from.Root, PID: held.PID}
	case err != nil:
		return err
	}
	defer lock.Close()
	now, err := readRecord(r.StateDir)
	if err != nil || now.Root != r.Root { // as above
		return nil
	}
	return s.rename(now, root)
}

// rename gives a state directory, whose lock the caller has, to another root.
func (s states) rename(r Record, root string) error {
	here, err := identityOf(root)
	if err != nil {
		return err
	}
	r.Identity = here
	r.MovedFrom, r.Root = cmp.Or(r.MovedFrom, r.Root), pathText(root)
	if err := r.write(); err != nil {
		return err
	}
	// If this fails the state is found by its record.
	return os.Rename(r.StateDir, s.named(root))
}

// A NoStateError says that nothing is kept of a project.
type NoStateError struct{ Root string }

func (e *NoStateError) Error() string {
	return fmt.Sprintf("no sessions are kept of %s; `duet-rpc projects` lists the projects that there are", e.Root)
}

// find returns the record of the project at root, which may be gone.
func (s states) find(root string) (Record, error) {
	path, err := filepath.Abs(root)
	if err != nil {
		return Record{}, err
	}
	path = resolve(path)
	list, err := s.list()
	if err != nil {
		return Record{}, err
	}
	for _, r := range list {
		if s.isHere(r) && string(r.Root) == path {
			return r, nil
		}
	}
	return Record{}, &NoStateError{root}
}

// Known returns the record of the project at root, which may be gone. The error is a
// *[NoStateError] if nothing is kept of it.
func Known(getenv func(string) string, root string) (Record, error) {
	s, err := statesOf(getenv)
	if err != nil {
		return Record{}, err
	}
	return s.find(root)
}

// Move gives the state of the project at one root to that at another, which has to be a
// directory of which nothing is kept. It is for a project whose move was not noticed, as to
// another disk. An error is a *[HeldError] if a hub runs there.
func Move(ctx context.Context, getenv func(string) string, from, to string) error {
	s, err := statesOf(getenv)
	if err != nil {
		return err
	}
	root, err := explicitRoot(to)
	if err != nil {
		return err
	}
	r, err := s.find(from)
	if err != nil {
		return err
	}
	if dir, _ := s.of(root); dir != r.StateDir && holdsDatabase(dir) {
		return fmt.Errorf("%s has sessions of its own: forget it first with `duet-rpc projects forget`", to)
	} else if dir != r.StateDir {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("moving the project: %w", err)
		}
	}
	lock, err := Project{Root: string(r.Root), StateDir: r.StateDir}.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return s.rename(r, root)
}

func holdsDatabase(stateDir string) bool {
	_, err := os.Lstat(Project{StateDir: stateDir}.Database())
	return err == nil
}

// Forget deletes the state of the project at root for good. The directory root, if there is
// one, is left alone. An error is a *[HeldError] if a hub runs there.
func Forget(ctx context.Context, getenv func(string) string, root string) error {
	s, err := statesOf(getenv)
	if err != nil {
		return err
	}
	r, err := s.find(root)
	if err != nil {
		return err
	}
	lock, err := Project{Root: string(r.Root), StateDir: r.StateDir}.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.RemoveAll(r.StateDir); err != nil {
		return fmt.Errorf("forgetting the project: %w", err)
	}
	return nil
}
