package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/git"
)

// Losses is what [Repository.Discard] would delete for good without Force. Paths are relative
// to the top of the worktree.
type Losses struct {
	Commits     Listing // that no other branch, tag or remote branch has, and that are not landed
	Uncommitted Listing
	Untracked   Listing
	Nested      Listing // repositories in the worktree, and submodules with work; Force does not keep them
	Ignored     Listing // files and directories that git ignores; they are deleted without Force, too
}

// Any reports whether Discard needs Force.
func (l Losses) Any() bool {
	return l.Commits.Count+l.Uncommitted.Count+l.Untracked.Count+l.Nested.Count > 0
}

// A LossError reports that nothing was discarded, because work would be lost.
type LossError struct{ Losses Losses }

func (e *LossError) Error() string {
	l := e.Losses
	return fmt.Sprintf("nothing is discarded: %d commits, %d changed files, %d new files and %d nested repositories would be lost: land "+
		"them, or discard with force",
		l.Commits.Count, l.Uncommitted.Count, l.Untracked.Count, l.Nested.Count)
}

// DiscardOptions says what [Repository.Discard] may delete.
type DiscardOptions struct {
	Force   bool   // keep what would be lost in a ref, and delete the worktree
	Session string // the UUID of its session, whose refs for another machine (host.go) are deleted; "": none
	// Cleanup, unless nil, is called before the worktree is deleted, and after its work is kept.
	Cleanup func(context.Context)
}

// Discarded is the result of [Repository.Discard].
type Discarded struct {
	// Ref keeps a commit with what would have been lost, or is "". git branch NAME REF brings it
	// back, and git update-ref -d REF lets git gc drop it.
	Ref        string
	BranchKept bool // another working tree has the branch checked out
}

// Losses says what a Discard without Force would delete for good.
func (r *Repository) Losses(ctx context.Context, w Worktree) (Losses, error) {
	h, err := r.lock(ctx)
	if err != nil {
		return Losses{}, err
	}
	defer h.Close()
	g, err := r.find(w)
	if err != nil || g.Discarding {
		return Losses{}, err
	}
	head, err := h.head(ctx, g)
	if err != nil && !errors.Is(err, ErrGone) {
		return Losses{}, err
	}
	return h.losses(ctx, g, head)
}

