package clients

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// The tests cannot fetch the clients of AIWG and HumanLayer: AIWG's package is in no registry, and
// HumanLayer's modules have no version. So the tests send the recorded bytes of these clients, and
// check the members that the clients read.

// An exchange is a line from a client and the members of the response that the client reads. Each
// member has the beginning of its JSON.
type exchange struct {
	line  string
	reads map[string]string
}

// requireExchange sends a line and requires the members that the client reads.
func requireExchange(t testing.TB, c *e2e.LineClient, x exchange) (result json.RawMessage) {
	t.Helper()
	var request struct{ ID json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(x.line), &request))
	c.Say(x.line)
	m, err := c.Reply(string(request.ID))
	require.NoError(t, err)
	require.Nil(t, m.Error, x.line)
	answer := m.Result
	for path, begins := range x.reads {
		value := answer
		for name := range strings.SplitSeq(path, ".") {
			if i, err := strconv.Atoi(name); err == nil {
				var list []json.RawMessage
				require.NoError(t, json.Unmarshal(value, &list), "%s in %s", path, answer)
				require.Greater(t, len(list), i, "%s in %s", path, answer)
				value = list[i]
				continue
			}
			var object map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(value, &object), "%s in %s", path, answer)
			require.Contains(t, object, name, "%s in %s", path, answer)
			value = object[name]
		}
		assert.True(t, strings.HasPrefix(string(value), begins), "%s is %s, and not %s…", path, value, begins)
	}
	return answer
}

// aiwgPlace returns the paths where AIWG's command line looks for a daemon.
func aiwgPlace(s *e2e.Site) (socket, pidFile string) {
	return filepath.Join(s.Root, ".aiwg", "daemon", "daemon.sock"), filepath.Join(s.Root, ".aiwg", "daemon.pid")
}

// requireAIWGFinds requires that the pid file and the socket of AIWG's command line lead to a
// process.
func requireAIWGFinds(s *e2e.Site, pid int) {
	s.T.Helper()
	socket, pidFile := aiwgPlace(s)
	text := e2e.ReadFile(s.T, pidFile)
	require.Equal(s.T, strconv.Itoa(pid), text)
	require.NoError(s.T, syscall.Kill(pid, 0))
	c := e2e.NewLineClient(s.T, socket)
	defer c.Conn.Close()
	require.Equal(s.T, pid, e2e.HubOf(s.T, c))
}

func requireNoDaemon(s *e2e.Site) {
	s.T.Helper()
	require.Eventually(s.T, func() bool { return len(s.Daemons()) == 0 }, e2e.Watchdog/3, e2e.PollEvery, "a daemon still runs")
}

func makeAIWG(s *e2e.Site) {
	s.T.Helper()
	require.NoError(s.T, os.Mkdir(filepath.Join(s.Root, ".aiwg"), 0o755))
}

