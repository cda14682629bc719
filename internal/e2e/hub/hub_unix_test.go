//go:build unix

package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// lasting returns the events up to a sequence number that every replay repeats unchanged, by
// sequence number.
func lasting(events []e2e.Event, upTo int64) map[int64]string {
	m := make(map[int64]string)
	for _, e := range events {
		if !transient(e) && e.Seq <= upTo && !bytes.Contains(e.Raw, []byte(`"replayed":true`)) {
			m[e.Seq] = e.Type + " " + string(e.Raw)
		}
	}
	return m
}

// requireRising requires that the sequence numbers of events rise.
func requireRising(t testing.TB, events []e2e.Event) {
	t.Helper()
	last := int64(0)
	for _, e := range events {
		if e.Seq == 0 || bytes.Contains(e.Raw, []byte(`"replayed":true`)) {
			continue
		}
		require.Greater(t, e.Seq, last, "numbers only rise: %s %s", e.Type, e.Raw)
		last = e.Seq
	}
}

// Editors of one project receive the same events, whichever editor began a session. Each may answer
// a question, and the first answer wins. The next hub has the same transcript.
func TestEditorsShare(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			var editors []*e2e.Client
			for range n {
				c := s.Open()
				editors = append(editors, c)
			}
			hub := s.LockHolder()
			for _, c := range editors {
				require.Equal(t, hub, e2e.HubOf(t, c))
			}
			var last e2e.Event
			for i, c := range editors {
				begun := c.Launch(fmt.Sprintf("permit:1 stream:50 round %d", i), "")
				question := editors[(i+1)%n].AwaitQuestion(begun.SessionID)
				var won []int
				var lost []string
				var mu sync.Mutex
				var group sync.WaitGroup
				for j, c := range editors {
					group.Go(func() {
						var r struct {
							Success bool   `json:"success"`
							Error   string `json:"error"`
							Status  string `json:"status"`
						}
						err := c.Try("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "comment": fmt.Sprint("by ", j)}, &r)
						mu.Lock()
						defer mu.Unlock()
						if assert.NoError(t, err) && r.Success {
							won = append(won, j)
						} else {
							lost = append(lost, r.Error)
							assert.Equal(t, "approved", r.Status)
						}
					})
				}
				group.Wait()
				require.Len(t, won, 1, "only the first answer wins")
				for _, text := range lost {
					assert.Contains(t, text, "already")
				}
				for j, c := range editors {
					last = c.AwaitEnd(begun.SessionID)
					assert.Equal(t, "completed", last.Data.State)
					resolved := c.AwaitAnswer(question.Data.ApprovalID)
					assert.Contains(t, string(resolved.Raw), fmt.Sprint("by ", won[0]), "editor %d", j)
				}
			}
			want := lasting(editors[0].Seen(), last.Seq)
			require.NotEmpty(t, want)
			said := editors[0].Said(last.Data.SessionID)
			for i, c := range editors {
				requireRising(t, c.Seen())
				assert.Equal(t, said, c.Said(last.Data.SessionID), "editor %d", i)
				assert.Equal(t, want, lasting(c.Seen(), last.Seq), "editor %d", i)
				assert.Equal(t, textsOf(editors[0].Seen()), textsOf(c.Seen()), "editor %d", i)
			}
			e2e.Leave(editors...)

			next := s.Open()
			require.NotEqual(t, hub, e2e.HubOf(t, next))
			assert.Equal(t, said, next.Said(last.Data.SessionID))
			next.Runs("quiet")
			next.Leave()
		})
	}
}

