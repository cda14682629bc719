// Package checkpoint records the files of a directory as git objects, compares two records and
// restores one. It uses the git command, and the project needs no git repository.
//
// A checkpoint has all files that git does not ignore, with the bytes that are on the disk. In
// a git repository that the user owns and may write, the objects are in the user's object
// store, and a ref below refs/duet/ keeps each checkpoint. git gc drops the objects once
// the ref is deleted. The ref names a tag of a tree, so git log --all does not show it; git push
// --mirror does push it. Everywhere else the objects and refs are in a repository below
// [Options.State].
//
// Nothing of the project configures git. Each git process runs with a git directory of the
// store, which has its own configuration, attributes, index and HEAD. Thus no hook, filter or
// pager of the project runs, and its fsmonitor only if the user trusts it. The user's index, HEAD,
// branches, stash, reflogs and configuration are never written.
//
// The process may be killed at any moment. Take writes the ref last, so a killed Take leaves
// only objects without a ref, which gc drops, and temporary files, which the next call removes.
package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
)

// Options says what a [Store] records and where.
type Options struct {
	// Dir is the project's directory. If it is in a git repository, and not ignored there, the
	// whole working tree of the repository is recorded.
	Dir string
	// State is a directory of the store alone. It is created if it is missing. Stores of
	// the same Dir and State share their checkpoints.
	State string
	// Git is the path of git 2.39 or later; "" looks for it in PATH.
	Git string
	// MaxFileSize is the size in bytes of the largest recorded file; 0 means 10 MB.
	MaxFileSize int64
	// MaxFiles is the largest number of recorded files; 0 means 1,000,000.
	MaxFiles int
	// MaxNewBytes is the largest size of all files together that one call of Take records and
	// that the user's git does not track; 0 means 2 GB.
	MaxNewBytes int64
	// Log is of damaged files that were set aside; nil discards.
	Log *slog.Logger `json:"-"`
	// Trusted, if set, reports whether the user trusts the repository. Take then has the program
	// that core.fsmonitor in its configuration names list the changed files. Take calls it each time.
	Trusted func() bool `json:"-"`
}

// A Store takes, keeps and restores the checkpoints of a directory. It may be used by several
// goroutines and processes at once. Take, Restore and Prune wait for each other; List, Changes
// and Read wait for nothing.
type Store struct {
	program, state string
	maxFileSize    int64
	maxFiles       int
	maxNewBytes    int64
	trusted        func() bool
	log            *slog.Logger

	repo           git.Repository
	top            string      // of what is recorded
	dir            string      // the git directory of the store
	own            bool        // the objects and refs are in dir
	trackedOnly    atomic.Bool // there were too many files; it stays so, since two checkpoints are compared
	prefix         string      // of the refs
	excludes       string      // the user's file of ignore patterns
	env, lockedEnv []string

	mu   sync.Mutex        // guards the fields below
	tags map[ID]Checkpoint // those of the last list, and newer ones, without numbers; the map never changes
	asOf map[ID]time.Time  // when the files were as those checkpoints have them that this Store has taken
}

// An ID names a checkpoint. It is the name of a git object.
type ID string

// A Checkpoint is a record of the files of a directory.
type Checkpoint struct {
	ID      ID
	Number  int // orders the checkpoints; the number of the newest is reused if that is deleted
	Time    time.Time
	Message string
	// Skipped lists files that are not ignored and not recorded, at most 200. New sockets,
	// named pipes and devices are not listed.
	Skipped []Skipped
	// MoreSkipped is how many more there are.
	MoreSkipped int
	// Late are the paths of the files that others had changed when [Store.TakeBefore] looked. Only its
	// result has them.
	Late []string

	tree string
}

// Skipped is a file that a checkpoint does not have.
type Skipped struct {
	Path   string // relative to [Store.Top], with slashes
	Reason Reason
}

// Reason says why a file is not recorded.
type Reason string

