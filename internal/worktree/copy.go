package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

const (
	mostCopied      = 200      // files
	mostCopiedBytes = 16 << 20 // of all files together
)

// Copies is the result of [Repository.CopyFiles]. Paths are relative to the project's directory.
type Copies struct {
	Copied  []string
	Skipped []Skipped
}

// Prepare makes a worktree ready for work: it copies files as CopyFiles does, and calls setup unless it
// is nil. It does nothing once it has succeeded.
func (r *Repository) Prepare(
	ctx context.Context, w Worktree, patterns []string, setup func(context.Context) error,
) (done Copies, err error) {
	if g, err := r.find(w); err != nil || g.Prepared {
		return done, err
	}
	if len(patterns) > 0 {
		if done, err = r.CopyFiles(ctx, w, patterns); err != nil {
			return done, err
		}
	}
	if setup != nil {
		if err := setup(ctx); err != nil {
			return done, err
		}
	}
	h, err := r.lock(ctx)
	if err != nil {
		return done, err
	}
	defer h.Close()
	g, err := r.find(w)
	if err != nil || g.dir == "" {
		return done, err
	}
	g.Prepared = true
	return done, g.save()
}

// Skipped is a file that matches a pattern and was not copied.
type Skipped struct{ Path, Reason string }

// CopyFiles copies files that git does not track, such as .env, from the user's tree into a
// worktree. A pattern is that of [path.Match], relative to the project's directory. CopyFiles
// copies regular files with their modes, at most 200 with 16 MB together. It follows no symbolic
// link and overwrites nothing. Land, Status and Losses leave the copies out.
func (r *Repository) CopyFiles(ctx context.Context, w Worktree, patterns []string) (done Copies, err error) {
	h, err := r.lock(ctx)
	if err != nil {
		return done, err
	}
	defer h.Close()
	g, err := r.find(w)
	if err != nil {
		return done, err
	}
	if g.gone {
		return done, fmt.Errorf("%s is gone: create a new worktree", g.top)
	}
	from, err := os.OpenRoot(filepath.Join(r.repo.Top, r.below))
	if err != nil {
		return done, err
	}
	defer from.Close()
	to, err := os.OpenRoot(filepath.Join(g.top, r.below))
	if err != nil {
		return done, err
	}
	defer to.Close()
	tracked, err := h.users().indexed(ctx)
	if err != nil {
		return done, err
	}

	seen := map[string]bool{}
	left := int64(mostCopiedBytes)
	for _, pattern := range patterns {
		names, err := fs.Glob(from.FS(), path.Clean(filepath.ToSlash(pattern)))
		if err != nil {
			return done, fmt.Errorf("the pattern %q: %w", pattern, err)
		}
		for _, name := range names {
			if seen[name] || ctx.Err() != nil {
				continue
			}
			seen[name] = true
			full := path.Join(filepath.ToSlash(r.below), name)
			reason := ""
			switch {
			case git.IsReserved(name):
				reason = "belongs to git"
			case tracked[h.users().fold(full)]:
				reason = "is tracked by git"
			case len(done.Copied) == mostCopied:
				reason = fmt.Sprintf("is more than %d files", mostCopied)
			default:
				// The copy is noted first, so that a landing never has it.
				g.Copied = append(g.Copied, full)
				if err := g.save(); err != nil {
					return done, err
				}
				if reason = copyFile(from, to, filepath.FromSlash(name), &left); reason != "" {
					g.Copied = g.Copied[:len(g.Copied)-1]
				}
			}
			if reason == "" {
				done.Copied = append(done.Copied, name)
			} else {
				done.Skipped = append(done.Skipped, Skipped{Path: name, Reason: reason})
			}
		}
	}
	return done, errors.Join(g.save(), ctx.Err())
}

// copyFile returns why it does not copy a file, or "".
func copyFile(from, to *os.Root, name string, left *int64) string {
	for dir := name; dir != "."; dir = filepath.Dir(dir) {
		info, err := from.Lstat(dir)
		switch {
		case err != nil:
			return err.Error()
		case info.Mode().Type() == fs.ModeSymlink:
			return "is or is behind a symbolic link"
		case dir != name && info.IsDir():
		case !info.Mode().IsRegular():
			return "is no regular file"
		case info.Size() > *left:
			return fmt.Sprintf("is more than %d MB with the files before it", mostCopiedBytes>>20)
		}
		if into, err := to.Lstat(dir); err == nil && (dir == name || !into.IsDir()) {
			return "exists in the worktree"
		}
	}
	in, err := from.OpenFile(name, os.O_RDONLY|project.NonBlocking, 0)
	if err != nil {
		return err.Error()
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "is no regular file"
	}
	if err := to.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err.Error()
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err.Error()
	}
	n, err := io.Copy(out, io.LimitReader(in, *left))
	*left -= n
	if err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close()); err != nil {
		return errors.Join(err, to.Remove(name)).Error()
	}
	return ""
}
