package acpagent

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/server"
)

// A stage is a client of version 2 with a session, and a hub whose events the test sends.
type stage struct {
	t   *testing.T
	in  *bufio.Reader
	out io.Writer
	seq int

	began      chan string
	metadata   any // of the latest prompt
	subscribed chan *server.Conn
	events     *server.Conn

	states      map[string]string
	interrupted chan string
	queue       chan map[string]any // parameters of calls that change the queue
	waiting     string              // the queue, as JSON
}

const sessionID = "session"

// newStage returns a client that has resumed a session. states are the hub's answers to
// turn.get by turn; the answer for the session is its last turn.
func newStage(t *testing.T, states map[string]string) *stage {
	s := &stage{t: t, seq: 7, states: states, subscribed: make(chan *server.Conn, 1), interrupted: make(chan string, 10), queue: make(chan map[string]any, 10), began: make(chan string, 10)}
	reg := server.NewRegistry()
	answer := func(method string, f func(params map[string]any) string) {
		server.HandleRaw(reg, method, func(_ context.Context, raw json.RawMessage) (json.RawMessage, error) {
			var params map[string]any
			_ = json.Unmarshal(raw, &params)
			return json.RawMessage(f(params)), nil
		})
	}
	always := func(result string) func(map[string]any) string { return func(map[string]any) string { return result } }
	answer("agent.list", always(`{"agents":[{"name":"a","available":true}]}`))
	answer("agent.describe", always(`{"agent":"a"}`))
	answer("daemon.status", always(`{"subsystems":{"store":{"last_seq":7}}}`))
	answer("session.set", always(`{"success":true}`))
	answer("event.unsubscribe", always(`{"success":true}`))
	answer("session.get", func(map[string]any) string { return s.waiting })
	for _, method := range []string{"turn.edit", "turn.move"} {
		answer(method, func(p map[string]any) string {
			s.queue <- p
			return s.waiting
		})
	}
	begun := 0
	answer("session.prompt", func(p map[string]any) string {
		s.metadata = p["metadata"]
		begun++
		turn := fmt.Sprint("turn-", begun)
		s.began <- turn
		return `{"turn_uuid":"` + turn + `","agent":"a"}`
	})
	answer("turn.get", func(p map[string]any) string {
		id := fmt.Sprint(p["turn"])
		if state := s.states[id]; state != "" {
			return `{"turn":` + state + `}`
		}
		return `{"turn":{"turn_uuid":"` + id + `","state":"completed","agent":"a"}}`
	})
	answer("turn.interrupt", func(p map[string]any) string {
		s.interrupted <- strings.TrimSuffix(fmt.Sprint(p["turn"], " ", cmp.Or(p["background"], any(""))), " ")
		return `{"success":true}`
	})
	server.HandleRaw(reg, "event.subscribe", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		server.AfterReply(ctx, func() { s.subscribed <- server.ConnFrom(ctx) }) // the subscription starts after the reply
		return json.RawMessage(`{"subscription_id":"s","seq":7}`), nil
	})
	hubNear, hubFar := server.Pipe()
	served := make(chan error, 2)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		served <- server.New(reg, server.Options{Logger: slog.New(slog.DiscardHandler)}).Serve(ctx, hubFar, frame.LSP)
	}()
	hub, err := client.Dial(t.Context(), client.OverTransport(hubNear, frame.LSP))
	require.NoError(t, err)
	near, far := server.Pipe()
	go func() { served <- Serve(ctx, far, hub, Options{Logger: slog.New(slog.DiscardHandler)}) }()
	s.in, s.out = bufio.NewReader(near), near
	t.Cleanup(func() {
		require.NoError(t, near.Close())
		require.NoError(t, <-served)
		require.NoError(t, hub.Close())
		require.NoError(t, <-served)
		cancel()
	})
	s.say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":2,"info":{"name":"test","version":"1"}}}`)
	s.say(`{"jsonrpc":"2.0","id":"r","method":"session/resume","params":{"sessionId":"` + sessionID + `","cwd":"/"}}`)
	s.events = <-s.subscribed
	s.heard(`"id":"i"`)
	return s
}

