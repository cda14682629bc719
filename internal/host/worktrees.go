package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

func openWorktrees(
	ctx context.Context, p project.Project, trusts bool, log *slog.Logger,
) (*worktree.Repository, error) {
	return worktree.Open(ctx, worktree.Options{
		Dir: p.Root, Parent: project.WorktreesDir(p.StateDir), Trusted: trusts && isTrusted(p), Log: log,
	})
}

// isTrusted reports whether the user has trusted the project's configuration. A project without one
// is not trusted: the configuration of its repository may name programs.
func isTrusted(p project.Project) bool {
	found, err := config.Inspect(p.ConfigFile(), os.Getenv)
	if err != nil {
		return false
	}
	known, err := config.DefaultTrust(os.Getenv)
	if err != nil {
		return false
	}
	trusted, err := found.Trusted(known)
	return trusted && err == nil
}

// RemoveGitState deletes the checkpoints and the git worktrees of a project. If a worktree has work
// that is not landed, it deletes nothing and returns an error. kept is the directory of worktrees
// without a repository, which stay.
func RemoveGitState(ctx context.Context, stateDir string) (kept string, err error) {
	checkpoints := func() error { return checkpoint.RemoveAll(ctx, CheckpointsDir(stateDir)) }
	dir := project.WorktreesDir(stateDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", checkpoints()
	}
	if err == nil && !hasWorktree(entries) {
		return "", errors.Join(checkpoints(), os.RemoveAll(dir))
	}
	record, err := project.Project{StateDir: stateDir}.Record()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(string(record.Root)); errors.Is(err, fs.ErrNotExist) {
		return dir, checkpoints()
	}
	if err := removeWorktrees(ctx, worktree.Options{Dir: string(record.Root), Parent: dir}, checkpoints); err != nil {
		return "", err
	}
	if entries, err = os.ReadDir(dir); err == nil && hasWorktree(entries) { // of another repository
		return dir, nil
	}
	return "", os.RemoveAll(dir)
}

// removeWorktrees calls before when no worktree has work that would be lost.
func removeWorktrees(ctx context.Context, opts worktree.Options, before func() error) error {
	of, err := worktree.Open(ctx, opts)
	if err != nil {
		return &domain.Error{
			Kind: domain.KindWorktree, Message: fmt.Sprintf("%s has git worktrees, and they cannot be checked: %v", opts.Parent, err), Err: err,
		}
	}
	list, err := of.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		losses, err := of.Losses(ctx, w)
		if err != nil {
			return fmt.Errorf("checking the worktree %s: %w", w.Top, err)
		}
		if losses.Any() {
			return &domain.Error{
				Kind: domain.KindLosses, Err: &worktree.LossError{Losses: losses}, Message: fmt.Sprintf(
					"the worktree %s (branch %s) has work that is not landed: use `duet-rpc land` or `duet-rpc discard` first", w.Top, w.Branch),
			}
		}
	}
	if err := before(); err != nil { // git finds the refs of checkpoints by the directory
		return err
	}
	for _, w := range list {
		if _, err := of.Discard(ctx, w, worktree.DiscardOptions{}); err != nil {
			return fmt.Errorf("deleting the worktree %s: %w", w.Top, err)
		}
	}
	return nil
}

// hasWorktree reports whether a directory has more than the package's own files.
func hasWorktree(entries []os.DirEntry) bool {
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			return true
		}
	}
	return false
}