// The reasons for which files are not recorded.
const (
	TooLarge   Reason = "too-large"         // larger than Options.MaxFileSize
	Special    Reason = "special"           // a socket, named pipe or device
	Nested     Reason = "nested-repository" // a repository in the tree, or a submodule
	Unreadable Reason = "unreadable"        // no permission to read it
	Reserved   Reason = "reserved"          // git reserves the name, for example .GIT
	Untracked  Reason = "untracked"         // all files that the user's git does not track; Path is ""
	Changed    Reason = "changed"           // changed while the first checkpoint was taken; see TakeBefore
)

// ErrUnknown reports a checkpoint or blob that the store does not have.
var ErrUnknown = errors.New("no such checkpoint")

// A TooManyFilesError reports that a directory has more files than [Options.MaxFiles].
type TooManyFilesError struct{ Limit int }

func (e *TooManyFilesError) Error() string {
	return fmt.Sprintf("no checkpoint of a directory with more than %d files: add build output to .gitignore", e.Limit)
}

// A TooLargeError reports that new files are larger together than [Options.MaxNewBytes].
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("no checkpoint of more than %d MB of new files: add data and build output to .gitignore",
		e.Limit>>20)
}

const (
	defaultMaxFileSize = 10 << 20
	defaultMaxFiles    = 1_000_000
	defaultMaxNewBytes = 2 << 30
	mostSkipped        = 200
	// mostLoose is the number of new files above which Take writes one pack instead of a file
	// for each object.
	mostLoose = 500
	attempts  = 3
)

