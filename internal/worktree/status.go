package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/git"
)

// mostListed is the number of names in a [Listing].
const mostListed = 20

// A Listing is a number of files or commits and the first of them.
type Listing struct {
	Count int
	First []string // at most 20
}

func (l *Listing) add(names ...string) {
	l.Count += len(names)
	l.First = append(l.First, names[:min(len(names), mostListed-len(l.First))]...)
}

// A Status says how a worktree differs from its base and from the branch it is landed on. Paths
// are relative to its top.
type Status struct {
	DirGone, BranchGone bool
	Head                string  // the commit that Land takes
	Commits             Listing // since the base, the newest first, as "ID subject"
	Uncommitted         Listing // changed tracked files
	Untracked           Listing
	Nested              Listing // repositories in the worktree, which Land leaves out
	Operation           string  // an unfinished merge, rebase, cherry-pick or revert in the worktree, or ""
	IntoGone            bool    // the branch Into does not exist; Ahead, Behind and Landed are zero
	Ahead, Behind       int     // commits that Into does not have, and those that only Into has
	Landed              bool    // Into has all changes, also if they were squashed or rebased
}

// Status compares a worktree with its base and with the branch Into.
func (r *Repository) Status(ctx context.Context, w Worktree) (s Status, err error) {
	h, err := r.lock(ctx)
	if err != nil {
		return s, err
	}
	defer h.Close()
	g, err := r.find(w)
	if err != nil {
		return s, err
	}
	users := h.users()
	branch, err := users.resolve(ctx, "refs/heads/"+w.Branch+"^{commit}")
	if err != nil {
		return s, err
	}
	s.DirGone, s.BranchGone = g.gone, branch == ""
	if s.Head, err = h.head(ctx, g); err != nil {
		return s, err
	}
	if !g.gone {
		t := h.tree(g.dir, g.top)
		f, err := t.files(ctx, g.Copied)
		if err != nil {
			return s, err
		}
		s.Uncommitted.add(f.changed...)
		s.Untracked.add(f.untracked...)
		s.Nested.add(f.nested...)
		if s.Operation = t.operation(); s.Operation == "" && f.unmerged {
			s.Operation = unmerged
		}
	}
	if s.Commits, err = users.commits(ctx, s.Head, "^"+g.Base); err != nil {
		return s, err
	}
	into := ""
	if g.Into != "" {
		if into, err = users.resolve(ctx, "refs/heads/"+g.Into+"^{commit}"); err != nil {
			return s, err
		}
	}
	if s.IntoGone = into == ""; s.IntoGone {
		return s, nil
	}
	ahead, err := users.commits(ctx, s.Head, "^"+into)
	if err != nil {
		return s, err
	}
	behind, err := users.commits(ctx, into, "^"+s.Head)
	s.Ahead, s.Behind = ahead.Count, behind.Count
	if err != nil || s.Uncommitted.Count+s.Untracked.Count > 0 {
		return s, err
	}
	s.Landed, err = users.isLanded(ctx, g, s.Head, into)
	return s, err
}

// unmerged is the operation of a tree with conflicts and nothing else.
const unmerged = "merge with conflicts"

// head returns the commit of a worktree: HEAD of its directory, or its branch. If the branch is
// deleted, the reflog of the directory has the commit.
func (h *held) head(ctx context.Context, g registration) (string, error) {
	users := h.users()
	if !g.gone {
		head, err := h.tree(g.dir, g.top).resolve(ctx, "HEAD^{commit}")
		if err != nil || head != "" {
			return head, err
		}
	}
	head, err := users.resolve(ctx, "refs/heads/"+g.Branch+"^{commit}")
	if err != nil || head != "" || g.dir == "" {
		return head, orGone(head, err)
	}
	text, _ := git.ReadSmall(filepath.Join(g.dir, "logs", "HEAD"))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if fields := strings.Fields(lines[len(lines)-1]); len(fields) > 1 {
		head, err = users.resolve(ctx, fields[1]+"^{commit}")
	}
	return head, orGone(head, err)
}

func orGone(head string, err error) error {
	if err == nil && head == "" {
		return ErrGone
	}
	return err
}

// commits lists commits as rev-list selects them.
func (t tree) commits(ctx context.Context, selected ...string) (l Listing, err error) {
	out, err := t.run(ctx, slices.Concat([]string{"rev-list", "--no-commit-header", "--format=%h %s"}, selected, []string{"--"})...)
	if err == nil && out != "" {
		l.add(strings.Split(out, "\n")...)
	}
	return l, err
}

// dirt is how a working tree differs from its HEAD.
type dirt struct {
	changed, untracked, nested []string
	unmerged                   bool
}

func (d dirt) paths() []string { return slices.Concat(d.changed, d.untracked) }

// files compares a working tree with its HEAD. It does not look into submodules, since git would
// run in them.
func (t tree) files(ctx context.Context, without []string) (d dirt, err error) {
	records, err := t.records(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all", "--untracked-files=all")
	for _, record := range records {
		state, path := record[:2], record[3:]
		switch {
		case state != "??":
			d.changed = append(d.changed, path)
			d.unmerged = d.unmerged || strings.Contains(state, "U") || state == "AA" || state == "DD"
		case slices.Contains(without, path):
		case strings.HasSuffix(path, "/"):
			d.nested = append(d.nested, path)
		default:
			d.untracked = append(d.untracked, path)
		}
	}
	return d, err
}

// snapshot makes a tree object of the index and of files on the disk. It leaves the new index in
// a file.
func (t tree) snapshot(ctx context.Context, index string, paths []string) (string, error) {
	if err := replaceIndex(filepath.Join(t.dir, "index"), index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	t.index = index
	if len(paths) > 0 {
		var input bytes.Buffer
		for _, path := range paths {
			input.WriteString(path + "\x00")
		}
		if _, err := t.do(ctx, git.Command{Args: []string{"update-index", "--add", "--remove", "--replace", "-z", "--stdin"}, Stdin: &input}); err != nil {
			return "", err
		}
	}
	return t.run(ctx, "write-tree")
}

// isLanded reports whether a branch has all changes of a commit.
func (t tree) isLanded(ctx context.Context, g registration, head, into string) (bool, error) {
	if is, err := t.isAncestor(ctx, head, into); is || err != nil {
		return is, err
	}
	last, err := t.landed(ctx, g, head, into, into)
	if err != nil || last == head {
		return err == nil, err
	}
	base, err := t.run(ctx, "merge-base", into, head)
	if exited(err, 1) {
		return false, nil // their histories are unrelated
	}
	if err != nil {
		return false, err
	}
	// The merge changes nothing: this is so after a squash.
	merged, conflicts, err := t.merge(ctx, into, head)
	if err != nil {
		return false, err
	}
	if at, err := t.resolve(ctx, into+"^{tree}"); err != nil || len(conflicts) == 0 && merged == at {
		return err == nil, err
	}
	// Commits of the branch have the same patches, one by one or as a whole.
	whole, err := t.commit(ctx, head+"^{tree}", "", ours, base)
	if err != nil {
		return false, err
	}
	for _, commit := range []string{head, whole} {
		out, err := t.run(ctx, "cherry", into, commit)
		if err != nil {
			return false, err
		}
		merges, err := t.commits(ctx, "--merges", "--max-count=1", commit, "^"+into)
		if err != nil {
			return false, err
		}
		if merges.Count == 0 && !strings.Contains("\n"+out, "\n+") {
			return true, nil
		}
	}
	return false, nil
}
