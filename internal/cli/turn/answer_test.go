package turn

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/cli/inbox"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

// asking is an asker that asks a question, and what it says of its own.
func asking(a wire.Approval) (*asker, asked, *bytes.Buffer) {
	var side bytes.Buffer
	return &asker{view: NewView(&side, &side, true, false)}, asked{a, inbox.Sheet(a, "/")}, &side
}

// decides types lines, of which the last must make a decision.
func decides(t *testing.T, a *asker, q asked, lines ...string) wire.Decision {
	t.Helper()
	for i, line := range lines {
		d, again := a.decisionOf(q, typed{text: line})
		assert.Equal(t, i < len(lines)-1, again, "after %q", line)
		if !again {
			return d
		}
	}
	return wire.Decision{}
}

func TestKeysAnswerAQuestionAboutATool(t *testing.T) {
	tool := wire.Approval{ID: "12345678-9", Type: wire.FunctionCall, Tool: "Bash", Input: json.RawMessage(`{"command":"ls"}`), Editable: true}
	for _, c := range []struct {
		lines []string
		want  wire.Decision
		says  string
	}{
		{[]string{"y"}, wire.Decision{Decision: "approve"}, ""},
		{[]string{"YES"}, wire.Decision{Decision: "approve"}, ""},
		{[]string{"a"}, wire.Decision{Decision: "approve", Scope: "session"}, ""},
		{[]string{"n", "use git"}, wire.Decision{Decision: "deny", Comment: "use git"}, ""},
		{[]string{"n", ""}, wire.Decision{Decision: "deny", Comment: "denied"}, ""},
		{[]string{"", "y"}, wire.Decision{Decision: "approve"}, "— please type y, n, a or e\n"},
		{
			[]string{"e", "no", `{"command":"pwd"}`},
			wire.Decision{Decision: "approve", Input: json.RawMessage(`{"command":"pwd"}`)},
			"  {\"command\":\"ls\"}\n— that is not a JSON object; an empty line goes back\n",
		},
		{[]string{"e", "", "y"}, wire.Decision{Decision: "approve"}, "  {\"command\":\"ls\"}\n— that is not a JSON object; an empty line goes back\n"},
	} {
		a, q, side := asking(tool)
		assert.Equal(t, c.want, decides(t, a, q, c.lines...), "%q", c.lines)
		assert.Equal(t, c.says, side.String(), "%q", c.lines)
	}
	tool.Editable = false
	a, q, side := asking(tool)
	decides(t, a, q, "e", "y")
	assert.Contains(t, side.String(), "runs the tool with its own input")
	tool.Editable, tool.Input = true, json.RawMessage(`"`+strings.Repeat("x", 2000)+`"`)
	a, q, side = asking(tool)
	decides(t, a, q, "e", "y")
	assert.Contains(t, side.String(), "duet-rpc approvals approve 12345678 --edit-input JSON")
}

func TestAQuestionToAPersonIsAnsweredByNumberOrWords(t *testing.T) {
	person := wire.Approval{Type: wire.HumanContact, Title: "Which?", Options: []wire.Option{{OptionID: "r", Name: "red"}, {OptionID: "b", Name: "blue"}}}
	for line, want := range map[string]wire.Decision{
		"2":     {Decision: "respond", Option: "b", Comment: "blue"},
		"3":     {Decision: "respond", Comment: "3"},
		"green": {Decision: "respond", Comment: "green"},
	} {
		a, q, _ := asking(person)
		assert.Equal(t, want, decides(t, a, q, "", line))
	}
	// What the flags say is an answer, too.
	a := asked{Approval: person}
	assert.Equal(t, wire.Decision{Decision: "respond", Option: "r", Comment: "red"}, asResponse(a, wire.Decision{Decision: "approve"}))
	assert.Equal(t, wire.Decision{Decision: "respond", Comment: "nobody is there"}, asResponse(a, wire.Decision{Decision: "deny", Comment: "nobody is there"}))
	a.Options[0].Kind = "allow_once"
	assert.Equal(t, wire.Decision{Decision: "deny", Comment: "nobody is there"}, asResponse(a, wire.Decision{Decision: "deny", Comment: "nobody is there"}))
}

func TestInputIsShownSoThatItCanBeTypedAgain(t *testing.T) {
	shown := typeable(json.RawMessage(`{"a": "x` + "\u202e" + `y 😀", "b": "\n"}`))
	assert.Equal(t, `{"a":"x\u202ey 😀","b":"\n"}`, shown)
	var before, after any
	assert.NoError(t, json.Unmarshal([]byte(`{"a": "x`+"\u202e"+`y 😀", "b": "\n"}`), &before))
	assert.NoError(t, json.Unmarshal([]byte(shown), &after))
	assert.Equal(t, before, after)
}
