package catalogrpc

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/server"
)

// RegisterDaemon registers the methods of d for executors.
func RegisterDaemon(reg *server.Registry, d catalog.Daemon) {
	long := server.LongRunning()
	server.Handle(reg, "get_api_key", d.GetAPIKey, long, server.Doc("Returns the key of a service."))
	server.Handle(reg, "request_permission", d.RequestPermission, long, server.Doc("Asks whether a tool may run, and waits for the decision."))
	server.Handle(reg, "get_execution_context", d.GetExecutionContext, long, server.Doc("Returns the conversation so far and its settings."))
	server.Handle(reg, "create_message", d.CreateMessage, long, server.Doc("Adds a message to the conversation."))
	server.Handle(reg, "begin_turn", d.BeginTurn, long, server.Doc("Starts a task for an agent-initiated turn and returns its id. No other "+
		"task of the conversation may run. The hub then calls execute_prompt for it, with unprompted. It needs no token; the hub accepts it "+
		"only from the conversation's executor. It is optional for any executor."))
	server.Handle(reg, "report_message", notification(d.ReportMessage), server.Doc("Reports one event of an agent."))
	server.Handle(reg, "report_progress", notification(d.ReportProgress), server.Doc("Reports the progress of a task."))
	server.Handle(reg, "report_error", notification(d.ReportError), server.Doc("Reports an error that does not end the task."))
	server.Handle(reg, "report_completion", acknowledged(d.ReportCompletion),
		server.Doc("Reports the end of a task. As a request it returns {acknowledged:true}."))
	server.Handle(reg, "report_session", notification(d.ReportSession), server.Doc("Reports changed parts of the agent's session while no "+
		"prompt runs. It needs no token. The hub accepts it only from the conversation's executor, and only while task_id is the last task "+
		"there; otherwise it logs a refusal. While a prompt runs, use the event session of report_message. It is optional for any executor."))
	server.Handle(reg, "report_late", notification(d.ReportLate), server.Doc("Reports an event of a task that has ended: text, a tool call "+
		"of that task, a notice, a compaction or usage. It needs no token; the hub accepts it only from the executor that got the task. It is "+
		"optional for any executor."))
	server.Handle(reg, "terminal_started", notification(d.TerminalStarted), server.Doc("Reports that an agent runs a program in a terminal."))
	server.Handle(reg, "terminal_output", notification(d.TerminalOutput), server.Doc("Reports output of a terminal."))
	server.Handle(reg, "terminal_exit", notification(d.TerminalExit), server.Doc("Reports that a terminal's program has ended."))
	server.Handle(reg, "command_started", notification(d.CommandStarted), server.Doc("Reports that a command of run_command has started."))
	server.Handle(reg, "command_output", notification(d.CommandOutput), long, server.Doc("Reports output of a command. The hub replies when "+
		"it has taken the output; the executor does not read the command until then."))
}

// acknowledged makes a handler of a function without a result. A request gets an acknowledgement,
// as the executor catalog allows.
func acknowledged[P any](f func(context.Context, P) error) func(context.Context, P) (acknowledgement, error) {
	return func(ctx context.Context, params P) (acknowledgement, error) {
		err := f(ctx, params)
		return acknowledgement{err == nil}, err
	}
}

type acknowledgement struct {
	Acknowledged bool `json:"acknowledged"`
}

// Daemon returns the hub at the other end of conn. Reports block while the hub does not read, which
// limits their rate.
func Daemon(conn *server.Conn) catalog.Daemon { return daemon{conn} }

type daemon struct{ conn *server.Conn }

func (d daemon) GetAPIKey(ctx context.Context, p catalog.GetAPIKeyParams) (catalog.GetAPIKeyResult, error) {
	return call[catalog.GetAPIKeyResult](ctx, d.conn, "get_api_key", p)
}

func (d daemon) RequestPermission(ctx context.Context, p catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
	return call[catalog.RequestPermissionResult](ctx, d.conn, "request_permission", p)
}

func (d daemon) GetExecutionContext(ctx context.Context, p catalog.GetExecutionContextParams) (catalog.GetExecutionContextResult, error) {
	return call[catalog.GetExecutionContextResult](ctx, d.conn, "get_execution_context", p)
}

func (d daemon) CreateMessage(ctx context.Context, p catalog.CreateMessageParams) (catalog.CreateMessageResult, error) {
	return call[catalog.CreateMessageResult](ctx, d.conn, "create_message", p)
}

func (d daemon) BeginTurn(ctx context.Context, p catalog.BeginTurnParams) (catalog.BeginTurnResult, error) {
	return call[catalog.BeginTurnResult](ctx, d.conn, "begin_turn", p)
}

func (d daemon) ReportMessage(ctx context.Context, p catalog.ReportMessageParams) error {
	return d.conn.Notify(ctx, "report_message", p)
}

func (d daemon) ReportProgress(ctx context.Context, p catalog.ReportProgressParams) error {
	return d.conn.Notify(ctx, "report_progress", p)
}

func (d daemon) ReportError(ctx context.Context, p catalog.ReportErrorParams) error {
	return d.conn.Notify(ctx, "report_error", p)
}

func (d daemon) ReportCompletion(ctx context.Context, p catalog.ReportCompletionParams) error {
	return d.conn.Notify(ctx, "report_completion", p)
}

func (d daemon) ReportSession(ctx context.Context, p catalog.ReportSessionParams) error {
	return d.conn.Notify(ctx, "report_session", p)
}

func (d daemon) ReportLate(ctx context.Context, p catalog.ReportLateParams) error {
	return d.conn.Notify(ctx, "report_late", p)
}

func (d daemon) TerminalStarted(ctx context.Context, p catalog.TerminalStartedParams) error {
	return d.conn.Notify(ctx, "terminal_started", p)
}

func (d daemon) TerminalOutput(ctx context.Context, p catalog.TerminalOutputParams) error {
	return d.conn.Notify(ctx, "terminal_output", p)
}

func (d daemon) TerminalExit(ctx context.Context, p catalog.TerminalExitParams) error {
	return d.conn.Notify(ctx, "terminal_exit", p)
}

func (d daemon) CommandStarted(ctx context.Context, p catalog.CommandStartedParams) error {
	return d.conn.Notify(ctx, "command_started", p)
}

func (d daemon) CommandOutput(ctx context.Context, p catalog.CommandOutputParams) error {
	_, err := call[none](ctx, d.conn, "command_output", p)
	return err
}

const readEditorFile = "read_editor_file"

// RegisterEditorFiles registers the method of f.
func RegisterEditorFiles(reg *server.Registry, f catalog.EditorFiles) {
	server.Handle(reg, readEditorFile, f.ReadEditorFile, server.LongRunning(),
		server.Doc("Returns the contents of a file in the editor that started the task."))
}

// EditorFiles returns the editor files of the hub at the other end of conn.
func EditorFiles(conn *server.Conn) catalog.EditorFiles { return editorFiles{conn} }

type editorFiles struct{ conn *server.Conn }

func (f editorFiles) ReadEditorFile(ctx context.Context, p catalog.ReadEditorFileParams) (catalog.ReadEditorFileResult, error) {
	return call[catalog.ReadEditorFileResult](ctx, f.conn, readEditorFile, p)
}
