package catalogrpc

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/server"
)

// RegisterExecutor registers the methods of x for the hub.
func RegisterExecutor(reg *server.Registry, x catalog.Executor) {
	long := server.LongRunning()
	server.Handle(reg, "execute_prompt", x.ExecutePrompt, long, server.Doc("Runs a prompt to its end."))
	server.Handle(reg, "stop_task", x.StopTask, long, server.Doc("Begins to stop a task. The call may arrive before its prompt: then the "+
		"executor keeps it, or answers stopped: false and the hub repeats it. Just after the end of the task, it stops what the agent "+
		"continues by itself."))
	server.Handle(reg, "cancel_task", notification(func(ctx context.Context, p catalog.StopTaskParams) error {
		_, err := x.StopTask(ctx, p)
		return err
	}), server.Doc("Same as stop_task, as a notification."))
	server.Handle(reg, "spawn_terminal", spawn(x), long, server.Doc("Starts a program in a terminal."))
	server.Handle(reg, "terminal.write", notification(x.TerminalWrite), server.Doc("Sends input to a terminal."))
	server.Handle(reg, "terminal.resize", notification(x.TerminalResize), server.Doc("Changes a terminal's size."))
	server.Handle(reg, "terminal.close", x.TerminalClose, server.Doc("Closes a terminal and ends its program."))
	server.Handle(reg, "terminal.descriptor", descriptor(x), long,
		server.Doc("Stops reading a terminal and passes its descriptor with the reply."))
	server.Handle(reg, "terminal.return", notification(x.TerminalReturn), server.Doc("Lets the executor read a terminal again."))
	server.Handle(reg, "pause_notifications", signal(x.PauseNotifications), server.Doc("Stops reading the agents until resume_notifications."))
	server.Handle(reg, "resume_notifications", signal(x.ResumeNotifications), server.Doc("Continues to read the agents."))
	server.Handle(reg, "set_session", x.SetSession, long,
		server.Doc("Changes the mode, model or options of a conversation's agent while a prompt runs."))
	server.Handle(reg, "steer", x.Steer, long, server.Doc("Sends a message to a task's agent during its turn."))
	server.Handle(reg, "yield_turn", x.YieldTurn, long, server.Doc("Ends the task of an agent-initiated turn early, so that a prompt "+
		"reaches the agent at once. The agent continues its work."))
	server.Handle(reg, "release_session", x.ReleaseSession, long, server.Doc("Ends the agent of a conversation, unless it is busy."))
	server.Handle(reg, "run_command", x.RunCommand, long, server.Doc("Runs a configured command to its end, in its own process group."))
	server.Handle(reg, "stop_command", x.StopCommand, server.Doc("Begins to stop a command."))
	server.Handle(reg, "shutdown", x.Shutdown, long, server.Doc("Ends the executor when its work is done."))
}

// spawn serves spawn_terminal; the descriptor goes with the reply.
func spawn(x catalog.Executor) func(context.Context, catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	return func(ctx context.Context, p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
		if p.Descriptor && !server.CanReplyFile(ctx) {
			return catalog.SpawnTerminalResult{}, server.ErrNoFiles
		}
		result, err := x.SpawnTerminal(ctx, p)
		if err == nil && result.File != nil {
			err = server.ReplyFile(ctx, result.File)
		}
		return result, err
	}
}

// descriptor serves terminal.descriptor.
func descriptor(x catalog.Executor) func(context.Context, catalog.TerminalDescriptorParams) (struct{}, error) {
	return func(ctx context.Context, p catalog.TerminalDescriptorParams) (struct{}, error) {
		if !server.CanReplyFile(ctx) {
			return struct{}{}, server.ErrNoFiles
		}
		file, err := x.TerminalDescriptor(ctx, p)
		if err == nil {
			err = server.ReplyFile(ctx, file)
		}
		return struct{}{}, err
	}
}

// Executor returns the executor at the other end of conn.
func Executor(conn *server.Conn) catalog.Executor { return &executor{conn: conn} }

type executor struct {
	conn  *server.Conn
	files sync.Mutex // held from a call for a file until it is taken: files come in the order of the replies
}

func (x *executor) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	// The catalog's example always has the tools: an empty list allows all.
	return call[catalog.ExecutePromptResult](ctx, x.conn, "execute_prompt", struct {
		catalog.ExecutePromptParams
		Tools []string `json:"tools"`
	}{p, append([]string{}, p.Tools...)})
}

