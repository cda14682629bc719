package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
)

// A move changes the files of a working tree from one tree object to another.
type move struct {
	Dir    string `json:"dir"` // the git directory
	Top    string `json:"top"`
	Old    string `json:"old"`
	New    string `json:"new"`
	Commit bool   `json:"commit"` // Old and New are commits, and HEAD and the index follow
	Token  string `json:"token"`  // the text of our lock of the index
	Mark   string `json:"mark"`   // in the names of our files in Dir
	Branch string `json:"branch"` // that has to be checked out, if set

	Changes []change `json:"-"`
}

// The files of a move are in the git directory, where git replaces the index by a renamed file.
func (m move) work() string   { return filepath.Join(m.Dir, "duet-index-"+m.Mark) }
func (m move) before() string { return filepath.Join(m.Dir, "duet-before-"+m.Mark) }
func (m move) token() string  { return filepath.Join(m.Dir, "duet-lock-"+m.Mark) }
func (m move) lock() string   { return filepath.Join(m.Dir, lockFile) }

// move returns an empty move of a working tree.
func (h *held) move(dir, top string) move {
	return move{Dir: dir, Top: top, Mark: strings.TrimPrefix(filepath.Base(h.state), statePrefix), Token: rand.Text()}
}

// settle ends a move that has failed or was killed: HEAD says whether it is finished or taken back.
// Without a commit the index that git writes after the files does. lost are files that git can
// not write again, because their filter fails.
func (h *held) settle(ctx context.Context, m move) (lost []string, err error) {
	t := h.tree(m.Dir, m.Top)
	moved := false
	if m.Commit {
		isLocked, err := m.isLocked()
		if err != nil {
			return nil, err
		}
		hasBegun, err := git.Exists(m.before())
		if err != nil {
			return nil, err
		}
		if !hasBegun && !isLocked {
			return nil, m.clean() // not begun, or finished
		}
		head, err := t.resolve(ctx, "HEAD^{commit}")
		if err != nil {
			return nil, err
		}
		if !isLocked {
			if locked, err := m.lockAgain(head); err != nil {
				return nil, err
			} else if !locked {
				return nil, m.clean()
			}
		}
		moved = head == m.New
	} else {
		t.index = m.work()
		now, err := t.run(ctx, "write-tree")
		moved = err == nil && now == m.New
	}
	if !moved {
		if lost, err = h.takeBack(ctx, m); err != nil {
			return lost, err
		}
	} else if m.Commit {
		// The index may be there already.
		if err := durable.Rename(m.work(), filepath.Join(m.Dir, "index")); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return lost, m.clean()
}

// lockAgain locks the index for a move that has begun. After a kill the user may have removed the
// lock, as git advises, and may have gone on from another commit.
func (m move) lockAgain(head string) (bool, error) {
	if head != m.Old && head != m.New {
		return false, nil
	}
	err := os.Link(m.token(), m.lock())
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// isLocked reports whether the index has our lock.
func (m move) isLocked() (bool, error) {
	if m.Token == "" {
		return false, nil
	}
	text, err := os.ReadFile(m.lock())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && string(text) == m.Token, err
}

// clean removes our files, and our lock of the index last: as long as that may be there, the journal
// of the move stays.
func (m move) clean() error {
	for _, name := range []string{m.work(), m.work() + ".lock", m.before(), m.token()} {
		_ = os.Remove(name)
	}
	isLocked, err := m.isLocked()
	if err != nil {
		return fmt.Errorf("cannot unlock the index: %w", err)
	}
	if isLocked {
		return durable.Remove(m.lock()) // before the journal: nothing else knows whose lock it is
	}
	return nil
}

// takeBack restores the files that a move has changed or begun to. A file with other content
// than the move writes is left as it is.
func (h *held) takeBack(ctx context.Context, m move) (lost []string, err error) {
	t := h.tree(m.Dir, m.Top)
	if hasBegun, err := git.Exists(m.before()); err != nil || !hasBegun {
		return nil, err
	}
	t.index = m.before()
	changes, err := t.diff(ctx, m.Old, m.New)
	if err != nil {
		return nil, err
	}
	known, err := t.indexed(ctx)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(m.Top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var restore []string
	for _, c := range changes {
		ours, err := t.isPartOf(ctx, root, c, m.New)
		if err != nil {
			return nil, err
		}
		switch {
		case !ours:
		case known[t.fold(c.path)]:
			restore = append(restore, c.path)
		case c.old == "":
			name := filepath.FromSlash(c.path)
			if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				continue // a directory
			}
			for dir := filepath.Dir(name); dir != "." && root.Remove(dir) == nil; dir = filepath.Dir(dir) {
			}
		}
	}
	write := func(paths ...string) error {
		_, err := t.do(ctx, git.Command{
			Args:  []string{"checkout-index", "--force", "-z", "--stdin"},
			Stdin: strings.NewReader(strings.Join(append(paths, ""), "\x00")),
		})
		return err
	}
	if write(restore...) == nil {
		return nil, nil
	}
	for _, path := range restore {
		if err := write(path); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			lost = append(lost, path)
		}
	}
	return lost, nil
}

// isPartOf reports whether the file on the disk is missing or is a beginning of the new side of a
// change.
func (t tree) isPartOf(ctx context.Context, root *os.Root, c change, to string) (bool, error) {
	name := filepath.FromSlash(c.path)
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return true, nil
	case c.isSubmodule || c.new == "":
		return false, nil
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := root.Readlink(name)
		if err != nil {
			return false, err
		}
		want, err := t.do(ctx, git.Command{Args: []string{"cat-file", "blob", c.new}})
		return target == string(want), err
	case !info.Mode().IsRegular():
		return false, nil
	}
	has, err := root.ReadFile(name)
	if err != nil {
		return false, err
	}
	want, err := t.do(ctx, git.Command{Args: []string{"cat-file", "--filters", to + ":" + c.path}})
	return bytes.HasPrefix(want, has), err
}

