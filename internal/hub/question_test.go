package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// verdictOn is what the policy says of a call, "" if it is asked.
func verdictOn(h *Hub, a domain.Approval, thread domain.Thread, run domain.Run, rules ...domain.Rule) string {
	a.Question = questionHash(a.Tool, a.Input)
	r := h.rule(questionOf(a), thread, run, rules, time.Unix(1000, 0))
	if r.reason == "" {
		return ""
	}
	return fmt.Sprint(r.approved, " ", r.reason)
}

func TestAnInputWithTwoReadingsIsAllowedByNothingAndDeniedByEither(t *testing.T) {
	rules := func(list ...config.Rule) *Hub {
		for i := range list {
			list[i].Source = "user"
		}
		return &Hub{opts: Options{Root: "/p", Rules: always(list)}}
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
		assert.Empty(t, verdictOn(allowing, a, domain.Thread{}, domain.Run{}), input)
		settings := domain.Thread{Settings: domain.Settings{AllowedTools: []string{"Bash", "Bash(make test)", "Bash(make:*)", "*"}}}
		assert.Empty(t, verdictOn(&Hub{}, a, settings, domain.Run{}), input)
		assert.Equal(t, "false rule=tools", verdictOn(allowing, a, domain.Thread{}, domain.Run{Tools: []string{"Bash", "Bash(make test)"}}), input)
		assert.Empty(t, verdictOn(&Hub{}, a, domain.Thread{}, domain.Run{},
			domain.Rule{Effect: "allow", Tool: "Bash"}, domain.Rule{Effect: "allow", Tool: "Bash", Command: "make test"},
			domain.Rule{Effect: "allow", Tool: "Bash", Command: sameInput + questionHash("Bash", a.Input)}), input)
		assert.Equal(t, "false rule=user", verdictOn(denying, a, domain.Thread{}, domain.Run{}), input)
		assert.Contains(t, verdictOn(allowing, a, domain.Thread{Settings: domain.Settings{DisallowedTools: []string{"Bash(rm:*)"}}}, domain.Run{}), "false", input)
		assert.Equal(t, "false rule=project", verdictOn(allowing, a, domain.Thread{}, domain.Run{}, domain.Rule{Effect: "deny", Tool: "Bash", Command: "rm -rf ~"}), input)
		ambiguity, title := Presented(domain.Approval{Type: domain.FunctionCall, Tool: "Bash", Title: "make test", Input: a.Input})
		assert.NotEmpty(t, ambiguity)
		assert.Contains(t, title, ambiguity, "every client shows it")
		assert.Contains(t, title, "make test")
	}
	for _, input := range []string{`{"file_path":"/p/a.key","File_Path":"/p/a"}`, `{"file_path":"/p/a","file_path":"/p/a.key"}`, `{"file_path":"/p/a","FILE_PATH":["/p/a.key"]}`} {
		a := domain.Approval{Tool: "Edit", ToolKind: "edit", Input: json.RawMessage(input)}
		assert.Empty(t, verdictOn(allowing, a, domain.Thread{}, domain.Run{Mode: catalog.ModeAcceptEdits}), input)
		assert.Empty(t, verdictOn(allowing, a, domain.Thread{Settings: domain.Settings{AutoAcceptEdits: true}}, domain.Run{}), input)
		assert.Equal(t, "false rule=user", verdictOn(denying, a, domain.Thread{}, domain.Run{}), input)
		assert.Equal(t, "false mode=plan", verdictOn(allowing, a, domain.Thread{}, domain.Run{Mode: catalog.ModePlan}), input)
		assert.Contains(t, verdictOn(denying, a, domain.Thread{}, domain.Run{Mode: catalog.ModeBypass}), "true", "who has allowed everything is not asked")
	}
}

