package approval

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// rulingOn returns the policy's ruling on a call; "" if it asks.
func rulingOn(p *Policy, a domain.Approval, session domain.Session, turn domain.Turn, rules ...domain.Rule) string {
	a.Question = inputHash(a.Tool, a.Input)
	r := p.Judge(callOf(a), Situation{Session: session, Turn: turn, Rules: rules, Now: time.Unix(1000, 0)})
	if !r.IsSettled() {
		return ""
	}
	return fmt.Sprint(r.Approved, " ", r.Reason)
}

func TestAnInputWithTwoReadingsIsAllowedByNothingAndDeniedByEither(t *testing.T) {
	rules := func(list ...config.Rule) *Policy {
		for i := range list {
			list[i].Source = "user"
		}
		return NewPolicy("/p", always(list))
	}
	allowing := rules(
		config.Rule{Effect: "allow", Tool: "Bash", Command: "make test"}, config.Rule{Effect: "allow", Tool: "Bash", Command: "*"}, config.Rule{Effect: "allow", Tool: "*"},
		config.Rule{Effect: "allow", Tool: "Edit", Path: "*"},
	)
	denying := rules(config.Rule{Effect: "deny", Tool: "Bash", Command: "rm *"}, config.Rule{Effect: "deny", Path: "*.key"}, config.Rule{Effect: "allow", Tool: "*"})
	for _, input := range []string{
		`{"command":"rm -rf ~","Command":"make test"}`, `{"Command":"make test","command":"rm -rf ~"}`, `{"command":"make test","Command":"rm -rf ~"}`,
		`{"command":"rm -rf ~","command":"make test"}`, `{"command":"make test","command":"rm -rf ~"}`, `{"command":"make test","c\u006fmmand":"rm -rf ~"}`,
		`{"COMMAND":"rm -rf ~"}`, `{"command":"make test","Command":["rm","-rf","~"]}`, `{"command":"make test","Command":["sh","-c","true; rm -rf ~"]}`,
		`{"command":"make test","x":1,"X":2,"Command":"time rm -rf ~"}`,
	} {
		a := domain.Approval{Tool: "Bash", ToolKind: "execute", Input: json.RawMessage(input)}
		assert.Empty(t, rulingOn(allowing, a, domain.Session{}, domain.Turn{}), input)
		settings := domain.Session{Settings: domain.Settings{AllowedTools: []string{"Bash", "Bash(make test)", "Bash(make:*)", "*"}}}
		assert.Empty(t, rulingOn(NewPolicy("", nil), a, settings, domain.Turn{}), input)
		assert.Equal(t, "false rule=tools", rulingOn(allowing, a, domain.Session{}, domain.Turn{Tools: []string{"Bash", "Bash(make test)"}}), input)
		assert.Empty(t, rulingOn(NewPolicy("", nil), a, domain.Session{}, domain.Turn{},
			domain.Rule{Effect: "allow", Tool: "Bash"}, domain.Rule{Effect: "allow", Tool: "Bash", Command: "make test"},
			domain.Rule{Effect: "allow", Tool: "Bash", Command: exactInput + inputHash("Bash", a.Input)}), input)
		assert.Equal(t, "false rule=user", rulingOn(denying, a, domain.Session{}, domain.Turn{}), input)
		assert.Contains(t, rulingOn(allowing, a, domain.Session{Settings: domain.Settings{DisallowedTools: []string{"Bash(rm:*)"}}}, domain.Turn{}), "false", input)
		assert.Equal(t, "false rule=project", rulingOn(allowing, a, domain.Session{}, domain.Turn{}, domain.Rule{Effect: "deny", Tool: "Bash", Command: "rm -rf ~"}), input)
	}
	for _, input := range []string{`{"file_path":"/p/a.key","File_Path":"/p/a"}`, `{"file_path":"/p/a","file_path":"/p/a.key"}`, `{"file_path":"/p/a","FILE_PATH":["/p/a.key"]}`} {
		a := domain.Approval{Tool: "Edit", ToolKind: "edit", Input: json.RawMessage(input)}
		assert.Empty(t, rulingOn(allowing, a, domain.Session{}, domain.Turn{Mode: catalog.ModeAcceptEdits}), input)
		assert.Empty(t, rulingOn(allowing, a, domain.Session{Settings: domain.Settings{AutoAcceptEdits: true}}, domain.Turn{}), input)
		assert.Equal(t, "false rule=user", rulingOn(denying, a, domain.Session{}, domain.Turn{}), input)
		assert.Equal(t, "false mode=plan", rulingOn(allowing, a, domain.Session{}, domain.Turn{Mode: catalog.ModePlan}), input)
		assert.Equal(t, "false rule=user", rulingOn(denying, a, domain.Session{}, domain.Turn{Mode: catalog.ModeBypass}), "what is denied is denied in every mode")
		assert.Contains(t, rulingOn(allowing, a, domain.Session{}, domain.Turn{Mode: catalog.ModeBypass}), "true", "who has allowed everything is not asked")
	}
}

