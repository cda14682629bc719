package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/procenv"
)

// A running is a process of a site.
type running struct {
	pid     int
	command string
}

// running lists the site's processes with their children.
func (s *site) running() (list []running) {
	want := "HOME=" + s.home
	for _, pid := range procenv.Find(func(variable string) bool { return variable == want }) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		list = append(list, running{pid, strings.ReplaceAll(string(bytes.TrimRight(command, "\x00")), "\x00", " ")})
	}
	return list
}

// processes describes the site's processes.
func (s *site) processes() (list []string) {
	for _, r := range s.running() {
		list = append(list, strconv.Itoa(r.pid)+" "+r.command)
	}
	return list
}

// find returns the only process whose command contains text.
func (s *site) find(t testing.TB, text string) running {
	t.Helper()
	var found []running
	for _, r := range s.running() {
		if strings.Contains(r.command, text) {
			found = append(found, r)
		}
	}
	require.Len(t, found, 1, "processes with %q of %v", text, s.processes())
	return found[0]
}

// readOnly makes a directory unwritable, also for root.
func readOnly(t testing.TB, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		require.NoError(t, os.Chmod(dir, 0o555))
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		return
	}
	err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "mode=0755,size=64k")
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("root may write everywhere and can mount nothing here")
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// requireInputRead waits until the program has read all input.
func (p *process) requireInputRead() {
	p.t.Helper()
	raw, err := p.stdin.SyscallConn()
	require.NoError(p.t, err)
	require.Eventually(p.t, func() bool {
		waiting := -1
		_ = raw.Control(func(fd uintptr) { waiting, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		return waiting == 0
	}, watchdog/3, time.Millisecond, "the program does not read")
}

// requireDescriptorsTaken requires that descriptor 1 has the target of descriptor 2, and that
// descriptor 0 is /dev/null.
func (p *process) requireDescriptorsTaken() {
	p.t.Helper()
	target := func(fd int) string {
		link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.cmd.Process.Pid, fd))
		require.NoError(p.t, err)
		return link
	}
	require.Equal(p.t, target(2), target(1))
	require.Equal(p.t, os.DevNull, target(0))
}

// kill sends SIGKILL, as the kernel does when memory runs out.
func kill(t testing.TB, r running) {
	t.Helper()
	require.NoError(t, syscall.Kill(r.pid, syscall.SIGKILL))
}

// A killed agent fails its run. The conversation continues with a new agent.
func TestAKilledAgent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, query string }{
		{"that speaks", "stream:1000000@200"},
		{"that waits for an answer", "permit:2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := newEditorSite(parallel(t))
			begun := c.launch(test.query, "")
			c.await("output of the agent or a question", func(e event) bool {
				return e.Data.SessionID == begun.SessionID && (e.Type == "message_delta" || e.Type == "new_approval")
			})
			if test.query == "permit:2" {
				c.awaitQuestion(begun.SessionID)
			}
			kill(t, s.find(t, "demo-agent"))
			end := c.endsAs(begun.SessionID, "failed", "AGENT_EXITED")
			assert.Contains(t, end.Data.Error, "SIGKILL")
			for id, question := range c.pending() { // the question outlives its agent
				assert.Equal(t, "permit:2", test.query)
				assert.True(t, question.Stale)
				c.call("sendDecision", object{"approval_id": id, "decision": "deny", "comment": "no"}, nil)
			}

			resumed := c.next(begun, "quiet")
			assert.Equal(t, begun.ThreadID, resumed.ThreadID)
			assert.Equal(t, "completed", c.approveAll(resumed.SessionID).Data.State)
			c.leave()
			s.requireNobody("after the end")
		})
	}
}

// A killed executor interrupts its runs and ends its agents. A new executor continues the
// conversation.
func TestAKilledExecutor(t *testing.T) {
	s, c := newEditorSite(parallel(t))
	begun, _ := c.asks("permit:2", "")
	agent := s.find(t, "demo-agent")
	kill(t, s.find(t, " executor"))
	end := c.endsAs(begun.SessionID, "interrupted", "EXECUTOR_GONE")
	assert.NotEmpty(t, end.Data.Error)
	require.Eventually(t, func() bool { return syscall.Kill(agent.pid, 0) != nil }, time.Minute, pollEvery, "the agent outlives its executor")

	resumed := c.next(begun, "continue")
	assert.Equal(t, "completed", c.approveAll(resumed.SessionID).Data.State)
	c.leave()
}

