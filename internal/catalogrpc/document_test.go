package catalogrpc

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// The reference of the methods is what the registries say. `make docs` writes it
// anew.
func TestExecutorsDocument(t *testing.T) {
	const path, mark = "../../docs/executors.md", "<!-- What follows is made by `make docs`. -->\n"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	head, _, found := strings.Cut(string(page), mark)
	require.True(t, found, "%s has lost its mark", path)
	hub, theirs := server.NewRegistry(), server.NewRegistry()
	RegisterDaemon(hub, daemon{})
	RegisterEditorFiles(hub, editorFiles{})
	RegisterExecutor(theirs, &executor{})
	testkit.GoldenBytes(t, path, []byte(head+mark+"\n## What the hub serves\n\n"+handlers.Markdown(hub)+"\n## What an executor serves\n\n"+handlers.Markdown(theirs)))
}
