package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
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
	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// Worktrees are the git worktrees of a project; see [worktree.Repository].
type Worktrees interface {
	Create(ctx context.Context, name, base string, taken ...string) (worktree.Worktree, error)
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
	if h.opts.WorktreesDir == "" {
		return "", false
	}
	return worktree.Containing(h.opts.WorktreesDir, path)
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
func (h *Hub) checkWorktree(t store.Tx, session domain.Session) error {
	if !h.lostWorktree(session) {
		return nil
	}
	last, err := t.LastTurn(h.ctx, session.ID)
	if err != nil {
		return err
	}
	return domain.Errorf(domain.KindNoWorktree, "the worktree of this conversation is gone (%s): `duet-rpc session fork %s TEXT` continues it in the project's directory", h.rootOf(session.CWD), domain.TaskName(last.Task))
}

// lostWorktree reports whether the conversation had a worktree that is gone.
func (h *Hub) lostWorktree(session domain.Session) bool {
	top, found := h.Worktree(session.CWD)
	if !found {
		return false
	}
	_, err := os.Lstat(top)
	return errors.Is(err, os.ErrNotExist)
}

// configuredWorktrees returns how worktrees are used and prepared. waits reports that a file configures
// more, and is not trusted.
func (h *Hub) configuredWorktrees(restricted bool) (w config.Worktrees, waits bool) {
	never := config.Worktrees{Use: config.WorktreeNever}
	if h.opts.WorktreesDir == "" {
		return never, false
	}
	now, err := h.opts.Configuration.Current(restricted)
	if now == nil {
		h.log.Warn("worktrees are not used as configured", "err", err)
		return never, false
	}
	return now.Worktrees, now.WorktreesWait
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
	if spec.SessionAlias != "" {
		_, err := h.store.FindSession(ctx, spec.SessionAlias)
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
	if h.opts.WorktreesDir == "" {
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
	spec.wait()
	of, err := h.opts.Project.OpenWorktrees(ctx, !clientenv.IsRestricted(ctx))
	if err != nil {
		if !asked && errors.Is(err, worktree.ErrNoCommit) {
			return undo, err.Error(), nil
		}
		return undo, "", worktreeError(err)
	}
	used, err := h.usedWorktreeNames(ctx)
	if err != nil {
		return undo, "", err
	}
	w, err := of.Create(ctx, worktreeName(*spec), spec.base, used...)
	if err != nil {
		return undo, "", worktreeError(err)
	}
	undo = func() {
		if _, err := of.Discard(context.WithoutCancel(ctx), w, worktree.DiscardOptions{}); err != nil {
			h.log.Warn("the worktree of a refused prompt was not deleted", "dir", w.Top, "err", err)
		}
	}
	cwd := filepath.Join(w.Dir, below)
	info, err := os.Stat(cwd)
	if durable.Unknown(err) {
		undo()
		return func() {}, "", worktreeError(err)
	}
	if err != nil || !info.IsDir() {
		undo()
		if !asked {
			return func() {}, fmt.Sprintf("%q has no committed files", below), nil
		}
		return undo, "", domain.Invalid("working_dir", "a directory with committed files, for a conversation with a worktree", fmt.Sprintf("%q", below))
	}
	spec.CWD = cwd
	return undo, "", nil
}

// usedWorktreeNames returns the names of the worktrees that conversations have or had. A conversation
// knows its worktree by the directory alone, so no other one may get the name.
func (h *Hub) usedWorktreeNames(ctx context.Context) (names []string, err error) {
	paths, err := h.store.RecentPaths(ctx, math.MaxInt32)
	for _, p := range paths {
		if top, found := h.Worktree(p.Path); found {
			names = append(names, filepath.Base(top))
		}
	}
	return names, stored(err)
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

// startInWorktree makes the worktree ready in which a turn is about to start, and returns its
// conversation. A conversation that a trigger has begun gets its worktree here, since a transaction
// begins it.
func (h *Hub) startInWorktree(ctx context.Context, turn domain.Turn, session domain.Session) (domain.Session, error) {
	if h.opts.WorktreesDir == "" {
		return session, nil
	}
	ctx = clientenv.Context(ctx, h.environments.of(turn.ID))
	configured, waits := h.configuredWorktrees(turn.Restricted)
	if turn.Source == domain.SourceTrigger && turn.Parent == 0 && session.CWD == h.opts.Root {
		var err error
		if session, err = h.createForTrigger(ctx, turn, session); err != nil {
			return session, err
		}
	}
	top, found := h.Worktree(session.CWD)
	if !found {
		return session, nil
	}
	prepared, of := false, h.prepared.of(top)
	select {
	case prepared = <-of:
	default:
		h.sayInWorktree(turn, "Waiting for the worktree: it is being set up, renewed or discarded.")
		select {
		case prepared = <-of:
		case <-ctx.Done():
			return session, ctx.Err()
		}
	}
	defer func() { of <- prepared }()
	renews := configured.Use == config.WorktreeTurn && turn.Parent != 0
	if prepared && !renews {
		return session, nil
	}
	repository, w, err := h.openWorktree(ctx, top, !turn.Restricted)
	if err != nil {
		return session, err
	}
	if renews {
		if renewed, err := repository.Renew(ctx, w); err != nil {
			h.sayInWorktree(turn, fmt.Sprintf("The worktree is unchanged: %v.", err))
		} else if renewed {
			h.sayInWorktree(turn, "All work in the worktree is landed: it is at the commit of "+w.Into+" now.")
		}
	}
	if !prepared {
		err = h.prepareWorktree(ctx, turn, repository, w, configured, waits)
		prepared = err == nil
	}
	return session, err
}

func (h *Hub) createForTrigger(ctx context.Context, turn domain.Turn, session domain.Session) (domain.Session, error) {
	spec := LaunchSpec{CWD: session.CWD, Title: turn.Title, Prompt: turn.Prompt}
	undo, without, err := h.createWorktree(ctx, &spec)
	if err != nil || spec.CWD == session.CWD {
		if without != "" {
			h.sayInWorktree(turn, noWorktree(without))
		}
		return session, err
	}
	err = h.write(ctx, func(t store.Tx) error {
		now, err := t.Session(ctx, session.ID)
		if err != nil {
			return err
		}
		now.CWD = spec.CWD
		session = now
		return t.UpdateSession(now)
	})
	if err != nil {
		undo()
	}
	return session, err
}

func noWorktree(reason string) string { return "This conversation has no worktree: " + reason + "." }

// prepareWorktree copies the configured files into a worktree and runs the setup command, unless that
// was done.
func (h *Hub) prepareWorktree(ctx context.Context, turn domain.Turn, of Worktrees, w worktree.Worktree, configured config.Worktrees, waits bool) error {
	var setup func(context.Context) error
	if configured.Setup != nil {
		setup = func(ctx context.Context) error {
			h.sayInWorktree(turn, "The setup of the worktree begins: "+commandText(configured.Setup))
			return h.startTurnInWorktree(ctx, configured.Setup, w.Dir, configured.Timeout)
		}
	}
	copies, err := of.Prepare(ctx, w, configured.Copy, setup)
	for _, s := range copies.Skipped {
		h.sayInWorktree(turn, fmt.Sprintf("Not copied into the worktree: %s %s.", s.Path, s.Reason))
	}
	if waits && err == nil {
		h.sayInWorktree(turn, "The project's file configures worktrees, and has no effect until you trust it: duet-rpc trust.")
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

// startTurnInWorktree runs a configured command. A failure of the command is a *commandError.
func (h *Hub) startTurnInWorktree(ctx context.Context, argv []string, dir string, timeout time.Duration) error {
	env := map[string]string{"DUET_PROJECT": h.opts.Root, "DUET_WORKTREE": dir}
	command := usercommand.Command{
		Argv: argv, Directory: dir, Env: clientenv.From(ctx).ForCommand(h.opts.Getenv, env), Timeout: timeout, Keep: shownOutput,
	}
	ran, err := h.commands.Run(ctx, command)
	reason, err := command.Failure(ran, err)
	if err != nil || reason == "" {
		return err
	}
	return &commandError{command: commandText(argv), reason: reason, output: strings.TrimSpace(ran.Output.Text())}
}

// sayInWorktree tells the readers of a conversation about its worktree, before a turn.
func (h *Hub) sayInWorktree(turn domain.Turn, text string) {
	err := h.write(h.ctx, func(t store.Tx) error { return h.conversation.Note(t, turn, conversation.NoteWorktree, text) })
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("a note about a worktree was not stored", "text", text, "err", err)
	}
}

// tidyWorktrees finishes what a killed hub has begun to do with worktrees, as a landing, and deletes the
// worktrees that no conversation uses: the killed hub may have created them. One with work stays. It is
// called before the first conversation begins, and does its work in the background.
func (h *Hub) tidyWorktrees() {
	if h.opts.WorktreesDir == "" {
		return
	}
	entries, _ := os.ReadDir(h.opts.WorktreesDir) // none if it does not exist
	unused := make(map[string]bool)
	for _, e := range entries {
		unused[e.Name()] = !strings.HasPrefix(e.Name(), ".")
	}
	isUnfinished := worktree.IsUnfinished(h.opts.WorktreesDir)
	if len(unused) == 0 && !isUnfinished {
		return
	}
	h.active.Go(func() {
		err := h.everyLeaf(h.ctx, func(s domain.TurnInSession) {
			if top, found := h.Worktree(s.Session.CWD); found {
				unused[filepath.Base(top)] = false
			}
		})
		if err != nil || !isUnfinished && !slices.Contains(slices.Collect(maps.Values(unused)), true) {
			return
		}
		of, err := h.opts.Project.OpenWorktrees(h.ctx, true) // finishes the work
		if err != nil {
			h.log.Warn("the worktrees cannot be tidied", "err", err)
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
	if of, err = h.opts.Project.OpenWorktrees(ctx, trusts); err != nil {
		return of, w, worktreeError(err)
	}
	list, err := of.List(ctx)
	if err != nil {
		return of, w, worktreeError(err)
	}
	i := slices.IndexFunc(list, func(one worktree.Worktree) bool { return one.Name == filepath.Base(top) })
	switch {
	case i >= 0 && list[i].Top != top:
		return of, w, domain.Errorf(domain.KindNoWorktree, "the worktree was moved: `git worktree move %s %s` brings it back", list[i].Top, top)
	case i < 0:
		return of, w, domain.Errorf(domain.KindNoWorktree, "the worktree no longer exists (%s); git for-each-ref refs/duet/discarded lists the work that was kept", top)
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

// worktreeError returns an error of package worktree for clients.
func worktreeError(err error) error {
	var conflict *worktree.ConflictError
	var overlap *worktree.OverlapError
	var loss *worktree.LossError
	var busy *worktree.BusyError
	var known *domain.Error
	kind := domain.KindWorktree
	switch {
	case errors.As(err, &known):
		return err
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
