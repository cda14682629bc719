package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/git"
)

// Method says how the commits of a worktree come to a branch.
type Method string

// The methods of landing.
const (
	Merge  Method = "merge"  // a merge commit; none if the branch can be moved forward
	Squash Method = "squash" // one new commit
	Rebase Method = "rebase" // each commit again, with its author; merges are left out
	Patch  Method = "patch"  // no commit: the user's files are changed
)

// LandOptions says how [Repository.Land] lands a worktree.
type LandOptions struct {
	Method  Method
	Message string // of the new commit, and of that of uncommitted files; "" selects a plain one
	Into    string // the branch; "" is [Worktree.Into]. Patch always changes the tree of Options.Dir
	// Committed refuses uncommitted and untracked files. Otherwise they become a commit.
	Committed bool
	// Session is the UUID of the session that works there. One that began with the files of another machine lands
	// there ([Repository.Send]), unless Into names a branch here. "" lands any.
	Session string

	as []string // who commits uncommitted files; nil: the user
}

// Landed is the result of [Repository.Land]. Old and New are the same if there is nothing new.
type Landed struct {
	Into     string
	Old, New string   // commits of Into; trees of the user's files for Patch
	Commits  []string // that Into has now, the oldest first
	Files    []string // that differ between Old and New
	Nested   []string // repositories in the worktree, and submodules with work, that are not landed
	// Unfiltered are files that Land has committed as they are, although .gitattributes names a filter
	// for them: its program is configured nowhere, or only in a repository that is not trusted.
	Unfiltered Listing
}

// An OverlapError reports that nothing was landed, because uncommitted or untracked files of the
// user would be overwritten.
type OverlapError struct {
	Dir   string
	Paths []string
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("nothing is landed: %q in %s is not committed and would be overwritten (%d files in all): commit or stash it "+
		"first", e.Paths[0], e.Dir, len(e.Paths))
}

// An UncommittedError reports that nothing was landed, because the worktree has uncommitted files.
type UncommittedError struct{ Paths []string }

func (e *UncommittedError) Error() string {
	return fmt.Sprintf("nothing is landed: %q is not committed (%d files in all)", e.Paths[0], len(e.Paths))
}

// errMoved reports that the branch has moved since Land has read it.
var errMoved = errors.New("nothing is landed: the branch changes at the same time; try again")

const attempts = 3

// Land brings the changes of a worktree to a branch. It computes the result first. On conflicts
// it returns a [ConflictError] and changes nothing. A working tree that has the branch checked
// out follows it; if uncommitted files there would be overwritten, Land returns an
// [OverlapError] and changes nothing. An unfinished merge or rebase there is a [BusyError].
// Whatever was landed before is not landed again.
func (r *Repository) Land(ctx context.Context, w Worktree, opts LandOptions) (Landed, error) {
	h, err := r.lock(ctx)
	if err != nil {
		return Landed{}, err
	}
	defer h.Close()
	if !slices.Contains([]Method{Merge, Squash, Rebase, Patch}, opts.Method) {
		return Landed{}, fmt.Errorf("unknown method %q: use merge, squash, rebase or patch", opts.Method)
	}
	if opts.Session != "" && opts.Into == "" {
		sent, err := h.users().resolve(ctx, fromPrefix+opts.Session)
		if err != nil {
			return Landed{}, err
		}
		if sent != "" {
			from := r.repo.Config[fromKey]
			if from != "" {
				from = " (" + from + ")"
			}
			return Landed{}, fmt.Errorf("nothing is landed: the session began with the files of another machine%s: land its work there, with "+
				"duet-rpc land SESSION@HOST in that project, or name a branch of %s", from, r.repo.Top)
		}
	}
	for range attempts {
		var l Landed
		if l, err = h.land(ctx, w, opts); !errors.Is(err, errMoved) {
			return l, err
		}
	}
	return Landed{}, err
}

func (h *held) land(ctx context.Context, w Worktree, opts LandOptions) (l Landed, err error) {
	g, err := h.find(w)
	if err != nil {
		return l, err
	}
	if isThere, err := git.Exists(g.top); err != nil {
		return l, err
	} else if isThere && g.gone {
		return l, fmt.Errorf("nothing is landed: %s is no longer a worktree of %s: git worktree repair may restore its link", g.top, h.repo.Top)
	}
	committed, err := h.head(ctx, g)
	if err != nil {
		return l, err
	}
	head, own := committed, h.move(g.dir, g.top)
	if !g.gone {
		defer h.cleanUp(own)
		if head, err = h.commitFiles(ctx, g, own, opts, committed, &l); err != nil {
			return l, err
		}
	}
	if opts.Method == Patch {
		err = h.patch(ctx, g, head, &l)
	} else {
		err = h.toBranch(ctx, g, head, opts, &l)
	}
	if err != nil || head == committed {
		return l, err
	}
	// The worktree follows last, so that a refused landing changes nothing. If another git process
	// is in the way, its files stay uncommitted, and are not landed again.
	own.Old, own.New, own.Commit = committed, head, true
	if err := h.follow(ctx, own); err != nil {
		var busy *BusyError
		if !errors.As(err, &busy) && !errors.Is(err, errMoved) {
			return l, err
		}
	}
	return l, nil
}

