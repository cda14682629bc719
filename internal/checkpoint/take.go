package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// Take records the files. If the newest checkpoint has the same files and message, Take returns
// that one. The first call reads each file; later calls look at each file's time and size and read
// what has changed. Files that change meanwhile are recorded as before or after the change.
//
// If there are too many files, or too much new content, Take records those that the user's git
// tracks, and Skipped says so ([Untracked]). Elsewhere that is a [TooManyFilesError] or a
// [TooLargeError].
//
// Give ctx a deadline: counting the files of a huge directory takes long, too.
func (s *Store) Take(ctx context.Context, message string) (Checkpoint, error) {
	return s.TakeBefore(ctx, message, NewStart(time.Time{}, nil))
}

// TakeBefore is Take while others begin to change files: what they change after start.Begin is
// recorded as start knows it, see [NewStart], or else as the newest checkpoint from before has it. Then
// the user's change of the same file since that checkpoint, or the deletion of a file beside a new one, is
// not recorded either.
//
// The first checkpoint has such a file as the user's index has it. A file that is not there either
// is new, or it is recorded as it was read, and Skipped says so ([Changed]).
func (s *Store) TakeBefore(ctx context.Context, message string, start *Start) (Checkpoint, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	defer unlock()
	s.removeTemporaries()
	if err := s.configure(); err != nil {
		return Checkpoint{}, err
	}
	c, err := s.tryTake(ctx, message, start)
	_, many := errors.AsType[*TooManyFilesError](err)
	_, large := errors.AsType[*TooLargeError](err)
	if !many && !large || s.own || s.trackedOnly.Load() {
		return c, err
	}
	if _, noIndex := os.Stat(filepath.Join(s.repo.Dir, "index")); noIndex != nil {
		return c, err
	}
	s.trackedOnly.Store(true)
	return s.tryTake(ctx, message, start)
}

func (s *Store) tryTake(ctx context.Context, message string, start *Start) (c Checkpoint, err error) {
	for attempt := range attempts {
		// A file may have vanished or changed its kind meanwhile. The last attempt starts with
		// an empty index, in case the old one is damaged.
		c, err = s.take(ctx, message, attempt < attempts-1, start)
		var failed *git.Error
		if !errors.As(err, &failed) {
			return c, err
		}
	}
	return c, err
}