func (s *stage) say(message string) {
	_, err := io.WriteString(s.out, message+"\n")
	require.NoError(s.t, err)
}

// heard returns the next message, which must contain the texts.
func (s *stage) heard(what ...string) string {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	require.NoError(s.t, err)
	for _, w := range what {
		require.Contains(s.t, line, w)
	}
	return line
}

// update requires that the next message is this update.
func (s *stage) update(want string) {
	s.t.Helper()
	var m struct {
		Params struct{ Update json.RawMessage }
	}
	line := s.heard()
	require.NoError(s.t, json.Unmarshal([]byte(line), &m))
	require.JSONEq(s.t, want, string(m.Params.Update), "%s", line)
}

// event sends an event. Its data also have the turn.
func (s *stage) event(kind, data string) {
	s.seq++
	var of struct {
		Turn string `json:"turn_uuid"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(data), &of))
	event := fmt.Sprintf(`{"subscription_id":"s","seq":%d,"kind":%q,"turn_uuid":%q,"data":%s}`, s.seq, kind, of.Turn, data)
	require.NoError(s.t, s.events.Notify(s.t.Context(), "event", json.RawMessage(event)))
}

func (s *stage) prompted(turn, text string) {
	s.event("item.added", `{"turn_uuid":"`+turn+`","type":"message","role":"user","key":"m-`+turn+`","text":"`+text+`"}`)
	s.status(turn, "queued", "")
}

func (s *stage) status(turn, state, rest string) {
	s.event("turn.state", `{"turn_uuid":"`+turn+`","state":"`+state+`"`+rest+`}`)
}

// prompt sends a prompt, which becomes the hub's next turn and waits.
func (s *stage) prompt(id, text string) {
	s.say(`{"jsonrpc":"2.0","id":"` + id + `","method":"session/prompt","params":{"sessionId":"` + sessionID + `","prompt":[{"type":"text","text":"` + text + `"}]}}`)
	turn := <-s.began
	s.prompted(turn, text)
}

const (
	idle    = `{"sessionUpdate":"state_update","state":"idle","background":[]}`
	running = `{"sessionUpdate":"state_update","state":"running","background":[]}`
	ended   = `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn","background":[]}`
)

func userMessage(turn, text string) string {
	return `{"sessionUpdate":"user_message","messageId":"m-` + turn + `","content":[{"type":"text","text":"` + text + `"}]}`
}

// newIdleStage is newStage without a running turn.
func newIdleStage(t *testing.T) *stage {
	s := newStage(t, map[string]string{sessionID: `{"turn_uuid":"turn-0","state":"completed","agent":"a"}`})
	s.update(idle)
	s.heard(`"id":"r"`)
	return s
}

// The client gets the message and the response to its prompt when the turn begins.
func TestPromptIsAnsweredWhenItsTurnBegins(t *testing.T) {
	s := newIdleStage(t)
	s.prompt("p", "x")
	s.status("turn-1", "starting", "")
	s.event("usage", `{"context_used":1,"context_size":2}`)
	s.update(`{"sessionUpdate":"usage_update","used":1,"size":2}`) // nothing comes before it
	s.status("turn-1", "running", "")
	s.update(userMessage("turn-1", "x"))
	said := s.heard() + s.heard()
	assert.Contains(t, said, `"id":"p","result":{"messageId":"m-turn-1"}`)
	assert.Contains(t, said, `"update":`+running)

	// Another client's prompt begins after this one.
	s.prompted("other", "y")
	s.status("turn-1", "completed", "")
	s.update(ended)
	s.status("other", "running", "")
	s.update(userMessage("other", "y"))
	s.update(running)
	s.status("other", "completed", "")
	s.update(ended)
}

// The _meta of a prompt is in the metadata of its turn, where the agent gets it.
func TestMetaOfAPrompt(t *testing.T) {
	s := newIdleStage(t)
	for meta, want := range map[string]any{
		`{"n":1}`: map[string]any{"n": 1.0},
		`[1]`:     nil,
		`{"n":"` + strings.Repeat("x", catalog.MaxMeta) + `"}`: nil,
	} {
		s.say(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"` + sessionID + `","prompt":[{"type":"text","text":"x"}],"_meta":` + meta + `}}`)
		turn := <-s.began
		assert.Equal(t, want, s.metadata.(map[string]any)["_meta"])
		s.prompted(turn, "x")
		s.status(turn, "running", "")
		s.update(userMessage(turn, "x"))
		_ = s.heard() + s.heard()
		s.status(turn, "completed", "")
		s.update(ended)
	}
}

// A client gets a waiting prompt with the text of another client's edit.
func TestWaitingPromptIsEdited(t *testing.T) {
	s := newIdleStage(t)
	s.prompt("p", "x")
	s.event("queue.changed", `{"turn_uuid":"turn-1","order":["turn-1"]}`)
	s.event("queue.changed", `{"turn_uuid":"turn-1","prompt":"y","order":["turn-1"]}`)
	s.status("turn-1", "running", "")
	s.update(userMessage("turn-1", "y"))
	said := s.heard() + s.heard()
	assert.Contains(t, said, `"id":"p","result":{"messageId":"m-turn-1"}`)
	s.prompted("other", "x")
	s.event("queue.changed", `{"turn_uuid":"other","prompt":"z","order":["other"]}`)
	s.status("turn-1", "completed", "")
	s.update(ended)
	s.status("other", "running", "")
	s.update(userMessage("other", "z"))
	s.update(running)
	s.status("other", "completed", "")
	s.update(ended)
}

// The response to a prompt whose turn ends before it begins is an error.
func TestPromptThatNeverBegins(t *testing.T) {
	s := newIdleStage(t)
	s.prompt("p", "x")
	s.status("turn-1", "starting", "")
	s.status("turn-1", "failed", `,"error":"no executor","error_code":"NO_EXECUTOR"`)
	s.heard(`"id":"p"`, `"code":-32603`, "no executor")
	s.prompt("q", "x")
	s.status("turn-2", "failed", `,"error":"sign in","error_code":"AGENT_AUTH_REQUIRED","auth_methods":[{"id":"browser","name":"B"}]`)
	s.heard(`"id":"q"`, `"code":-32000`, `{"methodId":"browser","name":"B","type":"agent"}`)
	s.prompt("c", "x")
	s.status("turn-3", "cancelled", "")
	s.heard(`"id":"c"`, `"code":-32800`)

	// Prompts of other clients that never begin are only sent if they fail.
	s.prompted("other", "y")
	s.status("other", "cancelled", "")
	s.prompted("another", "z")
	s.status("another", "failed", `,"error":"no executor","error_code":"NO_EXECUTOR"`)
	s.update(userMessage("another", "z"))
	s.update(running)
	s.heard(`"state":"idle","stopReason":"error","error":{"code":-32603,"message":"no executor"`)
}

// session/cancel ends every turn of the session, the last one first.
func TestCancelEndsAllTurns(t *testing.T) {
	s := newStage(t, map[string]string{
		sessionID: `{"turn_uuid":"waits","session_uuid":"t","parent":"gone","state":"queued","agent":"a"}`,
		"gone":    `{"turn_uuid":"gone","session_uuid":"t","parent":"works","state":"cancelled","agent":"a"}`,
		"works":   `{"turn_uuid":"works","session_uuid":"t","parent":"before","state":"waiting_input","agent":"a"}`,
		"before":  `{"turn_uuid":"before","session_uuid":"t","state":"completed","agent":"a"}`,
	})
	s.update(`{"sessionUpdate":"state_update","state":"requires_action","background":[]}`)
	s.heard(`"id":"r"`)
	s.say(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + sessionID + `"}}`)
	assert.Equal(t, []string{"waits", "works"}, []string{<-s.interrupted, <-s.interrupted})
	s.status("waits", "cancelled", "")
	s.status("works", "interrupted", "")
	s.update(`{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled","background":[]}`)
}

// session/close ends the turns, then the background work, and then answers.
func TestCloseEndsAllWork(t *testing.T) {
	s := newStage(t, map[string]string{sessionID: `{"turn_uuid":"works","state":"running","agent":"a","background":[{"id":"42","kind":"process"}]}`})
	const background = `"background":[{"type":"_duet_process","processId":"42"}]}`
	s.update(`{"sessionUpdate":"state_update","state":"running",` + background)
	s.heard(`"id":"r"`)
	s.say(`{"jsonrpc":"2.0","id":"c","method":"session/close","params":{"sessionId":"` + sessionID + `"}}`)
	assert.Equal(t, "works", <-s.interrupted)
	s.status("works", "interrupted", "")
	s.update(`{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled",` + background)
	assert.Equal(t, sessionID, <-s.interrupted, "its background work")
	s.heard(`"id":"c","result":{}`)
}

// The session requires action before the question arrives.
func TestRequiresActionBeforeTheQuestion(t *testing.T) {
	s := newIdleStage(t)
	s.status("turn", "running", "")
	s.update(running)
	s.event("approval.opened", `{"turn_uuid":"turn","approval":"q","type":"function_call","tool_name":"Bash"}`)
	s.update(`{"sessionUpdate":"state_update","state":"requires_action","background":[]}`)
	s.heard(`"method":"session/request_permission"`)
	s.status("turn", "completed", "")
	s.update(ended)
	s.event("approval.opened", `{"turn_uuid":"turn","approval":"stale","type":"function_call","tool_name":"Bash"}`)
	s.heard(`"method":"session/request_permission"`) // it blocks no later message
}

// A configuration option accepts only a value of its own type.
func TestTypesOfChoices(t *testing.T) {
	s := newStage(t, map[string]string{sessionID: `{"turn_uuid":"turn-0","state":"completed","agent":"a","agent_session":{"options":[{"id":"fast","type":"boolean","current":"false"}]}}`})
	s.update(idle)
	s.heard(`"id":"r"`, `"configId":"fast","name":"fast","type":"boolean","currentValue":false`)
	set := func(value string) {
		s.say(`{"jsonrpc":"2.0","id":"s","method":"session/set_config_option","params":{"sessionId":"` + sessionID + `","configId":"fast",` + value + `}}`)
	}
	for _, wrong := range []string{`"type":"id","value":"true"`, `"type":"boolean","value":"true"`, `"type":"boolean","value":null`, `"type":"odd","value":true`, `"value":true`} {
		set(wrong)
		s.heard(`"id":"s"`, `"code":-32602`)
	}
	set(`"type":"boolean","value":true`)
	s.heard(`"id":"s","result":{"configOptions":`)
}

// The session is idle when no turn is active.
func TestIdleWhenNothingRuns(t *testing.T) {
	s := newIdleStage(t)
	for _, turn := range []string{"a", "b"} { // the agent starts the second one
		s.status(turn, "queued", "")
		s.status(turn, "running", "")
	}
	s.update(running)
	s.status("a", "waiting_input", "")
	s.status("b", "waiting_input", "")
	s.update(`{"sessionUpdate":"state_update","state":"requires_action","background":[]}`)
	s.status("a", "running", "")
	s.update(running)
	s.status("a", "completed", "")
	s.update(`{"sessionUpdate":"state_update","state":"requires_action","background":[]}`)
	s.status("b", "completed", `,"stop_reason":"max_tokens"`)
	s.update(`{"sessionUpdate":"state_update","state":"idle","stopReason":"max_tokens","background":[]}`)
}

// Each state lists the background work, after the terminals and tool calls in the list.
func TestBackgroundWork(t *testing.T) {
	s := newStage(t, map[string]string{sessionID: `{"turn_uuid":"turn-0","state":"completed","agent":"a","background":[{"id":"c","kind":"tool_call","title":"sleep"}]}`})
	const call = `{"type":"tool_call","toolCallId":"c"}`
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"sleep","status":"in_progress"}`)
	s.update(`{"sessionUpdate":"state_update","state":"idle","background":[` + call + `]}`)
	s.heard(`"id":"r"`)
	s.event("agent.session", `{"background":[{"id":"c","kind":"tool_call"},{"id":"T","kind":"terminal","title":"top"},{"id":"42","kind":"process","title":"cc"}]}`)
	s.update(`{"sessionUpdate":"terminal_update","terminalId":"T","command":"top"}`)
	s.update(`{"sessionUpdate":"state_update","state":"idle","background":[` + call + `,{"type":"terminal","terminalId":"T"},{"type":"_duet_process","processId":"42","title":"cc"}]}`)
	s.event("terminal.output", `{"terminal_id":"T","data":"ab","encoding":"utf-8"}`)
	s.update(`{"sessionUpdate":"terminal_output_chunk","terminalId":"T","data":"YWI="}`)
	s.event("terminal.exited", `{"terminal_id":"T","signal":"SIGTERM"}`)
	s.update(`{"sessionUpdate":"terminal_update","terminalId":"T","exitStatus":{"signal":"SIGTERM"}}`)
	s.event("item.changed", `{"turn_uuid":"turn-0","type":"tool_call","key":"c","status":"completed","result":"over"}`)
	s.heard(`"toolCallId":"c","status":"completed"`)
	s.event("agent.session", `{"background":[]}`)
	s.update(idle)
	s.event("agent.session", `{"background":[]}`) // the client knows it already
	s.event("usage", `{"context_used":1,"context_size":2}`)
	s.update(`{"sessionUpdate":"usage_update","used":1,"size":2}`)
}

// A client can stop a background task that an update marks as cancellable.
func TestBackgroundTaskIsCancelled(t *testing.T) {
	s := newStage(t, map[string]string{sessionID: `{"turn_uuid":"turn-0","state":"completed","agent":"a","background":[{"id":"c","kind":"tool_call","title":"sleep","stoppable":true},{"id":"T","kind":"terminal","title":"top","stoppable":true}]}`})
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"sleep","status":"in_progress"}`)
	s.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c","capabilities":{"cancel":{}}}`)
	s.update(`{"sessionUpdate":"terminal_update","terminalId":"T","command":"top"}`)
	s.update(`{"sessionUpdate":"terminal_update","terminalId":"T","capabilities":{"cancel":{}}}`)
	s.heard(`"state_update"`)
	s.heard(`"id":"r"`)
	s.say(`{"jsonrpc":"2.0","id":"a","method":"tool_call/cancel","params":{"sessionId":"` + sessionID + `","toolCallId":"c"}}`)
	assert.Equal(t, sessionID+" c", <-s.interrupted)
	s.heard(`"id":"a","result":{}`)
	s.say(`{"jsonrpc":"2.0","id":"b","method":"terminal/cancel","params":{"sessionId":"` + sessionID + `","terminalId":"T"}}`)
	assert.Equal(t, sessionID+" T", <-s.interrupted)
	s.heard(`"id":"b","result":{}`)
	s.say(`{"jsonrpc":"2.0","id":"d","method":"terminal/cancel","params":{"sessionId":"` + sessionID + `","terminalId":"other"}}`)
	s.heard(`"id":"d"`, `-32602`, `does not run \"other\" in the background`)
}
