package demoagent

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/sourcegraph/jsonrpc2"
)

func (t *turn) changeMode(ctx context.Context, arg argument) error {
	mode, err := findMode(arg.word)
	if err != nil {
		return err
	}
	t.session.change(func(r *record) { r.Mode = mode })
	if !t.served().HasModes() {
		return t.update(ctx, acp.ConfigUpdate{Kind: acp.KindConfig, ConfigOptions: modeOptions(mode)})
	}
	return t.update(ctx, acp.ModeUpdate{Kind: acp.KindMode, Current: mode})
}

func (t *turn) think(ctx context.Context, _ argument) error {
	for word := range strings.SplitAfterSeq("The human wants to see me think, so I think. ", " ") {
		if word == "" {
			continue
		}
		if err := t.update(ctx, textChunk(acp.KindAgentThoughtChunk, word)); err != nil {
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

// question asks the user a question that is not a permission.
func (t *turn) question(ctx context.Context, _ argument) error {
	var options []acp.PermissionOption
	for colour := range strings.FieldsSeq(colours) {
		options = append(options, acp.PermissionOption{OptionID: colour, Name: colour, Kind: acp.AllowOnce})
	}
	resp, err := t.requestPermission(ctx, options, acp.ToolCall{
		ToolCallID: t.newCallID(), Title: questionText, ToolKind: "other", Status: acp.ToolPending,
		RawInput: encode(map[string]any{"question": questionText}),
		Meta:     map[string]any{"duet": map[string]any{"question": true}},
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
	case answer != "": // in the user's own words
	case resp.Outcome.Outcome != acp.Selected:
		return errCancelled
	default:
		answer = resp.Outcome.OptionID // the name of an option is its id
	}
	return t.say(ctx, fmt.Sprintf("You answered: %s. ", answer))
}

// releaseWithin is how long the client may take to end and release the terminal of a cancelled
// turn.
const releaseWithin = 500 * time.Millisecond

// A terminalHost runs programs in terminals.
type terminalHost interface {
	create(context.Context, acp.TerminalCreateParams) (acp.TerminalParams, error)
	wait(context.Context, acp.TerminalParams) (acp.ExitStatus, error)
	output(context.Context, acp.TerminalParams) (acp.TerminalOutputResult, error)
	release(context.Context, acp.TerminalParams) error
}

// terminalHost returns the agent itself if the client shows its terminals, or else the client.
func (t *turn) terminalHost() terminalHost {
	if t.served().HasTerminals() {
		return &t.terminals
	}
	return clientTerminals{t.agent}
}

// clientTerminals runs programs in terminals of the client.
type clientTerminals struct{ agent *agent }

func (c clientTerminals) create(ctx context.Context, p acp.TerminalCreateParams) (acp.TerminalParams, error) {
	return askClient[acp.TerminalParams](ctx, c.agent, acp.MethodTerminalCreate, p)
}

func (c clientTerminals) wait(ctx context.Context, p acp.TerminalParams) (acp.ExitStatus, error) {
	return askClient[acp.ExitStatus](ctx, c.agent, acp.MethodTerminalWait, p)
}

func (c clientTerminals) output(ctx context.Context, p acp.TerminalParams) (acp.TerminalOutputResult, error) {
	return askClient[acp.TerminalOutputResult](ctx, c.agent, acp.MethodTerminalOutput, p)
}

func (c clientTerminals) release(ctx context.Context, p acp.TerminalParams) error {
	_, err := acp.Call[acp.Empty](ctx, c.agent.conn, acp.MethodTerminalRelease, p)
	return err
}

// terminal runs a command in a terminal of the agent or of the client.
func (t *turn) terminal(ctx context.Context, _ argument) error {
	if client := t.served(); !client.HasTerminals() && !client.Can.Terminal {
		return t.say(ctx, "The client offers no terminal. ")
	}
	command := []string{"ls", "-la"}
	if runtime.GOOS == "windows" {
		command = []string{"cmd", "/c", "echo hello"}
	}
	call := t.newCall("Bash", "Bash", kindExecute, map[string]any{"command": strings.Join(command, " ")})
	if err := t.update(ctx, call); err != nil {
		return err
	}
	err := t.runInTerminal(ctx, command, &call)
	status := acp.ToolCompleted
	if err != nil {
		status = acp.ToolFailed
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

func (t *turn) runInTerminal(ctx context.Context, command []string, call *acp.ToolCall) error {
	host := t.terminalHost()
	made, err := host.create(ctx, acp.TerminalCreateParams{
		SessionID: t.id, Command: command[0], Args: command[1:], CWD: &t.cwd, OutputByteLimit: new(keptText),
	})
	if err != nil {
		return fmt.Errorf("making a terminal: %w", err)
	}
	made.SessionID = t.id
	defer t.release(ctx, host, made)
	call.Content = []acp.ToolContent{{Type: "terminal", TerminalID: made.TerminalID}}
	working := acp.ToolCall{Kind: acp.KindToolUpdate, ToolCallID: call.ToolCallID, Status: acp.ToolInProgress, Content: call.Content}
	if err := t.update(ctx, working); err != nil {
		return err
	}
	exit, err := host.wait(ctx, made)
	if err != nil {
		return fmt.Errorf("waiting for the command: %w", err)
	}
	output, err := host.output(ctx, made)
	if err != nil {
		return fmt.Errorf("reading the command's output: %w", err)
	}
	call.RawOutput = encode(output.Output)
	if exit.ExitCode == nil || *exit.ExitCode != 0 {
		return fmt.Errorf("it ended with %s", describeExit(exit))
	}
	return nil
}

func describeExit(exit acp.ExitStatus) string {
	switch {
	case exit.ExitCode != nil:
		return fmt.Sprintf("status %d", *exit.ExitCode)
	case exit.Signal != "":
		return "signal " + exit.Signal
	}
	return "no status"
}

// release releases the terminal, which also ends the command of a cancelled turn.
func (t *turn) release(ctx context.Context, host terminalHost, p acp.TerminalParams) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	_ = host.release(ctx, p)
}

func (t *turn) fail(context.Context, argument) error {
	return refusal(jsonrpc2.CodeInternalError, "the demo agent was asked to fail")
}

func (t *turn) refuse(context.Context, argument) error { return errRefused }

// crash ends the process: Serve returns, and the response is never sent.
func (t *turn) crash(context.Context, argument) error {
	select {
	case t.crashed <- struct{}{}:
	default:
	}
	<-t.ctx.Done()
	return errClosed
}

// hang ignores everything until the connection ends.
func (t *turn) hang(context.Context, argument) error {
	if t.opts.OnHang != nil {
		t.opts.OnHang()
	}
	<-t.ctx.Done()
	return errClosed
}
