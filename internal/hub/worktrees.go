package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// A conversation has a worktree if its working directory is below [WorktreeOptions.Parent]. Nothing
// else is stored: git knows the worktrees.

// WorktreeOptions say where conversations get git worktrees.
type WorktreeOptions struct {
	// Parent is the directory with the worktrees, absolute and free of links.
	Parent string
	// Open returns the project's repository. trusts is false for a client that does not trust the
	// workspace.
	Open func(ctx context.Context, trusts bool) (Worktrees, error)
}

// Worktrees are the git worktrees of a project; see [worktree.Repository].
type Worktrees interface {
	Create(ctx context.Context, name, base string) (worktree.Worktree, error)
	List(ctx context.Context) ([]worktree.Worktree, error)
	Land(ctx context.Context, w worktree.Worktree, opts worktree.LandOptions) (worktree.Landed, error)
	Losses(ctx context.Context, w worktree.Worktree) (worktree.Losses, error)
	Discard(ctx context.Context, w worktree.Worktree, opts worktree.DiscardOptions) (worktree.Discarded, error)
}

// Worktree returns the top of the worktree that a directory or file is in. The worktree may be gone.
func (h *Hub) Worktree(path string) (top string, found bool) {
	if h.opts.Worktrees == nil {
		return "", false
	}
	return worktree.Containing(h.opts.Worktrees.Parent, path)
}

// rootOf returns the directory that limits a conversation which works in dir: the top of its
// worktree, or the project's root.
func (h *Hub) rootOf(dir string) string {
	top, _ := h.Worktree(dir)
	return cmp.Or(top, h.opts.Root)
}

// projectIn returns the project's directory in the worktree that a directory is in, or "".
func (h *Hub) projectIn(dir string) string {
	top, found := h.Worktree(dir)
	if !found {
		return ""
	}
	if repository, found := git.Find(h.opts.Root); found {
		if below, err := filepath.Rel(repository.Top, h.opts.Root); err == nil && filepath.IsLocal(below) {
			return filepath.Join(top, below)
		}
	}
	return top
}

// linkIntoWorktree makes links to files of the project links to the same files in the worktree that a
// directory is in. Without it an agent edits the user's files that a prompt mentions.
func (h *Hub) linkIntoWorktree(dir string, blocks []catalog.ContentBlock) {
	project := h.projectIn(dir)
	if project == "" {
		return
	}
	follow := func(link *string) {
		uri, err := url.Parse(*link)
		if err != nil || uri.Scheme != "file" {
			return
		}
		path := uri.Path
		if filepath.Separator == '\\' {
			path = strings.TrimPrefix(path, "/") // of /C:/
		}
		below, err := filepath.Rel(h.opts.Root, filepath.FromSlash(path))
		if err != nil || !filepath.IsLocal(below) {
			return
		}
		there := filepath.Join(project, below)
		if _, err := os.Lstat(there); err != nil {
			return // git does not track it
		}
		uri.Path, uri.RawPath = filepath.ToSlash(there), ""
		if !strings.HasPrefix(uri.Path, "/") {
			uri.Path = "/" + uri.Path
		}
		*link = uri.String()
	}
	for i := range blocks {
		follow(&blocks[i].URI)
		if blocks[i].Resource != nil {
			follow(&blocks[i].Resource.URI)
		}
	}
}

// checkWorktree returns an error if the conversation had a worktree that is gone.
func (h *Hub) checkWorktree(t store.Tx, thread domain.Thread) error {
	if !h.lostWorktree(thread) {
		return nil
	}
	last, err := t.LastRun(h.ctx, thread.ID)
	if err != nil {
		return err
	}
	return domain.Errorf(domain.KindNoWorktree, "the worktree of this conversation is gone (%s): `duet-rpc session fork %s TEXT` continues it in the project's directory", h.rootOf(thread.CWD), domain.TaskName(last.Task))
}

