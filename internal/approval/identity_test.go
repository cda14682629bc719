package approval

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/policy"
)

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

func TestWhoIsAskedSeesThatAnInputHasTwoReadings(t *testing.T) {
	a := domain.Approval{Type: domain.FunctionCall, Tool: "Bash", Title: "make test", Input: json.RawMessage(`{"command":"rm -rf ~","Command":"make test"}`)}
	ambiguity, title := Presented(a)
	assert.NotEmpty(t, ambiguity)
	assert.Contains(t, title, ambiguity, "every client shows it")
	assert.Contains(t, title, "make test")
	a.Input = json.RawMessage(`{"command":"make test"}`)
	ambiguity, title = Presented(a)
	assert.Empty(t, ambiguity)
	assert.Equal(t, "make test", title)
}

// What is too long for an event is in the approval.
func TestAQuestionIsToldAsFarAsItFits(t *testing.T) {
	short := domain.Approval{Input: json.RawMessage(`{"a":1}`), Diffs: []domain.Diff{{Path: "/a", NewText: "x"}}, Options: []domain.Option{{ID: "o"}}}
	told := Requested(short)
	assert.Equal(t, []any{short.Input, short.Diffs, short.Options, false}, []any{told.Input, told.Diffs, told.Options, told.Truncated})

	long := short
	long.Diffs = []domain.Diff{{Path: "/a", NewText: strings.Repeat("x", domain.MaxEventText)}}
	told = Requested(long)
	assert.Nil(t, told.Diffs)
	assert.Equal(t, []any{short.Input, true}, []any{told.Input, told.Truncated})

	long = short
	long.Input = json.RawMessage(`"` + strings.Repeat("x", domain.MaxEventText) + `"`)
	told = Requested(long)
	assert.Nil(t, told.Input)
	assert.Equal(t, []any{short.Diffs, true}, []any{told.Diffs, told.Truncated})
}
