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

// Spawn starts a program in a terminal, which continues without views. deliver gets the output and
// the end. It may block briefly: other calls of the registry do not wait for it, but further
// reports of the executor do.
//
// With p.Descriptor the view has the terminal's descriptor, as in [Registry.Attach].
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
	// A started terminal must be registered, even if ctx has ended meanwhile.
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
		executor.Release() // already ended
	}
	return view, nil
}

// inClientEnvironment adds the client's variables to p. Those in p.Env win, and the terminal type
// does not depend on the client's own.
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

// add registers a started terminal with its first view. It reports whether the terminal still runs.
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

// tmuxName converts a name as tmux does, so that the session can be found by it.
var tmuxName = strings.NewReplacer(":", "_", ".", "_")

// started counts the answer to a start. When none is outstanding, reports of unknown terminals are
// dropped; r.mu is held.
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
