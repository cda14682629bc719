package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// The MCP server that Duet gives each of its agents: the tools of the user's editor.

const editorInstructions = `These tools show what the user's editor knows of the project: diagnostics of its language servers, definitions, references and symbols, open files with unsaved changes, and what the user has selected. They change nothing and need no permission. open shows the user a place. Paths are absolute, or relative to your working directory; lines and columns count from 1. If no editor is connected, the tools say so: do not try again at once.`

const (
	editorPath     = `"path":{"type":"string","description":"The file."}`
	editorPosition = editorPath + `,"line":{"type":"integer","minimum":1,"description":"The line."},"symbol":{"type":"string","description":"The name, as it stands in that line. The easiest way to say where in the line it is."},"column":{"type":"integer","minimum":1,"description":"The column, in place of symbol."}`
)

var editorTools = []view{
	{
		protocol.EditorDiagnostics, "", "Diagnostics", "Lists errors and warnings that the editor shows: of one file, or of all files that it " +
			"knows. They come from language servers and linters, and include changes that are not saved.",
		`{"type":"object","properties":{"path":{"type":"string","description":"Only those of this file."}}}`,
	},
	{
		protocol.EditorDefinition, "", "Definition", "Finds where the symbol at a place is defined. More exact than a text search.",
		`{"type":"object","properties":{` + editorPosition + `},"required":["path","line"]}`,
	},
	{
		protocol.EditorReferences, "", "References", "Finds where the symbol at a place is used. More exact than a text search.",
		`{"type":"object","properties":{` + editorPosition + `},"required":["path","line"]}`,
	},
	{
		protocol.EditorSymbols, "", "Symbols", "Lists the symbols of a file (functions, types, methods, ...), or with query those of the " +
			"project whose name contains it.",
		`{"type":"object","properties":{` + editorPath + `,"query":{"type":"string","description":"Part of a name."}}}`,
	},
	{
		protocol.EditorBuffers, "", "Open files", "Lists the project's files that are open in the editor: which of them the user sees, and the " +
			"text of those with unsaved changes.",
		`{"type":"object","properties":{}}`,
	},
	{
		protocol.EditorSelection, "", "Selection", "Returns where the user's cursor is and the text that the user has selected.",
		`{"type":"object","properties":{}}`,
	},
	{
		protocol.EditorOpen, "", "Show a place", "Shows the user a file in the editor, at a line. The user's cursor stays where it is.",
		`{"type":"object","properties":{` + editorPath + `,"line":{"type":"integer","minimum":1,"description":"The line."}},"required":["path"]}`,
	},
}

// serveEditorTools serves an agent of a session until it disconnects or ctx ends. It connects
// to the hub for each call: a connection that stays would count as a client, for which the daemon
// lives on.
func serveEditorTools(ctx context.Context, in io.ReadCloser, out io.WriteCloser, s *hubprocess.Settings, session string) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "duet-editor", Title: "The user's editor", Version: s.Version}, &mcp.ServerOptions{
		Instructions: editorInstructions, Logger: slog.New(slog.DiscardHandler),
	})
	for _, tool := range editorTools {
		server.AddTool(&mcp.Tool{
			Name: tool.tool, Title: tool.title, Description: tool.description, InputSchema: json.RawMessage(tool.schema),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)},
		}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := askEditor(ctx, s, protocol.EditorCallParams{Session: protocol.Ref(session), Tool: tool.tool, Arguments: r.Params.Arguments})
			if err != nil {
				return failed(err.Error()), nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	}
	err := server.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: mostLine})
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// askEditor calls a tool of the editor by the hub that runs now, and returns its result as text.
func askEditor(ctx context.Context, s *hubprocess.Settings, p protocol.EditorCallParams) (string, error) {
	project, err := s.Project()
	if err != nil {
		return "", errNoHub
	}
	c, err := hubprocess.Dial(ctx, s, project)
	if err != nil {
		return "", errNoHub
	}
	defer c.Close()
	var r protocol.EditorCallResult
	err = c.Call(ctx, "editor.call", p, &r, client.WithTimeout(0))
	err = forAgent(err)
	if refused, ok := hubclient.RefusalOf(err); ok {
		return "", errors.New(refused.Message)
	}
	return string(r.Result), err
}

// errNoHub is what an agent learns about a hub that cannot be reached.
var errNoHub = errors.New("the daemon cannot be reached; `duet-rpc doctor` tells the user why")

// forAgent returns the error of a call of the hub for an agent. Why there is no hub is for the user
// alone: that may name files of the user, such as the database.
func forAgent(err error) error {
	refused, isRefused := errors.AsType[*client.Error](err)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isRefused && refused.Code != codeHubLost && refused.Kind() != "subsystem_unavailable":
		return err
	}
	return errNoHub
}
