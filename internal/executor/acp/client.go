package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/workspace"
)

// serve answers a request of the agent. Each has a goroutine of its own; ctx
// ends with the agent, or when the agent takes the request back.
func (a *agent) serve(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	defer a.open.Add(-1)
	if isQuestion(method) {
		defer a.own.questionAnswered()
	}
	if t := a.current.Load(); t != nil {
		if method == acp.ClientMethodTerminalWaitForExit {
			defer t.silence.WaitsForProgram()()
		} else {
			defer t.silence.Waits()()
		}
	}
	switch method {
	case acp.ClientMethodSessionUpdate: // as a request; the filter has served it
		return struct{}{}, nil
	case acp.ClientMethodSessionRequestPermission:
		return handle(ctx, params, a.requestPermission)
	case acp.ClientMethodElicitationCreate:
		return handle(ctx, params, a.elicit)
	case acp.ClientMethodFsReadTextFile:
		return handle(ctx, params, a.readTextFile)
	case acp.ClientMethodFsWriteTextFile:
		return handle(ctx, params, a.writeTextFile)
	case acp.ClientMethodTerminalCreate:
		return handle(ctx, params, a.createTerminal)
	case acp.ClientMethodTerminalOutput:
		return handle(ctx, params, a.terminalOutput)
	case acp.ClientMethodTerminalWaitForExit:
		return handle(ctx, params, a.awaitTerminal)
	case acp.ClientMethodTerminalKill:
		return handle(ctx, params, a.killTerminal)
	case acp.ClientMethodTerminalRelease:
		return handle(ctx, params, a.releaseTerminal)
	}
	if method == qwenStartTurn {
		return struct{}{}, nil
	}
	return nil, acp.NewMethodNotFound(method)
}

// handle decodes params for f and makes of its error what the agent is told.
func handle[P, R any](ctx context.Context, params json.RawMessage, f func(context.Context, P) (R, error)) (any, *acp.RequestError) {
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	result, err := f(ctx, p)
	var wire *acp.RequestError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &wire):
		return nil, wire
	}
	return nil, &acp.RequestError{Code: acp.NewInternalError(nil).Code, Message: err.Error()}
}

// resourceNotFound is what an agent is told of a file that does not exist (schema of
// the Agent Client Protocol, ErrorCode).
const resourceNotFound = -32002

func (a *agent) readTextFile(ctx context.Context, p acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	a.acted()
	text, err := a.workspace.ReadText(p.Path, p.Line, p.Limit)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // else the agent may not read it, whoever has it
		if edited, has := a.inEditor(ctx, p.Path); has {
			return acp.ReadTextFileResponse{Content: workspace.Lines(edited, p.Line, p.Limit)}, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // the protocol has a code for it, by which agents know a file that they may make
		return acp.ReadTextFileResponse{}, &acp.RequestError{Code: resourceNotFound, Message: "Resource not found: " + p.Path}
	}
	return acp.ReadTextFileResponse{Content: text}, err
}

// inEditor is a file as the editor has it that began the turn, if one has.
func (a *agent) inEditor(ctx context.Context, path string) (text string, has bool) {
	t, files := a.current.Load(), a.driver.opts.EditorFiles
	if t == nil || files == nil {
		return "", false
	}
	r, err := files.ReadEditorFile(ctx, catalog.ReadEditorFileParams{TaskID: t.ID, Path: path})
	return r.Text, err == nil && r.Found
}

func (a *agent) writeTextFile(ctx context.Context, p acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	a.acted()
	if err := a.allowed(ctx, a.writing(p.Path)); err != nil {
		return acp.WriteTextFileResponse{}, err
	}
	t := a.current.Load()
	if t != nil {
		t.Files.Track(p.Path, false, nil)
	}
	err := a.workspace.WriteText(p.Path, p.Content)
	if t != nil && err == nil {
		t.Files.Settle(p.Path)
	}
	return acp.WriteTextFileResponse{}, err
}