// lostWorktree reports whether the conversation had a worktree that is gone.
func (h *Hub) lostWorktree(thread domain.Thread) bool {
	top, found := h.Worktree(thread.CWD)
	if !found {
		return false
	}
	_, err := os.Lstat(top)
	return errors.Is(err, os.ErrNotExist)
}

// createWorktree creates a worktree for a new conversation and sets its working directory. undo
// deletes the worktree again.
func (h *Hub) createWorktree(ctx context.Context, spec *LaunchSpec) (undo func(), err error) {
	if h.opts.Worktrees == nil {
		return nil, domain.Errorf(domain.KindWorktree, "this hub makes no worktrees")
	}
	dir, err := git.RealPath(spec.CWD)
	if err != nil {
		return nil, err
	}
	below, err := filepath.Rel(h.opts.Root, dir)
	if err != nil || !filepath.IsLocal(below) {
		return nil, domain.Invalid("working_dir", "a directory of the project, for a conversation with a worktree", fmt.Sprintf("%q", spec.CWD))
	}
	of, err := h.opts.Worktrees.Open(ctx, !clientenv.IsRestricted(ctx))
	if err != nil {
		return nil, worktreeError(err)
	}
	w, err := of.Create(ctx, worktreeName(*spec), "")
	if err != nil {
		return nil, worktreeError(err)
	}
	undo = func() {
		if _, err := of.Discard(context.WithoutCancel(ctx), w, worktree.DiscardOptions{}); err != nil {
			h.log.Warn("the worktree of a refused prompt was not deleted", "dir", w.Top, "err", err)
		}
	}
	spec.CWD = filepath.Join(w.Dir, below)
	if info, err := os.Stat(spec.CWD); err != nil || !info.IsDir() {
		undo()
		return nil, domain.Invalid("working_dir", "a directory with committed files, for a conversation with a worktree", fmt.Sprintf("%q", below))
	}
	return undo, nil
}

// nameWords is how many words of a prompt name a worktree.
const nameWords = 5

// worktreeName returns the title, or the first words of the prompt.
func worktreeName(spec LaunchSpec) string {
	words := strings.Fields(cmp.Or(spec.Title, domain.RequestOf(spec.Prompt)))
	return strings.Join(words[:min(len(words), nameWords)], " ")
}

// A worktreeOf is a worktree and one of its conversations.
type worktreeOf struct {
	worktree.Worktree
	of  Worktrees
	run domain.Session
}

// findWorktree returns the worktree of the conversation with a run. No conversation may work in it.
func (h *Hub) findWorktree(ctx context.Context, id string) (w worktreeOf, err error) {
	run, err := query.Find(ctx, h.store, id)
	if err == nil {
		w.run, err = h.query.ByRun(ctx, run.ID)
	}
	if err != nil {
		return w, stored(err)
	}
	top, found := h.Worktree(w.run.Thread.CWD)
	if !found {
		return w, domain.Errorf(domain.KindNoWorktree, "%s has no worktree: its agent works in %s", domain.TaskName(run.Task), w.run.Thread.CWD)
	}
	if err := h.checkIdle(ctx, top); err != nil {
		return w, err
	}
	if w.of, err = h.opts.Worktrees.Open(ctx, !clientenv.IsRestricted(ctx)); err != nil {
		return w, worktreeError(err)
	}
	list, err := w.of.List(ctx)
	if err != nil {
		return w, worktreeError(err)
	}
	i := slices.IndexFunc(list, func(one worktree.Worktree) bool { return one.Top == top })
	if i < 0 {
		return w, domain.Errorf(domain.KindNoWorktree, "the worktree of %s is gone (%s)", domain.TaskName(run.Task), top)
	}
	w.Worktree = list[i]
	return w, nil
}

// checkIdle returns an error if a conversation works in a worktree, or waits to.
func (h *Hub) checkIdle(ctx context.Context, top string) error {
	runs, err := h.store.RunsIn(ctx, domain.Queued, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting)
	if err != nil {
		return stored(err)
	}
	for _, run := range runs {
		thread, err := h.store.Thread(ctx, run.Thread)
		if err != nil {
			return stored(err)
		}
		if other, _ := h.Worktree(thread.CWD); other == top {
			return domain.Errorf(domain.KindBadState, "%s is %s and works in the worktree: wait for its end or interrupt it", domain.TaskName(run.Task), run.State.Words())
		}
	}
	return nil
}

