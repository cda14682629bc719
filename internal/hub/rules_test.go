package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
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
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
)

// Tools that an agent runs without asking need no approval, but a deny rule still applies.
func TestThePolicyIsForWhatIsNotAskedToo(t *testing.T) {
	write := catalog.RequestPermissionParams{ToolName: "Write", ToolKind: "edit", Paths: []string{"a"}, Title: "Write a", Unasked: []string{"Write", "Edit"}}
	run := catalog.RequestPermissionParams{ToolName: "Bash", ToolKind: "execute", ToolInput: json.RawMessage(`{"command":"rm x"}`), Title: "Run rm x", Unasked: []string{"Bash"}}
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
		"a rule":                 {LaunchSpec{}, run, "no rule=user"},
		"a rule, in bypass":      {LaunchSpec{Mode: catalog.ModeBypass}, run, "no rule=user"},
		"bypass":                 {LaunchSpec{Mode: catalog.ModeBypass}, write, "yes "},
		"an allow rule for plan": {LaunchSpec{Mode: catalog.ModePlan, Settings: domain.Settings{AllowedTools: []string{"Write"}}}, write, "yes "},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
				c.p.SessionToken = x.p.SessionToken
				r, err := x.request(ctx, c.p)
				if err != nil {
					return hang(ctx, x)
				}
				x.say(verdictText(r))
				return completed
			}, func(o *Options) {
				o.Rules = always([]config.Rule{{Effect: "deny", Tool: "Bash", Command: "rm *", Source: "user"}})
			})
			events := subscribe(t, h, eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested, domain.EventApprovalResolved}}, 0)
			c.spec.Prompt = "p"
			s, err := h.Launch(context.Background(), c.spec)
			require.NoError(t, err)
			s = await(t, h, s)
			assert.Equal(t, c.want, s.Result)
			conversation, err := h.query.Conversation(context.Background(), s.UUID, query.Page{})
			require.NoError(t, err)
			var noted []string
			for _, e := range conversation.Entries {
				if e.Kind == domain.ItemApproval {
					noted = append(noted, e.Content)
				}
			}
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
			a, err := h.Approvals().Find(context.Background(), reported.ApprovalID)
			require.NoError(t, err)
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
		a, err := h.Approvals().Create(context.Background(), approval.Spec{Run: s.UUID, Tool: c[0], Input: json.RawMessage(`{"file_path":"a"}`)})
		require.NoError(t, err)
		assert.Equal(t, c[1], a.Status)
		events.until(t, func() bool { return len(events.all()) == i+1 })
		reported, ok := events.all()[i].Payload.(domain.ApprovalResolved)
		require.True(t, ok)
		assert.Equal(t, []string{a.ID, c[1], "rule=" + c[0]}, []string{reported.ApprovalID, reported.Status, reported.DecidedBy})
	}
}

func TestADecisionBecomesARuleOfItsScope(t *testing.T) {
	ask := func(tool, command string) play {
		return func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
			x.say(verdictText(x.ask(ctx, tool, map[string]string{"command": command})))
			return completed
		}
	}
	var mu sync.Mutex
	now := ask("Bash", "ls")
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		mu.Lock()
		p := now
		mu.Unlock()
		return p(ctx, x)
	})
	set := func(p play) { mu.Lock(); now = p; mu.Unlock() }
	result := func(thread string) string { t.Helper(); return await(t, h, launchIn(t, h, thread, "p")).Result }
	asks := func(thread string, d approval.Decision) {
		t.Helper()
		s := launchIn(t, h, thread, "p")
		d.ID = pendingOf(t, h, 1)[0].ID
		_, err := h.Approvals().Decide(context.Background(), d)
		require.NoError(t, err)
		await(t, h, s)
	}
	asks("a", approval.Decision{Decision: "approve"})
	asks("a", approval.Decision{Decision: "approve", Scope: "once"}) // once creates no rule
	asks("a", approval.Decision{Decision: "approve", Scope: "session"})
	assert.Equal(t, "yes rule=session", result("a"))
	asks("b", approval.Decision{Decision: "deny", Comment: "no", Scope: "session"})
	assert.Equal(t, "no rule=session", result("b"))
	assert.Equal(t, "yes rule=session", result("a"), "threads know nothing of each other")
	asks("c", approval.Decision{Decision: "approve", Scope: "project"})
	assert.Equal(t, "yes rule=project", result("d"))
	assert.Equal(t, "no rule=session", result("b"), "deny wins")
	set(ask("Bash", "ls -l"))
	asks("d", approval.Decision{Decision: "approve"}) // another command is another question
}