// A command in a text for people may have several readings: each must be allowed, and one denied
// reading denies the call.
func TestACommandWithSeveralReadings(t *testing.T) {
	rule := func(effect, command string) config.Rule {
		return config.Rule{Effect: effect, Tool: "Bash", Command: command, Source: "user"}
	}
	call := func(input string) domain.Approval {
		return domain.Approval{Tool: "Bash", ToolKind: "execute", NameByKind: true, Input: json.RawMessage(input)}
	}
	const (
		clear   = `{"command":"rm x","cwd":"/p/sub"}`
		unclear = `{"command":"touch x [in d]","command_readings":["touch x"]}`
		hidden  = `{"command":"touch x (rm y)","command_readings":["touch x"]}`
		evading = `{"command":"echo x; rm y (z)","command_readings":["echo x; rm y"]}`
		many    = `{"command":"touch x [a]","command_readings":["touch x",""]}`
	)
	for _, c := range []struct {
		input, want string
		rules       []config.Rule
	}{
		{clear, "true rule=user", []config.Rule{rule("allow", "rm *")}},
		{clear, "false rule=user", []config.Rule{rule("allow", "*"), rule("deny", "rm *")}},
		{unclear, "true rule=user", []config.Rule{rule("allow", "touch *")}},
		{unclear, "true rule=user", []config.Rule{rule("allow", "touch x"), rule("allow", "touch x *")}},
		{unclear, "", []config.Rule{rule("allow", "touch x")}},
		{unclear, "", []config.Rule{rule("allow", "touch x ?*")}},
		{unclear, "false rule=user", []config.Rule{rule("allow", "*"), rule("deny", "touch x")}},
		{unclear, "false rule=user", []config.Rule{rule("allow", "*"), rule("deny", "touch x [[]in d]")}},
		{hidden, "", []config.Rule{rule("allow", "touch *")}},
		{hidden, "false rule=user", []config.Rule{rule("deny", "touch x")}},
		{evading, "", []config.Rule{rule("allow", "echo *")}},
		{evading, "false rule=user", []config.Rule{rule("allow", "*"), rule("deny", "rm y")}},
		{many, "", []config.Rule{rule("allow", "touch *")}},
		{`{"command":"touch x","cwd":["/p","/q"]}`, "", []config.Rule{rule("allow", "touch *")}},
		{`{"command":"touch x","cwd":null,"workdir":null,"additional_permissions":null}`, "true rule=user", []config.Rule{rule("allow", "touch *")}},
		{`{"command":"touch x","additional_permissions":{}}`, "", []config.Rule{rule("allow", "touch *")}},
		{`{"command":"touch x","cwd":"/etc"}`, "", []config.Rule{rule("allow", "touch *")}},
	} {
		assert.Equal(t, c.want, rulingOn(NewPolicy("/p", always(c.rules)), call(c.input), domain.Session{CWD: "/p"}, domain.Turn{}), "%s %v", c.input, c.rules)
	}
	asked := call(unclear)
	asked.Question = inputHash(asked.Tool, asked.Input)
	for effect, want := range map[string]map[string]string{
		"allow": {unclear: "true", `{"command":"touch x"}`: "", `{"command":"touch x [in d]"}`: ""},
		"deny":  {unclear: "false", `{"command":"touch x"}`: "false", `{"command":"touch x [in d]"}`: "false", `{"command":"touch y"}`: ""},
	} {
		rules := must(rulesFor(asked, ruleSpec{Effect: effect}))(t)
		for input, ruling := range want {
			got, _, _ := strings.Cut(rulingOn(NewPolicy("", nil), call(input), domain.Session{}, domain.Turn{}, rules...), " ")
			assert.Equal(t, ruling, got, "%s %s", effect, input)
		}
	}
}

