package catalogrpc

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/server"
)

// RegisterExecutor registers what the hub may ask of x.
func RegisterExecutor(reg *server.Registry, x catalog.Executor) {
	long := server.LongRunning()
	server.Handle(reg, "execute_prompt", x.ExecutePrompt, long, server.Doc("Runs a prompt to its end."))
	server.Handle(reg, "stop_task", x.StopTask, long, server.Doc("Begins to end a task."))
	server.Handle(reg, "cancel_task", notification(func(ctx context.Context, p catalog.StopTaskParams) error {
		_, err := x.StopTask(ctx, p)
		return err
	}), server.Doc("stop_task as a notification."))
	server.Handle(reg, "spawn_terminal", x.SpawnTerminal, long, server.Doc("Starts a program in a terminal."))
	server.Handle(reg, "terminal.write", notification(x.TerminalWrite), server.Doc("Types into a terminal."))
	server.Handle(reg, "terminal.resize", notification(x.TerminalResize), server.Doc("Changes a terminal's size."))
	server.Handle(reg, "terminal.close", x.TerminalClose, server.Doc("Ends a terminal."))
	server.Handle(reg, "pause_notifications", signal(x.PauseNotifications), server.Doc("Stops the reports until resume_notifications."))
	server.Handle(reg, "resume_notifications", signal(x.ResumeNotifications), server.Doc("Lets the reports go on."))
	server.Handle(reg, "shutdown", x.Shutdown, long, server.Doc("Ends the executor when its work is done."))
}

// Executor is the executor at the other end of conn.
func Executor(conn *server.Conn) catalog.Executor { return executor{conn} }

type executor struct{ conn *server.Conn }

func (x executor) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	return call[catalog.ExecutePromptResult](ctx, x.conn, "execute_prompt", p)
}

func (x executor) StopTask(ctx context.Context, p catalog.StopTaskParams) (catalog.StopTaskResult, error) {
	return call[catalog.StopTaskResult](ctx, x.conn, "stop_task", p)
}

func (x executor) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	return call[catalog.SpawnTerminalResult](ctx, x.conn, "spawn_terminal", p)
}

// TerminalWrite and TerminalResize are calls, not notifications: the caller is
// told of a terminal that is not there, and keys keep their order.
func (x executor) TerminalWrite(ctx context.Context, p catalog.TerminalWriteParams) error {
	return x.conn.Call(ctx, "terminal.write", p, nil)
}

func (x executor) TerminalResize(ctx context.Context, p catalog.TerminalResizeParams) error {
	return x.conn.Call(ctx, "terminal.resize", p, nil)
}

func (x executor) TerminalClose(ctx context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	return call[catalog.TerminalCloseResult](ctx, x.conn, "terminal.close", p)
}

func (x executor) PauseNotifications(ctx context.Context) error {
	return x.conn.Notify(ctx, "pause_notifications", nil)
}

func (x executor) ResumeNotifications(ctx context.Context) error {
	return x.conn.Notify(ctx, "resume_notifications", nil)
}

func (x executor) Shutdown(ctx context.Context, p catalog.ShutdownParams) (catalog.ShutdownResult, error) {
	return call[catalog.ShutdownResult](ctx, x.conn, "shutdown", p)
}
