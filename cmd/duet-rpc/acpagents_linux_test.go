package main_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The agent behind a session is another one after the first prompt, too: by the choice
// that the editor shows, and by the slash command. It receives the conversation so far.
func TestACPAnotherAgent(t *testing.T) {
	t.Parallel()
	s := withoutDaemons(t, newSite(t))
	s.agents("[agents.echo]\ndriver = \"command\"\ncommand = [\"echo\"]\n")
	c := s.editor(nil)
	session := c.begin(s.root)
	require.Equal(t, "end_turn", c.prompt(session, "quiet first"))
	turn := c.ask("session/prompt", promptOf(session, "Edit it"))
	question := c.awaitAsked(1)
	refused := c.result(c.ask("session/set_config_option", object{"sessionId": session, "configId": "agent", "value": "echo"}))
	require.Equal(t, "the session is running a turn; change its agent when the turn has ended", refused.Error.Message)
	c.choose(question, "reject_once")
	require.Nil(t, c.result(turn).Error)

	var set struct {
		ConfigOptions []struct {
			ID           string
			CurrentValue json.RawMessage
		}
	}
	c.call("session/set_config_option", object{"sessionId": session, "configId": "agent", "value": "echo"}, &set)
	require.Equal(t, "agent", set.ConfigOptions[0].ID)
	require.JSONEq(t, `"echo"`, string(set.ConfigOptions[0].CurrentValue))
	require.Equal(t, "end_turn", c.prompt(session, "and you"))
	const note = "[echo continues here; until now the agent was scripted.]\n"
	require.Contains(t, c.said("agent_thought_chunk"), note)
	require.Contains(t, c.said("agent_message_chunk"), "User: quiet first")

	require.Equal(t, "end_turn", c.prompt(session, "/agent scripted"))
	require.Contains(t, c.said("agent_message_chunk"), "The agent behind this session is scripted.")
	require.Equal(t, "end_turn", c.prompt(session, "quiet again"))
	require.Contains(t, c.said("agent_message_chunk"), "You asked: quiet again")
	require.Equal(t, "end_turn", c.prompt(session, "/agent nobody"))
	require.Contains(t, c.said("agent_message_chunk"), "The agent behind this session stays scripted: there is no agent nobody. There are:")

	// Who loads it elsewhere finds all of it in one conversation.
	other := s.editor(nil)
	other.load(session, s.root)
	for _, said := range []string{"quiet first", "and you", "quiet again"} {
		require.Contains(t, other.said("user_message_chunk"), said)
	}
	require.Equal(t, c.said("agent_thought_chunk"), other.said("agent_thought_chunk"))
	require.Contains(t, other.said("agent_thought_chunk"), note)
	other.quit()
	c.quit()
}

// What a session says when it is loaded is what was said while it went on: also what is no
// message of the agent's, such as a line that it has printed by mistake.
func TestACPLoadTellsWhatWasTold(t *testing.T) {
	t.Parallel()
	s := withoutDaemons(t, newSite(t))
	c := s.editor(allowing)
	session := c.begin(s.root)
	for _, word := range []string{"garbage", "badutf8", "unknown", "think", "fail", "crash"} {
		c.result(c.ask("session/prompt", promptOf(session, "quiet "+word)))
	}
	other := s.editor(nil)
	other.load(session, s.root)
	for _, kind := range []string{"agent_message_chunk", "agent_thought_chunk"} {
		require.Equal(t, c.said(kind), other.said(kind), kind)
	}
	require.NotContains(t, other.said("agent_message_chunk"), "this line is no JSON {]", "it is no part of the conversation")
	other.quit()
	c.quit()
}