// LandSpec says how the worktree of a conversation is landed.
type LandSpec struct {
	Run     string // any id of the conversation
	Into    string // the branch; "": the one that was checked out when the worktree was made
	Method  worktree.Method
	Message string // of the commit; "": a plain one
}

// Land brings the changes in the worktree of a conversation to a branch. It changes nothing if it fails.
//
// The error is a *domain.Error: KindBadState while a conversation works in the worktree or another
// git operation is in progress, KindNoWorktree, KindConflict and KindOverlap with the paths in
// Paths, or KindWorktree.
func (h *Hub) Land(ctx context.Context, spec LandSpec) (worktree.Landed, error) {
	w, err := h.findWorktree(ctx, spec.Run)
	if err != nil {
		return worktree.Landed{}, err
	}
	if cmp.Or(spec.Into, w.Into) == "" && spec.Method != worktree.Patch {
		return worktree.Landed{}, domain.Invalid("into", "the branch to land on, since none was checked out when the worktree was made", "none")
	}
	landed, err := w.of.Land(ctx, w.Worktree, worktree.LandOptions{Method: spec.Method, Message: spec.Message, Into: spec.Into})
	if err != nil {
		return landed, worktreeError(err)
	}
	if len(landed.Files)+len(landed.Commits) == 0 {
		return landed, nil
	}
	text := fmt.Sprintf("Landed %s on %s: %s, %s.", w.Branch, landed.Into, counted(len(landed.Commits), "commit"), counted(len(landed.Files), "file"))
	if spec.Method == worktree.Patch {
		text = fmt.Sprintf("Landed %s without a commit: %s changed in %s.", w.Branch, counted(len(landed.Files), "file"), h.opts.Root)
	}
	return landed, h.noteWorktree(ctx, w.run.Thread.ID, text)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// noteWorktree says in the conversation what was done with its worktree.
func (h *Hub) noteWorktree(ctx context.Context, thread int64, text string) error {
	return h.write(ctx, func(t store.Tx) error {
		last, err := t.LastRun(ctx, thread)
		if err != nil {
			return err
		}
		return h.conversation.Worktree(t, last, text)
	})
}

// DiscardWorktree deletes the worktree of a conversation, and its branch. Without force, the error is
// a *domain.Error of KindLosses with a *[worktree.LossError] if work would be lost. With force that
// work is kept in a ref first.
func (h *Hub) DiscardWorktree(ctx context.Context, id string, force bool) (worktree.Discarded, error) {
	w, err := h.findWorktree(ctx, id)
	if err != nil {
		return worktree.Discarded{}, err
	}
	done, err := h.discard(ctx, w, force)
	if err != nil {
		return done, worktreeError(err)
	}
	text := fmt.Sprintf("The worktree of %s was discarded.", w.Branch)
	if done.Ref != "" {
		text += fmt.Sprintf(" Its work is kept: git branch NAME %s brings it back.", done.Ref)
	}
	return done, h.noteWorktree(ctx, w.run.Thread.ID, text)
}

// discard deletes a worktree, with the checkpoints of its directories.
func (h *Hub) discard(ctx context.Context, w worktreeOf, force bool) (worktree.Discarded, error) {
	if !force {
		losses, err := w.of.Losses(ctx, w.Worktree)
		if err != nil {
			return worktree.Discarded{}, err
		}
		if losses.Any() {
			return worktree.Discarded{}, &worktree.LossError{Losses: losses}
		}
	}
	top, _ := h.Worktree(w.run.Thread.CWD)
	threads, err := h.threadsIn(ctx, top)
	if err != nil {
		return worktree.Discarded{}, err
	}
	for _, thread := range append(threads, w.run.Thread) { // the conversation may be deleted already
		h.checkpoints.forget(ctx, thread.CWD)
	}
	return w.of.Discard(ctx, w.Worktree, worktree.DiscardOptions{Force: force})
}

// A removedWorktree is the worktree of a conversation that is deleted.
type removedWorktree struct {
	top string // "": there is none
	worktreeOf
}

// worktreeToRemove returns the worktree that is deleted with a conversation. Its error is of
// KindLosses if work would be lost. A worktree that another conversation uses, or that git cannot
// open, has no name; it stays.
func (h *Hub) worktreeToRemove(ctx context.Context, id string) (r removedWorktree, err error) {
	n, err := h.store.FindThread(ctx, id)
	if err != nil || h.opts.Worktrees == nil {
		return r, nil // removalConversation reports an unknown id
	}
	thread, err := h.store.Thread(ctx, n)
	if err != nil {
		return r, stored(err)
	}
	top, found := h.Worktree(thread.CWD)
	if !found || h.lostWorktree(thread) {
		return r, nil
	}
	r.top = top
	threads, err := h.threadsIn(ctx, top)
	if err != nil || slices.ContainsFunc(threads, func(other domain.Thread) bool { return other.ID != thread.ID }) {
		return r, err
	}
	var losses worktree.Losses
	if r.worktreeOf, err = h.findWorktree(ctx, id); err == nil {
		losses, err = r.of.Losses(ctx, r.Worktree)
	}
	task := domain.TaskName(r.run.Task)
	var known *domain.Error
	switch {
	case errors.As(err, &known) && known.Kind == domain.KindBadState:
		return r, err
	case err != nil:
		h.log.Warn("the worktree of a deleted conversation stays", "dir", top, "err", err)
		r.Name = ""
	case losses.Any():
		return r, &domain.Error{Kind: domain.KindLosses, Err: &worktree.LossError{Losses: losses}, Message: fmt.Sprintf(
			"%s has work that is not landed: run `duet-rpc land %s` or `duet-rpc discard %s` first", r.Branch, task, task)}
	}
	return r, nil
}

// removeWorktree deletes the worktree of a deleted conversation unless work would be lost, and reports
// whether it is gone.
func (h *Hub) removeWorktree(ctx context.Context, r removedWorktree) bool {
	if r.Name == "" {
		return false
	}
	_, err := h.discard(context.WithoutCancel(ctx), r.worktreeOf, false)
	if err != nil {
		h.log.Warn("the worktree of a deleted conversation stays", "dir", r.top, "err", err)
	}
	return err == nil
}

// threadsIn returns the conversations that work in a worktree: a fork shares it.
func (h *Hub) threadsIn(ctx context.Context, top string) (list []domain.Thread, err error) {
	for f := (domain.RunFilter{Leaves: true}); ; {
		sessions, err := h.store.Sessions(ctx, f)
		if err != nil || len(sessions) == 0 {
			return list, stored(err)
		}
		for _, s := range sessions {
			if other, _ := h.Worktree(s.Thread.CWD); other == top {
				list = append(list, s.Thread)
			}
		}
		f.Before = sessions[len(sessions)-1].Run.ID
	}
}

// worktreeError returns an error of package worktree for clients.
func worktreeError(err error) error {
	var conflict *worktree.ConflictError
	var overlap *worktree.OverlapError
	var loss *worktree.LossError
	var busy *worktree.BusyError
	kind := domain.KindWorktree
	switch {
	case errors.As(err, &conflict):
		kind = domain.KindConflict
	case errors.As(err, &overlap):
		kind = domain.KindOverlap
	case errors.As(err, &loss):
		kind = domain.KindLosses
	case errors.As(err, &busy):
		kind = domain.KindBadState
	case errors.Is(err, worktree.ErrGone):
		kind = domain.KindNoWorktree
	case errors.Is(err, context.Canceled):
		return err
	}
	return &domain.Error{Kind: kind, Message: err.Error(), Err: err}
}
