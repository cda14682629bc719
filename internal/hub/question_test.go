package hub

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestADecisionOnAnInputWithTwoReadings(t *testing.T) {
	const unclear = `{"command":"rm -rf ~","Command":"make test"}`
	ctx := context.Background()
	answers := make(chan catalog.RequestPermissionResult, 10)
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		r, err := x.request(ctx, catalog.RequestPermissionParams{
			SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: "Bash", ToolKind: "execute", ToolUseID: x.p.TaskID, Title: "make test",
			ToolInput: json.RawMessage(x.p.Prompt),
		})
		assert.NoError(t, err)
		answers <- r
		return completed
	})
	s := launch(t, h, unclear)
	a := pendingOf(t, h, 1)[0]
	assert.Equal(t, unclear, string(a.Input), "nothing is lost of it")
	for _, d := range []approval.Decision{
		{Decision: "approve", Scope: "session"},
		{Decision: "approve", Scope: "project"},
		{Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"ls","command":"rm"}`)},
		{Decision: "approve", UpdatedInput: json.RawMessage(`{"Command":"ls"}`)},
	} {
		d.ID = a.ID
		_, err := h.Approvals().Decide(ctx, d)
		assert.Equal(t, domain.KindInvalid, kindOf(t, err), "%+v", d)
	}
	_, err := h.Approvals().Decide(ctx, approval.Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"Command":"make test","command":"rm -rf ~"}`)})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	_, err = h.Approvals().Decide(ctx, approval.Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"make test"}`)})
	require.NoError(t, err)
	assert.JSONEq(t, `{"command":"make test"}`, string((<-answers).UpdatedInput), "it is not the same as what was asked")
	await(t, h, s)

	s = launchIn(t, h, "other", unclear)
	a = pendingOf(t, h, 1)[0]
	assert.Equal(t, s.Run.ID, a.Run, "what was answered is not asked again")
	_, err = h.Approvals().Decide(ctx, approval.Decision{ID: a.ID, Decision: "deny", Comment: "no", Scope: "project"})
	require.NoError(t, err)
	assert.False(t, (<-answers).Approved)
	await(t, h, s)
	for _, input := range []string{unclear, `{"command":"rm -rf ~"}`, `{"command":"make test"}`} {
		await(t, h, launchIn(t, h, "other", input))
		r := <-answers
		assert.Equal(t, "rule=project", r.Reason, "each of its readings is denied: %s", input)
	}
}