// What runs as a list of words is not what a rule for a text says.
func TestAListIsNoCommandThatARuleAllows(t *testing.T) {
	list := []config.Rule{
		{Effect: "deny", Tool: "Bash", Command: "rm *", Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: `\[*`, Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: "*ls*", Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: "[[]*", Source: "user"},
		{Effect: "allow", Tool: "Read", Path: "*", Source: "user"},
	}
	h := &Hub{opts: Options{Root: "/p", Rules: always(list)}}
	call := func(input string) domain.Approval {
		return domain.Approval{Tool: "Bash", ToolKind: "execute", Input: json.RawMessage(input)}
	}
	for input, want := range map[string]string{
		`{"command":["ls"]}`:                      "",
		`{"command":["/bin/bash","-lc","ls"]}`:    "",
		`{"command":{"ls":1}}`:                    "",
		`{"command":7}`:                           "",
		`{"command":["rm","x"]}`:                  "false rule=user",
		`{"command":["/bin/bash","-lc","rm x"]}`:  "false rule=user",
		`{"command":["bash","-lc","ls && rm x"]}`: "false rule=user",
		`{"command":"ls"}`:                        "true rule=user",
		// as codex says it
		`{"command":"/bin/bash -lc 'rm x'"}`:                          "false rule=user",
		`{"command":"bash -l -c \"cd y && rm x\""}`:                   "false rule=user",
		`{"command":"cd y; time sh -c 'rm x'"}`:                       "false rule=user",
		`{"command":"bash -c bash -c bash -c rm x"}`:                  "false rule=user",
		`{"command":"bash rm x"}`:                                     "",
		`{"command":"bash --norc"}`:                                   "",
		`{"command":"` + strings.Repeat("bash -c ", 100_000) + `rm"}`: "",
	} {
		assert.Equal(t, want, verdictOn(h, call(input), domain.Thread{}, domain.Run{}), input)
	}
	whole := domain.Thread{Settings: domain.Settings{AllowedTools: []string{"Bash"}}}
	assert.Equal(t, "true rule=Bash", verdictOn(h, call(`{"command":["ls"]}`), whole, domain.Run{}), "the tool as such is allowed")
	a := domain.Approval{Tool: "Read", Paths: []string{"/p/a"}, Input: json.RawMessage(`{"file_path":["/etc/passwd"]}`)}
	assert.Empty(t, verdictOn(h, a, domain.Thread{}, domain.Run{}), "what it touches is not what its locations say")

	words := call(`{"command":["ls","-l"]}`)
	words.Question = questionHash(words.Tool, words.Input)
	for _, rule := range remembered(words, 0, "allow") {
		assert.Equal(t, "true rule=project", verdictOn(&Hub{}, words, domain.Thread{}, domain.Run{}, rule))
		for _, other := range []string{`{"command":"[\"ls\",\"-l\"]"}`, `{"command":["ls","-l","x"]}`, `{"command":"ls -l"}`, `{}`} {
			assert.Empty(t, verdictOn(&Hub{}, call(other), domain.Thread{}, domain.Run{}, rule), other)
		}
	}
}

