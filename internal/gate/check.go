package gate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// start checks the gates of a turn, unless a check is running or the hub is closing. The next hub
// then makes the check.
func (e *Engine) start(turn int64) {
	if e.opts.Turns.Resting() {
		return
	}
	ctx, cancel := context.WithCancel(clientenv.Context(e.ctx, e.opts.Turns.Environment(turn)))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.checking[turn] != nil {
		cancel()
		return
	}
	e.checking[turn] = cancel
	if !e.tasks.Go(func() { e.check(ctx, cancel, turn) }) {
		delete(e.checking, turn)
		cancel()
	}
}

// cancel stops the check of a turn.
func (e *Engine) cancel(turn int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancel := e.checking[turn]; cancel != nil {
		cancel()
	}
}

// check checks the gates of a turn and continues the loop with the result.
func (e *Engine) check(ctx context.Context, cancel context.CancelFunc, turn int64) {
	defer cancel()
	results, err := e.checkAll(ctx, turn)
	if ctx.Err() == nil {
		failure := err
		err = e.keep(ctx, func(t store.Tx) error { return e.settle(t, turn, results, failure) })
	}
	e.forget(turn)
	e.opts.Turns.Rested()
	if err != nil && ctx.Err() == nil {
		e.opts.Logger.Error("cannot store the results of gates", "err", err)
	}
}

// forget removes a finished check of a turn.
func (e *Engine) forget(turn int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.checking, turn)
}

// checkAll runs the gates of a turn, one after the other.
func (e *Engine) checkAll(ctx context.Context, id int64) ([]domain.GateResult, error) {
	turn, err := e.opts.Store.Turn(ctx, id)
	if err != nil {
		return nil, err
	}
	session, err := e.opts.Store.Session(ctx, turn.Session)
	if err != nil {
		return nil, err
	}
	l, err := e.opts.Store.GateLoop(ctx, id)
	if err != nil || l.State != domain.LoopChecking || l.Turn != id {
		return nil, err
	}
	var box *catalog.Sandbox
	if e.opts.Sandbox != nil {
		if box, err = e.opts.Sandbox(ctx, session); err != nil {
			return nil, err
		}
	}
	var results []domain.GateResult
	for i, g := range l.Gates {
		if err := e.tell(ctx, turn, domain.GateStarted{Gate: g.Name, Iteration: l.Iteration}); err != nil {
			return results, err
		}
		r, err := e.checkOne(ctx, g, session.CWD, box)
		if err != nil {
			return results, err
		}
		results = append(results, r)
		if i == len(l.Gates)-1 { // the result of the loop includes the last gate
			break
		}
		if err := e.tell(ctx, turn, checked(l, r)); err != nil {
			return results, err
		}
	}
	return results, nil
}

func checked(l domain.GateLoop, r domain.GateResult) domain.GateChecked {
	return domain.GateChecked{GateResult: r, Iteration: l.Iteration, MaxIterations: l.MaxIterations}
}

func (e *Engine) tell(ctx context.Context, turn domain.Turn, p domain.Payload) error {
	return e.keep(ctx, func(t store.Tx) error { return announce(t, turn, p) })
}

// keep runs a transaction, and retries it while the disk is full. No other event would continue a
// loop whose gates have been checked.
func (e *Engine) keep(ctx context.Context, change func(store.Tx) error) error {
	for {
		err := e.opts.Turns.Write(ctx, change)
		if !store.IsFull(err) {
			return err
		}
		if err := e.opts.AwaitRoom(ctx); err != nil {
			return err
		}
	}
}

// keptOutput limits, in bytes, the output that is examined when a gate fails.
const keptOutput = 64 << 10

// checkOne runs a gate in an agent's directory and sandbox. The error means that the gate could not run.
func (e *Engine) checkOne(ctx context.Context, g domain.Gate, cwd string, box *catalog.Sandbox) (domain.GateResult, error) {
	c := config.ShellGate(g.Name)
	if g.Configured {
		configured, err := e.configured()
		if err != nil {
			return domain.GateResult{}, err
		}
		var is bool
		if c, is = configured.named(g.Name); !is { // the configuration is read when the gate runs
			return domain.GateResult{Gate: g.Name, Reason: "the configuration no longer has a gate of that name"}, nil
		}
	}
	return e.run(ctx, c, cwd, box, nil)
}

