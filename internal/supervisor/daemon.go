package supervisor

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// daemon is the hub as one executor sees it: errors are made fit for the
// wire, and the agents that it reports are remembered.
type daemon struct {
	catalog.Daemon
	wire    func(error) error
	process *process
}

func told[R any](d daemon, result R, err error) (R, error) {
	if err != nil {
		err = d.wire(err)
	}
	return result, err
}

func (d daemon) GetAPIKey(ctx context.Context, p catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error) {
	r, err := d.Daemon.GetAPIKey(ctx, p)
	return told(d, r, err)
}

func (d daemon) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	r, err := d.Daemon.RequestPermission(ctx, p)
	return told(d, r, err)
}

func (d daemon) GetExecutionContext(ctx context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
	r, err := d.Daemon.GetExecutionContext(ctx, p)
	return told(d, r, err)
}

func (d daemon) CreateMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	r, err := d.Daemon.CreateMessage(ctx, p)
	return told(d, r, err)
}

func (d daemon) ReportMessage(ctx context.Context, p catalog.ReportMessageParams) error {
	if p.EventType == catalog.EventProcess {
		d.process.noteAgent(p.EventData)
	}
	return d.Daemon.ReportMessage(ctx, p)
}

func (d daemon) TerminalStarted(ctx context.Context, p catalog.TerminalStartedParams) error {
	d.process.noteAgentTerminal(p.TerminalID, p.TaskID)
	return d.Daemon.TerminalStarted(ctx, p)
}

func (d daemon) TerminalExit(ctx context.Context, p catalog.TerminalExitParams) error {
	d.process.noteTerminal(p.TerminalID, false)
	return d.Daemon.TerminalExit(ctx, p)
}
