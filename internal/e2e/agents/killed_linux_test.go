package agents

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// The death of an agent fails its turn. The session continues with a new agent.
func TestAKilledAgent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, query string }{
		{"that speaks", "stream:1000000@200"},
		{"that waits for an answer", "permit:2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := e2e.NewEditorSite(e2e.Parallel(t))
			begun := c.Launch(test.query, "")
			c.Await("output of the agent or a question", func(e e2e.Event) bool {
				return e.Data.SessionID == begun.SessionID && (e.Type == "message_delta" || e.Type == "new_approval")
			})
			if test.query == "permit:2" {
				c.AwaitQuestion(begun.SessionID)
			}
			e2e.Kill(t, s.Find(t, "demo-agent"))
			end := c.EndsAs(begun.SessionID, "failed", "AGENT_EXITED")
			assert.Contains(t, end.Data.Error, "SIGKILL")
			for id, question := range c.Pending() { // the question outlives its agent
				assert.Equal(t, "permit:2", test.query)
				assert.True(t, question.Stale)
				c.Call("sendDecision", object{"approval_id": id, "decision": "deny", "comment": "no"}, nil)
			}

			resumed := c.Next(begun, "quiet")
			assert.Equal(t, begun.ThreadID, resumed.ThreadID)
			assert.Equal(t, "completed", c.ApproveAll(resumed.SessionID).Data.State)
			c.Leave()
			s.RequireNobody("after the end")
		})
	}
}

// The death of an executor interrupts its turns and ends its agents. A new executor continues the
// session.
func TestAKilledExecutor(t *testing.T) {
	s, c := e2e.NewEditorSite(e2e.Parallel(t))
	begun, _ := c.Asks("permit:2", "")
	agent := s.Find(t, "demo-agent")
	e2e.Kill(t, s.Find(t, " executor"))
	end := c.EndsAs(begun.SessionID, "interrupted", "EXECUTOR_GONE")
	assert.NotEmpty(t, end.Data.Error)
	require.Eventually(t, func() bool { return syscall.Kill(agent.PID, 0) != nil }, time.Minute, e2e.PollEvery, "the agent outlives its executor")

	resumed := c.Next(begun, "continue")
	assert.Equal(t, "completed", c.ApproveAll(resumed.SessionID).Data.State)
	c.Leave()
}

// A misbehaving agent ends its turn in the right state, and the next turn works.
func TestBadAgents(t *testing.T) {
	c := e2e.NewSite(e2e.Parallel(t), `
[agents.missing]
driver = "acp"
command = ["/nonexistent/agent"]
[agents.brief]
driver = "acp"
command = ["/bin/sh", "-c", "echo I cannot work here >&2; exit 7"]
[agents.chatty]
driver = "acp"
command = ["/bin/sh", "-c", "while echo hello; do :; done | head -c 100000; sleep 0.1"]
[agents.broken]
driver = "command"
command = ["/bin/sh", "-c", "echo partly; exit 3", "sh"]
`).Open()
	for _, test := range []struct {
		name, query, agent string
		state, code, says  string // of the end
		event, with        string // an event that reports the fault: its type, and the code or a text in it
	}{
		{name: "garbage", query: "garbage", state: "completed", event: "task_error", with: "AGENT_GARBAGE"},
		{name: "invalid UTF-8", query: "badutf8", state: "completed"},
		{name: "an unknown update", query: "unknown", state: "completed", event: "agent_update", with: "duet_demo_unknown"},
		{name: "a line of 100 MB", query: "longline:100", state: "completed", event: "task_error", with: "AGENT_LINE_TOO_LONG"},
		{name: "a crash", query: "crash", state: "failed", code: "AGENT_EXITED", says: "status 3"},
		{name: "an error", query: "fail", state: "failed", code: "AGENT_ERROR", says: "asked to fail"},
		{name: "a refusal", query: "quiet refuse", state: "completed"},
		{name: "no program", query: "hello", agent: "missing", state: "failed", code: "AGENT_NOT_FOUND", says: "/nonexistent/agent"},
		{name: "one that exits at once", query: "hello", agent: "brief", state: "failed", code: "AGENT_EXITED", says: "I cannot work here"},
		{name: "one that speaks no protocol", query: "hello", agent: "chatty", state: "failed", code: "AGENT_EXITED", event: "task_error", with: "AGENT_GARBAGE"},
		{name: "a command that fails", query: "hello", agent: "broken", state: "failed", code: "AGENT_EXITED", says: "status 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.T = t
			begun := c.Launch(test.query, test.agent)
			end := c.ApproveAll(begun.SessionID)
			assert.Equal(t, test.state, end.Data.State, "%s", end.Raw)
			assert.Equal(t, test.code, end.Data.ErrorCode, "%s", end.Raw)
			assert.Contains(t, end.Data.Error, test.says)
			if test.event != "" {
				c.Await("an event "+test.event+" with "+test.with, func(e e2e.Event) bool {
					return e.Data.SessionID == begun.SessionID && e.Type == test.event && strings.Contains(string(e.Raw), test.with)
				})
			}
			if test.query == "badutf8" {
				said := c.Said(begun.SessionID)
				assert.Contains(t, said, "bytes", "the transcript has the readable part")
				assert.Contains(t, said, "\uFFFD", "a replacement character marks the rest")
			}
			c.RequireCore()
			assert.Equal(t, "completed", c.AwaitEnd(c.Launch("quiet", "").SessionID).Data.State, "the next turn")
		})
	}
	c.T = t
	status, issues := c.Issues()
	assert.Equal(t, "ok", status, "%v", issues)
	c.Leave()
}