// losses takes head "" for a worktree without a commit.
func (h *held) losses(ctx context.Context, g registration, head string) (l Losses, err error) {
	if !g.gone {
		t := h.tree(g.dir, g.top)
		d, err := t.files(ctx, g.Copied)
		if err != nil {
			return l, err
		}
		l.Uncommitted.add(d.changed...)
		l.Untracked.add(d.untracked...)
		below, err := t.submodules(ctx)
		if err != nil {
			return l, err
		}
		l.Nested.add(append(d.nested, below...)...)
		ignored, err := t.records(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
		if err != nil {
			return l, err
		}
		l.Ignored.add(ignored...)
		for _, path := range g.Copied {
			if !slices.Contains(ignored, path) {
				l.Ignored.add(path)
			}
		}
	}
	if head == "" {
		return l, nil
	}
	users := h.users()
	selected := []string{"--single-worktree", head}
	branch, err := users.resolve(ctx, "refs/heads/"+g.Branch+"^{commit}")
	if err != nil {
		return l, err
	}
	if branch != "" && branch != head {
		selected = append(selected, branch)
	}
	all, _, err := h.registrations()
	if err != nil {
		return l, err
	}
	others := slices.DeleteFunc(all, func(other registration) bool { return other.dir == g.dir })
	selected = append(selected, "--not", "--glob="+fromPrefix+"*") // the machine that has sent them has them
	isCheckedOut, err := h.isCheckedOut(ctx, g.Branch, others)
	if err != nil {
		return l, err
	}
	if !isCheckedOut {
		selected = append(selected, "--exclude=refs/heads/"+g.Branch)
	}
	selected = append(selected, "--exclude=refs/stash", "--exclude=refs/duet/*", "--all")
	if g.Into != "" {
		into, err := users.resolve(ctx, "refs/heads/"+g.Into+"^{commit}")
		if err != nil {
			return l, err
		}
		if into != "" {
			if is, err := users.isLanded(ctx, g, head, into); err != nil {
				return l, err
			} else if is {
				selected = append(selected, head)
			} else if last, err := users.landed(ctx, g, head, into, into); err != nil {
				return l, err
			} else if last != "" {
				selected = append(selected, last)
			}
		}
	}
	l.Commits, err = users.commits(ctx, selected...)
	return l, err
}

// Discard deletes the directory, the registration and the branch of a worktree. If commits or
// files would be lost, it returns a [LossError] and deletes nothing; with opts.Force it keeps
// them below refs/duet/discarded/ first. A worktree that is locked with git worktree lock is not
// discarded. A call that was killed is finished by the next one.
func (r *Repository) Discard(ctx context.Context, w Worktree, opts DiscardOptions) (done Discarded, err error) {
	if opts.Cleanup != nil {
		if done.Ref, err = r.keepBeforeCleanup(ctx, w, opts); err != nil {
			return done, err
		}
		opts.Cleanup(ctx)
	}
	h, err := r.lock(ctx)
	if err != nil {
		return done, err
	}
	defer h.Close()
	g, err := r.find(w)
	if err != nil {
		return done, err
	}
	users := h.users()
	branch, err := users.resolve(ctx, "refs/heads/"+w.Branch+"^{commit}")
	if err != nil {
		return done, err
	}
	if !g.Discarding {
		ref, err := h.keepLosses(ctx, g, branch, opts)
		if err != nil {
			return done, err
		}
		done.Ref = cmp.Or(done.Ref, ref)
		if g.dir != "" {
			g.Discarding = true
			if err := g.save(); err != nil {
				return done, err
			}
		}
	}
	if err := h.remove(ctx, g.Worktree, branch); err != nil {
		return done, err
	}
	kept, err := users.resolve(ctx, "refs/heads/"+w.Branch)
	done.BranchKept = kept != ""
	if err != nil || opts.Session == "" {
		return done, err
	}
	for _, prefix := range []string{fromPrefix, savedPrefix} {
		if at, err := users.resolve(ctx, prefix+opts.Session); err != nil || at == "" {
			continue // they cost little
		}
		if err := users.updateRef(ctx, "-d", prefix+opts.Session); err != nil {
			return done, err
		}
	}
	return done, nil
}

func (r *Repository) keepBeforeCleanup(ctx context.Context, w Worktree, opts DiscardOptions) (string, error) {
	h, err := r.lock(ctx)
	if err != nil {
		return "", err
	}
	defer h.Close()
	g, err := r.find(w)
	if err != nil || g.Discarding {
		return "", err
	}
	branch, err := h.users().resolve(ctx, "refs/heads/"+w.Branch+"^{commit}")
	if err != nil {
		return "", err
	}
	return h.keepLosses(ctx, g, branch, opts)
}

// keepLosses keeps what a discard would lose in a ref, or returns why the worktree is not discarded.
func (h *held) keepLosses(
	ctx context.Context, g registration, branch string, opts DiscardOptions,
) (ref string, err error) {
	if g.locked {
		return "", fmt.Errorf("%s is locked: run git worktree unlock first", g.top)
	}
	if isThere, err := git.Exists(g.top); err != nil {
		return "", err
	} else if isThere && g.gone {
		return "", fmt.Errorf("%s is no longer a worktree of %s: git worktree repair may restore its link; otherwise remove it by hand", g.top,
			h.repo.Top)
	}
	head, err := h.head(ctx, g)
	if err != nil && !errors.Is(err, ErrGone) {
		return "", err
	}
	losses, err := h.losses(ctx, g, head)
	if err != nil || !losses.Any() {
		return "", err
	}
	if !opts.Force {
		return "", &LossError{Losses: losses}
	}
	return h.keep(ctx, g, head, branch)
}

// keep writes a commit of the worktree's files and commits, and a ref. A ref that a killed call has
// written is used again.
func (h *held) keep(ctx context.Context, g registration, head, branch string) (string, error) {
	users := h.users()
	commit := head
	var parents []string
	for _, p := range []string{head, branch} {
		if p != "" && !slices.Contains(parents, p) {
			parents = append(parents, p)
		}
	}
	if !g.gone {
		t := h.tree(g.dir, g.top)
		d, err := t.files(ctx, g.Copied)
		if err != nil {
			return "", err
		}
		index := h.move(g.dir, g.top).work()
		defer os.Remove(index)
		files, err := t.snapshot(ctx, index, d.paths())
		if err != nil {
			return "", err
		}
		before := ""
		if head != "" {
			if before, err = t.resolve(ctx, head+"^{tree}"); err != nil {
				return "", err
			}
		}
		if files != before {
			commit = ""
		}
		if commit == "" || len(parents) > 1 {
			if commit, err = users.commit(ctx, files, "Discarded files of "+g.Branch, ours, parents...); err != nil {
				return "", err
			}
		}
	} else if len(parents) > 1 {
		var err error
		if commit, err = users.commit(ctx, head+"^{tree}", "Discarded commits of "+g.Branch, ours, parents...); err != nil {
			return "", err
		}
	}
	for n := 1; ; n++ {
		ref := discardedPrefix + g.Name
		if n > 1 {
			ref = fmt.Sprintf("%s-%d", ref, n)
		}
		old, err := users.resolve(ctx, ref+"^{commit}")
		if err != nil {
			return "", err
		}
		if old == "" {
			return ref, users.updateRef(ctx, ref, commit, strings.Repeat("0", len(commit)))
		}
		same, err := users.isSame(ctx, old, commit)
		if err != nil {
			return "", err
		}
		if same {
			return ref, h.repo.Sync() // a killed call may not have
		}
	}
}

// isSame reports whether two commits have the same files and parents.
func (t tree) isSame(ctx context.Context, one, other string) (bool, error) {
	out, err := t.run(ctx, "log", "--no-walk=unsorted", "--no-show-signature", "--format=%T %P", one, other)
	a, b, _ := strings.Cut(out, "\n")
	return one == other || err == nil && a == b, err
}
