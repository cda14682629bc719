package turn

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// asking returns an asker with an open question, and the buffer of its messages.
func asking(a hubclient.Approval) (*asker, asked, *bytes.Buffer) {
	var side bytes.Buffer
	return &asker{keyboard: new(keyboard), view: NewView(&side, &side, true, false)}, asked{Approval: a, dir: "/", sheet: Sheet(a, "/")}, &side
}

// decides passes lines to the asker. The last one must make a decision.
func decides(t *testing.T, a *asker, q asked, lines ...string) protocol.DecisionParams {
	t.Helper()
	for i, line := range lines {
		d, again := a.decisionOf(q, typed{text: line})
		assert.Equal(t, i < len(lines)-1, again, "after %q", line)
		if !again {
			return d
		}
	}
	return protocol.DecisionParams{}
}

func TestKeysAnswerToolQuestion(t *testing.T) {
	t.Setenv("EDITOR", "")
	t.Setenv("VISUAL", "")
	tool := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`), Editable: true}}
	for _, c := range []struct {
		lines []string
		want  protocol.DecisionParams
		says  string
	}{
		{[]string{"y"}, protocol.DecisionParams{Decision: "approve"}, ""},
		{[]string{"YES"}, protocol.DecisionParams{Decision: "approve"}, ""},
		{[]string{"s", "y"}, protocol.DecisionParams{Decision: "approve"}, "— cannot make a rule: Duet cannot tell what else it would allow; please type y, n, t, e or ?\n"},
		{[]string{"n"}, protocol.DecisionParams{Decision: "deny", Comment: "denied"}, ""},
		{[]string{"No"}, protocol.DecisionParams{Decision: "deny", Comment: "denied"}, ""},
		{[]string{"t", "use git"}, protocol.DecisionParams{Decision: "deny", Comment: "use git"}, ""},
		{[]string{"t", "", "n"}, protocol.DecisionParams{Decision: "deny", Comment: "denied"}, ""},
		{[]string{"", "y"}, protocol.DecisionParams{Decision: "approve"}, "— please type y, n, t, e or ?\n"},
		{
			[]string{"e", "no", `{"command":"pwd"}`},
			protocol.DecisionParams{Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"pwd"}`)},
			"  {\"command\":\"ls\"}\n— that is not a JSON object; an empty line goes back\n",
		},
		{[]string{"e", "", "y"}, protocol.DecisionParams{Decision: "approve"}, "  {\"command\":\"ls\"}\n"},
	} {
		a, q, side := asking(tool)
		assert.Equal(t, c.want, decides(t, a, q, c.lines...), "%q", c.lines)
		assert.Equal(t, c.says, side.String(), "%q", c.lines)
	}
	tool.Editable = false
	a, q, side := asking(tool)
	decides(t, a, q, "e", "y")
	assert.Contains(t, side.String(), "accepts no other input")
	tool.Editable, tool.ToolInput = true, json.RawMessage(`"`+strings.Repeat("x", 2000)+`"`)
	a, q, side = asking(tool)
	decides(t, a, q, "e", "y")
	assert.Contains(t, side.String(), "duet-rpc approvals allow 12345678 --edit-input JSON")
}

