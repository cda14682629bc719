package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
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
}

// Landed is the result of [Repository.Land]. Old and New are the same if there is nothing new.
type Landed struct {
	Into     string
	Old, New string   // commits of Into; trees of the user's files for Patch
	Commits  []string // that Into has now, the oldest first
	Files    []string // that differ between Old and New
	Nested   []string // repositories in the worktree that are not landed
}

// A landing is a squash, rebase or patch that was made. It counts while Into has its result.
type landing struct {
	Head   string `json:"head"` // of the worktree
	Result string `json:"result,omitempty"`
	Tree   string `json:"tree,omitempty"` // of a patch: the user's files
}

// Conflict is a file that differs on both sides. Kind is what git calls it, for example
// "contents" or "modify/delete".
type Conflict struct{ Path, Kind string }

// A ConflictError reports that nothing was landed because of conflicts.
type ConflictError struct {
	Into      string
	Conflicts []Conflict
}

func (e *ConflictError) Error() string {
	c := e.Conflicts[0]
	return fmt.Sprintf("nothing is landed: %q conflicts with %s (%s; %d files in all): merge %s in the worktree first", c.Path, e.Into, c.Kind, len(e.Conflicts), e.Into)
}

// An OverlapError reports that nothing was landed, because uncommitted or untracked files of the
// user would be overwritten.
type OverlapError struct {
	Dir   string
	Paths []string
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("nothing is landed: %q in %s is not committed and would be overwritten (%d files in all): commit or stash it first", e.Paths[0], e.Dir, len(e.Paths))
}

// An UncommittedError reports that nothing was landed, because the worktree has uncommitted files.
type UncommittedError struct{ Paths []string }

func (e *UncommittedError) Error() string {
	return fmt.Sprintf("nothing is landed: %q is not committed (%d files in all)", e.Paths[0], len(e.Paths))
}

