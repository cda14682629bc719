package handlers_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/golden"
	"github.com/duet-rpc/duet-rpc/internal/openrpc"
	"github.com/duet-rpc/duet-rpc/server"
)

// everything is a registry with every method, as the program has it.
func everything() *server.Registry {
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{Version: "0.0.0-test", LogLevel: &slog.LevelVar{}, Now: time.Now})
	handlers.RegisterDomain(reg, handlers.Domain{Version: "0.0.0-test"})
	handlers.RegisterTestMethods(reg)
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
	golden.Bytes(t, path, []byte(head+mark+"\n"+openrpc.Markdown(everything())))
}
