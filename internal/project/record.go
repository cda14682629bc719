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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/durable"
)

const (
	recordName = "project.json"
	// recordMost is the largest project.json that is read, in bytes.
	recordMost = 64 << 10
	// machineIDShort is the length of the machine's id in a directory's name, in bytes.
	machineIDShort = 8
	// nameMost is the length of a root's own name in the name of its state directory, in bytes:
	// a socket's path has at most 104.
	nameMost = 24
)

// A Record is the content of project.json in a state directory: which directory the state
// belongs to. With it a moved project finds its state again, and Duet notices when another
// directory has taken the project's place.
type Record struct {
	ID      string   `json:"id"`   // random, never changes
	Root    pathText `json:"root"` // absolute, without symbolic links
	Machine string   `json:"machine,omitempty"`
	Identity
	// ReplacedAt is when Root was found to be a new directory, or zero. The user's earlier
	// permissions do not count until the user confirms them, see [Keep].
	ReplacedAt time.Time `json:"replaced_at,omitzero"`
	// MovedFrom is the old root, if paths in the database are still below it.
	MovedFrom pathText `json:"moved_from,omitempty"`

	StateDir string    `json:"-"`
	LastUsed time.Time `json:"-"` // when a hub of the project last began
}

// An Identity distinguishes a directory from every other one, also from one that later has its
// path or its inode.
type Identity struct {
	Device uint64 `json:"device"` // may change after a restart of the system
	Inode  uint64 `json:"inode"`
	Born   int64  `json:"born"` // in nanoseconds since 1970; 0 if the system does not know it
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
	machine string // "": unknown
}

func statesOf(getenv func(string) string) (states, error) {
	home, err := StateHome(getenv)
	if err != nil {
		return states{}, fmt.Errorf("finding the state directory: %w", err)
	}
	return states{filepath.Join(home, "projects"), machineID()}, nil
}

// machineID returns the id of this installation of the system, machine-id(5), or "" if it is
// unknown, as on systems other than Linux.
func machineID() string {
	if runtime.GOOS != "linux" {
		return ""
	}
	text, _ := os.ReadFile("/etc/machine-id") // machines without an id all count as the same
	id := strings.TrimSpace(string(text))
	if len(id) < machineIDShort || id == "uninitialized" {
		return ""
	}
	return id
}

// named returns the state directory of a root by its name alone. If machines share a home
// directory, the name on the second one contains the machine's id.
func (s states) named(root string) string {
	sum := sha256.Sum256([]byte(root))
	name := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf &&
			(r == '-' || r == '_' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
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

// isHere reports whether a record belongs to this machine.
func (s states) isHere(r Record) bool {
	return s.machine == "" || r.Machine == "" || r.Machine == s.machine
}

// has reports whether a project has a state directory under its own name.
func (s states) has(root string) bool {
	_, err := readRecord(s.named(root))
	return err == nil
}

// of returns the state directory of a root. If it does not exist yet but a project was moved to
// root, it also returns the record of that project.
func (s states) of(root string) (dir string, moved *Record) {
	dir = s.named(root)
	if _, err := os.Lstat(filepath.Join(dir, recordName)); err == nil {
		return dir, nil
	}
	here, err := identityOf(root)
	if err != nil {
		return dir, nil
	}
	records, _ := s.list() // without it the project begins with no history, as a new one does
	for _, r := range records {
		if !s.isHere(r) || !r.is(here) {
			continue
		}
		switch there, err := identityOf(string(r.Root)); {
		case err == nil && SameFile(string(r.Root), root): // by another path, as on a file system that ignores case
			return r.StateDir, nil
		case errors.Is(err, fs.ErrNotExist), err == nil && !r.is(there): // also if its old place was taken
			return dir, &r
		}
	}
	return dir, nil
}

// WorktreesDir returns the directory with the git worktrees of a project, by its state directory. Agents
// write there, so it is not in the state directory, which they may not touch.
func WorktreesDir(stateDir string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(stateDir)), "worktrees", filepath.Base(stateDir))
}

// OldWorktreesDir returns the directory that the git worktrees of a moved project had, by MovedFrom.
func (r Record) OldWorktreesDir() string {
	return WorktreesDir(states{filepath.Dir(r.StateDir), machineID()}.named(string(r.MovedFrom)))
}

