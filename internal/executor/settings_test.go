//go:build unix

package executor_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// settingsReports returns the reports of a session's settings, in order.
func settingsReports(t *testing.T, h *hub) (list []catalog.Session) {
	t.Helper()
	for _, raw := range h.data(catalog.EventSession) {
		var s catalog.Session
		require.NoError(t, json.Unmarshal([]byte(raw), &s))
		list = append(list, s)
	}
	return list
}

// now returns the settings after all reports.
func now(t *testing.T, h *hub) (now catalog.Session) {
	t.Helper()
	for _, s := range settingsReports(t, h) {
		now.Agent, now.Mode, now.Model, now.Info = cmp.Or(s.Agent, now.Agent), cmp.Or(s.Mode, now.Mode), cmp.Or(s.Model, now.Model), cmp.Or(s.Info, now.Info)
		if s.Options != nil {
			now.Options = s.Options
		}
		if s.Commands != nil {
			now.Commands = s.Commands
		}
	}
	return now
}

func currentOptions(s catalog.Session) map[string]string {
	m := map[string]string{}
	for _, o := range s.Options {
		m[o.ID] = o.Current
	}
	return m
}

func TestSessionReports(t *testing.T) {
	h, x := hubAndExecutor(t)
	completes(t, x, prompt(t, "choosy", "turn"))
	got := now(t, h)
	assert.Equal(t, &domain.AgentInfo{Name: "choosy", Title: "Choosy", Version: "7"}, got.Agent)
	assert.Equal(t, &catalog.Selection{Current: "ask", Choices: []domain.Choice{
		{ID: "ask", Name: "Ask", Description: "Asks first", Extra: json.RawMessage(`{"_meta":{"of":"ask"}}`)},
		{ID: "code", Name: "Code", Description: "Edits", Extra: json.RawMessage(`{"_meta":{"of":"code"}}`)},
	}}, got.Mode)
	assert.Equal(t, &catalog.Selection{Current: "small", Choices: []domain.Choice{
		{ID: "small", Name: "SMALL", Group: "The house's"}, {ID: "big", Name: "BIG", Group: "The house's"}, {ID: "alias", Name: "ALIAS", Group: "Others"},
	}}, got.Model)
	require.Len(t, got.Options, 4)
	assert.Equal(t, catalog.Option{
		ID: "thought", Name: "Thinking", Category: "thought_level", Type: "select", Current: "low",
		Choices: []domain.Choice{{ID: "low", Name: "LOW"}, {ID: "high", Name: "HIGH"}},
	}, got.Options[1])
	assert.Equal(t, catalog.Option{ID: "fast", Name: "Fast", Type: "boolean", Current: "false", Choices: []domain.Choice{{ID: "true"}, {ID: "false"}}}, got.Options[2])
	assert.Equal(t, catalog.Option{ID: "colour", Name: "Colour", Type: "of-the-future", Extra: json.RawMessage(`{"currentValue":{"r":1},"palette":"x"}`)}, got.Options[3],
		"all of an unknown type is passed on")
	assert.Equal(t, []domain.AgentCommand{
		{Name: "review", Description: "Review it", InputHint: "what"}, {Name: "compact", Extra: json.RawMessage(`{"future":true}`)},
	}, got.Commands, "sent before the session was opened")
}

func TestAgentWithoutSettings(t *testing.T) {
	h, x := hubAndExecutor(t)
	execute(t, x, prompt(t, "plain", "turn"))
	all := settingsReports(t, h)
	require.Len(t, all, 1)
	assert.Empty(t, all[0].Agent)
	assert.Nil(t, all[0].Commands, "which may come later")
}

func TestSettingsAreConfirmedByTheAgent(t *testing.T) {
	for kind, want := range map[string][]string{
		"choosy":       {"[mode code]", "[llm alias]", "[thought high]", "[fast true]"},
		"choosy-mode":  {"[mode code]", "[llm alias]", "[thought high]", "[fast true]"},
		"choosy-older": {"[mode code]", "[model big]"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			h.context.ModelConfig = &catalog.ModelConfig{Model: "big"}
			if kind != "choosy-older" {
				h.context.ModelConfig.Model = "alias"
				h.context.Options = map[string]string{"fast": "true", "thought": "high"}
			}
			x := newExecutor(t, h, executor.Options{})
			p := prompt(t, kind, "turn")
			p.PermissionMode = "code"
			completes(t, x, p)
			for _, set := range want {
				assert.Contains(t, h.text(), set)
			}
			got := now(t, h)
			assert.Equal(t, "code", got.Mode.Current)
			assert.Equal(t, "big", got.Model.Current, "the model that the agent confirmed")
			if kind != "choosy-older" {
				assert.Equal(t, "high", currentOptions(got)["thought"])
				assert.Equal(t, "true", currentOptions(got)["fast"])
			}
			modes := h.data("mode")
			assert.Contains(t, modes[len(modes)-1], `{"current":"code","available":["ask","code"]`)

			p.TaskID = "task-2" // no setting changes again
			before := len(h.text())
			execute(t, x, p)
			if kind == "choosy-older" {
				assert.NotContains(t, h.text()[before:], "[")
			}
			assert.NotContains(t, h.text()[before:], "[mode")
		})
	}
}

