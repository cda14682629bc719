package gate

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

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
func (e *Engine) CheckNow(ctx context.Context, gate string, printed func(context.Context, string)) (domain.GateResult, error) {
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
	return e.run(ctx, c, e.opts.Root, printed)
}
