package approval

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// always is a part of a configuration that does not change.
func always[T any](part T) func() T { return func() T { return part } }

// Allowed tools, in the syntax of tool lists.
func TestToolPatterns(t *testing.T) {
	bash := func(command string) Call { return Call{tool: "Bash", command: shellcommand.Read(command)} }
	fits := func(c Call, pattern string) bool {
		return c.firstMet("allow", c.listedConditions("allow", []string{pattern})) != nil
	}
	write := Call{tool: "Write", paths: []string{"/p/a.go"}}
	for _, c := range []struct {
		pattern string
		call    Call
		fits    bool
	}{
		{"Bash", bash("anything; at all"), true},
		{"Bash()", bash("ls"), true},
		{"Bash(*)", bash("ls"), true},
		{"bash", bash("ls"), false},
		{"", bash("ls"), false},
		{"*", write, true},
		{"mcp__x__*", Call{tool: "mcp__x__y"}, true},
		{"mcp__x__*", Call{tool: "mcp__z__y"}, false},
		{"Bash(make test)", bash("make test"), true},
		{"Bash(make test)", bash("make test "), true},
		{"Bash(make test)", bash("make testing"), false},
		{"Bash(git:*)", bash("git"), true},
		{"Bash(git:*)", bash("git status"), true},
		{"Bash(git:*)", bash("gitk"), false},
		{"Bash(git:*)", bash("rm x"), false},
		{"Bash(git:*)", bash(" git x"), true},
		{"Bash(git log:*)", bash("git log -1"), true},
		{"Bash(git log:*)", bash("git push"), false},
		{"Write(/p/a.go)", write, true},
		{"Write(/p/b.go)", write, false},
	} {
		c.call.files = filesOf("", "", "/", c.call.paths)
		assert.Equal(t, c.fits, fits(c.call, c.pattern), "%s for %+v", c.pattern, c.call)
	}
	for _, chain := range []string{
		"git x; rm -rf /", "git x && rm y", "git x || rm y", "git x | sh", "git x & rm y", "git x `rm y`", "git x $(rm y)", "git x > /etc/passwd",
		"git x < y", "git x\nrm y", "git x (rm y)", "git $HOME",
	} {
		assert.False(t, fits(bash(chain), "Bash(git:*)"), chain)
	}
}

