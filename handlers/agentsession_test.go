package handlers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// choosy is an agent with its own modes, models, options and commands. It works until it is
// stopped.
func choosy(ctx context.Context, x *turn) catalog.ExecutePromptResult {
	modes := []domain.Choice{{ID: "ask", Name: "Ask", Description: "Asks first"}, {ID: "code", Extra: json.RawMessage(`{"_meta":1}`)}}
	x.report(catalog.EventSession, catalog.Session{
		Agent: &domain.AgentInfo{Name: "choosy", Version: "7"},
		Mode:  &catalog.Selection{Current: "ask", Choices: modes},
		Model: &catalog.Selection{Current: "small", Choices: []domain.Choice{{ID: "small", Group: "Cheap"}, {ID: "big"}}},
		Options: []catalog.Option{
			{ID: "thought", Name: "Thinking", Category: "thought_level", Type: "select", Current: "low", Choices: []domain.Choice{{ID: "low"}, {ID: "high"}}},
			{ID: "colour", Type: "of-the-future", Extra: json.RawMessage(`{"palette":1}`)},
		},
		Commands: []domain.AgentCommand{{Name: "review", Description: "Review it", InputHint: "what"}},
		Info:     &domain.SessionInfo{Title: "A title", Updated: "2026-11-22T10:00:00Z"},
	})
	x.report(catalog.EventMode, catalog.Mode{Current: "ask", Available: []string{"ask", "code"}, Choices: modes})
	return until(ctx, x)
}

const choosySession = `{"agent":{"name":"choosy","version":"7"},` +
	`"mode":{"current":"ask","available":[{"id":"ask","name":"Ask","description":"Asks first"},{"id":"code","extra":{"_meta":1}}]},` +
	`"model":{"current":"small","available":[{"id":"small","group":"Cheap"},{"id":"big"}]},` +
	`"options":[{"id":"thought","name":"Thinking","category":"thought_level","type":"select","current":"low","values":[{"id":"low"},{"id":"high"}]},` +
	`{"id":"colour","type":"of-the-future","current":"","values":[],"extra":{"palette":1}}],` +
	`"commands":[{"name":"review","description":"Review it","input_hint":"what"}],"info":{"title":"A title","updated_at":"2026-11-22T10:00:00Z"}}`

func TestWhatAnAgentTellsOfItsSession(t *testing.T) {
	w := newWorld(t, choosy)
	c := w.connect(frame.LSP)
	described := object(t, c.ask("agent.describe", ""))
	assert.Equal(t, "fake", described["agent"])
	assert.NotContains(t, described, "agent_session", "no session has reported it yet")
	assert.Len(t, described["modes"], 4)
	assert.Equal(t, -32602, c.fail("agent.describe", `{"agent":"unknown"}`).Code)

	c.ask("Subscribe", `{"event_types":["agent_session","session_settings_changed"]}`)
	id := c.launch(`{"query":"q"}`)
	reported := c.event("agent_session")
	var event map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(reported, &event))
	for name, part := range object(t, json.RawMessage(choosySession)) {
		want, _ := json.Marshal(part)
		assert.JSONEq(t, string(want), string(event[name]), name)
	}
	assert.Contains(t, event, "session_id")
	mode := object(t, c.event("session_settings_changed"))
	assert.Equal(t, []any{"mode", "ask", []any{"ask", "code"}}, []any{mode["event_type"], mode["agent_mode"], mode["agent_modes"]})
	assert.Equal(t, map[string]any{"id": "ask", "name": "Ask", "description": "Asks first"}, mode["agent_mode_choices"].([]any)[0])

	s := answer[struct{ Session map[string]json.RawMessage }](c, "getSessionState", `{"session_id":"`+id+`"}`).Session
	assert.JSONEq(t, choosySession, string(s["agent_session"]))
	assert.JSONEq(t, `"small"`, string(s["model"]))
	assert.JSONEq(t, `"ask"`, string(s["agent_mode"]))
	assert.JSONEq(t, `"default"`, string(s["permission_mode"]))
	var ids, by []string
	var modes []struct{ ID, By string }
	require.NoError(t, json.Unmarshal(s["modes"], &modes))
	for _, m := range modes {
		ids, by = append(ids, m.ID), append(by, m.By)
	}
	assert.Equal(t, []string{"ask", "code", "default", "acceptEdits", "bypassPermissions"}, ids)
	assert.Equal(t, []string{"agent", "agent", "duet", "duet", "duet"}, by)
	assert.Equal(t, object(t, json.RawMessage(choosySession)), object(t, c.ask("agent.describe", `{"agent":"fake"}`))["agent_session"])
	listed := testkit.JSONAs[[]any](t, c.ask("listSessions", ""), "sessions")[0].(map[string]any)
	assert.Equal(t, []any{"ask", "small"}, []any{listed["agent_mode"], listed["model"]})
	assert.NotContains(t, listed, "agent_session", "lists omit it")
}