// Open finds the repository around opts.Dir and opens its store. It decides where objects are
// kept; open the store again after git init or a change of permissions.
func Open(ctx context.Context, opts Options) (*Store, error) {
	s := &Store{
		program: opts.Git, maxFileSize: cmp.Or(opts.MaxFileSize, defaultMaxFileSize),
		maxFiles:    cmp.Or(opts.MaxFiles, defaultMaxFiles),
		maxNewBytes: cmp.Or(opts.MaxNewBytes, defaultMaxNewBytes), trusted: opts.Trusted, log: opts.Log,
		asOf: make(map[ID]time.Time),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.program == "" {
		if s.program, err = exec.LookPath("git"); err != nil {
			return nil, fmt.Errorf("checkpoints need git: %w", err)
		}
	}
	if err := durable.MkdirAll(opts.State, 0o700); err != nil {
		return nil, err
	}
	if s.state, err = git.RealPath(opts.State); err != nil {
		return nil, err
	}
	if s.top, err = git.RealPath(opts.Dir); err != nil {
		return nil, err
	}
	if known, _ := git.ReadSmall(filepath.Join(s.state, directoryFile)); known != s.top {
		if err := durable.Replace(filepath.Join(s.state, directoryFile), []byte(s.top), 0o600); err != nil {
			return nil, err
		}
	}
	if err := git.CheckVersion(ctx, s.program, s.state, "checkpoints"); err != nil {
		return nil, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()

	dir := s.top
	repo, found := git.Find(dir)
	if found {
		s.repo, s.top = repo, repo.Top
		s.repo.Config, err = git.ReadConfig(ctx, s.program, filepath.Join(repo.Common, "config"))
		if err == nil {
			err = s.repo.Unusable()
		}
		if durable.Unknown(err) { // another store would hide the checkpoints
			return nil, err
		}
		found = err == nil
	}
	s.excludes = s.userExcludes(ctx, s.repo)
	for {
		s.own = !found
		if err := s.prepare(found); err != nil {
			if found && !durable.Unknown(err) { // no links on this file system
				found = false
				continue
			}
			return nil, err
		}
		if dir == s.top {
			return s, nil
		}
		ignored, err := s.isIgnored(ctx, dir)
		if err != nil || !ignored {
			return s, err
		}
		// For example a project below a home directory that is a repository.
		s.repo, s.top, found = git.Repository{}, dir, false
	}
}

// IsGone reports whether the directory of the store was deleted since Open.
func (s *Store) IsGone() bool {
	_, err := os.Stat(filepath.Join(s.dir, "HEAD"))
	return isMissing(err)
}

// path returns the full path of a recorded file.
func (s *Store) path(name string) string { return filepath.Join(s.top, filepath.FromSlash(name)) }

// Top returns the directory that is recorded. All paths are relative to it.
func (s *Store) Top() string { return s.top }

// isIgnored reports whether the repository ignores a directory below its top.
func (s *Store) isIgnored(ctx context.Context, dir string) (bool, error) {
	if err := s.writeExcludes(); err != nil {
		return false, err
	}
	_, err := s.git(ctx, git.Command{Args: []string{"check-ignore", "--quiet", dir}})
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) git(ctx context.Context, c git.Command) ([]byte, error) {
	return git.Run(ctx, s.program, s.top, s.env, c)
}

// lock waits until no other call, of this process or another, changes the store.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	lock := flock.New(filepath.Join(s.state, "lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("cannot lock the checkpoints: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}

// List returns the checkpoints, the oldest first.
func (s *Store) List(ctx context.Context) ([]Checkpoint, error) {
	list, _, err := s.list(ctx)
	return list, err
}

// list also returns the highest number of a ref. It leaves out a ref whose object was missing when
// it was first seen. A tag never changes, so one that is known is not read again.
func (s *Store) list(ctx context.Context) (list []Checkpoint, last int, err error) {
	refs, err := s.git(ctx, git.Command{Args: []string{"for-each-ref", "--format=%(objectname) %(refname)", s.prefix}})
	if err != nil || len(refs) == 0 {
		return nil, 0, err
	}
	s.mu.Lock()
	known := s.tags
	s.mu.Unlock()
	tags := make(map[ID]Checkpoint)
	var unknown bytes.Buffer
	for line := range strings.Lines(string(refs)) {
		id, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(strings.TrimPrefix(ref, s.prefix))
		if err != nil {
			continue
		}
		last = max(last, n)
		list = append(list, Checkpoint{ID: ID(id), Number: n})
		if c, ok := known[ID(id)]; ok {
			tags[c.ID] = c
		} else {
			unknown.WriteString(id + "\n")
		}
	}
	if err := s.readTags(ctx, &unknown, tags); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	s.tags = tags
	s.mu.Unlock()
	list = slices.DeleteFunc(list, func(c Checkpoint) bool { _, ok := tags[c.ID]; return !ok })
	for i, c := range list {
		list[i] = tags[c.ID]
		list[i].Number = c.Number
	}
	slices.SortFunc(list, func(a, b Checkpoint) int { return a.Number - b.Number })
	return list, last, nil
}

// readTags adds the tags of the ids, one a line, to a map. It leaves out a missing one.
func (s *Store) readTags(ctx context.Context, ids *bytes.Buffer, into map[ID]Checkpoint) error {
	if ids.Len() == 0 {
		return nil
	}
	tags, err := s.git(ctx, git.Command{Args: []string{"cat-file", "--batch"}, Stdin: ids})
	if err != nil {
		return err
	}
	for len(tags) > 0 {
		head, rest, _ := bytes.Cut(tags, []byte("\n"))
		tags = rest
		fields := strings.Fields(string(head))
		if len(fields) != 3 {
			continue // "missing"
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil || size >= len(tags) {
			return fmt.Errorf("git cat-file: unexpected answer %.100q", head)
		}
		if c, ok := parseTag(string(tags[:size])); ok && fields[1] == "tag" {
			c.ID = ID(fields[0])
			into[c.ID] = c
		}
		tags = tags[size+1:]
	}
	return nil
}

const skippedHead = "\n\nSkipped:\n"

// tag returns the text of the tag object that is a checkpoint.
func (c Checkpoint) tag() string {
	var b strings.Builder
	fmt.Fprintf(&b, "object %s\ntype tree\ntag duet-%d\ntagger duet <duet@localhost> %d +0000\n\n%s",
		c.tree, c.Number, c.Time.Unix(), strings.ReplaceAll(c.Message, "\x00", ""))
	b.WriteString(skippedHead)
	for _, skipped := range c.Skipped {
		fmt.Fprintf(&b, "%s %q\n", skipped.Reason, skipped.Path)
	}
	if c.MoreSkipped > 0 {
		fmt.Fprintf(&b, "%d more\n", c.MoreSkipped)
	}
	return b.String()
}

func parseTag(text string) (c Checkpoint, ok bool) {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	at := strings.LastIndex("\n"+body, skippedHead)
	if len(lines) != 4 || lines[1] != "type tree" || at < 0 {
		return c, false
	}
	c.tree = strings.TrimPrefix(lines[0], "object ")
	if tagger := strings.Fields(lines[3]); len(tagger) == 5 {
		seconds, _ := strconv.ParseInt(tagger[3], 10, 64)
		c.Time = time.Unix(seconds, 0)
	}
	c.Message = strings.TrimPrefix(("\n" + body)[:at], "\n")
	for line := range strings.Lines(("\n" + body)[at+len(skippedHead):]) {
		reason, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if n, err := strconv.Atoi(reason); err == nil {
			c.MoreSkipped = n
		} else if path, err := strconv.Unquote(path); err == nil {
			c.Skipped = append(c.Skipped, Skipped{Path: path, Reason: Reason(reason)})
		}
	}
	return c, true
}

// byID returns the checkpoints with the ids, or ErrUnknown.
func (s *Store) byID(ctx context.Context, ids ...ID) ([]Checkpoint, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]Checkpoint, len(ids))
	for i, id := range ids {
		at := slices.IndexFunc(list, func(c Checkpoint) bool { return c.ID == id })
		if at < 0 {
			return nil, fmt.Errorf("%w: %.80q", ErrUnknown, id)
		}
		found[i] = list[at]
	}
	return found, nil
}

// Prune deletes the checkpoints for which keep returns false, and returns how many. In a
// repository of the user, git gc later drops their objects; in a repository of the store, Prune
// drops them. The next Take is slow if the newest one is deleted, because it reads each file.
// To remove a store, delete all checkpoints and then [Options.State].
func (s *Store) Prune(ctx context.Context, keep func(Checkpoint) bool) (int, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	s.lockedRefs()
	list, _, err := s.list(ctx)
	if err != nil {
		return 0, err
	}
	var input bytes.Buffer
	deleted := 0
	for _, c := range list {
		if !keep(c) {
			fmt.Fprintf(&input, "delete %s%d %s\n", s.prefix, c.Number, c.ID)
			deleted++
		}
	}
	if deleted > 0 {
		if _, err := s.git(ctx, git.Command{Args: []string{"update-ref", "--stdin"}, Stdin: &input}); err != nil {
			return 0, err
		}
	}
	return deleted, s.collect(ctx, deleted > 0)
}

// PruneTo deletes the oldest checkpoints until the others take at most a number of bytes on the
// disk, apart from the newest one and the user's last commit. It keeps the newest in any case. As
// Prune, it returns how many it has deleted.
func (s *Store) PruneTo(ctx context.Context, most int64) (int, error) {
	list, err := s.List(ctx)
	if err != nil || len(list) < 2 {
		return 0, err
	}
	// The more of the newest are kept, the more bytes they take.
	kept := 1 + sort.Search(len(list)-1, func(n int) bool {
		var size int64
		if err == nil {
			size, err = s.size(ctx, list[len(list)-2-n:])
		}
		return size > most
	})
	if err != nil || kept == len(list) {
		return 0, err
	}
	oldest := list[len(list)-kept].Number
	return s.Prune(ctx, func(c Checkpoint) bool { return c.Number >= oldest })
}

// size returns how many bytes of objects the checkpoints have that neither the last of them nor the
// user's last commit has.
func (s *Store) size(ctx context.Context, list []Checkpoint) (int64, error) {
	var revisions strings.Builder
	for _, c := range list {
		revisions.WriteString(c.tree + "\n")
	}
	revisions.WriteString("^" + list[len(list)-1].tree + "\n")
	if head, err := git.ReadSmall(filepath.Join(s.repo.Dir, "HEAD")); err == nil && !s.own &&
		!strings.HasPrefix(head, "-") {
		revision := strings.TrimPrefix(strings.TrimSpace(head), "ref: ") + "^{tree}"
		if tree, err := s.git(ctx, git.Command{Args: []string{"rev-parse", "--verify", "--quiet", revision}}); err == nil {
			revisions.WriteString("^" + string(tree))
		}
	}
	out, err := s.git(ctx, git.Command{
		Args:  []string{"rev-list", "--objects", "--disk-usage", "--stdin"},
		Stdin: strings.NewReader(revisions.String()),
	})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// collect drops objects without a ref from a repository of the store, and packs the others.
func (s *Store) collect(ctx context.Context, garbage bool) error {
	if !s.own {
		return nil
	}
	if !garbage {
		some := named(filepath.Join(s.dir, "objects", "17"), "") // a sample, as git gc takes it
		packs := named(filepath.Join(s.dir, "objects", "pack"), "pack-")
		if len(some) < 20 && len(packs) < 60 {
			return nil
		}
	}
	if err := s.setHead(""); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"repack", "-a", "-d", "-q", "--threads=1", "--window-memory=64m"},
		{"prune", "--expire=now"},
	} {
		if _, err := s.git(ctx, git.Command{Args: args}); err != nil {
			return err
		}
	}
	return nil
}

