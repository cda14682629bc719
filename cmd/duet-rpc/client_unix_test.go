//go:build unix

package main_test

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A site is a project with its own user. No other test sees its files, and its HOME identifies its
// processes.
type site struct {
	t    testing.TB
	root string // the project's directory
	home string // unique on the machine
	args []string
	env  []string

	binary string // another binary than program; empty: program

	watchdog time.Duration // the limit for its processes; 0: the default

	// The site stops its daemon after the last client of start or command, because most tests
	// examine what a client leaves behind.
	clients     *atomic.Int32
	daemonStays *atomic.Bool // the test itself ends the daemon
	others      *atomic.Bool // the site has uncounted clients, for which the daemon stays
}

// patiently has the program wait for its hub as long as a slow machine needs. A later flag of a
// test wins.
const patiently = "--answer-within=1m"

// newSite returns a site whose default agent is the demo agent without pauses. The user's
// configuration also contains more.
func newSite(t testing.TB, more ...string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, root: filepath.Join(dir, "project"), home: filepath.Join(dir, "home"), clients: new(atomic.Int32), daemonStays: new(atomic.Bool), others: new(atomic.Bool)}
	require.NoError(t, os.MkdirAll(s.root, 0o755))
	require.NoError(t, os.MkdirAll(s.home, 0o755))
	s.agents(strings.Join(more, ""))
	t.Cleanup(func() {
		s.endDaemons()
		s.requireNobody("when the test has ended")
	})
	return s
}

// agents writes the user's configuration: the demo agent, and more.
func (s *site) agents(more string) {
	s.t.Helper()
	agent := fastProgram(s.t)                          // the tests examine the agent's client
	checkpoints := "checkpoints = { enabled = false }" // checkpoints run git for each prompt
	if strings.Contains(more, "[checkpoints]") {
		checkpoints = ""
	}
	text := fmt.Sprintf(`default_agent = "scripted"
%s
[agents.scripted]
driver = "acp"
command = [%q, "demo-agent"]
env = { DUET_DEMO_DELAY = "0", DUET_DEMO_STATE = %q }
%s`, checkpoints, agent, filepath.Join(s.home, "demo"), more)
	path := filepath.Join(s.home, "config", "duet", "config.toml")
	writeFile(s.t, path, text)
}

// state returns the project's state directory.
func (s *site) state() string {
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		root = s.root
	}
	dir, err := project.StateDirOf(func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(s.home, "state")}[name]
	}, root)
	require.NoError(s.t, err)
	return dir
}

func (s *site) database() string { return filepath.Join(s.state(), "duet.db") }

// launch returns the start of the program as an uncounted client.
func (s *site) launch(args ...string) launch {
	s.others.Store(true)
	l := s.counted()
	l.args = append(args, l.args...)
	return l
}

// shellCommand returns a shell command in the project, as an uncounted client.
func (s *site) shellCommand(args ...string) *exec.Cmd {
	l := s.launch()
	cmd := exec.Command(program, append(l.args, args...)...)
	cmd.Dir, cmd.Env = s.root, append(append(cleanEnvironment(), homeless(s.t)...), l.env...)
	return cmd
}

// counted is launch for a client that the caller counts.
func (s *site) counted() launch {
	return launch{
		binary: s.binary,
		first:  []string{patiently},
		args:   append([]string{"--root", s.root}, s.args...),
		env: append([]string{
			"HOME=" + s.home, "DUET_DEMO_DELAY=0",
			"XDG_CONFIG_HOME=" + filepath.Join(s.home, "config"), "XDG_STATE_HOME=" + filepath.Join(s.home, "state"),
			"XDG_DATA_HOME=" + filepath.Join(s.home, "data"), "XDG_CACHE_HOME=" + filepath.Join(s.home, "cache"),
		}, s.env...),
		watchdog: s.watchdog,
	}
}

// start starts the program as an editor, and counts the client.
func (s *site) start() *client {
	c := newClient(s.counted().start(s.t))
	c.site = s
	s.clients.Add(1)
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.patient = s.watchdog * 2 / 3
	return c
}

// open is start with a subscription to all events.
func (s *site) open() *client {
	s.t.Helper()
	c := s.start()
	c.subscribe()
	return c
}