func TestSettingAnAgent(t *testing.T) {
	w := newWorld(t, choosy)
	answer := catalog.SetSessionResult{Status: catalog.SessionSet}
	var asked []catalog.SetSessionParams
	w.executors.set = func(p catalog.SetSessionParams) catalog.SetSessionResult {
		asked = append(asked, p)
		return answer
	}
	c := w.connect(frame.LSP)
	c.ask("Subscribe", `{"event_types":["agent_session"]}`)
	id := c.launch(`{"query":"q","model":"any","options":{"thought":"low"}}`)
	c.event("agent_session")
	set := func(rest string) string { return `{"session":"` + id + `",` + rest + `}` }

	done := c.ask("session.set", set(`"mode":"code","model":"big","options":{"thought":"high"}`))
	assert.True(t, testkit.JSONAs[bool](t, done, "live"))
	s := testkit.JSONAs[map[string]any](t, done, "turn")
	assert.Equal(t, []any{"code", "small", "big", map[string]any{"thought": "high"}}, []any{s["mode"], s["model"], s["requested_model"], s["requested_options"]},
		"a session shows the settings that the agent confirmed")
	assert.Contains(t, s, "agent_session")
	assert.Equal(t, []catalog.SetSessionParams{{SessionID: s["session_uuid"].(string), Mode: "code", Model: "big", Options: map[string]string{"thought": "high"}}}, asked)

	for _, test := range []struct {
		params, param string
		accepted      []any
	}{
		{`"mode":"yolo"`, "mode", []any{"ask", "code", "default", "acceptEdits", "bypassPermissions"}},
		{`"mode":""`, "mode", []any{"default", "acceptEdits", "bypassPermissions"}},
		{`"model":"gpt"`, "model", []any{"small", "big"}},
		{`"options":{"speed":"x"}`, "options", []any{"thought", "colour"}},
		{`"options":{"thought":"x"}`, "options.thought", []any{"low", "high"}},
	} {
		e := c.fail("session.set", set(test.params))
		assert.Equal(t, []any{-32602, test.param, test.accepted}, []any{e.Code, e.Data["param"], e.Data["accepted"]}, "%s: %s", test.params, e.Message)
	}
	c.rejects("launchSession", `{"query":"q","permission_mode":"yolo"}`, "permission_mode")
	e := c.fail("launchSession", `{"query":"q","model":"gpt"}`)
	assert.Equal(t, []any{-32602, []any{"small", "big"}}, []any{e.Code, e.Data["accepted"]})
	assert.Equal(t, -32602, c.fail("session.set", `{"session":""}`).Code)

	answer = catalog.SetSessionResult{Status: catalog.SessionRefused, Message: "not now"}
	e = c.fail("session.set", set(`"mode":"ask"`))
	assert.Equal(t, []any{-32051, "setting_refused", "not now"}, []any{e.Code, e.Data["kind"], e.Message})
	assert.Equal(t, "code", c.state(id)["permission_mode"])
	watching := w.connect(frame.LSP)
	watching.ask("event.subscribe", `{"kinds":["agent.error"]}`)
	assert.False(t, testkit.JSONAs[bool](t, c.ask("session.set", set(`"mode":"ask","wait":false`)), "live"))
	assert.Contains(t, string(eventIn(t, watching).Data), "SETTING_REFUSED")
	c.ask("turn.interrupt", `{"turn":"`+id+`"}`)
	w.ended(id)
	assert.False(t, testkit.JSONAs[bool](t, c.ask("session.set", set(`"mode":"acceptEdits"`)), "live"), "an ended session has no live agent")
	assert.Len(t, asked, 3)

	c = w.connect(frame.LSP)
	c.ask("event.subscribe", `{"kinds":["session.changed"]}`)
	changed := testkit.JSONAs[map[string]any](t, c.ask("session.set",
		set(`"auto_accept_edits":true,"skip_permissions":true,"skip_permissions_ms":60000,"additional_directories":["/more"]`)), "turn")
	assert.Equal(t, []any{true, true, []any{"/more"}}, []any{changed["auto_accept_edits"], changed["skip_permissions"], changed["additional_directories"]})
	assert.Contains(t, changed, "skip_permissions_until")
	told := object(t, eventIn(t, c).Data)
	assert.Equal(t, changed["skip_permissions_until"], told["skip_permissions_until"])
	assert.Equal(t, []any{"/more"}, told["additional_directories"])
	c.ask("session.set", set(`"skip_permissions":false`))
	assert.NotContains(t, testkit.JSONAs[map[string]any](t, c.ask("turn.get", `{"turn":"`+id+`"}`), "turn"), "skip_permissions_until")
}