func TestUnknownSettingFailsThePrompt(t *testing.T) {
	for name, test := range map[string]struct {
		kind, mode, model string
		options           map[string]string
		message           string
	}{
		"mode":              {"choosy", "yolo", "", nil, `there is no mode "yolo": the agent has ask, code; default, acceptEdits, bypassPermissions are Duet's own`},
		"plan":              {"choosy", "plan", "", nil, `there is no mode "plan": the agent has ask, code`},
		"no modes":          {"choosy-plain", "yolo", "", nil, `there is no mode "yolo": the agent has no modes of its own; Duet has default, acceptEdits, bypassPermissions, plan`},
		"model":             {"choosy", "", "gpt", nil, `there is no model "gpt": the agent has small, big, alias`},
		"model of an older": {"choosy-older", "", "gpt", nil, `there is no model "gpt": the agent has small, big`},
		"option":            {"choosy", "", "", map[string]string{"speed": "x"}, `there is no option "speed": the agent has llm, thought, fast, colour`},
		"value":             {"choosy", "", "", map[string]string{"thought": "x"}, `the option "thought" has no value "x": it has low, high`},
		"no options":        {"choosy-older", "", "", map[string]string{"thought": "x"}, `there is no option "thought": the agent has none`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub()
			h.context.Options = test.options
			if test.model != "" {
				h.context.ModelConfig = &catalog.ModelConfig{Model: test.model}
			}
			x := newExecutor(t, h, executor.Options{})
			p := prompt(t, test.kind, "turn")
			p.PermissionMode = test.mode
			result := execute(t, x, p)
			assert.Equal(t, catalog.StatusFailed, result.Status)
			require.NotNil(t, result.Error)
			assert.Equal(t, "SETTING_REFUSED", result.Error.Code)
			assert.Contains(t, result.Error.Message, test.message)
			assert.NotContains(t, h.text(), "turn", "the agent got no prompt")
			assert.NotEmpty(t, settingsReports(t, h), "the executor reports the agent's settings")
		})
	}
}

// The executor reports a model that the agent cannot apply, once for each model.
func TestIgnoredModelIsReported(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "plainest", "turn")
	for i, model := range []string{"big", "big", "bigger", ""} {
		h.context.ModelConfig = &catalog.ModelConfig{Model: model}
		p.TaskID = fmt.Sprint("task-", i)
		completes(t, x, p)
	}
	var said []string
	for _, e := range h.errors {
		assert.Equal(t, "SETTING_IGNORED", e.Error.Code)
		said = append(said, e.TaskID+": "+e.Error.Message)
	}
	assert.Equal(t, []string{
		`task-0: fake does not report its models, so it uses its own model instead of "big"`,
		`task-2: fake does not report its models, so it uses its own model instead of "bigger"`,
	}, said)
}

// A plain command has no settings.
func TestPlainCommandIgnoresSettings(t *testing.T) {
	h := newHub()
	h.context.ModelConfig = &catalog.ModelConfig{Model: "big"}
	h.context.Options = map[string]string{"fast": "true"}
	x := newExecutor(t, h, executor.Options{})
	p := command(t, "args", "now")
	completes(t, x, p)
	require.Equal(t, []string{"SETTING_IGNORED"}, h.codes())
	assert.Equal(t, `fake is a plain command, which is started as it is configured, without the model "big" and the option "fast"`, h.errors[0].Error.Message)
}

// No agent gets a mode that Duet itself implements.
func TestDuetModesAreNotSentToAgents(t *testing.T) {
	for _, mode := range []string{"", catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass} {
		h, x := hubAndExecutor(t)
		p := prompt(t, "choosy", "turn")
		p.PermissionMode = mode
		completes(t, x, p)
		assert.NotContains(t, h.text(), "[")
		assert.Equal(t, "ask", now(t, h).Mode.Current)
	}
}

// claude offers no bypassPermissions when it runs as root.
func TestDuetModeLeavesPlanMode(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "choosy-plan", "turn")
	p.PermissionMode = catalog.ModeBypass
	completes(t, x, p)
	assert.Equal(t, "default", now(t, h).Mode.Current)
}

// An agent's report of its mode that it sent before it accepted another mode is the older one.
func TestAcceptedModeIsNewerThanEarlierReport(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "choosy-auto", "turn")
	completes(t, x, p)
	modes := h.data("mode")
	assert.Contains(t, modes[len(modes)-1], `{"current":"default"`, "a later agent continues in this mode")
	assert.Equal(t, "default", now(t, h).Mode.Current)

	p.TaskID = "task-2"
	completes(t, x, p)
	assert.Equal(t, 1, strings.Count(h.text(), "[mode default]"), "the mode is in force")
}

