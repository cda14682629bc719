package eventrow

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

var (
	text = "a <b> & c"
	yes  = true
	raw  = json.RawMessage(`{"a":1.50,"a":"<b>"}`)
	ref  = domain.RunRef{SessionID: "s", RunID: "r", Task: 3}

	diffs = []domain.Diff{{Path: "/p", OldText: &text, NewText: "n"}, {Path: "/new"}}
)

const (
	diffsRow   = `[{"path":"/p","old_text":"a <b> & c","new_text":"n"},{"path":"/new","new_text":""}]`
	detailsRow = `{"paths":["/p"],"diffs":` + diffsRow + `,"terminal":"t"}`
	optionsRow = `[{"option_id":"o","name":"Yes","kind":"allow_once"},{"name":"another","kind":"ask_the_boss","_meta":{"a":1.50,"a":"<b>"},"hint":1.50},{}]`
)

var (
	options = []domain.Option{
		{ID: "o", Name: "Yes", Kind: domain.AllowOnce},
		{Name: "another", Kind: "ask_the_boss", Extra: map[string]json.RawMessage{"_meta": raw, "hint": json.RawMessage("1.50")}},
		{},
	}
	details = domain.ToolDetails{Paths: []string{"/p"}, Diffs: diffs, Terminal: "t"}
)