// newEditorSite returns a site and an editor with a subscription to all events.
func newEditorSite(t testing.TB, more ...string) (*site, *client) {
	t.Helper()
	s := newSite(t, more...)
	return s, s.open()
}

// openDatabase opens the site's database. The caller only reads, or has ended the hub.
func (s *site) openDatabase(query string) *sql.DB {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.database()+query)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { db.Close() })
	return db
}

// daemonLog returns the log of the site's daemons.
func (s *site) daemonLog() string {
	log, _ := os.ReadFile(filepath.Join(s.state(), "daemon.log"))
	return string(log)
}

// left uncounts a client. After the last one it stops the hub, unless the test keeps the hub.
func (s *site) left() {
	if s.clients.Add(-1) <= 0 && !s.daemonStays.Load() && !s.others.Load() {
		stopHub(s.t, s.state())
	}
}

// endDaemons stops the site's daemons, including those of other roots.
func (s *site) endDaemons() {
	states, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(s.state())), "projects", "*"))
	for _, dir := range states {
		stopHub(s.t, dir)
	}
}

// requireNobody requires that the site's processes end. It stops the hub first, unless a client or
// the test keeps the hub.
func (s *site) requireNobody(when string) {
	s.t.Helper()
	if s.clients.Load() <= 0 && !s.daemonStays.Load() {
		stopHub(s.t, s.state())
	}
	var left []string
	require.Eventually(s.t, func() bool { left = s.processes(); return len(left) == 0 }, time.Minute, 5*time.Millisecond,
		"processes are left %s: %s", when, deferred(func() string { return strings.Join(left, "; ") }))
}

// deferred is a failure message that String builds when the test prints it.
type deferred func() string

func (d deferred) String() string { return d() }

// suspend sends SIGSTOP to a process and waits until all its threads have stopped.
// kill(2) returns earlier: on a busy machine the process can finish a turn first.
// Only Linux shows the state of threads.
func suspend(t testing.TB, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	if runtime.GOOS != "linux" {
		return
	}
	require.Eventually(t, func() bool { return len(runningThreads(pid)) == 0 }, watchdog, pollEvery,
		"process %d did not stop", pid)
}

// suspendHub is suspend for a daemon. The test's cleanup kills the daemon.
func suspendHub(t testing.TB, pid int) {
	t.Helper()
	suspend(t, pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
}

// runningThreads returns the threads of a process that are not stopped.
func runningThreads(pid int) (running []string) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil { // the thread has ended
			continue
		}
		// The state follows the name, which is in parentheses and may contain any character.
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") {
			running = append(running, path)
		}
	}
	return running
}

