package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// Changes are the work in a worktree: the difference between its files, committed or not, and the commit
// that it shares with the branch Into, or its base. Paths are relative to its top.
type Changes struct {
	Commits Listing // since the base, the newest first, as "ID subject"
	Files   []FileChange
	Nested  Listing // repositories in the worktree, and submodules with work, which Land leaves out
	Landed  bool    // Into has all changes, also if they were squashed or rebased
	Patch   string  // whole lines
	IsCut   bool    // Patch is not complete
}

// A FileChange counts the changed lines of a file.
type FileChange struct {
	Path           string
	Added, Removed int
	IsBinary       bool // Added and Removed are zero
}

// Changes compares a worktree with the commit that it shares with the branch Into. The patch has at most
// patch bytes.
func (r *Repository) Changes(ctx context.Context, w Worktree, patch int) (c Changes, err error) {
	h, err := r.lock(ctx)
	if err != nil {
		return c, err
	}
	defer h.Close()
	g, err := r.find(w)
	if err != nil {
		return c, err
	}
	users := h.users()
	head, err := h.head(ctx, g)
	if err != nil {
		return c, err
	}
	if c.Commits, err = users.commits(ctx, head, "^"+g.Base); err != nil {
		return c, err
	}
	t, to := users, head+"^{tree}"
	uncommitted := false
	if !g.gone {
		t = h.tree(g.dir, g.top)
		d, err := t.files(ctx, g.Copied)
		if err != nil {
			return c, err
		}
		below, err := t.submodules(ctx)
		if err != nil {
			return c, err
		}
		c.Nested.add(append(d.nested, below...)...)
		if uncommitted = len(d.paths()) > 0; uncommitted {
			index := h.move(g.dir, g.top).work()
			defer os.Remove(index)
			if to, err = t.snapshot(ctx, index, d.paths()); err != nil {
				return c, err
			}
		}
	}
	from := g.begin()
	into := ""
	if g.Into != "" {
		if into, err = users.resolve(ctx, "refs/heads/"+g.Into+"^{commit}"); err != nil {
			return c, err
		}
	}
	if into != "" {
		shared, err := users.run(ctx, "merge-base", into, head)
		if err != nil && !exited(err, 1) { // 1: their histories are unrelated
			return c, err
		}
		if shared != head && shared != "" && (g.Sent == "" || shared != g.Base) { // otherwise it is landed, or has no commit, or begins behind Base
			from = shared
		}
		if !uncommitted {
			if c.Landed, err = users.isLanded(ctx, g, head, into); err != nil {
				return c, err
			}
		}
	}
	if err := t.countLines(ctx, &c, from, to); err != nil || patch <= 0 {
		return c, err
	}
	return c, t.patch(ctx, &c, from, to, patch)
}

func (t tree) countLines(ctx context.Context, c *Changes, from, to string) error {
	records, err := t.records(ctx, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff",
		"--no-textconv", "--end-of-options", from, to)
	for _, record := range records {
		fields := strings.SplitN(record, "\t", 3)
		if len(fields) != 3 {
			return fmt.Errorf("git diff-tree: unexpected answer %q", record)
		}
		f := FileChange{Path: fields[2], IsBinary: fields[0] == "-"}
		if !f.IsBinary {
			f.Added, _ = strconv.Atoi(fields[0]) // git wrote numbers
			f.Removed, _ = strconv.Atoi(fields[1])
		}
		c.Files = append(c.Files, f)
	}
	return err
}

