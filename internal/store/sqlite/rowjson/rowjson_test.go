package rowjson

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Programs to come read what this one writes, so its spelling does not change.
func TestTheSpellingOfItemsStaysAsItIs(t *testing.T) {
	text := "a <b>"
	for _, c := range []struct {
		kind string
		data domain.ItemData
		row  string
	}{
		{domain.ItemTool, domain.ToolDetails{}, `{}`},
		{domain.ItemThinking, domain.MessageContent{Meta: json.RawMessage(`{"n":1.50}`)}, `{"_meta":{"n":1.50}}`},
		{domain.ItemMessage, domain.MessageContent{Blocks: []domain.Block{{Type: "image"}}, Meta: json.RawMessage(`{}`)}, `{"blocks":[{"type":"image"}],"_meta":{}}`},
		{
			domain.ItemTool,
			domain.ToolDetails{Paths: []string{"/p"}, Diffs: []domain.Diff{{Path: "/p", OldText: &text, NewText: "n"}, {Path: "/new"}}, Terminal: "t"},
			`{"paths":["/p"],"diffs":[{"path":"/p","old_text":"a <b>","new_text":"n"},{"path":"/new","new_text":""}],"terminal":"t"}`,
		},
		{
			domain.ItemPlan,
			domain.Plan{Entries: []domain.PlanEntry{{Content: text, Priority: "high", Status: "pending"}, {Content: "c"}}},
			`{"entries":[{"content":"a <b>","priority":"high","status":"pending"},{"content":"c"}]}`,
		},
		{domain.ItemPlan, domain.Plan{Entries: []domain.PlanEntry{}}, `{"entries":[]}`},
		{domain.ItemFile, domain.FileNote{Path: "/p", Added: 1, Removed: 2, Binary: true}, `{"path":"/p","added":1,"removed":2,"binary":true}`},
		{domain.ItemFile, domain.FileNote{Path: "/p"}, `{"path":"/p","added":0,"removed":0}`},
		{
			domain.ItemApproval,
			domain.ApprovalNote{ApprovalID: "a", Type: "function_call", Decision: "denied", Title: "t", Response: "r", DecidedBy: "d", Edited: true, Delivery: "w"},
			`{"approval_id":"a","type":"function_call","decision":"denied","title":"t","response_text":"r","decided_by":"d","input_was_edited":true,"delivery":"w"}`,
		},
	} {
		row, err := Encode(ItemDataOf(c.data))
		require.NoError(t, err)
		assert.Equal(t, c.row, row)
		assert.Equal(t, c.data, ItemData(c.kind, []byte(row)))
	}
}

// A row may be damaged, or of a database that is anybody's.
func TestOfAnItemWhatCanBeReadIsRead(t *testing.T) {
	for _, row := range []string{``, `null`, `7`, `[]`, `"x"`} {
		assert.Nil(t, ItemData(domain.ItemTool, []byte(row)), row)
	}
	assert.Nil(t, ItemData(domain.ItemMessage, []byte(`{"paths":["a"]}`)), "a message has none")
	assert.Equal(t, domain.ToolDetails{Terminal: "t"}, ItemData(domain.ItemTool, []byte(`{"paths":7,"terminal":"t","other":1}`)))
}

func TestOptionsOfAnyKindAreKept(t *testing.T) {
	raw := json.RawMessage(`{"a":1.50,"a":"<b>"}`)
	for row, want := range map[string]Options{
		`[]`: {},
		`[{"option_id":"o","name":"Yes","kind":"allow_once"},{"name":"a","x":{"a":1.50,"a":"<b>"}}]`: {
			{ID: "o", Name: "Yes", Kind: domain.AllowOnce}, {Name: "a", Extra: map[string]json.RawMessage{"x": raw}},
		},
		`[{"option_id":"","name":"a","kind":""},7,null]`: {{Name: "a"}, {}, {}}, // as earlier programs wrote it, and nobody
		`{}`:   nil,
		`null`: nil,
	} {
		var got Options
		require.NoError(t, json.Unmarshal([]byte(row), &got), row)
		assert.Equal(t, want, got, row)
		if want != nil {
			again, err := Encode(got)
			require.NoError(t, err)
			var twice Options
			require.NoError(t, json.Unmarshal([]byte(again), &twice))
			assert.Equal(t, want, twice, again)
		}
	}
}