// A peer is the common part of all clients, whatever their framing: it sends requests and stores
// received messages. Its methods are safe for concurrent use.
type peer struct {
	t      testing.TB
	write  func(message string) error // frames and sends a message
	closed chan struct{}              // closes after the last message

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	serial  int
	replies map[string]reply // by the JSON text of the id
	events  []event
	heard   func(event) // receives the events instead of the field
	notes   []taskNote
	note    func(taskNote) // receives the notes instead of the field
	patient time.Duration  // limit of a wait; 0: less than a process lives
	err     error          // the reason for the end of the messages
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`
}

type wireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *wireError) Error() string { return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data) }

func (e *wireError) kind() string {
	var d struct{ Kind string }
	_ = json.Unmarshal(e.Data, &d)
	return d.Kind
}

// An event is an event as a subscriber receives it.
type event struct {
	Seq  int64
	Type string
	Raw  json.RawMessage // its data
	Data eventData
}

// eventData holds the members of event data that the tests check.
type eventData struct {
	SessionID  string          `json:"session_id"`
	TaskID     string          `json:"task_id"`
	ThreadID   string          `json:"thread_id"`
	State      string          `json:"state"`
	ErrorCode  string          `json:"error_code"`
	Error      string          `json:"error"`
	ApprovalID string          `json:"approval_id"`
	ToolName   string          `json:"tool_name"`
	ToolInput  json.RawMessage `json:"tool_input"`
	Stale      bool            `json:"stale"`
	Decision   string          `json:"decision"`
	MessageID  string          `json:"message_id"`
	Delta      string          `json:"delta"`
	Subtype    string          `json:"subtype"`
	Content    string          `json:"content"`
	Role       string          `json:"role"`
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Update     json.RawMessage `json:"update"`
	FromSeq    int64           `json:"from_seq"`
	ToSeq      int64           `json:"to_seq"`
}

// A taskNote is a broadcast about a task.
type taskNote struct {
	Method string `json:"method"`
	Params struct {
		TaskID string `json:"taskId"`
	} `json:"params"`
}

// newPeer returns a peer that sends with write. The caller starts read.
func newPeer(t testing.TB, write func(string) error) *peer {
	p := &peer{t: t, write: write, closed: make(chan struct{}), replies: make(map[string]reply)}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// read passes each message from next to take, until an error. It holds the lock during take.
func (p *peer) read(next func() ([]byte, error), take func([]byte) error) {
	defer close(p.closed)
	for {
		body, err := next()
		p.mu.Lock()
		if err == nil {
			err = take(body)
		}
		p.err = err
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// An eventParams is an event in either form: native, or HumanLayer's in both framings.
type eventParams struct {
	Seq  int64           `json:"seq"`
	Type string          `json:"type"` // of a heartbeat
	Kind string          `json:"kind"`
	Turn string          `json:"turn_uuid"`
	Data json.RawMessage `json:"data"`

	Event struct {
		Seq  int64           `json:"seq"`
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	} `json:"event"`
}

// takeEvent stores an event. The caller holds the lock.
func (p *peer) takeEvent(in eventParams) error {
	raw := in.Event.Data
	if in.Kind != "" {
		raw = in.Data
	}
	e := event{Seq: max(in.Seq, in.Event.Seq), Type: cmp.Or(in.Kind, in.Event.Type), Raw: raw, Data: eventData{SessionID: in.Turn}}
	if err := json.Unmarshal(raw, &e.Data); err != nil {
		return fmt.Errorf("%w: %.300q", err, raw)
	}
	if p.heard != nil {
		p.heard(e)
		return nil
	}
	p.events = append(p.events, e)
	return nil
}

// takeNote stores a broadcast about a task. The caller holds the lock.
func (p *peer) takeNote(message []byte) error {
	var n taskNote
	if err := json.Unmarshal(message, &n); err != nil {
		return err
	}
	if p.note != nil {
		p.note(n)
		return nil
	}
	p.notes = append(p.notes, n)
	return nil
}

// requireGoodEnd waits for the end of the messages and requires that all of them were valid.
func (p *peer) requireGoodEnd() {
	p.t.Helper()
	<-p.closed
	p.mu.Lock()
	defer p.mu.Unlock()
	if !errors.Is(p.err, io.EOF) && !errors.Is(p.err, io.ErrUnexpectedEOF) && !errors.Is(p.err, os.ErrClosed) {
		require.NoError(p.t, p.err)
	}
}

// errGone is the error of a request to a process that has ended.
var errGone = errors.New("the process has gone")

// try sends a request and waits for its response. The error is errGone, a *wireError or a timeout.
func (p *peer) try(method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.serial++
	id := strconv.Itoa(p.serial)
	// The lock keeps two requests from mixing.
	err = p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, raw))
	p.mu.Unlock()
	if err != nil {
		return errGone
	}
	r, err := p.reply(id)
	switch {
	case err != nil:
		return err
	case r.Error != nil:
		return r.Error
	case result == nil:
		return nil
	}
	return json.Unmarshal(r.Result, result)
}

// tryAgain is try with one retry after hub_lost.
func (p *peer) tryAgain(method string, params, result any) error {
	err := p.try(method, params, result)
	var lost *wireError
	if errors.As(err, &lost) && lost.kind() == "hub_lost" {
		return p.try(method, params, result)
	}
	return err
}

// reply waits for the response to a request. id is the JSON text of the request's id.
func (p *peer) reply(id string) (reply, error) {
	late, stop := p.deadline()
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if r, ok := p.replies[id]; ok {
			delete(p.replies, id)
			return r, nil
		}
		if p.err != nil {
			return reply{}, errGone
		}
		if *late {
			return reply{}, errors.New("no reply came")
		}
		p.changed.Wait()
	}
}

// deadline wakes waiting goroutines after the limit of a wait. The lock guards late.
func (p *peer) deadline() (late *bool, stop func() bool) {
	late = new(bool)
	p.mu.Lock()
	patient := cmp.Or(p.patient, watchdog*2/3)
	p.mu.Unlock()
	timer := time.AfterFunc(patient, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*late = true
		p.changed.Broadcast()
	})
	return late, timer.Stop
}

// call is try for a request that must succeed.
func (p *peer) call(method string, params, result any) {
	p.t.Helper()
	require.NoError(p.t, p.try(method, params, result), "%s %v", method, params)
}

// refused returns the error of a request that must fail.
func (p *peer) refused(method string, params any) *wireError {
	p.t.Helper()
	err := p.try(method, params, nil)
	var e *wireError
	require.ErrorAs(p.t, err, &e, "%s %v", method, params)
	return e
}

// until waits until done returns true. It calls done with the lock held.
func (p *peer) until(what string, done func() bool) {
	p.t.Helper()
	late, stop := p.deadline()
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !done() {
		if p.err != nil || *late {
			require.Fail(p.t, "timeout, or the end of the messages", "%s: %v; %d events%s\n%d notes %v", what, p.err, len(p.events), tailOf(p.events), len(p.notes), p.notes[max(0, len(p.notes)-12):])
		}
		p.changed.Wait()
	}
}

// await waits for an event that fits, and considers earlier events first.
func (p *peer) await(what string, fits func(event) bool) (found event) {
	p.t.Helper()
	next := 0
	p.until(what, func() bool {
		for ; next < len(p.events); next++ {
			if fits(p.events[next]) {
				found = p.events[next]
				return true
			}
		}
		return false
	})
	return found
}

// awaitNote waits for a broadcast about a task.
func (p *peer) awaitNote(method, task string) {
	p.t.Helper()
	p.until(method+" of "+task, func() bool { return countNotes(p.notes, method, task) > 0 })
}

// count returns the number of broadcasts of a method about a task so far.
func (p *peer) count(method, task string) int { return countNotes(p.noted(), method, task) }

func countNotes(notes []taskNote, method, task string) (n int) {
	for _, note := range notes {
		if note.Method == method && note.Params.TaskID == task {
			n++
		}
	}
	return n
}

// awaitState waits until a session reaches a state.
func (p *peer) awaitState(session, state string) event {
	p.t.Helper()
	return p.await(fmt.Sprintf("session %s becoming %s", session, state), func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.SessionID == session && e.Data.State == state
	})
}

// awaitEnd waits until a session has ended.
func (p *peer) awaitEnd(session string) event {
	p.t.Helper()
	return p.await("the end of session "+session, func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.SessionID == session && ended(e.Data.State)
	})
}

func ended(state string) bool {
	switch state {
	case "completed", "failed", "timed_out", "interrupted", "cancelled":
		return true
	}
	return false
}

// launch starts a session.
func (p *peer) launch(query, agent string) launched {
	p.t.Helper()
	return p.begins("launchSession", object{"query": query, "agent": agent})
}

// begins starts or continues a session.
func (p *peer) begins(method string, params object) (l launched) {
	p.t.Helper()
	p.call(method, params, &l)
	return l
}

// runs starts a session with the default agent and requires its completion.
func (p *peer) runs(query string) launched {
	p.t.Helper()
	l := p.launch(query, "")
	p.completes(l)
	return l
}

// completes waits for the end of a session and requires its completion.
func (p *peer) completes(l launched) {
	p.t.Helper()
	end := p.awaitEnd(l.SessionID)
	require.Equal(p.t, "completed", end.Data.State, "%s", end.Raw)
}

// endsAs waits for the end of a session and requires its state and error code.
func (p *peer) endsAs(session, state, code string) event {
	p.t.Helper()
	end := p.awaitEnd(session)
	require.Equal(p.t, state, end.Data.State, "%s", end.Raw)
	require.Equal(p.t, code, end.Data.ErrorCode, "%s", end.Raw)
	return end
}

// awaitText waits for a text of a session's agent.
func (p *peer) awaitText(l launched) event {
	p.t.Helper()
	return p.await("text", func(e event) bool { return e.Type == "message_delta" && e.Data.SessionID == l.SessionID })
}

// awaitThread waits until a session of a conversation has completed.
func (p *peer) awaitThread(thread string) event {
	p.t.Helper()
	return p.await("the end of a session of "+thread, func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == thread && e.Data.State == "completed"
	})
}

// awaitQuestionOrEnd waits for the first question of a session, or its end.
func (p *peer) awaitQuestionOrEnd(l launched) event {
	p.t.Helper()
	return p.await("a question or the end", func(e event) bool {
		return e.Data.SessionID == l.SessionID && (e.Type == "new_approval" || e.Type == "session_status_changed" && ended(e.Data.State))
	})
}

// awaitAnswer waits for the decision on a question.
func (p *peer) awaitAnswer(approval string) event {
	p.t.Helper()
	return p.await("the answer", func(e event) bool { return e.Type == "approval_resolved" && e.Data.ApprovalID == approval })
}

// interrupt interrupts a session and waits for its end.
func (p *peer) interrupt(l launched) {
	p.t.Helper()
	p.call("interruptSession", object{"session_id": l.SessionID}, nil)
	end := p.awaitEnd(l.SessionID)
	require.Equal(p.t, "interrupted", end.Data.State, "%s", end.Raw)
}

// awaitQuestion waits for a question of a session.
func (p *peer) awaitQuestion(session string) event {
	p.t.Helper()
	return p.await("a question of session "+session, func(e event) bool {
		return e.Type == "new_approval" && e.Data.SessionID == session
	})
}

// asks starts a session and waits for its question.
func (p *peer) asks(query, agent string) (launched, event) {
	p.t.Helper()
	l := p.launch(query, agent)
	return l, p.awaitQuestion(l.SessionID)
}

// approve approves a question.
func (p *peer) approve(approval string) {
	p.t.Helper()
	p.call("sendDecision", object{"approval_id": approval, "decision": "approve"}, nil)
}

// issues returns the status and the issues of health.
func (p *peer) issues() (status string, issues []string) {
	p.t.Helper()
	var r struct {
		Status string
		Issues []string
	}
	p.call("health", object{}, &r)
	return r.Status, r.Issues
}

// requireIssue requires that the issues of health contain a text.
func (p *peer) requireIssue(text string) {
	p.t.Helper()
	_, issues := p.issues()
	require.Contains(p.t, strings.Join(issues, "\n"), text)
}

// requireDegraded is requireIssue with the status degraded. It returns all issues.
func (p *peer) requireDegraded(text string) []string {
	p.t.Helper()
	status, issues := p.issues()
	require.Equal(p.t, "degraded", status)
	require.Contains(p.t, strings.Join(issues, "\n"), text)
	return issues
}

// requireNoIssue requires the status ok and no issues.
func (p *peer) requireNoIssue() {
	p.t.Helper()
	status, issues := p.issues()
	require.Equal(p.t, "ok", status, "%v", issues)
	require.Empty(p.t, issues)
}

// seen returns the events so far.
func (p *peer) seen() []event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]event(nil), p.events...)
}

func (p *peer) noted() []taskNote {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]taskNote(nil), p.notes...)
}

// tailOf returns the last events as readable text.
func tailOf(events []event) string {
	var b strings.Builder
	for _, e := range events[max(0, len(events)-12):] {
		fmt.Fprintf(&b, "\n%d %s %.300s", e.Seq, e.Type, e.Raw)
	}
	return b.String()
}

// An item is an item of a conversation, as getConversation returns it.
type item struct {
	Type     string `json:"event_type"`
	Role     string `json:"role"`
	Content  string `json:"content"`
	ID       string `json:"tool_id"`
	Tool     string `json:"tool_name"`
	Parent   string `json:"parent_tool_use_id"`
	Input    string `json:"tool_input_json"`
	Status   string `json:"status"`
	Approval string `json:"approval_status"`
	By       string `json:"refused_by"`
	Why      string `json:"refusal"`
	Result   string `json:"tool_result_content"`
}

// items returns all items of a session's conversation.
func (p *peer) items(session string) []item {
	p.t.Helper()
	var r struct{ Events []item }
	p.call("getConversation", object{"session_id": session}, &r)
	return r.Events
}

// next continues a session.
func (c *client) next(from launched, query string) launched {
	c.t.Helper()
	return c.begins("continueSession", object{"session_id": from.SessionID, "query": query})
}

// goesOn continues a session with a prompt and requires its completion.
func (c *client) goesOn(from launched, query string) launched {
	c.t.Helper()
	l := c.next(from, query)
	c.completes(l)
	return l
}

// A client is an editor at the pipes of a process that it has started.
type client struct {
	*process
	*peer
	t    testing.TB
	site *site // nil: the test ends its hub
}

func newClient(p *process) *client {
	c := &client{process: p, t: p.t}
	c.peer = newPeer(p.t, func(message string) error {
		_, err := io.WriteString(p.stdin, framed(message))
		return err
	})
	go c.read(c.frames.next, c.take)
	return c
}

// take stores a message. The caller holds the lock.
func (c *client) take(body []byte) error {
	var m struct {
		ID     *int        `json:"id"`
		Method string      `json:"method"`
		Params eventParams `json:"params"`
		reply
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("%w: %.300s", err, body)
	}
	if !utf8.Valid(body) {
		return fmt.Errorf("not UTF-8: %.300q", body)
	}
	switch {
	case m.Method == "event":
		return c.takeEvent(m.Params)
	case strings.HasPrefix(m.Method, "event.task"):
		return c.takeNote(body)
	case m.Method == "" && m.ID != nil:
		c.replies[strconv.Itoa(*m.ID)] = m.reply
	case m.Method == "": // an error without one of our requests
		return fmt.Errorf("a message that is not expected: %.300s", body)
	}
	return nil
}

// subscribe subscribes to all events from the first one.
func (c *client) subscribe() {
	c.t.Helper()
	c.call("Subscribe", object{"since": 0}, nil)
}

// A launched is the result of launchSession and continueSession.
type launched struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`
	ThreadID  string `json:"thread_id"`
}

