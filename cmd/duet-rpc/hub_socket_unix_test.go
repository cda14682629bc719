//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// lineAtMost is where clients of AIWG and HumanLayer give a line up, in bytes.
const lineAtMost = 1 << 20

// ask sends a line and returns the one that comes next.
func (c *lineClient) ask(line string) (answer string) {
	c.t.Helper()
	before := len(c.said())
	c.say(line)
	c.until("an answer to "+line, func() bool {
		if len(c.lines) == before {
			return false
		}
		answer = c.lines[before]
		return true
	})
	return answer
}

// A client of AIWG is answered as its own daemon does, or better where
// JSON-RPC asks for it.
func TestSocketServesAIWG(t *testing.T) {
	s := newSite(parallel(t))
	editor := s.start()
	require.NotZero(t, hubOf(t, editor))
	c := s.lines()

	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":1,"result":\{"pong":true,"timestamp":"[-0-9]{10}T[:0-9]{8}\.\d{3}Z"\}\}$`, c.ask(`{"jsonrpc": "2.0", "id": 1, "method": "ping"}`))
	status := c.status()
	assert.Equal(t, s.lockHolder(), status.PID)
	assert.Equal(t, "healthy", status.Health)
	assert.Equal(t, 2, status.Subsystems.IPC.Clients, "the editor and this one")
	require.NotNil(t, status.Subsystems.Supervisor.MaxConcurrency)
	assert.Equal(t, 3, *status.Subsystems.Supervisor.MaxConcurrency)
	require.NotNil(t, status.Subsystems.Automation.Enabled)
	assert.NotNil(t, status.Subsystems.Watcher)
	assert.NotNil(t, status.Subsystems.Scheduler)

	// A string as id, and spaces wherever JSON may have them.
	first := c.ask(`  {"jsonrpc": "2.0", "id": "s4", "method": "task.submit", "params": {"prompt": "quiet"}}` + " \r")
	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":"s4","result":\{"taskId":"task-0001","state":"running"`, first)
	for _, method := range []string{"event.taskStarted", "event.taskOutput", "event.taskCompleted"} {
		c.awaitNote(method, "task-0001")
	}
	var task struct {
		ID, Prompt, State      string
		Agent                  *string
		CreatedAt, CompletedAt string
		Result, Output         string
		Error                  *string
	}
	c.call("task.get", object{"taskId": "task-0001"}, &task)
	assert.Equal(t, "completed", task.State)
	assert.Equal(t, "quiet", task.Prompt)
	assert.NotEmpty(t, task.Result)
	assert.Contains(t, task.Output, task.Result)
	assert.Nil(t, task.Error)

	var begun struct{ TaskID, State string }
	c.call("task.submit", object{"prompt": "fail", "priority": 3}, &begun)
	c.awaitNote("event.taskFailed", begun.TaskID)
	c.call("task.submit", object{"prompt": "quiet permit:1"}, &begun)
	var cancelled struct{ Cancelled bool }
	c.call("task.cancel", object{"taskId": begun.TaskID}, &cancelled)
	assert.True(t, cancelled.Cancelled)
	c.awaitNote("event.taskCancelled", begun.TaskID)
	c.call("chat.send", object{"message": "quiet"}, &begun)
	c.awaitNote("event.taskCompleted", begun.TaskID)

	var list []struct{ ID, State string }
	c.call("task.list", object{"limit": 3}, &list)
	require.Len(t, list, 3)
	assert.Equal(t, begun.TaskID, list[0].ID, "the newest first")
	c.call("task.list", object{"state": "failed"}, &list)
	assert.Len(t, list, 1)
	var stats struct{ Total, Queued, Running, Completed, Failed, Cancelled int }
	c.call("task.stats", object{}, &stats)
	assert.Equal(t, struct{ Total, Queued, Running, Completed, Failed, Cancelled int }{4, 0, 0, 2, 1, 1}, stats)
	for method, code := range map[string]int{"task.submit": -32602, "task.get": -32602, "nope": -32601} {
		e := c.refused(method, object{})
		assert.Equal(t, code, e.Code, method)
	}
	unknown := c.refused("task.get", object{"taskId": "task-4711"})
	assert.Equal(t, -32000, unknown.Code)

	// What is wrong is answered, and the next line is served.
	for line, code := range map[string]string{
		`{bad json`:                              "-32700",
		`[]`:                                     "-32600",
		`{"id":1,"method":"ping"}`:               "-32600",
		`{"jsonrpc":"2.0","id":1}`:               "-32600",
		`17`:                                     "-32600",
		"{\"jsonrpc\":\"2.0\",\"method\":\"\xff": "-32700",
	} {
		assert.Contains(t, c.ask(line), `"error":{"code":`+code+`,`, "%q", line)
	}
	assert.Regexp(t, `^\[\{"jsonrpc":"2\.0","id":1,"result":\{"pong":true`, c.ask(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`))
	c.say(`{"jsonrpc":"2.0","method":"ping"}`)
	c.say(`{"jsonrpc":"2.0","method":"nope"}`)
	c.say(``)
	assert.Equal(t, `{"jsonrpc":"2.0","id":"after","result":[7]}`, c.ask(`{"jsonrpc":"2.0","id":"after","method":"echo","params":[7]}`), "a notification is not answered")
	c.conn.Close()
	editor.leave()
}

// Broadcasts about tasks go to clients that have spoken that family, and to no
// else.
func TestSocketBroadcastsToItsFamily(t *testing.T) {
	s := newSite(parallel(t))
	editor := s.start()
	speaks, listens, other, silent := s.lines(), s.lines(), s.lines(), s.lines()
	listens.call("task.stats", object{}, nil)
	other.call("listSessions", object{}, nil)
	other.call("ping", object{}, nil)
	other.call("health", object{}, nil)
	var begun struct{ TaskID string }
	speaks.call("task.submit", object{"prompt": "quiet"}, &begun)
	for _, c := range []*lineClient{speaks, listens} {
		c.awaitNote("event.taskCompleted", begun.TaskID)
	}
	// Another task, which another family begins, is one too.
	l := other.launch("quiet", "")
	for _, c := range []*lineClient{speaks, listens} {
		c.awaitNote("event.taskStarted", l.TaskID)
		c.awaitNote("event.taskCompleted", l.TaskID)
	}
	for _, c := range []*lineClient{other, silent} { // whatever was sent to them has come before this
		c.call("ping", object{}, nil)
		assert.Empty(t, c.noted())
	}
	for _, c := range []*lineClient{speaks, listens, other, silent} {
		c.conn.Close()
	}
	editor.leave()
}

// A client of HumanLayer gets the events in its shape, on a connection that
// goes on to serve it.
func TestSocketServesHumanLayer(t *testing.T) {
	s := newSite(parallel(t))
	editor := s.start()
	c := s.lines()

	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":1,"result":\{"status":"ok","version":`, c.ask(`{"jsonrpc":"2.0","id":1,"method":"health"}`))
	assert.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{"sessions":[]}}`, c.ask(`{"jsonrpc":"2.0","id":2,"method":"listSessions"}`))
	before := len(c.said())
	c.say(`{"jsonrpc":"2.0","id":77,"method":"Subscribe","params":{}}`)
	_, err := c.reply("77")
	require.NoError(t, err)
	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":77,"result":\{"subscription_id":"sub_[-0-9a-f]+","message":"Subscription established`, c.said()[before], "the response comes first")

	var l launched
	c.call("launchSession", object{"query": "quiet permit:1", "model": "sonnet", "working_dir": s.root}, &l)
	var id string
	c.until("a question", func() bool {
		for _, e := range c.events {
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
	c.call("fetchApprovals", object{"session_id": l.SessionID}, &approvals)
	require.Len(t, approvals.Approvals, 1)
	assert.Equal(t, id, approvals.Approvals[0].ID)
	assert.Equal(t, "pending", approvals.Approvals[0].Status)
	refused := c.refused("sendDecision", object{"approval_id": id, "decision": "deny"})
	assert.Contains(t, refused.Message, "comment")
	var decided struct {
		Success bool
		Error   string
	}
	c.call("sendDecision", object{"approval_id": id, "decision": "approve", "comment": "ok"}, &decided)
	assert.True(t, decided.Success)
	c.completes(l)
	c.call("sendDecision", object{"approval_id": id, "decision": "approve"}, &decided)
	assert.False(t, decided.Success)
	assert.Contains(t, decided.Error, "already")
	c.call("continueSession", object{"session_id": l.SessionID, "query": "quiet"}, &l)
	c.completes(l)

	withoutID := regexp.MustCompile(`^\{"jsonrpc":"2\.0","result":\{"event":\{"type":"[a-z_]+","timestamp":"[^"]+","seq":\d+,"data":\{.*\}\}\}\}$`)
	events := 0
	for _, line := range c.said()[before+1:] {
		if !strings.Contains(line, `"id":`) || strings.HasPrefix(line, `{"jsonrpc":"2.0","result":{"event"`) {
			assert.Regexp(t, withoutID, line)
			events++
		}
	}
	assert.Greater(t, events, 5)
	requireRising(t, c.events)
	assert.Empty(t, c.noted(), "it has not spoken the other family")
	c.conn.Close()
	editor.leave()
}

// However long a conversation is, no line is longer than such clients take.
func TestSocketKeepsLinesShort(t *testing.T) {
	s := newSite(parallel(t))
	editor := s.start()
	subscriber, tasks := s.lines(), s.lines()
	subscriber.call("Subscribe", object{"since": 0}, nil)
	tasks.call("task.stats", object{}, nil)
	l := subscriber.launch("longline:5", "")
	subscriber.completes(l)
	tasks.awaitNote("event.taskCompleted", l.TaskID)
	editor.t = t
	assert.Greater(t, len(editor.conversation(l.SessionID)), 5_000_000, "an editor gets all of it")

	late := s.lines()
	late.call("Subscribe", object{"since": 0}, nil)
	late.awaitEnd(l.SessionID)
	for _, c := range []*lineClient{subscriber, tasks, late} {
		assert.NotEmpty(t, c.items(l.SessionID))
		c.call("task.get", object{"taskId": l.TaskID}, nil)
		c.call("task.list", object{}, nil)
		c.call("listSessions", object{}, nil)
		c.call("getSessionState", object{"session_id": l.SessionID}, nil)
		c.call("ping", object{}, nil)
		c.mu.Lock()
		assert.Less(t, c.longest, lineAtMost)
		c.mu.Unlock()
		c.conn.Close()
	}
	editor.leave()
}

// A client of the socket can end its own connection, and nothing else. The
// same socket speaks frames to a client that begins with a header.
func TestSocketClientsEndOnlyThemselves(t *testing.T) {
	s, editor := newEditorSite(parallel(t))
	running, question := editor.asks("quiet permit:1", "")
	for _, method := range []string{"shutdown", "exit"} {
		for _, params := range []string{`{}`, `{"reason":"done","timeout_ms":200}`} {
			c := s.lines()
			c.call("ping", object{}, nil)
			c.say(`{"jsonrpc":"2.0","id":"end","method":"` + method + `","params":` + params + `}`)
			r, err := c.reply(`"end"`)
			require.NoError(t, err)
			require.Nil(t, r.Error)
			c.requireClosed()
		}
		c := s.lines()
		c.say(`{"jsonrpc":"2.0","method":"` + method + `"}`)
		c.requireClosed()

		framed := s.framesOnSocket()
		framed.subscribe()
		framed.awaitQuestion(running.SessionID)
		require.Equal(t, hubOf(t, editor), hubOf(t, framed))
		framed.call(method, object{}, nil)
		select {
		case <-framed.closed:
		case <-time.After(watchdog / 3):
			require.Fail(t, "the connection is not closed", method)
		}
	}
	editor.approve(question.Data.ApprovalID)
	editor.completes(running)
	editor.leave()
}

// requireSocket requires a socket of ours that answers.
func requireSocket(t testing.TB, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog/3)
		defer cancel()
		conn, err := socket.Dial(ctx, path)
		if err != nil {
			return false
		}
		c := linesOn(t, conn)
		defer conn.Close()
		return c.try("ping", object{}, nil) == nil
	}, watchdog/3, pollEvery, "no process answers on %s", path)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.ModeSocket|0o600, info.Mode(), path)
}