// A misbehaving agent ends its run in the right state, and the next run works.
func TestBadAgents(t *testing.T) {
	c := newSite(parallel(t), `
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
`).open()
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
			c.t = t
			begun := c.launch(test.query, test.agent)
			end := c.approveAll(begun.SessionID)
			assert.Equal(t, test.state, end.Data.State, "%s", end.Raw)
			assert.Equal(t, test.code, end.Data.ErrorCode, "%s", end.Raw)
			assert.Contains(t, end.Data.Error, test.says)
			if test.event != "" {
				c.await("an event "+test.event+" with "+test.with, func(e event) bool {
					return e.Data.SessionID == begun.SessionID && e.Type == test.event && strings.Contains(string(e.Raw), test.with)
				})
			}
			if test.query == "badutf8" {
				said := c.conversation(begun.SessionID)
				assert.Contains(t, said, "bytes", "the conversation has the readable part")
				assert.Contains(t, said, "\uFFFD", "a replacement character marks the rest")
			}
			c.requireCore()
			assert.Equal(t, "completed", c.awaitEnd(c.launch("quiet", "").SessionID).Data.State, "the next run")
		})
	}
	c.t = t
	status, issues := c.issues()
	assert.Equal(t, "ok", status, "%v", issues)
	c.leave()
}

// An interruption kills an agent that does not answer.
func TestAgentsThatHangAreKilled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, query, agent string
		ready              func(*client, launched)
	}{
		{"in mid-turn, and ignores signals", "hang", "", func(c *client, begun launched) {
			c.awaitText(begun)
		}},
		{"from the start", "hello", "mute", nil},
		{"from the start, and ignores signals", "hello", "deaf", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, c := newEditorSite(t, `
[agents.mute]
driver = "acp"
command = ["sleep", "600"]
[agents.deaf]
driver = "acp"
command = ["/bin/sh", "-c", "trap '' INT TERM; sleep 601 & while :; do sleep 0.1; done"]
`)
			begun := c.launch(test.query, test.agent)
			c.awaitState(begun.SessionID, "running")
			before := len(s.running()) // the program, the daemon and the executor, at least
			require.Eventually(t, func() bool { return len(s.running()) > 3 }, time.Minute, pollEvery, "no agent: %d processes", before)
			if test.ready != nil {
				test.ready(c, begun)
			}
			c.call("interruptSession", object{"session_id": begun.SessionID}, nil)
			end := c.awaitEnd(begun.SessionID)
			assert.Equal(t, "interrupted", end.Data.State, "%s", end.Raw)
			if !assert.Eventually(t, func() bool { return len(s.running()) <= 3 }, time.Minute, pollEvery, "a process of the agent is left") {
				t.Fatalf("%q", s.processes())
			}
			assert.Equal(t, "completed", c.awaitEnd(c.launch("quiet", "").SessionID).Data.State, "the next run")
			c.leave()
			s.requireNobody("after the end")
		})
	}
}

// Duet reports a silent agent after the user's silent_after.
func TestSilenceIsReportedWhenTheUserSaysSo(t *testing.T) {
	s := newSite(parallel(t))
	s.agents("silent_after = \"100ms\"\nsilent_tool_after = \"59m\"\n") // of the scripted agent
	c := s.open()
	l := c.launch("quiet hang", "")
	c.await("the report of the silent agent", func(e event) bool { return e.Type == "agent_silent" && e.Data.SessionID == l.SessionID })
	c.interrupt(l)
	c.leave()
}