// A client of a daemon may leave in any way during its turn. The turn continues, and the sessions of
// the next client run.
func TestWaysToLeaveADaemon(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(c *e2e.Client){
		"EOF":                   func(c *e2e.Client) { c.CloseStdin() },
		"exit":                  func(c *e2e.Client) { _ = c.Try("exit", nil, nil) },
		"shutdown":              func(c *e2e.Client) { c.Call("shutdown", nil, nil) },
		"shutdown with reason":  func(c *e2e.Client) { c.Call("shutdown", object{"reason": "done"}, nil) },
		"shutdown with timeout": func(c *e2e.Client) { c.Call("shutdown", object{"timeout_ms": 1}, nil) },
		"SIGHUP":                func(c *e2e.Client) { _ = c.Cmd.Process.Signal(syscall.SIGHUP) },
		"SIGTERM":               func(c *e2e.Client) { _ = c.Cmd.Process.Signal(syscall.SIGTERM) },
		"SIGKILL":               func(c *e2e.Client) { _ = c.Cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			s.Daemon()
			first := s.Open()
			running, question := first.Asks("quiet permit:1", "")
			leave(first)
			<-first.Ended
			second := s.Open()
			require.Contains(t, second.Pending(), question.Data.ApprovalID)
			require.False(t, second.Pending()[question.Data.ApprovalID].Stale)
			second.Runs("quiet")
			second.Approve(question.Data.ApprovalID)
			second.Completes(running)
			second.Leave()
			s.Run("daemon", "stop")
		})
	}
}

