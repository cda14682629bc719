package handlers_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

// everything is a registry with every method that the program can have.
func everything() *server.Registry {
	reg := served()
	handlers.RegisterTestMethods(reg)
	return reg
}

// served is a registry with every method that users have.
func served() *server.Registry {
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{Version: "0.0.0-test", LogLevel: &slog.LevelVar{}, Now: time.Now})
	handlers.RegisterDomain(reg, handlers.Domain{Version: "0.0.0-test"})
	return reg
}

// The reference of the methods is what the registry says. `make docs` writes
// it anew.
func TestProtocolDocument(t *testing.T) {
	const path, mark = "../docs/protocol.md", "<!-- What follows is made by `make docs`. -->\n"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	head, _, found := strings.Cut(string(page), mark)
	require.True(t, found, "%s has lost its mark", path)
	testkit.GoldenBytes(t, path, []byte(head+mark+"\n"+handlers.Markdown(everything())))
}

// The types of the extension of VS Code are what the registry says. `make generate`
// writes them anew.
func TestTypeScriptTypes(t *testing.T) {
	testkit.GoldenBytes(t, "../vscode/src/protocol.ts", []byte(handlers.TypeScript(served())))
}