// watchModes returns a channel that gets each report of an agent's mode, when it is stored.
func (w *world) watchModes() <-chan struct{} {
	watched := make(chan struct{}, 1)
	watch := w.hub.Events().Watch(func(e domain.Event, _ domain.TurnInSession) {
		if e.Payload.Kind() == domain.EventAgentMode {
			watched <- struct{}{}
		}
	})
	w.t.Cleanup(watch.Stop)
	return watched
}

// A session shows the agent's current mode, also after the agent has left the requested mode.
func TestTheModeInForce(t *testing.T) {
	mode := "default"
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventMode, catalog.Mode{Current: mode, Available: []string{"default", "plan", "auto"}})
		return done
	})
	c := w.connect(frame.LSP)
	watched := w.watchModes()
	id := c.launch(`{"query":"q","permission_mode":"plan"}`)
	<-watched
	w.ended(id)
	s := c.state(id)
	assert.Equal(t, []any{"default", "plan", "default"}, []any{s["permission_mode"], s["requested_mode"], s["agent_mode"]})
	c.ask("updateSessionSettings", `{"session_id":"`+id+`","permission_mode":"plan"}`)
	s = c.state(id)
	assert.Equal(t, "plan", s["permission_mode"], "a later request replaces the mode")

	mode = "auto"
	id = c.launch(`{"query":"q","permission_mode":"plan"}`)
	<-watched
	w.ended(id)
	s = c.state(id)
	assert.Equal(t, []any{"auto", "plan", "auto"}, []any{s["permission_mode"], s["requested_mode"], s["agent_mode"]}, "the agent has left plan mode for another one")
}

// What the agent reports after the user has changed the mode during a turn counts in this turn.
func TestTheModeInForceAfterAChangeInTheTurn(t *testing.T) {
	report := make(chan string)
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		for {
			select {
			case mode := <-report:
				x.report(catalog.EventMode, catalog.Mode{Current: mode, Available: []string{"default", "plan", "auto", "dontAsk"}})
			case <-ctx.Done():
				return done
			}
		}
	})
	c := w.connect(frame.LSP)
	watched := w.watchModes()
	id := c.launch(`{"query":"q","permission_mode":"auto"}`)
	for _, step := range []struct{ set, report, inForce, why string }{
		{"", "auto", "auto", ""},
		{"plan", "", "plan", "the user's choice"},
		{"", "auto", "plan", "a report that may be older than the choice"},
		{"", "plan", "plan", "the agent is in the chosen mode"},
		{"", "auto", "auto", "the agent has left the chosen mode"},
		{"auto", "", "auto", "the agent is in it"},
		{"", "dontAsk", "dontAsk", "the agent has left a mode in which it was when it was chosen"},
	} {
		if step.set != "" {
			c.ask("session.set", `{"session":"`+id+`","mode":"`+step.set+`"}`)
		} else {
			report <- step.report
			<-watched
		}
		assert.Equal(t, step.inForce, c.state(id)["permission_mode"], "%+v", step)
	}
	c.ask("interruptSession", `{"session_id":"`+id+`"}`)
	w.ended(id)
	assert.Equal(t, "dontAsk", c.state(id)["permission_mode"])
}

// event returns the data of the next event of a type.
func (c *client) event(kind string) json.RawMessage {
	c.t.Helper()
	for {
		m := c.next()
		var p struct {
			Event struct {
				Type string
				Data json.RawMessage
			}
		}
		if m.Method == "event" && json.Unmarshal(m.Params, &p) == nil && p.Event.Type == kind {
			return p.Event.Data
		}
	}
}