// The agent reports that it begins in auto before Duet has set the mode that asks.
func TestNoWarningBeforeTheModeIsChosen(t *testing.T) {
	h, x := hubAndExecutor(t)
	p := prompt(t, "choosy-auto", "turn")
	completes(t, x, p)
	assert.Empty(t, h.codes())

	p.TaskID, p.PermissionMode = "task-2", "auto"
	completes(t, x, p)
	assert.Equal(t, []string{"RULES_NOT_ASKED"}, h.codes(), "the user has chosen it")

	p.TaskID = "task-3"
	completes(t, x, p)
	assert.Equal(t, []string{"RULES_NOT_ASKED", "RULES_NOT_ASKED"}, h.codes(), "it is said at each turn")
}

func TestAgentKeepsItsMode(t *testing.T) {
	h := newHub()
	h.context.AgentMode = "code"
	x := newExecutor(t, h, executor.Options{})
	p := prompt(t, "choosy", "turn")
	p.PermissionMode = "ask"
	execute(t, x, p)
	assert.Contains(t, h.text(), "[mode code]")

	h = newHub()
	h.context.AgentMode = "gone" // because its program is another version
	x = newExecutor(t, h, executor.Options{})
	completes(t, x, prompt(t, "choosy", "turn"))

	h = newHub()
	h.context.AgentMode, h.context.NativeSessionID = "code", "before"
	x = newExecutor(t, h, executor.Options{})
	completes(t, x, prompt(t, "choosy-resume", "turn"))
	assert.Contains(t, h.text(), "[mode code]", "a resumed session may report no modes")
}

func TestSettingsChangedByTheAgentAreReported(t *testing.T) {
	for _, kind := range []string{"choosy", "choosy-mode"} {
		h, x := hubAndExecutor(t)
		execute(t, x, prompt(t, kind, "switch"))
		got := now(t, h)
		assert.Equal(t, "code", got.Mode.Current)
		assert.Len(t, got.Mode.Choices, 2)
		assert.Equal(t, "big", got.Model.Current)
		assert.Equal(t, &domain.SessionInfo{Title: "A title"}, got.Info, "null removes a member, and an absent member stays")
		assert.Equal(t, `{"current":"code"}`, h.data("mode")[1])
		if kind == "choosy-mode" {
			assert.Equal(t, "code", currentOptions(got)["mode"], "the mode and its option agree")
		}
		raw := strings.Join(h.data(catalog.EventRaw), "\n")
		assert.Contains(t, raw, "session_info_update", "older clients read the raw updates")
		assert.Contains(t, raw, `"future":1`)
	}
}

func TestSettingsAreChangedWhileAPromptRuns(t *testing.T) {
	h, x := hubAndExecutor(t)
	ctx := context.Background()
	set := func(p catalog.SetSessionParams) catalog.SetSessionResult {
		p.SessionID = "session"
		return must(x.SetSession(ctx, p))(t)
	}
	assert.Equal(t, catalog.SessionIdle, set(catalog.SetSessionParams{Mode: "code"}).Status, "there is no agent")
	p := prompt(t, "choosy", "listen")
	p.SessionID = "session"
	done, listening := make(chan catalog.ExecutePromptResult, 1), make(chan struct{})
	h.onReport = func(r catalog.ReportMessageParams) {
		if strings.Contains(string(r.EventData), "listening") {
			close(listening)
		}
	}
	go func() { done <- execute(t, x, p) }()
	<-listening
	assert.Equal(t, catalog.SetSessionResult{Status: catalog.SessionSet}, set(catalog.SetSessionParams{Mode: "code", Model: "alias", Options: map[string]string{"fast": "true"}}))
	got := now(t, h)
	assert.Equal(t, "code", got.Mode.Current)
	assert.Equal(t, "big", got.Model.Current)
	assert.Equal(t, "true", currentOptions(got)["fast"])
	refused := set(catalog.SetSessionParams{Mode: "yolo"})
	assert.Equal(t, catalog.SessionRefused, refused.Status)
	assert.Contains(t, refused.Message, "the agent has ask, code")
	assert.Contains(t, set(catalog.SetSessionParams{Model: "gpt"}).Message, "the agent has small, big, alias")
	assert.Equal(t, catalog.SessionSet, set(catalog.SetSessionParams{Mode: catalog.ModeAcceptEdits}).Status, "this is a mode of Duet")
	must(x.StopTask(ctx, catalog.StopTaskParams{TaskID: p.TaskID}))(t)
	assert.Equal(t, catalog.StatusCancelled, (<-done).Status)
	assert.Equal(t, catalog.SessionIdle, set(catalog.SetSessionParams{Mode: "ask"}).Status, "the agent is idle")
}
