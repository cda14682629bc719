package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/dialect/aiwg"
	dexec "github.com/duet-rpc/duet-rpc/internal/dialect/executor"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Each family maps the kinds of errors to its codes (docs/protocol.md, "Errors by family").
func TestCodesOfTheFamilies(t *testing.T) {
	for _, test := range []struct {
		family family
		kind   string
		code   int64
		data   string
	}{
		{taskFamily, domain.KindTurnNotFound, -32000, "task_not_found"},
		{taskFamily, domain.KindNotCancellable, -32001, "task_not_cancellable"},
		{taskFamily, domain.KindQueueFull, -32002, "queue_full"},
		{taskFamily, domain.KindUnavailable, -32003, "subsystem_unavailable"},
		{taskFamily, domain.KindNotTrusted, -32043, "not_trusted"},
		{taskFamily, domain.KindExecutor, -32603, "executor_failed"},
		{chatFamily, domain.KindQueueFull, -32002, "queue_full"},
		{humanLayerFamily, domain.KindTurnNotFound, -32603, "session_not_found"},
		{humanLayerFamily, domain.KindNotCancellable, -32603, "session_not_running"},
		{humanLayerFamily, domain.KindApprovalNotFound, -32603, "approval_not_found"},
		{humanLayerFamily, domain.KindQueueFull, -32603, "queue_full"},
		{humanLayerFamily, domain.KindUnavailable, -32603, "subsystem_unavailable"},
		{humanLayerFamily, domain.KindNotTrusted, -32043, "not_trusted"},
		{executorFamily, domain.KindTurnNotFound, -32603, "task_not_found"},
		{executorFamily, domain.KindTerminalNotFound, -32603, "terminal_not_found"},
		{executorFamily, domain.KindNoAPIKey, -32603, "no_api_key"},
		{executorFamily, domain.KindInvalidToken, -32600, "invalid_session_token"},
		{taskFamily, domain.KindInvalidToken, -32600, "invalid_session_token"},
	} {
		cause := errors.New("/secret/path")
		err := test.family.Error(fmt.Errorf("wrapped: %w", &domain.Error{Kind: test.kind, Message: "do this", Err: cause}))
		var wire *jsonrpc2.Error
		require.ErrorAs(t, err, &wire)
		assert.Equal(t, test.code, wire.Code, test.kind)
		assert.Contains(t, string(*wire.Data), `"kind":"`+test.data+`"`)
		assert.Contains(t, wire.Message, "do this")
		assert.NotContains(t, wire.Message+string(*wire.Data), "secret")
		assert.Equal(t, cause.Error(), err.Error(), "the log has the cause")
	}
	plain := errors.New("no business of the peer's")
	assert.Equal(t, plain, taskFamily.Error(plain))
}

func TestATimeThatIsTooLongIsTheLongest(t *testing.T) {
	for n, want := range map[int64]time.Duration{
		-1 << 63: -longest, -1: -time.Millisecond, 0: 0, 1: time.Millisecond, 1000: time.Second,
		longest.Milliseconds(): longest, longest.Milliseconds() + 1: longest, 1 << 62: longest, 1<<63 - 1: longest,
	} {
		assert.Equal(t, want, milliseconds(n), n)
	}
	assert.Equal(t, longest, milliseconds(^uint(0)))
	assert.Equal(t, time.Hour, executeSpec(dexec.ExecuteParams{TimeoutMS: time.Hour.Milliseconds()}).Timeout)
	assert.Equal(t, longest, executeSpec(dexec.ExecuteParams{TimeoutMS: 1 << 62}).Timeout)
}

func TestParametersHaveTheirNameInTheFamily(t *testing.T) {
	for _, test := range []struct {
		family       family
		param, wants string
	}{
		{taskFamily, "working_dir", "cwd"},
		{chatFamily, "prompt", "message"},
		{humanLayerFamily, "prompt", "query"},
		{humanLayerFamily, "working_dir", "working_dir"},
		{executorFamily, "working_dir", "cwd"},
		{executorFamily, "", "params"},
	} {
		e := test.family.wireError(&domain.Error{Kind: domain.KindInvalid, Param: test.param, Expected: "a", Received: "b"})
		assert.JSONEq(t, `{"param":"`+test.wants+`","expected":"a","received":"b"}`, string(*e.Data))
		assert.Contains(t, e.Message, test.wants+": expected a, received b")
	}
	e := taskFamily.wireError(&domain.Error{Kind: domain.KindUnknownAgent, Param: "agent", Expected: "the name of an agent", Received: `"x"`, Accepted: []string{"demo"}, Message: "no agent x"})
	assert.EqualValues(t, -32602, e.Code)
	assert.Equal(t, "Invalid params: no agent x", e.Message)
	assert.JSONEq(t, `{"param":"agent","expected":"the name of an agent","received":"\"x\"","accepted":["demo"]}`, string(*e.Data))
}