// approveAll approves every question of a session until its end, and returns the event of its end.
func (c *client) approveAll(session string) event {
	c.t.Helper()
	done := make(map[string]bool)
	for {
		e := c.await("a question or the end of session "+session, func(e event) bool {
			return e.Data.SessionID == session &&
				(e.Type == "new_approval" && !done[e.Data.ApprovalID] || e.Type == "session_status_changed" && ended(e.Data.State))
		})
		if e.Type != "new_approval" {
			return e
		}
		done[e.Data.ApprovalID] = true
		err := c.try("sendDecision", object{"approval_id": e.Data.ApprovalID, "decision": "approve"}, nil)
		require.NoError(c.t, err)
	}
}

// A shownSession is a session in the result of getSessionState or listSessions.
type shownSession struct {
	ID        string `json:"id"`
	TaskID    string `json:"task_id"`
	ThreadID  string `json:"thread_id"`
	Query     string `json:"query"`
	State     string `json:"state"`
	Status    string
	Title     string
	Error     string `json:"error"`
	ErrorCode string `json:"error_code"`

	Started     time.Time             `json:"started_at"`
	Completed   time.Time             `json:"completed_at"`
	SilentSince *time.Time            `json:"silent_since"`
	AuthMethods []struct{ ID string } `json:"auth_methods"`
	Agent       reportedSession       `json:"agent_session"`
}

