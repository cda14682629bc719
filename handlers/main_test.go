package handlers_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/handlers"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/dialect/native"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/server"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		all := true // whether all tests ran
		for _, choice := range []string{"test.run", "test.skip", "test.list"} {
			all = all && flag.Lookup(choice).Value.String() == ""
		}
		if names := undescribed(); status == 0 && all && len(names) > 0 {
			fmt.Println("FAIL: no test checked a result of these methods against its schema:", strings.Join(names, ", "))
			status = 1
		}
		os.Exit(status)
	}))
}

// patience limits each wait of a test.
const patience = time.Minute

// must returns the value of a call that may not fail: must(f(x))(t).
func must[T any](value T, err error) func(t *testing.T, why ...any) T {
	return func(t *testing.T, why ...any) T {
		t.Helper()
		require.NoError(t, err, why...)
		return value
	}
}

// agents knows one agent, called fake.
type agents struct{}

func (agents) Resolve(name string) (config.Agent, error) {
	if name != "" && name != "fake" {
		return config.Agent{}, &config.UnknownAgentError{Name: name, Known: []string{"fake"}}
	}
	return config.Agent{Name: "fake", Driver: "acp", Command: []string{"fake"}}, nil
}

// A turn is one prompt as the test's agent receives it.
type turn struct {
	catalog.ExecutePromptParams
	daemon   catalog.Daemon
	sequence int64
}

func (x *turn) report(kind string, data any) {
	x.sequence++
	raw, _ := json.Marshal(data)
	_ = x.daemon.ReportMessage(context.Background(), catalog.ReportMessageParams{
		SessionToken: x.SessionToken, TaskID: x.TaskID, Sequence: x.sequence, EventType: kind, EventData: raw,
	})
}

func (x *turn) say(text string) {
	x.report(catalog.EventContentDelta, catalog.ContentDelta{Delta: catalog.Delta{Text: text}})
}

// ask requests permission for a tool call, and reports that the agent took the answer.
func (x *turn) ask(ctx context.Context, p catalog.RequestPermissionParams) catalog.RequestPermissionResult {
	p.SessionToken, p.TaskID = x.SessionToken, x.TaskID
	r, err := x.daemon.RequestPermission(ctx, p)
	if err != nil {
		r.Reason = err.Error()
	}
	if r.ApprovalID != "" { // the executor reports that the agent took the answer
		raw, _ := json.Marshal(catalog.PermissionTaken{ApprovalIDs: []string{r.ApprovalID}})
		_ = x.daemon.ReportMessage(context.Background(), catalog.ReportMessageParams{
			SessionToken: x.SessionToken, TaskID: x.TaskID, EventType: catalog.EventPermissionTaken, EventData: raw,
		})
	}
	return r
}

type play func(context.Context, *turn) catalog.ExecutePromptResult

var done = catalog.ExecutePromptResult{Status: catalog.StatusCompleted, StopReason: "end_turn"}

// transcript returns the earlier messages of the session, as an agent receives them.
func (x *turn) transcript(ctx context.Context) []string {
	before, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: x.SessionToken})
	if err != nil {
		return []string{err.Error()}
	}
	list := []string{}
	for _, m := range before.Messages {
		list = append(list, m.Content)
	}
	return list
}

// quick reports a message and completes.
func quick(_ context.Context, x *turn) catalog.ExecutePromptResult {
	x.say("Done: " + x.Prompt)
	return done
}

// until works until it is stopped.
func until(ctx context.Context, x *turn) catalog.ExecutePromptResult {
	x.say("Working.")
	<-ctx.Done()
	return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
}

// executors run prompts in the test's process, and terminals that echo their input.
type executors struct {
	catalog.Executor
	daemon catalog.Daemon
	play   play
	set    func(catalog.SetSessionParams) catalog.SetSessionResult // nil: the agent is idle

	mu    sync.Mutex
	stops map[string]context.CancelFunc
	typed chan string // input of the terminals

	command func(context.Context, catalog.RunCommandParams) catalog.RunCommandResult
}