func TestThePolicyInItsOrder(t *testing.T) {
	now := time.Unix(1000, 0)
	past, future := now.Add(-time.Second), now.Add(time.Second)
	policy := NewPolicy("/p", always([]config.Rule{
		{Effect: "deny", Tool: "Web*", Source: "user"},
		{Effect: "allow", Tool: "WebFetch", Source: "project"},
		{Effect: "allow", Tool: "Read", Path: "src/*", Source: "project"},
		{Effect: "deny", Path: "*.key", Source: "project"},
		{Effect: "deny", Tool: "Bash", Command: "rm -rf *", Source: "user"},
		{Effect: "allow", Tool: "Special", Agent: "other", Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: "git *", Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: "make && make test", Source: "user"},
		{Effect: "allow", Tool: "Sh", Command: "*", Source: "user"},
	}))
	allow := func(session int64, tool, command string) domain.Rule {
		return domain.Rule{Session: session, Effect: "allow", Tool: tool, Command: command}
	}
	deny := func(session int64, tool string) domain.Rule {
		return domain.Rule{Session: session, Effect: "deny", Tool: tool}
	}
	for name, c := range map[string]struct {
		tool, kind, input string
		mode              string
		tools             []string
		settings          domain.Settings
		rules             []domain.Rule
		want              string // "" means ask
	}{
		"nothing is known: ask":                          {tool: "Write"},
		"a deny rule holds in bypass":                    {tool: "WebFetch", mode: "bypassPermissions", want: "false rule=user"},
		"a list that denies holds in bypass":             {tool: "X", settings: domain.Settings{SkipPermissions: true, DisallowedTools: []string{"X"}}, want: "false rule=X"},
		"a human's no holds in bypass":                   {tool: "X", mode: "bypassPermissions", rules: []domain.Rule{deny(0, "X")}, want: "false rule=project"},
		"a list of tools holds in bypass":                {tool: "X", mode: "bypassPermissions", tools: []string{"Y"}, want: "false rule=tools"},
		"bypass beats the list that allows":              {tool: "X", mode: "bypassPermissions", settings: domain.Settings{AllowedTools: []string{"Y"}}, want: "true mode=bypassPermissions"},
		"bypass by settings":                             {tool: "X", settings: domain.Settings{SkipPermissions: true}, want: "true mode=bypassPermissions"},
		"bypass before its end":                          {tool: "X", settings: domain.Settings{SkipPermissions: true, SkipPermissionsUntil: &future}, want: "true mode=bypassPermissions"},
		"bypass at its end":                              {tool: "X", settings: domain.Settings{SkipPermissions: true, SkipPermissionsUntil: &now}},
		"bypass after its end":                           {tool: "X", settings: domain.Settings{SkipPermissions: true, SkipPermissionsUntil: &past}},
		"an end alone is no bypass":                      {tool: "X", settings: domain.Settings{SkipPermissionsUntil: &future}},
		"tools that were not allowed":                    {tool: "Write", tools: []string{"Read"}, want: "false rule=tools"},
		"tools that were allowed are asked for still":    {tool: "Write", tools: []string{"Read", "Write"}},
		"tools before allow rules":                       {tool: "Write", tools: []string{"Read"}, rules: []domain.Rule{allow(1, "Write", "")}, want: "false rule=tools"},
		"deny beats allow":                               {tool: "WebFetch", want: "false rule=user"},
		"deny by list beats allow by list":               {tool: "X", settings: domain.Settings{AllowedTools: []string{"X"}, DisallowedTools: []string{"X"}}, want: "false rule=X"},
		"deny of the project beats allow of the session": {tool: "X", rules: []domain.Rule{allow(1, "X", ""), deny(0, "X")}, want: "false rule=project"},
		"deny of the session beats allow of the project": {tool: "X", rules: []domain.Rule{allow(0, "X", ""), deny(1, "X")}, want: "false rule=session"},
		"allow of the session":                           {tool: "X", rules: []domain.Rule{allow(1, "X", "")}, want: "true rule=session"},
		"allow of the project":                           {tool: "X", rules: []domain.Rule{allow(0, "X", "")}, want: "true rule=project"},
		"a rule of a command is for it alone":            {tool: "Bash", input: `{"command":"ls -l"}`, rules: []domain.Rule{allow(1, "Bash", "ls")}},
		"a rule of this command":                         {tool: "Bash", input: `{"command":"ls"}`, rules: []domain.Rule{allow(1, "Bash", "ls")}, want: "true rule=session"},
		"allow beats the mode":                           {tool: "Bash", mode: "plan", rules: []domain.Rule{allow(1, "Bash", "")}, want: "true rule=session"},
		"deny beats the mode":                            {tool: "Edit", mode: "acceptEdits", settings: domain.Settings{DisallowedTools: []string{"Edit"}}, want: "false rule=Edit"},
		"a list allows a command":                        {tool: "Bash", input: `{"command":"git log"}`, settings: domain.Settings{AllowedTools: []string{"Bash(git:*)"}}, want: "true rule=Bash(git:*)"},
		"but not a chained one":                          {tool: "Bash", input: `{"command":"git log; rm x"}`, settings: domain.Settings{AllowedTools: []string{"Bash(git:*)"}}},
		"a list denies a command":                        {tool: "Bash", input: `{"command":"rm x"}`, settings: domain.Settings{DisallowedTools: []string{"Bash(rm:*)"}}, want: "false rule=Bash(rm:*)"},
		"and one that goes on":                           {tool: "Bash", input: `{"command":"rm x; true"}`, settings: domain.Settings{AllowedTools: []string{"Bash"}, DisallowedTools: []string{"Bash(rm:*)"}}, want: "false rule=Bash(rm:*)"},
		"and one behind another":                         {tool: "Bash", input: `{"command":"true && rm x"}`, settings: domain.Settings{AllowedTools: []string{"Bash"}, DisallowedTools: []string{"Bash(rm:*)"}}, want: "false rule=Bash(rm:*)"},
		"and one inside another":                         {tool: "Bash", input: `{"command":"echo $(rm x)"}`, settings: domain.Settings{AllowedTools: []string{"Bash"}, DisallowedTools: []string{"Bash(rm:*)"}}, want: "false rule=Bash(rm:*)"},
		"a chain of what is not denied":                  {tool: "Bash", input: `{"command":"ls; farm x"}`, settings: domain.Settings{AllowedTools: []string{"Bash"}, DisallowedTools: []string{"Bash(rm:*)"}}, want: "true rule=Bash"},
		"a rule allows a command":                        {tool: "Bash", input: `{"command":"git status"}`, want: "true rule=user"},
		"a rule allows no chain":                         {tool: "Bash", input: `{"command":"git status;ls"}`},
		"nor what is put in":                             {tool: "Bash", input: `{"command":"git $(ls)"}`},
		"but the chain that it says":                     {tool: "Bash", input: `{"command":"make && make test"}`, want: "true rule=user"},
		"and all if it says so":                          {tool: "Sh", input: `{"command":"ls; ls"}`, want: "true rule=user"},
		"a rule denies a part of a chain":                {tool: "Bash", input: `{"command":"git status;rm -rf x"}`, want: "false rule=user"},
		"wherever it stands":                             {tool: "Bash", input: `{"command":"git $( rm -rf x)"}`, want: "false rule=user"},
		"and behind a word of the shell":                 {tool: "Bash", input: `{"command":"if true; then ! rm -rf x; fi"}`, want: "false rule=user"},
		"and behind a blank":                             {tool: "Bash", input: `{"command":" rm -rf x"}`, want: "false rule=user"},
		"a human's no is for a part of a chain too":      {tool: "Bash", input: `{"command":"true; ls"}`, rules: []domain.Rule{{Session: 1, Effect: "deny", Tool: "Bash", Command: "ls"}}, want: "false rule=session"},
		"a human's yes is for the whole":                 {tool: "Bash", input: `{"command":"true; ls"}`, rules: []domain.Rule{allow(1, "Bash", "ls")}},
		"a human's yes to a chain":                       {tool: "Bash", input: `{"command":"true; ls"}`, rules: []domain.Rule{allow(1, "Bash", "true; ls")}, want: "true rule=session"},
		"a glob over commands knows slashes":             {tool: "Bash", input: `{"command":"rm -rf /a/b"}`, want: "false rule=user"},
		"a glob over paths":                              {tool: "Read", input: `{"file_path":"/p/src/a.go"}`, want: "true rule=project"},
		"outside of it":                                  {tool: "Read", input: `{"file_path":"/p/doc/a.go"}`},
		"a way around it":                                {tool: "Read", input: `{"file_path":"/src/a.go"}`},
		"a denied path":                                  {tool: "Read", input: `{"file_path":"/p/src/my.key"}`, want: "false rule=project"},
		"another agent's rule":                           {tool: "Special"},
		"acceptEdits passes edits":                       {tool: "Write", mode: "acceptEdits", want: "true mode=acceptEdits"},
		"acceptEdits passes what is an edit":             {tool: "patch", kind: "edit", mode: "acceptEdits", want: "true mode=acceptEdits"},
		"auto-accept passes edits":                       {tool: "MultiEdit", settings: domain.Settings{AutoAcceptEdits: true}, want: "true mode=acceptEdits"},
		"acceptEdits asks for commands":                  {tool: "Bash", mode: "acceptEdits"},
		"plan denies commands":                           {tool: "Bash", mode: "plan", want: "false mode=plan"},
		"plan denies edits":                              {tool: "Edit", mode: "plan", want: "false mode=plan"},
		"plan denies deletions":                          {tool: "trash", kind: "delete", mode: "plan", want: "false mode=plan"},
		"plan asks for reading":                          {tool: "Read", kind: "read", mode: "plan"},
		"a member of an odd type is no command":          {tool: "Bash", input: `{"command":["ls",7],"file_path":7}`, rules: []domain.Rule{allow(1, "Bash", "ls"), allow(1, "Bash", "ls 7")}},
		"words are a command":                            {tool: "Bash", input: `{"command":["ls","x y"],"file_path":7}`, rules: []domain.Rule{allow(1, "Bash", "ls 'x y'")}, want: "true rule=session"},
		"an empty list says nothing: denied":             {tool: "Bash", input: `[]`, want: "false rule=project"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.input == "" {
				c.input = `{"command":"true","file_path":"/p/a","of":"x"}`
			}
			call := callOf(domain.Approval{Tool: c.tool, ToolKind: c.kind, Input: json.RawMessage(c.input)})
			got := policy.Judge(call, Situation{
				Session: domain.Session{ID: 1, Agent: "fake", Settings: c.settings}, Turn: domain.Turn{Mode: c.mode, Tools: c.tools}, Rules: c.rules, Now: now,
			})
			text := ""
			if got.Reason != "" {
				text = fmt.Sprint(got.Approved, " ", got.Reason)
			}
			assert.Equal(t, c.want, text)
		})
	}
}