// patch adds a patch of at most a number of bytes. It leaves out files at the end that do not fit.
func (t tree) patch(ctx context.Context, c *Changes, from, to string, most int) error {
	args := []string{
		"diff-tree", "-r", "-p", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv", "--end-of-options",
		from, to, "--",
	}
	fixed, lines := len(args), 0
	for _, f := range c.Files {
		if lines += f.Added + f.Removed + 1; lines > most || len(args) > mostInPatch {
			c.IsCut = true
			break
		}
		args = append(args, f.Path)
	}
	if len(c.Files) == 0 || c.IsCut && len(args) == fixed {
		return nil
	}
	out, err := t.do(ctx, git.Command{Args: args, Env: []string{"GIT_LITERAL_PATHSPECS=1"}})
	if err != nil {
		return err
	}
	if len(out) > most {
		out, c.IsCut = out[:bytes.LastIndexByte(out[:most], '\n')+1], true
	}
	c.Patch = strings.ToValidUTF8(string(out), "\uFFFD")
	return nil
}

const mostInPatch = 1000 // files: they are arguments of git

// unmerged is the operation of a tree with conflicts and nothing else.
const unmerged = "merge with conflicts"

// head returns the commit of a worktree: HEAD of its directory, or its branch. If the branch is
// deleted, the reflog of the directory has the commit.
func (h *held) head(ctx context.Context, g registration) (string, error) {
	users := h.users()
	if g.Ref != "" {
		head, err := users.resolve(ctx, g.Ref+"^{commit}")
		return head, orGone(head, err)
	}
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
	list := func() (string, error) {
		return t.run(ctx, slices.Concat([]string{"rev-list", "--no-commit-header", "--format=%h %s"}, selected,
			[]string{"--"})...)
	}
	out, err := list()
	if all := slices.Index(selected, "--all"); exited(err, 128) && all >= 0 {
		// git reads each ref. One that a power cut has damaged keeps no work, and must not be in the way.
		if damaged := t.damagedRefs(ctx); len(damaged) > 0 {
			selected = slices.Insert(slices.Clone(selected), all, damaged...)
			out, err = list()
		}
	}
	if err == nil && out != "" {
		l.add(strings.Split(out, "\n")...)
	}
	return l, err
}