// An agent that never answers fails after start_timeout, and the error contains its standard error.
func TestASilentAgentIsGivenUp(t *testing.T) {
	s, c := newEditorSite(parallel(t), `
[agents.mute]
driver = "acp"
command = ["/bin/sh", "-c", "echo waiting for a login >&2; exec sleep 600"]
start_timeout = "2s"
`)
	watch := startStopwatch(t)
	end := c.awaitEnd(c.launch("hello", "mute").SessionID)
	watch.assertWithin(t, 20*time.Second, "the limit is 2 s, not the default of 30 s")
	assert.Equal(t, "failed", end.Data.State)
	assert.Equal(t, "AGENT_TIMEOUT", end.Data.ErrorCode)
	assert.Contains(t, end.Data.Error, "waiting for a login")
	require.Eventually(t, func() bool { return len(s.running()) <= 3 }, time.Minute, pollEvery, "the agent still runs")
	c.leave()
}

// Forty runs leave no descriptors, threads or processes behind.
func TestRunsLeaveNothingOpen(t *testing.T) {
	s, c := newEditorSite(parallel(t))
	hub := hubOf(t, c)
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
	one := c.runs("quiet")
	before, threadsBefore := open(), threads()
	last := one
	for range 40 { // in one conversation, so that one executor serves them
		begun := c.next(last, "quiet tools:3")
		c.awaitEnd(begun.SessionID)
		last = begun
	}
	assert.Eventually(t, func() bool { return open() <= before+4 }, watchdog/3, pollEvery, "descriptors")
	assert.LessOrEqual(t, threads(), threadsBefore+16, "threads")
	require.Eventually(t, func() bool { return len(s.running()) == 4 }, time.Minute, pollEvery, "the program, the daemon, an executor and its agent: %v", s.processes())
	c.leave()
}

// An approval survives the death of its agent or executor: the agent does the approved thing, or
// Duet asks again.
func TestAnAnswerOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	require.NoError(t, err)
	for name, who := range map[string]string{"agent": binary, "executor": " executor"} {
		t.Run(name, func(t *testing.T) {
			s := newRecordedSite(parallel(t))
			c := s.start()
			c.t = t
			c.subscribe()
			again := 0
			for i, how := range []string{"plainly", "slowly"} {
				for j, delay := range killDelays {
					thing := fmt.Sprintf("thing-%d-%d", i, j)
					s.onlyOne(c)
					_, question := s.ask(c, how, thing)
					victim := s.find(t, who)
					s.approve(c, thing, question.Data.ApprovalID)
					time.Sleep(delay) // machine: any moment will do
					kill(t, victim)
					if s.requireCarriedOut(c, thing) {
						again++
					}
					c.quiet()
					s.requireTold(c, question.Data.ApprovalID)
				}
			}
			t.Logf("Duet asked %d of %d questions again", again, 2*len(killDelays))
			c.leave()
		})
	}
}

// onlyOne kills all executors and agents, so that the next run starts one of each.
func (s *recordedSite) onlyOne(c *client) {
	s.t.Helper()
	hub := hubOf(s.t, c)
	for _, r := range s.running() {
		if r.pid != c.cmd.Process.Pid && r.pid != hub {
			kill(s.t, r)
		}
	}
	require.Eventually(s.t, func() bool { return len(s.processes()) == 2 }, time.Minute, pollEvery)
}

// An agent that resumes with an approval and exits at once does not use it up: Duet asks again.
func TestAnAnswerOutlivesTheAgentThatIsResumedWithIt(t *testing.T) {
	s := newRecordedSite(parallel(t))
	leave := filepath.Join(s.home, leaveFile)
	c := s.open()
	_, question := s.ask(c, "plainly", "it")
	c.crash()
	require.NoError(t, os.WriteFile(leave, nil, 0o600))

	c = s.open()
	id := question.Data.ApprovalID
	for range 3 {
		s.approve(c, "it", id)
		var open shownApproval
		require.Eventually(t, func() bool {
			var there bool
			open, there = c.questionOf("it")
			return there && open.Reopens == id
		}, time.Minute, pollEvery, "Duet does not ask again")
		assert.Contains(t, open.Reopened, "approved before")
		assert.Zero(t, s.done("it"))
		id = open.ID
	}
	c.leave()

	require.NoError(t, os.Remove(leave))
	c = s.open()
	assert.Contains(t, c.pending(), id)
	s.requireCarriedOut(c, "it")
	assert.Equal(t, 1, s.done("it"))
	c.leave()
}