// No rule allows a tool without a known input, and every deny rule of the tool denies it, whatever
// its commands and files.
func TestUnknownInput(t *testing.T) {
	rule := func(effect, tool, command, path string) config.Rule {
		return config.Rule{Effect: effect, Tool: tool, Command: command, Path: path, Source: "user"}
	}
	decided := func(effect, command string) domain.Rule {
		return domain.Rule{Effect: effect, Tool: "Bash", Command: command}
	}
	for name, c := range map[string]struct {
		tool, kind, input string
		mode              string
		lists             domain.Settings
		rules             []config.Rule
		decided           []domain.Rule
		want              string
	}{
		"allowed by a rule for the tool":         {tool: "Bash", input: `{}`, rules: []config.Rule{rule("allow", "Bash", "", "")}},
		"by one for all tools":                   {tool: "Bash", input: `{}`, rules: []config.Rule{rule("allow", "*", "", "")}},
		"by a list":                              {tool: "Bash", input: `{}`, lists: domain.Settings{AllowedTools: []string{"Bash", "Bash(*)", "*"}}},
		"by a decision":                          {tool: "Bash", input: `{}`, decided: []domain.Rule{decided("allow", "")}},
		"by one for the same input":              {tool: "Bash", input: `{}`, decided: []domain.Rule{decided("allow", exactInput+inputHash("Bash", json.RawMessage(`{}`)))}},
		"without an input":                       {tool: "Bash", rules: []config.Rule{rule("allow", "Bash", "", "")}},
		"null":                                   {tool: "Bash", input: `null`, rules: []config.Rule{rule("allow", "Bash", "", "")}},
		"an empty text":                          {tool: "Bash", input: ` "" `, rules: []config.Rule{rule("allow", "Bash", "", "")}},
		"a command under another name":           {tool: "Bash", input: `{"cmd":"ls"}`, rules: []config.Rule{rule("allow", "Bash", "", "")}},
		"an edit of no file":                     {tool: "Edit", kind: "edit", input: `{"text":"x"}`, rules: []config.Rule{rule("allow", "Edit", "", "")}},
		"any other tool":                         {tool: "Deploy", kind: "other", input: `{}`, rules: []config.Rule{rule("allow", "Deploy", "", "")}},
		"denied by a rule for a command":         {tool: "Bash", input: `{}`, rules: []config.Rule{rule("deny", "Bash", "touch denied*", "")}, want: "false rule=user"},
		"by a rule for files":                    {tool: "Edit", kind: "edit", rules: []config.Rule{rule("deny", "", "", "*.key")}, want: "false rule=user"},
		"by a list for a command":                {tool: "Bash", input: `{}`, lists: domain.Settings{DisallowedTools: []string{"Bash(rm:*)"}}, want: "false rule=Bash(rm:*)"},
		"by a decision on a command":             {tool: "Bash", input: `{}`, decided: []domain.Rule{decided("deny", "rm x")}, want: "false rule=project"},
		"in bypass, too":                         {tool: "Bash", input: `{}`, mode: "bypassPermissions", rules: []config.Rule{rule("deny", "Bash", "rm *", "")}, want: "false rule=user"},
		"not by a rule for another tool":         {tool: "Bash", input: `{}`, rules: []config.Rule{rule("deny", "Edit", "", "")}},
		"not by a decision on another input":     {tool: "Bash", input: `{}`, decided: []domain.Rule{decided("deny", exactInput+"x")}},
		"bypass passes it":                       {tool: "Bash", input: `{}`, mode: "bypassPermissions", want: "true mode=bypassPermissions"},
		"the editor's tools":                     {tool: "mcp__duet-editor__open", input: `{"path":"a.go"}`, want: "true rule=editor"},
		"the editor's tools, denied":             {tool: "mcp__duet-editor__open", input: `{"path":"a.go"}`, rules: []config.Rule{rule("deny", "mcp__duet-editor__*", "", "")}, want: "false rule=user"},
		"the editor's tools, in plan mode":       {tool: "mcp__duet-editor__symbols", input: `{}`, mode: "plan", want: "true rule=editor"},
		"a server whose name begins like that":   {tool: "mcp__duet-editor2__open", input: `{"path":"a.go"}`},
		"an MCP tool without arguments":          {tool: "mcp__browser__snapshot", input: `{}`, rules: []config.Rule{rule("allow", "mcp__browser__*", "", "")}, want: "true rule=user"},
		"an MCP tool whose arguments are hidden": {tool: "mcp__browser__click", rules: []config.Rule{rule("allow", "mcp__browser__*", "", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			a := domain.Approval{Tool: c.tool, ToolKind: c.kind, Input: json.RawMessage(c.input)}
			assert.Equal(t, c.want, rulingOn(NewPolicy("/p", always(c.rules)), a, domain.Session{Settings: c.lists}, domain.Turn{Mode: c.mode}, c.decided...))
		})
	}
	_, offered := rulePreview(domain.Approval{Type: domain.FunctionCall, Question: "q", Tool: "Bash", Input: json.RawMessage(`{}`)}, Directories{Root: "/p", CWD: "/p"})
	assert.False(t, offered, "a rule for good")
	_, offered = rulePreview(domain.Approval{Type: domain.FunctionCall, Question: "q", Tool: "Bash", Input: json.RawMessage(`{"cmd":"ls"}`)}, Directories{Root: "/p", CWD: "/p"})
	assert.True(t, offered, "a rule for just this input")
}

func TestAllFilesOfAQuestionMustFitAnAllowRule(t *testing.T) {
	fits := func(effect, pattern, cwd string, paths ...string) bool {
		return Call{files: filesOf("/p", "", cwd, paths)}.touches(effect, func(name string) bool { return matches(pattern, name) })
	}
	assert.False(t, fits("allow", "src/*", "/p", "/p/src/a", "/p/b"))
	assert.True(t, fits("deny", "src/*", "/p", "/p/src/a", "/p/b"))
	assert.True(t, fits("allow", "src/*", "/p", "/p/src/a"))
	assert.False(t, fits("allow", "src/*", "/p"), "of nothing nothing is known")
	for path, want := range map[string]bool{
		"/p/src/a": true, "src/a": true, "src/b/../a": true,
		"/p/src/../b": false, "/p/src/../../etc/passwd": false, "src/../../etc/passwd": false, "../src/a": false,
	} {
		for _, pattern := range []string{"src/*", "/p/src/*"} {
			assert.Equal(t, want, fits("allow", pattern, "/p", path), "%s for %s", path, pattern)
		}
	}
	assert.False(t, fits("allow", "src/*", "/p/sub", "src/a"), "it is the one in sub")
}

func TestALinkIsWhatItIsCalledAndWhatItLeadsTo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("to make a link takes a privilege there")
	}
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "real", "secret"), 0o700))
	root := filepath.Join(dir, "project")
	link := func(to, name string) {
		require.NoError(t, os.Symlink(to, name))
	}
	link(filepath.Join(dir, "real"), root) // the project itself is behind a link
	for _, d := range []string{"docs/sub", "other"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, d), 0o700))
	}
	link("../secret", filepath.Join(root, "docs", "alias"))
	link(dir, filepath.Join(root, "docs", "out"))
	link("../secret/new", filepath.Join(root, "docs", "nowhere"))
	link("loop", filepath.Join(root, "docs", "loop"))
	link("sub", filepath.Join(root, "docs", "in"))
	link("../docs", filepath.Join(root, "other", "docs"))
	policy := NewPolicy(root, always([]config.Rule{
		{Effect: "deny", Path: "secret/*", Source: "user"}, {Effect: "allow", Path: "docs/*", Source: "project"},
	}))
	for path, want := range map[string]string{
		"docs/a": "project", "docs/new/a": "project", "docs/in/a": "project", filepath.Join(root, "docs/a"): "project",
		filepath.Join(dir, "real/docs/a"): "", // in docs, but under another name
		"docs/alias/k":                    "user", "docs/nowhere": "user", "other/docs/alias/k": "user", "secret/k": "user",
		"docs/out/a": "", "other/docs/a": "", "docs/out/../a": "", "docs/alias/../docs/a": "project",
	} {
		r := policy.Judge(Call{tool: "Read", paths: []string{path}}, Situation{Session: domain.Session{CWD: root}, Now: time.Now()})
		assert.Equal(t, want, strings.TrimPrefix(r.Reason, "rule="), path)
	}
	r := policy.Judge(Call{tool: "Read", paths: []string{"docs/loop/a"}}, Situation{Session: domain.Session{CWD: root}, Now: time.Now()})
	assert.True(t, r.Approved || r.Reason == "", "and a loop ends")
	lists := domain.Session{CWD: root, Settings: domain.Settings{DisallowedTools: []string{"Write(" + filepath.ToSlash(root) + "/secret/k)"}}}
	r = NewPolicy(root, nil).Judge(Call{tool: "Write", paths: []string{"docs/alias/k"}}, Situation{Session: lists, Now: time.Now()})
	assert.Contains(t, r.Reason, "rule=Write(", "lists know links too")
}

