package catalogrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/server"
)

// ends is a daemon that receives the ends of tasks.
type ends struct{ catalog.Daemon }

func (ends) ReportCompletion(_ context.Context, p catalog.ReportCompletionParams) error {
	if p.TaskID != "own" {
		return errors.New("not yours")
	}
	return nil
}

func TestTheEndOfATaskIsAcknowledged(t *testing.T) {
	near, far := net.Pipe()
	reg := server.NewRegistry()
	catalogrpc.RegisterDaemon(reg, ends{})
	hub := server.New(reg, server.Options{}).Connect(t.Context(), near, frame.NDJSON)
	executor := server.New(server.NewRegistry(), server.Options{}).Connect(t.Context(), far, frame.NDJSON)
	defer func() {
		executor.End()
		<-executor.Done()
		<-hub.Done()
	}()
	var result json.RawMessage
	require.NoError(t, executor.Call(t.Context(), "report_completion", catalog.ReportCompletionParams{TaskID: "own"}, &result))
	assert.JSONEq(t, `{"acknowledged":true}`, string(result))
	assert.Error(t, executor.Call(t.Context(), "report_completion", catalog.ReportCompletionParams{TaskID: "another"}, &result))
	require.NoError(t, catalogrpc.Daemon(executor).ReportCompletion(t.Context(), catalog.ReportCompletionParams{TaskID: "own"}), "or it is a notification")
}

// The catalog's execute_prompt always has the tools, and none means all.
func TestAPromptAlwaysSaysWhichTools(t *testing.T) {
	for _, c := range []struct {
		tools []string
		want  string
	}{{nil, `[]`}, {[]string{}, `[]`}, {[]string{"Read"}, `["Read"]`}} {
		near, far := net.Pipe()
		reg := server.NewRegistry()
		var got json.RawMessage
		server.Handle(reg, "execute_prompt", func(_ context.Context, p map[string]json.RawMessage) (catalog.ExecutePromptResult, error) {
			got = p["tools"]
			return catalog.ExecutePromptResult{Status: catalog.StatusCompleted}, nil
		})
		executor := server.New(reg, server.Options{}).Connect(t.Context(), near, frame.NDJSON)
		hub := server.New(server.NewRegistry(), server.Options{}).Connect(t.Context(), far, frame.NDJSON)
		_, err := catalogrpc.Executor(hub).ExecutePrompt(t.Context(), catalog.ExecutePromptParams{Prompt: "p", Tools: c.tools})
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got))
		executor.End()
		<-executor.Done()
		<-hub.Done()
	}
}
