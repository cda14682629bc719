//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// command runs the program as a shell in the project does, with the site's environment. It counts
// as a client, and returns its standard output.
func (s *site) command(args ...string) (stdout string, err error) {
	s.t.Helper()
	l := s.counted()
	cmd := exec.Command(program, slices.Concat(l.first, args, l.args)...)
	cmd.Dir = s.root
	cmd.Env = append(append(cleanEnvironment(), homeless(s.t)...), l.env...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "daemon start":
		s.daemonStays.Store(true)
	case "daemon stop":
		defer s.daemonStays.Store(false)
	}
	s.clients.Add(1)
	defer s.left()
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("%w: %s", err, problem.String())
	}
	return out.String(), err
}

// run is command for a command that must succeed.
func (s *site) run(args ...string) (stdout string) {
	s.t.Helper()
	stdout, err := s.command(args...)
	require.NoError(s.t, err, "%q", args)
	return stdout
}

// refuses is command for a command that must fail with an error that contains why.
func (s *site) refuses(why string, args ...string) {
	s.t.Helper()
	_, err := s.command(args...)
	require.ErrorContains(s.t, err, why, "%q", args)
}

// commandIn runs the program in a directory, without a named root.
func (s *site) commandIn(dir string, args ...string) (stdout, stderr string, err error) {
	s.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(append(append(cleanEnvironment(), homeless(s.t)...), s.counted().env...), "DUET_ROOT=", "PWD="+dir)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	s.clients.Add(1)
	defer s.left()
	err = cmd.Run()
	return out.String(), problem.String(), err
}

// runIn is commandIn for a command that must succeed, and returns both outputs.
func (s *site) runIn(dir string, args ...string) string {
	s.t.Helper()
	out, problem, err := s.commandIn(dir, args...)
	require.NoError(s.t, err, problem)
	return out + problem
}

// daemon starts a daemon and returns its process id. The cleanup of a failed test kills the daemon.
func (s *site) daemon(args ...string) (pid int) {
	s.t.Helper()
	out, err := s.command(append([]string{"daemon", "start", "--json"}, args...)...)
	require.NoError(s.t, err)
	var status struct{ PID int }
	require.NoError(s.t, json.Unmarshal([]byte(out), &status), out)
	require.NotZero(s.t, status.PID)
	process, err := os.FindProcess(status.PID)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		if s.t.Failed() && s.lockHolder() == status.PID {
			_ = process.Kill()
		}
	})
	return status.PID
}

// requireNoFile waits until there is no such file.
func requireNoFile(t testing.TB, path string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}, watchdog/3, pollEvery, "%s is still there", path)
}

// lasting returns the events up to a sequence number that every replay repeats unchanged, by
// sequence number.
func lasting(events []event, upTo int64) map[int64]string {
	m := make(map[int64]string)
	for _, e := range events {
		if !transient(e) && e.Seq <= upTo && !bytes.Contains(e.Raw, []byte(`"replayed":true`)) {
			m[e.Seq] = e.Type + " " + string(e.Raw)
		}
	}
	return m
}

// requireRising requires that the sequence numbers of events rise.
func requireRising(t testing.TB, events []event) {
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
// a question, and the first answer wins. The next hub has the same conversation.
func TestEditorsShare(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSite(parallel(t))
			var editors []*client
			for range n {
				c := s.open()
				editors = append(editors, c)
			}
			hub := s.lockHolder()
			for _, c := range editors {
				require.Equal(t, hub, hubOf(t, c))
			}
			var last event
			for i, c := range editors {
				begun := c.launch(fmt.Sprintf("permit:1 stream:50 round %d", i), "")
				question := editors[(i+1)%n].awaitQuestion(begun.SessionID)
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
						err := c.try("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "comment": fmt.Sprint("by ", j)}, &r)
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
					last = c.awaitEnd(begun.SessionID)
					assert.Equal(t, "completed", last.Data.State)
					resolved := c.awaitAnswer(question.Data.ApprovalID)
					assert.Contains(t, string(resolved.Raw), fmt.Sprint("by ", won[0]), "editor %d", j)
				}
			}
			want := lasting(editors[0].seen(), last.Seq)
			require.NotEmpty(t, want)
			said := editors[0].conversation(last.Data.SessionID)
			for i, c := range editors {
				requireRising(t, c.seen())
				assert.Equal(t, said, c.conversation(last.Data.SessionID), "editor %d", i)
				assert.Equal(t, want, lasting(c.seen(), last.Seq), "editor %d", i)
				assert.Equal(t, textsOf(editors[0].seen()), textsOf(c.seen()), "editor %d", i)
			}
			leave(editors...)

			next := s.open()
			require.NotEqual(t, hub, hubOf(t, next))
			assert.Equal(t, said, next.conversation(last.Data.SessionID))
			next.runs("quiet")
			next.leave()
		})
	}
}

