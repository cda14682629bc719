package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
)

// Tools that an agent runs without asking need no approval, but a deny rule still applies.
func TestThePolicyIsForWhatIsNotAskedToo(t *testing.T) {
	write := catalog.RequestPermissionParams{ToolName: "Write", ToolKind: "edit", Paths: []string{"a"}, Title: "Write a", Unasked: []string{"Write", "Edit"}}
	turn := catalog.RequestPermissionParams{ToolName: "Bash", ToolKind: "execute", ToolInput: json.RawMessage(`{"command":"rm x"}`), Title: "Run rm x", Unasked: []string{"Bash"}}
	for name, c := range map[string]struct {
		spec LaunchSpec
		p    catalog.RequestPermissionParams
		want string
	}{
		"nothing is known":       {LaunchSpec{}, write, "yes "},
		"plan":                   {LaunchSpec{Mode: catalog.ModePlan}, write, "no mode=plan"},
		"plan, a command":        {LaunchSpec{Mode: catalog.ModePlan}, catalog.RequestPermissionParams{ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"ls"}`), Title: "Run ls", Unasked: []string{"Bash"}}, "no mode=plan"},
		"other tools only":       {LaunchSpec{Tools: []string{"Read"}}, write, "no rule=tools"},
		"one of its names":       {LaunchSpec{Tools: []string{"Edit"}}, write, "yes "},
		"all names denied":       {LaunchSpec{Settings: domain.Settings{DisallowedTools: []string{"Write", "Edit"}}}, write, "no rule=Edit"},
		"another one denied":     {LaunchSpec{Settings: domain.Settings{DisallowedTools: []string{"Write"}}}, write, "yes "},
		"a rule":                 {LaunchSpec{}, turn, "no rule=user"},
		"a rule, in bypass":      {LaunchSpec{Mode: catalog.ModeBypass}, turn, "no rule=user"},
		"bypass":                 {LaunchSpec{Mode: catalog.ModeBypass}, write, "yes "},
		"an allow rule for plan": {LaunchSpec{Mode: catalog.ModePlan, Settings: domain.Settings{AllowedTools: []string{"Write"}}}, write, "yes "},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHub(t, database(t), requests(func(*fakeTurn) catalog.RequestPermissionParams { return c.p }), func(o *Options) {
				fakeOf(o).rules = always([]config.Rule{{Effect: "deny", Tool: "Bash", Command: "rm *", Source: "user"}})
			})
			events := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested, domain.EventApprovalResolved}}, 0)
			c.spec.Prompt = "p"
			s := await(t, h, must(h.Launch(context.Background(), c.spec))(t))
			assert.Equal(t, c.want, s.Result)
			noted := notes(t, h, s.UUID)
			reason, denied := strings.CutPrefix(c.want, "no ")
			if !denied {
				assert.Empty(t, noted)
				assert.Empty(t, events.all())
				return
			}
			require.Len(t, noted, 1)
			assert.Contains(t, noted[0], c.p.Title+" — denied by "+reason+" (")
			events.until(t, func() bool { return len(events.all()) == 1 })
			reported := events.all()[0].Payload.(domain.ApprovalResolved)
			assert.Equal(t, []string{"denied", reason, c.p.ToolName}, []string{reported.Status, reported.DecidedBy, reported.Tool})
			a := must(h.Approvals().Find(context.Background(), reported.ApprovalID))(t)
			assert.Equal(t, domain.ApprovalDenied, a.Status)
		})
	}
}

func TestWhatThePolicySettlesIsToldToWhoeverAsks(t *testing.T) {
	h := openHub(t, database(t), hang)
	s, err := h.Launch(context.Background(), LaunchSpec{Prompt: "p", Settings: domain.Settings{AllowedTools: []string{"Read"}, DisallowedTools: []string{"Write"}}})
	require.NoError(t, err)
	inState(t, h, s, domain.Running)
	events := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested, domain.EventApprovalResolved}}, 0)
	for i, c := range [][2]string{{"Read", domain.ApprovalApproved}, {"Write", domain.ApprovalDenied}} {
		a := must(h.Approvals().Create(context.Background(), approval.Spec{Turn: s.UUID, Tool: c[0], Input: json.RawMessage(`{"file_path":"a"}`)}))(t)
		assert.Equal(t, c[1], a.Status)
		events.until(t, func() bool { return len(events.all()) == i+1 })
		reported, ok := events.all()[i].Payload.(domain.ApprovalResolved)
		require.True(t, ok)
		assert.Equal(t, []string{a.ID, c[1], "rule=" + c[0]}, []string{reported.ApprovalID, reported.Status, reported.DecidedBy})
	}
}

func TestADecisionBecomesARuleOfItsScope(t *testing.T) {
	ask := func(tool, command string) play {
		return func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			x.say(verdictText(x.ask(ctx, tool, map[string]string{"command": command})))
			return completed
		}
	}
	var mu sync.Mutex
	now := ask("Bash", "ls")
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		mu.Lock()
		p := now
		mu.Unlock()
		return p(ctx, x)
	})
	set := func(p play) { mu.Lock(); now = p; mu.Unlock() }
	result := func(session string) string { t.Helper(); return await(t, h, launchIn(t, h, session, "p")).Result }
	asks := func(session string, d approval.Decision) {
		t.Helper()
		s := launchIn(t, h, session, "p")
		d.ID = pendingOf(t, h, 1)[0].ID
		decide(t, h, d)
		await(t, h, s)
	}
	asks("a", approval.Decision{Decision: "approve"})
	asks("a", approval.Decision{Decision: "approve", Scope: "once"}) // once creates no rule
	asks("a", approval.Decision{Decision: "approve", Scope: "session"})
	assert.Equal(t, "yes rule=session", result("a"))
	asks("b", approval.Decision{Decision: "deny", Comment: "no", Scope: "session"})
	assert.Equal(t, "no rule=session", result("b"))
	assert.Equal(t, "yes rule=session", result("a"), "sessions know nothing of each other")
	asks("c", approval.Decision{Decision: "approve", Scope: "project"})
	assert.Equal(t, "yes rule=project", result("d"))
	assert.Equal(t, "no rule=session", result("b"), "deny wins")
	set(ask("Bash", "ls -l"))
	asks("d", approval.Decision{Decision: "approve"}) // another command is another question
}

func TestARuleOfTheProjectAnswersWhatWaitsInIt(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	prompts := []string{"x", "x", "x", "y"}
	var list []domain.TurnInSession
	for i, prompt := range prompts {
		s := must(h.Launch(context.Background(), LaunchSpec{Prompt: prompt, SessionAlias: fmt.Sprint("of ", i)}))(t)
		list = append(list, s)
		pendingOf(t, h, i+1)
	}
	no := pendingOf(t, h, 4)[3]
	decide(t, h, approval.Decision{ID: no.ID, Decision: "deny", Comment: "no", Scope: "session"})
	await(t, h, list[3])
	again := launchIn(t, h, "of 3", "y")
	assert.Equal(t, "no rule=session", await(t, h, again).Result)
	approve(t, h, pendingOf(t, h, 3)[0], "project")
	assert.Equal(t, "yes user_approved", await(t, h, list[0]).Result)
	for _, s := range list[1:3] {
		assert.Equal(t, "yes rule=project", await(t, h, s).Result)
	}
}

func TestOneSessionsAnswerAnswersNothingOfAnother(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	a, b := launchIn(t, h, "a", "p"), launchIn(t, h, "b", "p") // the same question
	pendingOf(t, h, 2)
	yes := true
	must(h.Settings().Update(context.Background(), a.HumanLayerSession, domain.SettingsChanged{AutoAcceptEdits: &yes}))(t)
	assert.Equal(t, "yes mode=acceptEdits", await(t, h, a).Result, "new settings answer what waits")
	left := pendingOf(t, h, 1)
	assert.Equal(t, b.Session.ID, left[0].Session)
	must(h.Settings().Update(context.Background(), a.HumanLayerSession, domain.SettingsChanged{SkipPermissions: &yes}))(t)
	pendingOf(t, h, 1)
	approve(t, h, left[0], "session")
	await(t, h, b)
	assert.Equal(t, "yes rule=session", await(t, h, launchIn(t, h, "b", "p")).Result)
}

func TestNewModeAnswersWhatWaitsByWhateverTurn(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	first := launchIn(t, h, "a", "p")
	approve(t, h, pendingOf(t, h, 1)[0], "")
	await(t, h, first)
	second := launchIn(t, h, "a", "p")
	pendingOf(t, h, 1)
	mode := "acceptEdits"
	must(h.Settings().Update(context.Background(), first.HumanLayerSession, domain.SettingsChanged{Mode: &mode}))(t)
	assert.Equal(t, "yes mode=acceptEdits", await(t, h, second).Result)
	none := "" // an unknown agent, see TestWhatAnAgentIsKnownNotToHaveIsRefused
	_, err := h.Settings().Update(context.Background(), first.HumanLayerSession, domain.SettingsChanged{Mode: &none})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	_, err = h.Settings().Update(context.Background(), "nobody", domain.SettingsChanged{Mode: &mode})
	assert.Equal(t, domain.KindTurnNotFound, kindOf(t, err))
}

func TestBypassEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), askOnce)
		first := launchIn(t, h, "a", "p")
		synctest.Wait()
		yes := true
		s, err := h.Settings().Update(context.Background(), first.HumanLayerSession, domain.SettingsChanged{SkipPermissions: &yes, SkipUntil: h.Latest().Add(time.Minute)})
		require.NoError(t, err)
		require.NotNil(t, s.Session.Settings.SkipPermissionsUntil)
		assert.Equal(t, "yes mode=bypassPermissions", await(t, h, first).Result)
		time.Sleep(59 * time.Second)
		assert.Equal(t, "yes mode=bypassPermissions", await(t, h, launchIn(t, h, "a", "p")).Result)
		time.Sleep(2 * time.Second)
		launchIn(t, h, "a", "p")
		pendingOf(t, h, 1)
	})
}

// asks returns codex's permission request for a script. Its input is the event itself, with its own
// id and time.
func asks(x *fakeTurn, n int64, script string) catalog.RequestPermissionParams {
	call := fmt.Sprintf("call_%d", n)
	return catalog.RequestPermissionParams{
		SessionToken: x.p.SessionToken, TaskID: x.p.TaskID, ToolName: "Bash", NameByKind: true, ToolKind: "execute", ToolUseID: call, Title: script, InputFixed: true,
		ToolInput: encode(map[string]any{
			"call_id": call, "turn_id": x.p.TaskID, "started_at_ms": 1795336962508 + n, "command": []string{"/bin/bash", "-lc", script}, "cwd": x.p.CWD, "reason": fmt.Sprint("because ", n),
			"available_decisions": []string{"approved", "abort"}, "parsed_cmd": []map[string]string{{"type": "unknown", "cmd": script}},
		}),
	}
}

// Rules match the command that runs, however an agent spells it.
func TestRulesSeeWhatAShellIsGiven(t *testing.T) {
	rules := []config.Rule{
		{Effect: "deny", Tool: "Bash", Command: "rm *", Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: "touch *", Source: "user"},
		{Effect: "allow", Tool: "Bash", Command: "make test", Source: "project"},
	}
	for script, want := range map[string]string{
		"touch x":                     "yes rule=user",
		"touch x && make test":        "yes rule=user",
		"make test 2>&1 | touch x":    "yes rule=user",
		"env CI=1 make test":          "yes rule=project",
		"touch x; rm y":               "no rule=user",
		"env A=b sudo rm y":           "no rule=user",
		"bash -c \"touch x; 'rm' y\"": "no rule=user",
		"touch $(ls)":                 "asked",
		"touch x\nls":                 "asked",
		"eval touch x":                "asked",
		"touch x > y":                 "asked",
		"touch \"x":                   "asked",
		"cd sub && make test":         "yes rule=project",
		"cd /tmp && make test":        "asked",
	} {
		t.Run(script, func(t *testing.T) {
			root := t.TempDir()
			agent := requests(func(x *fakeTurn) catalog.RequestPermissionParams { return asks(x, 1, script) })
			h := openHub(t, database(t), agent, func(o *Options) { fakeOf(o).rules, o.Root = always(rules), root })
			s := must(h.Launch(context.Background(), LaunchSpec{Prompt: "p", CWD: root}))(t)
			if want == "asked" {
				a := pendingOf(t, h, 1)[0]
				assert.Equal(t, script, a.Title)
				approve(t, h, a, "")
				want = "yes user_approved"
			}
			assert.Equal(t, want, await(t, h, s).Result)
		})
	}
}

// A lasting decision about a script becomes a rule for that script and names it.
func TestADecisionAboutAScriptBecomesARuleForIt(t *testing.T) {
	var n atomic.Int64
	h := openHub(t, database(t), requests(func(x *fakeTurn) catalog.RequestPermissionParams {
		return asks(x, n.Add(1), strings.TrimPrefix(x.p.Prompt, "do "))
	}))
	first := launchIn(t, h, "a", "do make test && git push")
	decide(t, h, approval.Decision{ID: pendingOf(t, h, 1)[0].ID, Decision: "approve", Scope: "session"})
	await(t, h, first)
	assert.Equal(t, "yes rule=session", await(t, h, launchIn(t, h, "a", "do make test && git push")).Result)
	standing := must(h.Approvals().Rules(context.Background()))(t)
	require.Len(t, standing, 1)
	assert.Equal(t, "make test && git push", standing[0].Command)
	other := launchIn(t, h, "a", "do make test && git push -f")
	approve(t, h, pendingOf(t, h, 1)[0], "")
	assert.Equal(t, "yes user_approved", await(t, h, other).Result)
}

// A rule for commands grants no permission beyond running the command.
func TestARuleForCommandsGivesNoFurtherPermissions(t *testing.T) {
	for name, value := range map[string]any{
		"additional_permissions": map[string]any{"network": true}, "network_approval_context": map[string]string{"host": "example.org"}, "cwd": filepath.Dir(t.TempDir()), "workdir": 7,
	} {
		t.Run(name, func(t *testing.T) {
			h := openHub(t, database(t), requests(func(x *fakeTurn) catalog.RequestPermissionParams {
				p := asks(x, 1, "touch x")
				var input map[string]any
				_ = json.Unmarshal(p.ToolInput, &input)
				input[name] = value
				p.ToolInput = encode(input)
				return p
			}), func(o *Options) {
				fakeOf(o).rules = always([]config.Rule{{Effect: "allow", Tool: "Bash", Command: "touch *", Source: "user"}})
			})
			s := launch(t, h, "p")
			approve(t, h, pendingOf(t, h, 1)[0], "")
			assert.Equal(t, "yes user_approved", await(t, h, s).Result)
		})
	}
}