// A daemon runs until `daemon stop`.
func TestDaemon(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Refuses("no daemon runs here; `duet-rpc daemon start`", "daemon", "status")
	s.Refuses("no daemon runs here", "daemon", "stop")
	s.Refuses("no daemon was started here", "daemon", "logs")

	// A starting daemon renames a long log.
	log := filepath.Join(s.State(), "daemon.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o700))
	require.NoError(t, os.WriteFile(log, bytes.Repeat([]byte("old\n"), 2<<20+1), 0o600))

	pid := s.Daemon()
	require.Equal(t, pid, s.LockHolder())
	require.Equal(t, pid, s.Daemon(), "the second start finds the first daemon")
	out := s.Run("daemon", "start")
	assert.Equal(t, fmt.Sprintf("a daemon runs here already (process %d)\n", pid), out)
	out = s.Run("daemon", "status")
	assert.Contains(t, out, fmt.Sprintf("process %d, %s, up ", pid, e2e.Version))
	out = s.Run("daemon", "logs")
	e2e.RequireParts(t, out, "started", fmt.Sprint("pid=", pid))
	assert.NotContains(t, out, "old")
	e2e.RequireMode(t, log, 0o600)
	info, err := os.Stat(log + ".1")
	require.NoError(t, err)
	assert.EqualValues(t, 8<<20+4, info.Size())

	// `daemon stop` waits for running sessions.
	editor := s.Open()
	require.Equal(t, pid, e2e.HubOf(t, editor))
	running := editor.Launch("quiet stream:60@50", "")
	editor.AwaitState(running.SessionID, "running")
	out = s.Run("daemon", "stop")
	assert.Equal(t, fmt.Sprintf("stopped (process %d)\n", pid), out)
	editor.Completes(running)
	e2e.RequireNoFile(t, s.SocketPath())
	editor.RequireCore()
	_, err = s.Command("daemon", "status")
	require.ErrorContains(t, err, "no daemon runs here", "an editor starts no hub before it needs one")
	require.Equal(t, "completed", editor.Session(running.SessionID).State)
	require.NotEqual(t, pid, e2e.HubOf(t, editor))
	editor.Leave()

	// `daemon stop --force` does not wait for them.
	pid = s.Daemon()
	editor = s.Open()
	running = editor.Launch("quiet stream:100000@50", "")
	editor.AwaitState(running.SessionID, "running")
	watch := e2e.StartStopwatch(t)
	out = s.Run("daemon", "stop", "--force")
	watch.AssertWithin(t, 5*time.Second)
	assert.Equal(t, fmt.Sprintf("stopped (process %d)\n", pid), out)
	e2e.RequireNoFile(t, s.SocketPath())
	require.Eventually(t, func() bool { // the editor may not have seen the end of its hub yet
		var lost *e2e.WireError
		err := editor.Try("getSessionState", object{"session_id": running.SessionID}, nil)
		return err == nil || !errors.As(err, &lost) || lost.Code != -32042
	}, e2e.Watchdog/3, e2e.PollEvery, "the editor has no new hub")
	require.Equal(t, "interrupted", editor.Session(running.SessionID).State)
	editor.Leave()
	s.RequireNobody("after the daemon")
}

// lineAtMost is the length in bytes from which clients of AIWG and HumanLayer reject a line.
const lineAtMost = 1 << 20

// askLine sends a line and returns the next received one.
func askLine(c *e2e.LineClient, line string) (answer string) {
	c.T.Helper()
	before := len(c.Said())
	c.Say(line)
	c.Until("an answer to "+line, func() bool {
		if len(c.Lines) == before {
			return false
		}
		answer = c.Lines[before]
		return true
	})
	return answer
}

// The socket answers a client of AIWG as AIWG's own daemon does, or better where JSON-RPC requires
// it. TestAIWGsCommandLine checks the members that AIWG's command line reads.
func TestSocketServesAIWG(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	editor := s.Start()
	require.NotZero(t, e2e.HubOf(t, editor))
	c := s.Lines()

	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":1,"result":\{"pong":true,"timestamp":"[-0-9]{10}T[:0-9]{8}\.\d{3}Z"\}\}$`, askLine(c, `{"jsonrpc": "2.0", "id": 1, "method": "ping"}`))
	assert.Equal(t, 2, c.Status().Subsystems.IPC.Clients, "the editor and this one")

	// A string as id, and spaces wherever JSON may have them.
	first := askLine(c, `  {"jsonrpc": "2.0", "id": "s4", "method": "task.submit", "params": {"prompt": "quiet"}}`+" \r")
	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":"s4","result":\{"taskId":"task-0001","state":"running"`, first)
	for _, method := range []string{"event.taskStarted", "event.taskOutput", "event.taskCompleted"} {
		c.AwaitNote(method, "task-0001")
	}
	var task struct {
		ID, Prompt, State      string
		Agent                  *string
		CreatedAt, CompletedAt string
		Result, Output         string
		Error                  *string
	}
	c.Call("task.get", object{"taskId": "task-0001"}, &task)
	assert.Equal(t, "completed", task.State)
	assert.Equal(t, "quiet", task.Prompt)
	assert.NotEmpty(t, task.Result)
	assert.Contains(t, task.Output, task.Result)
	assert.Nil(t, task.Error)

	var begun struct{ TaskID, State string }
	c.Call("task.submit", object{"prompt": "fail", "priority": 3}, &begun)
	c.AwaitNote("event.taskFailed", begun.TaskID)
	c.Call("task.submit", object{"prompt": "quiet permit:1"}, &begun)
	c.Call("task.cancel", object{"taskId": begun.TaskID}, nil)
	c.AwaitNote("event.taskCancelled", begun.TaskID)
	c.Call("chat.send", object{"message": "quiet"}, &begun)
	c.AwaitNote("event.taskCompleted", begun.TaskID)

	var list []json.RawMessage
	c.Call("task.list", object{"limit": 3}, &list)
	assert.Len(t, list, 3)
	c.Call("task.list", object{"state": "failed"}, &list)
	assert.Len(t, list, 1)
	var stats struct{ Total, Queued, Running, Completed, Failed, Cancelled int }
	c.Call("task.stats", object{}, &stats)
	assert.Equal(t, struct{ Total, Queued, Running, Completed, Failed, Cancelled int }{4, 0, 0, 2, 1, 1}, stats)
	for method, code := range map[string]int{"task.submit": -32602, "task.get": -32602, "nope": -32601} {
		e := c.Refused(method, object{})
		assert.Equal(t, code, e.Code, method)
	}
	unknown := c.Refused("task.get", object{"taskId": "task-4711"})
	assert.Equal(t, -32000, unknown.Code)

	// The hub answers an invalid line with an error, and serves the next line.
	for line, code := range map[string]string{
		`{bad json`:                              "-32700",
		`[]`:                                     "-32600",
		`{"id":1,"method":"ping"}`:               "-32600",
		`{"jsonrpc":"2.0","id":1}`:               "-32600",
		`17`:                                     "-32600",
		"{\"jsonrpc\":\"2.0\",\"method\":\"\xff": "-32700",
	} {
		assert.Contains(t, askLine(c, line), `"error":{"code":`+code+`,`, "%q", line)
	}
	assert.Regexp(t, `^\[\{"jsonrpc":"2\.0","id":1,"result":\{"pong":true`, askLine(c, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`))
	c.Say(`{"jsonrpc":"2.0","method":"ping"}`)
	c.Say(`{"jsonrpc":"2.0","method":"nope"}`)
	c.Say(``)
	assert.Equal(t, `{"jsonrpc":"2.0","id":"after","result":[7]}`, askLine(c, `{"jsonrpc":"2.0","id":"after","method":"echo","params":[7]}`), "a notification has no response")
	c.Conn.Close()
	editor.Leave()
}

// The hub broadcasts about tasks only to clients that have called a method of the task family.
func TestSocketBroadcastsToItsFamily(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	editor := s.Start()
	speaks, listens, other, silent := s.Lines(), s.Lines(), s.Lines(), s.Lines()
	listens.Call("task.stats", object{}, nil)
	other.Call("listSessions", object{}, nil)
	other.Call("ping", object{}, nil)
	other.Call("health", object{}, nil)
	var begun struct{ TaskID string }
	speaks.Call("task.submit", object{"prompt": "quiet"}, &begun)
	for _, c := range []*e2e.LineClient{speaks, listens} {
		c.AwaitNote("event.taskCompleted", begun.TaskID)
	}
	// The broadcasts include a task that a client of another family begins.
	l := other.Launch("quiet", "")
	for _, c := range []*e2e.LineClient{speaks, listens} {
		c.AwaitNote("event.taskStarted", l.TaskID)
		c.AwaitNote("event.taskCompleted", l.TaskID)
	}
	for _, c := range []*e2e.LineClient{other, silent} { // the response follows any earlier broadcast
		c.Call("ping", object{}, nil)
		assert.Empty(t, c.Noted())
	}
	for _, c := range []*e2e.LineClient{speaks, listens, other, silent} {
		c.Conn.Close()
	}
	editor.Leave()
}

// A client of HumanLayer receives events in its own format. The same connection still serves its
// requests. TestHumanLayersTerminalClient checks the members that HumanLayer's client reads.
func TestSocketServesHumanLayer(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	editor := s.Start()
	c := s.Lines()

	before := len(c.Said())
	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":77,"result":\{"subscription_id":"sub_[-0-9a-f]+","message":"Subscription established`, askLine(c, `{"jsonrpc":"2.0","id":77,"method":"Subscribe","params":{}}`), "the response comes first")

	l := c.Begins("launchSession", object{"query": "quiet permit:1", "model": "sonnet", "working_dir": s.Root})
	var id string
	c.Until("a question", func() bool {
		for _, e := range c.Events {
			if e.Type == "new_approval" && e.Data.SessionID == l.SessionID {
				id = e.Data.ApprovalID
			}
		}
		return id != ""
	})
	var approvals struct {
		Approvals []struct {
			ID, Status, Type string
			SessionID        string `json:"session_id"`
			ToolName         string `json:"tool_name"`
		}
	}
	c.Call("fetchApprovals", object{"session_id": l.SessionID}, &approvals)
	require.Len(t, approvals.Approvals, 1)
	assert.Equal(t, id, approvals.Approvals[0].ID)
	assert.Equal(t, "pending", approvals.Approvals[0].Status)
	refused := c.Refused("sendDecision", object{"approval_id": id, "decision": "deny"})
	assert.Contains(t, refused.Message, "comment")
	var decided struct {
		Success bool
		Error   string
	}
	c.Call("sendDecision", object{"approval_id": id, "decision": "approve", "comment": "ok"}, &decided)
	assert.True(t, decided.Success)
	c.Completes(l)
	c.Call("sendDecision", object{"approval_id": id, "decision": "approve"}, &decided)
	assert.False(t, decided.Success)
	assert.Contains(t, decided.Error, "already")
	c.Call("continueSession", object{"session_id": l.SessionID, "query": "quiet"}, &l)
	c.Completes(l)

	withoutID := regexp.MustCompile(`^\{"jsonrpc":"2\.0","result":\{"event":\{"type":"[a-z_]+","timestamp":"[^"]+","seq":\d+,"data":\{.*\}\}\}\}$`)
	events := 0
	for _, line := range c.Said()[before+1:] {
		if !strings.Contains(line, `"id":`) || strings.HasPrefix(line, `{"jsonrpc":"2.0","result":{"event"`) {
			assert.Regexp(t, withoutID, line)
			events++
		}
	}
	assert.Greater(t, events, 5)
	requireRising(t, c.Events)
	assert.Empty(t, c.Noted(), "the client has not called the task family")
	c.Conn.Close()
	editor.Leave()
}

// No line exceeds lineAtMost, however long a session is.
func TestSocketKeepsLinesShort(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	editor := s.Start()
	subscriber, tasks := s.Lines(), s.Lines()
	subscriber.Call("Subscribe", object{"since": 0}, nil)
	tasks.Call("task.stats", object{}, nil)
	l := subscriber.Launch("longline:5", "")
	subscriber.Completes(l)
	tasks.AwaitNote("event.taskCompleted", l.TaskID)
	editor.T = t
	assert.Greater(t, len(editor.Said(l.SessionID)), 5_000_000, "an editor receives the whole transcript")

	late := s.Lines()
	late.Call("Subscribe", object{"since": 0}, nil)
	late.AwaitEnd(l.SessionID)
	for _, c := range []*e2e.LineClient{subscriber, tasks, late} {
		assert.NotEmpty(t, c.Items(l.SessionID))
		c.Call("task.get", object{"taskId": l.TaskID}, nil)
		c.Call("task.list", object{}, nil)
		c.Call("listSessions", object{}, nil)
		c.Call("getSessionState", object{"session_id": l.SessionID}, nil)
		c.Call("ping", object{}, nil)
		c.Mu.Lock()
		assert.Less(t, c.Longest, lineAtMost)
		c.Mu.Unlock()
		c.Conn.Close()
	}
	editor.Leave()
}

// A client of the socket can end only its own connection. The same socket speaks frames to a client
// that begins with a header.
func TestSocketClientsEndOnlyThemselves(t *testing.T) {
	s, editor := e2e.NewEditorSite(e2e.Parallel(t))
	running, question := editor.Asks("quiet permit:1", "")
	for _, method := range []string{"shutdown", "exit"} {
		for _, params := range []string{`{}`, `{"reason":"done","timeout_ms":200}`} {
			c := s.Lines()
			c.Call("ping", object{}, nil)
			c.Say(`{"jsonrpc":"2.0","id":"end","method":"` + method + `","params":` + params + `}`)
			r, err := c.Reply(`"end"`)
			require.NoError(t, err)
			require.Nil(t, r.Error)
			c.RequireClosed()
		}
		c := s.Lines()
		c.Say(`{"jsonrpc":"2.0","method":"` + method + `"}`)
		c.RequireClosed()

		framed := e2e.FramesOn(t, e2e.Connect(t, s.SocketPath()))
		framed.Subscribe()
		framed.AwaitQuestion(running.SessionID)
		require.Equal(t, e2e.HubOf(t, editor), e2e.HubOf(t, framed))
		framed.Call(method, object{}, nil)
		select {
		case <-framed.Closed:
		case <-time.After(e2e.Watchdog / 3):
			require.Fail(t, "the connection is not closed", method)
		}
	}
	editor.Approve(question.Data.ApprovalID)
	editor.Completes(running)
	editor.Leave()
}

// requireSocket requires that the hub answers on a socket, which only its user can open.
func requireSocket(t testing.TB, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), e2e.Watchdog/3)
		defer cancel()
		conn, err := socket.Dial(ctx, path)
		if err != nil {
			return false
		}
		c := e2e.LinesOn(t, conn)
		defer conn.Close()
		return c.Try("ping", object{}, nil) == nil
	}, e2e.Watchdog/3, e2e.PollEvery, "no process answers on %s", path)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeSocket|0o600, info.Mode(), path)
}