// A directory is inside if it is in the project or in the session's directory.
func TestADirectoryInside(t *testing.T) {
	for _, c := range []struct {
		root, cwd, dir string
		want           bool
	}{
		{"/p", "/s", "/p", true},
		{"/p", "/s", "/p/a", true},
		{"/p", "/s", "/p/../q", false},
		{"/p", "/s", "/pq", false},
		{"/p", "/s", "/s/a", true},
		{"/p", "/s", "a", true},
		{"/p", "/s", "../s/a", true},
		{"/p", "/s", "../q", false},
		{"/p", "", "a", false},
		{"/p", "", "/p/a", true},
		{"", "/s", "/s", true},
		{"", "/s", "/p", false},
	} {
		assert.Equal(t, c.want, insideOf(c.root, c.cwd)(c.dir), "%+v", c)
	}
}

// A name of 16 MB takes a second; reading each directory from the start took hours.
func TestALongNameTakesLinearTime(t *testing.T) {
	assert.False(t, isInPath("allow", "src/**", strings.Repeat("a/", 8<<20)+"x"))
	for name, want := range map[string]bool{"src/a/b": true, "src/a": true, "src": false, "a/src/b": false, "/src/b": false, "../src/b": false} {
		assert.Equal(t, want, isInPath("allow", "src/**", name), name)
	}
	assert.True(t, isInPath("allow", "?/**", "a"), "the directory is .")
	assert.True(t, isInPath("allow", "/?/**", "/a/b"))
}