// errMoved reports that the branch has moved since Land has read it.
var errMoved = errors.New("nothing is landed: the branch moves meanwhile; try again")

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
	committed, err := h.head(ctx, g)
	if err != nil {
		return l, err
	}
	head, own := committed, h.move(g.dir, g.top)
	if !g.gone {
		defer own.clean()
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
func (h *held) commitFiles(ctx context.Context, g registration, own move, opts LandOptions, head string, l *Landed) (string, error) {
	t := h.tree(g.dir, g.top)
	d, err := t.files(ctx, g.Copied)
	if err != nil {
		return "", err
	}
	l.Nested = d.nested
	if operation := t.operation(); operation != "" {
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
	files, err := t.snapshot(ctx, own.work(), paths)
	if err != nil {
		return "", err
	}
	if before, err := t.resolve(ctx, head+"^{tree}"); err != nil || files == before {
		return head, err
	}
	return t.commit(ctx, files, opts.message("Changes of "+g.Branch), nil, head)
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
	at, busy, err := h.checkedOut(ctx, l.Into)
	if err != nil || busy != nil {
		return errors.Join(err, busy)
	}
	if l.New, err = users.result(ctx, g, head, opts, *l); err != nil || l.New == l.Old {
		l.New = l.Old
		return err
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
	if g.dir != "" {
		g.Landings = append(g.Landings, landing{Head: head, Result: l.New})
		if err := g.save(); err != nil {
			return err
		}
	}
	if at == nil {
		_, err := users.run(ctx, "update-ref", "--create-reflog", "-m", "duet: land "+g.Branch, "refs/heads/"+l.Into, l.New, l.Old)
		return whenMoved(ctx, err)
	}
	m := h.move(at.dir, at.top)
	m.Old, m.New, m.Commit, m.Changes, m.Branch = l.Old, l.New, true, changes, l.Into
	return h.follow(ctx, m)
}

// whenMoved makes errMoved of the error of git update-ref, which refuses to replace another
// commit than the expected one.
func whenMoved(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && exited(err, 128) {
		return fmt.Errorf("%w (%w)", errMoved, err)
	}
	return err
}

// checkedOut returns the working tree that has a branch checked out, or nil. busy reports an
// unfinished operation there, or a rebase of the branch.
func (h *held) checkedOut(ctx context.Context, branch string) (at *tree, busy error, err error) {
	all, _, err := h.registrations()
	if err != nil {
		return nil, nil, err
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
			if text, _ := git.ReadSmall(filepath.Join(t.dir, name)); strings.TrimSpace(text) == "refs/heads/"+branch {
				return nil, &BusyError{Dir: t.top, Operation: "rebase"}, nil
			}
		}
		head, _ := git.ReadSmall(filepath.Join(t.dir, "HEAD"))
		if strings.TrimSpace(head) != "ref: refs/heads/"+branch {
			continue
		}
		if t.top == "" {
			return nil, nil, fmt.Errorf("nothing is landed: the working tree of %s, which has %s checked out, is not known", t.dir, branch)
		}
		if operation := t.operation(); operation != "" {
			busy = &BusyError{Dir: t.top, Operation: operation}
		}
		at = &t
	}
	return at, busy, nil
}

// result computes the new commit of a branch.
func (t tree) result(ctx context.Context, g registration, head string, opts LandOptions, l Landed) (string, error) {
	if is, err := t.isAncestor(ctx, head, l.Old); is || err != nil {
		return l.Old, err
	}
	last, err := t.landed(ctx, g, head, l.Old, l.Old)
	if err != nil || last == head {
		return l.Old, err
	}
	if last == "" && opts.Method != Squash {
		if is, err := t.isAncestor(ctx, l.Old, head); err != nil || is {
			merges, err2 := t.commits(ctx, "--merges", "--max-count=1", head, "^"+l.Old)
			if err := errors.Join(err, err2); err != nil || opts.Method == Merge || merges.Count == 0 {
				return head, err
			}
		}
	}
	// The merge starts at what was landed last: that is what the branch and the worktree have in
	// common, but their commits do not say so.
	side := l.Old
	if last != "" {
		if side, err = t.commit(ctx, l.Old+"^{tree}", "", ours, last, l.Old); err != nil {
			return "", err
		}
	}
	merged, conflicts, err := t.merge(ctx, side, head)
	if err != nil {
		return "", err
	}
	if len(conflicts) > 0 {
		return "", &ConflictError{Into: l.Into, Conflicts: conflicts}
	}
	if now, err := t.resolve(ctx, l.Old+"^{tree}"); err != nil || now == merged {
		return l.Old, err
	}
	switch opts.Method {
	case Squash:
		return t.commit(ctx, merged, opts.message("Changes of "+g.Branch), nil, l.Old)
	case Rebase:
		return t.rebase(ctx, head, last, merged, l)
	}
	return t.commit(ctx, merged, opts.message("Merge "+g.Branch), nil, l.Old, head)
}

// rebase makes each commit again. The last one has to have the files that a merge has.
func (t tree) rebase(ctx context.Context, head, last, merged string, l Landed) (string, error) {
	selected := []string{"rev-list", "--reverse", "--topo-order", "--no-merges", "--parents", head, "^" + l.Old}
	if last != "" {
		selected = append(selected, "^"+last)
	}
	out, err := t.run(ctx, selected...)
	if err != nil {
		return "", err
	}
	at := l.Old
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return "", fmt.Errorf("nothing is landed: %s has no parent: use merge or squash", fields[0])
		}
		commit, parent := fields[0], fields[1]
		if parent == at {
			at = commit
			continue
		}
		side, err := t.commit(ctx, at+"^{tree}", "", ours, parent)
		if err != nil {
			return "", err
		}
		picked, conflicts, err := t.merge(ctx, side, commit)
		if err != nil {
			return "", err
		}
		if len(conflicts) > 0 {
			return "", &ConflictError{Into: l.Into, Conflicts: conflicts}
		}
		if now, err := t.resolve(ctx, at+"^{tree}"); err != nil {
			return "", err
		} else if now == picked {
			continue // the branch has it
		}
		text, err := t.do(ctx, git.Command{Args: []string{"log", "-1", "--no-show-signature", "--encoding=UTF-8", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%B", commit}})
		if err != nil {
			return "", err
		}
		author := strings.SplitN(string(text), "\x00", 4)
		if len(author) != 4 {
			return "", fmt.Errorf("git log: unexpected answer %.100q", text)
		}
		at, err = t.commit(ctx, picked, strings.TrimRight(author[3], "\n"),
			[]string{"GIT_AUTHOR_NAME=" + author[0], "GIT_AUTHOR_EMAIL=" + author[1], "GIT_AUTHOR_DATE=" + author[2]}, at)
		if err != nil {
			return "", err
		}
	}
	if files, err := t.resolve(ctx, at+"^{tree}"); err != nil || files == merged {
		return at, err
	}
	return "", errors.New("nothing is landed: a merge in the worktree has changes of its own, which a rebase loses: use merge or squash")
}

// landed returns the last commit of the worktree whose changes a branch has by an earlier
// squash, rebase or patch, or "". files is the tree of the branch, or of the user's files.
func (t tree) landed(ctx context.Context, g registration, head, into, files string) (string, error) {
	for _, last := range slices.Backward(g.Landings) {
		if is, err := t.isAncestor(ctx, last.Head, head); !is {
			if err != nil && ctx.Err() != nil {
				return "", err
			}
			continue // rewritten, or dropped by git gc
		}
		if last.Result != "" {
			if is, err := t.isAncestor(ctx, last.Result, into); is {
				return last.Head, nil
			} else if ctx.Err() != nil {
				return "", err
			}
			continue
		}
		changed, err1 := t.diff(ctx, g.Base, last.Head)
		since, err2 := t.diff(ctx, last.Tree, files)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err1 == nil && err2 == nil && !slices.ContainsFunc(changed, func(c change) bool {
			return slices.ContainsFunc(since, func(s change) bool { return s.path == c.path })
		}) {
			return last.Head, nil
		}
	}
	return "", nil
}

// merge merges two commits and returns the tree of the result.
func (t tree) merge(ctx context.Context, one, other string) (string, []Conflict, error) {
	records, err := t.records(ctx, "merge-tree", "--write-tree", "-z", "--messages", one, other)
	if err == nil && len(records) > 0 {
		return records[0], nil, nil
	}
	if !exited(err, 1) || len(records) == 0 {
		return "", nil, err
	}
	kinds, paths := map[string]string{}, []string{}
	note := func(path, kind string) {
		if _, found := kinds[path]; !found {
			paths = append(paths, path)
		}
		if kinds[path] == "" {
			kinds[path] = kind
		}
	}
	i := 1
	for ; i < len(records) && records[i] != ""; i++ {
		_, path, _ := strings.Cut(records[i], "\t")
		note(path, "")
	}
	// A message is the number of its paths, the paths, its type and a text.
	for i++; i < len(records); {
		n, err := strconv.Atoi(records[i])
		if err != nil || n < 0 || i+n+2 >= len(records) {
			break
		}
		if kind, is := strings.CutPrefix(records[i+n+1], "CONFLICT ("); is {
			for _, path := range records[i+1 : i+1+n] {
				note(path, strings.TrimSuffix(kind, ")"))
			}
		}
		i += n + 3
	}
	slices.Sort(paths)
	conflicts := []Conflict{}
	for _, path := range paths {
		conflicts = append(conflicts, Conflict{Path: path, Kind: kinds[path]})
	}
	return records[0], conflicts, nil
}

// patch merges a commit into the user's files.
func (h *held) patch(ctx context.Context, g registration, head string, l *Landed) error {
	users := h.users()
	if operation := users.operation(); operation != "" {
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
		if info, err := os.Lstat(filepath.Join(users.top, filepath.FromSlash(c.path))); err == nil && !c.isSubmodule &&
			(info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSymlink) {
			paths = append(paths, c.path)
		}
	}
	m := h.move(users.dir, users.top)
	if err := m.clean(); err != nil {
		return err
	}
	defer m.clean()
	if l.Old, err = users.snapshot(ctx, m.work(), paths); err != nil {
		return err
	}
	last, err := users.landed(ctx, g, head, at, l.Old)
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
		return nil
	}
	if m.Changes, err = users.diff(ctx, l.Old, l.New); err != nil {
		return err
	}
	for _, c := range m.Changes {
		l.Files = append(l.Files, c.path)
	}
	m.Old, m.New = l.Old, l.New
	if err := h.follow(ctx, m); err != nil || g.dir == "" {
		return err
	}
	g.Landings = append(g.Landings, landing{Head: head, Tree: l.New})
	return g.save()
}

// follow does a move: it changes the files, HEAD and the index of a working tree. If it fails, it
// has changed nothing. Without m.Changes the files are as in m.New already, and m.work is the index.
func (h *held) follow(ctx context.Context, m move) (err error) {
	if err := h.note(journal{Moved: &m}); err != nil {
		return err
	}
	defer func() {
		lost, err2 := h.settle(context.WithoutCancel(ctx), m)
		if len(lost) > 0 {
			err = fmt.Errorf("%w; git cannot write these files again: run git checkout -- %q", err, lost)
		}
		if err2 == nil {
			err2 = h.done()
		}
		err = errors.Join(err, err2)
	}()
	t := h.tree(m.Dir, m.Top)
	if m.Commit {
		// A link of a finished file is a lock that always has its text.
		if err := os.WriteFile(m.token(), []byte(m.Token), 0o600); err != nil {
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
	_, err = t.run(ctx, "update-ref", "-m", "duet: land", "HEAD", m.New, m.Old)
	return whenMoved(ctx, err)
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
	if err := replaceIndex(m.work(), m.before()); err != nil { // from here on files are taken back
		return err
	}
	if _, err := t.run(ctx, readTree...); err != nil {
		return fmt.Errorf("nothing is landed: %w", err)
	}
	return nil
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