// Programs to come read what this one writes, so its spelling does not change.
func TestTheSpellingOfARowStaysAsItIs(t *testing.T) {
	const run = `{"run":{"session":"s","id":"r","task":3},"payload":`
	pinned := make(map[domain.EventKind]bool)
	for _, c := range []struct {
		payload domain.Payload
		data    string
	}{
		{
			domain.RunStateChanged{ThreadUUID: "t", From: domain.Running, To: domain.Failed, ParentSession: "p", Title: text, Agent: "a", Reason: "r", Error: "e", ErrorCode: "C", StopReason: "s"},
			`{"thread":"t","from":"running","to":"failed","parent_session":"p","title":"a <b> & c","agent":"a","reason":"r","error":"e","error_code":"C","stop_reason":"s"}`,
		},
		{
			domain.MessageAdded{NativeSession: "n", Type: "message", Key: "k", Role: "user", Text: text, Subtype: "s", Truncated: true},
			`{"native":"n","type":"message","key":"k","role":"user","text":"a <b> & c","subtype":"s","truncated":true}`,
		},
		{
			domain.ToolCallChanged{NativeSession: "n", ID: "i", Name: "N", Title: "t", ToolKind: "k", Status: "s", ParentID: "p", Input: raw, Details: &details, Ended: true, Result: "r", Truncated: true},
			`{"native":"n","id":"i","name":"N","title":"t","kind":"k","status":"s","parent":"p","input":{"a":1.50,"a":"<b>"},"details":` + detailsRow + `,"ended":true,"result":"r","truncated":true}`,
		},
		{
			domain.ApprovalRequested{
				ApprovalID: "a", CallID: "c", ToolUseID: "u", Type: "t", Tool: "T", Input: raw, ToolKind: "k", InputEditable: true, Ambiguity: "y", Title: "t", Subject: "s",
				Options: options, Paths: []string{"/p"}, Diffs: diffs, Stale: true, Reopens: "r", Reopened: "w", Replayed: true, Truncated: true,
			},
			`{"id":"a","call":"c","tool_use":"u","type":"t","tool":"T","input":{"a":1.50,"a":"<b>"},"tool_kind":"k","input_editable":true,"ambiguity":"y","title":"t","subject":"s",` +
				`"options":` + optionsRow + `,"paths":["/p"],"diffs":` + diffsRow + `,"stale":true,"reopens":"r","reopened":"w","replayed":true,"truncated":true}`,
		},
		{
			domain.ApprovalResolved{ApprovalID: "a", CallID: "c", ToolUseID: "u", Type: "t", Status: "s", Response: "r", Comment: "m", Option: "o", DecidedBy: "d", Title: "i", Tool: "T", InputEdited: true},
			`{"id":"a","call":"c","tool_use":"u","type":"t","status":"s","response":"r","comment":"m","option":"o","decided_by":"d","title":"i","tool":"T","input_edited":true}`,
		},
		{
			domain.SettingsChanged{Title: &text, Mode: &text, Model: &text, AutoAcceptEdits: &yes, SkipPermissions: &yes, SkipUntil: time.Unix(7, 9).UTC(), Archived: &yes, Reason: "r"},
			`{"title":"a <b> & c","mode":"a <b> & c","model":"a <b> & c","auto_accept_edits":true,"skip_permissions":true,"skip_until":"1970-01-01T00:00:07.000000009Z","archived":true,"reason":"r"}`,
		},
		{domain.NativeSessionChanged{NativeSession: "n", Replaced: true}, `{"native":"n","replaced":true}`},
		{domain.AgentModeChanged{Mode: "m", Modes: []string{"m", "n"}}, `{"mode":"m","modes":["m","n"]}`},
		{domain.AgentModeChanged{Mode: "m", Modes: []string{"m"}, Choices: []domain.Choice{{ID: "m", Name: "M"}}}, `{"mode":"m","modes":["m"],"choices":[{"id":"m","name":"M"}]}`},
		{
			domain.AgentSessionChanged{AgentSession: domain.AgentSession{
				Agent: &domain.AgentInfo{Name: "n", Title: "t", Version: "v"}, Modes: &domain.Selection{Current: "a", Choices: []domain.Choice{{ID: "a", Name: "n", Description: "d", Group: "g", Extra: raw}}},
				Options:  []domain.AgentOption{{ID: "o", Name: "n", Description: "d", Category: "c", Type: "select", Current: "a", Choices: []domain.Choice{{ID: "a"}}, Extra: raw}},
				Commands: []domain.AgentCommand{{Name: "n", Description: "d", InputHint: "h", Extra: raw}}, Info: &domain.AgentSessionInfo{Title: "t", Updated: "u"},
			}, Truncated: true},
			`{"agent":{"name":"n","title":"t","version":"v"},"modes":{"current":"a","choices":[{"id":"a","name":"n","description":"d","group":"g","extra":{"a":1.50,"a":"<b>"}}]},` +
				`"options":[{"id":"o","name":"n","description":"d","category":"c","type":"select","current":"a","choices":[{"id":"a"}],"extra":{"a":1.50,"a":"<b>"}}],` +
				`"commands":[{"name":"n","description":"d","hint":"h","extra":{"a":1.50,"a":"<b>"}}],"info":{"title":"t","updated":"u"},"truncated":true}`,
		},
		{
			domain.PlanChanged{Entries: []domain.PlanEntry{{Content: "c", Priority: "high", Status: "pending"}}},
			`{"entries":[{"content":"c","priority":"high","status":"pending"}]}`,
		},
		{
			domain.UsageReported{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ContextUsed: 5, ContextSize: 6, CostUSD: 0.7},
			`{"input":1,"output":2,"cache_read":3,"cache_write":4,"context_used":5,"context_size":6,"cost_usd":0.7}`,
		},
		{
			domain.FileChanged{Path: "/p", Diff: "d", Added: 1, Removed: 2, Binary: true, Truncated: true},
			`{"path":"/p","diff":"d","added":1,"removed":2,"binary":true,"truncated":true}`,
		},
		{domain.ProgressReported{Report: raw}, `{"report":{"a":1.50,"a":"<b>"}}`},
		{domain.AgentErrorReported{Report: raw}, `{"report":{"a":1.50,"a":"<b>"}}`},
		{domain.AgentUpdated{Update: raw}, `{"update":{"a":1.50,"a":"<b>"}}`},
		{
			domain.AgentSilent{Since: time.Unix(7, 9).UTC(), Note: "n", ToolID: "t", Tool: "T", Ended: true},
			`{"since":"1970-01-01T00:00:07.000000009Z","note":"n","tool_id":"t","tool":"T","ended":true}`,
		},
		{
			domain.TriggerExecuted{Execution: 1, Trigger: "t", EventType: "e", Action: "a", Status: "s", Message: text, Channel: "c", Approval: "i", Error: "x"},
			`{"execution":1,"trigger":"t","event":"e","action":"a","status":"s","message":"a <b> & c","channel":"c","approval":"i","error":"x"}`,
		},
		{
			domain.ThreadDeleted{ThreadUUID: "u", Runs: []domain.RunRef{{SessionID: "s", RunID: "r", Task: 1}}, Kept: 2},
			`{"thread":"u","runs":[{"session":"s","run":"r","task":1}],"kept":2}`,
		},
		{domain.Erased{}, `{}`},
		{
			domain.BuildProgressed{
				BuildID: "b", Name: "n", Stage: "failed", Command: []string{"make"}, Duration: time.Second, Errors: 2, Warnings: 3, Reason: "r",
				Diagnostics: []domain.Diagnostic{{File: "f", Line: 1, Column: 2, Severity: "error", Message: "m", Source: "go"}},
			},
			`{"build":"b","name":"n","stage":"failed","command":["make"],"duration":1000000000,"diagnostics":[{"file":"f","line":1,"column":2,"severity":"error","message":"m","source":"go"}],"errors":2,"warnings":3,"reason":"r"}`,
		},
		{domain.IterationStarted{Iteration: 1, MaxIterations: 2, Gates: []string{"make"}}, `{"iteration":1,"max":2,"gates":["make"]}`},
		{domain.GateStarted{Gate: "make", Iteration: 1}, `{"gate":"make","iteration":1}`},
		{
			domain.GateChecked{
				GateResult: domain.GateResult{
					Gate: "make", Passed: true, Reason: "r", Errors: 2, Warnings: 3, Output: "o", Duration: time.Second,
					Findings: []domain.Diagnostic{{File: "f", Severity: "error", Message: "m"}},
				},
				Iteration: 1, MaxIterations: 2,
			},
			`{"gate":"make","passed":true,"reason":"r","findings":[{"file":"f","severity":"error","message":"m"}],"errors":2,"warnings":3,"output":"o","duration":1000000000,"iteration":1,"max":2}`,
		},
		{domain.QueueChanged{Text: new("t"), Truncated: true, Order: []string{"s"}}, `{"text":"t","truncated":true,"order":["s"]}`},
		{domain.ChangeDecided{Path: "/p", Decision: "revert", Hunk: "h"}, `{"path":"/p","decision":"revert","hunk":"h"}`},
		{domain.LoopEnded{State: "failed", Reason: "r", Iteration: 2, MaxIterations: 2, Failing: []string{"make"}}, `{"state":"failed","reason":"r","iteration":2,"max":2,"failing":["make"]}`},
		{domain.TerminalExited{TerminalID: "t", TaskID: "k", ExitCode: 3, Signal: "S"}, `{"terminal":"t","task":"k","exit_code":3,"signal":"S"}`},
	} {
		kind := c.payload.Kind()
		pinned[kind] = true
		row, err := Encode(domain.Event{Ref: ref, Payload: c.payload})
		require.NoError(t, err, kind)
		want := run + c.data + "}"
		assert.Equal(t, Columns{Type: string(kind), Data: &want}, row)
		gotRef, got, err := Decode(row)
		require.NoError(t, err, kind)
		assert.Equal(t, ref, gotRef)
		assert.Equal(t, c.payload, got)
	}
	for kind := range maps.Keys(payloadCodecs) {
		assert.True(t, pinned[kind], "the spelling of %s", kind)
	}
}

