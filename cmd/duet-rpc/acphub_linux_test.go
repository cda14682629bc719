package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orphaned requires that a prompt has ended since the process that ran it has died.
func orphaned(t *testing.T, r reply) {
	t.Helper()
	require.NotNil(t, r.Error, "%s", r.Result)
	require.Contains(t, r.Error.Message, "the process that ran this has died")
	require.Contains(t, string(r.Error.Data), "ORPHANED")
}

// A hub that is killed while a turn of the editor runs: the prompt ends with that, and the
// session goes on with another hub. Nothing is shown twice.
func TestACPHubIsKilledInATurn(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	id := c.ask("session/prompt", promptOf(session, "quiet stream:100000@50"))
	c.until("text", func() bool { return strings.Contains(c.saidLocked("agent_message_chunk"), "chunk 3 ") })
	s.crashHub()
	orphaned(t, c.result(id))
	requireChunksInOrder(t, c.said("agent_message_chunk"))
	require.Equal(t, "end_turn", c.prompt(session, "quiet and on"))
	require.Equal(t, 1, strings.Count(c.said("agent_message_chunk"), "You asked: quiet and on"))
	require.Empty(t, c.said("user_message_chunk"))
	c.quit()
}

// requireChunksInOrder requires that what a stream of the demo agent says is there once, in order.
func requireChunksInOrder(t *testing.T, said string) {
	t.Helper()
	for i, found := range regexp.MustCompile(`chunk (\d+) `).FindAllStringSubmatch(said, -1) {
		require.Equal(t, strconv.Itoa(i+1), found[1], said)
	}
}

// A hub that is killed while a question is open: the prompt ends, and says that the question
// still counts; it is asked again in each editor, once, and its answer has the agent go on.
func TestACPHubIsKilledWithAQuestionOpen(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	other := s.editor(nil)
	id := c.ask("session/prompt", promptOf(session, "Edit it"))
	question := c.awaitAsked(1)
	other.load(session, s.root)
	seen := other.awaitAsked(1)
	s.crashHub()
	r := c.result(id)
	orphaned(t, r)
	require.Contains(t, r.Error.Message, "its question is still open")
	again, seenAgain := c.awaitAsked(2), other.awaitAsked(2)
	c.choose(again, "allow_once")
	for _, e := range []*acpClient{c, other} {
		e.until("the rest", func() bool { return strings.Contains(e.saidLocked("agent_message_chunk"), "That is all.") })
	}
	c.requireTakenBack(question)
	other.requireTakenBack(seen, seenAgain)
	require.Equal(t, "end_turn", c.prompt(session, "quiet and on"))
	for _, e := range []*acpClient{c, other} {
		e.mu.Lock()
		require.Len(t, e.asked, 2, "it is asked again once")
		e.mu.Unlock()
		e.quit()
	}
}

// requireTakenBack requires that those questions, and no others, are taken back.
func (c *acpClient) requireTakenBack(questions ...acpMessage) {
	c.t.Helper()
	c.until("questions to be taken back", func() bool { return len(c.reported) >= len(questions) })
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Len(c.t, c.reported, len(questions))
	for i, q := range questions {
		require.Equal(c.t, "$/cancel_request", c.reported[i].Method)
		require.JSONEq(c.t, fmt.Sprintf(`{"requestId":%s}`, q.ID), string(c.reported[i].Params))
	}
}

// After a kill of a hub that no request waits for, the editor's next request works.
func TestACPHubIsKilledIdle(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	s.crashHub() // before the session is in the hub
	require.Equal(t, "end_turn", c.prompt(session, "quiet"))
	for _, next := range []func(){
		func() { c.call("session/set_mode", object{"sessionId": session, "modeId": "plan"}, nil) },
		func() { c.load(session, s.root) },
		func() { c.begin(s.root) },
		func() { c.call("session/list", object{}, nil) },
		func() { require.Equal(t, "end_turn", c.prompt(session, "quiet")) },
	} {
		s.crashHub()
		next()
		require.Equal(t, "end_turn", c.prompt(session, "quiet"))
	}
	c.quit()
}

// Whenever the hub is killed, a prompt is in the conversation once, ends once, and is none
// of the messages that are shown to who wrote it.
func TestACPHubIsKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	s, c, session := newACPSession(t)
	require.Equal(t, "end_turn", c.prompt(session, "quiet"))
	rounds := 3 // each with another moment
	if soak {
		rounds = 12
	}
	var ends []string
	for i := range rounds {
		if i%3 == 2 { // it has read nothing of what it is asked
			suspend(t, s.lockHolder())
		}
		id := c.ask("session/prompt", promptOf(session, fmt.Sprintf("quiet round-%d-", i)))
		<-time.After(time.Duration(i) * 3 * time.Millisecond) // machine: any moment will do
		s.crashHub()
		r := c.result(id)
		end := string(r.Result)
		if r.Error != nil {
			orphaned(t, r)
			end = "orphaned"
		}
		ends = append(ends, end)
		c.call("session/list", object{}, nil)
	}
	t.Log(ends)
	require.Equal(t, "end_turn", c.prompt(session, "quiet at last"))
	var conversation struct {
		Events []struct {
			Role    string
			Content string
		}
	}
	var raw json.RawMessage
	s.lines().call("getConversation", object{"session_id": session}, &raw)
	require.NoError(t, json.Unmarshal(raw, &conversation))
	for i := range rounds {
		times := 0
		for _, e := range conversation.Events {
			if e.Role == "user" && strings.Contains(e.Content, fmt.Sprintf("round-%d-", i)) {
				times++
			}
		}
		assert.Equal(t, 1, times, "round %d", i)
	}
	assert.Empty(t, c.said("user_message_chunk"))
	c.quit()
}
