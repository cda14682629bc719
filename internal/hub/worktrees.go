package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
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
	// Config returns how worktrees are used and prepared; nil means that clients choose. waits reports
	// that a file configures more, and is not trusted.
	Config func(restricted bool) (w config.Worktrees, waits bool)
}

// Worktrees are the git worktrees of a project; see [worktree.Repository].
type Worktrees interface {
	Create(ctx context.Context, name, base string) (worktree.Worktree, error)
	List(ctx context.Context) ([]worktree.Worktree, error)
	Prepare(ctx context.Context, w worktree.Worktree, patterns []string, setup func(context.Context) error) (worktree.Copies, error)
	Renew(ctx context.Context, w worktree.Worktree) (bool, error)
	Changes(ctx context.Context, w worktree.Worktree, patch int) (worktree.Changes, error)
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

// configuredWorktrees returns how worktrees are used and prepared.
func (h *Hub) configuredWorktrees(restricted bool) (w config.Worktrees, waits bool) {
	if h.opts.Worktrees == nil || h.opts.Worktrees.Config == nil {
		return config.Worktrees{Use: config.WorktreeNever}, false
	}
	return h.opts.Worktrees.Config(restricted)
}

// wantsWorktree reports whether a new conversation gets a worktree. asked is false if it gets one
// because of the configuration.
func (h *Hub) wantsWorktree(ctx context.Context, spec LaunchSpec) (wants, asked bool, err error) {
	if spec.Worktree != nil {
		return *spec.Worktree, true, nil
	}
	configured, _ := h.configuredWorktrees(clientenv.IsRestricted(ctx))
	if spec.chat || cmp.Or(configured.Use, config.WorktreeNever) == config.WorktreeNever {
		return false, false, nil
	}
	if _, in := h.Worktree(spec.CWD); in {
		return false, false, nil
	}
	if spec.ThreadAlias != "" {
		_, err := h.store.FindThread(ctx, spec.ThreadAlias)
		if !errors.Is(err, store.ErrNotFound) {
			return false, false, err // a conversation that exists
		}
	}
	return true, false, nil
}

// createWorktree creates a worktree for a new conversation that wants one, and sets its working
// directory. undo deletes the worktree again. Without one that only the configuration wants, without is the
// reason.
func (h *Hub) createWorktree(ctx context.Context, spec *LaunchSpec) (undo func(), without string, err error) {
	undo = func() {}
	wants, asked, err := h.wantsWorktree(ctx, *spec)
	if err != nil || !wants {
		return undo, "", err
	}
	if h.opts.Worktrees == nil {
		return undo, "", domain.Errorf(domain.KindWorktree, "this hub makes no worktrees")
	}
	dir, err := git.RealPath(spec.CWD)
	if err != nil {
		return undo, "", err
	}
	below, err := filepath.Rel(h.opts.Root, dir)
	if err != nil || !filepath.IsLocal(below) {
		if !asked {
			return undo, "its directory is not in the project", nil
		}
		return undo, "", domain.Invalid("working_dir", "a directory of the project, for a conversation with a worktree", fmt.Sprintf("%q", spec.CWD))
	}
	of, err := h.opts.Worktrees.Open(ctx, !clientenv.IsRestricted(ctx))
	if err != nil {
		if !asked && errors.Is(err, worktree.ErrNoCommit) {
			return undo, err.Error(), nil
		}
		return undo, "", worktreeError(err)
	}
	w, err := of.Create(ctx, worktreeName(*spec), spec.base)
	if err != nil {
		return undo, "", worktreeError(err)
	}
	undo = func() {
		if _, err := of.Discard(context.WithoutCancel(ctx), w, worktree.DiscardOptions{}); err != nil {
			h.log.Warn("the worktree of a refused prompt was not deleted", "dir", w.Top, "err", err)
		}
	}
	cwd := filepath.Join(w.Dir, below)
	if info, err := os.Stat(cwd); err != nil || !info.IsDir() {
		undo()
		if !asked {
			return func() {}, fmt.Sprintf("%q has no committed files", below), nil
		}
		return undo, "", domain.Invalid("working_dir", "a directory with committed files, for a conversation with a worktree", fmt.Sprintf("%q", below))
	}
	spec.CWD = cwd
	return undo, "", nil
}

// nameWords is how many words of a prompt name a worktree.
const nameWords = 5

// worktreeName returns the title, or the first words of the prompt.
func worktreeName(spec LaunchSpec) string {
	words := strings.Fields(cmp.Or(spec.Title, domain.RequestOf(spec.Prompt)))
	words = words[:min(len(words), nameWords)]
	if spec.Settings.Attempts != "" {
		words = append(words, spec.Agent)
	}
	return strings.Join(words, " ")
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
	w.of, w.Worktree, err = h.openWorktree(ctx, top, !clientenv.IsRestricted(ctx))
	return w, err
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

// startInWorktree makes the worktree ready in which a run is about to start, and returns its
// conversation. A conversation that a trigger has begun gets its worktree here, since a transaction
// begins it.
func (h *Hub) startInWorktree(ctx context.Context, run domain.Run, thread domain.Thread) (domain.Thread, error) {
	if h.opts.Worktrees == nil {
		return thread, nil
	}
	ctx = clientenv.Context(ctx, h.environments.of(run.ID))
	configured, waits := h.configuredWorktrees(run.Restricted)
	if run.Source == domain.SourceTrigger && run.Parent == 0 && thread.CWD == h.opts.Root {
		var err error
		if thread, err = h.createForTrigger(ctx, run, thread); err != nil {
			return thread, err
		}
	}
	top, found := h.Worktree(thread.CWD)
	if !found {
		return thread, nil
	}
	prepared, of := false, h.prepared.of(top)
	select {
	case prepared = <-of:
	case <-ctx.Done():
		return thread, ctx.Err()
	}
	defer func() { of <- prepared }()
	renews := configured.Use == config.WorktreeRun && run.Parent != 0
	if prepared && !renews {
		return thread, nil
	}
	repository, w, err := h.openWorktree(ctx, top, !run.Restricted)
	if err != nil {
		return thread, err
	}
	if renews {
		if renewed, err := repository.Renew(ctx, w); err != nil {
			h.sayInWorktree(run, fmt.Sprintf("The worktree stays as it is: %v.", err))
		} else if renewed {
			h.sayInWorktree(run, "All work in the worktree is landed: it is at the commit of "+w.Into+" now.")
		}
	}
	if !prepared {
		err = h.prepareWorktree(ctx, run, repository, w, configured, waits)
		prepared = err == nil
	}
	return thread, err
}

func (h *Hub) createForTrigger(ctx context.Context, run domain.Run, thread domain.Thread) (domain.Thread, error) {
	spec := LaunchSpec{CWD: thread.CWD, Title: run.Title, Prompt: run.Prompt}
	undo, without, err := h.createWorktree(ctx, &spec)
	if err != nil || spec.CWD == thread.CWD {
		if without != "" {
			h.sayInWorktree(run, noWorktree(without))
		}
		return thread, err
	}
	err = h.write(ctx, func(t store.Tx) error {
		now, err := t.Thread(ctx, thread.ID)
		if err != nil {
			return err
		}
		now.CWD = spec.CWD
		thread = now
		return t.UpdateThread(now)
	})
	if err != nil {
		undo()
	}
	return thread, err
}

func noWorktree(reason string) string { return "This conversation has no worktree: " + reason + "." }

// prepareWorktree copies the configured files into a worktree and runs the setup command, unless that
// was done.
func (h *Hub) prepareWorktree(ctx context.Context, run domain.Run, of Worktrees, w worktree.Worktree, configured config.Worktrees, waits bool) error {
	var setup func(context.Context) error
	if configured.Setup != nil {
		setup = func(ctx context.Context) error {
			h.sayInWorktree(run, "The setup of the worktree begins: "+commandText(configured.Setup))
			return h.runInWorktree(ctx, configured.Setup, w.Dir, configured.Timeout)
		}
	}
	copies, err := of.Prepare(ctx, w, configured.Copy, setup)
	for _, s := range copies.Skipped {
		h.sayInWorktree(run, fmt.Sprintf("Not copied into the worktree: %s %s.", s.Path, s.Reason))
	}
	if waits && err == nil {
		h.sayInWorktree(run, "The project's file configures worktrees, and has no effect until you trust it: duet-rpc trust.")
	}
	var failed *commandError
	if errors.As(err, &failed) {
		return domain.Errorf(domain.KindWorktree, "the setup of the worktree failed: %v", failed)
	}
	if err != nil {
		return worktreeError(err)
	}
	return nil
}

// commandText returns a command for display.
func commandText(argv []string) string {
	if len(argv) == 3 && argv[0] == "sh" && argv[1] == "-c" {
		return argv[2]
	}
	return strings.Join(argv, " ")
}

// A commandError is the failure of a command that was configured for worktrees.
type commandError struct{ command, reason, output string }

func (e *commandError) Error() string {
	text := fmt.Sprintf("%s: %s", e.command, e.reason)
	if e.output != "" {
		text += "\n" + e.output
	}
	return text
}

// shownOutput limits the output of a failed command in an error, in bytes.
const shownOutput = 2 << 10

// runInWorktree runs a configured command. A failure of the command is a *commandError.
func (h *Hub) runInWorktree(ctx context.Context, argv []string, dir string, timeout time.Duration) error {
	env := map[string]string{"DUET_PROJECT": h.opts.Root, "DUET_WORKTREE": dir}
	ran, err := h.commands.Run(ctx, usercommand.Command{
		Argv: argv, Directory: dir, Env: clientenv.From(ctx).ForCommand(h.opts.Getenv, env), Timeout: timeout, Keep: shownOutput,
	})
	failed := &commandError{command: commandText(argv), output: strings.TrimSpace(ran.Output.Text())}
	var start *usercommand.StartError
	switch {
	case errors.As(err, &start):
		failed.reason = start.Error()
	case err != nil:
		return err
	case ran.TimedOut:
		failed.reason = fmt.Sprintf("it took longer than %s", timeout)
	case ran.Signal != "":
		failed.reason = "ended by " + ran.Signal
	case ran.ExitCode != 0:
		failed.reason = fmt.Sprintf("exit status %d", ran.ExitCode)
	default:
		return nil
	}
	return failed
}

// sayInWorktree tells the readers of a conversation about its worktree, before a run.
func (h *Hub) sayInWorktree(run domain.Run, text string) {
	err := h.write(h.ctx, func(t store.Tx) error { return h.conversation.Note(t, run, conversation.NoteWorktree, text) })
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("a note about a worktree was not stored", "text", text, "err", err)
	}
}

// dropUnusedWorktrees deletes the worktrees that no conversation uses: a hub that was killed may have
// created them. One with work stays. It is called before the first conversation begins, and does its work
// in the background.
func (h *Hub) dropUnusedWorktrees() {
	if h.opts.Worktrees == nil {
		return
	}
	entries, _ := os.ReadDir(h.opts.Worktrees.Parent) // none if it does not exist
	unused := make(map[string]bool)
	for _, e := range entries {
		unused[e.Name()] = !strings.HasPrefix(e.Name(), ".")
	}
	if len(unused) == 0 {
		return
	}
	h.active.Go(func() {
		err := h.everyLeaf(h.ctx, func(s domain.Session) {
			if top, found := h.Worktree(s.Thread.CWD); found {
				unused[filepath.Base(top)] = false
			}
		})
		if err != nil || !slices.Contains(slices.Collect(maps.Values(unused)), true) {
			return
		}
		of, err := h.opts.Worktrees.Open(h.ctx, true)
		if err != nil {
			return
		}
		list, _ := of.List(h.ctx)
		for _, w := range list {
			if unused[w.Name] {
				_, err := of.Discard(h.ctx, w, worktree.DiscardOptions{})
				h.log.Info("a worktree without a conversation was deleted, unless it has work", "dir", w.Top, "err", err)
			}
		}
	})
}

// openWorktree returns the worktree with a top.
func (h *Hub) openWorktree(ctx context.Context, top string, trusts bool) (of Worktrees, w worktree.Worktree, err error) {
	if of, err = h.opts.Worktrees.Open(ctx, trusts); err != nil {
		return of, w, worktreeError(err)
	}
	list, err := of.List(ctx)
	if err != nil {
		return of, w, worktreeError(err)
	}
	i := slices.IndexFunc(list, func(one worktree.Worktree) bool { return one.Top == top })
	if i < 0 {
		return of, w, domain.Errorf(domain.KindNoWorktree, "the worktree is gone (%s)", top)
	}
	return of, list[i], nil
}

// preparedWorktrees remembers which worktrees are prepared. Its methods may be called from any goroutine.
type preparedWorktrees struct {
	mu    sync.Mutex
	byTop map[string]chan bool
}

// of returns a channel with whether a worktree is prepared. The receiver sends the value back when it
// has prepared the worktree.
func (p *preparedWorktrees) of(top string) chan bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byTop == nil {
		p.byTop = make(map[string]chan bool)
	}
	if p.byTop[top] == nil {
		p.byTop[top] = make(chan bool, 1)
		p.byTop[top] <- false
	}
	return p.byTop[top]
}

