package supervisor

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// daemon is the hub as one executor sees it: it converts errors for the wire, and remembers the
// reported agents.
type daemon struct {
	catalog.Daemon
	wire    func(error) error
	process *process
}

// forWire converts an error of the hub for the wire.
func forWire[R any](d daemon, result R, err error) (R, error) {
	if err != nil {
		err = d.wire(err)
	}
	return result, err
}

func (d daemon) GetAPIKey(ctx context.Context, p catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error) {
	r, err := d.Daemon.GetAPIKey(ctx, p)
	return forWire(d, r, err)
}

func (d daemon) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	r, err := d.Daemon.RequestPermission(ctx, p)
	return r, d.refuse(p.TaskID, "request_permission", err)
}

func (d daemon) GetExecutionContext(ctx context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
	r, err := d.Daemon.GetExecutionContext(ctx, p)
	return forWire(d, r, err)
}

func (d daemon) CreateMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	r, err := d.Daemon.CreateMessage(ctx, p)
	return forWire(d, r, err)
}

func (d daemon) ReportMessage(ctx context.Context, p catalog.ReportMessageParams) error {
	if p.EventType == catalog.EventProcess {
		d.process.inventory.agent(p.EventData)
	}
	return d.refuse(p.TaskID, "report_message", d.Daemon.ReportMessage(ctx, p))
}

func (d daemon) ReportProgress(ctx context.Context, p catalog.ReportProgressParams) error {
	return d.refuse(p.TaskID, "report_progress", d.Daemon.ReportProgress(ctx, p))
}

func (d daemon) ReportError(ctx context.Context, p catalog.ReportErrorParams) error {
	return d.refuse(p.TaskID, "report_error", d.Daemon.ReportError(ctx, p))
}

var errOthersSession = &domain.Error{Kind: domain.KindInvalidToken, Message: "the session is not one of this executor's"}

// BeginTurn accepts a call for a session whose agent the executor has.
func (d daemon) BeginTurn(ctx context.Context, p catalog.BeginTurnParams) (catalog.BeginTurnResult, error) {
	if p.TaskID == "" || !d.process.inventory.has(p.TaskID) || !d.process.holds(p.SessionID) {
		return catalog.BeginTurnResult{}, d.wire(errOthersSession)
	}
	r, err := d.Daemon.BeginTurn(ctx, p)
	return forWire(d, r, err)
}

// ReportSession accepts a report for a session whose agent the executor has.
func (d daemon) ReportSession(ctx context.Context, p catalog.ReportSessionParams) error {
	err := error(errOthersSession)
	if p.TaskID != "" && d.process.inventory.has(p.TaskID) && d.process.holds(p.SessionID) {
		err = d.Daemon.ReportSession(ctx, p)
	}
	if err != nil {
		return refusedByHub{d.wire(err)}
	}
	return nil
}

// ReportLate accepts a report for a session whose agent the executor has, and for its own
// tasks.
func (d daemon) ReportLate(ctx context.Context, p catalog.ReportLateParams) error {
	err := error(errOthersSession)
	if p.TaskID != "" && d.process.inventory.has(p.TaskID) && d.process.holds(p.SessionID) {
		err = d.Daemon.ReportLate(ctx, p)
	}
	if err != nil {
		return refusedByHub{d.wire(err)}
	}
	return nil
}

// errOthersTask refuses a notification about a terminal. These have no token, so the supervisor
// accepts them for the executor's own tasks only.
var errOthersTask = &domain.Error{Kind: domain.KindInvalidToken, Message: "the terminal's task is not one of this executor's"}

func (d daemon) TerminalStarted(ctx context.Context, p catalog.TerminalStartedParams) error {
	if !d.process.inventory.has(p.TaskID) {
		return d.wire(errOthersTask)
	}
	d.process.inventory.agentTerminal(p.TerminalID, p.TaskID)
	return d.Daemon.TerminalStarted(ctx, p)
}

func (d daemon) TerminalOutput(ctx context.Context, p catalog.TerminalOutputParams) error {
	if !d.process.inventory.has(p.TaskID) {
		return d.wire(errOthersTask)
	}
	return d.Daemon.TerminalOutput(ctx, p)
}

func (d daemon) TerminalExit(ctx context.Context, p catalog.TerminalExitParams) error {
	if !d.process.inventory.has(p.TaskID) {
		return d.wire(errOthersTask)
	}
	d.process.inventory.terminal(p.TerminalID, false)
	return d.Daemon.TerminalExit(ctx, p)
}

var errOthersCommand = &domain.Error{Kind: domain.KindInvalidToken, Message: "the command is not one of this executor's"}

func (d daemon) CommandStarted(ctx context.Context, p catalog.CommandStartedParams) error {
	if !d.process.inventory.hasCommand(p.CommandID) {
		return refusedByHub{d.wire(errOthersCommand)}
	}
	d.process.inventory.commandStarted(p.CommandID, p.PID)
	return d.Daemon.CommandStarted(ctx, p)
}

func (d daemon) CommandOutput(ctx context.Context, p catalog.CommandOutputParams) error {
	if !d.process.inventory.hasCommand(p.CommandID) {
		return refusedByHub{d.wire(errOthersCommand)}
	}
	return d.Daemon.CommandOutput(ctx, p)
}

// editorFiles accepts requests for the executor's own tasks.
type editorFiles struct {
	catalog.EditorFiles
	process *process
}

func (f editorFiles) ReadEditorFile(ctx context.Context, p catalog.ReadEditorFileParams) (catalog.ReadEditorFileResult, error) {
	if !f.process.inventory.has(p.TaskID) {
		return catalog.ReadEditorFileResult{}, refusedByHub{errOthersTask}
	}
	return f.EditorFiles.ReadEditorFile(ctx, p)
}