// A reportedSession holds the members of an agent's report about its session that the tests check.
type reportedSession struct{ Commands []struct{ Name string } }

// sessions returns the sessions of listSessions.
func (c *client) sessions() []shownSession {
	c.t.Helper()
	var r struct{ Sessions []shownSession }
	c.call("listSessions", object{}, &r)
	return r.Sessions
}

func (p *peer) session(id string) shownSession {
	p.t.Helper()
	var r struct{ Session shownSession }
	require.NoError(p.t, p.tryAgain("getSessionState", object{"session_id": id}, &r))
	return r.Session
}

// A daemonStatus is the result of daemon.status.
type daemonStatus struct {
	PID        int
	Health     string
	Issues     []string
	Subsystems struct {
		IPC     struct{ Clients int }
		Watcher struct{ Directories int } `json:"file_watcher"`
		Store   struct {
			LastSeq int64 `json:"last_seq"`
		}
	}
}

func (p *peer) status() (s daemonStatus) {
	p.t.Helper()
	p.call("daemon.status", object{}, &s)
	return s
}

// approval returns the result of getApproval.
func (p *peer) approval(id string) shownApproval {
	p.t.Helper()
	var r struct{ Approval shownApproval }
	p.call("getApproval", object{"approval_id": id}, &r)
	return r.Approval
}

