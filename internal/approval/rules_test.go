package approval

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func edit(paths ...string) domain.Approval {
	return domain.Approval{Type: domain.FunctionCall, Tool: "Write", ToolKind: "edit", Paths: paths, Input: json.RawMessage(`{"content":"x"}`), Question: paths[0]}
}

// A lasting decision covers no more than the question.
func TestARuleIsForWhatWasAskedAlone(t *testing.T) {
	call := func(tool, kind, input string) domain.Approval {
		return domain.Approval{Type: domain.FunctionCall, Tool: tool, ToolKind: kind, Input: json.RawMessage(input), Question: "q"}
	}
	unnamed := call("Tool", "other", `{"of":"x"}`)
	unnamed.NameByKind = true
	plan := call("ExitPlanMode", "switch_mode", `{"plan":"x"}`)
	twice := call("Bash", "execute", `{"command":"ls","command":"rm"}`)
	for name, c := range map[string]struct {
		asked domain.Approval
		want  *domain.RulePreview
	}{
		"a command":                    {call("Bash", "execute", `{"command":"touch made"}`), &domain.RulePreview{Tool: "Bash", Covers: domain.CoversCommand, Pattern: "touch made"}},
		"a command of codex":           {call("Bash", "execute", `{"command":["/bin/bash","-lc","touch made"]}`), &domain.RulePreview{Tool: "Bash", Covers: domain.CoversCommand, Pattern: "touch made"}},
		"a command that is no text":    {call("Bash", "execute", `{"script":"x"}`), &domain.RulePreview{Tool: "Bash", Covers: domain.CoversInput}},
		"a file":                       {edit("/p/src/a.go"), &domain.RulePreview{Tool: "Write", Covers: domain.CoversFiles, Pattern: "/p/**"}},
		"a file of the session's":      {edit("a.go"), &domain.RulePreview{Tool: "Write", Covers: domain.CoversFiles, Pattern: "/p/**"}},
		"files of two directories":     {edit("/p/src/a.go", "/p/b.go"), &domain.RulePreview{Tool: "Write", Covers: domain.CoversFiles, Pattern: "/p/**"}},
		"files of one elsewhere":       {edit("/q/src/a.go", "/q/src/b.go"), &domain.RulePreview{Tool: "Write", Covers: domain.CoversFiles, Pattern: "/q/src/*"}},
		"files of two elsewhere":       {edit("/q/src/a.go", "/q/b.go"), &domain.RulePreview{Tool: "Write", Covers: domain.CoversInput}},
		"a file of git":                {edit("/p/.git/a"), &domain.RulePreview{Tool: "Write", Covers: domain.CoversFiles, Pattern: "/p/.git/*"}},
		"a file with signs":            {edit("/q/[a]*/x"), &domain.RulePreview{Tool: "Write", Covers: domain.CoversFiles, Pattern: `/q/\[a]\*/*`}},
		"an edit of nothing known":     {call("Edit", "edit", `{}`), nil},
		"an edit of an empty name":     {call("Edit", "edit", `{"file_path":""}`), &domain.RulePreview{Tool: "Edit", Covers: domain.CoversInput}},
		"an edit that its input names": {call("Edit", "edit", `{"file_path":"src/a"}`), &domain.RulePreview{Tool: "Edit", Covers: domain.CoversFiles, Pattern: "/p/**"}},
		"a tool":                       {call("WebFetch", "fetch", `{"url":"x"}`), &domain.RulePreview{Tool: "WebFetch", Covers: domain.CoversTool}},
		"a tool without an input":      {call("Tool", "other", `{}`), nil},
		"a tool without a name":        {unnamed, &domain.RulePreview{Tool: "Tool", Covers: domain.CoversInput}},
		"a plan":                       {plan, nil},
		"what can be read twice":       {twice, nil},
	} {
		got, ok := rulePreview(c.asked, Directories{Root: "/p", CWD: "/p"})
		if c.want == nil {
			assert.False(t, ok, name)
			continue
		}
		require.True(t, ok, name)
		assert.Equal(t, *c.want, got, name)
		rules := must(rulesFor(c.asked, ruleSpec{Effect: config.EffectAllow, Directories: Directories{Root: "/p", CWD: "/p"}}))(t)
		if c.asked.Question != "q" || got.Covers != domain.CoversInput {
			assert.True(t, NewPolicy("/p", nil).Holds(callOf(c.asked), config.EffectAllow, rules, domain.Session{CWD: "/p"}), name)
		}
	}
}