// In a git worktree, rules for files of the project are rules for those of the worktree. The user's
// own files stay protected by deny rules, and no allow rule is for them.
func TestRulesForFilesInAWorktree(t *testing.T) {
	dir := t.TempDir()
	root, project := filepath.Join(dir, "project"), filepath.Join(dir, "worktrees", "fix", "project")
	require.NoError(t, os.MkdirAll(root, 0o700))
	require.NoError(t, os.MkdirAll(project, 0o700))
	policy := NewPolicy(root, always([]config.Rule{
		{Effect: config.EffectAllow, Tool: "Edit", Path: "src/**"},
		{Effect: config.EffectDeny, Tool: "Edit", Path: "secret/**"},
		{Effect: config.EffectDeny, Tool: "Edit", Path: filepath.ToSlash(root) + "/keys/**"},
	}))
	policy.Worktree = func(of string) string {
		assert.Equal(t, project, of)
		return project
	}
	for path, want := range map[string]string{
		"src/a": "allow", filepath.Join(project, "src/a"): "allow", filepath.Join(root, "src/a"): "",
		"secret/a": "deny", filepath.Join(root, "secret/a"): "deny", "keys/a": "deny", filepath.Join(root, "keys/a"): "deny",
		"other": "",
	} {
		r := policy.Judge(Call{tool: "Edit", paths: []string{path}}, Situation{Session: domain.Session{CWD: project}, Now: time.Now()})
		got := ""
		if r.IsSettled() {
			got = map[bool]string{true: "allow", false: "deny"}[r.Approved]
		}
		assert.Equal(t, want, got, path)
	}

	// "Always" at a question of the worktree is for the project's path.
	in := policy.directoriesOf(project)
	preview, _ := rulePreview(edit(filepath.Join(project, "docs/a")), in)
	assert.Equal(t, filepath.ToSlash(root)+"/**", preview.Pattern)
	rules := must(rulesFor(edit("docs/a"), ruleSpec{Effect: config.EffectAllow, Directories: in}))(t)
	for path, holds := range map[string]bool{"docs/a": true, "src/deep/b": true, filepath.Join(root, "docs/a"): false} {
		assert.Equal(t, holds, policy.Holds(callOf(edit(path)), config.EffectAllow, rules, domain.Session{CWD: project}), path)
	}
}

