package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// reports records the reports to the hub.
type reports struct {
	task.Hub
	events []catalog.ReportMessageParams
}

func (r *reports) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	r.events = append(r.events, p)
	return nil
}

// Changes between two prompts, or during a replay of the session, are reported with the next
// prompt.
func TestUnreportedSettingsAreReportedLater(t *testing.T) {
	hub := &reports{}
	turn := newTurn(task.New(t.Context(), t.Context(), hub, slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{TaskID: "t", Launch: &catalog.AgentLaunch{}}), Options{})
	defer turn.Close()
	a := &agent{}
	a.update(nil, []byte(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"review"},17,{"description":"no name"}]}`), false)
	a.turns.current = turn
	a.history.loading = true
	a.update(nil, []byte(`{"sessionUpdate":"current_mode_update","currentModeId":"code"}`), false)
	a.update(nil, []byte(`{"sessionUpdate":"config_option_update","configOptions":"what"}`), false)
	a.update(nil, []byte(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"replayed"}}`), false)
	assert.Empty(t, hub.events)
	a.reportSettings(turn)
	require.Len(t, hub.events, 2)
	var reported catalog.Session
	require.NoError(t, json.Unmarshal(hub.events[0].EventData, &reported))
	assert.Equal(t, catalog.Session{Mode: &catalog.Selection{Current: "code"}, Commands: []domain.AgentCommand{{Name: "review"}}}, reported)
	assert.Equal(t, catalog.EventMode, hub.events[1].EventType)
	a.reportChanged()
	assert.Len(t, hub.events, 2, "it is reported once")
}

// sessions records the reports between two turns, with their times.
type sessions struct {
	Hub
	mu     sync.Mutex // guards the fields below
	titles []string
	at     []time.Time
}

func (s *sessions) ReportSession(_ context.Context, p catalog.ReportSessionParams) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.titles = append(s.titles, p.Session.Info.Title)
	s.at = append(s.at, time.Now())
	return nil
}

// Title changes between two turns are reported at most twice a second: the first at once, and the
// last in any case.
func TestReportsBetweenTurnsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &sessions{}
		here, there := net.Pipe()
		a := &agent{driver: &Driver{ctx: t.Context(), hub: hub, log: slog.New(slog.DiscardHandler)}, changed: make(chan struct{}, 1)}
		a.conn = acp.NewConn(io.Discard, acp.Handler{})
		go a.conn.Read(here)
		a.turns.last = &lastTask{session: "s", task: "t"}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.reportBetweenTurns()
		}()
		began := time.Now()
		title := func(n int) {
			a.update(nil, fmt.Appendf(nil, `{"sessionUpdate":"session_info_update","title":"%d"}`, n), false)
		}
		for n := range 4800 {
			title(n)
			time.Sleep(time.Millisecond)
		}
		title(4800)
		there.Close()
		<-ended
		require.Len(t, hub.at, 11)
		for i, at := range hub.at[:10] {
			assert.Equal(t, time.Duration(i)*betweenReports, at.Sub(began))
		}
		assert.Equal(t, "4800", hub.titles[10])
		assert.Equal(t, 4800*time.Millisecond, hub.at[10].Sub(began), "the last report does not wait after the end of the agent")
	})
}

// setterOf returns a setter for an agent that accepts each mode, and that reported its modes when
// it opened the session.
func setterOf(t *testing.T, isNew bool, current string, modes ...string) *setter {
	t.Helper()
	available := []any{}
	for _, id := range modes {
		available = append(available, map[string]string{"id": id})
	}
	offer, err := json.Marshal(map[string]any{"modes": map[string]any{"currentModeId": current, "availableModes": available}})
	require.NoError(t, err)
	s := new(settingState)
	s.Opened(readOffer(offer), isNew)
	return &setter{State: s, Agent: "ours", Info: &acp.Initialized{}, Call: func(method string, _ any, taken func(json.RawMessage)) error {
		assert.Equal(t, acp.MethodSessionSetMode, method)
		taken(json.RawMessage(`{}`))
		return nil
	}}
}