func (x *executors) Acquire(context.Context, catalog.LeaseRequest) (catalog.Lease, error) {
	return x, nil
}
func (x *executors) Count() int                                { return 1 }
func (x *executors) HasRoom(catalog.LeaseRequest) bool         { return true }
func (x *executors) Release()                                  {}
func (x *executors) Kill()                                     {}
func (x *executors) PauseNotifications(context.Context) error  { return nil }
func (x *executors) ResumeNotifications(context.Context) error { return nil }

func (x *executors) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x.mu.Lock()
	x.stops[p.TaskID] = cancel
	x.mu.Unlock()
	return x.play(ctx, &turn{ExecutePromptParams: p, daemon: x.daemon}), nil
}

func (x *executors) StopTask(_ context.Context, p catalog.StopTaskParams) (catalog.StopTaskResult, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if stop := x.stops[p.TaskID]; stop != nil {
		stop()
		return catalog.StopTaskResult{Stopped: true}, nil
	}
	return catalog.StopTaskResult{}, nil
}

// RunCommand runs the test's command until its end or a stop.
func (x *executors) RunCommand(ctx context.Context, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	x.mu.Lock()
	x.stops[p.CommandID] = cancel
	x.mu.Unlock()
	if err := x.daemon.CommandStarted(ctx, catalog.CommandStartedParams{CommandID: p.CommandID, PID: 42}); err != nil {
		return catalog.RunCommandResult{}, err
	}
	return x.command(ctx, p), nil
}

// print reports output of a command.
func (x *executors) print(ctx context.Context, p catalog.RunCommandParams, text string) {
	_ = x.daemon.CommandOutput(ctx, catalog.CommandOutputParams{CommandID: p.CommandID, Data: text, Encoding: catalog.EncodingUTF8})
}

func (x *executors) StopCommand(_ context.Context, p catalog.StopCommandParams) (catalog.StopCommandResult, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stops[p.CommandID]()
	return catalog.StopCommandResult{Stopped: true}, nil
}

func (x *executors) SetSession(_ context.Context, p catalog.SetSessionParams) (catalog.SetSessionResult, error) {
	if x.set == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}, nil
	}
	return x.set(p), nil
}

func (x *executors) SpawnTerminal(context.Context, catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	// The terminal prints before the hub knows its client.
	err := x.daemon.TerminalOutput(context.Background(), catalog.TerminalOutputParams{TerminalID: "t1", Data: "$ ", Encoding: "utf-8"})
	return catalog.SpawnTerminalResult{TerminalID: "t1", PTYPID: 42}, err
}

func (x *executors) TerminalWrite(_ context.Context, p catalog.TerminalWriteParams) error {
	x.typed <- p.Data
	return x.daemon.TerminalOutput(context.Background(), catalog.TerminalOutputParams{TerminalID: p.TerminalID, Data: p.Data, Encoding: "utf-8"})
}

func (x *executors) TerminalResize(context.Context, catalog.TerminalResizeParams) error { return nil }

func (x *executors) TerminalClose(_ context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	err := x.daemon.TerminalExit(context.Background(), catalog.TerminalExitParams{TerminalID: p.TerminalID, Signal: "hangup"})
	return catalog.TerminalCloseResult{Closed: true}, err
}

// A world is a hub with its server.
type world struct {
	t         *testing.T
	dir       string
	hub       *hub.Hub
	executors *executors
	reg       *server.Registry
	srv       *server.Server
	stopped   chan bool
	flush     func(context.Context) // see RegisterDomain
}

func newWorld(t *testing.T, p play, change ...func(*hub.Options)) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), stopped: make(chan bool, 1),
		executors: &executors{play: p, stops: make(map[string]context.CancelFunc), typed: make(chan string, 10)},
	}
	project := &fakeProject{Agents: agents{}, openStore: sqlite.Opener(filepath.Join(w.dir, "duet.db")), unchanged: make(chan struct{})}
	opts := hub.Options{
		Project: project, Configuration: project, Database: filepath.Join(w.dir, "duet.db"), Root: w.dir,
		Limits: config.Limits{MaxTurns: 3, QueueCap: 1000, TurnTimeout: time.Hour}, Getenv: func(string) string { return "" },
		Executors: func(d catalog.Daemon) hub.Executors { w.executors.daemon = d; return w.executors },
	}
	for _, f := range change {
		f(&opts)
	}
	h := must(hub.Open(context.Background(), opts))(t)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	w.hub = h
	reg := server.NewRegistry()
	w.reg, w.flush = reg, register(reg, handlers.Domain{
		Hub:     func(context.Context) (*hub.Hub, error) { return h, nil },
		Version: "0.0.0-test", Stop: func(force bool) { w.stopped <- force },
		Listen:  func(context.Context, string) error { return nil },
		Clients: func() int { return w.srv.ConnCount() },
	})
	w.srv = server.New(reg, server.Options{Grace: 50 * time.Millisecond})
	return w
}