// AIWG's command line of February 2026: `aiwg daemon status|chat|task …|stop`. Each command
// has a connection of its own.
func TestAIWGsCommandLine(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t), "[[triggers]]\nid = \"daily\"\ncron = \"0 9 * * *\"\naction = { type = \"notify\", message = \"x\" }\n")
	s.ClearDaemons()
	makeAIWG(s)
	pid := s.Daemon()
	requireAIWGFinds(s, pid)
	socket, pidFile := aiwgPlace(s)
	command := func(line string, reads map[string]string) json.RawMessage {
		c := e2e.NewLineClient(t, socket)
		defer c.Conn.Close()
		return requireExchange(t, c, exchange{line, reads})
	}
	command(`{"jsonrpc":"2.0","method":"daemon.status","params":{},"id":1}`, map[string]string{
		"pid": strconv.Itoa(pid), "started_at": `"20`, "uptime_seconds": "", "health": `"healthy"`,
		"subsystems.ipc.clients": "", "subsystems.supervisor.running": "0", "subsystems.supervisor.queued": "0", "subsystems.supervisor.maxConcurrency": "3",
		"subsystems.automation.enabled": "true", "subsystems.automation.ruleCount": "1",
		"subsystems.file_watcher.enabled": "false", "subsystems.scheduler.enabled": "true", "subsystems.scheduler.jobs": "1",
	})
	command(`{"jsonrpc":"2.0","method":"chat.send","params":{"message":"quiet permit:1"},"id":1}`, map[string]string{"taskId": `"task-0001"`})
	command(`{"jsonrpc":"2.0","method":"task.submit","params":{"prompt":"quiet","priority":0},"id":1}`, map[string]string{"taskId": `"task-0002"`, "state": `"running"`})
	command(`{"jsonrpc":"2.0","method":"task.list","params":{"limit":20},"id":1}`, map[string]string{
		"0.id": `"task-0002"`, "0.state": `"`, "0.prompt": `"quiet"`, "1.id": `"task-0001"`, "1.state": `"running"`,
	})
	command(`{"jsonrpc":"2.0","method":"task.list","params":{"state":"queued","limit":5},"id":1}`, nil)
	command(`{"jsonrpc":"2.0","method":"task.get","params":{"taskId":"task-0001"},"id":1}`, map[string]string{"id": `"task-0001"`, "metadata.source": `"ipc-chat"`, "pid": "null"})
	command(`{"jsonrpc":"2.0","method":"task.cancel","params":{"taskId":"task-0001"},"id":1}`, map[string]string{"cancelled": "true"})
	command(`{"jsonrpc":"2.0","method":"task.stats","params":{},"id":1}`, map[string]string{"total": "2", "running": "", "queued": "0", "completed": "", "failed": "0", "cancelled": ""})
	// AIWG's client library has more methods than its command line.
	command(`{"jsonrpc":"2.0","method":"automation.status","params":{},"id":1}`, map[string]string{
		"enabled": "true", "ruleCount": "1", "rules.0.id": `"daily"`, "rules.0.trigger": "{", "rules.0.action.type": `"notify"`,
		"rules.0.enabled": "true", "rules.0.cooldownMs": "0", "rules.0.requiresApproval": "false", "recentExecutions": "[",
	})
	command(`{"jsonrpc":"2.0","method":"automation.disable","params":{"ruleId":"daily"},"id":1}`, map[string]string{"success": "true"})
	command(`{"jsonrpc":"2.0","method":"automation.disable","params":{},"id":1}`, map[string]string{"enabled": "false"})
	command(`{"jsonrpc":"2.0","method":"automation.enable","params":{},"id":1}`, map[string]string{"enabled": "true"})

	// AIWG's command line stops a daemon with SIGTERM, and checks the end of the process.
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	requireNoDaemon(s)
	assert.NoFileExists(t, pidFile)
	assert.NoFileExists(t, socket)
	assert.DirExists(t, filepath.Dir(socket))
}

// A new daemon replaces the files that a killed daemon has left for AIWG.
func TestAIWGFindsTheNextDaemon(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.ClearDaemons()
	makeAIWG(s)
	socket, pidFile := aiwgPlace(s)
	killed := s.Daemon()
	requireAIWGFinds(s, killed)
	require.NoError(t, syscall.Kill(killed, syscall.SIGKILL))
	requireNoDaemon(s)
	require.FileExists(t, pidFile)
	// Another process may have the process id of the killed daemon by now.
	another := strconv.Itoa(os.Getpid())
	require.NoError(t, os.WriteFile(pidFile, []byte(another), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.State(), "aiwg.pid"), []byte(another), 0o600))
	pid := s.Daemon()
	requireAIWGFinds(s, pid)
	s.Run("daemon", "stop")
	e2e.RequireNoFile(t, pidFile)
	e2e.RequireNoFile(t, socket)
}

// AIWG's command line still finds AIWG's own daemon while that daemon runs.
func TestAIWGsOwnDaemonIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]func(t *testing.T, socket, pidFile string){
		"it has its file": func(t *testing.T, _, pidFile string) {
			require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())), 0o644))
		},
		"it has its socket": func(t *testing.T, socket, _ string) {
			require.NoError(t, os.Mkdir(filepath.Dir(socket), 0o755))
			l, err := net.Listen("unix", socket)
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			s.ClearDaemons()
			dir, err := os.MkdirTemp("/tmp", "duet") // short enough for net.Listen
			require.NoError(t, err)
			t.Cleanup(func() { os.RemoveAll(dir) })
			s.Root = dir
			makeAIWG(s)
			socket, pidFile := aiwgPlace(s)
			running(t, socket, pidFile)
			before, _ := os.ReadFile(pidFile)
			require.Equal(t, s.Daemon(), e2e.HubOf(t, s.Lines()), "the daemon serves the other clients")
			after, _ := os.ReadFile(pidFile)
			assert.Equal(t, string(before), string(after))
			log := s.Run("daemon", "logs")
			assert.Contains(t, log, "AIWG's command line cannot reach this daemon")
			status := s.Run("daemon", "status")
			assert.Contains(t, status, "AIWG's command line cannot reach this daemon: ")
			assert.Contains(t, status, ", healthy\n", "the missing address leaves the daemon healthy")
			s.Run("daemon", "stop")
			after, _ = os.ReadFile(pidFile)
			assert.Equal(t, string(before), string(after))
		})
	}
}

