package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A lease is one use of a process.
type lease struct {
	catalog.Executor
	process  *process
	release  func()
	released bool // and wants no pause any more; guarded by pauses.mu
}

func (l *lease) Release() {
	if p := l.process; p.pauses.leave(l) {
		p.supervisor.work.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if err := p.pauses.tell(ctx, p.executor); err != nil {
				p.supervisor.opts.Logger.Debug("an executor was not told to go on", "err", err)
			}
		})
	}
	l.release()
}

// PauseNotifications makes the executor pause until the lease lets it go on, or
// is released.
func (l *lease) PauseNotifications(ctx context.Context) error {
	return l.process.pauses.set(ctx, l.Executor, l, true)
}

func (l *lease) ResumeNotifications(ctx context.Context) error {
	return l.process.pauses.set(ctx, l.Executor, l, false)
}

func (l *lease) Kill() { l.process.kill() }

// SpawnTerminal remembers the terminal, whose end must be told even if the
// executor dies.
func (l *lease) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	result, err := l.Executor.SpawnTerminal(ctx, p)
	if err == nil {
		l.process.inventory.terminal(result.TerminalID, true)
	}
	return result, err
}

// ExecutePrompt turns an error that the executor answered into a result: only
// an executor that has gone is an error.
func (l *lease) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	defer l.process.inventory.give(p.TaskID)()
	result, err := l.Executor.ExecutePrompt(ctx, p)
	var answered *jsonrpc2.Error
	switch {
	case errors.Is(err, jsonrpc2.ErrClosed):
		l.process.disconnected()
	case errors.As(err, &answered):
		return catalog.ExecutePromptResult{
			Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "EXECUTOR_ERROR", Message: answered.Message},
		}, nil
	}
	return result, err
}

// SetSession takes an executor that does not know the call, which is somebody
// else's, for one that has no agent to tell.
func (l *lease) SetSession(ctx context.Context, p catalog.SetSessionParams) (catalog.SetSessionResult, error) {
	result, err := l.Executor.SetSession(ctx, p)
	var answered *jsonrpc2.Error
	if errors.As(err, &answered) && answered.Code == jsonrpc2.CodeMethodNotFound {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}, nil
	}
	return result, err
}

// Steer treats an executor without this method, a third-party one, as one that refuses the
// message.
func (l *lease) Steer(ctx context.Context, p catalog.SteerParams) (catalog.SteerResult, error) {
	result, err := l.Executor.Steer(ctx, p)
	var answered *jsonrpc2.Error
	if errors.As(err, &answered) && answered.Code == jsonrpc2.CodeMethodNotFound {
		return catalog.SteerResult{Outcome: catalog.SteerRefused}, nil
	}
	return result, err
}

// YieldTurn treats an executor without this method, a third-party one, as one that refuses.
func (l *lease) YieldTurn(ctx context.Context, p catalog.YieldTurnParams) (catalog.YieldTurnResult, error) {
	result, err := l.Executor.YieldTurn(ctx, p)
	var answered *jsonrpc2.Error
	if errors.As(err, &answered) && answered.Code == jsonrpc2.CodeMethodNotFound {
		return catalog.YieldTurnResult{Outcome: catalog.YieldRefused}, nil
	}
	return result, err
}

// RunCommand remembers the command, of which nothing is to be left if the executor dies.
// An error is that of an executor that could not serve the call, or has gone.
func (l *lease) RunCommand(ctx context.Context, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	ended := l.process.inventory.command(p.CommandID, p.Mark)
	result, err := l.Executor.RunCommand(ctx, p)
	var answered *jsonrpc2.Error
	switch {
	case errors.Is(err, jsonrpc2.ErrClosed):
		l.process.disconnected()
	case err == nil, errors.As(err, &answered):
		ended()
	}
	return result, err
}