// staleLock is the age from which on the lock of a ref is one of a killed git.
const staleLock = time.Minute

// lockedRefs returns the highest number of a ref of the store that git has locked, or 0. A killed git
// leaves its lock, so the next checkpoint gets another number. Stale locks are removed.
func (s *Store) lockedRefs() (last int) {
	locks := named(filepath.Join(s.dir, s.prefix), "")
	if s.own {
		locks = append(locks, filepath.Join(s.dir, "packed-refs.lock"))
	}
	for _, path := range locks {
		name, isLock := strings.CutSuffix(filepath.Base(path), ".lock")
		info, err := os.Stat(path)
		if !isLock || err != nil {
			continue
		}
		n, _ := strconv.Atoi(name)
		last = max(last, n)
		if time.Since(info.ModTime()) > staleLock {
			_ = os.Remove(path)
		}
	}
	return last
}

// indexName returns the name of a checkpoint's index file. An index is used only while its
// checkpoint exists, because gc may drop the objects of its entries afterwards.
func indexName(id ID) string { return "index-" + string(id) }

// usableIndex returns the newest checkpoint with an index file and the path of the file, or "".
// It removes all other index files and the temporary files of a killed Take.
func (s *Store) usableIndex(list []Checkpoint) (base Checkpoint, path string) {
	for _, c := range slices.Backward(list) {
		name := filepath.Join(s.dir, indexName(c.ID))
		if _, err := os.Stat(name); err == nil {
			base, path = c, name
			break
		}
	}
	for _, prefix := range []string{"index-", "work-"} {
		for _, name := range named(s.dir, prefix) {
			if name != path {
				_ = os.Remove(name)
			}
		}
	}
	return base, path
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// named returns the paths of the files in a directory whose names begin with a prefix.
func named(dir, prefix string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// directoryFile has the path of the recorded directory, for RemoveAll.
const directoryFile = "directory"

// RemoveAll deletes all checkpoints of the stores whose State is a directory in parent, and then
// parent. A store whose directory is gone has no more refs to delete. A missing parent is no error.
func RemoveAll(ctx context.Context, parent string) error {
	states, err := os.ReadDir(parent)
	if err != nil && !isMissing(err) {
		return err
	}
	for _, state := range states {
		path := filepath.Join(parent, state.Name())
		dir, err := os.ReadFile(filepath.Join(path, directoryFile))
		if err != nil {
			continue // not a store
		}
		s, err := Open(ctx, Options{Dir: string(dir), State: path})
		if isMissing(err) {
			continue
		}
		if err == nil {
			_, err = s.Prune(ctx, func(Checkpoint) bool { return false })
		}
		if err != nil {
			return fmt.Errorf("deleting the checkpoints of %s: %w", dir, err)
		}
	}
	return os.RemoveAll(parent)
}