// AIWG's command line ends daemons with a signal, so an editor's process does not use AIWG's files.
// The daemon uses them, but creates no .aiwg directory.
func TestAIWGIsNotLedToEditors(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	makeAIWG(s)
	socket, pidFile := aiwgPlace(s)
	editor := s.Start()
	editor.RequireCore()
	assert.NoFileExists(t, pidFile)
	assert.NoFileExists(t, socket)
	requireAIWGFinds(s, e2e.HubOf(t, editor))
	editor.Leave()

	other := e2e.NewSite(t)
	other.ClearDaemons()
	other.Daemon()
	assert.NoDirExists(t, filepath.Join(other.Root, ".aiwg"))
	_, err := other.Command("daemon", "stop")
	require.NoError(t, err)

	// A --listen flag may name AIWG's socket.
	s.Args = []string{"--listen", socket}
	editor = s.Start()
	editor.Call("daemon.status", object{}, nil)
	requireAIWGFinds(s, e2e.HubOf(t, editor))
	editor.Leave()
	e2e.RequireNoFile(t, pidFile)
}

// HumanLayer's terminal client of June 2025: a connection for requests, and one for events.
func TestHumanLayersTerminalClient(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	editor := s.Start()
	c, events := s.Lines(), s.Lines()
	requireExchange(t, c, exchange{`{"jsonrpc":"2.0","method":"health","id":1}`, map[string]string{"status": `"ok"`}})
	requireExchange(t, c, exchange{`{"jsonrpc":"2.0","method":"listSessions","id":2}`, map[string]string{"sessions": "[]"}})
	requireExchange(t, events, exchange{
		`{"jsonrpc":"2.0","method":"Subscribe","params":{"event_types":["approval_requested","approval_responded","session_updated"]},"id":3}`,
		map[string]string{"subscription_id": `"sub_`},
	})
	requireExchange(t, c, exchange{`{"jsonrpc":"2.0","method":"fetchApprovals","params":{},"id":4}`, map[string]string{"approvals": "[]"}})
	var l e2e.Launched
	require.NoError(t, json.Unmarshal(requireExchange(t, c, exchange{
		`{"jsonrpc":"2.0","method":"launchSession","params":{"query":"quiet permit:1","model":"sonnet","mcp_config":{"mcpServers":{"approvals":{"command":"npx","args":["humanlayer","mcp","claude_approvals"]}}},"permission_prompt_tool":"mcp__approvals__request_permission","working_dir":"` + s.Root + `"},"id":5}`,
		map[string]string{"session_id": `"`, "run_id": `"`},
	}), &l))
	asked := events.Await("a question", func(e e2e.Event) bool { return e.Type == "new_approval" })
	assert.Equal(t, l.SessionID, asked.Data.SessionID)
	assert.Contains(t, string(asked.Raw), `"count":1`)
	approvals := requireExchange(t, c, exchange{`{"jsonrpc":"2.0","method":"fetchApprovals","params":{},"id":6}`, map[string]string{
		"approvals.0.type": `"function_call"`, "approvals.0.function_call.call_id": `"`, "approvals.0.function_call.run_id": `"`,
		"approvals.0.function_call.spec.fn": `"`, "approvals.0.function_call.spec.kwargs": "{", "approvals.0.function_call.status.requested_at": `"20`,
	}})
	var list struct {
		Approvals []struct {
			FunctionCall struct {
				CallID string `json:"call_id"`
			} `json:"function_call"`
		}
	}
	require.NoError(t, json.Unmarshal(approvals, &list))
	requireExchange(t, c, exchange{
		`{"jsonrpc":"2.0","method":"sendDecision","params":{"call_id":"` + list.Approvals[0].FunctionCall.CallID + `","type":"function_call","decision":"deny","comment":"no"},"id":7}`,
		map[string]string{"success": "true"},
	})
	resolved := events.Await("the decision", func(e e2e.Event) bool { return e.Type == "approval_resolved" })
	assert.Contains(t, string(resolved.Raw), `"decision":"denied"`)
	events.Completes(l)
	requireExchange(t, c, exchange{`{"jsonrpc":"2.0","method":"getSessionState","params":{"session_id":"` + l.SessionID + `"},"id":8}`, map[string]string{
		"session.id": `"`, "session.status": `"completed"`, "session.query": `"quiet permit:1"`, "session.model": `"sonnet"`, "session.working_dir": `"/`,
		"session.created_at": `"20`, "session.last_activity_at": `"20`, "session.completed_at": `"20`, "session.duration_ms": "", "session.claude_session_id": `"`,
	}})
	requireExchange(t, c, exchange{`{"jsonrpc":"2.0","method":"getConversation","params":{"session_id":"` + l.SessionID + `"},"id":9}`, map[string]string{
		"events.0.sequence": "1", "events.0.event_type": `"message"`, "events.0.role": `"user"`, "events.0.content": `"quiet permit:1"`, "events.1.event_type": `"`,
	}})
	requireExchange(t, c, exchange{`{"jsonrpc":"2.0","method":"listSessions","id":10}`, map[string]string{
		"sessions.0.id": `"`, "sessions.0.run_id": `"`, "sessions.0.status": `"completed"`, "sessions.0.start_time": `"20`, "sessions.0.end_time": `"20`,
		"sessions.0.last_activity_at": `"20`, "sessions.0.query": `"`, "sessions.0.result.num_turns": "",
	}})
	var next struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal(requireExchange(t, c, exchange{
		`{"jsonrpc":"2.0","method":"continueSession","params":{"session_id":"` + l.SessionID + `","query":"quiet permit:1"},"id":11}`,
		map[string]string{"session_id": `"`, "run_id": `"`, "claude_session_id": `"`, "parent_session_id": `"` + l.SessionID + `"`},
	}), &next))
	events.Await("the next question", func(e e2e.Event) bool { return e.Type == "new_approval" && e.Data.SessionID == next.SessionID })
	requireExchange(t, c, exchange{`{"jsonrpc":"2.0","method":"interruptSession","params":{"session_id":"` + next.SessionID + `"},"id":12}`, nil})
	require.Equal(t, "interrupted", events.AwaitEnd(next.SessionID).Data.State)
	for _, line := range events.Said()[1:] {
		assert.Regexp(t, `^\{"jsonrpc":"2\.0","result":\{"event":\{"type":"(new_approval|approval_resolved|session_status_changed)"`, line)
	}
	c.Conn.Close()
	events.Conn.Close()
	editor.Leave()
}

