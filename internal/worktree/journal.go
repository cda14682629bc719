package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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

func (h *held) journal() string { return filepath.Join(h.state, "journal") }

func (h *held) note(j journal) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return git.ReplaceFile(h.journal(), string(text))
}

// done ends a change.
func (h *held) done() error {
	err := os.Remove(h.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// recover finishes a change that is noted, or takes it back.
func (h *held) recover(ctx context.Context) error {
	text, err := os.ReadFile(h.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return h.tidy()
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(text, &j)
	}
	if err != nil {
		return err
	}
	if j.Created != nil {
		err = h.remove(ctx, *j.Created, j.Created.Base)
	}
	if j.Moved != nil {
		_, settled := h.settle(ctx, *j.Moved)
		err = errors.Join(err, settled)
	}
	if err != nil {
		return err
	}
	return errors.Join(h.tidy(), h.done())
}

// tidy removes index files that a killed process has left.
func (h *held) tidy() error {
	all, _, err := h.registrations()
	dirs := []string{h.repo.Dir, h.repo.Common}
	for _, g := range all {
		dirs = append(dirs, g.dir)
	}
	for _, dir := range dirs {
		err = errors.Join(err, h.move(dir, "").clean())
	}
	return err
}

// The files of a move are in the git directory, where git replaces the index by a renamed file.
func (m move) work() string   { return filepath.Join(m.Dir, "duet-index-"+m.Mark) }
func (m move) before() string { return filepath.Join(m.Dir, "duet-before-"+m.Mark) }
func (m move) token() string  { return filepath.Join(m.Dir, "duet-lock-"+m.Mark) }
func (m move) lock() string   { return filepath.Join(m.Dir, lockFile) }

// move returns an empty move of a working tree.
func (h *held) move(dir, top string) move {
	return move{Dir: dir, Top: top, Mark: strings.TrimPrefix(filepath.Base(h.state), ".duet-"), Token: rand.Text()}
}

// settle ends a move that has failed or was killed: HEAD says whether it is finished or taken back.
// Without a commit the index that git writes after the files does. lost are files that git can
// not write again, because their filter fails.
func (h *held) settle(ctx context.Context, m move) (lost []string, err error) {
	t := h.tree(m.Dir, m.Top)
	moved := false
	if m.Commit {
		if text, _ := os.ReadFile(m.lock()); string(text) != m.Token {
			return nil, m.clean() // not begun, or finished
		}
		head, err := t.resolve(ctx, "HEAD^{commit}")
		if err != nil {
			return nil, err
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
		if err := os.Rename(m.work(), filepath.Join(m.Dir, "index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return lost, m.clean()
}

func (m move) clean() error {
	for _, name := range []string{m.work(), m.work() + ".lock", m.before(), m.token()} {
		_ = os.Remove(name)
	}
	if text, _ := os.ReadFile(m.lock()); m.Token != "" && string(text) == m.Token {
		return os.Remove(m.lock())
	}
	return nil
}

// takeBack restores the files that a move has changed or begun to. A file with other content
// than the move writes is left as it is.
func (h *held) takeBack(ctx context.Context, m move) (lost []string, err error) {
	t := h.tree(m.Dir, m.Top)
	if _, err := os.Stat(m.before()); err != nil {
		return nil, nil // not begun
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
			Args: []string{"checkout-index", "--force", "-z", "--stdin"}, Stdin: strings.NewReader(strings.Join(append(paths, ""), "\x00")),
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

// A change is a file that differs between two trees. A missing side is "".
type change struct {
	path, old, new string // old and new are blobs
	isSubmodule    bool   // on either side
}

func (t tree) diff(ctx context.Context, from, to string) (list []change, err error) {
	records, err := t.records(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--end-of-options", from, to)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(records); i += 2 {
		fields := strings.Fields(strings.TrimPrefix(records[i], ":"))
		if len(fields) != 5 {
			return nil, fmt.Errorf("git diff-tree: unexpected answer %s", strconv.Quote(records[i]))
		}
		c := change{path: records[i+1], old: fields[2], new: fields[3], isSubmodule: fields[0] == "160000" || fields[1] == "160000"}
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