// A client of a daemon may leave in any way during its run. The run continues, and the sessions of
// the next client run.
func TestWaysToLeaveADaemon(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(c *client){
		"EOF":                   func(c *client) { c.closeStdin() },
		"exit":                  func(c *client) { _ = c.try("exit", nil, nil) },
		"shutdown":              func(c *client) { c.call("shutdown", nil, nil) },
		"shutdown with reason":  func(c *client) { c.call("shutdown", object{"reason": "done"}, nil) },
		"shutdown with timeout": func(c *client) { c.call("shutdown", object{"timeout_ms": 1}, nil) },
		"SIGHUP":                func(c *client) { _ = c.cmd.Process.Signal(syscall.SIGHUP) },
		"SIGTERM":               func(c *client) { _ = c.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGKILL":               func(c *client) { _ = c.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(parallel(t))
			s.daemon()
			first := s.open()
			running, question := first.asks("quiet permit:1", "")
			leave(first)
			<-first.ended
			second := s.open()
			require.Contains(t, second.pending(), question.Data.ApprovalID)
			require.False(t, second.pending()[question.Data.ApprovalID].Stale)
			second.runs("quiet")
			second.approve(question.Data.ApprovalID)
			second.completes(running)
			second.leave()
			s.run("daemon", "stop")
		})
	}
}

// A daemon runs until `daemon stop`.
func TestDaemon(t *testing.T) {
	s := newSite(parallel(t))
	s.refuses("no hub runs here; `duet-rpc daemon start`", "daemon", "status")
	s.refuses("no hub runs here", "daemon", "stop")
	s.refuses("no daemon was started here", "daemon", "logs")

	// A starting daemon renames a long log.
	log := filepath.Join(s.state(), "daemon.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o700))
	require.NoError(t, os.WriteFile(log, bytes.Repeat([]byte("old\n"), 2<<20+1), 0o600))

	pid := s.daemon()
	require.Equal(t, pid, s.lockHolder())
	require.Equal(t, pid, s.daemon(), "the second start finds the first daemon")
	out := s.run("daemon", "start")
	assert.Equal(t, fmt.Sprintf("a hub runs here already (process %d)\n", pid), out)
	out = s.run("daemon", "status")
	assert.Contains(t, out, fmt.Sprintf("process %d, %s, up ", pid, testVersion))
	out = s.run("daemon", "logs")
	requireParts(t, out, "started", fmt.Sprint("pid=", pid))
	assert.NotContains(t, out, "old")
	requireMode(t, log, 0o600)
	info, err := os.Stat(log + ".1")
	require.NoError(t, err)
	assert.EqualValues(t, 8<<20+4, info.Size())

	// `daemon stop` waits for running sessions.
	editor := s.open()
	require.Equal(t, pid, hubOf(t, editor))
	running := editor.launch("quiet stream:60@50", "")
	editor.awaitState(running.SessionID, "running")
	out = s.run("daemon", "stop")
	assert.Equal(t, fmt.Sprintf("stopped (process %d)\n", pid), out)
	editor.completes(running)
	requireNoFile(t, s.socketPath())
	editor.requireCore()
	_, err = s.command("daemon", "status")
	require.ErrorContains(t, err, "no hub runs here", "an editor starts no hub before it needs one")
	require.Equal(t, "completed", editor.session(running.SessionID).State)
	require.NotEqual(t, pid, hubOf(t, editor))
	editor.leave()

	// `daemon stop --force` does not wait for them.
	pid = s.daemon()
	editor = s.open()
	running = editor.launch("quiet stream:100000@50", "")
	editor.awaitState(running.SessionID, "running")
	watch := startStopwatch(t)
	out = s.run("daemon", "stop", "--force")
	watch.assertWithin(t, 5*time.Second)
	assert.Equal(t, fmt.Sprintf("stopped (process %d)\n", pid), out)
	requireNoFile(t, s.socketPath())
	require.Eventually(t, func() bool { // the editor may not have seen the end of its hub yet
		var lost *wireError
		err := editor.try("getSessionState", object{"session_id": running.SessionID}, nil)
		return err == nil || !errors.As(err, &lost) || lost.Code != -32042
	}, watchdog/3, pollEvery, "the editor has no new hub")
	require.Equal(t, "interrupted", editor.session(running.SessionID).State)
	editor.leave()
	s.requireNobody("after the daemon")
}

// lineAtMost is the length in bytes from which clients of AIWG and HumanLayer reject a line.
const lineAtMost = 1 << 20

// ask sends a line and returns the next received one.
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

// The socket answers a client of AIWG as AIWG's own daemon does, or better where JSON-RPC requires
// it. TestAIWGsCommandLine checks the members that AIWG's command line reads.
func TestSocketServesAIWG(t *testing.T) {
	s := newSite(parallel(t))
	editor := s.start()
	require.NotZero(t, hubOf(t, editor))
	c := s.lines()

	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":1,"result":\{"pong":true,"timestamp":"[-0-9]{10}T[:0-9]{8}\.\d{3}Z"\}\}$`, c.ask(`{"jsonrpc": "2.0", "id": 1, "method": "ping"}`))
	assert.Equal(t, 2, c.status().Subsystems.IPC.Clients, "the editor and this one")

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
	c.call("task.cancel", object{"taskId": begun.TaskID}, nil)
	c.awaitNote("event.taskCancelled", begun.TaskID)
	c.call("chat.send", object{"message": "quiet"}, &begun)
	c.awaitNote("event.taskCompleted", begun.TaskID)

	var list []json.RawMessage
	c.call("task.list", object{"limit": 3}, &list)
	assert.Len(t, list, 3)
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

	// The hub answers an invalid line with an error, and serves the next line.
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
	assert.Equal(t, `{"jsonrpc":"2.0","id":"after","result":[7]}`, c.ask(`{"jsonrpc":"2.0","id":"after","method":"echo","params":[7]}`), "a notification has no response")
	c.conn.Close()
	editor.leave()
}

// The hub broadcasts about tasks only to clients that have called a method of the task family.
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
	// The broadcasts include a task that a client of another family begins.
	l := other.launch("quiet", "")
	for _, c := range []*lineClient{speaks, listens} {
		c.awaitNote("event.taskStarted", l.TaskID)
		c.awaitNote("event.taskCompleted", l.TaskID)
	}
	for _, c := range []*lineClient{other, silent} { // the response follows any earlier broadcast
		c.call("ping", object{}, nil)
		assert.Empty(t, c.noted())
	}
	for _, c := range []*lineClient{speaks, listens, other, silent} {
		c.conn.Close()
	}
	editor.leave()
}

