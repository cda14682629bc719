//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the program answers is what its own rpc.discover says, so that clients
// can be made from that.
func TestResultsAreWhatDiscoverSays(t *testing.T) {
	c := newSite(t).start()
	var doc struct {
		Methods []struct {
			Name   string
			Result struct{ Schema json.RawMessage }
		}
	}
	c.call("rpc.discover", nil, &doc)
	schemas := make(map[string]*jsonschema.Schema)
	for _, m := range doc.Methods {
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.Result.Schema))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft7)
		compiler.AssertFormat()
		require.NoError(t, compiler.AddResource("result.json", parsed))
		schemas[m.Name], err = compiler.Compile("result.json")
		require.NoError(t, err)
	}
	holds := func(method string, params any) (raw json.RawMessage) {
		t.Helper()
		c.call(method, params, &raw)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(t, err)
		require.Contains(t, schemas, method)
		assert.NoError(t, schemas[method].Validate(value), "%s: %.2000s", method, raw)
		return raw
	}
	lists := []string{
		"task.list", "daemon.status", "listSessions", "getSessionLeaves", "getRecentPaths", "fetchApprovals", "getRules", "terminal.list",
	}
	for _, method := range lists {
		holds(method, nil)
	}
	var done, waits struct {
		TaskID string `json:"taskId"`
	}
	require.NoError(t, json.Unmarshal(holds("task.submit", object{"prompt": "quiet"}), &done))
	require.NoError(t, json.Unmarshal(holds("task.submit", object{"prompt": "edit"}), &waits)) // asks a permission
	c.subscribe()
	c.await("the question", func(e event) bool { return e.Type == "new_approval" })
	c.await("the end of the first task", func(e event) bool { return e.Type == "session_status_changed" && e.Data.State == "completed" })
	for _, method := range lists {
		holds(method, nil)
	}
	for _, task := range []string{done.TaskID, waits.TaskID} {
		holds("task.get", object{"taskId": task})
		for _, method := range []string{"getSessionState", "getConversation", "getSessionSnapshots", "fetchApprovals"} {
			holds(method, object{"session_id": task})
		}
	}
	holds("task.cancel", object{"taskId": waits.TaskID})
	holds("describeMethods", nil)
	holds("listMethods", nil)
	holds("initialize", object{"capabilities": object{}})
}