// An mcpAgent is an agent that asks through duet-rpc mcp.
type mcpAgent struct {
	*mcp.ClientSession
	cmd *exec.Cmd
}

// newMCPAgent starts the server and the client of the Go SDK.
func newMCPAgent(s *e2e.Site, t *testing.T, progress func()) mcpAgent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.Watchdog, e2e.Watchdog))
	cmd := exec.CommandContext(ctx, e2e.Program, append([]string{"mcp", e2e.Patiently}, s.Launch().Args...)...)
	cmd.Dir = s.Root
	cmd.Env = append(append(e2e.CleanEnvironment(), e2e.Homeless(t)...), s.Launch().Env...)
	client := mcp.NewClient(&mcp.Implementation{Name: "an-agent", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress() },
	})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close(); cancel() })
	return mcpAgent{session, cmd}
}

// permission asks whether a command may run. The channel receives the answer.
func (a mcpAgent) permission(ctx context.Context, command string) chan string {
	answered := make(chan string, 1)
	go func() {
		p := &mcp.CallToolParams{Name: "request_permission", Arguments: object{"tool_name": "Bash", "input": object{"command": command}, "tool_use_id": "toolu_1"}}
		p.SetProgressToken("p")
		r, err := a.CallTool(ctx, p)
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- mcpText(r)
	}()
	return answered
}

func mcpText(r *mcp.CallToolResult) (text string) {
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	return text
}