// forget is called when a worktree is deleted: another one may get its path.
func (p *preparedWorktrees) forget(top string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byTop, top)
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
		return h.conversation.Note(t, last, conversation.NoteWorktree, text)
	})
}

// A DiscardedWorktree is the result of [Hub.DiscardWorktree].
type DiscardedWorktree struct {
	worktree.Discarded
	CleanupError string // of the configured command; ""
}

// DiscardWorktree deletes the worktree of a conversation, and its branch. Without force, the error is
// a *domain.Error of KindLosses with a *[worktree.LossError] if work would be lost. With force that
// work is kept in a ref first.
func (h *Hub) DiscardWorktree(ctx context.Context, id string, force bool) (DiscardedWorktree, error) {
	w, err := h.findWorktree(ctx, id)
	if err != nil {
		return DiscardedWorktree{}, err
	}
	done, err := h.discard(ctx, w, force)
	if err != nil {
		return done, worktreeError(err)
	}
	text := fmt.Sprintf("The worktree of %s was discarded.", w.Branch)
	if done.CleanupError != "" {
		text += " Its cleanup failed: " + done.CleanupError
	}
	if done.Ref != "" {
		text += fmt.Sprintf(" Its work is kept: git branch NAME %s brings it back.", done.Ref)
	}
	return done, h.noteWorktree(ctx, w.run.Thread.ID, text)
}