// A text of one line is edited below the question. A longer one is edited as it is, not as JSON.
func TestTheTextOfATool(t *testing.T) {
	tool := hubclient.Approval{Approval: protocol.Approval{
		ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls","n":1.0}`), Editable: true,
		TextMember: "command",
	}}
	for typed, want := range map[string]protocol.DecisionParams{
		"ls":    {Decision: "approve"},
		"ls -l": {Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"ls -l","n":1.0}`)},
	} {
		a, q, _ := asking(tool)
		a.mode = eachKey
		assert.Equal(t, want, decides(t, a, q, "e", typed))
		assert.Equal(t, "ls", a.unfinished.Text(), "what the user edits")
		assert.Empty(t, a.given)
	}
	a, q, _ := asking(tool)
	a.mode = eachKey
	assert.Equal(t, denial, decides(t, a, q, "e", "", "n"), "an empty line goes back")

	// A pattern that a line would change is agreed to as it is.
	tool.Rules = protocol.RulePreviews{domain.ScopeSession: {Pattern: "rm *.o\n", Text: "the command"}}
	a, q, _ = asking(tool)
	a.mode = eachKey
	assert.Equal(t, protocol.DecisionParams{Decision: "approve", Scope: "session"}, decides(t, a, q, "s", ""))
	tool.Rules = protocol.RulePreviews{domain.ScopeSession: {Pattern: "rm *.o", Text: "the command"}}
	for typed, want := range map[string]protocol.DecisionParams{
		"rm *.o": {Decision: "approve", Scope: "session"}, "rm *": {Decision: "approve", Scope: "session", Pattern: "rm *"},
	} {
		a, q, _ = asking(tool)
		a.mode = eachKey
		assert.Equal(t, want, decides(t, a, q, "s", typed))
		assert.Equal(t, "rm *.o", a.unfinished.Text(), "what the user edits")
	}

	tool.ToolName, tool.Paths, tool.ToolInput, tool.TextMember = "Edit", []string{"/p/a.go"}, json.RawMessage(`{"old_string":"x\n","new_string":"y\n"}`), "new_string"
	before := "x\nw\n"
	tool.Diffs = []domain.Diff{{Path: "/p/a.go", OldText: &before, NewText: "y\nw\n"}}
	_, q, _ = asking(tool)
	for _, text := range []string{"", " x", "x ", "x\ty", "x\ny", "x\u202ey", strings.Repeat("x", longestGiven+1)} {
		a, _, _ := asking(tool)
		a.mode = eachKey
		assert.False(t, a.give(text), "%q: a line would change it", text)
		assert.Empty(t, a.unfinished.Text())
	}
	name, text := editable(q)
	assert.Equal(t, []string{"a.go", "y\n"}, []string{name, text})
	input, err := changedInput(q, "z\n")
	require.NoError(t, err)
	assert.Equal(t, "z\nw\n", withInput(q.Approval, input).Diffs[0].NewText)

	q.TextMember = ""
	name, _ = editable(q)
	assert.Equal(t, "input.json", name)
	for _, none := range []string{"{", "null", "7"} {
		_, err := changedInput(q, none)
		assert.Error(t, err, none)
	}
}

// A reason that comes together with its key is in the line, for the user to send.
func TestReasonBehindItsKey(t *testing.T) {
	tool := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", TakesComment: true}}
	a, q, side := asking(tool)
	a.mode = eachKey
	want := protocol.DecisionParams{Decision: "deny", Comment: "not yet"}
	assert.Equal(t, want, decides(t, a, q, "tnot yet", "not yet"))
	assert.Equal(t, "not yet", a.unfinished.Text())
	assert.Empty(t, side.String())

	a, q, side = asking(tool) // a terminal that delivers lines
	decides(t, a, q, "tnot yet", "y")
	assert.Contains(t, side.String(), "please type")
}

// In the inbox the prompt, and the list after a wrong key, have the keys that leave it open and quit.
func TestInboxNamesTheKeysThatLeave(t *testing.T) {
	tool := protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", Editable: true}
	many := tool
	many.Options = make([]domain.Option, 10)
	choice := protocol.Approval{ApprovalID: "12345678-9", Type: domain.HumanContact, OptionsOnly: true, Declinable: true, Options: []domain.Option{{ID: "a", Name: "A"}, {ID: "b", Name: "B"}}}
	for _, c := range []struct {
		asked protocol.Approval
		asks  string // at the end of the prompt
		says  string
	}{
		{tool, ", [l] Later, [q] Quit, [?] Keys: ", "— please type y, n, t, e, l, q or ?\n"},
		{many, ", :later, :quit, [?] Keys: ", "— please type y, n, t, e, 1-10, :later, :quit or ?\n"},
		{choice, ", [n] Decline, [l] Later, [q] Quit: ", "— please type 1 to 2, n, l or q\n"},
	} {
		a, q, side := asking(hubclient.Approval{Approval: c.asked})
		a.isInbox = true
		assert.True(t, strings.HasSuffix(a.promptFor(q), c.asks), a.promptFor(q))
		_, again := a.decisionOf(q, typed{text: "x"})
		assert.True(t, again)
		assert.Equal(t, c.says, side.String())
	}
}

// The user can choose each answer that an agent offers. A question explains a rule before Duet
// stores it.
func TestAgentOptionsAndRules(t *testing.T) {
	tool := hubclient.Approval{
		Approval: protocol.Approval{
			ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`),
			Options: []domain.Option{{ID: "yes", Name: "Yes", Kind: "allow_once"}, {ID: "ever", Name: "Yes, ever", Kind: "allow_always"}, {ID: "no", Name: "No, tell", Kind: "reject_once"}, {ID: "here", Name: "Yes, here", Kind: "allow_always"}},
			Rules:   map[string]protocol.RulePreview{"session": {Pattern: "ls", Text: "the command ls, in this session"}, "project": {Text: "Bash with the very same input, in this project"}},
		},
	}
	for _, c := range []struct {
		lines []string
		want  protocol.DecisionParams
		says  string
	}{
		{[]string{"2"}, protocol.DecisionParams{Decision: "approve", Option: "ever"}, ""},
		{[]string{"3"}, protocol.DecisionParams{Decision: "deny", Option: "no", Comment: "No, tell"}, ""},
		{[]string{"5", "1"}, protocol.DecisionParams{Decision: "approve", Option: "yes"}, "— please type y, n, t, s, p, 1-4 or ?\n"},
		{[]string{"s", ""}, protocol.DecisionParams{Decision: "approve", Scope: "session"}, "— this rule allows without asking: the command ls, in this session\n"},
		{[]string{"s", "ls *"}, protocol.DecisionParams{Decision: "approve", Scope: "session", Pattern: "ls *"}, "— this rule allows without asking: the command ls, in this session\n"},
		{[]string{"s", ".", "y"}, protocol.DecisionParams{Decision: "approve"}, "— this rule allows without asking: the command ls, in this session\n"},
		{[]string{"p", ""}, protocol.DecisionParams{Decision: "approve", Scope: "project"}, "— this rule allows without asking: Bash with the very same input, in this project\n"},
		{[]string{"p", "x", "y"}, protocol.DecisionParams{Decision: "approve"}, "— this rule allows without asking: Bash with the very same input, in this project\n"},
		{[]string{"t", "use git"}, protocol.DecisionParams{Decision: "deny", Comment: "use git", Tell: true}, ""},
		{[]string{"t", "", "y"}, protocol.DecisionParams{Decision: "approve"}, ""},
	} {
		a, q, side := asking(tool)
		assert.Equal(t, c.want, decides(t, a, q, c.lines...), "%q", c.lines)
		assert.Equal(t, c.says, side.String(), "%q", c.lines)
	}
	a, q, _ := asking(tool)
	assert.Equal(t, "[y] Allow, [n] Deny, [t] Deny and say why, [s] Always in this session, [p] Always in this project, [1-4] Choose, [?] Keys: ", a.promptFor(q))

	plan := hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "ExitPlanMode", Title: "Ready to code?", Plan: "1. x\n2. y\n", ToolInput: json.RawMessage(`{"plan":"1. x\n2. y\n"}`), Options: tool.Options[:3], TakesComment: true}}
	a, q, side := asking(plan)
	a.show(q)
	assert.Equal(t, "? ExitPlanMode: Ready to code?\n  1. x\n  2. y\n  1  Yes (allows)\n  2  Yes, ever (allows; the agent remembers it)\n  3  No, tell (denies)\n", side.String())
	side.Reset()
	decides(t, a, q, "s", "y")
	assert.Equal(t, "— a plan makes no rule: please type y, n, t, 1-3 or ?\n", side.String())
}