func (s *Store) take(ctx context.Context, message string, useIndex bool, start *Start) (Checkpoint, error) {
	began := time.Now()
	list, last, err := s.list(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	last = max(last, s.lockedRefs())
	base, index := s.usableIndex(list)
	if !useIndex {
		base, index = Checkpoint{}, ""
	}
	seen := s.usersIndex()
	noted, _ := os.ReadFile(filepath.Join(s.dir, "seen"))
	isSeen := string(noted) == string(base.ID)+seen
	from := index
	if s.trackedOnly.Load() && (index == "" || !isSeen) {
		base, from, isSeen = Checkpoint{}, filepath.Join(s.repo.Dir, "index"), true
	}
	work := filepath.Join(s.dir, "work-"+rand.Text())
	defer os.Remove(work)
	defer os.Remove(work + ".lock")
	if from != "" {
		if err := git.CopyIndex(from, work); err != nil {
			return Checkpoint{}, err
		}
	}
	if err := errors.Join(s.setHead(base.tree), s.writeExcludes()); err != nil {
		return Checkpoint{}, err
	}
	p := &pick{store: s, entries: indexEntries(work)}
	if s.trackedOnly.Load() {
		p.skip("", Untracked)
	}
	if err := p.changed(ctx, work); err != nil {
		return Checkpoint{}, err
	}
	if !isSeen && !s.trackedOnly.Load() {
		if err := p.usersFiles(ctx); err != nil {
			return Checkpoint{}, err
		}
	}

	c := Checkpoint{Number: last + 1, Time: time.Now().Truncate(time.Second), Message: message}
	if c.tree, err = s.write(ctx, work, p, base, start, from, list); err != nil {
		return Checkpoint{}, err
	}
	c.Skipped, c.MoreSkipped, c.Late = p.skipped, p.moreSkipped, p.late
	if len(list) > 0 && list[len(list)-1].tree == c.tree && list[len(list)-1].Message == message {
		same := list[len(list)-1]
		same.Skipped, same.MoreSkipped, same.Late = c.Skipped, c.MoreSkipped, c.Late
		c = same
	} else if err := s.keep(ctx, &c, began); err != nil {
		return Checkpoint{}, err
	}
	s.noteTime(c.ID, start, list)
	kept := filepath.Join(s.dir, indexName(c.ID))
	if err := os.Rename(work, kept); err != nil && !isMissing(err) {
		return Checkpoint{}, err
	}
	if index != "" && index != kept {
		_ = os.Remove(index)
	}
	return c, git.ReplaceFile(filepath.Join(s.dir, "seen"), string(c.ID)+seen)
}

// sync writes the names of objects and refs to the disk that were written since a time.
func (s *Store) sync(since time.Time) error {
	if s.own {
		return git.Repository{Dir: s.dir, Common: s.dir}.SyncNames(since)
	}
	return s.repo.SyncNames(since)
}

// keep writes the tag and the ref of a checkpoint whose tree is written. began is from before its
// first object.
func (s *Store) keep(ctx context.Context, c *Checkpoint, began time.Time) error {
	text := c.tag()
	out, err := s.git(ctx, git.Command{Args: []string{"mktag"}, Stdin: strings.NewReader(text)})
	if err != nil {
		return err
	}
	c.ID = ID(strings.TrimSpace(string(out)))
	// First the names of the objects: a ref without them makes git gc fail.
	if err := s.sync(began); err != nil {
		return err
	}
	named := time.Now()
	ref := fmt.Sprintf("%s%d", s.prefix, c.Number)
	if _, err := s.git(ctx, git.Command{Args: []string{"update-ref", ref, string(c.ID), strings.Repeat("0", len(c.ID))}}); err != nil {
		return err
	}
	if err := s.sync(named); err != nil {
		return err
	}
	if kept, ok := parseTag(text); ok {
		kept.ID = c.ID
		s.mu.Lock()
		defer s.mu.Unlock()
		tags := map[ID]Checkpoint{c.ID: kept}
		maps.Copy(tags, s.tags)
		s.tags = tags
	}
	return nil
}

// A pick says which entries of the index are to change.
type pick struct {
	store       *Store
	entries     int          // of the index
	update      bytes.Buffer // paths to record as they are now, each with a NUL
	updates     int
	bytes       int64        // their size
	drop        bytes.Buffer // paths to remove from the index
	skipped     []Skipped
	moreSkipped int
	late        []string // see Checkpoint.Late
}

// changed picks the files that differ from the index or are not in it. It also brings the
// cached times in the index up to date.
func (p *pick) changed(ctx context.Context, index string) error {
	stderr := &git.Capped{Left: 256 << 10}
	trackedOnly := p.store.trackedOnly.Load()
	args := []string{"status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all"}
	if trackedOnly {
		args = append(args, "--untracked-files=no")
	}
	_, err := git.Run(ctx, p.store.program, p.store.top, p.store.lockedEnv, git.Command{
		Args:   args,
		Env:    []string{"GIT_INDEX_FILE=" + index},
		Stderr: stderr,
		Record: func(record []byte) error {
			if len(record) < 4 {
				return fmt.Errorf("git status: unexpected answer %q", record)
			}
			state, path := string(record[:2]), string(record[3:])
			if state[1] == ' ' {
				return nil // differs from HEAD only
			}
			isNew := state == "??"
			if isNew {
				p.entries++
			}
			if p.entries > p.store.maxFiles && !trackedOnly {
				return &TooManyFilesError{Limit: p.store.maxFiles}
			}
			return p.add(path, isNew)
		},
	})
	if failed := diskFailure().FindString(stderr.String()); failed != "" && err == nil {
		return fmt.Errorf("git status: %s", failed) // it leaves the file or directory out, and succeeds
	}
	for _, warning := range unreadableDirectory().FindAllStringSubmatch(stderr.String(), -1) {
		p.skip(strings.TrimSuffix(warning[1], "/"), Unreadable)
	}
	return err
}

var unreadableDirectory = lazyregexp.New(`(?m)^warning: could not open directory '(.*)': Permission denied$`)

// diskFailure matches the lines of git's standard error about a file or directory whose content it does
// not know. One that is missing or forbidden is none.
var diskFailure = lazyregexp.New(`(?m)^.*: (Input/output error|Remote I/O error|Too many open files.*|Cannot allocate memory|Stale file handle|Structure needs cleaning|` +
	`Transport endpoint is not connected|Connection timed out|Host is down)$`)

// add decides about one path that git knows or could add. The error means that its file is not known.
func (p *pick) add(path string, isNew bool) error {
	reason, err := p.reason(path)
	if err != nil {
		return err
	}
	if reason == "" {
		p.update.WriteString(path + "\x00")
		p.updates++
		return nil
	}
	p.skip(strings.TrimSuffix(path, "/"), reason)
	if !isNew {
		p.drop.WriteString(path + "\x00")
	}
	return nil
}

func (p *pick) skip(path string, reason Reason) {
	if len(p.skipped) < mostSkipped {
		p.skipped = append(p.skipped, Skipped{Path: path, Reason: reason})
	} else {
		p.moreSkipped++
	}
}

// reason returns why a path is not recorded, or "". A missing file and a directory in
// place of a file are recorded as a deletion.
func (p *pick) reason(path string) (Reason, error) {
	if strings.HasSuffix(path, "/") {
		return Nested, nil // git lists no other directories
	}
	if git.IsReserved(path) {
		return Reserved, nil
	}
	full := p.store.path(path)
	info, err := os.Lstat(full)
	switch {
	case durable.Unknown(err):
		return "", err
	case err != nil && !isMissing(err) && !errors.Is(err, errNotDirectory):
		return Unreadable, nil
	case err != nil, info.IsDir(), info.Mode().Type() == fs.ModeSymlink:
		return "", nil
	case !info.Mode().IsRegular():
		return Special, nil
	case info.Size() > p.store.maxFileSize:
		return TooLarge, nil
	case !readable(full):
		return Unreadable, nil
	}
	p.bytes += info.Size()
	return "", nil
}

// usersIndex returns a text that differs when the user's index has changed.
func (s *Store) usersIndex() string {
	info, err := os.Stat(filepath.Join(s.repo.Dir, "index"))
	if s.repo.Dir == "" || err != nil {
		return " none"
	}
	return fmt.Sprintf(" %d %d", info.Size(), info.ModTime().UnixNano())
}

// usersFiles picks the files that the user tracks although they are ignored.
func (p *pick) usersFiles(ctx context.Context) error {
	return p.store.usersPaths(ctx, func(path []byte) error {
		info, err := os.Lstat(p.store.path(string(path)))
		if err == nil && !info.IsDir() {
			return p.add(string(path), false)
		}
		return nil
	}, "--ignored", "--exclude-standard")
}

// usersPaths lists the paths in the user's index, which it only reads. It ignores an index that
// this git cannot read.
func (s *Store) usersPaths(ctx context.Context, record func(path []byte) error, args ...string) error {
	index := filepath.Join(s.repo.Dir, "index")
	if _, err := os.Stat(index); s.repo.Dir == "" || err != nil {
		return nil
	}
	_, err := s.git(ctx, git.Command{
		Args:   slices.Concat([]string{"ls-files", "-z", "--cached"}, args),
		Env:    []string{"GIT_INDEX_FILE=" + index},
		Record: record,
	})
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return nil
	}
	return err
}