// A shownApproval is an approval in the result of fetchApprovals or getApproval.
type shownApproval struct {
	ID        string          `json:"id"`
	SessionID string          `json:"session_id"`
	ThreadID  string          `json:"thread_id"`
	Status    string          `json:"status"`
	Stale     bool            `json:"stale"`
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	Reopens   string          `json:"reopens"`
	Reopened  string          `json:"reopened"`
	Reopening string          `json:"reopened_as"`
	TakenAt   string          `json:"taken_at"`
}

func (c *client) pending() map[string]shownApproval {
	c.t.Helper()
	var r struct{ Approvals []shownApproval }
	c.call("fetchApprovals", object{}, &r)
	m := make(map[string]shownApproval)
	for _, a := range r.Approvals {
		m[a.ID] = a
	}
	return m
}

// conversation returns the agent's text in a session's conversation.
func (c *client) conversation(session string) (said string) {
	c.t.Helper()
	for _, e := range c.items(session) {
		if e.Type == "message" && e.Role == "assistant" {
			said += e.Content
		}
	}
	return said
}

// crash kills the program and the site's hub, as a system without memory does, and reads the
// remaining output.
func (c *client) crash() {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Kill()) // first: a living client would start another hub
	if c.site != nil {
		c.site.crashHub()
		defer c.site.left()
	}
	<-c.ended
	c.requireGoodEnd()
}