// More sockets can be asked for, wherever they are to be.
func TestListen(t *testing.T) {
	s := newSite(parallel(t))
	here, err := os.Getwd()
	require.NoError(t, err)
	relative := func(path string) string {
		r, err := filepath.Rel(here, path)
		require.NoError(t, err)
		return r
	}
	paths := []string{
		filepath.Join(s.root, ".aiwg", "daemon", "daemon.sock"),
		filepath.Join(s.home, ".humanlayer", "daemon.sock"),
		filepath.Join(s.root, "plain.sock"),
	}
	if runtime.GOOS == "linux" { // elsewhere no socket can have such a path
		paths = append(paths, filepath.Join(s.root, strings.Repeat("l", 60), strings.Repeat("m", 60), "long.sock"))
	}
	s.args = []string{"--listen", relative(paths[0]), "--listen", paths[1], "--listen=" + relative(paths[2])}
	if len(paths) > 3 {
		s.args = append(s.args, "--listen", paths[3])
	}
	first := s.start()
	for _, path := range append(paths, s.socketPath()) {
		requireSocket(t, path)
		if path == paths[2] {
			continue // its directory was there
		}
		info, err := os.Stat(filepath.Dir(path))
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), path)
	}
	info, err := os.Stat(filepath.Join(s.root, ".aiwg"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())

	// They are one hub's, and the next hub's when that one is killed.
	second := s.start()
	hub := hubOf(t, second)
	require.Equal(t, hub, hubOf(t, newLineClient(t, paths[0])))
	first.crash()
	require.NotEqual(t, hub, hubOf(t, second))
	for _, path := range append(paths, s.socketPath()) {
		requireSocket(t, path)
	}
	second.leave()
	for _, path := range append(paths, s.socketPath()) {
		requireNoFile(t, path)
	}

	// What is there already and is no socket is left alone, and the rest works.
	require.NoError(t, os.WriteFile(paths[2], []byte("mine"), 0o600))
	third := s.start()
	requireSocket(t, paths[0])
	third.requireCore()
	third.leave()
	log := readFile(t, filepath.Join(s.state(), "daemon.log"))
	assert.Contains(t, log, "a socket of --listen cannot be opened")
	content := readFile(t, paths[2])
	assert.Equal(t, "mine", content)

	// A daemon gets the path relative to the caller's directory.
	s.args = nil
	pid := s.daemon("--listen", "from/here.sock")
	requireSocket(t, filepath.Join(s.root, "from", "here.sock"))
	require.Equal(t, pid, hubOf(t, newLineClient(t, filepath.Join(s.root, "from", "here.sock"))))
	s.run("daemon", "stop", "--force")
	requireNoFile(t, filepath.Join(s.root, "from", "here.sock"))
}

