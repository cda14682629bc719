package checkpoint

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/git"
)

// A Start lets others change the files while [Store.TakeBefore] records how they were. Its methods
// may be called from any goroutine.
type Start struct {
	after time.Time
	left  func(context.Context) (map[string]Left, error)
	at    atomic.Pointer[begun]
}

// begun is when others began.
type begun struct{ at, files time.Time } // by the process's clock and by that of the files

// Left is the text of a file that no checkpoint may have yet.
type Left struct {
	Text *string // nil: the file did not exist
	// Unknown: the file was changed, and its content is not known.
	Unknown bool
}

// NewStart returns a Start. Changes until the time after are recorded. left returns, by absolute path, how
// those have left files who ended before Begin and after whom no checkpoint was finished; it may be nil.
func NewStart(after time.Time, left func(context.Context) (map[string]Left, error)) *Start {
	return &Start{after: after, left: left}
}

// Begin is called before others begin. It waits until the clock of the files has passed the time of
// NewStart, at most a few milliseconds, so that the time of a file says on which side of Begin a change
// was. If the clock was set back, Begin does not wait longer than 50 ms.
func (s *Start) Begin() {
	now := fileClock()
	for range 50 {
		if now.After(s.after) {
			break
		}
		time.Sleep(time.Millisecond)
		now = fileClock()
	}
	s.at.CompareAndSwap(nil, &begun{time.Now(), now})
}

// BeginAt says that others began at a time. Only the first call counts, of Begin or BeginAt.
func (s *Start) BeginAt(at time.Time) { s.at.CompareAndSwap(nil, &begun{at, at}) }

// isLate reports whether a file was changed after others began. The directory tells the time of a
// deleted file.
func (s *Start) isLate(path string) bool {
	begun := s.at.Load()
	if begun == nil {
		return false
	}
	at, err := ChangeTime(path)
	for err != nil && filepath.Dir(path) != path {
		path = filepath.Dir(path)
		at, err = ChangeTime(path)
	}
	return err == nil && !at.Before(begun.files)
}

// isBornLate reports whether a file was created after others began, and false if the system does not know.
func (s *Start) isBornLate(path string) bool {
	begun := s.at.Load()
	at, err := birthTime(path)
	return begun != nil && err == nil && !at.Before(begun.files)
}

// isGone reports whether a file does not exist.
func (s *Store) isGone(name string) bool {
	_, err := os.Lstat(s.path(name))
	return isMissing(err)
}

// takeBack gives files that were changed after others began the entries that they had before: what
// Start.left knows, else those of the newest checkpoint of list that has nothing of the others, else
// those of the user's index. A file that the index does not have, and that was there before others
// began, stays as it was read and is skipped as [Changed]. from is the index of the checkpoint base. takeBack
// reports whether an entry was changed.
func (p *pick) takeBack(
	ctx context.Context, start *Start, index, from string, base Checkpoint, list []Checkpoint,
) (bool, error) {
	begun := start.at.Load()
	if begun == nil {
		return false, nil
	}
	s := p.store
	left, err := s.leftBefore(ctx, start)
	if err != nil {
		return false, err
	}
	late := make(map[string]bool)
	add := func(path string) {
		if path != "" && start.isLate(s.path(path)) {
			late[path] = true
		}
	}
	for path := range strings.SplitSeq(p.drop.String()+p.update.String(), "\x00") {
		add(path)
	}
	before, isFirst := s.newestBefore(list, begun.at), false
	known := make(map[string]string) // entries of before that differ from those of base
	switch {
	case before.ID == "" || base.ID == "":
		isFirst = true
	case before.ID != base.ID:
		if known, err = s.entries(ctx, before.tree, base.tree); err != nil {
			return false, err
		}
		for path := range known {
			add(path)
		}
	}
	same := make(map[string]bool) // as base has them
	for path := range left {
		if !late[path] && start.isLate(s.path(path)) && !s.isNested(path) {
			same[path] = true
		}
	}
	if err := s.withoutIgnored(ctx, index, same); err != nil {
		return false, err
	}
	maps.Copy(late, same)
	if len(late) == 0 && !isFirst {
		return false, nil
	}
	if isFirst && !s.own {
		from = filepath.Join(s.repo.Dir, "index")
	}
	var entries bytes.Buffer
	modes := make(map[string]string)
	if _, err := os.Stat(from); from != "" && err == nil {
		err := s.indexed(ctx, from, func(entry, path string) {
			_, isLeft := left[path]
			_, isKnown := known[path]
			switch {
			case isLeft || isKnown:
				modes[path], _, _ = strings.Cut(entry, " ")
			case late[path] || isFirst && s.isGone(path) && start.isLate(s.path(path)):
				p.late = append(p.late, path)
				delete(late, path)
				entries.WriteString(entry + "\t" + path + "\x00")
			}
		})
		if err != nil {
			return false, err
		}
	}
	p.late = slices.AppendSeq(p.late, maps.Keys(late))
	for path := range late {
		entry := s.noEntry() // it is new
		was, isLeft := left[path]
		switch entryBefore, isKnown := known[path]; {
		case isLeft && was.Unknown, !isLeft && isFirst && !start.isBornLate(s.path(path)):
			p.skip(path, Changed)
			continue
		case isLeft && was.Text != nil:
			if entry, err = s.entryOf(ctx, path, *was.Text, modes[path]); err != nil {
				return false, err
			}
		case isKnown && !isLeft:
			entry = entryBefore
		}
		entries.WriteString(entry + "\t" + path + "\x00")
	}
	if entries.Len() == 0 {
		return false, nil
	}
	_, err = s.git(ctx, git.Command{
		Args: []string{"update-index", "-z", "--index-info"}, Env: []string{"GIT_INDEX_FILE=" + index}, Stdin: &entries,
	})
	return true, err
}