// An agent in plan mode without a mode of the wanted name returns to its first mode, or to the
// only other one. If neither is known, the error says that it still plans.
func TestLeavePlanMode(t *testing.T) {
	for name, c := range map[string]struct {
		isNew  bool
		began  string
		modes  []string
		wanted string
		is     string // its mode afterwards
	}{
		"to its default":                    {true, "code", []string{"code", "plan", "default"}, "default", "default"},
		"to where it began":                 {true, "build", []string{"yolo", "build", "plan"}, "default", "build"},
		"to where it began, allowing edits": {true, "build", []string{"yolo", "build", "plan"}, "acceptEdits", "build"},
		"to the only other":                 {false, "plan", []string{"build", "plan"}, "default", "build"},
		"to nobody knows which":             {false, "plan", []string{"yolo", "build", "plan"}, "default", "plan"},
	} {
		t.Run(name, func(t *testing.T) {
			for way, set := range map[string]func(s *setter) (problem string){
				"while it works": func(s *setter) string { return fmt.Sprint(s.Set(c.wanted, "", nil)) },
				"for a prompt": func(s *setter) (problem string) {
					problem = "<nil>"
					assert.NoError(t, s.ChooseMode("", c.wanted, func(message string) { problem = message }))
					return problem
				},
			} {
				s := setterOf(t, c.isNew, c.began, c.modes...)
				require.NoError(t, s.Set(catalog.ModePlan, "", nil))
				problem := set(s)
				assert.Equal(t, c.is, s.State.Session().Mode.Current, way)
				if c.is == catalog.ModePlan {
					assert.Contains(t, problem, "choose one of yolo, build", way)
				} else {
					assert.Equal(t, "<nil>", problem, way)
				}
			}
		})
	}
}

// An agent that plans by its user's configuration stays in that mode.
func TestConfiguredPlanModeStays(t *testing.T) {
	s := setterOf(t, true, "plan", "build", "plan")
	require.NoError(t, s.ChooseMode("", catalog.ModeDefault, func(message string) { assert.Fail(t, message) }))
	assert.Equal(t, catalog.ModePlan, s.State.Session().Mode.Current)
}

// Gemini CLI reports its mode in a message, which Duet does not show. The same text of other agents,
// or with an unknown mode, is an ordinary message.
func TestSpokenMode(t *testing.T) {
	const said = `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}`
	for _, c := range []struct{ agent, mode, becomes string }{
		{"gemini-cli", "default", "default"},
		{"gemini-cli", "default, and more", "plan"},
		{"another", "default", "plan"},
	} {
		t.Run(c.agent+" "+c.mode, func(t *testing.T) {
			hub := &reports{}
			turn := newTurn(task.New(t.Context(), t.Context(), hub, slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{TaskID: "t", Launch: &catalog.AgentLaunch{}}), Options{})
			a := &agent{}
			a.settings.Introduced(&domain.AgentInfo{Name: c.agent}, domain.PromptTakes{})
			a.settings.Opened(readOffer([]byte(`{"modes":{"currentModeId":"plan","availableModes":[{"id":"plan"},{"id":"default"}]}}`)), true)
			a.turns.current = turn
			a.update(nil, fmt.Appendf(nil, said, "[MODE_UPDATE] "+c.mode), false)
			a.update(nil, fmt.Appendf(nil, said, "a message"), false)
			turn.Close()
			var text strings.Builder
			for _, e := range hub.events {
				text.Write(e.EventData)
			}
			assert.Equal(t, c.becomes, a.settings.Session().Mode.Current)
			assert.Equal(t, c.becomes == "plan", strings.Contains(text.String(), "MODE_UPDATE"))
			assert.Contains(t, text.String(), "a message")
		})
	}
}

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
	return &setter{State: s, Agent: "ours", Info: &acp.Initialized{}, Call: func(_ string, _ any, taken func(json.RawMessage)) error {
		taken(json.RawMessage(`{}`))
		return nil
	}}
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
	s.Call = func(method string, params any, taken func(json.RawMessage)) error {
		calls = append(calls, fmt.Sprintf("%v=%v", params.(map[string]any)["configId"], params.(map[string]any)["value"]))
		assert.Equal(t, acp.MethodSessionSetValue, method)
		taken(json.RawMessage(`{}`))
		return nil
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
	assert.True(t, s.State.Update("config_option_update", []byte(codex)), "the agent leaves it by itself")
	assert.Equal(t, "agent", s.State.Session().Mode.Current)
}
