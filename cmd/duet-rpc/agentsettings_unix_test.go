//go:build unix

package main_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An agent with modes and models of its own: what it does not have is an error that
// lists what it has, at its first start and, once it has reported, before it is started.
func TestAnAgentsOwnModesAndModels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := func(name, of string) object { return object{name: of, "name": of} }
	s.played(
		playedStep{Opened: object{
			"modes":  object{"currentModeId": "ask", "availableModes": []any{id("id", "ask"), id("id", "code")}},
			"models": object{"currentModelId": "m-large", "availableModels": []any{id("modelId", "m-large"), id("modelId", "m-small")}},
		}},
		playedStep{Update: object{"sessionUpdate": "available_commands_update", "availableCommands": []any{
			object{"name": "review", "description": "Review it", "input": object{"hint": "what"}},
		}}},
		playedStep{Say: "done"},
	)
	_, err := s.command("prompt", "--agent", "played", "--model", "gpt", "go")
	require.Error(t, err)
	assert.Contains(t, err.Error(), `played: there is no model "gpt": the agent has m-large, m-small`)
	assert.Contains(t, err.Error(), "SETTING_REFUSED")

	for flag, says := range map[string]string{
		"--model=gpt": `model: expected a model of the agent played, received "gpt"; choose one of m-large, m-small`,
		"--mode=yolo": `expected a mode of the agent played, or one of Duet's own, received "yolo"; choose one of ask, code, default, acceptEdits, bypassPermissions`,
		"--mode=plan": `received "plan"; choose one of ask, code`,
	} {
		_, err := s.command("prompt", "--agent", "played", flag, "go")
		require.Error(t, err)
		assert.Contains(t, err.Error(), says)
	}
	said, err := s.command("prompt", "--agent", "played", "--mode", "code", "--model", "m-small", "go")
	require.NoError(t, err)
	assert.Equal(t, "done\n", said)

	s.daemon()
	shown, err := s.command("session", "show", "task-0002")
	require.NoError(t, err)
	for _, line := range []string{
		`(?m)^mode +code$`, `(?m)^modes +ask, code, default, acceptEdits, bypassPermissions$`, `(?m)^model +m-small$`, `(?m)^models +m-large, m-small$`, `(?m)^commands +/review$`,
	} {
		assert.Regexp(t, line, shown, "after a restart, too")
	}
	listed, err := s.command("session", "commands", "task-0002")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^/review +what +Review it$`, listed)

	_, err = s.command("prompt", "--continue", "task-0002", "again")
	require.NoError(t, err)
	shown, err = s.command("session", "show", "task-0003")
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^mode +code$`, shown, "it goes on where it was")
	_, err = s.command("daemon", "stop")
	require.NoError(t, err)
}
