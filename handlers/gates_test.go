package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
)

// gatedBy configures a hub with a gate, and with another one that waits for trust.
func gatedBy(o *hub.Options) {
	tests := config.Gate{Definition: config.Definition{Name: "tests", Command: []string{"make", "test"}, Directory: "server", Timeout: time.Minute}}
	configure(o, config.Config{Gates: []config.Gate{tests}, WaitingGates: []string{"theirs"}})
}

func TestGatesAreListed(t *testing.T) {
	w := newWorld(t, quick, gatedBy)
	c := w.connect(frame.LSP)
	assert.JSONEq(t, `{"gates":[{"name":"tests","command":["make","test"],"directory":"server"}],"waiting":["theirs"]}`, string(c.ask("gate.list", "")))
}

func TestAGateIsCheckedBecauseSomebodyAsks(t *testing.T) {
	w := newWorld(t, quick, gatedBy)
	w.executors.command = func(ctx context.Context, p catalog.RunCommandParams) catalog.RunCommandResult {
		w.executors.print(ctx, p, "checking\nmain.go:3:7: undefined: x\nno end")
		return catalog.RunCommandResult{ExitCode: len(p.Command)}
	}
	c := w.connect(frame.LSP)
	r := object(t, c.ask("gate.check", `{"gate":"tests"}`))
	delete(r, "duration_ms")
	finding := map[string]any{"file": "server/main.go", "line": 3.0, "column": 7.0, "severity": "error", "message": "undefined: x", "source": "go"}
	assert.Equal(t, map[string]any{
		"gate": "tests", "passed": false, "reason": "exit status 2", "findings": []any{finding}, "errors": 1.0, "output": "checking\nmain.go:3:7: undefined: x\nno end",
	}, r)
	var output string
	for len(c.aside) > 0 {
		m := c.next()
		p := object(t, m.Params)
		assert.Equal(t, "gateProgress", m.Method)
		assert.Equal(t, "tests", p["gate"])
		output += p["output"].(string)
	}
	assert.Equal(t, "checking\nmain.go:3:7: undefined: x\nno end", output)

	// A shell command is a gate, too. A gate that waits for trust does not run.
	assert.Equal(t, "make lint", object(t, c.ask("gate.check", `{"gate":"make lint"}`))["gate"])
	assert.Equal(t, "not_trusted", c.fail("gate.check", `{"gate":"theirs"}`).Data["kind"])
	assert.Equal(t, -32602, c.fail("gate.check", `{"gate":" "}`).Code)
}

// news returns short forms of the notifications that preceded a response.
func news(t *testing.T, c *client) (list []string) {
	for len(c.aside) > 0 {
		m := c.next()
		p := object(t, m.Params)
		assert.Equal(t, "mine", p["taskId"])
		text := m.Method
		switch m.Method {
		case "progress":
			text += " " + p["state"].(string)
			if gate, has := p["gate"]; has {
				text += " " + gate.(string)
			}
		case "gateResult":
			text += map[bool]string{true: " passed", false: " failed"}[p["passed"].(bool)]
		case "complete":
			text += " " + p["gates"].(map[string]any)["state"].(string)
		}
		list = append(list, text)
	}
	return list
}

func TestATaskThatIsSentIsToldOfItsGates(t *testing.T) {
	w := newWorld(t, quick)
	status := 1
	w.executors.command = func(ctx context.Context, p catalog.RunCommandParams) catalog.RunCommandResult {
		defer func() { status = 0 }()
		w.executors.print(ctx, p, "main.go:3:7: undefined: x\n")
		return catalog.RunCommandResult{ExitCode: status}
	}
	c := w.connect(frame.NDJSON)
	r := object(t, c.ask("sendTask", `{"prompt":"paint","taskId":"mine","gates":["make test"],"max_iterations":3}`))
	assert.Equal(t, "completed", r["state"])
	gates := r["gates"].(map[string]any)
	assert.Equal(t, []any{"passed", 2.0, 3.0}, []any{gates["state"], gates["iteration"], gates["max_iterations"]})
	turn := []string{"progress queued", "progress starting", "iterationStart", "progress running", "progress completed", "progress checking make test"}
	want := append(append(append([]string{}, turn...), "gateResult failed"), append(turn, "gateResult passed", "complete passed")...)
	assert.Equal(t, want, news(t, c))
}

func TestATaskWhoseGatesStillFail(t *testing.T) {
	w := newWorld(t, quick)
	w.executors.command = func(ctx context.Context, p catalog.RunCommandParams) catalog.RunCommandResult {
		w.executors.print(ctx, p, "main.go:3:7: undefined: x\n")
		return catalog.RunCommandResult{ExitCode: 2}
	}
	c := w.connect(frame.NDJSON)
	e := c.fail("sendTask", `{"prompt":"paint","taskId":"mine","gates":["make test"],"max_iterations":1}`)
	assert.Equal(t, []any{-32002, "Gate failed: make test: they still fail after 1 turn"}, []any{e.Code, e.Message})
	assert.NotEmpty(t, e.Data["session_id"])
	delete(e.Data, "session_id")
	gate := e.Data["gates"].([]any)[0].(map[string]any)
	delete(gate, "duration_ms")
	finding := []any{map[string]any{"file": "main.go", "line": 3.0, "column": 7.0, "severity": "error", "message": "undefined: x", "source": "go"}}
	assert.Equal(t, map[string]any{
		"kind": "gate_failed", "gate": "make test", "findings": finding, "reason": "they still fail after 1 turn", "iterations": 1.0, "max_iterations": 1.0,
		"taskId": "task-0001", "result": "Done: paint",
		"gates": []any{map[string]any{"gate": "make test", "passed": false, "reason": "exit status 2", "findings": finding, "errors": 1.0, "output": "main.go:3:7: undefined: x"}},
	}, e.Data)
	reported := news(t, c)
	require.NotEmpty(t, reported)
	assert.Equal(t, "complete failed", reported[len(reported)-1])

	// HumanLayer's sessions, AIWG's tasks and lists show the failed gates.
	session := object(t, c.ask("getSessionState", `{"session_id":"mine"}`))["session"].(map[string]any)
	assert.Equal(t, "failed", session["gates"].(map[string]any)["state"])
	assert.Len(t, session["gates"].(map[string]any)["results"], 1)
	assert.Equal(t, []any{"make test"}, object(t, c.ask("task.get", `{"taskId":"mine"}`))["gates"].(map[string]any)["failing"])
	assert.Contains(t, string(c.ask("task.list", `{}`)), `"gates":{"state":"failed","reason":"they still fail after 1 turn","iteration":1,"max_iterations":1,"gates":["make test"],"failing":["make test"],"turn":"1.1","turn_uuid":`)
}

// The cancellation of a request ends its gates.
func TestAGateEndsWithItsRequest(t *testing.T) {
	w := newWorld(t, quick)
	checking, ended := make(chan struct{}), make(chan struct{})
	w.executors.command = func(ctx context.Context, _ catalog.RunCommandParams) catalog.RunCommandResult {
		close(checking)
		<-ctx.Done()
		close(ended)
		return catalog.RunCommandResult{ExitCode: 130, Signal: "SIGINT"}
	}
	c := w.connect(frame.NDJSON)
	id := c.send("sendTask", `{"prompt":"paint","taskId":"mine","gates":["make test"]}`)
	<-checking
	c.cancel(id)
	<-ended
}
