package demoagent

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"
)

func (t *turn) changeMode(ctx context.Context, arg argument) error {
	mode, err := findMode(arg.word)
	if err != nil {
		return err
	}
	t.session.change(func(r *record) { r.Mode = mode })
	return t.update(ctx, acp.SessionUpdate{CurrentModeUpdate: &acp.SessionCurrentModeUpdate{CurrentModeId: acp.SessionModeId(mode)}})
}

func (t *turn) think(ctx context.Context, _ argument) error {
	for word := range strings.SplitAfterSeq("The human wants to see me think, so I think. ", " ") {
		if word == "" {
			continue
		}
		if err := t.update(ctx, acp.UpdateAgentThoughtText(word)); err != nil {
			return err
		}
		t.wrote(word, true)
		if err := pause(ctx, t.opts.Delay); err != nil {
			return err
		}
	}
	return nil
}

const (
	questionText = "Which colour do you like?"
	colours      = "red green blue"
)

// question asks the human something that is no permission.
func (t *turn) question(ctx context.Context, _ argument) error {
	var options []acp.PermissionOption
	for colour := range strings.FieldsSeq(colours) {
		options = append(options, acp.PermissionOption{OptionId: acp.PermissionOptionId(colour), Name: colour, Kind: acp.PermissionOptionKindAllowOnce})
	}
	resp, err := t.requestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: t.id, Options: options,
		ToolCall: acp.ToolCallUpdate{
			ToolCallId: t.newCallID(), Title: acp.Ptr(questionText), Kind: acp.Ptr(acp.ToolKindOther), Status: acp.Ptr(acp.ToolCallStatusPending),
			RawInput: map[string]any{"question": questionText},
			Meta:     map[string]any{"duet": map[string]any{"question": true}},
		},
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return t.say(ctx, fmt.Sprintf("I could not ask: %v. ", err))
	}
	answer := ""
	if extra, ok := resp.Meta["duet"].(map[string]any); ok {
		answer, _ = extra["response"].(string)
	}
	switch {
	case answer != "": // in the human's own words
	case resp.Outcome.Selected == nil:
		return errCancelled
	default:
		answer = string(resp.Outcome.Selected.OptionId) // an option's name is its id
	}
	return t.say(ctx, fmt.Sprintf("You answered: %s. ", answer))
}

// releaseWithin is how long the client may take to end and release the
// terminal of a cancelled turn.
const releaseWithin = 500 * time.Millisecond

// A terminalHost runs programs in terminals.
type terminalHost interface {
	CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error)
	WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error)
	TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error)
	ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error)
}

// terminalHost is the client, or the agent itself in version 2.
func (t *turn) terminalHost() terminalHost {
	if t.v2.on.Load() {
		return &t.v2.terminals
	}
	return t.conn
}

// terminal runs a command in a terminal of the client, or of its own in version 2.
func (t *turn) terminal(ctx context.Context, _ argument) error {
	if !t.capabilities().Terminal {
		return t.say(ctx, "The client offers no terminal. ")
	}
	command := []string{"ls", "-la"}
	if runtime.GOOS == "windows" {
		command = []string{"cmd", "/c", "echo hello"}
	}
	call := t.newCall("Bash", "Bash", acp.ToolKindExecute, map[string]any{"command": strings.Join(command, " ")})
	if err := t.update(ctx, acp.SessionUpdate{ToolCall: &call}); err != nil {
		return err
	}
	err := t.runInTerminal(ctx, command, &call)
	status := acp.ToolCallStatusCompleted
	if err != nil {
		status = acp.ToolCallStatusFailed
	}
	endErr := t.end(ctx, call, status)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case endErr != nil:
		return endErr
	case err != nil:
		return t.say(ctx, fmt.Sprintf("The command did not work: %v. ", err))
	}
	return t.say(ctx, "The command is done. ")
}

func (t *turn) runInTerminal(ctx context.Context, command []string, call *acp.SessionUpdateToolCall) error {
	host := t.terminalHost()
	made, err := host.CreateTerminal(ctx, acp.CreateTerminalRequest{
		SessionId: t.id, Command: command[0], Args: command[1:], Cwd: &t.cwd, OutputByteLimit: acp.Ptr(keptText),
	})
	if err != nil {
		return fmt.Errorf("making a terminal: %w", err)
	}
	defer t.release(ctx, host, made.TerminalId)
	call.Content = []acp.ToolCallContent{acp.ToolTerminalRef(made.TerminalId)}
	if err := t.update(ctx, acp.UpdateToolCall(call.ToolCallId,
		acp.WithUpdateStatus(acp.ToolCallStatusInProgress), acp.WithUpdateContent(call.Content))); err != nil {
		return err
	}
	exit, err := host.WaitForTerminalExit(ctx, acp.WaitForTerminalExitRequest{SessionId: t.id, TerminalId: made.TerminalId})
	if err != nil {
		return fmt.Errorf("waiting for the command: %w", err)
	}
	output, err := host.TerminalOutput(ctx, acp.TerminalOutputRequest{SessionId: t.id, TerminalId: made.TerminalId})
	if err != nil {
		return fmt.Errorf("reading the command's output: %w", err)
	}
	call.RawOutput = output.Output
	if exit.ExitCode == nil || *exit.ExitCode != 0 {
		return fmt.Errorf("it ended with %s", describeExit(exit))
	}
	return nil
}

func describeExit(exit acp.WaitForTerminalExitResponse) string {
	switch {
	case exit.ExitCode != nil:
		return fmt.Sprintf("status %d", *exit.ExitCode)
	case exit.Signal != nil:
		return "signal " + *exit.Signal
	}
	return "no status"
}

// release gives the terminal back; the command of a cancelled turn is ended
// by that.
func (t *turn) release(ctx context.Context, host terminalHost, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	_, _ = host.ReleaseTerminal(ctx, acp.ReleaseTerminalRequest{SessionId: t.id, TerminalId: id})
}

func (t *turn) fail(context.Context, argument) error {
	return refusal(-32603, "the demo agent was asked to fail")
}

func (t *turn) refuse(context.Context, argument) error { return errRefused }

// crash ends the process: Serve returns, and the reply is never sent.
func (t *turn) crash(context.Context, argument) error {
	select {
	case t.crashed <- struct{}{}:
	default:
	}
	<-t.ctx.Done()
	return errClosed
}

// hang waits for the end of the connection, whatever else happens.
func (t *turn) hang(context.Context, argument) error {
	if t.opts.OnHang != nil {
		t.opts.OnHang()
	}
	<-t.ctx.Done()
	return errClosed
}