// The question lists the agent's options if the keys y, n and s do not cover them.
func TestOptionsThatSayMoreAreListed(t *testing.T) {
	allow, always := domain.Option{ID: "1", Name: "Allow", Kind: "allow_once"}, domain.Option{ID: "2", Name: "Always", Kind: "allow_always"}
	reject, never := domain.Option{ID: "3", Name: "Reject", Kind: "reject_once"}, domain.Option{ID: "4", Name: "Never", Kind: "reject_always"}
	rules := map[string]protocol.RulePreview{"session": {Text: "the command ls, in this session"}}
	for _, c := range []struct {
		options []domain.Option
		rules   map[string]protocol.RulePreview
		listed  bool
	}{
		{[]domain.Option{allow, reject}, rules, false},
		{[]domain.Option{allow, reject}, nil, false},
		{[]domain.Option{allow, always, reject, never}, rules, false},
		{[]domain.Option{allow, always, reject}, nil, true}, // no key s
		{[]domain.Option{allow, always, {ID: "5", Name: "Always here", Kind: "allow_always"}, reject}, rules, true},
		{[]domain.Option{always, reject}, rules, true}, // y means always
		{[]domain.Option{allow, never}, rules, true},   // n means always
		{[]domain.Option{allow, reject, {ID: "6", Name: "Explain", Kind: "other"}}, rules, true},
	} {
		a, q, side := asking(hubclient.Approval{Approval: protocol.Approval{ApprovalID: "12345678-9", Type: domain.FunctionCall, ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`), Options: c.options, Rules: c.rules}})
		a.show(q)
		assert.Equal(t, c.listed, strings.Contains(side.String(), "  1  "), "%v\n%s", c.options, side)
		assert.Equal(t, c.listed, strings.Contains(a.promptFor(q), "] Choose"), "%v", c.options)
		if !c.listed {
			assert.Equal(t, protocol.DecisionParams{Decision: "approve"}, decides(t, a, q, "2", "y"), "no number chooses an unlisted option")
		}
	}
}

func TestUserQuestionTakesNumberOrText(t *testing.T) {
	person := hubclient.Approval{Approval: protocol.Approval{Type: domain.HumanContact, Title: "Which?", Options: []domain.Option{{ID: "r", Name: "red"}, {ID: "b", Name: "blue"}}}}
	for line, want := range map[string]protocol.DecisionParams{
		"2":     {Decision: "respond", Option: "b", Comment: "blue"},
		"3":     {Decision: "respond", Comment: "3"},
		"green": {Decision: "respond", Comment: "green"},
	} {
		a, q, _ := asking(person)
		assert.Equal(t, want, decides(t, a, q, "", line))
	}
	// Flags answer a question too.
	a := asked{Approval: person}
	assert.Equal(t, protocol.DecisionParams{Decision: "respond", Option: "r", Comment: "red"}, asResponse(a, protocol.DecisionParams{Decision: "approve"}))
	assert.Equal(t, protocol.DecisionParams{Decision: "respond", Comment: "nobody is there"}, asResponse(a, protocol.DecisionParams{Decision: "deny", Comment: "nobody is there"}))
	a.Declinable = true
	assert.Equal(t, protocol.DecisionParams{Decision: "deny", Comment: "nobody is there"}, asResponse(a, protocol.DecisionParams{Decision: "deny", Comment: "nobody is there"}))
}

func TestChoiceTakesOnlyNumber(t *testing.T) {
	person := hubclient.Approval{
		Approval: protocol.Approval{
			Type: domain.HumanContact, Title: "Which?", OptionsOnly: true, Declinable: true,
			Options: []domain.Option{{ID: "r", Name: "red"}, {ID: "b", Name: "blue"}},
		},
	}
	for line, want := range map[string]protocol.DecisionParams{
		"2": {Decision: "respond", Option: "b", Comment: "blue"},
		"n": {Decision: "deny", Comment: "declined"},
	} {
		a, q, _ := asking(person)
		assert.Equal(t, "Choose 1 to 2, [n] Decline: ", a.promptFor(q))
		assert.Equal(t, want, decides(t, a, q, "", line))
	}
}

func TestInputCanBeTypedAgain(t *testing.T) {
	shown := typeable(json.RawMessage(`{"a": "x` + "\u202e" + `y 😀", "b": "\n"}`))
	assert.Equal(t, `{"a":"x\u202ey 😀","b":"\n"}`, shown)
	var before, after any
	assert.NoError(t, json.Unmarshal([]byte(`{"a": "x`+"\u202e"+`y 😀", "b": "\n"}`), &before))
	assert.NoError(t, json.Unmarshal([]byte(shown), &after))
	assert.Equal(t, before, after)
}