// Each dialect maps the states of turns to its own names.
func TestStatesInEachDialect(t *testing.T) {
	assert.Equal(t, []domain.State{domain.Interrupting, domain.Running, domain.Starting, domain.WaitingInput}, aiwg.TaskState("running").States())
	assert.Equal(t, []domain.State{domain.Failed, domain.TimedOut}, aiwg.TaskState("failed").States())
	assert.Equal(t, []domain.State{domain.Cancelled, domain.Interrupted}, aiwg.TaskState("cancelled").States())
	assert.NotContains(t, aiwg.TaskState("").States(), domain.Draft)
	assert.NotContains(t, aiwg.TaskState("").States(), domain.Discarded)
	assert.Len(t, aiwg.TaskState("").States(), 10)
	assert.Equal(t, []domain.State{domain.Queued, domain.Starting}, protocol.SessionStatus("starting").States())
	assert.Equal(t, []domain.State{domain.Cancelled, domain.Interrupted}, protocol.SessionStatus("interrupted").States())
	assert.Len(t, protocol.SessionStatus("").States(), 11)
	for _, state := range protocol.StatesWhere(func(domain.State) bool { return true }) {
		if name := aiwg.StateOf(state); name != "" {
			assert.Contains(t, aiwg.TaskState("").Accepted(), name, state)
		}
		assert.Contains(t, protocol.SessionStatus("").Accepted(), protocol.StatusOf(state), state)
	}
	assert.Equal(t, aiwg.TaskStats{Total: 10, Running: 4, Queued: 1, Completed: 1, Failed: 2, Cancelled: 2}, statsOf(domain.Counts{
		domain.Draft: 9, domain.Queued: 1, domain.Starting: 1, domain.Running: 1, domain.WaitingInput: 1, domain.Interrupting: 1, domain.Completed: 1, domain.Failed: 1, domain.TimedOut: 1, domain.Cancelled: 1, domain.Interrupted: 1, domain.Discarded: 9,
	}))
}

func TestPermissionsThatHaveExpired(t *testing.T) {
	now := time.Unix(1000, 0)
	s := domain.TurnInSession{}
	s.Session.Settings.SkipPermissions = true
	assert.True(t, turnOf(s, now).SkipPermissions)
	s.Session.Settings.SkipPermissionsUntil = &now
	assert.False(t, turnOf(s, now).SkipPermissions)
	assert.True(t, turnOf(s, now.Add(-1)).SkipPermissions)
}

func TestExecuteResultOfEachEnd(t *testing.T) {
	for state, want := range map[domain.State]string{
		domain.Completed: `{"status":"completed","message_count":0,"agent":"","session_id":"S","task_id":"task-0001"}`,
		domain.TimedOut:  `{"status":"failed","message_count":0,"error":{"message":"the time limit was reached","code":"TIMEOUT"},"agent":"","session_id":"S","task_id":"task-0001"}`,
		domain.Failed:    `{"status":"failed","message_count":0,"error":{"message":"the agent failed and did not say why","code":"EXECUTOR_ERROR"},"agent":"","session_id":"S","task_id":"task-0001"}`,
		domain.Cancelled: `{"status":"cancelled","message_count":0,"agent":"","session_id":"S","task_id":"task-0001"}`,
	} {
		s := domain.TurnInSession{}
		s.State, s.Task, s.HumanLayerSession = state, 1, "S"
		b, err := json.Marshal(executed(s, dexec.ExecuteParams{}))
		require.NoError(t, err)
		assert.JSONEq(t, want, string(b))
	}
	assert.Equal(t, "claude", executeSpec(dexec.ExecuteParams{AgenticTool: "claude-code"}).Agent)
	assert.Equal(t, "x", executeSpec(dexec.ExecuteParams{AgenticTool: "claude-code", Agent: "x"}).Agent)
	assert.Equal(t, 5*time.Minute, executeSpec(dexec.ExecuteParams{TimeoutMS: -1}).Timeout)
}

func TestMCPServers(t *testing.T) {
	for config, want := range map[string][]domain.MCPServer{
		`null`: nil, `""`: nil, `{}`: nil, `{"mcpServers":{}}`: {},
		`{"mcpServers":{"b":{"command":"x","args":["1"]},"a":{"type":"http","url":"http://h"}}}`: {{Name: "a", Type: "http", URL: "http://h"}, {Name: "b", Command: "x", Args: []string{"1"}}},
		`"{\"mcp_servers\":{\"a\":{\"command\":\"x\"}}}"`:                                        {{Name: "a", Command: "x"}},
	} {
		got, err := mcpServers(json.RawMessage(config))
		require.NoError(t, err, config)
		assert.Equal(t, want, got, config)
	}
	for _, config := range []string{`5`, `[]`, `"x"`, `{"mcpServers":{"a":{}}}`} {
		_, err := mcpServers(json.RawMessage(config))
		assert.Error(t, err, config)
	}
}