// indexed calls record with each entry of an index that is neither a conflict of the user nor a submodule.
func (s *Store) indexed(ctx context.Context, index string, record func(entry, path string)) error {
	_, err := s.git(ctx, git.Command{
		Args: []string{"ls-files", "-z", "--stage"}, Env: []string{"GIT_INDEX_FILE=" + index},
		Record: func(line []byte) error {
			entry, path, _ := strings.Cut(string(line), "\t")
			if strings.HasSuffix(entry, " 0") && !strings.HasPrefix(entry, "160000") {
				record(entry, path)
			}
			return nil
		},
	})
	return err
}

// noEntry is the entry of a file that does not exist.
func (s *Store) noEntry() string {
	if s.repo.Config["extensions.objectformat"] == "sha256" {
		return "0 " + strings.Repeat("0", 2*sha256.Size)
	}
	return "0 " + strings.Repeat("0", 2*sha1.Size)
}

// leftBefore returns what Start.left knows, by names in checkpoints.
func (s *Store) leftBefore(ctx context.Context, start *Start) (map[string]Left, error) {
	if start.left == nil {
		return nil, nil
	}
	paths, err := start.left(ctx)
	left := make(map[string]Left, len(paths))
	for path, as := range paths {
		if name, err := filepath.Rel(s.top, path); err == nil && filepath.IsLocal(name) &&
			!git.IsReserved(filepath.ToSlash(name)) {
			left[filepath.ToSlash(name)] = as
		}
	}
	return left, err
}

// isNested reports whether a file is in a repository below the one that is recorded.
func (s *Store) isNested(name string) bool {
	for dir := filepath.Dir(s.path(name)); len(dir) > len(s.top); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
	}
	return false
}

// withoutIgnored deletes the paths that git ignores and that an index does not have.
func (s *Store) withoutIgnored(ctx context.Context, index string, paths map[string]bool) error {
	if len(paths) == 0 {
		return nil
	}
	stdin := strings.Join(slices.Collect(maps.Keys(paths)), "\x00") + "\x00"
	_, err := s.git(ctx, git.Command{
		Args: []string{"check-ignore", "-z", "--stdin"}, Env: []string{"GIT_INDEX_FILE=" + index},
		Stdin: strings.NewReader(stdin),
		Record: func(record []byte) error {
			delete(paths, string(record))
			return nil
		},
	})
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil // none is ignored
	}
	return err
}