// damagedRefs returns an --exclude option for each ref whose commit or tag cannot be read.
func (t tree) damagedRefs(ctx context.Context) (options []string) {
	refs, _ := t.run(ctx, "for-each-ref", "--format=%(refname)")
	names := strings.Fields(refs)
	// git lists no ref without a text.
	_ = filepath.WalkDir(filepath.Join(t.r.repo.Common, "refs"), func(path string, d fs.DirEntry, err error) error {
		if name, outside := filepath.Rel(t.r.repo.Common, path); err == nil && outside == nil && !d.IsDir() &&
			!slices.Contains(names, filepath.ToSlash(name)) {
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	for _, ref := range names {
		if _, err := t.run(ctx, "cat-file", "-t", ref); err != nil && ctx.Err() == nil {
			options = append(options, "--exclude="+ref)
		}
	}
	return options
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
	records, err := t.records(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all",
		"--untracked-files=all")
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

// submodules returns the checked out submodules of a worktree with work that is only there: changed
// files, or commits that no remote branch has. Discarding a worktree deletes their git directories.
func (t tree) submodules(ctx context.Context) (list []string, err error) {
	var all []string
	_, err = t.do(ctx, git.Command{Args: []string{"ls-files", "-z", "--stage"}, Record: func(record []byte) error {
		if stage, path, _ := strings.Cut(string(record), "\t"); strings.HasPrefix(stage, "160000 ") {
			all = append(all, path)
		}
		return nil
	}})
	for _, path := range all {
		top := filepath.Join(t.top, filepath.FromSlash(path))
		repo, found := git.Find(top)
		if err != nil || !found || repo.Top != top {
			continue // it is not checked out
		}
		if hasWork, failed := t.r.hasWork(ctx, repo); hasWork || failed != nil {
			list = append(list, path+"/") // one that cannot be read may have work
		}
	}
	return list, errors.Join(err, ctx.Err())
}

// hasWork reports whether a submodule has work that is only there. As for the user's repository, git
// runs no program that its configuration names.
func (r *Repository) hasWork(ctx context.Context, repo git.Repository) (bool, error) {
	// Not the state of a repository of its own: a directory that is linked to the user's repository has that.
	sub := &Repository{program: r.program, parent: r.parent, state: filepath.Join(r.state, "submodule"), repo: repo}
	var err error
	if sub.repo.Config, err = git.ReadConfig(ctx, sub.program, filepath.Join(repo.Common, "config")); err != nil {
		return false, err
	}
	defer os.RemoveAll(sub.state)
	if err := errors.Join(sub.repo.Unusable(), os.RemoveAll(sub.state), sub.prepare()); err != nil { // a killed process may have left one
		return false, err
	}
	t := sub.users()
	d, err := t.files(ctx, nil)
	if err != nil || len(d.paths())+len(d.nested) > 0 {
		return true, err
	}
	if below, err := t.submodules(ctx); err != nil || len(below) > 0 {
		return true, err
	}
	commits, err := t.commits(ctx, "--max-count=1", "HEAD", "--exclude=refs/tags/*", "--all", "--not", "--remotes")
	return commits.Count > 0, err
}

// snapshot makes a tree object of the index and of files on the disk. It leaves the new index in
// a file.
func (t tree) snapshot(ctx context.Context, index string, paths []string) (string, error) {
	if err := replaceIndex(filepath.Join(t.dir, "index"), index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	t.index = index
	var removed, others bytes.Buffer
	for _, path := range paths {
		input := &others
		if info, err := os.Lstat(filepath.Join(t.top, filepath.FromSlash(path))); err == nil &&
			!isContent(info.Mode()) {
			input = &removed // a directory in the place of a file, for example
		}
		input.WriteString(path + "\x00")
	}
	for _, update := range []struct {
		input *bytes.Buffer
		args  []string
	}{{&removed, []string{"--force-remove"}}, {&others, []string{"--add", "--remove", "--replace"}}} {
		if update.input.Len() == 0 {
			continue
		}
		args := slices.Concat([]string{"update-index"}, update.args, []string{"-z", "--stdin"})
		if _, err := t.do(ctx, git.Command{Args: args, Stdin: update.input}); err != nil {
			return "", err
		}
	}
	return t.run(ctx, "write-tree")
}

// unfiltered returns the files that git stores as they are, although an attribute names a filter for
// them: no configuration that counts here has its program.
func (t tree) unfiltered(ctx context.Context, paths []string) (l Listing, err error) {
	var input bytes.Buffer
	for _, path := range paths {
		if info, err := os.Lstat(filepath.Join(t.top, filepath.FromSlash(path))); err == nil &&
			info.Mode().IsRegular() {
			input.WriteString(path + "\x00")
		}
	}
	if input.Len() == 0 {
		return l, nil
	}
	var attributes []string // three for each path: it, the attribute, its value
	if _, err := t.do(ctx, git.Command{Args: []string{
		"check-attr", "-z", "--stdin", "filter",
	}, Stdin: &input, Record: func(record []byte) error {
		attributes = append(attributes, string(record))
		return nil
	}}); err != nil {
		return l, err
	}
	settings, err := t.records(ctx, "config", "--null", "--get-regexp", `^filter\..*\.(clean|process)$`)
	if err != nil && !exited(err, 1) { // 1: there is none
		return l, err
	}
	runs := map[string]bool{}
	for _, setting := range settings {
		key, program, _ := strings.Cut(setting, "\n")
		name := strings.TrimPrefix(key[:strings.LastIndex(key, ".")], "filter.")
		runs[name] = runs[name] || program != ""
	}
	for file := range slices.Chunk(attributes, 3) {
		switch filter := file[len(file)-1]; {
		case filter == "unspecified", filter == "unset", filter == "set", runs[filter]:
		default:
			l.add(file[0])
		}
	}
	return l, nil
}

// isContent reports whether git stores files of this mode.
func isContent(mode fs.FileMode) bool { return mode.IsRegular() || mode.Type() == fs.ModeSymlink }

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
