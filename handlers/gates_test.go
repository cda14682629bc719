package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/hub"
)

// gatedBy is a hub whose configuration has a gate, and another that waits for trust.
func gatedBy(o *hub.Options) {
	tests := config.Gate{Definition: config.Definition{Name: "tests", Command: []string{"make", "test"}, Directory: "server", Timeout: time.Minute}}
	o.Gates = func() (gate.Configured, error) {
		return gate.Configured{Gates: []config.Gate{tests}, Waiting: []string{"theirs"}}, nil
	}
}

func TestGatesAreListed(t *testing.T) {
	w := newWorld(t, quick, gatedBy)
	c := w.connect(frame.LSP)
	assert.JSONEq(t, `{"gates":[{"name":"tests","command":["make","test"],"directory":"server"}],"waiting":["theirs"]}`, string(c.ask("listGates", "")))
}

func TestAGateIsCheckedBecauseSomebodyAsks(t *testing.T) {
	w := newWorld(t, quick, gatedBy)
	w.executors.command = func(ctx context.Context, p catalog.RunCommandParams) catalog.RunCommandResult {
		w.executors.print(ctx, p, "checking\nmain.go:3:7: undefined: x\nno end")
		return catalog.RunCommandResult{ExitCode: len(p.Command)}
	}
	c := w.connect(frame.LSP)
	r := object(t, c.ask("checkGate", `{"gate":"tests"}`))
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

	// A line for the shell is one, too; what waits for trust is not run.
	assert.Equal(t, "make lint", object(t, c.ask("checkGate", `{"gate":"make lint"}`))["gate"])
	assert.Equal(t, "not_trusted", c.fail("checkGate", `{"gate":"theirs"}`).Data["kind"])
	assert.Equal(t, -32602, c.fail("checkGate", `{"gate":" "}`).Code)
}
