package dialect_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/dialect/aiwg"
	"github.com/duet-rpc/duet-rpc/internal/dialect/executor"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Each family maps the kinds of errors to its codes (docs/protocol.md, "Errors by family").
func TestCodesOfTheFamilies(t *testing.T) {
	for _, test := range []struct {
		family protocol.Family
		kind   string
		code   int64
		data   string
	}{
		{aiwg.Family, domain.KindTurnNotFound, -32000, "task_not_found"},
		{aiwg.Family, domain.KindNotCancellable, -32001, "task_not_cancellable"},
		{aiwg.Family, domain.KindQueueFull, -32002, "queue_full"},
		{aiwg.Family, domain.KindUnavailable, -32003, "subsystem_unavailable"},
		{aiwg.Family, domain.KindNotTrusted, -32043, "not_trusted"},
		{aiwg.Family, domain.KindExecutor, -32603, "executor_failed"},
		{aiwg.ChatFamily, domain.KindQueueFull, -32002, "queue_full"},
		{humanlayer.Family, domain.KindTurnNotFound, -32603, "session_not_found"},
		{humanlayer.Family, domain.KindNotCancellable, -32603, "session_not_running"},
		{humanlayer.Family, domain.KindApprovalNotFound, -32603, "approval_not_found"},
		{humanlayer.Family, domain.KindQueueFull, -32603, "queue_full"},
		{humanlayer.Family, domain.KindUnavailable, -32603, "subsystem_unavailable"},
		{humanlayer.Family, domain.KindNotTrusted, -32043, "not_trusted"},
		{executor.Family, domain.KindTurnNotFound, -32603, "task_not_found"},
		{executor.Family, domain.KindTerminalNotFound, -32603, "terminal_not_found"},
		{executor.Family, domain.KindNoAPIKey, -32603, "no_api_key"},
		{executor.Family, domain.KindInvalidToken, -32600, "invalid_session_token"},
		{aiwg.Family, domain.KindInvalidToken, -32600, "invalid_session_token"},
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
	assert.Equal(t, plain, aiwg.Family.Error(plain))
}

func TestParametersHaveTheirNameInTheFamily(t *testing.T) {
	for _, test := range []struct {
		family       protocol.Family
		param, wants string
	}{
		{aiwg.Family, "working_dir", "cwd"},
		{aiwg.ChatFamily, "prompt", "message"},
		{humanlayer.Family, "prompt", "query"},
		{humanlayer.Family, "working_dir", "working_dir"},
		{executor.Family, "working_dir", "cwd"},
		{executor.Family, "", "params"},
	} {
		e := test.family.WireError(&domain.Error{Kind: domain.KindInvalid, Param: test.param, Expected: "a", Received: "b"})
		assert.JSONEq(t, `{"param":"`+test.wants+`","expected":"a","received":"b"}`, string(*e.Data))
		assert.Contains(t, e.Message, test.wants+": expected a, received b")
	}
	e := aiwg.Family.WireError(&domain.Error{Kind: domain.KindUnknownAgent, Param: "agent", Expected: "the name of an agent", Received: `"x"`, Accepted: []string{"demo"}, Message: "no agent x"})
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
	assert.Equal(t, []domain.State{domain.Queued, domain.Starting}, humanlayer.SessionStatus("starting").States())
	assert.Equal(t, []domain.State{domain.Cancelled, domain.Interrupted}, humanlayer.SessionStatus("interrupted").States())
	assert.Len(t, domain.Listed(), 11)
	for _, state := range domain.States() {
		if name := aiwg.StateOf(state); name != "" {
			assert.Contains(t, aiwg.TaskState("").Accepted(), name, state)
		}
		assert.Contains(t, humanlayer.SessionStatus("").Accepted(), humanlayer.StatusOf(state), state)
	}
}

func TestErrorsOfSubscriptions(t *testing.T) {
	for err, want := range map[*domain.Error]string{
		domain.Errorf(domain.KindTooManySubscriptions, "64"): `{"code":-32040,"message":"Overloaded: 64","data":{"kind":"too_many_subscriptions"}}`,
		domain.Errorf(domain.KindSubscriptionNotFound, "no"): `{"code":-32603,"message":"Internal error: no","data":{"kind":"subscription_not_found"}}`,
	} {
		b, marshalErr := json.Marshal(humanlayer.Family.WireError(err))
		require.NoError(t, marshalErr)
		assert.Equal(t, want, string(b))
	}
}