// A --listen flag opens another socket, at any path.
func TestListen(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	here, err := os.Getwd()
	require.NoError(t, err)
	relative := func(path string) string {
		r, err := filepath.Rel(here, path)
		require.NoError(t, err)
		return r
	}
	paths := []string{
		filepath.Join(s.Root, ".aiwg", "daemon", "daemon.sock"),
		filepath.Join(s.Home, ".humanlayer", "daemon.sock"),
		filepath.Join(s.Root, "plain.sock"),
	}
	if runtime.GOOS == "linux" { // elsewhere no socket can have such a path
		paths = append(paths, filepath.Join(s.Root, strings.Repeat("l", 60), strings.Repeat("m", 60), "long.sock"))
	}
	s.Args = []string{"--listen", relative(paths[0]), "--listen", paths[1], "--listen=" + relative(paths[2])}
	if len(paths) > 3 {
		s.Args = append(s.Args, "--listen", paths[3])
	}
	first := s.Start()
	for _, path := range append(paths, s.SocketPath()) {
		requireSocket(t, path)
		if path == paths[2] {
			continue // its directory existed before
		}
		e2e.RequireMode(t, filepath.Dir(path), 0o700)
	}
	e2e.RequireMode(t, filepath.Join(s.Root, ".aiwg"), 0o700)

	// All sockets belong to one hub. After a kill of that hub they belong to the next one.
	second := s.Start()
	hub := e2e.HubOf(t, second)
	require.Equal(t, hub, e2e.HubOf(t, e2e.NewLineClient(t, paths[0])))
	first.Crash()
	require.NotEqual(t, hub, e2e.HubOf(t, second))
	for _, path := range append(paths, s.SocketPath()) {
		requireSocket(t, path)
	}
	second.Leave()
	for _, path := range append(paths, s.SocketPath()) {
		e2e.RequireNoFile(t, path)
	}

	// The hub does not replace an existing file that is no socket. It opens the other sockets.
	require.NoError(t, os.WriteFile(paths[2], []byte("mine"), 0o600))
	third := s.Start()
	requireSocket(t, paths[0])
	third.RequireCore()
	third.Leave()
	log := e2e.ReadFile(t, filepath.Join(s.State(), "daemon.log"))
	assert.Contains(t, log, "cannot open the socket of --listen: listening on "+paths[2])
	content := e2e.ReadFile(t, paths[2])
	assert.Equal(t, "mine", content)

	// A daemon gets the path relative to the caller's directory.
	s.Args = nil
	pid := s.Daemon("--listen", "from/here.sock")
	requireSocket(t, filepath.Join(s.Root, "from", "here.sock"))
	require.Equal(t, pid, e2e.HubOf(t, e2e.NewLineClient(t, filepath.Join(s.Root, "from", "here.sock"))))
	s.Run("daemon", "stop", "--force")
	e2e.RequireNoFile(t, filepath.Join(s.Root, "from", "here.sock"))
}

