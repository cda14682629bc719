package gate

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// List is what the configuration says of gates now. It is refused, as a *domain.Error, to
// whoever does not trust the workspace.
func (e *Engine) List(ctx context.Context) (Configured, error) {
	if clientenv.IsRestricted(ctx) {
		return Configured{}, untrusted()
	}
	return e.configured()
}

// CheckNow runs a gate in the project's directory because somebody asks, whatever agents do
// meanwhile: one of the configuration by its name, or a line for the shell. printed gets whole
// lines of what it prints, from one goroutine at a time; the gate is held up until it returns.
// The gate ends with ctx, and then that is the error. A gate that does not pass is none.
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
