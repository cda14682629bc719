package handlers_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// An editor's distrust of the workspace applies to its own launches, and to no other client.
func TestAnEditorThatDoesNotTrustTheWorkspace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".duet.toml")
	require.NoError(t, os.WriteFile(file, []byte("[agents.fake]\ncommand = [\"fake\"]\ndriver = \"acp\"\n"), 0o600))
	w := newWorld(t, quick, func(o *hub.Options) { // where the file is trusted
		fakeOf(o).current = func(restricted bool) (*config.Config, error) {
			return config.Load(config.Sources{Project: file, Getenv: func(string) string { return "" }, Restricted: restricted})
		}
	})
	trusts := 0
	workspaces := handlers.NewWorkspaces()
	reg := server.NewRegistry()
	handlers.RegisterCore(reg, handlers.Core{
		LogLevel: new(slog.LevelVar), Now: time.Now, Workspaces: workspaces, Trust: func() error {
			if trusts++; trusts > 1 {
				return errors.New("no")
			}
			return nil
		},
	})
	register(reg, handlers.Domain{
		Hub: func(context.Context) (*hub.Hub, error) { return w.hub, nil }, Clients: func() int { return 0 }, Workspaces: workspaces,
	})
	srv := server.New(reg, server.Options{})
	mine, other := connectTo(t, srv, frame.LSP), connectTo(t, srv, frame.NDJSON)
	launches := map[string]string{
		"launchSession": `{"query":"p","agent":"fake"}`, "task.submit": `{"prompt":"p","agent":"fake"}`, "execute_prompt": `{"prompt":"p","agent":"fake"}`,
	}
	succeeds := func(c *client) {
		t.Helper()
		for method, params := range launches {
			c.ask(method, params)
		}
	}
	succeeds(mine)
	for range 2 { // a repetition changes nothing
		mine.ask("initialize", `{"workspaceTrusted":false}`)
		mine.ask("initialize", `{}`)
		for method, params := range launches {
			e := mine.failsAs(method, params, -32043, "not_trusted", method)
			assert.Contains(t, e.Message, "this editor does not trust the workspace")
		}
		for method, params := range map[string]string{
			"gate.list": "", "gate.check": `{"gate":"true"}`, "build.list": "", "build": "", "project.keep": "",
		} {
			assert.Equal(t, "not_trusted", mine.fail(method, params).Data["kind"], method)
		}
		succeeds(other)
	}
	assert.Zero(t, trusts)
	mine.ask("initialize", `{"workspaceTrusted":true}`)
	assert.Equal(t, 1, trusts)
	succeeds(mine)
	mine.ask("initialize", `{"workspaceTrusted":false}`)
	mine.fail("initialize", `{"workspaceTrusted":true}`)
	assert.Equal(t, "not_trusted", mine.fail("launchSession", launches["launchSession"]).Data["kind"], "a failed request changes nothing")
	mine.rejects("initialize", `{"workspaceTrusted":"no"}`, "workspaceTrusted")
	w.until(func() bool {
		list, err := w.hub.Query().Turns(context.Background(), domain.TurnFilter{States: []domain.State{"queued", "starting", "running"}})
		return err == nil && len(list) == 0
	}, "the end of all turns")
}