// If the path of a hub's socket is too long, the socket is in XDG_RUNTIME_DIR. A file in the state
// directory contains its path.
func TestSocketOfALongPath(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Root = filepath.Join(s.Root, strings.Repeat("long", 15), strings.Repeat("path", 15))
	require.NoError(t, os.MkdirAll(s.Root, 0o755))
	short, err := os.MkdirTemp("/tmp", "duet")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	s.Env = []string{"XDG_RUNTIME_DIR=" + short}

	first := s.Start()
	hub := e2e.HubOf(t, first)
	var where string
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(s.State(), "socket"))
		where = strings.TrimSuffix(string(text), "\n")
		return err == nil
	}, e2e.Watchdog/3, e2e.PollEvery, "no file contains the path of the socket")
	require.Equal(t, filepath.Join(short, "duet"), filepath.Dir(where))
	require.Equal(t, where, s.SocketPath())
	requireSocket(t, where)
	e2e.RequireMode(t, filepath.Dir(where), 0o700)
	e2e.RequireMode(t, filepath.Join(s.State(), "socket"), 0o600)
	e2e.RequireNoFile(t, filepath.Join(s.State(), "duet.sock"))

	// A client with another environment finds the socket. After a kill of the hub, the next hub
	// opens a socket.
	s.Env = nil
	second := s.Start()
	require.Equal(t, hub, e2e.HubOf(t, second))
	out := s.Run("daemon", "status", "--json")
	var status struct{ PID int }
	require.NoError(t, json.Unmarshal([]byte(out), &status))
	assert.Equal(t, hub, status.PID)
	first.Crash()
	require.NotEqual(t, hub, e2e.HubOf(t, second))
	requireSocket(t, s.SocketPath())
	last := s.SocketPath()
	second.Leave()
	e2e.RequireNoFile(t, last)
	_, err = net.Dial("unix", where)
	require.Error(t, err)
}