// ofWorktree returns the root of the project that has a worktree around a directory, or "".
func (s states) ofWorktree(dir string) string {
	below, err := filepath.Rel(filepath.Join(filepath.Dir(s.dir), "worktrees"), dir)
	if err != nil || !filepath.IsLocal(below) {
		return ""
	}
	name, _, _ := strings.Cut(below, string(filepath.Separator))
	r, err := readRecord(filepath.Join(s.dir, name))
	if _, gone := os.Stat(string(r.Root)); err != nil || gone != nil || !s.isHere(r) {
		return ""
	}
	return string(r.Root)
}

// list returns the records of all projects, the most recently used first.
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
		if strings.HasSuffix(e.Name(), forgotten) {
			continue
		}
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

// All returns the records of the user's projects on this machine, the most recently used first,
// including those whose root is gone.
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

// CheckRoot returns an error if Root is another directory than the recorded one, or is gone. It
// is cheap.
func (r Record) CheckRoot() error {
	here, err := identityOf(string(r.Root))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed or moved", r.Root)
	case err == nil && !r.is(here):
		return fmt.Errorf("%s was replaced", r.Root)
	}
	return nil // or unknown
}

// write replaces project.json atomically.
func (r Record) write() error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(r.StateDir, recordName), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing down the project: %w", err)
	}
	return nil
}

// RecordFile returns the file of the project's [Record], which need not exist.
func (p Project) RecordFile() string { return filepath.Join(p.StateDir, recordName) }

// Record returns the record of the project. An error is one of fs.ErrNotExist if the project
// has no state yet.
func (p Project) Record() (Record, error) { return readRecord(p.StateDir) }

// record writes which directory the state belongs to. The lock holder calls it. The returned
// record is right even if writing fails.
func (p Project) record(now time.Time) (Record, error) {
	here, err := identityOf(p.Root)
	if err != nil {
		return Record{}, fmt.Errorf("looking at the project: %w", err)
	}
	r, err := readRecord(p.StateDir)
	if durable.Unknown(err) { // a new record would forget that the root was replaced or moved
		return Record{}, fmt.Errorf("looking at the project: %w", err)
	}
	if err != nil {
		r = Record{ID: rand.Text(), Root: pathText(p.Root), Machine: machineID(), Identity: here, StateDir: p.StateDir}
		return r, r.write()
	}
	// A power cut has undone the user's move, or came between the record and the name of the state.
	isBack := r.is(here) && !SameFile(string(r.Root), p.Root)
	if isBack {
		r.MovedFrom, r.Root = cmp.Or(r.MovedFrom, r.Root), pathText(p.Root)
	}
	if r.is(here) && r.Device == here.Device && !isBack {
		return r, os.Chtimes(filepath.Join(p.StateDir, recordName), now, now)
	}
	if !r.is(here) {
		r.ReplacedAt = now
	}
	r.Identity = here
	return r, r.write()
}

// Replaced returns when the project's root was found to be a new directory, or the zero time.
// Earlier rules, trust and answers do not count. The error says that the record cannot be read at the
// moment.
func (p Project) Replaced() (time.Time, error) {
	r, err := p.Record()
	if durable.Unknown(err) {
		return time.Time{}, err
	}
	return r.ReplacedAt, nil
}

// Keep makes the user's permissions from before the replacement of the root count again. It
// reports whether the root had been replaced.
func (p Project) Keep() (kept bool, err error) {
	r, err := p.Record()
	if err != nil || r.ReplacedAt.IsZero() {
		return false, err
	}
	r.ReplacedAt = time.Time{}
	return true, r.write()
}

// PathsMoved records that the database has the paths of the project's new root.
func (p Project) PathsMoved() error {
	r, err := p.Record()
	if err != nil {
		return err
	}
	r.MovedFrom = ""
	return r.write()
}

// A MovedError reports that a project was moved while its hub runs, which keeps the state.
type MovedError struct {
	From string // the old root
	PID  int    // the hub's; 0 if unknown
}

func (e *MovedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("the project was moved here from %s, where its daemon still runs: end that, then try again",
			e.From)
	}
	return fmt.Sprintf("the project was moved here from %s, where its daemon still runs (process %d): end that, then try again", e.From, e.PID)
}