// run runs a gate in a directory. printed, unless nil, gets whole lines of its output. The error
// means that the gate could not run.
func (e *Engine) run(
	ctx context.Context, c config.Gate, cwd string, box *catalog.Sandbox, printed func(context.Context, string),
) (domain.GateResult, error) {
	directory := c.Directory
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(cwd, directory)
	}
	r := domain.GateResult{Gate: c.Name}
	root := e.opts.Root
	if below, err := filepath.Rel(root, directory); err != nil || !filepath.IsLocal(below) {
		root = cwd // the session works outside of the project's root, for example in a worktree
	}
	reader := &usercommand.Reader{
		Parser: usercommand.NewParser(root, directory),
		Text:   printed,
		Found:  func(_ context.Context, d domain.Diagnostic) { count(&r, d) },
	}
	command := usercommand.Command{
		Argv: c.Command, Shell: c.Shell, Directory: directory,
		Env: clientenv.From(ctx).ForCommand(e.opts.Getenv, c.Env), Timeout: c.Timeout, Output: reader.Take,
		Keep: keptOutput, Sandbox: box,
	}
	ran, err := e.opts.Run(ctx, command)
	reader.Flush(ctx)
	r.Duration = ran.Duration
	if r.Reason, err = command.Failure(ran, err); err != nil {
		return r, err
	}
	if r.Passed = r.Reason == ""; !r.Passed {
		r.Output = excerpt(ran.Output.Text())
	}
	return r, nil
}

// mostFindings limits the diagnostics of a result.
const mostFindings = 50

func count(r *domain.GateResult, d domain.Diagnostic) {
	switch d.Severity {
	case domain.SeverityError:
		r.Errors++
	case domain.SeverityWarning:
		r.Warnings++
	}
	if len(r.Findings) < mostFindings {
		r.Findings = append(r.Findings, d)
	}
}

// settle continues a loop with the results of its gates, or with the error of checking them.
func (e *Engine) settle(t store.Tx, id int64, results []domain.GateResult, failure error) error {
	l, has, err := found(t.GateLoop(e.ctx, id))
	if err != nil || !has || l.State != domain.LoopChecking || l.Turn != id {
		return err
	}
	turn, err := t.Turn(e.ctx, id)
	if err != nil {
		return err
	}
	l.Results = results
	e.opts.Turns.MayStart(t) // queued turns of the session may start
	if failure != nil {
		return e.end(t, l, turn, domain.LoopStopped, "the gates could not be checked: "+failure.Error())
	}
	if err := announce(t, turn, checked(l, results[len(results)-1])); err != nil {
		return err
	}
	if err := e.opts.Turns.Say(t, turn, summary(l)); err != nil {
		return err
	}
	if len(l.Failing()) == 0 {
		return e.end(t, l, turn, domain.LoopPassed, "")
	}
	reason, err := e.givesUp(t, l, turn)
	if err != nil {
		return err
	}
	if reason != "" {
		return e.end(t, l, turn, domain.LoopFailed, reason)
	}
	next, err := e.opts.Turns.Next(t, turn, prompt(l))
	var refused *domain.Error
	switch {
	case errors.As(err, &refused):
		return e.end(t, l, turn, domain.LoopFailed, refused.Message)
	case err != nil:
		return err
	}
	l.Turn, l.State = next.ID, domain.LoopWorking
	l.Iteration++
	return t.UpdateGateLoop(l)
}

// givesUp returns why a loop with failed gates ends, or "" if it continues.
func (e *Engine) givesUp(t store.Tx, l domain.GateLoop, turn domain.Turn) (string, error) {
	if l.Iteration >= l.MaxIterations {
		return fmt.Sprintf("they still fail after %s", turns(l.Iteration)), nil
	}
	if turn.Stop == "refusal" {
		return "the agent refused to go on", nil
	}
	denied, err := t.HasDenied(e.ctx, turn.ID)
	if denied {
		return "a person denied the agent's action, so the agent was not asked to try again", err
	}
	return "", err
}

func turns(n int) string {
	if n == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", n)
}

// List returns the configured gates. It returns a *domain.Error to callers that do not trust the
// workspace.
func (e *Engine) List(ctx context.Context) (Configured, error) {
	if clientenv.IsRestricted(ctx) {
		return Configured{}, untrusted()
	}
	return e.configured()
}

// CheckNow runs a gate in the project's directory on request, whatever the agents are doing. gate
// is a configured name or a shell line. printed gets whole lines of output, from one goroutine at a
// time, and blocks the gate until it returns. If ctx ends, the gate ends and the error is that of
// ctx. A failing gate is not an error.
func (e *Engine) CheckNow(
	ctx context.Context, gate string, printed func(context.Context, string),
) (domain.GateResult, error) {
	if err := (Spec{Gates: []string{gate}}).Check(ctx); err != nil {
		return domain.GateResult{}, err
	}
	configured, err := e.configured()
	if err != nil {
		return domain.GateResult{}, err
	}
	c, is, err := configured.trusted(gate)
	if err != nil {
		return domain.GateResult{}, err
	}
	if !is {
		c = config.ShellGate(gate)
	}
	return e.run(ctx, c, e.opts.Root, nil, printed)
}