// follow does a move: it changes the files, HEAD and the index of a working tree. If it fails, it
// has changed nothing. Without m.Changes the files are as in m.New already, and m.work is the index.
func (h *held) follow(ctx context.Context, m move) (err error) {
	if err := h.repo.Sync(); err != nil { // without its objects, no recovery can take it back
		return err
	}
	if err := h.note(journal{Moved: &m}); err != nil {
		return err
	}
	defer func() {
		lost, err2 := h.settle(context.WithoutCancel(ctx), m)
		if err2 != nil { // the disk may have failed for a moment only
			lost, err2 = h.settle(context.WithoutCancel(ctx), m)
		}
		if len(lost) > 0 {
			err = fmt.Errorf("%w; git cannot write these files again: run git checkout -- %q", err, lost)
		}
		if err2 == nil {
			err2 = h.done()
		}
		if err2 != nil {
			err2 = fmt.Errorf("%s may be half done, and its index locked, until this is tried again: %w", m.Top, err2)
		}
		err = errors.Join(err, err2)
	}()
	t := h.tree(m.Dir, m.Top)
	if m.Commit {
		// A link of a finished file is a lock that always has its text.
		if err := durable.Replace(m.token(), []byte(m.Token), 0o600); err != nil {
			return err
		}
		if err := os.Link(m.token(), m.lock()); errors.Is(err, fs.ErrExist) {
			return &BusyError{Dir: m.Top, Operation: lockFile}
		} else if err != nil {
			return err
		}
		head, err := t.resolve(ctx, "HEAD^{commit}")
		if err != nil {
			return err
		}
		branch, err := t.branch(ctx)
		if err != nil {
			return err
		}
		if head != m.Old || m.Branch != "" && m.Branch != branch {
			return errMoved
		}
	}
	if m.Changes != nil {
		if err := h.moveFiles(ctx, t, m); err != nil {
			return err
		}
	}
	if !m.Commit {
		return nil
	}
	return t.whenMoved(ctx, t.updateRef(ctx, "-m", "duet: land", "HEAD", m.New, m.Old), "HEAD", m.Old)
}

