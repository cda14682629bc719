package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// asks returns codex's permission request for a script. Its input is the event itself, with its own
// id and time.
func asks(x *turn, n int64, script string) catalog.RequestPermissionParams {
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
			h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
				r, err := x.request(ctx, asks(x, 1, script))
				if err != nil {
					return hang(ctx, x)
				}
				x.say(verdictText(r))
				return completed
			}, func(o *Options) { o.Rules, o.Root = always(rules), root })
			s, err := h.Launch(context.Background(), LaunchSpec{Prompt: "p", CWD: root})
			require.NoError(t, err)
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

// A restarted agent asks the same question with another id and time. The answer applies to it.
func TestAnAnswerIsForWhatIsDoneNotForWhenItWasAsked(t *testing.T) {
	path := database(t)
	var n atomic.Int64
	play := func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		r, err := x.request(ctx, asks(x, n.Add(1), "touch x"))
		if err != nil || r.Cancelled {
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}
		x.say(verdictText(r))
		return completed
	}
	crash(t, path, play, "a")
	h := openHub(t, path, play)
	stale := pendingOf(t, h, 1)[0]
	require.True(t, stale.Stale)
	approve(t, h, stale, "")
	s, err := h.query.Session(context.Background(), "a")
	require.NoError(t, err)
	assert.Equal(t, "yes user_approved", await(t, h, s).Result)
	assert.EqualValues(t, 2, n.Load(), "it has asked twice, and a human was asked once")
	pendingOf(t, h, 0)
}

// A lasting decision about a script becomes a rule for that script and names it.
func TestADecisionAboutAScriptBecomesARuleForIt(t *testing.T) {
	var n atomic.Int64
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		r, err := x.request(ctx, asks(x, n.Add(1), strings.TrimPrefix(x.p.Prompt, "do ")))
		if err != nil {
			return hang(ctx, x)
		}
		x.say(verdictText(r))
		return completed
	})
	first := launchIn(t, h, "a", "do make test && git push")
	_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: pendingOf(t, h, 1)[0].ID, Decision: "approve", Scope: "session"})
	require.NoError(t, err)
	await(t, h, first)
	assert.Equal(t, "yes rule=session", await(t, h, launchIn(t, h, "a", "do make test && git push")).Result)
	standing, err := h.Approvals().Rules(context.Background())
	require.NoError(t, err)
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
			h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
				p := asks(x, 1, "touch x")
				var input map[string]any
				_ = json.Unmarshal(p.ToolInput, &input)
				input[name] = value
				p.ToolInput = encode(input)
				r, err := x.request(ctx, p)
				if err != nil {
					return hang(ctx, x)
				}
				x.say(verdictText(r))
				return completed
			}, func(o *Options) {
				o.Rules = always([]config.Rule{{Effect: "allow", Tool: "Bash", Command: "touch *", Source: "user"}})
			})
			s := launch(t, h, "p")
			approve(t, h, pendingOf(t, h, 1)[0], "")
			assert.Equal(t, "yes user_approved", await(t, h, s).Result)
		})
	}
}