// "Always" for an edit is for the project and all below it, except the files of git. For a file
// elsewhere it is for its directory.
func TestARuleForFilesIsForTheProject(t *testing.T) {
	p, session := NewPolicy("/p", nil), domain.Session{CWD: "/p"}
	inProject := must(rulesFor(edit("/p/src/a.go"), ruleSpec{Effect: config.EffectAllow, Directories: p.directoriesOf("/p")}))(t)
	for _, other := range [][]string{{"/p/src/b.go"}, {"src/b.go"}, {"/p/a.go"}, {"/p/src/deep/b.go", "/p/docs/c"}, {"/p/.github/x"}} {
		assert.Equal(t, "true rule=project", rulingOn(p, edit(other...), session, domain.Turn{}, inProject...), other)
	}
	for _, other := range [][]string{{"/etc/passwd"}, {"/p/../b.go"}, {"/p/.git/hooks/pre-commit"}, {"sub/.GIT/config"}, {"/p/a.go", "/q/a.go"}} {
		assert.Empty(t, rulingOn(p, edit(other...), session, domain.Turn{}, inProject...), other)
	}

	whole := NewPolicy("/", nil) // a project in a container
	inWhole := must(rulesFor(edit("/app/a.go"), ruleSpec{Effect: config.EffectAllow, Directories: whole.directoriesOf("/")}))(t)
	assert.Equal(t, "true rule=project", rulingOn(whole, edit("/etc/deep/b"), domain.Session{CWD: "/"}, domain.Turn{}, inWhole...))
	assert.Empty(t, rulingOn(whole, edit("/.git/config"), domain.Session{CWD: "/"}, domain.Turn{}, inWhole...))

	elsewhere := must(rulesFor(edit("/q/a.go"), ruleSpec{Effect: config.EffectAllow, Directories: p.directoriesOf("/p")}))(t)
	assert.Equal(t, "true rule=project", rulingOn(p, edit("/q/b.go"), session, domain.Turn{}, elsewhere...))
	assert.Empty(t, rulingOn(p, edit("/q/deep/b.go"), session, domain.Turn{}, elsewhere...))
	assert.Empty(t, rulingOn(p, edit("/p/b.go"), session, domain.Turn{}, elsewhere...))

	denied := must(rulesFor(edit("/p/a.go"), ruleSpec{Effect: config.EffectDeny, Directories: p.directoriesOf("/p")}))(t)
	assert.Equal(t, "false rule=project", rulingOn(p, edit("/p/.git/config"), session, domain.Turn{}, denied...))

	// A custom pattern may be relative to the project and cover subdirectories.
	for pattern, want := range map[string]string{"./src/**": "true rule=project", "src/**": "true rule=project", "src/*": "", "/p/src/*/*": "true rule=project", "*": ""} {
		rules := must(rulesFor(edit("/p/src/deep/b.go"), ruleSpec{Effect: config.EffectAllow, Directories: Directories{Root: "/p", CWD: "/p"}, Pattern: pattern}))(t)
		assert.Equal(t, want, rulingOn(p, edit("/p/src/deep/b.go"), session, domain.Turn{}, rules...), pattern)
	}
}

func TestARuleWithAPatternIsForCommandsLikeIt(t *testing.T) {
	p := NewPolicy("/p", nil)
	bash := func(command string) domain.Approval {
		input, _ := json.Marshal(map[string]string{"command": command})
		return domain.Approval{Type: domain.FunctionCall, Tool: "Bash", ToolKind: "execute", Input: input}
	}
	touch := must(rulesFor(bash("touch made"), ruleSpec{Effect: config.EffectAllow, Pattern: "touch *"}))(t)
	assert.Equal(t, "true rule=project", rulingOn(p, bash("touch other"), domain.Session{}, domain.Turn{}, touch...))
	assert.Empty(t, rulingOn(p, bash("touch other && rm x"), domain.Session{}, domain.Turn{}, touch...))

	denied := must(rulesFor(bash("touch made"), ruleSpec{Effect: config.EffectDeny}))(t)
	assert.Equal(t, []domain.Rule{{Effect: config.EffectDeny, Tool: "Bash", Command: "touch made"}}, denied, "it can be read in one way")

	// An unchanged pattern is the literal command, with all its special characters.
	exact := must(rulesFor(bash("rm *.o"), ruleSpec{Effect: config.EffectAllow, Pattern: "rm *.o"}))(t)
	assert.Equal(t, "true rule=project", rulingOn(p, bash("rm *.o"), domain.Session{}, domain.Turn{}, exact...))
	assert.Empty(t, rulingOn(p, bash("rm -rf x.o"), domain.Session{}, domain.Turn{}, exact...))

	_, err := rulesFor(domain.Approval{Type: domain.FunctionCall, Tool: "WebFetch", ToolKind: "fetch"}, ruleSpec{Pattern: "x"})
	assert.ErrorIs(t, err, errNoPattern)
}

