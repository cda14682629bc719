package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/git"
)

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
	Ref       string // of a worktree on a host: the ref there that has Into (Offer); "": none
}

func (e *ConflictError) Error() string {
	c := e.Conflicts[0]
	return fmt.Sprintf(
		"nothing is landed: %q conflicts with %s (%s; %d files in all): merge %s in the worktree first", c.Path, e.Into, c.Kind, len(e.Conflicts),
		cmp.Or(e.Ref, e.Into),
	)
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
	if g.Sent != "" { // these files are the user's to commit or to drop: the landing begins behind them
		last = cmp.Or(last, g.Sent)
		if err := t.checkSent(ctx, g, last, head); err != nil {
			return "", err
		}
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
	squash := func() (string, error) { return t.commit(ctx, merged, opts.message("Changes of "+g.Branch), nil, l.Old) }
	switch {
	case opts.Method == Squash:
		return squash()
	case opts.Method == Rebase:
		return t.rebase(ctx, head, last, merged, l)
	case g.Sent != "":
		// A merge would bring the commit with the files that were not committed.
		if at, err := t.rebase(ctx, head, last, merged, l); err == nil || ctx.Err() != nil {
			return at, err
		}
		return squash()
	}
	return t.commit(ctx, merged, opts.message("Merge "+g.Branch), nil, l.Old, head)
}

// rebase makes each commit again. The last one has to have the files that a merge has. A commit
// that conflicts although the merge does not is an error: git rebase would stop there, too, and to
// merge Into in the worktree first, as after a [ConflictError], would not help.
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
			return "", fmt.Errorf("nothing is landed: commit %.12s alone conflicts with %s in %q, all changes together do not: use merge or "+
				"squash", commit, l.Into, conflicts[0].Path)
		}
		if now, err := t.resolve(ctx, at+"^{tree}"); err != nil {
			return "", err
		} else if now == picked {
			continue // the branch has it
		}
		text, err := t.do(ctx, git.Command{
			Args: []string{
				"log", "-1", "--no-show-signature", "--encoding=UTF-8", "--date=raw",
				"--format=%an%x00%ae%x00%ad%x00%B", commit,
			},
		})
		if err != nil {
			return "", err
		}
		author := strings.SplitN(string(text), "\x00", 4)
		if len(author) != 4 {
			return "", fmt.Errorf("git log: unexpected answer %.100q", text)
		}
		at, err = t.commit(ctx, picked, strings.TrimRight(author[3], "\n"),
			[]string{
				"GIT_AUTHOR_NAME=" + author[0], "GIT_AUTHOR_EMAIL=" + author[1], "GIT_AUTHOR_DATE=" + author[2],
			}, at)
		if err != nil {
			return "", err
		}
	}
	if files, err := t.resolve(ctx, at+"^{tree}"); err != nil || files == merged {
		return at, err
	}
	return "", errors.New("nothing is landed: a merge commit in the worktree contains changes that a rebase loses: use merge or squash")
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