// discard deletes a worktree, with the checkpoints of its directories.
func (h *Hub) discard(ctx context.Context, w worktreeOf, force bool) (done DiscardedWorktree, err error) {
	if !force {
		losses, err := w.of.Losses(ctx, w.Worktree)
		if err != nil {
			return done, err
		}
		if losses.Any() {
			return done, &worktree.LossError{Losses: losses}
		}
	}
	top, _ := h.Worktree(w.run.Thread.CWD)
	threads, err := h.threadsIn(ctx, top)
	if err != nil {
		return done, err
	}
	for _, thread := range append(threads, w.run.Thread) { // the conversation may be deleted already
		h.checkpoints.forget(ctx, thread.CWD)
	}
	opts := worktree.DiscardOptions{Force: force}
	configured, _ := h.configuredWorktrees(clientenv.IsRestricted(ctx))
	if _, err := os.Stat(w.Dir); err == nil && configured.Cleanup != nil {
		opts.Cleanup = func(ctx context.Context) {
			if err := h.runInWorktree(ctx, configured.Cleanup, w.Dir, configured.Timeout); err != nil {
				done.CleanupError = err.Error()
				h.log.Warn("the cleanup of a worktree failed", "dir", w.Top, "err", err)
			}
		}
	}
	done.Discarded, err = w.of.Discard(ctx, w.Worktree, opts)
	if err == nil {
		h.prepared.forget(top)
	}
	return done, err
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
	err = h.everyLeaf(ctx, func(s domain.Session) {
		if other, _ := h.Worktree(s.Thread.CWD); other == top {
			list = append(list, s.Thread)
		}
	})
	return list, err
}

// everyLeaf calls a function with the last run of each conversation.
func (h *Hub) everyLeaf(ctx context.Context, call func(domain.Session)) error {
	for f := (domain.RunFilter{Leaves: true}); ; {
		sessions, err := h.store.Sessions(ctx, f)
		if err != nil || len(sessions) == 0 {
			return stored(err)
		}
		for _, s := range sessions {
			call(s)
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