// An agent that speaks only the Model Context Protocol asks through the inbox. The test answers
// questions, withdraws one, restarts the agent and kills the hub.
func TestMCPServer(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	hub, err := os.FindProcess(s.Daemon())
	require.NoError(t, err)
	progress := make(chan bool, 1000)
	a := newMCPAgent(s, t, func() { progress <- true })
	person := s.Start()
	tools, err := a.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	assert.ElementsMatch(t, []string{"request_permission", "ask_user", "list_sessions", "get_turn", "list_items", "list_questions", "page_messages"}, names)

	answer := a.permission(t.Context(), "make && true")
	<-progress
	q := person.Open(e2e.AnyQuestion)
	person.Approve(q.ID)
	assert.Equal(t, `{"behavior":"allow","updatedInput":{"command":"make && true"}}`, <-answer)
	answer = a.permission(t.Context(), "rm -rf /")
	person.Call("sendDecision", object{"approval_id": person.Open(e2e.AnyQuestion).ID, "decision": "deny", "comment": "not that"}, nil)
	assert.Equal(t, `{"behavior":"deny","message":"Permission denied: not that"}`, <-answer)
	person.Approve(q.ID) // a late decision is no error

	said := make(chan string, 1)
	go func() {
		r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask_user", Arguments: object{"message": "Which?", "options": []string{"this", "that"}}})
		if err != nil {
			said <- err.Error()
			return
		}
		said <- mcpText(r)
	}()
	person.Call("sendDecision", object{"approval_id": person.Open(e2e.AnyQuestion).ID, "decision": "respond", "option": "that"}, nil)
	assert.Equal(t, "that", <-said)

	// The agent withdraws a question.
	ctx, cancel := context.WithCancel(t.Context())
	answer = a.permission(ctx, "one")
	person.Open(e2e.AnyQuestion)
	cancel()
	<-answer
	require.Eventually(t, func() bool { return len(person.Pending()) == 0 }, e2e.Watchdog/3, e2e.PollEvery)

	// The agent reads the sessions and their items.
	r, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_sessions"})
	require.NoError(t, err)
	var list struct {
		Sessions []struct {
			Turn    string
			Session int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(mcpText(r)), &list))
	require.Len(t, list.Sessions, 1)
	assert.Equal(t, "1.4", list.Sessions[0].Turn, "all questions of an agent's name are in one session")
	assert.Equal(t, 1, list.Sessions[0].Session)
	r, err = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_items", Arguments: object{"session": "1.2"}})
	require.NoError(t, err)
	assert.Contains(t, mcpText(r), "not that")
	r, err = a.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_turn", Arguments: object{"turn": "nothing"}})
	require.NoError(t, err)
	assert.True(t, r.IsError)
	resource, err := a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "duet://sessions/1.2"})
	require.NoError(t, err)
	assert.Contains(t, resource.Contents[0].Text, "not that")
	_, err = a.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "duet://sessions/nothing"})
	assert.Error(t, err)

	// A killed agent restarts and asks its question again. It receives the decision from the
	// meantime.
	a.permission(t.Context(), "two")
	person.Open(e2e.AnyQuestion)
	require.NoError(t, a.cmd.Process.Kill())
	stale := person.Open(func(q e2e.ShownApproval) bool { return q.Stale })
	person.Approve(stale.ID)
	b := newMCPAgent(s, t, func() {})
	assert.Equal(t, `{"behavior":"allow","updatedInput":{"command":"two"}}`, <-b.permission(t.Context(), "two"))

	// The hub dies while a question is open. The next hub has the question, and the agent receives
	// the answer.
	answer = b.permission(t.Context(), "three")
	before := person.Open(e2e.AnyQuestion)
	require.NoError(t, hub.Kill())
	again := person.Open(func(q e2e.ShownApproval) bool { return q.ID != before.ID && !q.Stale })
	person.Approve(again.ID)
	assert.Equal(t, `{"behavior":"allow","updatedInput":{"command":"three"}}`, <-answer)
	assert.Empty(t, person.Pending())
	require.NoError(t, b.Close())
	person.Leave()
}

// A script asks a question and waits. It reads the answer from stdout and the exit status.
func TestAskingFromAScript(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	person := s.Start()
	type outcome struct {
		out string
		err error
	}
	command := func(args ...string) chan outcome {
		ended := make(chan outcome, 1)
		go func() {
			out, err := s.Command(args...)
			ended <- outcome{out, err}
		}()
		return ended
	}
	asked := command("ask", "Deploy?", "--option", "now", "--option", "later")
	person.Call("sendDecision", object{"approval_id": person.Open(e2e.AnyQuestion).ID, "decision": "respond", "option": "later"}, nil)
	assert.Equal(t, outcome{"later\n", nil}, <-asked)

	asked = command("permission", "Bash", "--input", `{"command":"make deploy"}`)
	person.Call("sendDecision", object{"approval_id": person.Open(e2e.AnyQuestion).ID, "decision": "approve", "updated_input": object{"command": "make -n deploy"}}, nil)
	assert.Equal(t, outcome{`{"command":"make -n deploy"}` + "\n", nil}, <-asked)

	asked = command("permission", "Bash", "--input", `{"command":"make deploy"}`)
	person.Call("sendDecision", object{"approval_id": person.Open(e2e.AnyQuestion).ID, "decision": "deny", "comment": "not today"}, nil)
	denied := <-asked
	var status *exec.ExitError
	require.True(t, errors.As(denied.err, &status), denied.err)
	assert.Equal(t, 3, status.ExitCode())
	assert.ErrorContains(t, denied.err, "Permission denied: not today")
	person.Leave()
}
