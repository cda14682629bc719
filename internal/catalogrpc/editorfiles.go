package catalogrpc

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/server"
)

const readEditorFile = "read_editor_file"

// RegisterEditorFiles registers the method of f.
func RegisterEditorFiles(reg *server.Registry, f catalog.EditorFiles) {
	server.Handle(reg, readEditorFile, f.ReadEditorFile, server.LongRunning(), server.Doc("Returns the contents of a file in the editor that started the task."))
}

// EditorFiles returns the editor files of the hub at the other end of conn.
func EditorFiles(conn *server.Conn) catalog.EditorFiles { return editorFiles{conn} }

type editorFiles struct{ conn *server.Conn }

func (f editorFiles) ReadEditorFile(ctx context.Context, p catalog.ReadEditorFileParams) (catalog.ReadEditorFileResult, error) {
	return call[catalog.ReadEditorFileResult](ctx, f.conn, readEditorFile, p)
}
