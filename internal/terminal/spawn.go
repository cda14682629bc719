package terminal

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Spawn starts a program in a terminal, which lives on when nobody watches it.
// deliver gets what it prints, and how it ends. It may block a moment, but for
// nobody who waits for the registry: until it returns, whatever else the executor
// has to report waits.
//
// With p.Descriptor the view has the terminal's descriptor, as of [Registry.Attach].
func (r *Registry) Spawn(ctx context.Context, p catalog.SpawnTerminalParams, deliver Deliver) (*View, error) {
	var err error
	if p.CWD, err = r.opts.Directory(p.CWD); err != nil {
		return nil, err
	}
	executor, err := r.opts.Acquire(ctx)
	if err != nil {
		return nil, &domain.Error{Kind: domain.KindExecutor, Message: "no executor could be started: " + err.Error(), Err: err}
	}
	p.SessionToken = ""
	p = inClientEnvironment(p, clientenv.From(ctx))
	p.TmuxSessionName = tmuxName.Replace(p.TmuxSessionName)
	r.mu.Lock()
	r.starting++
	r.mu.Unlock()
	// A terminal that was started must be known here, even if ctx has ended meanwhile.
	result, err := executor.SpawnTerminal(context.WithoutCancel(ctx), p)
	if err != nil {
		r.mu.Lock()
		r.started()
		r.mu.Unlock()
		executor.Release()
		return nil, err
	}
	view := &View{registry: r, deliver: deliver, closed: make(chan struct{}), File: result.File}
	if !r.add(executor, p, result, view) {
		executor.Release() // it has ended already
	}
	return view, nil
}

// inClientEnvironment returns parameters with the variables that a client passes on to what it
// starts. Those in p.Env win, and what kind of terminal it is does not depend on the client's own.
func inClientEnvironment(p catalog.SpawnTerminalParams, client clientenv.Environment) catalog.SpawnTerminalParams {
	if client == nil {
		return p
	}
	none := func(string) string { return "" }
	env := client.For(nil, none)
	delete(env, "TERM")
	maps.Copy(env, p.Env)
	p.Env = env
	p.Shell = cmp.Or(p.Shell, client["SHELL"])
	return p
}

// add makes a terminal known that was started, with its first view. It reports
// whether the terminal still runs.
func (r *Registry) add(executor Executor, p catalog.SpawnTerminalParams, result catalog.SpawnTerminalResult, view *View) (runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.started()
	term := r.terminals[result.TerminalID]
	if term == nil {
		term = &terminal{}
		r.terminals[result.TerminalID] = term
	}
	term.executor = executor
	term.Info = Info{
		ID: result.TerminalID, PID: result.PTYPID, CWD: p.CWD, Started: time.Now(),
		Program: cmp.Or(result.Program, p.Shell), Args: result.Args, Cols: cmp.Or(result.Cols, p.Cols), Rows: cmp.Or(result.Rows, p.Rows),
	}
	if result.Program == "" {
		term.Args = p.Args
	}
	if p.UseTmux {
		term.Tmux = cmp.Or(p.TmuxSessionName, "duet")
	}
	if p.Descriptor {
		term.holder = view
	}
	term.show(view, term.printed.bytes())
	if term.exitEarly != nil {
		r.end(term, *term.exitEarly)
		return false
	}
	return true
}

// tmuxName makes a name what tmux would make it, so that the session can be
// found by it.
var tmuxName = strings.NewReplacer(":", "_", ".", "_")

// started counts the answer to a start. When none is outstanding, what was
// reported of terminals that nobody started is forgotten; r.mu is held.
func (r *Registry) started() {
	if r.starting--; r.starting > 0 {
		return
	}
	for id, term := range r.terminals {
		if term.ID == "" {
			delete(r.terminals, id)
		}
	}
}