// commitFiles makes a commit of the uncommitted files. No ref has it yet.
func (h *held) commitFiles(
	ctx context.Context, g registration, own move, opts LandOptions, head string, l *Landed,
) (string, error) {
	t := h.tree(g.dir, g.top)
	d, err := t.files(ctx, g.Copied)
	if err != nil {
		return "", err
	}
	below, err := t.submodules(ctx)
	if err != nil {
		return "", err
	}
	l.Nested = append(d.nested, below...)
	if operation, err := t.operation(); err != nil {
		return "", err
	} else if operation != "" {
		return "", &BusyError{Dir: g.top, Operation: operation}
	}
	if d.unmerged {
		return "", &BusyError{Dir: g.top, Operation: unmerged}
	}
	paths := d.paths()
	if len(paths) == 0 {
		return head, nil
	}
	if opts.Committed {
		return "", &UncommittedError{Paths: paths}
	}
	if opts.Method != Patch { // which leaves it to the user's git to store the files
		if l.Unfiltered, err = t.unfiltered(ctx, paths); err != nil {
			return "", err
		}
	}
	files, err := t.snapshot(ctx, own.work(), paths)
	if err != nil {
		return "", err
	}
	if before, err := t.resolve(ctx, head+"^{tree}"); err != nil || files == before {
		return head, err
	}
	commit, err := t.commit(ctx, files, opts.message("Changes of "+g.Branch), opts.as, head)
	if err != nil && opts.Method == Patch { // the user gets no commit, and may have no name for one
		return t.commit(ctx, files, opts.message("Changes of "+g.Branch), ours, head)
	}
	return commit, err
}

func (o LandOptions) message(plain string) string {
	if strings.TrimSpace(o.Message) == "" {
		return plain
	}
	return o.Message
}

// toBranch lands a commit on a branch.
func (h *held) toBranch(ctx context.Context, g registration, head string, opts LandOptions, l *Landed) (err error) {
	users := h.users()
	if l.Into = opts.Into; l.Into == "" {
		l.Into = g.Into
	}
	if l.Into == "" || l.Into == g.Branch {
		return errors.New("nothing is landed: name the branch to land on")
	}
	if l.Old, err = users.resolve(ctx, "refs/heads/"+l.Into+"^{commit}"); err != nil || l.Old == "" {
		return errors.Join(fmt.Errorf("nothing is landed: there is no branch %q", l.Into), err)
	}
	at, err := h.checkedOut(l.Into)
	if err != nil {
		return err
	}
	if l.New, err = users.result(ctx, g, head, opts, *l); err != nil {
		return err
	}
	if l.New == l.Old {
		return g.note(landing{Head: head, Result: l.New})
	}
	changes, err := users.diff(ctx, l.Old, l.New)
	if err != nil {
		return err
	}
	for _, c := range changes {
		l.Files = append(l.Files, c.path)
	}
	out, err := users.run(ctx, "rev-list", "--reverse", "--topo-order", l.New, "^"+l.Old)
	if err != nil {
		return err
	}
	l.Commits = strings.Fields(out)
	if err := h.repo.Sync(); err != nil { // the next landing begins with this commit
		return err
	}
	if err := g.note(landing{Head: head, Result: l.New}); err != nil {
		return err
	}
	if at == nil {
		err := users.updateRef(ctx, "--create-reflog", "-m", "duet: land "+g.Branch, "refs/heads/"+l.Into, l.New, l.Old)
		return users.whenMoved(ctx, err, "refs/heads/"+l.Into, l.Old)
	}
	m := h.move(at.dir, at.top)
	m.Old, m.New, m.Commit, m.Changes, m.Branch = l.Old, l.New, true, changes, l.Into
	return h.follow(ctx, m)
}

// whenMoved makes errMoved of the error of git update-ref, which refuses to replace another commit than
// the expected one, and one whose lock another process has. Other errors stay.
func (t tree) whenMoved(ctx context.Context, err error, ref, expected string) error {
	if err == nil || ctx.Err() != nil || !exited(err, 128) {
		return err
	}
	now, unknown := t.resolve(ctx, ref+"^{commit}")
	if unknown == nil && now == expected && !strings.Contains(err.Error(), ".lock': File exists") {
		return err
	}
	return fmt.Errorf("%w (%w)", errMoved, err)
}

