package hub

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/policy"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func TestADecisionOnAnInputWithTwoReadings(t *testing.T) {
	const unclear = `{"command":"rm -rf ~","Command":"make test"}`
	ctx := context.Background()
	answers := make(chan catalog.RequestPermissionResult, 10)
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		r, _ := x.daemon.RequestPermission(ctx, catalog.RequestPermissionParams{
			SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: "Bash", ToolKind: "execute", ToolUseID: x.p.TaskID, Title: "make test",
			ToolInput: json.RawMessage(x.p.Prompt),
		})
		answers <- r
		return completed
	})
	s := launch(t, h, unclear)
	a := pendingOf(t, h, 1)[0]
	assert.Equal(t, unclear, string(a.Input), "nothing is lost of it")
	for _, d := range []Decision{
		{Decision: "approve", Scope: "session"},
		{Decision: "approve", Scope: "project"},
		{Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"ls","command":"rm"}`)},
		{Decision: "approve", UpdatedInput: json.RawMessage(`{"Command":"ls"}`)},
	} {
		d.ID = a.ID
		_, err := h.Approvals().Decide(ctx, d)
		assert.Equal(t, domain.KindInvalid, kindOf(t, err), "%+v", d)
	}
	_, err := h.Approvals().Decide(ctx, Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"Command":"make test","command":"rm -rf ~"}`)})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	_, err = h.Approvals().Decide(ctx, Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"make test"}`)})
	require.NoError(t, err)
	assert.JSONEq(t, `{"command":"make test"}`, string((<-answers).UpdatedInput), "it is not the same as what was asked")
	await(t, h, s)

	s = launchIn(t, h, "other", unclear)
	a = pendingOf(t, h, 1)[0]
	_, err = h.Approvals().Decide(ctx, Decision{ID: a.ID, Decision: "deny", Comment: "no", Scope: "project"})
	require.NoError(t, err)
	assert.False(t, (<-answers).Approved)
	await(t, h, s)
	for _, input := range []string{unclear, `{"command":"rm -rf ~"}`, `{"command":"make test"}`} {
		await(t, h, launchIn(t, h, "other", input))
		r := <-answers
		assert.Equal(t, "rule=project", r.Reason, "each of its readings is denied: %s", input)
	}
}

// An answer to one input never carries over to another one.
func TestAnAnswerIsForTheInputThatWasShown(t *testing.T) {
	for _, pair := range [][2]string{
		{`{"command":"a","command":"b"}`, `{"command":"b"}`},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`},
		{`{"n":1e400}`, `{"n":1e401}`},
		{`{"command":"\ud800"}`, `{"command":"\ud801"}`},
		{`{"command":"a","Command":"b"}`, `{"Command":"a","command":"b"}`},
		{`{"command":"a","Command":"b"}`, `{"Command":"b","command":"a"}`},
	} {
		assert.NotEqual(t, policy.Hash("Bash", json.RawMessage(pair[0])), policy.Hash("Bash", json.RawMessage(pair[1])), "%s", pair)
		assert.False(t, isSameInput(json.RawMessage(pair[0]), json.RawMessage(pair[1])))
	}
	assert.Equal(t, policy.Hash("Bash", json.RawMessage(`{"a":1,"b":"x"}`)), policy.Hash("Bash", json.RawMessage(` {"b":"\u0078", "a":1}`)))
	assert.NotEqual(t, policy.Hash("Bash", nil), policy.Hash("Read", nil))
}

// Where an agent tells of a tool call in diffs and paths alone, an answer is for
// those.
func TestAQuestionWithoutAnInputIsKnownByWhatItShows(t *testing.T) {
	text := "x"
	base := catalog.RequestPermissionParams{ToolName: "Edit", Title: "Edit a", Paths: []string{"a"}, Diffs: []catalog.FileDiff{{Path: "a", OldText: &text, NewText: "y"}}}
	others := map[string]func(*catalog.RequestPermissionParams){
		"diff": func(p *catalog.RequestPermissionParams) {
			p.Diffs = []catalog.FileDiff{{Path: "a", OldText: &text, NewText: "z"}}
		},
		"none":  func(p *catalog.RequestPermissionParams) { p.Diffs = nil },
		"path":  func(p *catalog.RequestPermissionParams) { p.Paths = []string{"b"} },
		"title": func(p *catalog.RequestPermissionParams) { p.Title = "Edit b" },
		"tool":  func(p *catalog.RequestPermissionParams) { p.ToolName = "Write" },
	}
	named := base
	named.ToolInput = json.RawMessage(`{"file_path":"a"}`)
	for _, name := range []string{"diff", "none", "tool"} {
		other := named
		others[name](&other)
		assert.NotEqual(t, approvalOf(named).Question, approvalOf(other).Question, "%s, of an input that names the file alone", name)
	}
	assert.NotEqual(t, approvalOf(base).Question, approvalOf(named).Question)
	for _, input := range []string{"", "{}", " null"} {
		p := base
		p.ToolInput = json.RawMessage(input)
		assert.Equal(t, approvalOf(base).Question, approvalOf(p).Question)
		for name, change := range others {
			other := p
			change(&other)
			assert.NotEqual(t, approvalOf(p).Question, approvalOf(other).Question, name)
		}
	}
}

// What a file held before is no part of a question whose input says what is
// written.
func TestAQuestionIsKnownAgainWhenTheFileHasChanged(t *testing.T) {
	before, since := "x", "w"
	p := catalog.RequestPermissionParams{
		ToolName: "Write", ToolInput: json.RawMessage(`{"file_path":"a","content":"y"}`),
		Diffs: []catalog.FileDiff{{Path: "a", OldText: &before, NewText: "y"}},
	}
	again := p
	again.Diffs = []catalog.FileDiff{{Path: "a", OldText: &since, NewText: "y"}}
	assert.Equal(t, approvalOf(p).Question, approvalOf(again).Question)
	again.Diffs = []catalog.FileDiff{{Path: "b", OldText: &before, NewText: "y"}}
	assert.NotEqual(t, approvalOf(p).Question, approvalOf(again).Question)
	again.Diffs = []catalog.FileDiff{{Path: "a", OldText: &before, NewText: "z"}}
	assert.NotEqual(t, approvalOf(p).Question, approvalOf(again).Question)
}