// An older rule that allows leaving plan mode has no effect.
func TestNoDecisionLetsAnAgentLeaveItsPlanModeForGood(t *testing.T) {
	plan := domain.Approval{Type: domain.FunctionCall, Tool: "ExitPlanMode", ToolKind: "switch_mode", Plan: "1. x"}
	assert.Empty(t, rulingOn(NewPolicy("/p", nil), plan, domain.Session{}, domain.Turn{}, domain.Rule{Effect: "allow", Tool: "ExitPlanMode"}))
	assert.ErrorIs(t, errorOf(rulesFor(plan, ruleSpec{Effect: "allow", Pattern: "*"})), errNoPattern)
}

func TestARulingSaysWhichRuleItIs(t *testing.T) {
	p := NewPolicy("/p", always([]config.Rule{{Effect: "deny", Tool: "Bash", Command: "rm *", Source: "project", File: ".duet.toml", Line: 7}}))
	bash := domain.Approval{Tool: "Bash", ToolKind: "execute", Input: json.RawMessage(`{"command":"rm x"}`)}
	explanation := func(a domain.Approval, session domain.Session, turn domain.Turn, rules ...domain.Rule) string {
		return p.Judge(callOf(a), Situation{Session: session, Turn: turn, Rules: rules, Now: time.Unix(1000, 0)}).Explanation
	}
	assert.Equal(t, `.duet.toml, line 7: deny tool "Bash", command "rm *"`, explanation(bash, domain.Session{}, domain.Turn{}))
	assert.Equal(t, "the session is in plan mode, in which nothing is changed or run", explanation(edit("/p/x"), domain.Session{}, domain.Turn{Mode: catalog.ModePlan}))
	assert.Equal(t, "the session may use these tools alone: Read, Grep", explanation(edit("/p/x"), domain.Session{}, domain.Turn{Tools: []string{"Read", "Grep"}}))
	assert.Equal(t, "the session's list of tools to deny has Write", explanation(edit("/p/x"), domain.Session{Settings: domain.Settings{DisallowedTools: []string{"Write"}}}, domain.Turn{}))
	chain := domain.Approval{Tool: "Bash", ToolKind: "execute", Input: json.RawMessage(`{"command":"git x && make y"}`)}
	lists := domain.Session{Settings: domain.Settings{AllowedTools: []string{"Bash(ls:*)", "Bash(git:*)", "Bash(make:*)"}}}
	assert.Equal(t, "the session's list of tools to allow has Bash(git:*)", explanation(chain, lists, domain.Turn{}), "the first one that is needed")
	decided := domain.Rule{ID: 3, Session: 1, Effect: "deny", Tool: "Write", Path: "/p/*", Created: time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)}
	assert.Equal(t, "decided on 2026-01-02 in this session: deny Write /p/* (rule 3)", explanation(edit("/p/x"), domain.Session{}, domain.Turn{}, decided))
}

// In an untrusted workspace, the project's file cannot allow anything, but its deny rules apply.
func TestTheProjectAllowsNothingInARestrictedTurn(t *testing.T) {
	var turn domain.Turn
	turn.Restricted = true
	for _, c := range []struct{ effect, source, trusted, restricted string }{
		{"allow", config.SourceProject, "true rule=project", ""},
		{"deny", config.SourceProject, "false rule=project", "false rule=project"},
		{"allow", "user", "true rule=user", "true rule=user"},
		{"deny", "user", "false rule=user", "false rule=user"},
	} {
		p := NewPolicy("/p", always([]config.Rule{{Effect: c.effect, Tool: "Write", Source: c.source}}))
		assert.Equal(t, c.trusted, rulingOn(p, edit("/p/a"), domain.Session{}, domain.Turn{}), "%v", c)
		assert.Equal(t, c.restricted, rulingOn(p, edit("/p/a"), domain.Session{}, turn), "%v", c)
	}
}