func (h *held) moveFiles(ctx context.Context, t tree, m move) error {
	var overlap []string
	if m.Commit {
		d, err := t.files(ctx, nil)
		if err != nil {
			return err
		}
		for _, path := range d.changed {
			if slices.ContainsFunc(m.Changes, func(c change) bool { return c.path == path }) {
				overlap = append(overlap, path)
			}
		}
		if err := replaceIndex(filepath.Join(m.Dir, "index"), m.work()); err != nil {
			return err
		}
	}
	t.index = m.work()
	// A file with a new time and the same content is no change. Status 1 reports changed files.
	if _, err := t.run(ctx, "update-index", "-q", "--ignore-submodules", "--refresh"); err != nil && !exited(err, 1) {
		return err
	}
	inTheWay, err := t.inTheWay(ctx, m.Changes)
	if err != nil {
		return err
	}
	if overlap = append(overlap, inTheWay...); len(overlap) > 0 {
		slices.Sort(overlap)
		return &OverlapError{Dir: m.Top, Paths: slices.Compact(overlap)}
	}
	readTree := []string{"read-tree", "-m", "-u", "--no-recurse-submodules", m.Old, m.New}
	if _, err := t.run(ctx, slices.Insert(slices.Clone(readTree), 1, "--dry-run")...); err != nil {
		return fmt.Errorf("nothing is landed: %w", err)
	}
	// From here on files are taken back, after a power cut too: it needs the lock and the index before.
	if err := errors.Join(replaceIndex(m.work(), m.before()), syncFile(m.before())); err != nil {
		return err
	}
	if _, err := t.run(ctx, readTree...); err != nil {
		return fmt.Errorf("nothing is landed: %w", err)
	}
	return m.sync()
}

// syncFile writes a file and its name to the disk.
func syncFile(path string) error {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return durable.SyncFiles(dir, []string{filepath.Base(path)})
}

// mostSynced is how many files are written to the disk one by one.
const mostSynced = 100

// sync writes the changed files to the disk: HEAD will say that they are there.
func (m move) sync() error {
	if len(m.Changes) > mostSynced {
		return durable.SyncTree(m.Top)
	}
	root, err := os.OpenRoot(m.Top)
	if err != nil {
		return err
	}
	defer root.Close()
	var names []string
	for _, c := range m.Changes {
		names = append(names, filepath.FromSlash(c.path))
	}
	return durable.SyncFiles(root, names)
}

// replaceIndex copies an index. The copy may be a link, so an older one is never written into.
func replaceIndex(from, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return git.CopyIndex(from, to)
}

// inTheWay returns the files without an entry in the index that are where a change adds a file.
// git would overwrite those that are ignored.
func (t tree) inTheWay(ctx context.Context, changes []change) (list []string, err error) {
	known, err := t.indexed(ctx)
	if err != nil {
		return nil, err
	}
	look := func(file string) {
		if !known[t.fold(file)] {
			list = append(list, file)
		}
	}
	for _, c := range changes {
		if c.old != "" {
			continue
		}
		at := ""
		for name := range strings.SplitSeq(c.path, "/") {
			at = path.Join(at, name)
			full := filepath.Join(t.top, filepath.FromSlash(at))
			info, err := os.Lstat(full)
			if err != nil {
				break
			}
			if !info.IsDir() {
				look(at)
				break
			}
			if at != c.path || c.isSubmodule {
				continue
			}
			_ = filepath.WalkDir(full, func(file string, d fs.DirEntry, err error) error {
				if below, err := filepath.Rel(t.top, file); err == nil && !d.IsDir() {
					look(filepath.ToSlash(below))
				}
				return nil
			})
		}
	}
	return list, nil
}