func TestHeadlines(t *testing.T) {
	assert.Equal(t, "a b", headline(" a\n b ", 3))
	assert.Equal(t, "ab…", headline("abcd", 3))
}

func TestListsAreMadeToFit(t *testing.T) {
	list := func(n, length int) (l []*aiwg.Task) {
		for range n {
			l = append(l, &aiwg.Task{Prompt: strings.Repeat("x", length)})
		}
		return l
	}
	size := encodedSize(list(1, 1000)) // the two brackets leave room for the comma
	assert.Len(t, fit(list(3, 1000), 3*size)[2].Prompt, 1000, "a list that fits stays unchanged")
	short := fit(list(3, 1000), 3*size-4)
	require.Len(t, short, 3, "fit shortens texts before it drops items")
	assert.Contains(t, short[0].Prompt, "bytes left out]")
	few := fit(list(1000, 1000), 10_000)
	assert.NotEmpty(t, few)
	assert.Less(t, len(few), 20)
	assert.LessOrEqual(t, encodedSize(few), 10_000)
	assert.Empty(t, fit([]*aiwg.Task{}, 1))
}

func TestRawJSONIsMadeToFit(t *testing.T) {
	raw := json.RawMessage(`{"a":["` + strings.Repeat("x", 1000) + `"],"b":1}`)
	assert.Equal(t, raw, fitRaw(raw, len(raw)))
	got := fitRaw(raw, len(raw)-1)
	assert.Contains(t, string(got), "bytes left out]")
	assert.Contains(t, string(got), `"b":1`)
	assert.Equal(t, `{"trimmed":9}`, string(fitRaw(json.RawMessage(`[1,2,3,4]`), 5)))
}

// A shortened input keeps duplicate and similar names, so that it stays as ambiguous as before.
func TestRawJSONThatIsMadeToFitKeepsItsTwins(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, format := range []string{
		`{"command":"rm -rf ~","Command":"make test","content":"%s"}`, `{"command":"rm -rf ~","command":"make test","content":"%s"}`,
		`{ "z" : 1, "a\"\\" : ["\ud800", "%s"] , "n" : 12345678901234567890.10 }`,
	} {
		got := string(fitRaw(json.RawMessage(fmt.Sprintf(format, long)), 700))
		var want bytes.Buffer
		require.NoError(t, json.Compact(&want, fmt.Appendf(nil, format, strings.Repeat("x", 256)+"… [744 of 1000 bytes left out]")))
		assert.Equal(t, want.String(), got)
	}
	escaped := fitRaw(json.RawMessage(`["`+strings.Repeat(`\n`, 300)+`"]`), 590)
	var texts []string
	require.NoError(t, json.Unmarshal(escaped, &texts))
	assert.Equal(t, strings.Repeat("\n", 256)+"… [44 of 300 bytes left out]", texts[0])
}

func TestLimitsOfPages(t *testing.T) {
	n := func(v uint) *uint { return &v }
	assert.Equal(t, 20, pageSize(nil, 20, 1000))
	assert.Equal(t, 20, pageSize(n(0), 20, 1000))
	assert.Equal(t, 1000, pageSize(n(1000), 20, 1000))
	assert.Equal(t, 1000, pageSize(n(1001), 20, 1000))
}

// getConversation without a limit returns pages of a long conversation.
func TestALongConversationHasPages(t *testing.T) {
	events := make([]*humanlayer.ConversationEvent, eventsAtOnce+1)
	for i := range events {
		events[i] = &humanlayer.ConversationEvent{}
	}
	r := conversationPage(events, len(events), humanlayer.ConversationParams{}, 100<<20)
	assert.Len(t, r.Events, eventsAtOnce)
	require.NotNil(t, r.NextOffset)
	assert.Equal(t, eventsAtOnce, *r.NextOffset)
	asked := uint(len(events))
	r = conversationPage(events, len(events), humanlayer.ConversationParams{Limit: &asked}, 100<<20)
	assert.Len(t, r.Events, len(events))
	assert.Nil(t, r.NextOffset)
}

func TestErrorsOfSubscriptions(t *testing.T) {
	for err, want := range map[*domain.Error]string{
		domain.Errorf(domain.KindTooManySubscriptions, "64"): `{"code":-32040,"message":"Overloaded: 64","data":{"kind":"too_many_subscriptions"}}`,
		domain.Errorf(domain.KindSubscriptionNotFound, "no"): `{"code":-32603,"message":"Internal error: no","data":{"kind":"subscription_not_found"}}`,
	} {
		b, marshalErr := json.Marshal(humanLayerFamily.wireError(err))
		require.NoError(t, marshalErr)
		assert.Equal(t, want, string(b))
	}
}
