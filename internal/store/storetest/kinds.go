package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// options returns answers of known kinds and an unknown one, with unknown members.
func options() []domain.Option {
	return []domain.Option{
		{ID: "o", Name: "Yes <b>", Kind: domain.AllowAlways},
		{Name: "another", Kind: "ask_the_boss", Extra: map[string]json.RawMessage{"_meta": json.RawMessage(`{"a":1.50,"a":"<b>"}`), "hint": json.RawMessage("7")}},
		{},
	}
}

func toolDetails() domain.ToolDetails {
	text := "a <b> & \u2028"
	return domain.ToolDetails{Paths: []string{"/p"}, Diffs: []domain.Diff{
		{Path: "/p", OldText: &text, NewText: text}, {Path: "/new"},
	}, Terminal: "t", RefusedBy: "mode=plan", Refusal: "r <b>"}
}

func testApprovalRoundTrip(t *testing.T, k kind) {
	s := k.openNew(t)
	for _, a := range []domain.Approval{
		{ID: "none"},
		{
			ID: "all", Session: 1, Turn: 2, Type: domain.FunctionCall, Tool: "T", Input: json.RawMessage(`{"a":1.50,"a":2}`), Title: "t", Subject: "s", ToolKind: "k",
			Paths: []string{"/p"}, Diffs: toolDetails().Diffs, Options: options(), Channel: json.RawMessage(`{"slack":{}}`), Status: domain.ApprovalPending,
			Stale: true, Carried: true, Question: "q", Created: time.Unix(1, 0).UTC(), Deadline: time.Unix(2, 0).UTC(),
			Decided: time.Unix(3, 0).UTC(), DecidedBy: "d", Comment: "c",
			Response: "r", Option: "o", UpdatedInput: json.RawMessage("{}"), InputFixed: true, NameByKind: true, AwaitedBy: 4, Reopens: "x",
			Reopened: "y", Plan: "# p", Details: "d", Explanation: "e",
			Elicitation: domain.Elicitation{Mode: domain.ElicitForm, Schema: json.RawMessage(`{"properties":{}}`), URL: "u", ID: "i"}, Content: json.RawMessage(`{"a":1}`),
		},
	} {
		Write(t, s, func(tx store.Tx) error { return tx.InsertApproval(&a) })
		got, err := s.Approval(ctx, a.ID)
		require.NoError(t, err)
		assert.Equal(t, a, got)
	}
}

func testItemRoundTrip(t *testing.T, k kind) {
	s := k.openNew(t)
	r := AddTurn(t, s, NewSession(t, s, "").ID, domain.Running)
	kinds := map[string][]domain.ItemData{
		domain.ItemMessage: {nil, domain.MessageContent{Blocks: blocks()}, domain.MessageContent{Meta: json.RawMessage(`{"a":1.50}`)}},
		domain.ItemTool:    {toolDetails(), domain.ToolDetails{}, nil},
		domain.ItemPlan: {
			domain.Plan{Entries: []domain.PlanEntry{{Content: "c <b>", Priority: "high", Status: "pending"}, {}}},
			domain.Plan{Entries: []domain.PlanEntry{}},
		},
		domain.ItemFile: {domain.FileNote{Path: "/p", Added: 1, Removed: 2, Binary: true}},
		domain.ItemApproval: {domain.ApprovalNote{
			ApprovalID: "a", Type: domain.FunctionCall, Decision: domain.ApprovalDenied, Title: "t <b>", Response: "r", DecidedBy: "rule=x",
			Edited: true, Explanation: "e", Delivery: "d",
		}},
	}
	var written []domain.Item
	for kind, list := range kinds {
		for _, data := range list {
			i := domain.Item{Session: r.Session, Turn: r.ID, Kind: kind, Key: "k", Input: json.RawMessage(`{"a":1.50}`), Data: data, Created: time.Unix(1, 0).UTC(), Updated: time.Unix(2, 0).UTC()}
			Write(t, s, func(tx store.Tx) error { return tx.InsertItem(&i) })
			written = append(written, i)
		}
	}
	found, err := s.ItemsOfTurn(ctx, r.ID)
	require.NoError(t, err)
	assert.Equal(t, written, found)

	for i := range written {
		written[i].Data = kinds[written[i].Kind][0]
		Write(t, s, func(tx store.Tx) error { return tx.UpdateItem(written[i]) })
	}
	found, err = s.ItemsOfTurn(ctx, r.ID)
	require.NoError(t, err)
	assert.Equal(t, written, found)
}
