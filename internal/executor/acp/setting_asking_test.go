package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Modes of real agents, as of November 2026.
const (
	claude   = `{"modes":{"currentModeId":"auto","availableModes":[{"id":"default","name":"Manual"},{"id":"acceptEdits","name":"Accept edits"},{"id":"plan","name":"Plan"},{"id":"auto","name":"Auto"}]}}`
	codex    = `{"modes":{"currentModeId":"agent","availableModes":[{"id":"read-only","name":"Read-only"},{"id":"workspace-write","name":"Workspace access"},{"id":"agent","name":"Auto review"},{"id":"agent-full-access","name":"Full access"}]},"configOptions":[{"id":"mode","category":"mode","type":"select","currentValue":"agent","options":[{"value":"read-only","name":"Read-only"},{"value":"workspace-write","name":"Workspace access"},{"value":"agent","name":"Auto review"},{"value":"agent-full-access","name":"Full access"}]},{"id":"collaboration_mode","category":"collaboration_mode","type":"select","currentValue":"default","options":[{"value":"default","name":"Default"},{"value":"plan","name":"Plan"}]}]}`
	oldCodex = `{"modes":{"currentModeId":"auto","availableModes":[{"id":"read-only"},{"id":"auto"},{"id":"full-access"}]}}`
	qwen     = `{"modes":{"currentModeId":"auto","availableModes":[{"id":"plan"},{"id":"default"},{"id":"auto-edit"},{"id":"auto"},{"id":"yolo"}]}}`
	kimi     = `{"modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"plan"},{"id":"auto"},{"id":"yolo"}]}}`
	copilot  = `{"configOptions":[{"id":"mode","category":"mode","type":"select","currentValue":"URL#agent","options":[{"value":"URL#agent","name":"Agent"},{"value":"URL#plan","name":"Plan"},{"value":"URL#autopilot","name":"Autopilot"}]},{"id":"allow_all","category":"permissions","type":"select","currentValue":"ALL","options":[{"value":"on"},{"value":"off"}]}]}`
	unknown  = `{"modes":{"currentModeId":"swift","availableModes":[{"id":"swift","name":"Swift"},{"id":"careful"}]}}`
)

// agentWith returns a setter for an agent that accepts each mode and option, and reports nothing
// afterwards.
func agentWith(t *testing.T, offer string) *setter {
	t.Helper()
	const url = "https://agentclientprotocol.com/protocol/session-modes"
	offer = strings.NewReplacer("URL", url, "ALL", "off").Replace(offer)
	require.True(t, json.Valid([]byte(offer)))
	s := new(settingState)
	s.Opened(readOffer(json.RawMessage(offer)), true)
	return &setter{State: s, Agent: "ours", Call: func(method string, _ any) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }}
}

