package handlers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/build"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// builtWith configures a hub with c, and with two builds if c has none.
func builtWith(c build.Configured) func(*hub.Options) {
	if c.Builds == nil {
		c.Builds = []config.Build{
			{Definition: config.Definition{Name: "page", Command: []string{"make", "page"}, Timeout: time.Minute}},
			{Definition: config.Definition{Name: "server", Shell: "make server", Directory: "srv", Timeout: time.Minute}, Backend: true},
		}
	}
	return func(o *hub.Options) {
		now := config.Config{Builds: c.Builds}
		if c.Untrusted {
			now.Untrusted = []string{".duet.toml"}
		}
		configure(o, now)
	}
}

func TestABuildTellsWhatIsWrongWhere(t *testing.T) {
	w := newWorld(t, quick, builtWith(build.Configured{}))
	w.executors.command = func(ctx context.Context, p catalog.RunCommandParams) catalog.RunCommandResult {
		w.executors.print(ctx, p, "compiling\nmain.go:3:")
		w.executors.print(ctx, p, "7: undefined: x\nmain.c:1: warning: old\nno end")
		return catalog.RunCommandResult{ExitCode: 2}
	}
	c, other := w.connect(frame.LSP), w.connect(frame.LSP)
	other.ask("Subscribe", `{"event_types":["build_progress"]}`)
	refused := c.fail("build.run", "")
	assert.Equal(t, -32053, refused.Code)
	assert.Equal(t, "page failed: exit status 2, 1 error", refused.Message)
	wrong := map[string]any{"file": "main.go", "line": 3.0, "column": 7.0, "severity": "error", "message": "undefined: x", "source": "go"}
	old := map[string]any{"file": "main.c", "line": 1.0, "severity": "warning", "message": "old", "source": "gcc"}
	id := refused.Data["build_id"]
	delete(refused.Data, "duration_ms")
	assert.Equal(t, map[string]any{
		"kind": "build_failed", "build_id": id, "name": "page", "command": []any{"make", "page"}, "exit_code": 2.0, "diagnostics": []any{wrong, old},
		"output": "compiling\nmain.go:3:7: undefined: x\nmain.c:1: warning: old\nno end",
	}, refused.Data)

	var output string
	var found []any
	for len(c.aside) > 0 {
		m := c.next()
		p := object(t, m.Params)
		assert.Equal(t, id, p["build_id"])
		switch {
		case m.Method == "buildWarning":
			delete(p, "build_id")
			delete(p, "name")
			found = append(found, p)
		case p["stage"] == "started":
			assert.Equal(t, []any{"make", "page"}, p["command"])
		case p["stage"] == "failed":
			assert.Empty(t, c.aside, "the end comes last")
		default:
			assert.Equal(t, "output", p["stage"])
			output += p["output"].(string)
		}
	}
	assert.Equal(t, "compiling\nmain.go:3:7: undefined: x\nmain.c:1: warning: old\nno end", output)
	assert.Equal(t, []any{wrong, old}, found)

	begun, ended := buildEvent(t, other), buildEvent(t, other)
	assert.Equal(t, map[string]any{"build_id": id, "name": "page", "stage": "started", "command": []any{"make", "page"}}, begun)
	delete(ended, "duration_ms")
	assert.Equal(t, map[string]any{
		"build_id": id, "name": "page", "stage": "failed", "command": []any{"make", "page"}, "errors": 1.0, "warnings": 1.0, "diagnostics": []any{wrong, old},
		"reason": "exit status 2",
	}, ended)

	e := c.failsAs("build", "", -32001, "build_failed")
	assert.Equal(t, "Build failed: page failed: exit status 2, 1 error", e.Message, "in the words of application boundaries")
}

// buildEvent returns the data of the next event, which must be build_progress.
func buildEvent(t *testing.T, c *client) map[string]any {
	t.Helper()
	var e struct {
		Event struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		} `json:"event"`
	}
	m := c.next()
	require.NoError(t, json.Unmarshal(m.Params, &e), "%s", m.Params)
	require.Equal(t, "build_progress", e.Event.Type)
	return object(t, e.Event.Data)
}

func TestABackendIsBuiltBesideTheRest(t *testing.T) {
	w := newWorld(t, quick, builtWith(build.Configured{}))
	w.executors.command = func(_ context.Context, p catalog.RunCommandParams) catalog.RunCommandResult {
		assert.Equal(t, []string{"sh", "-c", "make server"}, p.Command)
		assert.True(t, strings.HasSuffix(p.CWD, "srv"), p.CWD)
		return catalog.RunCommandResult{}
	}
	c := w.connect(frame.NDJSON)
	assert.JSONEq(t, `{"builds":[{"name":"page","command":["make","page"],"backend":false,"detected":false},
		{"name":"server","command":["sh","-c","make server"],"directory":"srv","backend":true,"detected":false}]}`, string(c.ask("build.list", "")))
	for method, params := range map[string]string{"buildBackend": "", "build": `{"name":"server"}`, "build.run": `{"backend":true}`} {
		result := object(t, c.ask(method, params))
		assert.Equal(t, []any{true, "server", []any{}}, []any{result["success"], result["name"], result["warnings"]})
	}
	e := c.fail("build", `{"name":"sever"}`)
	assert.Equal(t, -32602, e.Code)
	assert.Equal(t, []any{"page", "server"}, e.Data["accepted"])
}

// A second build of the same name waits for the first, which a cancellation ends.
func TestOneBuildOfANameRunsAtATime(t *testing.T) {
	w := newWorld(t, quick, builtWith(build.Configured{}))
	running := make(chan struct{}, 10)
	w.executors.command = func(ctx context.Context, p catalog.RunCommandParams) catalog.RunCommandResult {
		running <- struct{}{}
		<-ctx.Done()
		return catalog.RunCommandResult{ExitCode: 130, Signal: "SIGINT"}
	}
	c, second := w.connect(frame.LSP), w.connect(frame.LSP)
	first := c.send("build", "")
	<-running
	c.ask("build.list", "")
	waiting := second.send("build", `{"name":"page"}`)
	m := second.next()
	assert.Equal(t, "waiting", testkit.JSONAs[string](t, m.Params, "stage"))
	assert.Empty(t, running, "the second build waits")
	c.cancel(first)
	<-running
	second.cancel(waiting)
}

func TestABuildEndsWithItsConnection(t *testing.T) {
	w := newWorld(t, quick, builtWith(build.Configured{}))
	running, ended := make(chan struct{}), make(chan struct{})
	w.executors.command = func(ctx context.Context, p catalog.RunCommandParams) catalog.RunCommandResult {
		close(running)
		<-ctx.Done()
		close(ended)
		return catalog.RunCommandResult{ExitCode: 130, Signal: "SIGINT"}
	}
	c := w.connect(frame.LSP)
	c.send("build", "")
	<-running
	c.end.Close()
	<-ended
}

func TestNothingIsBuiltThatIsNotTrusted(t *testing.T) {
	w := newWorld(t, quick, builtWith(build.Configured{Untrusted: true}))
	c := w.connect(frame.NDJSON)
	for _, method := range []string{"build", "buildBackend", "build.list"} {
		e := c.fail(method, "")
		assert.Equal(t, -32043, e.Code)
		assert.Contains(t, e.Message, "duet-rpc trust")
	}
	w = newWorld(t, quick) // no build is configured or detected
	c = w.connect(frame.NDJSON)
	assert.Equal(t, "no_build", c.fail("build", "").Data["kind"])
	assert.JSONEq(t, `{"builds":[]}`, string(c.ask("build.list", "")))
}
