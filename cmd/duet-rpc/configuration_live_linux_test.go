package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// followedWithin is how soon a running hub follows a change by itself.
const followedWithin = 2 * time.Second

// none are the processes there whose command has a text in it.
func (s *site) requireNone(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return !strings.Contains(strings.Join(s.processes(), "\n"), text) }, watchdog/3, pollEvery, "%s is still there", text)
}

// What stood on a trust that is taken back ends, in an editor's hub as in a
// daemon.
func TestARevocationIsFollowed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"an editor's hub", "a daemon"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.clearDaemons()
			agent := filepath.Join(s.home, "theirs")
			binary, err := fastProgram()
			require.NoError(t, err)
			require.NoError(t, os.Symlink(binary, agent))
			written(fmt.Sprintf("default_agent = \"theirs\"\n[agents.theirs]\ncommand = [%q, \"demo-agent\"]\n[[rules]]\neffect = \"allow\"\ntool = \"*\"\n", agent))(t, filepath.Join(s.root, ".duet.toml"))
			if kind == "a daemon" {
				s.daemon()
			}
			c := s.start()
			c.subscribe()
			_, err = s.command("trust", "--yes") // which counts at once, too
			require.NoError(t, err)
			require.Equal(t, "completed", c.awaitEnd(c.launch("quiet", "theirs").SessionID).Data.State) // and stays, idle
			free := c.launch("permit:1 quiet", "scripted")
			require.Equal(t, "completed", c.awaitEnd(free.SessionID).Data.State, "the file allows it")
			var works struct {
				Agent     string
				SessionID string `json:"session_id"`
			}
			c.call("launchSession", object{"query": "quiet stream:100000@50"}, &works)
			require.Equal(t, "theirs", works.Agent)
			c.awaitState(works.SessionID, "running")
			mine := c.launch("quiet stream:100000@50", "scripted")
			c.awaitState(mine.SessionID, "running")

			_, err = s.command("trust", "--revoke")
			require.NoError(t, err)
			watch := startStopwatch(t)
			end := c.awaitEnd(works.SessionID)
			watch.assertWithin(t, followedWithin)
			assert.Equal(t, []string{"interrupted", "TRUST_REVOKED"}, []string{end.Data.State, end.Data.ErrorCode})
			assert.Contains(t, end.Data.Error, "duet-rpc trust")
			s.requireNone(agent)
			assert.Equal(t, "running", c.session(mine.SessionID).State, "who did not stand on it goes on")

			asks := c.launch("permit:1 quiet", "scripted")
			question := c.awaitQuestion(asks.SessionID)
			c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
			require.Equal(t, "completed", c.awaitEnd(asks.SessionID).Data.State)
			assert.Equal(t, "not_trusted", c.refused("continueSession", object{"session_id": works.SessionID, "query": "go on"}).kind())
			assert.Equal(t, "not_trusted", c.refused("launchSession", object{"query": "quiet", "agent": "theirs"}).kind())
			c.call("launchSession", object{"query": "quiet"}, &works)
			assert.Equal(t, "scripted", works.Agent, "nor does the file choose any more")
			c.call("interruptSession", object{"session_id": mine.SessionID}, nil)
			require.Equal(t, "interrupted", c.awaitEnd(mine.SessionID).Data.State)

			// Trusted again, it goes on where it was.
			_, err = s.command("trust", "--yes")
			require.NoError(t, err)
			var first launched
			c.call("launchSession", object{"query": "quiet"}, &first)
			require.Equal(t, "completed", c.awaitEnd(first.SessionID).Data.State)
			c.leave()
			if kind == "a daemon" {
				_, err = s.command("daemon", "stop", "--force")
				require.NoError(t, err)
			}
		})
	}
}

// Rules and keys count as they are now: for the next question and the next agent
// at once, for what is open a moment later.
func TestRulesAndKeysAreThoseOfNow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const shows = "[agents.shows]\ndriver = \"command\"\ncommand = [\"sh\", \"-c\", \"test \\\"$KEY\\\" = two && echo it is two || echo it is another\"]\nkeys = { KEY = \"service\" }\n"
	key := func(value string) string {
		return fmt.Sprintf("[keys.service]\ncommand = [\"echo\", %q]\n", value)
	}
	s.agents(shows + key("one"))
	c := s.start()
	c.subscribe()
	reported := func() string {
		t.Helper()
		said, err := s.command("prompt", "--agent", "shows", "tell")
		require.NoError(t, err)
		return strings.TrimSpace(said)
	}
	require.Equal(t, "it is another", reported())
	open := c.launch("permit:1 quiet", "")
	question := c.awaitQuestion(open.SessionID)

	s.agents(shows + key("two") + "[[rules]]\neffect = \"deny\"\ntool = \"*\"\n")
	watch := startStopwatch(t)
	resolved := c.await("the answer", func(e event) bool {
		return e.Type == "approval_resolved" && e.Data.ApprovalID == question.Data.ApprovalID
	})
	watch.assertWithin(t, followedWithin)
	assert.Equal(t, "denied", resolved.Data.Decision)
	assert.Contains(t, string(resolved.Raw), "rule=user")
	c.awaitEnd(open.SessionID)
	denied := c.launch("permit:1 quiet", "")
	c.awaitEnd(denied.SessionID)
	assert.Empty(t, c.pending(), "no question is asked")
	assert.Equal(t, "it is two", reported())

	// A rule that has gone is asked about again, also one that was made here.
	s.agents(shows + key("two"))
	asks := c.launch("permit:1 quiet", "")
	question = c.awaitQuestion(asks.SessionID)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "scope": "project"}, nil)
	require.Equal(t, "completed", c.awaitEnd(asks.SessionID).Data.State)
	passes := c.launch("permit:1 quiet", "")
	require.Equal(t, "completed", c.awaitEnd(passes.SessionID).Data.State, "it was decided for good")
	var made struct {
		Rules []struct {
			ID int64 `json:"rule_id"`
		}
	}
	c.call("getRules", object{}, &made)
	require.Len(t, made.Rules, 1)
	_, err := s.command("approvals", "forget", fmt.Sprint(made.Rules[0].ID))
	require.NoError(t, err)
	again := c.launch("permit:1 quiet", "")
	c.awaitQuestion(again.SessionID)
	c.call("interruptSession", object{"session_id": again.SessionID}, nil)
	c.awaitEnd(again.SessionID)

	// While a file cannot be read nothing starts, and the hub stays.
	s.agents("wrong = 1\n")
	require.ErrorContains(t, c.try("launchSession", object{"query": "quiet"}, nil), "unknown key")
	c.requireCore()
	s.agents("")
	require.Equal(t, "completed", c.awaitEnd(c.launch("quiet", "").SessionID).Data.State)
	c.leave()
}