func (x *executor) StopTask(ctx context.Context, p catalog.StopTaskParams) (catalog.StopTaskResult, error) {
	return call[catalog.StopTaskResult](ctx, x.conn, "stop_task", p)
}

func (x *executor) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	if !p.Descriptor {
		return call[catalog.SpawnTerminalResult](ctx, x.conn, "spawn_terminal", p)
	}
	var result catalog.SpawnTerminalResult
	file, err := x.callForFile(ctx, "spawn_terminal", p, &result)
	if err != nil && result.TerminalID != "" {
		_, _ = x.TerminalClose(context.WithoutCancel(ctx), catalog.TerminalCloseParams{TerminalID: result.TerminalID})
	}
	result.File = file
	return result, err
}

// TerminalWrite and TerminalResize are calls, not notifications, so that the caller gets an error
// for an unknown terminal, and input keeps its order.
func (x *executor) TerminalWrite(ctx context.Context, p catalog.TerminalWriteParams) error {
	return x.conn.Call(ctx, "terminal.write", p, nil)
}

func (x *executor) TerminalResize(ctx context.Context, p catalog.TerminalResizeParams) error {
	return x.conn.Call(ctx, "terminal.resize", p, nil)
}

func (x *executor) TerminalClose(ctx context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	return call[catalog.TerminalCloseResult](ctx, x.conn, "terminal.close", p)
}

func (x *executor) TerminalDescriptor(ctx context.Context, p catalog.TerminalDescriptorParams) (*os.File, error) {
	return x.callForFile(ctx, "terminal.descriptor", p, nil)
}

func (x *executor) TerminalReturn(ctx context.Context, p catalog.TerminalReturnParams) error {
	return x.conn.Call(ctx, "terminal.return", p, nil)
}

// callForFile calls a method whose reply has a file. It ignores the end of ctx, because the next
// call would otherwise get this file.
func (x *executor) callForFile(ctx context.Context, method string, params, result any) (*os.File, error) {
	x.files.Lock()
	defer x.files.Unlock()
	for { // files without a call
		stray, err := server.NextFile(x.conn)
		if err != nil {
			break
		}
		stray.Close()
	}
	if err := x.conn.Call(context.WithoutCancel(ctx), method, params, result); err != nil {
		return nil, err
	}
	file, err := server.NextFile(x.conn)
	if err != nil {
		return nil, fmt.Errorf("the executor did not pass the terminal's descriptor: %w", err)
	}
	return file, nil
}

func (x *executor) PauseNotifications(ctx context.Context) error {
	return x.conn.Notify(ctx, "pause_notifications", nil)
}

func (x *executor) ResumeNotifications(ctx context.Context) error {
	return x.conn.Notify(ctx, "resume_notifications", nil)
}

func (x *executor) SetSession(ctx context.Context, p catalog.SetSessionParams) (catalog.SetSessionResult, error) {
	return call[catalog.SetSessionResult](ctx, x.conn, "set_session", p)
}

func (x *executor) Steer(ctx context.Context, p catalog.SteerParams) (catalog.SteerResult, error) {
	return call[catalog.SteerResult](ctx, x.conn, "steer", p)
}

func (x *executor) YieldTurn(ctx context.Context, p catalog.YieldTurnParams) (catalog.YieldTurnResult, error) {
	return call[catalog.YieldTurnResult](ctx, x.conn, "yield_turn", p)
}

func (x *executor) ReleaseSession(ctx context.Context, p catalog.ReleaseSessionParams) (catalog.ReleaseSessionResult, error) {
	return call[catalog.ReleaseSessionResult](ctx, x.conn, "release_session", p)
}

func (x *executor) RunCommand(ctx context.Context, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	return call[catalog.RunCommandResult](ctx, x.conn, "run_command", p)
}

func (x *executor) StopCommand(ctx context.Context, p catalog.StopCommandParams) (catalog.StopCommandResult, error) {
	return call[catalog.StopCommandResult](ctx, x.conn, "stop_command", p)
}

func (x *executor) Shutdown(ctx context.Context, p catalog.ShutdownParams) (catalog.ShutdownResult, error) {
	return call[catalog.ShutdownResult](ctx, x.conn, "shutdown", p)
}
