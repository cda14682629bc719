package handlers_test

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestHealthTellsWhatIsWrong(t *testing.T) {
	var issues []string
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{
		Version: "1", LogLevel: &slog.LevelVar{}, Now: time.Now, Issues: func() []string { return issues },
	})
	c := connectTo(t, server.New(reg, server.Options{}), frame.LSP)
	assert.JSONEq(t, `{"status":"ok","version":"1"}`, string(c.ask("health", "")))
	issues = []string{"the disk is full"}
	assert.JSONEq(t, `{"status":"degraded","version":"1","issues":["the disk is full"]}`, string(c.ask("health", "")))
}

func TestInitializeOffersWhatThereIs(t *testing.T) {
	c := connectTo(t, server.New(everything(), server.Options{}), frame.LSP)
	assert.JSONEq(t, `{"serverInfo":{"name":"duet-rpc","version":"0.0.0-test"},"protocolVersion":"2.0"}`, string(c.ask("initialize", "")))
	offer := testkit.JSONAs[map[string]any](t, c.ask("initialize", `{"capabilities":{}}`), "capabilities")
	assert.Equal(t, []any{"core", "editor", "task", "session", "executor", "terminal"}, offer["methodFamilies"])
	assert.Contains(t, offer["eventKinds"], "approval.closed")
	assert.Contains(t, offer["longRunning"], "execute_prompt")

	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{Version: "1", LogLevel: &slog.LevelVar{}, Now: time.Now})
	c = connectTo(t, server.New(reg, server.Options{}), frame.LSP)
	offer = testkit.JSONAs[map[string]any](t, c.ask("initialize", `{"capabilities":{}}`), "capabilities")
	assert.Equal(t, []any{"core"}, offer["methodFamilies"])
	assert.NotContains(t, offer, "eventKinds")
}

func TestAClientSendsItsBuild(t *testing.T) {
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{
		Version: "1", LogLevel: &slog.LevelVar{}, Now: time.Now,
		Build: func(_ context.Context, conn *server.Conn, p protocol.ClientBuildParams) handlers.DaemonBuild {
			return handlers.DaemonBuild{Version: "1", Protocol: 7, Ends: conn != nil && p.Build == "other" && p.Version == "2"}
		},
	})
	c := connectTo(t, server.New(reg, server.Options{}), frame.LSP)
	assert.JSONEq(t, `{"version":"1","protocol":7,"ends":false}`, string(c.ask("client.build", `{"notices":true}`)))
	assert.JSONEq(t, `{"version":"1","protocol":7,"ends":true}`, string(c.ask("client.build", `{"build":"other","version":"2"}`)))
}

func TestAClientSendsItsEnvironment(t *testing.T) {
	c := connectTo(t, server.New(everything(), server.Options{}), frame.LSP)
	assert.JSONEq(t, `{"success":true}`, string(c.ask("client.environment", `{"environment":{"DISPLAY":":1"}}`)))
	e := c.fail("client.environment", `{"environment":{"A=B":""}}`)
	assert.Equal(t, []any{-32602, "environment", `the name "A=B", which no variable can have`}, []any{e.Code, e.Data["param"], e.Data["received"]})
}

// everything returns a registry with all methods of the program.
func everything() *server.Registry {
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{Version: "0.0.0-test", LogLevel: &slog.LevelVar{}, Now: time.Now})
	register(reg, handlers.Domain{Version: "0.0.0-test"})
	handlers.RegisterTestMethods(reg)
	return reg
}

// natives returns a registry of the native methods, without the test methods.
func natives() *server.Registry {
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{Version: "0.0.0-test", LogLevel: &slog.LevelVar{}, Now: time.Now})
	handlers.RegisterDomain(reg, handlers.Domain{Version: "0.0.0-test"})
	return reg
}

// docs/methods.md matches the registry. `make docs` writes it.
func TestMethodsDocument(t *testing.T) {
	const path, mark = "../docs/methods.md", "<!-- What follows is made by `make docs`. -->\n"
	head, _, found := strings.Cut(string(must(os.ReadFile(path))(t)), mark)
	require.True(t, found, "%s has lost its mark", path)
	testkit.GoldenBytes(t, path, []byte(head+mark+"\n"+handlers.Markdown(everything())+handlers.EventsMarkdown(humanlayer.TypeOf)))
}

// The types of the VS Code extension match the registry. `make generate` writes them.
func TestTypeScriptTypes(t *testing.T) {
	testkit.GoldenBytes(t, "../vscode/src/protocol.ts", []byte(handlers.TypeScript(natives())))
}

// The names and words of Emacs match the registry. `make generate` writes them.
func TestEmacsNames(t *testing.T) {
	testkit.GoldenBytes(t, "../emacs/duet-protocol.el", []byte(handlers.EmacsLisp(natives())))
}

// The calls of the Go client match the registry. `make generate` writes them.
func TestGoCalls(t *testing.T) {
	testkit.GoldenBytes(t, "../internal/hubclient/calls.go", []byte(handlers.GoCalls(natives())))
}

// The end of Serve waits for all goroutines of its connection.
func TestAConnectionLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, quick)
	reg, workspaces := server.NewRegistry(), handlers.NewWorkspaces()
	handlers.RegisterCore(reg, handlers.Core{LogLevel: new(slog.LevelVar), Workspaces: workspaces})
	register(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) { return w.hub, nil }, Clients: func() int { return 0 }, Workspaces: workspaces,
	})
	srv := server.New(reg, server.Options{})
	for range 20 {
		c := connectTo(t, srv, frame.LSP)
		c.ask("spawn_terminal", "")
		c.ask("Subscribe", `{"since":0}`)
		c.ask("task.list", "") // starts task notifications
		c.ask("initialize", `{"workspaceTrusted":false}`)
		assert.NotEmpty(t, goroutinesOfHandlers(), "the test can see the goroutines")
		c.close()
		assert.Empty(t, goroutinesOfHandlers())
	}
}

// goroutinesOfHandlers returns the stacks of the goroutines that run functions of the package.
func goroutinesOfHandlers() []string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var list []string
	for _, g := range regexp.MustCompile(`\n\n`).Split(string(stacks), -1) {
		if regexp.MustCompile(`\n.*/handlers\.[^\n]*\n`).MatchString(g) {
			list = append(list, g)
		}
	}
	return list
}