// The results of methods match the schemas in rpc.discover, so that programmers can generate
// clients from them.
func TestResultsAreWhatDiscoverSays(t *testing.T) {
	c := e2e.NewSite(t).Start()
	var doc struct {
		Methods []struct {
			Name   string
			Result struct{ Schema json.RawMessage }
		}
	}
	c.Call("rpc.discover", nil, &doc)
	schemas := make(map[string]*jsonschema.Schema)
	for _, m := range doc.Methods {
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.Result.Schema))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft7)
		compiler.AssertFormat()
		require.NoError(t, compiler.AddResource("result.json", parsed))
		schemas[m.Name], err = compiler.Compile("result.json")
		require.NoError(t, err)
	}
	holds := func(method string, params any) (raw json.RawMessage) {
		t.Helper()
		c.Call(method, params, &raw)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(t, err)
		require.Contains(t, schemas, method)
		assert.NoError(t, schemas[method].Validate(value), "%s: %.2000s", method, raw)
		return raw
	}
	lists := []string{
		"task.list", "daemon.status", "listSessions", "getSessionLeaves", "getRecentPaths", "fetchApprovals", "rule.list", "terminal.list",
	}
	for _, method := range lists {
		holds(method, nil)
	}
	var done, waits struct {
		TaskID string `json:"taskId"`
	}
	require.NoError(t, json.Unmarshal(holds("task.submit", object{"prompt": "quiet"}), &done))
	require.NoError(t, json.Unmarshal(holds("task.submit", object{"prompt": "edit"}), &waits)) // asks for permission
	c.Subscribe()
	c.Await("the question", func(e e2e.Event) bool { return e.Type == "new_approval" })
	c.Await("the end of the first task", func(e e2e.Event) bool { return e.Type == "session_status_changed" && e.Data.State == "completed" })
	for _, method := range lists {
		holds(method, nil)
	}
	for _, task := range []string{done.TaskID, waits.TaskID} {
		holds("task.get", object{"taskId": task})
		for _, method := range []string{"getSessionState", "getConversation", "getSessionSnapshots", "fetchApprovals"} {
			holds(method, object{"session_id": task})
		}
	}
	holds("task.cancel", object{"taskId": waits.TaskID})
	holds("describeMethods", nil)
	holds("listMethods", nil)
	holds("initialize", object{"capabilities": object{}})
}
