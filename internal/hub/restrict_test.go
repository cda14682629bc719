package hub

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

const projectFile = `
[agents.project]
driver = "command"
command = ["runs", "anything"]
[keys.service]
env = "PROJECT_KEY"
[[rules]]
effect = "allow"
tool = "Bash"
`

// openTrusted opens a hub in a project whose file the user trusts.
func openTrusted(t *testing.T, beginning string, play play) *Hub {
	path := database(t)
	dir := t.TempDir()
	file, user := filepath.Join(dir, ".duet.toml"), filepath.Join(dir, "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(beginning+projectFile), 0o600))
	require.NoError(t, os.WriteFile(user, []byte("[agents.mine]\ndriver = \"command\"\ncommand = [\"mine\"]\n"), 0o600))
	store := config.NewTrust(filepath.Join(dir, "trusted.json"))
	require.NoError(t, store.Trust(file, []byte(beginning+projectFile)))
	load := func(restricted bool) (*config.Config, error) {
		return config.Load(config.Sources{Project: file, User: user, Trust: store, Getenv: func(string) string { return "" }, Restricted: restricted})
	}
	c := must(load(false))(t)
	return openHub(t, path, play, func(o *Options) {
		fakeOf(o).Agents, fakeOf(o).rules = c, always(c.Rules)
		o.Getenv = func(name string) string { return map[string]string{"PROJECT_KEY": "secret"}[name] }
		fakeOf(o).current = load
	})
}

func TestNothingOfTheProjectsFileRunsForARestrictedEditor(t *testing.T) {
	ctx := context.Background()
	h := openTrusted(t, `default_agent = "project"`, func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed })
	untrusting := clientenv.Restrict(ctx)
	refused := func(err error) {
		t.Helper()
		assert.Equal(t, domain.KindNotTrusted, kindOf(t, err))
		assert.Contains(t, err.Error(), "this editor does not trust the workspace")
	}
	_, err := h.Launch(untrusting, LaunchSpec{Prompt: "p", Agent: "project"})
	refused(err)
	assert.Equal(t, "demo", must(h.Launch(untrusting, LaunchSpec{Prompt: "p"}))(t).Agent, "nor does the file choose")
	must(h.Launch(untrusting, LaunchSpec{Prompt: "p", Source: domain.SourceChat, Chat: true}))(t)

	// Other clients still trust the project, but their turns cannot be continued from here.
	trusted := must(h.Launch(ctx, LaunchSpec{Prompt: "p", SessionAlias: "theirs"}))(t)
	assert.Equal(t, domain.Completed, await(t, h, trusted).State)
	_, err = h.Continue(untrusting, ContinueSpec{From: trusted.HumanLayerSession, Prompt: "p"})
	refused(err)
	draft := must(h.Launch(ctx, LaunchSpec{Prompt: "p", Draft: true}))(t)
	_, err = h.Continue(untrusting, ContinueSpec{From: draft.HumanLayerSession})
	refused(err)
	draft = must(h.Continue(ctx, ContinueSpec{From: draft.HumanLayerSession}))(t)
	assert.Equal(t, domain.Completed, await(t, h, draft).State)

	mine := must(h.Launch(untrusting, LaunchSpec{Prompt: "p", Agent: "mine", Metadata: []byte(`{"workspace_trusted":true,"a":1}`)}))(t)
	assert.Equal(t, domain.Completed, await(t, h, mine).State)
	assert.True(t, mine.Restricted)
	assert.JSONEq(t, `{"workspace_trusted":true,"a":1}`, string(mine.Metadata), "which is the caller's own")
	must(h.Continue(untrusting, ContinueSpec{From: mine.HumanLayerSession, Prompt: "p"}))(t)
}

// A restricted turn uses no key command and no allow rule of the project's file.
func TestWhatARestrictedEditorLaunchedIsRestrictedWhileItRuns(t *testing.T) {
	synctest.Test(t, testRestrictedLaunch)
}

func testRestrictedLaunch(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	outcomes := make(chan error, 2)
	var passed atomic.Bool
	h := openTrusted(t, "", func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		_, err := x.daemon.GetAPIKey(ctx, catalog.GetAPIKeyParams{SessionToken: x.p.SessionToken, Service: "service"})
		outcomes <- err
		r := x.ask(ctx, "Bash", map[string]string{"command": "true"})
		passed.Store(r.Reason == "rule=project")
		return completed
	})
	for _, c := range []struct {
		ctx  context.Context
		free bool
	}{{ctx, true}, {clientenv.Restrict(ctx), false}} {
		s := must(h.Launch(c.ctx, LaunchSpec{Prompt: "p", Agent: "mine"}))(t)
		if err := <-outcomes; c.free {
			require.NoError(t, err)
		} else {
			assert.Equal(t, domain.KindNoAPIKey, kindOf(t, err))
			approve(t, h, pendingOf(t, h, 1)[0], "")
		}
		await(t, h, s)
		assert.Equal(t, c.free, passed.Load())
	}
}

func TestARestrictedEditorResumesNothingOfTheProjects(t *testing.T) {
	h := openTrusted(t, "", func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.ask(ctx, "Write", map[string]string{"file_path": "a"})
		return lost
	})
	must(h.Launch(context.Background(), LaunchSpec{Prompt: "p", Agent: "project", SessionAlias: "theirs"}))(t)
	asked := pendingOf(t, h, 1)[0]
	require.NoError(t, h.store.Write(context.Background(), func(tx store.Tx) error { return h.abandon(tx, codeOrphaned, "gone") }))
	_, err := h.Approvals().Decide(clientenv.Restrict(context.Background()), approval.Decision{ID: asked.ID, Decision: "approve"})
	assert.Equal(t, domain.KindNotTrusted, kindOf(t, err))
	assert.Len(t, pendingOf(t, h, 1), 1, "it stays open")
	_, err = h.Launch(clientenv.Restrict(context.Background()), LaunchSpec{Prompt: "p", SessionAlias: "theirs"}) // another agent than the default
	assert.Equal(t, domain.KindNotTrusted, kindOf(t, err))
}