// newestBefore returns the checkpoint with the newest files that have no change of others that began at
// a time, or the zero one. Those of earlier processes have none.
func (s *Store) newestBefore(list []Checkpoint, begun time.Time) (newest Checkpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range list {
		if at := s.asOf[c.ID]; !at.After(begun) && !at.Before(s.asOf[newest.ID]) {
			newest = c
		}
	}
	return newest
}

// noteTime remembers as of when the newest checkpoint has the files: when others began, or now.
func (s *Store) noteTime(id ID, start *Start, list []Checkpoint) {
	at := time.Now()
	if begun := start.at.Load(); begun != nil {
		at = begun.at
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.asOf, func(id ID, _ time.Time) bool {
		return !slices.ContainsFunc(list, func(c Checkpoint) bool { return c.ID == id })
	})
	if _, is := s.asOf[id]; !is { // else it is an earlier one with the same files
		s.asOf[id] = at
	}
}

// entries returns, by path, the entries of the files in a tree that differ from another tree, in the form
// of git update-index --index-info. A file that the tree does not have has none.
func (s *Store) entries(ctx context.Context, of, from string) (map[string]string, error) {
	entries, head := make(map[string]string), []string(nil)
	_, err := s.git(ctx, git.Command{
		Args: []string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", from, of},
		Record: func(record []byte) error {
			if head == nil {
				head = strings.Fields(string(record)) // :MODE MODE BLOB BLOB STATE
				if len(head) != 5 {
					return fmt.Errorf("git diff-tree: unexpected answer %.100q", record)
				}
				return nil
			}
			mode := head[1]
			if strings.Trim(mode, "0") == "" {
				mode = "0"
			}
			entries[string(record)], head = mode+" "+head[3], nil
			return nil
		},
	})
	return entries, err
}

// entryOf writes a text as an object and returns its entry. mode is that of the file's earlier entry; ""
// is that of the file.
func (s *Store) entryOf(ctx context.Context, path, text, mode string) (string, error) {
	if mode == "" {
		mode = "100644"
		if info, err := os.Lstat(s.path(path)); err == nil && info.Mode()&0o100 != 0 {
			mode = "100755"
		}
	}
	blob, err := s.git(ctx, git.Command{
		Args: []string{"hash-object", "-w", "--no-filters", "--stdin"}, Stdin: strings.NewReader(text),
	})
	return mode + " " + strings.TrimSpace(string(blob)), err
}

// Correct adds a checkpoint with the message and the files of c, apart from the texts of some files, by
// name; nil is no file. It returns c if that has them.
func (s *Store) Correct(ctx context.Context, c Checkpoint, texts map[string]*string) (Checkpoint, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	defer unlock()
	began := time.Now()
	_, last, err := s.list(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	work := filepath.Join(s.dir, "work-"+rand.Text())
	defer os.Remove(work)
	defer os.Remove(work + ".lock")
	index := []string{"GIT_INDEX_FILE=" + work}
	if _, err := s.git(ctx, git.Command{Args: []string{"read-tree", c.tree}, Env: index}); err != nil {
		return Checkpoint{}, err
	}
	modes := make(map[string]string)
	err = s.indexed(ctx, work, func(entry, path string) {
		if _, is := texts[path]; is {
			modes[path], _, _ = strings.Cut(entry, " ")
		}
	})
	var entries bytes.Buffer
	for name, text := range texts {
		entry := s.noEntry()
		if text != nil && err == nil {
			entry, err = s.entryOf(ctx, name, *text, modes[name])
		}
		entries.WriteString(entry + "\t" + name + "\x00")
	}
	if err == nil {
		_, err = s.git(ctx, git.Command{
			Args: []string{"update-index", "-z", "--index-info"}, Env: index, Stdin: &entries,
		})
	}
	if err != nil {
		return Checkpoint{}, err
	}
	tree, err := s.git(ctx, git.Command{Args: []string{"write-tree"}, Env: index})
	if err != nil || strings.TrimSpace(string(tree)) == c.tree {
		return c, err
	}
	of := c.ID
	c.tree, c.Number = strings.TrimSpace(string(tree)), max(last, s.lockedRefs())+1
	if err := s.keep(ctx, &c, began); err != nil {
		return Checkpoint{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asOf[c.ID] = s.asOf[of]
	return c, nil
}