// An interruption kills an agent that does not answer.
func TestAgentsThatHangAreKilled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, query, agent string
		ready              func(*e2e.Client, e2e.Launched)
	}{
		{"in mid-turn, and ignores signals", "hang", "", func(c *e2e.Client, begun e2e.Launched) {
			c.AwaitText(begun)
		}},
		{"from the start", "hello", "mute", nil},
		{"from the start, and ignores signals", "hello", "deaf", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := e2e.NewEditorSite(t, `
[agents.mute]
driver = "acp"
command = ["sleep", "600"]
[agents.deaf]
driver = "acp"
command = ["/bin/sh", "-c", "trap '' INT TERM; sleep 601 & while :; do sleep 0.1; done"]
`)
			begun := c.Launch(test.query, test.agent)
			c.AwaitState(begun.SessionID, "running")
			before := len(s.Running()) // the program, the daemon and the executor, at least
			require.Eventually(t, func() bool { return len(s.Running()) > 3 }, time.Minute, e2e.PollEvery, "no agent: %d processes", before)
			if test.ready != nil {
				test.ready(c, begun)
			}
			c.Call("interruptSession", object{"session_id": begun.SessionID}, nil)
			end := c.AwaitEnd(begun.SessionID)
			assert.Equal(t, "interrupted", end.Data.State, "%s", end.Raw)
			if !assert.Eventually(t, func() bool { return len(s.Running()) <= 3 }, time.Minute, e2e.PollEvery, "a process of the agent is left") {
				t.Fatalf("%q", s.Processes())
			}
			assert.Equal(t, "completed", c.AwaitEnd(c.Launch("quiet", "").SessionID).Data.State, "the next turn")
			c.Leave()
			s.RequireNobody("after the end")
		})
	}
}

// Duet reports a silent agent after the user's silent_after.
func TestSilenceIsReportedWhenTheUserSaysSo(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Agents("silent_after = \"100ms\"\nsilent_tool_after = \"59m\"\n") // of the scripted agent
	c := s.Open()
	l := c.Launch("quiet hang", "")
	c.Await("the report of the silent agent", func(e e2e.Event) bool { return e.Type == "agent_silent" && e.Data.SessionID == l.SessionID })
	c.Interrupt(l)
	c.Leave()
}

// An agent that never answers fails after start_timeout, and the error contains its standard error.
func TestASilentAgentIsGivenUp(t *testing.T) {
	s, c := e2e.NewEditorSite(e2e.Parallel(t), `
[agents.mute]
driver = "acp"
command = ["/bin/sh", "-c", "echo waiting for a login >&2; exec sleep 600"]
start_timeout = "2s"
`)
	watch := e2e.StartStopwatch(t)
	end := c.AwaitEnd(c.Launch("hello", "mute").SessionID)
	watch.AssertWithin(t, 20*time.Second, "the limit is 2 s, not the default of 30 s")
	assert.Equal(t, "failed", end.Data.State)
	assert.Equal(t, "AGENT_TIMEOUT", end.Data.ErrorCode)
	assert.Contains(t, end.Data.Error, "waiting for a login")
	require.Eventually(t, func() bool { return len(s.Running()) <= 3 }, time.Minute, e2e.PollEvery, "the agent still runs")
	c.Leave()
}

// Forty turns leave no descriptors, threads or processes behind.
func TestTurnsLeaveNothingOpen(t *testing.T) {
	s, c := e2e.NewEditorSite(e2e.Parallel(t))
	hub := e2e.HubOf(t, c)
	open := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", hub))
		require.NoError(t, err)
		return len(entries)
	}
	threads := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", hub))
		require.NoError(t, err)
		return len(entries)
	}
	one := c.Runs("quiet")
	before, threadsBefore := open(), threads()
	last := one
	for range 40 { // in one session, so that one executor serves them
		begun := c.Next(last, "quiet tools:3")
		c.AwaitEnd(begun.SessionID)
		last = begun
	}
	assert.Eventually(t, func() bool { return open() <= before+4 }, e2e.Watchdog/3, e2e.PollEvery, "descriptors")
	assert.LessOrEqual(t, threads(), threadsBefore+16, "threads")
	require.Eventually(t, func() bool { return len(s.Running()) == 4 }, time.Minute, e2e.PollEvery, "the program, the daemon, an executor and its agent: %v", s.Processes())
	c.Leave()
}