// A client of HumanLayer receives events in its own format. The same connection still serves its
// requests. TestHumanLayersTerminalClient checks the members that HumanLayer's client reads.
func TestSocketServesHumanLayer(t *testing.T) {
	s := newSite(parallel(t))
	editor := s.start()
	c := s.lines()

	before := len(c.said())
	assert.Regexp(t, `^\{"jsonrpc":"2\.0","id":77,"result":\{"subscription_id":"sub_[-0-9a-f]+","message":"Subscription established`, c.ask(`{"jsonrpc":"2.0","id":77,"method":"Subscribe","params":{}}`), "the response comes first")

	l := c.begins("launchSession", object{"query": "quiet permit:1", "model": "sonnet", "working_dir": s.root})
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
	assert.Empty(t, c.noted(), "the client has not called the task family")
	c.conn.Close()
	editor.leave()
}

// No line exceeds lineAtMost, however long a conversation is.
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
	assert.Greater(t, len(editor.conversation(l.SessionID)), 5_000_000, "an editor receives the whole conversation")

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

// A client of the socket can end only its own connection. The same socket speaks frames to a client
// that begins with a header.
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

		framed := framesOn(t, connect(t, s.socketPath()))
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

// requireSocket requires that the hub answers on a socket, which only its user can open.
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

// A --listen flag opens another socket, at any path.
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
			continue // its directory existed before
		}
		requireMode(t, filepath.Dir(path), 0o700)
	}
	requireMode(t, filepath.Join(s.root, ".aiwg"), 0o700)

	// All sockets belong to one hub. After a kill of that hub they belong to the next one.
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

	// The hub does not replace an existing file that is no socket. It opens the other sockets.
	require.NoError(t, os.WriteFile(paths[2], []byte("mine"), 0o600))
	third := s.start()
	requireSocket(t, paths[0])
	third.requireCore()
	third.leave()
	log := readFile(t, filepath.Join(s.state(), "daemon.log"))
	assert.Contains(t, log, "cannot open the socket of --listen: listening on "+paths[2])
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

// If the path of a hub's socket is too long, the socket is in XDG_RUNTIME_DIR. A file in the state
// directory contains its path.
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
	}, watchdog/3, pollEvery, "no file contains the path of the socket")
	require.Equal(t, filepath.Join(short, "duet"), filepath.Dir(where))
	require.Equal(t, where, s.socketPath())
	requireSocket(t, where)
	requireMode(t, filepath.Dir(where), 0o700)
	requireMode(t, filepath.Join(s.state(), "socket"), 0o600)
	requireNoFile(t, filepath.Join(s.state(), "duet.sock"))

	// A client with another environment finds the socket. After a kill of the hub, the next hub
	// opens a socket.
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

// The results of methods match the schemas in rpc.discover, so that programmers can generate
// clients from them.
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