// Duet sets an agent to a mode in which the agent asks. If it knows no such mode, it leaves
// the agent in its own mode and warns the user.
func TestDuetSetsModesThatAsk(t *testing.T) {
	for name, c := range map[string]struct {
		offer  string
		wanted string
		is     string // the name of its mode
		blind  bool   // rules and questions do not apply
	}{
		"claude, no mode":             {claude, "", "default", false},
		"claude, default":             {claude, "default", "default", false},
		"claude, edits":               {claude, "acceptEdits", "acceptEdits", true},
		"claude, all":                 {claude, "bypassPermissions", "default", false},
		"claude, its own":             {claude, "auto", "auto", true},
		"codex, no mode":              {codex, "", "read-only", false},
		"codex, default":              {codex, "default", "read-only", false},
		"codex, edits":                {codex, "acceptEdits", "read-only", false},
		"codex, all":                  {codex, "bypassPermissions", "read-only", false},
		"codex, plan":                 {codex, "plan", "plan", false},
		"codex, workspace":            {codex, "workspace-write", "workspace-write", true},
		"codex, its own":              {codex, "agent", "agent", true},
		"codex 0.16, no mode":         {oldCodex, "", "auto", false},
		"codex 0.16, full access":     {oldCodex, "full-access", "full-access", true},
		"qwen, no mode":               {qwen, "", "default", false},
		"qwen, edits":                 {qwen, "acceptEdits", "default", false},
		"qwen, yolo":                  {qwen, "yolo", "yolo", true},
		"kimi, no mode":               {kimi, "", "default", false},
		"kimi, auto":                  {kimi, "auto", "auto", true},
		"copilot, no mode":            {copilot, "", "agent", false},
		"copilot, plan":               {copilot, "plan", "plan", false},
		"copilot, autopilot":          {copilot, "autopilot", "autopilot", true},
		"copilot that allows all":     {strings.Replace(copilot, "ALL", "on", 1), "", "agent", true},
		"an unknown agent, no mode":   {unknown, "", "swift", true},
		"an unknown agent, default":   {unknown, "default", "swift", true},
		"an unknown agent, edits":     {unknown, "acceptEdits", "swift", true},
		"an unknown agent's own mode": {unknown, "careful", "careful", true},
		"an agent that asks":          {`{"modes":{"currentModeId":"ask","availableModes":[{"id":"ask"},{"id":"code"}]}}`, "", "ask", false},
		"an agent without modes":      {`{}`, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := agentWith(t, c.offer)
			require.NoError(t, s.ChooseMode("", c.wanted, func(message string) { assert.Fail(t, message) }))
			now := s.State.Session()
			assert.Equal(t, c.is, catalog.ModeName(now.Mode.Current))
			assert.Equal(t, c.blind, unasked("ours", now) != "", unasked("ours", now))
			if c.wanted == "" || c.offer == `{}` {
				return
			}
			s = agentWith(t, c.offer) // the same by session.set
			require.NoError(t, s.Set(c.wanted, "", nil))
			assert.Equal(t, c.is, catalog.ModeName(s.State.Session().Mode.Current))
		})
	}
	s := agentWith(t, unknown)
	assert.Equal(t, `ours is in its mode "Swift" (swift), in which it may act without asking: rules and questions hold only for what it asks about`, unasked("ours", s.State.Session()))
	assert.ErrorContains(t, s.ChooseMode("", "plan", nil), "the agent has swift, careful")
}

// codex has plan mode as an option. Duet lists it among the modes, sets it, and resets it for
// another mode.
func TestPlanIsAnOption(t *testing.T) {
	s := agentWith(t, codex)
	var calls []string
	s.Call = func(method string, params any) (json.RawMessage, error) {
		calls = append(calls, fmt.Sprintf("%v=%v", params.(map[string]any)["configId"], params.(map[string]any)["value"]))
		assert.Equal(t, acp.MethodSessionSetValue, method)
		return json.RawMessage(`{}`), nil
	}
	assert.Contains(t, settingIDs(s.State.Session().Mode.Choices), "plan")
	require.NoError(t, s.ChooseMode("", "plan", nil))
	assert.Equal(t, []string{"mode=read-only", "collaboration_mode=plan"}, calls)
	var reported catalog.Session
	s.State.ReportChanged(func(changed catalog.Session) { reported = changed })
	assert.Equal(t, "plan", reported.Mode.Current)
	calls = nil
	require.NoError(t, s.ChooseMode("plan", "", nil))
	assert.Empty(t, calls, "it is in plan mode")
	require.NoError(t, s.Set("default", "", nil))
	assert.Equal(t, []string{"collaboration_mode=default"}, calls)
	assert.Equal(t, "read-only", s.State.Session().Mode.Current)
	require.NoError(t, s.Set("plan", "", nil))
	calls = nil
	require.NoError(t, s.Set("workspace-write", "", nil))
	assert.Equal(t, []string{"collaboration_mode=default", "mode=workspace-write"}, calls)

	require.NoError(t, s.Set("plan", "", nil))
	assert.True(t, s.State.Update("config_option_update", []byte(codexOptions(t, "default"))), "the agent leaves it by itself")
	assert.Equal(t, "agent", s.State.Session().Mode.Current)
}

// codexOptions returns an update with codex's options, with a collaboration mode.
func codexOptions(t *testing.T, collaboration string) string {
	var offer map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(codex), &offer))
	return strings.Replace(fmt.Sprintf(`{"configOptions":%s}`, offer["configOptions"]), `"currentValue":"default"`, fmt.Sprintf(`"currentValue":%q`, collaboration), 1)
}
