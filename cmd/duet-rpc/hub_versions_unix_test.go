//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an agent does looks the same to people in both versions of the protocol.
func TestBothVersionsOfTheProtocol(t *testing.T) {
	t.Parallel()
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			agent, err := fastProgram()
			require.NoError(t, err)
			sent := filepath.Join(s.home, "sent")
			s.agents(fmt.Sprintf("[agents.recorded]\ndriver = \"acp\"\nenv = { DUET_DEMO_DELAY = \"0\", DUET_DEMO_STATE = %q }\ncommand = [\"sh\", \"-c\", %q]\n",
				filepath.Join(s.home, "recorded"), fmt.Sprintf("'%s' demo-agent --protocol %d | tee '%s'", agent, version, sent)))
			c := s.start()
			c.subscribe()
			l := c.launch("terminal", "recorded")
			c.completes(l)
			assert.Contains(t, c.conversation(l.SessionID), "The command is done. ")
			assert.Contains(t, c.toolResults(l.SessionID), "total ", "what ls has printed")
			assert.Contains(t, printedIn(c.seen()), "total ")

			l = c.next(l, "ask")
			question := c.awaitQuestion(l.SessionID)
			assert.Contains(t, string(question.Raw), "Which colour do you like?")
			c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "respond", "comment": "green"}, nil)
			c.completes(l)
			assert.Contains(t, c.conversation(l.SessionID), "You answered: green. ")

			l = c.next(l, "permit:1")
			question = c.awaitQuestion(l.SessionID)
			var reported struct{ Delivered string }
			c.call("continueSession", object{"session_id": l.SessionID, "query": "use the other file", "deliver": "steer"}, &reported)
			assert.Equal(t, "injected", reported.Delivered)
			c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
			c.completes(l)
			assert.Contains(t, c.conversation(l.SessionID), "You said meanwhile: use the other file ")

			l = c.next(l, "background")
			own := c.awaitOwnTurn(1)
			assert.Equal(t, "completed", c.approveAll(own).Data.State)
			assert.Contains(t, c.conversation(own), "The background task has finished. I wrote demo.txt. ")
			assert.FileExists(t, filepath.Join(s.root, "demo.txt"))
			assert.Contains(t, c.toolResults(l.SessionID), "The background task is over.")

			l = c.next(l, "late:100")
			c.completes(l)
			own = c.awaitOwnTurn(2)
			assert.Equal(t, "completed", c.awaitEnd(own).Data.State)
			assert.Contains(t, c.conversation(own), "chunk 99 chunk 100 ")

			l = c.next(l, "goal")
			c.interruptOwnTurn(4, l)
			l = c.next(l, "quiet")
			c.completes(l)

			wire, err := os.ReadFile(sent)
			require.NoError(t, err)
			assert.Equal(t, 1, strings.Count(string(wire), fmt.Sprintf(`"protocolVersion":%d`, version)))
			assert.Equal(t, version == 2, strings.Contains(string(wire), `"state_update"`))
			c.leave()
		})
	}
}

// toolResults is what the tools of a session have returned.
func (c *client) toolResults(session string) (all string) {
	c.t.Helper()
	for _, e := range c.items(session) {
		all += e.Result
	}
	return all
}