// write brings the index up to date and writes its tree. from is the index as it was, of the
// checkpoint base, which may be the zero one.
func (s *Store) write(
	ctx context.Context, index string, p *pick, base Checkpoint, start *Start, from string, list []Checkpoint,
) (tree string, err error) {
	before := base.tree
	update := func(paths []byte, more []string, args ...string) {
		if len(paths) == 0 || err != nil {
			return
		}
		before = ""
		_, err = s.git(ctx, git.Command{
			Args: slices.Concat([]string{"update-index"}, args, []string{"-z", "--stdin"}),
			Env:  append(more, "GIT_INDEX_FILE="+index), Stdin: bytes.NewReader(paths),
		})
	}
	few, many := p.update.Bytes(), []byte(nil)
	if p.updates > mostLoose || p.bytes > s.maxNewBytes {
		var size int64
		if few, many, size, err = s.split(ctx, few); err == nil && size > s.maxNewBytes {
			err = &TooLargeError{Limit: s.maxNewBytes}
		}
		if err != nil {
			return "", err
		}
	}
	// git streams files above the threshold into one pack.
	onePack := []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.bigFileThreshold", "GIT_CONFIG_VALUE_0=1"}
	update(p.drop.Bytes(), nil, "--force-remove")
	update(few, nil, "--add", "--remove", "--replace")
	update(many, onePack, "--add", "--remove", "--replace")
	if err != nil {
		return "", err
	}
	takenBack, err := p.takeBack(ctx, start, index, from, base, list)
	if err != nil || before != "" && !takenBack {
		return before, err
	}
	out, err := s.git(ctx, git.Command{Args: []string{"write-tree"}, Env: []string{"GIT_INDEX_FILE=" + index}})
	return strings.TrimSpace(string(out)), err
}

// split separates paths, each with a NUL, into those in the user's index and the others. git
// probably has the objects of the first. One pack is much faster for the others, and
// much slower for objects that git has. size is that of the others in bytes.
func (s *Store) split(ctx context.Context, paths []byte) (tracked, others []byte, size int64, err error) {
	known := make(map[string]bool)
	err = s.usersPaths(ctx, func(path []byte) error {
		known[string(path)] = true
		return nil
	})
	for path := range bytes.SplitAfterSeq(paths, []byte{0}) {
		name := string(bytes.TrimSuffix(path, []byte{0}))
		if known[name] {
			tracked = append(tracked, path...)
			continue
		}
		others = append(others, path...)
		if info, err := os.Lstat(s.path(name)); err == nil && name != "" {
			size += info.Size()
		}
	}
	if bytes.Count(others, []byte{0}) <= mostLoose {
		return paths, nil, size, err
	}
	return tracked, others, size, err
}
