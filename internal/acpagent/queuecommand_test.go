package acpagent

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// /queue shows and changes the waiting prompts, by their numbers in the last shown list.
func TestQueueCommand(t *testing.T) {
	s := newIdleStage(t)
	command := func(text string, says ...string) {
		t.Helper()
		s.say(`{"jsonrpc":"2.0","id":"q","method":"session/prompt","params":{"sessionId":"` + sessionID + `","prompt":[{"type":"text","text":"` + text + `"}]}}`)
		s.heard(`"user_message"`)
		s.update(running)
		s.heard(append(says, "agent_message")...)
		s.update(ended)
		s.heard(`"id":"q"`)
	}
	s.waiting = `{"queued":[]}`
	command("/queue", "No prompt waits in this session.")
	command("/queue 1 up", "No prompt 1 waits.")
	s.waiting = `{"queued":[{"turn":"a","prompt":"first\nline","editable":true},{"turn":"g","prompt":"a gate"},{"turn":"b","prompt":"second","editable":true},{"turn":"c","prompt":"third","editable":true}]}`
	command("/queue", `1. first\n2. a gate\n3. second\n4. third\n`, "/queue 2 drop")
	command("/queue 3 edit  other words", "1. first")
	assert.Equal(t, map[string]any{"turn": "b", "prompt": "other words"}, <-s.queue)
	command("/queue 3 up", "1. first")
	assert.Equal(t, map[string]any{"turn": "b", "before": "a"}, <-s.queue)
	command("/queue 1 down", "1. first")
	assert.Equal(t, map[string]any{"turn": "a", "before": "c"}, <-s.queue)
	command("/queue 3 down", "1. first")
	assert.Equal(t, map[string]any{"turn": "b"}, <-s.queue)
	for _, stays := range []string{"1 up", "4 down", "2 up", "2 down"} {
		command("/queue "+stays, "stays where it is")
	}
	command("/queue 4 drop", "Prompt 4 does not run.")
	assert.Equal(t, "c", <-s.interrupted)
	for _, wrong := range []string{"1", "1 edit", "1 drop it", "1 sideways"} {
		command("/queue "+wrong, "changes prompt 2")
	}
	// A number refers to the list that was shown.
	s.waiting = `{"queued":[{"turn":"c","prompt":"third","editable":true}]}`
	command("/queue 1 drop", "No prompt 1 waits.", "1. third")
	assert.Empty(t, s.queue)
}