// leave has clients leave, one after the other.
func leave(clients ...*client) {
	for _, c := range clients {
		c.t.Helper()
		c.leave()
	}
}

// leave closes the program's stdin, as an editor does at its end, and requires the end of the
// program.
func (c *client) leave() {
	c.t.Helper()
	watch := startStopwatch(c.t)
	c.closeStdin()
	c.requireGoneWithin(goneAfter+raceSlack, watch)
	c.requireGoodEnd()
	if c.site != nil {
		c.site.left()
	}
}

// raceSlack is the extra time that a busy machine and the race detector may need.
const raceSlack = 500 * time.Millisecond

// requireCore requires that the methods without a store work.
func (c *client) requireCore() {
	c.t.Helper()
	var pong struct{ Pong bool }
	c.call("ping", object{}, &pong)
	require.True(c.t, pong.Pong)
	c.call("initialize", object{}, nil)
	c.call("version", object{}, nil)
	c.call("listMethods", object{}, nil)
}

// requireUnavailable requires that methods of each family report the missing store and the reason.
func (c *client) requireUnavailable(why string) {
	c.t.Helper()
	for method, params := range map[string]object{
		"task.stats": {}, "task.submit": {"prompt": "quiet"}, "listSessions": {}, "launchSession": {"query": "quiet"},
		"fetchApprovals": {}, "Subscribe": {}, "execute_prompt": {"session_id": "s", "task_id": "t", "prompt": "quiet", "agentic_tool": "demo"},
	} {
		e := c.refused(method, params)
		require.Equal(c.t, "subsystem_unavailable", e.kind(), "%s: %v", method, e)
		require.Contains(c.t, e.Message, why, method)
		require.LessOrEqual(c.t, strings.Count(e.Message, "sessions are not available"), 1, e.Message)
	}
}

// socketPath returns the path of the hub's socket, also while no hub runs.
func (s *site) socketPath() string {
	s.t.Helper()
	path, err := socket.Find(s.state())
	require.NoError(s.t, err)
	return path
}

// begin starts a daemon if none runs.
func (s *site) begin() {
	s.t.Helper()
	if (project.Project{StateDir: s.state()}).Unlocked() {
		stays := s.daemonStays.Load()
		_, err := s.command("daemon", "start")
		require.NoError(s.t, err)
		s.daemonStays.Store(stays)
	}
}