// checkedOut returns the working tree that has a branch checked out, or nil. An unfinished
// operation there, or a rebase of the branch, is a [BusyError].
func (h *held) checkedOut(branch string) (at *tree, err error) {
	all, _, err := h.registrations()
	if err != nil {
		return nil, err
	}
	trees := []tree{h.users()}
	if h.repo.Dir != h.repo.Common && !isTrue(h.repo.Config["core.bare"]) {
		top := h.repo.Config["core.worktree"]
		if top != "" && !filepath.IsAbs(top) {
			top = filepath.Join(h.repo.Common, top)
		}
		if top == "" && filepath.Base(h.repo.Common) == ".git" {
			top = filepath.Dir(h.repo.Common)
		}
		trees = append(trees, h.tree(h.repo.Common, top))
	}
	for _, g := range all {
		if !g.gone && !sameFile(g.dir, h.repo.Dir) {
			trees = append(trees, h.tree(g.dir, g.top))
		}
	}
	for _, t := range trees {
		for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name"} {
			text, err := git.ReadIfThere(filepath.Join(t.dir, name))
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(text) == "refs/heads/"+branch {
				return nil, &BusyError{Dir: t.top, Operation: "rebase"}
			}
		}
		head, err := git.ReadIfThere(filepath.Join(t.dir, "HEAD"))
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(head) != "ref: refs/heads/"+branch {
			continue
		}
		if t.top == "" {
			return nil, fmt.Errorf("nothing is landed: the working tree of %s, which has %s checked out, is not known", t.dir, branch)
		}
		if operation, err := t.operation(); err != nil {
			return nil, err
		} else if operation != "" {
			return nil, &BusyError{Dir: t.top, Operation: operation}
		}
		if at == nil {
			at = &t
		}
	}
	return at, nil
}

// patch merges a commit into the user's files.
func (h *held) patch(ctx context.Context, g registration, head string, l *Landed) error {
	users := h.users()
	if operation, err := users.operation(); err != nil {
		return err
	} else if operation != "" {
		return &BusyError{Dir: users.top, Operation: operation}
	}
	at, err := users.resolve(ctx, "HEAD^{commit}")
	if err != nil {
		return err
	}
	d, err := users.files(ctx, nil)
	if err != nil {
		return err
	}
	if d.unmerged {
		return &BusyError{Dir: users.top, Operation: unmerged}
	}
	base, err := users.run(ctx, "merge-base", at, head)
	if err != nil {
		return err
	}
	touched, err := users.diff(ctx, base, head)
	if err != nil {
		return err
	}
	for _, last := range g.Landings {
		if last.Tree != "" {
			earlier, err := users.diff(ctx, g.Base, last.Head)
			if ctx.Err() != nil {
				return err
			}
			touched = append(touched, earlier...) // none if git gc has dropped it
		}
	}
	paths := d.changed
	for _, c := range touched { // an untracked file may be what an earlier patch has made
		if info, err := os.Lstat(filepath.Join(users.top, filepath.FromSlash(c.path))); err == nil &&
			!c.isSubmodule && isContent(info.Mode()) {
			paths = append(paths, c.path)
		}
	}
	m := h.move(users.dir, users.top)
	if err := m.clean(); err != nil {
		return err
	}
	defer h.cleanUp(m)
	if l.Old, err = users.snapshot(ctx, m.work(), paths); err != nil {
		return err
	}
	last, err := users.landed(ctx, g, head, at, l.Old)
	last = cmp.Or(last, g.Sent)
	if l.New = l.Old; err != nil || last == head {
		return err
	}
	parents := []string{at}
	if last != "" {
		parents = []string{last, at}
	}
	side, err := users.commit(ctx, l.Old, "", ours, parents...)
	if err != nil {
		return err
	}
	merged, conflicts, err := users.merge(ctx, side, head)
	if err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return &ConflictError{Into: "the files in " + users.top, Conflicts: conflicts}
	}
	if l.New = merged; l.New == l.Old {
		return g.note(landing{Head: head, Tree: l.New})
	}
	if m.Changes, err = users.diff(ctx, l.Old, l.New); err != nil {
		return err
	}
	for _, c := range m.Changes {
		l.Files = append(l.Files, c.path)
	}
	m.Old, m.New = l.Old, l.New
	if err := h.follow(ctx, m); err != nil {
		return err
	}
	return g.note(landing{Head: head, Tree: l.New})
}

// Renew brings a worktree to the commit of the branch Into, if that has all changes of the worktree,
// and reports whether it did.
func (r *Repository) Renew(ctx context.Context, w Worktree) (bool, error) {
	h, err := r.lock(ctx)
	if err != nil {
		return false, err
	}
	defer h.Close()
	g, err := r.find(w)
	if err != nil || g.gone || g.branch != g.Branch || g.Into == "" {
		return false, err
	}
	t := h.tree(g.dir, g.top)
	if d, err := t.files(ctx, g.Copied); err != nil || len(d.paths())+len(d.nested) > 0 {
		return false, err
	}
	if operation, err := t.operation(); err != nil || operation != "" {
		return false, err
	}
	m := h.move(g.dir, g.top)
	if m.Old, err = h.head(ctx, g); err != nil {
		return false, err
	}
	if m.New, err = h.users().resolve(ctx, "refs/heads/"+g.Into+"^{commit}"); err != nil || m.New == "" ||
		m.New == m.Old {
		return false, err
	}
	if landed, err := h.users().isLanded(ctx, g, m.Old, m.New); err != nil || !landed {
		return false, err
	}
	if m.Changes, err = t.diff(ctx, m.Old, m.New); err != nil {
		return false, err
	}
	m.Commit, m.Branch = true, g.Branch
	if err := h.follow(ctx, m); err != nil {
		return false, err
	}
	g.Base, g.Landings = m.New, nil
	return true, g.save()
}