// A list of words is a command; a list of anything else is not.
func TestAListIsTheCommandThatItRuns(t *testing.T) {
	list := []config.Rule{
		{Effect: "deny", Tool: "Bash", Command: "rm *", Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: `\[*`, Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: "*ls*", Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: "[[]*", Source: "user"},
		{Effect: "allow", Tool: "Read", Path: "*", Source: "user"},
	}
	policy := NewPolicy("/p", always(list))
	call := func(input string) domain.Approval {
		return domain.Approval{Tool: "Bash", ToolKind: "execute", Input: json.RawMessage(input)}
	}
	for input, want := range map[string]string{
		`{"command":["ls"]}`:                      "true rule=user",
		`{"command":["/bin/bash","-lc","ls"]}`:    "true rule=user",
		`{"command":["ls",7]}`:                    "",
		`{"command":["bash","-lc","ls",["x"]]}`:   "",
		`{"command":["ls","x\u0000"]}`:            "",
		`{"command":["/tmp/bash","-lc","id"]}`:    "",
		`{"command":{"ls":1}}`:                    "",
		`{"command":7}`:                           "",
		`{"command":["rm","x"]}`:                  "false rule=user",
		`{"command":["/bin/bash","-lc","rm x"]}`:  "false rule=user",
		`{"command":["bash","-lc","ls && rm x"]}`: "false rule=user",
		`{"command":"ls"}`:                        "true rule=user",
		// as codex spells it
		`{"command":"/bin/bash -lc 'rm x'"}`:                          "false rule=user",
		`{"command":"bash -l -c \"cd y && rm x\""}`:                   "false rule=user",
		`{"command":"cd y; time sh -c 'rm x'"}`:                       "false rule=user",
		`{"command":"bash -c bash -c bash -c rm x"}`:                  "false rule=user",
		`{"command":"bash rm x"}`:                                     "",
		`{"command":"bash --norc"}`:                                   "",
		`{"command":"` + strings.Repeat("bash -c ", 100_000) + `rm"}`: "",
	} {
		assert.Equal(t, want, rulingOn(policy, call(input), domain.Session{}, domain.Turn{}), input)
	}
	whole := domain.Session{Settings: domain.Settings{AllowedTools: []string{"Bash"}}}
	assert.Equal(t, "true rule=Bash", rulingOn(policy, call(`{"command":["ls"]}`), whole, domain.Turn{}), "the tool as such is allowed")
	a := domain.Approval{Tool: "Read", Paths: []string{"/p/a"}, Input: json.RawMessage(`{"file_path":["/etc/passwd"]}`)}
	assert.Empty(t, rulingOn(policy, a, domain.Session{}, domain.Turn{}), "what it touches is not what its locations say")

	words := call(`{"command":["ls","-l"]}`)
	words.Question = inputHash(words.Tool, words.Input)
	rules := must(rulesFor(words, ruleSpec{Effect: "allow"}))(t)
	for _, rule := range rules {
		assert.Equal(t, "true rule=project", rulingOn(NewPolicy("", nil), words, domain.Session{}, domain.Turn{}, rule))
		for _, other := range []string{`{"command":"[\"ls\",\"-l\"]"}`, `{"command":["ls","-l","x"]}`, `{"command":"ls -l"}`, `{}`} {
			assert.Empty(t, rulingOn(NewPolicy("", nil), call(other), domain.Session{}, domain.Turn{}, rule), other)
		}
	}
}