func TestARuleOfTheProjectAnswersWhatWaitsInIt(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	prompts := []string{"x", "x", "x", "y"}
	var list []domain.Session
	for i, prompt := range prompts {
		s, err := h.Launch(context.Background(), LaunchSpec{Prompt: prompt, ThreadAlias: fmt.Sprint(i)})
		require.NoError(t, err)
		list = append(list, s)
		pendingOf(t, h, i+1)
	}
	no := pendingOf(t, h, 4)[3]
	_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: no.ID, Decision: "deny", Comment: "no", Scope: "session"})
	require.NoError(t, err)
	await(t, h, list[3])
	again := launchIn(t, h, "3", "y")
	assert.Equal(t, "no rule=session", await(t, h, again).Result)
	approve(t, h, pendingOf(t, h, 3)[0], "project")
	assert.Equal(t, "yes user_approved", await(t, h, list[0]).Result)
	for _, s := range list[1:3] {
		assert.Equal(t, "yes rule=project", await(t, h, s).Result)
	}
}

func TestOneThreadsAnswerAnswersNothingOfAnother(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	a, b := launchIn(t, h, "a", "p"), launchIn(t, h, "b", "p") // the same question
	pendingOf(t, h, 2)
	yes := true
	_, err := h.Settings().Update(context.Background(), a.SessionID, threadsettings.Change{AutoAcceptEdits: &yes})
	require.NoError(t, err)
	assert.Equal(t, "yes mode=acceptEdits", await(t, h, a).Result, "new settings answer what waits")
	left := pendingOf(t, h, 1)
	assert.Equal(t, b.Thread.ID, left[0].Thread)
	_, err = h.Settings().Update(context.Background(), a.SessionID, threadsettings.Change{SkipPermissions: &yes})
	require.NoError(t, err)
	pendingOf(t, h, 1)
	approve(t, h, left[0], "session")
	await(t, h, b)
	assert.Equal(t, "yes rule=session", await(t, h, launchIn(t, h, "b", "p")).Result)
}

func TestNewModeAnswersWhatWaitsByWhateverRun(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	first := launchIn(t, h, "a", "p")
	approve(t, h, pendingOf(t, h, 1)[0], "")
	await(t, h, first)
	second := launchIn(t, h, "a", "p")
	pendingOf(t, h, 1)
	mode := "acceptEdits"
	_, err := h.Settings().Update(context.Background(), first.SessionID, threadsettings.Change{Mode: &mode})
	require.NoError(t, err)
	assert.Equal(t, "yes mode=acceptEdits", await(t, h, second).Result)
	none := "" // an unknown agent, see TestWhatAnAgentIsKnownNotToHaveIsRefused
	_, err = h.Settings().Update(context.Background(), first.SessionID, threadsettings.Change{Mode: &none})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err))
	_, err = h.Settings().Update(context.Background(), "nobody", threadsettings.Change{Mode: &mode})
	assert.Equal(t, domain.KindRunNotFound, kindOf(t, err))
}

func TestBypassEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), askOnce)
		first := launchIn(t, h, "a", "p")
		synctest.Wait()
		yes, minute := true, time.Minute
		s, err := h.Settings().Update(context.Background(), first.SessionID, threadsettings.Change{SkipPermissions: &yes, SkipPermissionsTimeout: &minute})
		require.NoError(t, err)
		require.NotNil(t, s.Thread.Settings.SkipPermissionsUntil)
		assert.Equal(t, "yes mode=bypassPermissions", await(t, h, first).Result)
		time.Sleep(59 * time.Second)
		assert.Equal(t, "yes mode=bypassPermissions", await(t, h, launchIn(t, h, "a", "p")).Result)
		time.Sleep(2 * time.Second)
		launchIn(t, h, "a", "p")
		pendingOf(t, h, 1)
	})
}