// A project whose path is too long for a socket has it elsewhere, and tells
// where.
func TestSocketOfALongPath(t *testing.T) {
	s := newSite(parallel(t))
	s.root = filepath.Join(s.root, strings.Repeat("long", 15), strings.Repeat("path", 15))
	require.NoError(t, os.MkdirAll(s.root, 0o755))
	short, err := os.MkdirTemp("/tmp", "duet")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(short) })
	s.env = []string{"XDG_RUNTIME_DIR=" + short}

	first := s.start()
	hub := hubOf(t, first)
	var where string
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(s.state(), "socket"))
		where = strings.TrimSuffix(string(text), "\n")
		return err == nil
	}, watchdog/3, pollEvery, "the socket's place is not announced")
	require.Equal(t, filepath.Join(short, "duet"), filepath.Dir(where))
	require.Equal(t, where, s.socketPath())
	requireSocket(t, where)
	info, err := os.Stat(filepath.Dir(where))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	info, err = os.Stat(filepath.Join(s.state(), "socket"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	requireNoFile(t, filepath.Join(s.state(), "duet.sock"))

	// Others find it, whatever their environment, and take it over.
	s.env = nil
	second := s.start()
	require.Equal(t, hub, hubOf(t, second))
	out := s.run("daemon", "status", "--json")
	var status struct{ PID int }
	require.NoError(t, json.Unmarshal([]byte(out), &status))
	assert.Equal(t, hub, status.PID)
	first.crash()
	require.NotEqual(t, hub, hubOf(t, second))
	requireSocket(t, s.socketPath())
	last := s.socketPath()
	second.leave()
	requireNoFile(t, last)
	_, err = net.Dial("unix", where)
	require.Error(t, err)
}

// What the program answers is what its own rpc.discover says, so that clients
// can be made from that.
func TestResultsAreWhatDiscoverSays(t *testing.T) {
	c := newSite(t).start()
	var doc struct {
		Methods []struct {
			Name   string
			Result struct{ Schema json.RawMessage }
		}
	}
	c.call("rpc.discover", nil, &doc)
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
		c.call(method, params, &raw)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		require.NoError(t, err)
		require.Contains(t, schemas, method)
		assert.NoError(t, schemas[method].Validate(value), "%s: %.2000s", method, raw)
		return raw
	}
	lists := []string{
		"task.list", "daemon.status", "listSessions", "getSessionLeaves", "getRecentPaths", "fetchApprovals", "getRules", "terminal.list",
	}
	for _, method := range lists {
		holds(method, nil)
	}
	var done, waits struct {
		TaskID string `json:"taskId"`
	}
	require.NoError(t, json.Unmarshal(holds("task.submit", object{"prompt": "quiet"}), &done))
	require.NoError(t, json.Unmarshal(holds("task.submit", object{"prompt": "edit"}), &waits)) // asks a permission
	c.subscribe()
	c.await("the question", func(e event) bool { return e.Type == "new_approval" })
	c.await("the end of the first task", func(e event) bool { return e.Type == "session_status_changed" && e.Data.State == "completed" })
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