func TestAToolThatIsKnownByItsKindAlone(t *testing.T) {
	const (
		dangerous = `{"command":"rm x","file_path":"/p/my.key"}`
		harmless  = `{"file_path":"/p/a","of":"x"}`
	)
	byKind := func(kind, input string) domain.Approval {
		return domain.Approval{Tool: catalog.ToolOfKind(kind), ToolKind: kind, NameByKind: true, Title: "Read all", Input: json.RawMessage(input)}
	}
	rule := func(effect, tool, command, path string) config.Rule {
		return config.Rule{Effect: effect, Tool: tool, Command: command, Path: path, Source: "user"}
	}
	for name, c := range map[string]struct {
		a     domain.Approval
		rules []config.Rule
		want  string
	}{
		"its title is not its name":                   {byKind("other", dangerous), []config.Rule{rule("allow", "Read", "", "")}, ""},
		"nor for a rule that denies":                  {byKind("other", harmless), []config.Rule{rule("deny", "Read", "", "")}, ""},
		"no kind is another one":                      {byKind("", dangerous), []config.Rule{rule("allow", "Read", "", "")}, ""},
		"a kind that there is not":                    {byKind("Read", dangerous), []config.Rule{rule("allow", "Read", "", "")}, ""},
		"the name of its kind":                        {byKind("read", harmless), []config.Rule{rule("allow", "Read", "", "")}, "true rule=user"},
		"another tool of its kind is not allowed":     {byKind("edit", harmless), []config.Rule{rule("allow", "Write", "", "")}, ""},
		"but denied":                                  {byKind("edit", harmless), []config.Rule{rule("deny", "Write", "", ""), rule("allow", "Edit", "", "")}, "false rule=user"},
		"one that is named is not":                    {domain.Approval{Tool: "Edit", ToolKind: "edit", Input: json.RawMessage(harmless)}, []config.Rule{rule("deny", "Write", "", ""), rule("allow", "Edit", "", "")}, "true rule=user"},
		"a tool of another kind":                      {byKind("edit", harmless), []config.Rule{rule("deny", "Bash", "", ""), rule("allow", "Edit", "", "")}, "true rule=user"},
		"what it runs is denied whatever it is":       {byKind("other", dangerous), []config.Rule{rule("deny", "Bash", "rm *", ""), rule("allow", "*", "", "")}, "false rule=user"},
		"and what it touches":                         {byKind("other", dangerous), []config.Rule{rule("deny", "Edit", "", "*.key"), rule("allow", "*", "", "")}, "false rule=user"},
		"it may be what is denied, so it is asked":    {byKind("other", harmless), []config.Rule{rule("deny", "mcp__x__*", "", ""), rule("allow", "*", "", "")}, ""},
		"what is denied for another agent is not it":  {byKind("other", harmless), []config.Rule{{Effect: "deny", Tool: "mcp__x__*", Agent: "another", Source: "user"}, rule("allow", "*", "", "")}, "true rule=user"},
		"all tools are allowed":                       {byKind("other", harmless), []config.Rule{rule("allow", "*", "", "")}, "true rule=user"},
		"tools of which nothing is known are allowed": {byKind("other", harmless), []config.Rule{rule("allow", "other", "", "")}, "true rule=user"},
		"or denied": {byKind("other", harmless), []config.Rule{rule("deny", "other", "", "")}, "false rule=user"},
	} {
		assert.Equal(t, c.want, rulingOn(NewPolicy("/p", always(c.rules)), c.a, domain.Session{Agent: "fake"}, domain.Turn{}), name)
	}
	policy := NewPolicy("", nil)
	other, edit := byKind("other", dangerous), byKind("edit", harmless)
	lists := func(denied ...string) domain.Session {
		return domain.Session{Settings: domain.Settings{DisallowedTools: denied, AllowedTools: []string{"*"}}}
	}
	assert.Contains(t, rulingOn(policy, other, lists("Bash(rm:*)"), domain.Turn{}), "false")
	assert.Empty(t, rulingOn(policy, other, lists("Bash"), domain.Turn{}))
	assert.Contains(t, rulingOn(policy, edit, lists("Write"), domain.Turn{}), "false")
	assert.Equal(t, "false rule=tools", rulingOn(policy, other, domain.Session{}, domain.Turn{Tools: []string{"Read"}}))
	assert.Contains(t, rulingOn(policy, edit, domain.Session{}, domain.Turn{}, domain.Rule{Effect: "deny", Tool: "Write"}), "false")
	assert.Contains(t, rulingOn(policy, other, domain.Session{}, domain.Turn{}, domain.Rule{Effect: "deny", Tool: "Bash", Command: "rm x"}), "false")
	assert.Empty(t, rulingOn(policy, other, domain.Session{}, domain.Turn{}, domain.Rule{Effect: "allow", Tool: "Read"}))
	assert.Empty(t, rulingOn(policy, other, domain.Session{}, domain.Turn{Mode: catalog.ModeAcceptEdits}))
	assert.Equal(t, "true mode=acceptEdits", rulingOn(policy, edit, domain.Session{}, domain.Turn{Mode: catalog.ModeAcceptEdits}))
}

// An identity is the input itself, byte for byte, if nothing in it changes when it is asked again.
func TestAnIdentityLeavesOutWhatDiffersEachTime(t *testing.T) {
	for _, c := range []struct{ input, call, want string }{
		{`{ "b":1,"a":"<x>" }`, "1", ""},
		{` {"command":"touch x", "call_id":"2"}`, "1", ""},
		{` {"command":"touch x", "call_id":"1"}`, "", ""},
		{`{"command":"touch x","Command":" y","call_id":"1"}`, "1", ""},
		{`{"command": ["ls","-l"]}`, "", ""},
		{`[ 1 ]`, "1", ""},
		{`{"x":1,"call_id":"1","turn_id":"t","reason":"r"}`, "1", `{"x":1}`},
		{`{"command":["bash","-lc","touch   x"]}`, "", `{"command":["bash","-lc","touch x"]}`},
		{`{"x":1,"command":"touch   x"}`, "", `{"command":"touch x","x":1}`},
	} {
		want := c.want
		if want == "" {
			want = c.input
		}
		assert.Equal(t, want, string(callIdentity(json.RawMessage(c.input), c.call)))
	}
}
