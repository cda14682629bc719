package protocol

import (
	"encoding/json"
	"slices"

	"github.com/duet-rpc/duet-rpc/server"
)

// EditorMethod begins the method of each request for an editor; the tool's name follows.
const EditorMethod = "editor."

// Tools of an editor, which agents use through Duet (docs/protocol.md, "The editor's tools").
const (
	EditorDiagnostics = "diagnostics"
	EditorDefinition  = "definition"
	EditorReferences  = "references"
	EditorSymbols     = "symbols"
	EditorBuffers     = "buffers"
	EditorSelection   = "selection"
	EditorOpen        = "open"
)

// EditorTools are the tools that an editor may offer.
var EditorTools = []string{EditorDiagnostics, EditorDefinition, EditorReferences, EditorSymbols, EditorBuffers, EditorSelection, EditorOpen}

type EditorSavedParams struct {
	Paths []string `json:"paths" doc:"Absolute paths of at most 100 files. Others than those of the project and its worktrees are ignored."`
}

func (p EditorSavedParams) Check() error {
	if len(p.Paths) > 100 {
		return server.InvalidParam(server.ParamError{Param: "paths", Expected: "at most 100 paths", Received: "more"})
	}
	return nil
}

type EditorOfferParams struct {
	Client string   `json:"client,omitempty" doc:"The editor's name for people, such as VS Code. At most 100 bytes."`
	Tools  []string `json:"tools" doc:"Names of tools that this connection answers: diagnostics, definition, references, symbols, buffers, selection, open. Empty: none any more."`
}

func (p EditorOfferParams) Check() error {
	if len(p.Client) > 100 {
		return server.InvalidParam(server.ParamError{Param: "client", Expected: "at most 100 bytes", Received: "a longer text"})
	}
	for _, tool := range p.Tools {
		if err := checkEditorTool("tools", tool); err != nil {
			return err
		}
	}
	return nil
}

func checkEditorTool(param, tool string) error {
	if slices.Contains(EditorTools, tool) {
		return nil
	}
	return server.InvalidParam(server.ParamError{
		Param: param, Expected: "names of an editor's tools", Received: "another name", Accepted: EditorTools,
	})
}

type EditorCallParams struct {
	Session   Ref             `json:"session" doc:"The session whose editor is asked. A turn means its session."`
	Tool      string          `json:"tool" doc:"A tool of editor.offer."`
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"An object with the arguments of the tool."`
}

func (p EditorCallParams) Check() error {
	if err := NotEmpty("session", string(p.Session)); err != nil {
		return err
	}
	return checkEditorTool("tool", p.Tool)
}

type EditorCallResult struct {
	Result json.RawMessage `json:"result" doc:"The editor's result."`
}
