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
		s.say(`{"jsonrpc":"2.0","id":"q","method":"session/prompt","params":{"sessionId":"` + conversation + `","prompt":[{"type":"text","text":"` + text + `"}]}}`)
		s.heard(`"user_message"`)
		s.update(running)
		s.heard(append(says, "agent_message")...)
		s.update(ended)
		s.heard(`"id":"q"`)
	}
	s.waiting = `{"queued":[]}`
	command("/queue", "No prompt waits in this session.")
	command("/queue 1 up", "No prompt 1 waits.")
	s.waiting = `{"queued":[{"session_id":"a","query":"first\nline","editable":true},{"session_id":"g","query":"a gate"},{"session_id":"b","query":"second","editable":true},{"session_id":"c","query":"third","editable":true}]}`
	command("/queue", `1. first\n2. a gate\n3. second\n4. third\n`, "/queue 2 drop")
	command("/queue 3 edit  other words", "1. first")
	assert.Equal(t, map[string]any{"session_id": "b", "query": "other words"}, <-s.queue)
	command("/queue 3 up", "1. first")
	assert.Equal(t, map[string]any{"session_id": "b", "before": "a"}, <-s.queue)
	command("/queue 1 down", "1. first")
	assert.Equal(t, map[string]any{"session_id": "a", "before": "c"}, <-s.queue)
	command("/queue 3 down", "1. first")
	assert.Equal(t, map[string]any{"session_id": "b"}, <-s.queue)
	for _, stays := range []string{"1 up", "4 down", "2 up", "2 down"} {
		command("/queue "+stays, "stays where it is")
	}
	command("/queue 4 drop", "Prompt 4 does not run.")
	assert.Equal(t, "c", <-s.interrupted)
	for _, wrong := range []string{"1", "1 edit", "1 drop it", "1 sideways"} {
		command("/queue "+wrong, "changes prompt 2")
	}
	// A number refers to the list that was shown.
	s.waiting = `{"queued":[{"session_id":"c","query":"third","editable":true}]}`
	command("/queue 1 drop", "No prompt 1 waits.", "1. third")
	assert.Empty(t, s.queue)
}
