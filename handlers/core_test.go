package handlers_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
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
	assert.Contains(t, offer["eventTypes"], "approval_resolved")
	assert.Contains(t, offer["longRunning"], "execute_prompt")

	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{Version: "1", LogLevel: &slog.LevelVar{}, Now: time.Now})
	c = connectTo(t, server.New(reg, server.Options{}), frame.LSP)
	offer = testkit.JSONAs[map[string]any](t, c.ask("initialize", `{"capabilities":{}}`), "capabilities")
	assert.Equal(t, []any{"core"}, offer["methodFamilies"])
	assert.NotContains(t, offer, "eventTypes")
}

func TestAClientSendsItsBuild(t *testing.T) {
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{
		Version: "1", LogLevel: &slog.LevelVar{}, Now: time.Now,
		Build: func(_ context.Context, conn *server.Conn, build, version string) handlers.DaemonBuild {
			return handlers.DaemonBuild{Version: "1", Protocol: 7, Ends: conn != nil && build == "other" && version == "2"}
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
