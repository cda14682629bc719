package approval

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An answer for one input never applies to another.
func TestAnAnswerIsForTheInputThatWasShown(t *testing.T) {
	for _, pair := range [][2]string{
		{`{"command":"a","command":"b"}`, `{"command":"b"}`},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`},
		{`{"n":1e400}`, `{"n":1e401}`},
		{`{"command":"\ud800"}`, `{"command":"\ud801"}`},
		{`{"command":"a","Command":"b"}`, `{"Command":"a","command":"b"}`},
		{`{"command":"a","Command":"b"}`, `{"Command":"b","command":"a"}`},
	} {
		assert.NotEqual(t, inputHash("Bash", json.RawMessage(pair[0])), inputHash("Bash", json.RawMessage(pair[1])), "%s", pair)
		assert.False(t, isSameInput(json.RawMessage(pair[0]), json.RawMessage(pair[1])))
	}
	assert.Equal(t, inputHash("Bash", json.RawMessage(`{"a":1,"b":"x"}`)), inputHash("Bash", json.RawMessage(` {"b":"\u0078", "a":1}`)))
	assert.NotEqual(t, inputHash("Bash", nil), inputHash("Read", nil))
}

// If an agent reports a tool call only by diffs and paths, an answer applies to those.
func TestAQuestionWithoutAnInputIsKnownByWhatItShows(t *testing.T) {
	text := "x"
	base := catalog.RequestPermissionParams{ToolName: "Edit", Title: "Edit a", Paths: []string{"a"}, Diffs: []domain.Diff{{Path: "a", OldText: &text, NewText: "y"}}}
	others := map[string]func(*catalog.RequestPermissionParams){
		"diff": func(p *catalog.RequestPermissionParams) {
			p.Diffs = []domain.Diff{{Path: "a", OldText: &text, NewText: "z"}}
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

// Earlier file contents do not identify a question whose input has the new text.
func TestAQuestionIsKnownAgainWhenTheFileHasChanged(t *testing.T) {
	before, since := "x", "w"
	p := catalog.RequestPermissionParams{
		ToolName: "Write", ToolInput: json.RawMessage(`{"file_path":"a","content":"y"}`),
		Diffs: []domain.Diff{{Path: "a", OldText: &before, NewText: "y"}},
	}
	again := p
	again.Diffs = []domain.Diff{{Path: "a", OldText: &since, NewText: "y"}}
	assert.Equal(t, approvalOf(p).Question, approvalOf(again).Question)
	again.Diffs = []domain.Diff{{Path: "b", OldText: &before, NewText: "y"}}
	assert.NotEqual(t, approvalOf(p).Question, approvalOf(again).Question)
	again.Diffs = []domain.Diff{{Path: "a", OldText: &before, NewText: "z"}}
	assert.NotEqual(t, approvalOf(p).Question, approvalOf(again).Question)
}

// The same holds for diffs of hunks, which show only a part of the new text.
func TestAQuestionIsKnownAgainByItsHunks(t *testing.T) {
	input := json.RawMessage(`{"file_path":"a","content":"1\n2\n3\n4\n5\nnew\n"}`)
	question := func(diffs ...string) string {
		p := catalog.RequestPermissionParams{ToolName: "Write", ToolInput: input}
		for i := 0; i < len(diffs); i += 2 {
			p.Diffs = append(p.Diffs, domain.Diff{Path: "a", OldText: &diffs[i], NewText: diffs[i+1]})
		}
		return approvalOf(p).Question
	}
	asked := question("4\n5\n", "4\n5\nnew\n")
	assert.Equal(t, asked, question("4\n5\nother\n", "4\n5\nnew\n"), "the file has another line by now")
	assert.Equal(t, asked, question("0\n2\n", "1\n2\n", "5\n", "5\nnew\n"), "and another one elsewhere")
	assert.Equal(t, asked, question("4\n5\nnew\nother\n", "4\n5\nnew\n"), "and a line behind it")
	assert.Equal(t, asked, question(), "and all of it")
	assert.NotEqual(t, asked, question("4\n5\n", "4\n5\nworse\n"), "which is not in the input")
	assert.NotEqual(t, asked, question("4\n5\n", "4\nnew\n"), "nor are these lines together")
	assert.NotEqual(t, asked, question("4\n5\n", "ew\n"), "nor is half a line")
	assert.NotEqual(t, asked, question("4\n5\n", ""), "all is taken away")
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

// Data too long for an event is in the approval.
func TestAQuestionIsToldAsFarAsItFits(t *testing.T) {
	short := domain.Approval{Input: json.RawMessage(`{"a":1}`), Diffs: []domain.Diff{{Path: "/a", NewText: "x"}}, Options: []domain.Option{{ID: "o"}}}
	reported := Requested(short, Directories{Root: "/p", CWD: "/p"})
	assert.Equal(t, []any{short.Input, short.Diffs, short.Options, false}, []any{reported.Input, reported.Diffs, reported.Options, reported.Truncated})

	long := short
	long.Diffs = []domain.Diff{{Path: "/a", NewText: strings.Repeat("x", domain.MaxEventText)}}
	reported = Requested(long, Directories{Root: "/p", CWD: "/p"})
	assert.Nil(t, reported.Diffs)
	assert.Equal(t, []any{short.Input, true}, []any{reported.Input, reported.Truncated})

	long = short
	long.Plan = strings.Repeat("x", domain.MaxEventText+1)
	reported = Requested(long, Directories{Root: "/p", CWD: "/p"})
	assert.Equal(t, []any{"", short.Input, true}, []any{reported.Plan, reported.Input, reported.Truncated})

	ruled := domain.Approval{Type: domain.FunctionCall, Question: "q", Tool: "Write", ToolKind: "edit", Paths: []string{"/q/a/b"}}
	assert.Equal(t, "/q/a/*", Requested(ruled, Directories{Root: "/p", CWD: "/p"}).Rule.Pattern)
	ruled.Paths = []string{"/q/" + strings.Repeat("x", domain.MaxEventText) + "/b"}
	assert.Nil(t, Requested(ruled, Directories{Root: "/p", CWD: "/p"}).Rule)

	long = short
	long.Input = json.RawMessage(`"` + strings.Repeat("x", domain.MaxEventText) + `"`)
	reported = Requested(long, Directories{Root: "/p", CWD: "/p"})
	assert.Nil(t, reported.Input)
	assert.Equal(t, []any{short.Diffs, true}, []any{reported.Diffs, reported.Truncated})
}

// codexInput is a command's input from codex. It contains when and why codex asks.
const codexInput = `{"call_id":"call_1","turn_id":"01a2026c-0176","started_at_ms":1795336962508,"command":["/bin/bash","-lc","touch made.txt"],"cwd":"/p",` +
	`"reason":"the prompt asks for it","proposed_execpolicy_amendment":["touch","made.txt"],"available_decisions":["approved","abort"],"parsed_cmd":[{"type":"unknown","cmd":"touch made.txt"}]}`

// A restarted agent asks with other ids and at another time.
func TestAQuestionIsKnownAgainByWhatIsDone(t *testing.T) {
	question := func(call string, changes ...string) string {
		input := strings.NewReplacer(changes...).Replace(codexInput)
		return approvalOf(catalog.RequestPermissionParams{ToolName: "Bash", ToolUseID: call, ToolInput: json.RawMessage(input)}).Question
	}
	first := question("call_1")
	assert.Equal(t, first, question("call_2", "call_1", "call_2", "0176", "0177", "1795336962508", "1", "the prompt asks for it", "it was wanted", `"type":"unknown"`, `"type":"other"`))
	assert.Equal(t, first, question("call_1", "touch made.txt\"],\"cwd", "touch  made.txt # now\"],\"cwd"))
	for _, change := range [][]string{
		{"touch made.txt\"],\"cwd", "touch other.txt\"],\"cwd"},
		{`"cwd":"/p"`, `"cwd":"/q"`},
		{"-lc", "-c"},
		{`["approved","abort"]`, `["abort"]`},
		{`"cwd"`, `"additional_permissions":{"network":true},"cwd"`},
	} {
		assert.NotEqual(t, first, question("call_1", change...), "%s", change)
	}
	// Another tool's members of these names may be part of the action.
	assert.NotEqual(t, question("1"), question("1", "0176", "0177"))
	plain := func(command string) string {
		return approvalOf(catalog.RequestPermissionParams{ToolName: "Bash", ToolUseID: "x", ToolInput: asJSON(map[string]string{"command": command})}).Question
	}
	assert.Equal(t, plain("touch x"), plain(" touch   x"))
	assert.Equal(t, inputHash("Bash", json.RawMessage(`{"command":"touch x"}`)), plain("touch x"), "the hash of the input itself")
	assert.NotEqual(t, plain("touch 'a b'"), plain("touch a b"))
	assert.NotEqual(t, plain("["+`"bash","-lc","x"]`), approvalOf(catalog.RequestPermissionParams{ToolName: "Bash", ToolInput: json.RawMessage(`{"command":["bash","-lc","x"]}`)}).Question)
}
