package worktree

import (
	"context"
	"encoding/json"
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

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
)

// held is a Repository whose lock the caller has.
type held struct {
	*Repository
	io.Closer
}

// lock waits until no other call, of this process or another, changes worktrees, and until the
// git processes of a killed one have ended. Then it finishes what the killed one has left.
func (r *Repository) lock(ctx context.Context) (*held, error) {
	lock, err := lockFileOf(ctx, filepath.Join(r.state, "lock"))
	if err != nil {
		return nil, fmt.Errorf("cannot lock the worktrees: %w", err)
	}
	h := &held{Repository: r, Closer: lock}
	if err := h.recover(ctx); err != nil {
		lock.Close()
		return nil, fmt.Errorf("cannot finish the work of a killed process: %w", err)
	}
	return h, nil
}

// tree returns a working tree whose git processes keep the lock.
func (h *held) tree(dir, top string) tree {
	return tree{r: h.Repository, dir: dir, top: top, keep: keepable(h.Closer)}
}

func (h *held) users() tree { return h.tree(h.repo.Dir, h.repo.Top) }

// A journal is a change that is under way.
type journal struct {
	Created *Worktree `json:"created,omitempty"` // a worktree that is not finished
	Moved   *move     `json:"moved,omitempty"`
}

func (h *held) journal() string { return filepath.Join(h.state, journalFile) }

const (
	journalFile   = "journal"
	damagedSuffix = ".damaged" // of a file that cannot be read
)

// IsUnfinished reports whether a process was killed while it changed a worktree below a parent, or
// the user's files. Open finishes its work.
func IsUnfinished(parent string) bool {
	entries, _ := os.ReadDir(parent) // none if it does not exist
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		_, err := os.Lstat(filepath.Join(parent, e.Name(), journalFile))
		return strings.HasPrefix(e.Name(), statePrefix) && err == nil
	})
}

func (h *held) note(j journal) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return durable.Replace(h.journal(), text, 0o600)
}

// done ends a change. A journal that came back after a power cut would undo a new worktree.
func (h *held) done() error { return durable.Remove(h.journal()) }

// recover finishes a change that is noted, or takes it back.
func (h *held) recover(ctx context.Context) error {
	text, err := os.ReadFile(h.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return h.tidy()
	}
	if err != nil {
		return err
	}
	var j journal
	setAside := func(err error) error {
		h.log.Error("the journal of the worktrees cannot be read and is set aside: a landing that a power cut has ended may be half done; look "+
			"at git status",
			"dir", h.repo.Top, "journal", h.journal()+damagedSuffix, "err", err)
		return errors.Join(durable.Rename(h.journal(), h.journal()+damagedSuffix), h.tidy())
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return setAside(err)
	}
	if err := h.breakLocks(ctx, j); err != nil {
		return err
	}
	if j.Created != nil {
		err = h.remove(ctx, *j.Created, j.Created.Base)
	}
	if j.Moved != nil {
		_, settled := h.settle(ctx, *j.Moved)
		if settled != nil && h.isLost(ctx, *j.Moved) {
			return errors.Join(err, j.Moved.clean(), setAside(settled))
		}
		err = errors.Join(err, settled)
	}
	if err != nil {
		return err
	}
	return errors.Join(h.tidy(), h.done())
}

// lockAge is the age from which a lock of git is left over: git keeps it for milliseconds.
const lockAge = 3 * time.Second

// breakLocks removes the locks of HEAD and of references that git has left if it was killed during a
// change. Its process has ended, or h would not have the lock. A younger lock may be that of the
// user's git.
func (h *held) breakLocks(ctx context.Context, j journal) error {
	began, err := os.Stat(h.journal())
	if err != nil {
		return err
	}
	var locks []string
	branch := ""
	if j.Moved != nil {
		locks, branch = append(locks, filepath.Join(j.Moved.Dir, "HEAD.lock")), j.Moved.Branch
	}
	if j.Created != nil { // taking it back deletes its branch
		locks, branch = append(locks, filepath.Join(h.repo.Common, "packed-refs.lock")), j.Created.Branch
	}
	if branch != "" {
		locks = append(locks, filepath.Join(h.repo.Common, "refs", "heads", filepath.FromSlash(branch)+".lock"))
	}
	for _, lock := range locks {
		for {
			info, err := os.Lstat(lock)
			if err != nil || info.ModTime().Before(began.ModTime()) {
				break
			}
			if age := time.Since(info.ModTime()); age >= 0 && age < lockAge {
				select {
				case <-time.After(lockAge - age):
					continue
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			h.log.Warn("a lock that git has left after a kill or a power cut is removed", "lock", lock)
			if err := durable.Remove(lock); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLost reports whether git no longer has what a move begins or ends with. A disk that fails says nothing
// about that.
func (h *held) isLost(ctx context.Context, m move) bool {
	t := h.tree(m.Dir, m.Top)
	for _, object := range []string{m.Old, m.New} {
		if _, err := t.run(ctx, "rev-list", "--quiet", "--objects", "-1", object); err != nil && ctx.Err() == nil &&
			exited(err, 128) && !strings.Contains(err.Error(), "Input/output error") {
			return true
		}
	}
	return false
}

// cleanUp removes the files of a move, unless the next call needs them to finish a move.
func (h *held) cleanUp(m move) {
	if isUnfinished, err := git.Exists(h.journal()); err == nil && !isUnfinished {
		_ = m.clean()
	}
}

// tidy removes index files that a killed process has left.
func (h *held) tidy() error {
	all, _, err := h.registrations()
	dirs := []string{h.repo.Dir, h.repo.Common}
	for _, g := range all {
		dirs = append(dirs, g.dir)
	}
	for _, dir := range dirs {
		left := h.move(dir, "")
		left.Token = "" // it has no lock
		err = errors.Join(err, left.clean())
	}
	return err
}

// A change is a file that differs between two trees. A missing side is "".
type change struct {
	path, old, new string // old and new are blobs
	isSubmodule    bool   // on either side
}

func (t tree) diff(ctx context.Context, from, to string) (list []change, err error) {
	records, err := t.records(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev",
		"--end-of-options", from, to)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(records); i += 2 {
		fields := strings.Fields(strings.TrimPrefix(records[i], ":"))
		if len(fields) != 5 {
			return nil, fmt.Errorf("git diff-tree: unexpected answer %s", strconv.Quote(records[i]))
		}
		c := change{
			path: records[i+1], old: fields[2], new: fields[3],
			isSubmodule: fields[0] == "160000" || fields[1] == "160000",
		}
		switch fields[4] {
		case "A":
			c.old = ""
		case "D":
			c.new = ""
		}
		list = append(list, c)
	}
	return list, nil
}

// indexed returns the set of paths in the index, as fold writes them.
func (t tree) indexed(ctx context.Context) (map[string]bool, error) {
	records, err := t.records(ctx, "ls-files", "-z", "--cached")
	known := make(map[string]bool, len(records))
	for _, path := range records {
		known[t.fold(path)] = true
	}
	return known, err
}

// fold makes paths equal that are the same file.
func (t tree) fold(path string) string {
	if isTrue(t.r.repo.Config["core.ignorecase"]) {
		return strings.ToLower(path)
	}
	return path
}