func TestADeltaHasColumnsOfItsOwn(t *testing.T) {
	key, none := "k", domain.RunRef{}
	for _, c := range []struct {
		payload domain.MessageDelta
		row     Columns
	}{
		{domain.MessageDelta{Key: key, Text: text}, Columns{Type: "delta.message", Key: &key, Text: &text}},
		{domain.MessageDelta{Key: key, Thought: true}, Columns{Type: "delta.thought", Key: &key}},
	} {
		row, err := Encode(domain.Event{Ref: ref, Payload: c.payload})
		require.NoError(t, err)
		assert.Equal(t, c.row, row)
		gotRef, got, err := Decode(row)
		require.NoError(t, err)
		assert.Equal(t, none, gotRef)
		assert.Equal(t, c.payload, got)
	}
}

func TestRowsOfFormat8AndEarlierAreRead(t *testing.T) {
	const ids = `{"session_id":"s","run_id":"r","task_id":"task-0003",`
	read := map[string]bool{}
	for _, c := range []struct {
		kind, data string
		want       domain.Payload
	}{
		{
			"session_status_changed", `"thread_id":"t","old_state":"running","state":"failed","parent_session_id":"p","title":"i","agent":"a","reason":"r","error":"e","error_code":"C","stop_reason":"o"}`,
			domain.RunStateChanged{ThreadUUID: "t", From: domain.Running, To: domain.Failed, ParentSession: "p", Title: "i", Agent: "a", Reason: "r", Error: "e", ErrorCode: "C", StopReason: "o"},
		},
		{
			"conversation_updated", `"claude_session_id":"n","event_type":"message","message_id":"m","role":"user","content":"c","subtype":"b","truncated":true}`,
			domain.MessageAdded{NativeSession: "n", Type: "message", Key: "m", Role: "user", Text: "c", Subtype: "b", Truncated: true},
		},
		{
			"conversation_updated", `"event_type":"tool_call","tool_id":"i","tool_name":"N","tool_title":"t","tool_kind":"k","tool_status":"u","tool_input":{"a":1},"tool_data":` + detailsRow + `,"parent_tool_use_id":"p"}`,
			domain.ToolCallChanged{ID: "i", Name: "N", Title: "t", ToolKind: "k", Status: "u", Input: json.RawMessage(`{"a":1}`), Details: &details, ParentID: "p"},
		},
		{
			"conversation_updated", `"event_type":"tool_result","tool_id":"i","tool_result_content":"c"}`,
			domain.ToolCallChanged{ID: "i", Ended: true, Result: "c"},
		},
		{
			"new_approval", `"approval_id":"a","call_id":"c","tool_use_id":"u","type":"FunctionCall","tool_name":"T","tool_input":{"a":1},"tool_kind":"k","input_editable":true,"input_ambiguity":"y",` +
				`"title":"i","subject":"b","options":` + optionsRow + `,"paths":["/p"],"diffs":` + diffsRow + `,"stale":true,"reopens":"e","reopened":"d","truncated":true}`,
			domain.ApprovalRequested{
				ApprovalID: "a", CallID: "c", ToolUseID: "u", Type: "FunctionCall", Tool: "T", Input: json.RawMessage(`{"a":1}`), ToolKind: "k", InputEditable: true, Ambiguity: "y",
				Title: "i", Subject: "b", Options: options, Paths: []string{"/p"}, Diffs: diffs, Stale: true, Reopens: "e", Reopened: "d", Truncated: true,
			},
		},
		{
			"approval_resolved", `"approval_id":"a","call_id":"c","type":"FunctionCall","decision":"approved","response_text":"x","comment":"m","option":"o","decided_by":"d","title":"i","tool_name":"T","tool_use_id":"u","input_was_edited":true}`,
			domain.ApprovalResolved{ApprovalID: "a", CallID: "c", Type: "FunctionCall", Status: "approved", Response: "x", Comment: "m", Option: "o", DecidedBy: "d", Title: "i", Tool: "T", ToolUseID: "u", InputEdited: true},
		},
		{
			"session_settings_changed", `"event_type":"settings","title":"a <b> & c","permission_mode":"a <b> & c","model":"a <b> & c","auto_accept_edits":true,"dangerously_skip_permissions":true,` +
				`"dangerously_skip_permissions_expires_at":"1970-01-01T00:00:07Z","archived":true,"reason":"r"}`,
			domain.SettingsChanged{Title: &text, Mode: &text, Model: &text, AutoAcceptEdits: &yes, SkipPermissions: &yes, SkipUntil: time.Unix(7, 0).UTC(), Archived: &yes, Reason: "r"},
		},
		{
			"session_settings_changed", `"event_type":"native_session","claude_session_id":"n","session_was_replaced":true}`,
			domain.NativeSessionChanged{NativeSession: "n", Replaced: true},
		},
		{
			"session_settings_changed", `"event_type":"mode","agent_mode":"m","agent_modes":["m","n"]}`,
			domain.AgentModeChanged{Mode: "m", Modes: []string{"m", "n"}},
		},
		{
			"plan", `"entries":[{"content":"c","priority":"high","status":"pending"}]}`,
			domain.PlanChanged{Entries: []domain.PlanEntry{{Content: "c", Priority: "high", Status: "pending"}}},
		},
		{
			"usage", `"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"context_used":5,"context_size":6,"cost_usd":0.7}`,
			domain.UsageReported{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ContextUsed: 5, ContextSize: 6, CostUSD: 0.7},
		},
		{
			"diff_updated", `"path":"/p","diff":"d","added":1,"removed":2,"binary":true,"truncated":true}`,
			domain.FileChanged{Path: "/p", Diff: "d", Added: 1, Removed: 2, Binary: true, Truncated: true},
		},
		{"agent_update", `"update":{"a":1}}`, domain.AgentUpdated{Update: json.RawMessage(`{"a":1}`)}},
		{"task_progress", `"percent":1.50,"percent":2}`, domain.ProgressReported{Report: json.RawMessage(`{"percent":1.50,"percent":2}`)}},
		{"task_error", `"message":"m"}`, domain.AgentErrorReported{Report: json.RawMessage(`{"message":"m"}`)}},
	} {
		read[c.kind] = true
		data := ids + c.data
		gotRef, got, err := Decode(Columns{Type: c.kind, Data: &data})
		require.NoError(t, err, c.kind)
		assert.Equal(t, ref, gotRef, c.kind)
		assert.Equal(t, c.want, got)
	}

	exit := `{"session_id":"s","terminal_id":"t","task_id":"task-0003","exit_code":3,"signal":"S"}`
	_, got, err := Decode(Columns{Type: "terminal_exit", Data: &exit})
	require.NoError(t, err)
	assert.Equal(t, domain.TerminalExited{TerminalID: "t", TaskID: "task-0003", ExitCode: 3, Signal: "S"}, got)
	read["terminal_exit"] = true
	for kind := range maps.Keys(oldPayloads) {
		assert.True(t, read[kind], "rows of the type %s", kind)
	}

	key := "k"
	for kind, thought := range map[string]bool{"message_delta": false, "thinking_delta": true} {
		_, got, err := Decode(Columns{Type: kind, Key: &key, Text: &text})
		require.NoError(t, err)
		assert.Equal(t, domain.MessageDelta{Key: key, Text: text, Thought: thought}, got)
	}
}

func TestARowThatNobodyCanHaveWrittenIsAnError(t *testing.T) {
	for _, c := range [][2]string{
		{"never heard of", "{}"},
		{"run.state", "{"},
		{"run.state", `{"payload":7}`},
		{"terminal.output", `{"payload":{}}`},
		{"plan", `{"entries":7}`},
		{"task_error", "7"},
		{"usage", ""},
	} {
		_, _, err := Decode(Columns{Type: c[0], Data: &c[1]})
		assert.Error(t, err, "%q", c)
		_, _, err = Decode(Columns{Type: c[0]})
		assert.Error(t, err, "%q without data", c[0])
	}
	_, err := Encode(domain.Event{Payload: domain.Lagged{From: 1, To: 2}})
	assert.EqualError(t, err, "domain.Lagged is not kept in the log")
}