// register registers the native methods and those of the dialects over them.
func register(reg *server.Registry, d handlers.Domain) (flush func(context.Context)) {
	subscribers := handlers.RegisterDomain(reg, d)
	tasks := dialect.Register(native.Methods{Registry: reg, Hub: d.Hub, Logger: slog.New(slog.DiscardHandler)})
	return func(ctx context.Context) {
		subscribers(ctx)
		tasks(ctx)
	}
}

// A message is any message from the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`
}

type wireError struct {
	Code    int
	Message string
	Data    map[string]any
}

// A client is the other end of a connection.
type client struct {
	t       *testing.T
	framing frame.Framing
	end     server.Transport
	served  chan error
	in      chan message // all messages, in order
	aside   []message    // messages that came before an awaited response
	lastID  int
	methods map[string]string // of requests, by id
	longest int               // message, in bytes
	mu      sync.Mutex
}

func (w *world) connect(f frame.Framing) *client {
	w.t.Helper()
	return connectTo(w.t, w.srv, f)
}

// until waits until a condition on the store holds. It checks after each announced event.
func (w *world) until(isSo func() bool, what string) {
	w.t.Helper()
	var announced testkit.Witness
	defer w.hub.Events().Watch(func(domain.Event, domain.TurnInSession) { announced.Note(func() {}) }).Stop()
	announced.Await(w.t, isSo, what)
}

func connectTo(t *testing.T, srv *server.Server, f frame.Framing) *client {
	ours, end := server.Pipe()
	c := &client{t: t, framing: f, end: end, served: make(chan error, 1), in: make(chan message, 10_000), methods: make(map[string]string)}
	go func() { c.served <- srv.Serve(context.Background(), ours, f) }()
	go func() {
		defer close(c.in)
		reader := frame.NewReader(end, f, frame.Limits{MaxFrame: 64 << 20})
		var m frame.Message
		for reader.Next(&m) == nil {
			c.mu.Lock()
			c.longest = max(c.longest, len(m.Body))
			c.mu.Unlock()
			var parsed message
			if json.Unmarshal(m.Body, &parsed) == nil {
				c.in <- parsed
			}
		}
	}()
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	c.end.Close()
	select {
	case <-c.served:
		c.served <- nil
	case <-time.After(patience):
		c.t.Error("the connection did not end")
	}
}

func (c *client) write(body string) {
	c.t.Helper()
	must(c.end.Write(frame.Append(nil, c.framing, []byte(body))))(c.t)
}