// connect connects to the socket of a hub that has just started.
func connect(t testing.TB, path string) (conn *net.UnixConn) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog/3)
		defer cancel()
		c, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			return false
		}
		conn = c.(*net.UnixConn)
		return true
	}, watchdog/3, pollEvery, "no process listens on %s", path)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A lineClient sends and receives one JSON value per line, as the clients of AIWG and HumanLayer
// do.
type lineClient struct {
	*peer
	conn net.Conn

	// Guarded by the peer's lock.
	lines   []string // all received lines, unless quiet
	quiet   bool
	longest int // the length of the longest line, in bytes
}

func newLineClient(t testing.TB, path string) *lineClient { return linesOn(t, connect(t, path)) }

func linesOn(t testing.TB, conn net.Conn) *lineClient {
	c := &lineClient{conn: conn}
	c.peer = newPeer(t, func(message string) error {
		_, err := io.WriteString(conn, message+"\n")
		return err
	})
	c.serial = 1_000_000 // far from the ids in requests that tests write themselves
	in := bufio.NewReaderSize(conn, 16<<10)
	go c.read(func() ([]byte, error) { return in.ReadBytes('\n') }, c.take)
	return c
}

// lines returns a client on the project's own socket. It starts a daemon if none runs.
func (s *site) lines() *lineClient {
	s.t.Helper()
	s.begin()
	return newLineClient(s.t, s.socketPath())
}

// take stores a line. The caller holds the lock.
func (c *lineClient) take(line []byte) error {
	c.longest = max(c.longest, len(line))
	if !c.quiet {
		c.lines = append(c.lines, strings.TrimSuffix(string(line), "\n"))
	}
	if line[0] == '[' { // replies to a batch
		return nil
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params eventParams     `json:"params"`
		reply
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("%w: %.300q", err, line)
	}
	switch {
	case m.Method == "event":
		return c.takeEvent(m.Params)
	case m.Method != "":
		return c.takeNote(line)
	case m.ID != nil:
		c.replies[string(m.ID)] = m.reply
	default:
		var r eventParams
		if err := json.Unmarshal(m.Result, &r); err != nil {
			return fmt.Errorf("%w: %.300q", err, line)
		}
		if r.Type == "heartbeat" {
			return nil
		}
		return c.takeEvent(r)
	}
	return nil
}

// say sends a line unchanged.
func (c *lineClient) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, line+"\n")
	require.NoError(c.t, err)
}

// said returns the lines so far.
func (c *lineClient) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.lines...)
}

// requireClosed requires that the hub ends the connection.
func (c *lineClient) requireClosed() {
	c.t.Helper()
	select {
	case <-c.closed:
	case <-time.After(watchdog / 3):
		require.Fail(c.t, "the connection is not closed")
	}
}

// framesOn returns an editor's client on a connection to a socket.
func framesOn(t testing.TB, conn *net.UnixConn) *client {
	t.Helper()
	file, err := conn.File()
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return newClient(&process{t: t, stdin: file, stdout: file, frames: newFrameReader(file), log: &testkit.Text{}})
}

// lockHolder returns the process id in the hub's lock.
func (s *site) lockHolder() int {
	s.t.Helper()
	text := readFile(s.t, s.state()+"/lock")
	pid, _ := strconv.Atoi(strings.TrimSpace(text))
	return pid
}

// crashHub kills the hub and waits for the release of its lock. A client that needs a hub starts
// another.
func (s *site) crashHub() {
	s.t.Helper()
	pid := s.lockHolder()
	hub, err := os.FindProcess(pid)
	require.NoError(s.t, err)
	require.NoError(s.t, hub.Kill())
	s.awaitRelease(pid)
}

// awaitRelease waits until a process no longer holds the lock. The next process may take the lock
// before this function sees it free.
func (s *site) awaitRelease(pid int) {
	s.t.Helper()
	released := project.Project{StateDir: s.state()}.Released()
	for s.lockHolder() == pid {
		select {
		case <-released:
			return
		case <-time.After(pollEvery):
		}
	}
}

// hubOf returns the process id of the hub that answers a client.
func hubOf(t testing.TB, c interface {
	tryAgain(method string, params, result any) error
},
) int {
	t.Helper()
	var status struct{ PID int }
	require.NoError(t, c.tryAgain("daemon.status", object{}, &status))
	return status.PID
}
