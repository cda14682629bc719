package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// This file makes a worktree ready before a turn starts in it: it copies files, runs the setup, and
// renews the worktree.

// startInWorktree makes the worktree ready in which a turn is about to start, and returns its
// session. A session that a trigger has begun gets its worktree here, since a transaction
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

// prepareWorktree copies the configured files into a worktree and runs the setup command, unless that
// was done.
func (h *Hub) prepareWorktree(
	ctx context.Context, turn domain.Turn, of Worktrees, w worktree.Worktree, configured config.Worktrees, waits bool,
) error {
	var setup func(context.Context) error
	if configured.Setup != nil {
		setup = func(ctx context.Context) error {
			h.sayInWorktree(turn, "The setup of the worktree begins: "+commandText(configured.Setup))
			return h.runInWorktree(ctx, configured.Setup, w.Dir, configured.Timeout)
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
		return WorktreeError(err)
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
	command := usercommand.Command{
		Argv: argv, Directory: dir, Env: clientenv.From(ctx).ForCommand(h.opts.Getenv, env), Timeout: timeout,
		Keep: shownOutput,
	}
	ran, err := h.commands.Run(ctx, command)
	reason, err := command.Failure(ran, err)
	if err != nil || reason == "" {
		return err
	}
	return &commandError{command: commandText(argv), reason: reason, output: strings.TrimSpace(ran.Output.Text())}
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