// send sends a request and returns its id.
func (c *client) send(method, params string) string {
	c.t.Helper()
	c.lastID++
	if params == "" {
		params = "{}"
	}
	id := fmt.Sprint(c.lastID)
	c.methods[id] = method
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// wait returns the response to a request and puts earlier messages aside. The response may be among
// the messages put aside.
func (c *client) wait(id string) message {
	c.t.Helper()
	isReply := func(m message) bool { return string(m.ID) == id }
	if i := slices.IndexFunc(c.aside, isReply); i >= 0 {
		m := c.aside[i]
		c.aside = slices.Delete(c.aside, i, i+1)
		return c.described(m, id)
	}
	timeout := time.After(patience)
	for {
		select {
		case m, ok := <-c.in:
			require.True(c.t, ok, "the connection has ended")
			if isReply(m) {
				return c.described(m, id)
			}
			c.aside = append(c.aside, m)
		case <-timeout:
			require.FailNow(c.t, "no reply", "to request %s", id)
		}
	}
}

// described returns a response and requires that its result matches the method's schema.
func (c *client) described(m message, id string) message {
	c.t.Helper()
	if m.Error == nil {
		requireAsDescribed(c.t, c.methods[id], m.Result)
	}
	return m
}

// ask sends a request and returns its result.
func (c *client) ask(method, params string) json.RawMessage {
	c.t.Helper()
	m := c.wait(c.send(method, params))
	require.Nil(c.t, m.Error, "%s %s: %+v", method, params, m.Error)
	return m.Result
}

// fail sends a request and returns its error.
func (c *client) fail(method, params string) wireError {
	c.t.Helper()
	m := c.wait(c.send(method, params))
	require.NotNil(c.t, m.Error, "%s %s: %s", method, params, m.Result)
	return *m.Error
}

// rejects requires that a request fails because of a parameter, and returns the error.
func (c *client) rejects(method, params, param string, why ...any) wireError {
	c.t.Helper()
	e := c.fail(method, params)
	assert.Equal(c.t, []any{-32602, param}, []any{e.Code, e.Data["param"]}, "%s %s: %s %v", method, params, e.Message, why)
	return e
}

// failsAs requires that a request fails with a code and a kind, and returns the error.
func (c *client) failsAs(method, params string, code int, kind string, why ...any) wireError {
	c.t.Helper()
	e := c.fail(method, params)
	assert.Equal(c.t, []any{code, kind}, []any{e.Code, e.Data["kind"]}, "%s %s: %s %v", method, params, e.Message, why)
	return e
}

// cancel cancels a request, and returns its answer, a cancellation error.
func (c *client) cancel(id string) message {
	c.t.Helper()
	c.write(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":` + id + `}}`)
	m := c.wait(id)
	assert.Equal(c.t, -32800, m.Error.Code)
	return m
}

// answer sends a request and decodes its result.
func answer[T any](c *client, method, params string) (result T) {
	c.t.Helper()
	require.NoError(c.t, json.Unmarshal(c.ask(method, params), &result))
	return result
}

// sessionID sends a request that begins a session, and returns the session's id.
func (c *client) sessionID(method, params string) string {
	c.t.Helper()
	return testkit.JSONAs[string](c.t, c.ask(method, params), "session_id")
}

// launch launches a session and returns its id.
func (c *client) launch(params string) string {
	c.t.Helper()
	return c.sessionID("launchSession", params)
}

// state returns a session as getSessionState shows it.
func (c *client) state(id string) map[string]any {
	c.t.Helper()
	return testkit.JSONAs[map[string]any](c.t, c.ask("getSessionState", `{"session_id":"`+id+`"}`), "session")
}

// next returns the next message. Messages put aside come first.
func (c *client) next() message {
	c.t.Helper()
	if len(c.aside) > 0 {
		m := c.aside[0]
		c.aside = c.aside[1:]
		return m
	}
	select {
	case m, ok := <-c.in:
		require.True(c.t, ok, "the connection has ended")
		return m
	case <-time.After(patience):
		require.FailNow(c.t, "no message came")
	}
	return message{}
}

// object decodes a JSON object.
func object(t *testing.T, raw json.RawMessage) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal(raw, &m), "%s", raw)
	return m
}

// finished waits for the end of a turn, and returns the given id.
func (w *world) finished(id string) string {
	w.t.Helper()
	w.ended(id)
	return id
}

// reaches waits until a turn is in a state.
func (w *world) reaches(id string, state domain.State) {
	w.t.Helper()
	w.until(func() bool {
		s, err := w.hub.Query().Turn(context.Background(), id)
		return err == nil && s.State == state
	}, "a turn is "+string(state))
}

// waiting waits until n questions are open in a session, or in all if session is "".
func (w *world) waiting(session string, n int) {
	w.t.Helper()
	w.until(func() bool {
		list, err := w.hub.Approvals().Pending(context.Background(), session)
		return err == nil && len(list) == n
	}, fmt.Sprint(n, " questions are open"))
}

// ended waits until a turn has ended.
func (w *world) ended(id string) domain.TurnInSession {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return must(w.hub.Await(ctx, id))(w.t)
}