func TestAToolThatIsKnownByItsKindAlone(t *testing.T) {
	const dangerous = `{"command":"rm x","file_path":"/p/my.key"}`
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
		"nor for a rule that denies":                  {byKind("other", `{}`), []config.Rule{rule("deny", "Read", "", "")}, ""},
		"no kind is another one":                      {byKind("", dangerous), []config.Rule{rule("allow", "Read", "", "")}, ""},
		"a kind that there is not":                    {byKind("Read", dangerous), []config.Rule{rule("allow", "Read", "", "")}, ""},
		"the name of its kind":                        {byKind("read", `{}`), []config.Rule{rule("allow", "Read", "", "")}, "true rule=user"},
		"another tool of its kind is not allowed":     {byKind("edit", `{}`), []config.Rule{rule("allow", "Write", "", "")}, ""},
		"but denied":                                  {byKind("edit", `{}`), []config.Rule{rule("deny", "Write", "", ""), rule("allow", "Edit", "", "")}, "false rule=user"},
		"one that is named is not":                    {domain.Approval{Tool: "Edit", ToolKind: "edit"}, []config.Rule{rule("deny", "Write", "", ""), rule("allow", "Edit", "", "")}, "true rule=user"},
		"a tool of another kind":                      {byKind("edit", `{}`), []config.Rule{rule("deny", "Bash", "", ""), rule("allow", "Edit", "", "")}, "true rule=user"},
		"what it runs is denied whatever it is":       {byKind("other", dangerous), []config.Rule{rule("deny", "Bash", "rm *", ""), rule("allow", "*", "", "")}, "false rule=user"},
		"and what it touches":                         {byKind("other", dangerous), []config.Rule{rule("deny", "Edit", "", "*.key"), rule("allow", "*", "", "")}, "false rule=user"},
		"it may be what is denied, so it is asked":    {byKind("other", `{}`), []config.Rule{rule("deny", "mcp__x__*", "", ""), rule("allow", "*", "", "")}, ""},
		"what is denied for another agent is not it":  {byKind("other", `{}`), []config.Rule{{Effect: "deny", Tool: "mcp__x__*", Agent: "another", Source: "user"}, rule("allow", "*", "", "")}, "true rule=user"},
		"all tools are allowed":                       {byKind("other", `{}`), []config.Rule{rule("allow", "*", "", "")}, "true rule=user"},
		"tools of which nothing is known are allowed": {byKind("other", `{}`), []config.Rule{rule("allow", "other", "", "")}, "true rule=user"},
		"or denied": {byKind("other", `{}`), []config.Rule{rule("deny", "other", "", "")}, "false rule=user"},
	} {
		assert.Equal(t, c.want, verdictOn(&Hub{opts: Options{Root: "/p", Rules: always(c.rules)}}, c.a, domain.Thread{Agent: "fake"}, domain.Run{}), name)
	}
	h := &Hub{}
	other, edit := byKind("other", dangerous), byKind("edit", `{}`)
	lists := func(denied ...string) domain.Thread {
		return domain.Thread{Settings: domain.Settings{DisallowedTools: denied, AllowedTools: []string{"*"}}}
	}
	assert.Contains(t, verdictOn(h, other, lists("Bash(rm:*)"), domain.Run{}), "false")
	assert.Empty(t, verdictOn(h, other, lists("Bash"), domain.Run{}))
	assert.Contains(t, verdictOn(h, edit, lists("Write"), domain.Run{}), "false")
	assert.Equal(t, "false rule=tools", verdictOn(h, other, domain.Thread{}, domain.Run{Tools: []string{"Read"}}))
	assert.Contains(t, verdictOn(h, edit, domain.Thread{}, domain.Run{}, domain.Rule{Effect: "deny", Tool: "Write"}), "false")
	assert.Contains(t, verdictOn(h, other, domain.Thread{}, domain.Run{}, domain.Rule{Effect: "deny", Tool: "Bash", Command: "rm x"}), "false")
	assert.Empty(t, verdictOn(h, other, domain.Thread{}, domain.Run{}, domain.Rule{Effect: "allow", Tool: "Read"}))
	assert.Empty(t, verdictOn(h, other, domain.Thread{}, domain.Run{Mode: catalog.ModeAcceptEdits}))
	assert.Equal(t, "true mode=acceptEdits", verdictOn(h, edit, domain.Thread{}, domain.Run{Mode: catalog.ModeAcceptEdits}))
}

func TestAStandingRuleOfAFormerVersionStillDeniesItsInput(t *testing.T) {
	a := domain.Approval{Tool: "Tool", ToolKind: "execute", Input: json.RawMessage(`{"b":1,"a":"x"}`)}
	former := sameInput + formerHash(a.Tool, a.Input)
	assert.Contains(t, verdictOn(&Hub{}, a, domain.Thread{}, domain.Run{}, domain.Rule{Effect: "deny", Tool: "Tool", Command: former}), "false")
	assert.Empty(t, verdictOn(&Hub{}, a, domain.Thread{}, domain.Run{}, domain.Rule{Effect: "allow", Tool: "Tool", Command: former}), "it could be another's too")
}

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
		_, err := h.Decide(ctx, d)
		assert.Equal(t, domain.KindInvalid, kindOf(t, err), "%+v", d)
	}
	_, err := h.Decide(ctx, Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"Command":"make test","command":"rm -rf ~"}`)})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	_, err = h.Decide(ctx, Decision{ID: a.ID, Decision: "approve", UpdatedInput: json.RawMessage(`{"command":"make test"}`)})
	require.NoError(t, err)
	assert.JSONEq(t, `{"command":"make test"}`, string((<-answers).UpdatedInput), "it is not the same as what was asked")
	await(t, h, s)

	s = launchIn(t, h, "other", unclear)
	a = pendingOf(t, h, 1)[0]
	_, err = h.Decide(ctx, Decision{ID: a.ID, Decision: "deny", Comment: "no", Scope: "project"})
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
		assert.NotEqual(t, questionHash("Bash", json.RawMessage(pair[0])), questionHash("Bash", json.RawMessage(pair[1])), "%s", pair)
		assert.False(t, sameJSON(json.RawMessage(pair[0]), json.RawMessage(pair[1])))
	}
	assert.Equal(t, questionHash("Bash", json.RawMessage(`{"a":1,"b":"x"}`)), questionHash("Bash", json.RawMessage(` {"b":"\u0078", "a":1}`)))
	assert.NotEqual(t, questionHash("Bash", nil), questionHash("Read", nil))
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