// endsWithin is how long a hub whose root was moved may take to end.
const endsWithin = 2 * time.Second

// moveState renames a state directory for another root. Any number of processes may call it at
// once. An error is a *[MovedError] if a hub uses the state.
func (s states) moveState(r Record, root string) error {
	from := Project{Root: string(r.Root), StateDir: r.StateDir}
	ctx, cancel := context.WithTimeout(context.Background(), endsWithin)
	defer cancel()
	var held *HeldError
	lock, err := from.Lock(ctx)
	for errors.As(err, &held) && ctx.Err() == nil { // it ends when it notices that its root is gone
		time.Sleep(20 * time.Millisecond)
		lock, err = from.Lock(ctx)
	}
	switch {
	case errors.As(err, &held):
		return &MovedError{From: from.Root, PID: held.PID}
	case errors.Is(err, fs.ErrNotExist): // another process was faster
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

// rename renames a state directory, whose lock the caller holds, for another root.
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
	// If this fails the record still leads to the state.
	return durable.Rename(r.StateDir, s.named(root))
}

// A NoStateError reports that there is no state of a project.
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
// *[NoStateError] if it has no state.
func Known(getenv func(string) string, root string) (Record, error) {
	s, err := statesOf(getenv)
	if err != nil {
		return Record{}, err
	}
	return s.find(root)
}

// Move moves the state of the project at one root to another, which must be a directory without
// state. It is for a project whose move was not noticed, for example to another disk. An error
// is a *[HeldError] if a hub runs there.
func Move(ctx context.Context, getenv func(string) string, from, to string) error {
	s, err := statesOf(getenv)
	if err != nil {
		return err
	}
	root, err := explicitRoot(to)
	if err != nil {
		return &domain.Error{
			Kind: domain.KindInvalid, Message: err.Error(), Param: "to", Expected: "the path of a directory", Received: strconv.Quote(to), Err: err,
		}
	}
	r, err := s.find(from)
	if err != nil {
		return err
	}
	if dir, _ := s.of(root); dir != r.StateDir && holdsDatabase(dir) {
		return domain.Errorf(domain.KindBadState, "%s has sessions of its own: forget it first with `duet-rpc projects forget`", to)
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

// forgotten ends the name of a state directory that is being deleted. After a power cut in the middle of
// that, part of a database must not count as the project's state.
const forgotten = ".forgotten"

// Forget deletes the state of the project at root. This cannot be undone. It leaves the
// directory root alone. Before that it calls outside with the state directory, to delete what the
// state has elsewhere. When it returns, a power cut does not bring the state back. An error is a
// *[HeldError] if a hub runs there.
func Forget(ctx context.Context, getenv func(string) string, root string, outside func(stateDir string) error) error {
	s, err := statesOf(getenv)
	if err != nil {
		return err
	}
	if err := s.removeForgotten(); err != nil {
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
	err = outside(r.StateDir)
	if err == nil {
		err = durable.Rename(r.StateDir, r.StateDir+forgotten)
	}
	if err == nil {
		err = os.RemoveAll(r.StateDir + forgotten)
	}
	if err == nil {
		err = durable.SyncDirectory(s.dir)
	}
	if err != nil {
		return fmt.Errorf("forgetting the project: %w", err)
	}
	return nil
}

// removeForgotten deletes what an earlier Forget left when its process ended.
func (s states) removeForgotten() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listing the projects: %w", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), forgotten) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
			return fmt.Errorf("deleting a forgotten project: %w", err)
		}
	}
	return nil
}

// Released returns a channel that is closed when the hub's lock has been released: at once if it
// is free, and also if the system cannot report it. Another process may take the lock in the
// same moment, and the channel may then be closed only when that one releases it.
//
// It waits for the lock in the system, which only the lock's holder can end. So only a process
// that exits soon without the lock should use it.
func (p Project) Released() <-chan struct{} {
	released := make(chan struct{})
	file := flock.New(filepath.Join(p.StateDir, "lock"), flock.SetFlag(os.O_RDWR|NoFollow))
	go func() { // until the lock is released, or this process ends
		defer close(released)
		for errors.Is(file.RLock(), syscall.EINTR) {
		}
		file.Close()
	}()
	return released
}