func TestTheModeThatTheAgentIsInCounts(t *testing.T) {
	const def, edits, bypass, plan = catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass, catalog.ModePlan
	claude, own := []string{def, edits, plan, bypass}, []string{"ask", "code"}
	edit := domain.Approval{Tool: "Edit", ToolKind: "edit", Input: []byte(`{"file_path":"/p/a"}`)}
	const asked, denied, allowed, all = "", "false mode=plan", "true mode=acceptEdits", "true mode=bypassPermissions"
	for _, c := range []struct {
		why       string
		asked, is string
		has       []string
		want      string
	}{
		{"it says nothing", plan, "", nil, denied},
		{"it is in it", plan, plan, claude, denied},
		{"it has left it", plan, def, claude, asked},
		{"it has left it for another in which it does not ask", plan, edits, claude, asked},
		{"it has left it, to run everything", plan, bypass, claude, asked},
		{"it went there by itself", def, plan, claude, denied},
		{"also from where everything is allowed", bypass, plan, claude, denied},
		{"people have said so", edits, edits, claude, allowed},
		{"it is no more in it", edits, def, claude, asked},
		{"it has not confirmed it", bypass, def, claude, asked},
		{"people have said so", bypass, bypass, claude, all},
		{"people have allowed more", bypass, edits, claude, allowed},
		{"nobody but the agent has said so", def, edits, claude, asked},
		{"nobody but the agent has said so", def, bypass, claude, asked},
		{"it is Duet's alone", edits, "ask", own, allowed},
		{"it is Duet's alone", bypass, "code", own, all},
		{"it is the agent's alone", "code", "code", own, asked},
		{"of an agent that has no such mode", plan, "ask", own, denied},
		{"an agent whose default is called default has no others of Duet's", edits, def, []string{def, "yolo"}, allowed},
	} {
		p := NewPolicy("/p", nil)
		r := p.Judge(callOf(edit), Situation{Session: domain.Session{CWD: "/p"}, Turn: domain.Turn{Mode: c.asked, AgentMode: c.is}, AgentModes: c.has})
		got := ""
		if r.IsSettled() {
			got = map[bool]string{true: "true ", false: "false "}[r.Approved] + r.Reason
		}
		assert.Equal(t, c.want, got, "%s: %s was asked for, it says %s", c.why, c.asked, c.is)
	}
}
