package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// An acpMessage is an Agent Client Protocol message.
type acpMessage struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	e2e.Reply
}

// An acpUpdate holds the fields of a session/update that the tests check.
type acpUpdate struct {
	Kind       string `json:"sessionUpdate"`
	MessageID  string `json:"messageId"`
	ToolCallID string `json:"toolCallId"`
	Status     string `json:"status"`
	Title      string `json:"title"`
	Content    json.RawMessage
	raw        json.RawMessage
}

// text returns the text of a chunk.
func (u acpUpdate) text() string {
	var c struct{ Text string }
	_ = json.Unmarshal(u.Content, &c)
	return c.Text
}

// An acpClient is an editor that speaks the Agent Client Protocol with the program.
type acpClient struct {
	*e2e.Process
	*e2e.Peer
	t testing.TB

	// Guarded by the peer's lock.
	updates  []acpUpdate
	asked    []acpMessage // the program's requests
	reported []acpMessage // the program's notifications except session/update
	came     []string     // all messages in their order of arrival
	// exchange holds all messages of both sides, for a golden file.
	exchange []string
	answer   func(acpMessage) any
}

// startACP starts `duet-rpc acp` and connects a client to it. The client answers each request of the
// program with the result of answer. A nil answer or a nil result sends no response.
func startACP(s *e2e.Site, answer func(acpMessage) any, args ...string) *acpClient {
	s.T.Helper()
	l := s.Launch(append([]string{"acp"}, args...)...)
	p := l.Start(s.T)
	c := &acpClient{Process: p, t: s.T, answer: answer}
	c.Peer = e2e.NewPeer(s.T, func(message string) error {
		c.exchange = append(c.exchange, "editor: "+message)
		_, err := io.WriteString(p.Stdin, message+"\n")
		return err
	})
	in := bufio.NewReaderSize(p.Stdout, 64<<10)
	go c.Read(func() ([]byte, error) { return in.ReadBytes('\n') }, c.take)
	return c
}

// startACPEditor is startACP with an initialized connection.
func startACPEditor(s *e2e.Site, answer func(acpMessage) any, args ...string) *acpClient {
	s.T.Helper()
	c := startACP(s, answer, args...)
	c.initializeWith(object{})
	return c
}

// newACPSession returns a site and an editor with a new session.
func newACPSession(t *testing.T) (s *e2e.Site, c *acpClient, session string) {
	t.Helper()
	s = withoutDaemons(t, e2e.NewSite(t))
	c = startACPEditor(s, nil)
	return s, c, c.begin(s.Root)
}

// take stores a message. The caller holds the lock.
func (c *acpClient) take(line []byte) error {
	var m acpMessage
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Errorf("standard output has a line that is not a message: %.300q", line)
		return nil
	}
	c.came = append(c.came, strings.TrimSuffix(string(line), "\n"))
	c.exchange = append(c.exchange, c.came[len(c.came)-1])
	switch {
	case m.Method == "session/update":
		var p struct{ Update json.RawMessage }
		u := acpUpdate{}
		if json.Unmarshal(m.Params, &p) != nil || json.Unmarshal(p.Update, &u) != nil {
			c.t.Errorf("invalid session/update: %.300q", line)
		}
		u.raw = p.Update
		c.updates = append(c.updates, u)
	case m.Method != "" && m.ID == nil:
		c.reported = append(c.reported, m)
	case m.Method != "":
		c.asked = append(c.asked, m)
		if c.answer != nil {
			if result := c.answer(m); result != nil {
				c.sendLocked(object{"id": m.ID, "result": result})
			}
		}
	default:
		c.Replies[string(m.ID)] = m.Reply
	}
	return nil
}

func (c *acpClient) send(message object) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.sendLocked(message)
}

func (c *acpClient) sendLocked(message object) {
	message["jsonrpc"] = "2.0"
	body, err := json.Marshal(message)
	if err == nil {
		err = c.Peer.Write(string(body))
	}
	if err != nil {
		c.t.Logf("not sent: %v", err)
	}
}

// ask sends a request.
func (c *acpClient) ask(method string, params object) (id int) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Serial++
	c.sendLocked(object{"id": c.Serial, "method": method, "params": params})
	return c.Serial
}

func (c *acpClient) tell(method string, params object) {
	c.send(object{"method": method, "params": params})
}

// result waits for the response to a request.
func (c *acpClient) result(id int) (r e2e.Reply) {
	c.t.Helper()
	c.Until(fmt.Sprintf("the response to %d", id), func() (there bool) {
		r, there = c.Replies[strconv.Itoa(id)]
		return there
	})
	return r
}

// call sends a request and requires its success.
func (c *acpClient) call(method string, params object, into any) {
	c.t.Helper()
	r := c.result(c.ask(method, params))
	require.Nil(c.t, r.Error, "%s: %v", method, r.Error)
	if into != nil {
		require.NoError(c.t, json.Unmarshal(r.Result, into))
	}
}

// initializeWith initializes the connection of an editor with these abilities for files.
func (c *acpClient) initializeWith(fs object) {
	c.t.Helper()
	c.call("initialize", object{
		"protocolVersion":    1,
		"clientCapabilities": object{"fs": fs, "elicitation": object{"form": object{}, "url": object{}}},
		"clientInfo":         object{"name": "test", "version": "1"},
	}, nil)
}

// begin makes a session.
func (c *acpClient) begin(cwd string) (id string) {
	c.t.Helper()
	var r struct{ SessionID string }
	c.call("session/new", object{"cwd": cwd, "mcpServers": []any{}}, &r)
	require.NotEmpty(c.t, r.SessionID)
	return r.SessionID
}

// load loads a session. The program replays its messages.
func (c *acpClient) load(session, cwd string) {
	c.t.Helper()
	c.call("session/load", opening(session, cwd), nil)
}

// opening returns the parameters of session/load.
func opening(session, cwd string) object {
	return object{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}
}

func promptOf(session, text string) object {
	return object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}}
}

// prompt runs a turn and returns its stop reason.
func (c *acpClient) prompt(session, text string) string {
	c.t.Helper()
	var r struct{ StopReason string }
	c.call("session/prompt", promptOf(session, text), &r)
	return r.StopReason
}

// asks begins a turn and waits for the n-th request of the program.
func (c *acpClient) asks(session, text string, n int) (turn int, question acpMessage) {
	c.t.Helper()
	return c.ask("session/prompt", promptOf(session, text)), c.awaitAsked(n)
}

// answers requires that a turn ends with end_turn and that the agent's text so far contains words.
func (c *acpClient) answers(session, text, words string) {
	c.t.Helper()
	require.Equal(c.t, "end_turn", c.prompt(session, text))
	require.Contains(c.t, c.said("agent_message_chunk"), words)
}

// heard waits until the agent's text contains words.
func (c *acpClient) heard(words string) {
	c.t.Helper()
	c.Until(words, func() bool { return strings.Contains(c.saidLocked("agent_message_chunk"), words) })
}

// stopped returns the stop reason in a prompt's response.
func stopped(t *testing.T, r e2e.Reply) (why string) {
	t.Helper()
	require.Nil(t, r.Error, "%v", r.Error)
	require.NoError(t, json.Unmarshal(member(t, r.Result, "stopReason"), &why))
	return why
}

// said returns the text of all chunks of a kind.
func (c *acpClient) said(kind string) string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.saidLocked(kind)
}

func (c *acpClient) saidLocked(kind string) string {
	var b strings.Builder
	for _, u := range c.updates {
		if u.Kind == kind {
			b.WriteString(u.text())
		}
	}
	return b.String()
}

// awaitAsked waits for the n-th request of the program, from 1.
func (c *acpClient) awaitAsked(n int) acpMessage {
	c.t.Helper()
	c.Until(fmt.Sprintf("%d requests", n), func() bool { return len(c.asked) >= n })
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.asked[n-1]
}

// requireAsked requires that the program has sent n requests so far.
func (c *acpClient) requireAsked(n int, why string) {
	c.t.Helper()
	c.Mu.Lock()
	defer c.Mu.Unlock()
	require.Len(c.t, c.asked, n, why)
}

// choose answers a permission request with an option.
func (c *acpClient) choose(m acpMessage, option string) {
	c.send(object{"id": m.ID, "result": chosen(option)})
}

func chosen(option string) object {
	return object{"outcome": object{"outcome": "selected", "optionId": option}}
}

// allowing answers each permission request with its first option.
func allowing(m acpMessage) any {
	var p struct {
		Options []struct {
			OptionID string `json:"optionId"`
		} `json:"options"`
	}
	if json.Unmarshal(m.Params, &p) != nil || len(p.Options) == 0 {
		return nil
	}
	return chosen(p.Options[0].OptionID)
}

// quit closes the program's stdin, waits for its end and requires exit status 0.
func (c *acpClient) quit() {
	c.t.Helper()
	c.CloseStdin()
	<-c.Ended
	require.True(c.t, c.Cmd.ProcessState.Success(), c.Cmd.ProcessState)
}

// crash sends SIGKILL to the program, as an editor does at its forced end.
func (c *acpClient) crash() {
	_ = c.Cmd.Process.Signal(syscall.SIGKILL)
	<-c.Ended
	c.CloseStdin()
}

// withoutDaemons stops the site's daemon after a successful test. After a failed test it kills the
// daemon and logs its output.
func withoutDaemons(t *testing.T, s *e2e.Site) *e2e.Site {
	s.ClearDaemons()
	t.Cleanup(func() {
		if !t.Failed() {
			_, _ = s.Command("daemon", "stop", "--force")
		}
	})
	return s
}

// The golden files in testdata/acp hold whole exchanges with an editor, one message per line. The
// prefix "editor: " marks the editor's messages. The test joins consecutive chunks of one message,
// because their number depends on timing.
func TestACPGoldenExchanges(t *testing.T) {
	t.Parallel()
	for name, converse := range map[string]func(*testing.T, *e2e.Site, *acpClient){
		"turn": func(_ *testing.T, s *e2e.Site, c *acpClient) {
			session := c.begin(s.Root)
			c.awaitUpdate("available_commands_update")
			c.prompt(session, "Edit it")
			c.call("session/close", object{"sessionId": session}, nil)
		},
		"load": func(t *testing.T, s *e2e.Site, c *acpClient) {
			first := startACPEditor(s, allowing)
			session := first.begin(s.Root)
			require.Equal(t, "end_turn", first.prompt(session, "Edit it"))
			first.quit()
			c.load(session, s.Root)
			c.awaitUpdate("available_commands_update")
			c.call("session/list", object{"cwd": s.Root}, nil)
			c.call("session/delete", object{"sessionId": session}, nil)
			c.result(c.ask("session/load", opening(session, s.Root)))
		},
		"refusals": func(_ *testing.T, s *e2e.Site, c *acpClient) {
			session := c.begin(s.Root)
			c.awaitUpdate("available_commands_update")
			c.result(c.ask("session/prompt", promptOf("unknown", "Edit it")))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": "Edit it"}))
			c.result(c.ask("session/set_mode", object{"sessionId": session, "modeId": "yolo"}))
			c.result(c.ask("session/new", object{"cwd": "here", "mcpServers": []any{}}))
			c.result(c.ask("session/new", object{"cwd": filepath.Join(s.Root, "nowhere"), "mcpServers": []any{}}))
			c.result(c.ask("session/set_config_option", object{"sessionId": session, "configId": "agent", "value": "unknown"}))
			c.result(c.ask("session/set_config_option", object{"sessionId": session, "configId": "colour", "value": "red"}))
			c.result(c.ask("session/load", object{"sessionId": "unknown", "cwd": s.Root, "mcpServers": []any{}}))
			c.result(c.ask("session/fork", object{"sessionId": "unknown", "cwd": s.Root}))
			c.result(c.ask("session/delete", object{"sessionId": "unknown"}))
			c.result(c.ask("session/close", object{"sessionId": "unknown"}))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": []any{}}))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "image", "mimeType": "image/png"}}}))
			c.result(c.ask("session/prompt", promptOf(session, "quiet fail")))
			c.result(c.ask("authenticate", object{"methodId": "nothing"}))
			c.result(c.ask("session/dance", object{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := withoutDaemons(t, e2e.NewSite(e2e.Parallel(t)))
			c := startACPEditor(s, allowing)
			converse(t, s, c)
			c.quit()
			testkit.GoldenBytes(t, filepath.Join(e2e.Root+"/testdata/acp", name+".txt"), c.written(s.Root))
		})
	}
}

// awaitUpdate waits for an update of a kind.
func (c *acpClient) awaitUpdate(kind string) {
	c.t.Helper()
	c.Until(kind, func() bool { return slices.ContainsFunc(c.updates, func(u acpUpdate) bool { return u.Kind == kind }) })
}

// written returns the exchange in the format of the golden files.
func (c *acpClient) written(root string) []byte {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	const settings = `"sessionUpdate":"config_option_update"`
	var lines []string
	open := "" // the message of the previous line's chunk
	for _, line := range c.exchange {
		piece, text := pieceOf(line)
		if piece != "" && piece == open {
			last := &lines[len(lines)-1]
			_, before := pieceOf(*last)
			*last = strings.Replace(*last, string(e2e.MustMarshal(before)), string(e2e.MustMarshal(before+text)), 1)
			continue
		}
		open = piece
		if n := len(lines); n > 0 && strings.Contains(line, settings) && strings.Contains(lines[n-1], settings) { // each update holds all settings, so only the last one stays
			lines = lines[:n-1]
		}
		lines = append(lines, line)
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", root, "/project")
	text = numbered(anID, "<id %d>", text)
	text = numbered(aMessage, `"msg-%d"`, text) // the program numbers messages per chunk
	return []byte(aTime.ReplaceAllString(text, "<time>"))
}

// numbered replaces each match with a name and a number, in order of first occurrence.
func numbered(pattern *regexp.Regexp, name, text string) string {
	seen := map[string]string{}
	return pattern.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf(name, len(seen)+1)
		}
		return seen[id]
	})
}

var (
	aMessage = regexp.MustCompile(`"msg-\d+"`)
	anID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aTime    = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// pieceOf returns the message and the text of a chunk line, or "" for any other line.
func pieceOf(line string) (message, text string) {
	var l struct {
		Params struct{ Update map[string]json.RawMessage }
	}
	var content struct{ Type, Text string }
	if json.Unmarshal([]byte(line), &l) != nil || json.Unmarshal(l.Params.Update["content"], &content) != nil || content.Type != "text" {
		return "", ""
	}
	return string(l.Params.Update["sessionUpdate"]) + string(l.Params.Update["messageId"]), content.Text
}

// The death of an editor's process ends no turn. The turn continues, its question stays open, and
// another editor answers it. The session keeps the editor's prompt.
func TestACPEditorDies(t *testing.T) {
	s, c, session := newACPSession(e2e.Parallel(t))
	c.asks(session, "Edit it", 1)
	c.crash()

	other, third := startACPEditor(s, nil), startACPEditor(s, nil)
	other.load(session, s.Root)
	require.Equal(t, "Edit it", other.said("user_message_chunk"))
	third.call("session/resume", object{"sessionId": session, "cwd": s.Root}, nil)
	question := other.awaitAsked(1)
	require.Equal(t, "session/request_permission", question.Method)
	require.Contains(t, string(question.Params), `"type":"diff"`)
	taken := third.awaitAsked(1)
	other.choose(question, "allow_once")
	third.Until("the withdrawal of the question", func() bool { return len(third.reported) > 0 })
	require.Equal(t, "$/cancel_request", third.reported[0].Method)
	require.JSONEq(t, fmt.Sprintf(`{"requestId":%s}`, taken.ID), string(third.reported[0].Params))
	other.heard("That is all.")
	written := e2e.ReadFile(t, filepath.Join(s.Root, "demo.txt"))
	require.Equal(t, "Turn 1: Edit it\n", written)

	// Other editors see the prompt and the text of a client's turn.
	require.Equal(t, "end_turn", third.prompt(session, "quiet from the third"))
	other.Until("the other's turn", func() bool {
		return strings.HasSuffix(other.saidLocked("user_message_chunk"), "quiet from the third") &&
			strings.Contains(other.saidLocked("agent_message_chunk"), "You asked: quiet from the third")
	})
	require.Empty(t, third.said("user_message_chunk"), "a client does not receive its own prompt")
	out := s.Run("session", "show", session)
	require.Contains(t, out, "quiet from the third")
	var transcript json.RawMessage // HumanLayer's clients read it in this way
	s.Lines().Call("getConversation", object{"session_id": session}, &transcript)
	require.Contains(t, string(transcript), "Edit it")

	var list struct {
		Sessions []struct{ SessionID, CWD, Title string }
	}
	third.call("session/list", object{"cwd": s.Root}, &list)
	require.Len(t, list.Sessions, 1)
	require.Equal(t, session, list.Sessions[0].SessionID)
	require.Equal(t, "Edit it", list.Sessions[0].Title, "the first prompt gives the title")
	s.Run("session", "rename", session, "A better name")
	third.call("session/list", object{"cwd": s.Root}, &list)
	require.Equal(t, "A better name", list.Sessions[0].Title)
	other.quit()
	third.quit()
}

// The inbox shows an editor's question, and its answer withdraws the question in the editor. A late
// answer of the editor changes nothing.
func TestACPQuestionIsInTheInboxToo(t *testing.T) {
	s, c, session := newACPSession(e2e.Parallel(t))
	turn, question := c.asks(session, "Edit it", 1)
	out := s.Run("approvals", "--json")
	id := regexp.MustCompile(`"approval": *"([^"]*)"`).FindStringSubmatch(out)
	require.NotNil(t, id, out)
	s.Run("approvals", "allow", id[1])
	require.Nil(t, c.result(turn).Error)
	c.Until("the withdrawal of the question", func() bool { return len(c.reported) > 0 })
	c.choose(question, "reject_once") // too late: the program has withdrawn the question
	require.Equal(t, "end_turn", c.prompt(session, "quiet"))

	// An unknown option answers nothing, so the question stays open until the turn is cancelled.
	turn, question = c.asks(session, "Edit again", 2)
	c.choose(question, "yolo")
	c.tell("session/cancel", object{"sessionId": session})
	require.Equal(t, "cancelled", stopped(t, c.result(turn)))

	// The editor accepts an elicitation.
	turn, question = c.asks(session, "link", 3)
	require.Equal(t, "elicitation/create", question.Method)
	c.send(object{"id": question.ID, "result": object{"action": "accept"}})
	require.Nil(t, c.result(turn).Error)
	c.quit()
}

// The client receives all text of a fast agent, in order.
func TestACPTellsEveryChunk(t *testing.T) {
	_, c, session := newACPSession(e2e.Parallel(t))
	most := e2e.WatchMemory(c.Cmd.Process.Pid)
	const chunks = 10_000
	require.Equal(t, "end_turn", c.prompt(session, fmt.Sprintf("quiet stream:%d", chunks)))
	text := c.said("agent_message_chunk")
	next := 1
	for _, found := range regexp.MustCompile(`chunk (\d+)`).FindAllStringSubmatch(text, -1) {
		require.Equal(t, strconv.Itoa(next), found[1])
		next++
	}
	require.Equal(t, chunks+1, next)
	c.quit()
	if peak := most(); !e2e.RaceEnabled {
		assert.Less(t, peak, int64(96<<20), "bytes of memory")
	}
}

// A steered message reaches the working agent. Other editors see it; the sender gets no echo.
// An idle session answers promptRequired.
func TestACPSteering(t *testing.T) {
	s, c, session := newACPSession(e2e.Parallel(t))
	steer := func(text string) string {
		var r struct{ Outcome string }
		c.call("_session/steering", promptOf(session, text), &r)
		return r.Outcome
	}
	require.Equal(t, "promptRequired", steer("too early"))
	turn, question := c.asks(session, "quiet permit:1", 1)
	other := startACPEditor(s, nil)
	other.load(session, s.Root)
	require.Equal(t, "injected", steer("Use the other file"))
	c.choose(question, "allow_once")
	c.result(turn)
	require.Contains(t, c.said("agent_message_chunk"), "You said meanwhile: Use the other file")
	require.Empty(t, c.said("user_message_chunk"))
	other.Until("the message", func() bool { return strings.Contains(other.saidLocked("user_message_chunk"), "Use the other file") })
	require.Equal(t, "promptRequired", steer("too late"))
	other.quit()
	c.quit()
}

// The editor receives the updates and the questions of an agent-initiated turn.
func TestACPAgentGoesOnByItself(t *testing.T) {
	s, c, session := newACPSession(e2e.Parallel(t))
	require.Equal(t, "end_turn", c.prompt(session, "quiet background"))
	question := c.awaitAsked(1)
	require.Contains(t, c.said("agent_message_chunk"), "The background task has finished.")
	require.NoFileExists(t, filepath.Join(s.Root, "demo.txt"))
	c.choose(question, "allow_once")
	c.heard("I wrote demo.txt.")
	require.FileExists(t, filepath.Join(s.Root, "demo.txt"))
	require.Equal(t, "end_turn", c.prompt(session, "quiet and on"))
	c.quit()
}

// The rest of a message that an agent sends after its turn reaches the editor as more of that
// message, and starts no agent-initiated turn. A replay has the whole message with its _meta.
func TestACPLateText(t *testing.T) {
	s := withoutDaemons(t, e2e.NewSite(e2e.Parallel(t)))
	piece := func(id, text string, meta object) object {
		return object{"sessionUpdate": "agent_message_chunk", "messageId": id, "content": object{"type": "text", "text": text}, "_meta": meta}
	}
	s.Played(
		e2e.PlayedStep{Update: piece("m1", "It begins", object{"vendor": object{"n": 1}, "first": true})},
		e2e.PlayedStep{Late: piece("m1", ", goes on", object{"vendor": object{"n": 2}})}, e2e.PlayedStep{Late: piece("m1", ", and ends.", nil)},
	)
	c := startACPEditor(s, nil, "--agent", "played")
	session := c.begin(s.Root)
	require.Equal(t, "end_turn", c.prompt(session, "go"))
	const want = "It begins, goes on, and ends."
	c.Until("the late text", func() bool { return c.saidLocked("agent_message_chunk") == want })
	require.Empty(t, c.said("agent_thought_chunk"), "a thought chunk would announce an agent-initiated turn")

	other := startACPEditor(s, nil)
	other.load(session, s.Root)
	other.Mu.Lock()
	defer other.Mu.Unlock()
	var replayed []string
	for _, u := range other.updates {
		if u.Kind == "agent_message_chunk" {
			var all struct {
				Meta json.RawMessage `json:"_meta"`
			}
			require.NoError(t, json.Unmarshal(u.raw, &all))
			replayed = append(replayed, u.text()+" "+string(all.Meta))
		}
	}
	require.Equal(t, []string{want + ` {"first":true,"vendor":{"n":2}}`}, replayed)
}

// A cancelled turn ends with the stop reason cancelled, even just after its start. The exit of an
// editor cancels its turns only with --cancel-on-disconnect.
func TestACPCancels(t *testing.T) {
	s, c, session := newACPSession(e2e.Parallel(t))
	for range 3 {
		id := c.ask("session/prompt", promptOf(session, "quiet stream:100000@50"))
		c.tell("session/cancel", object{"sessionId": session})
		require.Equal(t, "cancelled", stopped(t, c.result(id)))
	}
	for range 5 { // during the start of the turn
		id := c.ask("session/prompt", promptOf(session, "quiet stream:100000@50"))
		c.tell("$/cancel_request", object{"requestId": id})
		if r := c.result(id); r.Error != nil {
			require.Equal(t, -32800, r.Error.Code, "%v", r.Error)
		} else {
			require.Equal(t, "cancelled", stopped(t, r))
		}
	}
	id := c.ask("session/prompt", promptOf(session, "quiet stream:100000@50"))
	c.heard("chunk 2")
	c.tell("$/cancel_request", object{"requestId": id})
	require.Equal(t, "cancelled", stopped(t, c.result(id)))
	require.Equal(t, "end_turn", c.prompt(session, "quiet"), "the next turn runs")

	stays := c.begin(s.Root)
	c.ask("session/prompt", promptOf(stays, "quiet stream:100000@50"))
	c.heard("chunk 3 ")
	c.quit()
	ends := startACPEditor(s, nil, "--cancel-on-disconnect")
	ended := ends.begin(s.Root)
	ends.ask("session/prompt", promptOf(ended, "quiet stream:100000@50"))
	ends.heard("chunk 2")
	ends.quit()
	hub := s.Lines()
	requireState := func(id, want string) {
		t.Helper()
		require.Eventually(t, func() bool { return hub.Session(id).State == want }, e2e.Watchdog/3, e2e.PollEvery)
	}
	requireState(ended, "interrupted")
	requireState(stays, "running")
	again := startACPEditor(s, nil)
	again.load(stays, s.Root)
	require.Contains(t, again.said("agent_message_chunk"), "chunk 3 ")
	again.tell("session/cancel", object{"sessionId": stays})
	requireState(stays, "interrupted")
	again.quit()
}

// session/new succeeds with any mcpServers value. No update precedes the response with the
// session's id. session/list omits sessions without a prompt.
func TestACPSessionsBegin(t *testing.T) {
	s := withoutDaemons(t, e2e.NewSite(e2e.Parallel(t)))
	c := startACPEditor(s, allowing)
	var made struct{ SessionID string }
	for _, servers := range []string{
		`[]`, `null`, `[{"name":"a","command":"/bin/true","args":[],"env":[{"name":"A","value":"b"}]}]`, `[{"type":"http","name":"h","url":"http://127.0.0.1:1/","headers":[]}]`,
		`[{"type":"acp","name":"x","id":"1"},7,"what"]`, `{"no":"list"}`,
	} {
		c.call("session/new", object{"cwd": s.Root, "mcpServers": json.RawMessage(servers)}, &made)
	}
	c.Mu.Lock()
	for i, line := range c.came {
		if strings.Contains(line, "session/update") {
			var m struct{ Params struct{ SessionID string } }
			require.NoError(t, json.Unmarshal([]byte(line), &m))
			require.Contains(t, strings.Join(c.came[:i], "\n"), `"result":{"sessionId":"`+m.Params.SessionID, "an update precedes the response")
		}
	}
	c.Mu.Unlock()
	require.Equal(t, "end_turn", c.prompt(made.SessionID, "quiet"))
	var list struct{ Sessions []struct{ SessionID string } }
	c.call("session/list", object{}, &list)
	require.Len(t, list.Sessions, 1)

	var forked struct{ SessionID string }
	c.call("session/fork", object{"sessionId": made.SessionID, "cwd": s.Root}, &forked)
	require.Equal(t, "end_turn", c.prompt(forked.SessionID, "quiet fork"))
	c.call("session/list", object{}, &list)
	require.Len(t, list.Sessions, 2)
	c.call("session/close", object{"sessionId": forked.SessionID}, nil)
	require.NotNil(t, c.result(c.ask("session/prompt", promptOf(forked.SessionID, "quiet"))).Error)
	c.call("session/delete", object{"sessionId": forked.SessionID}, nil)
	require.Equal(t, -32002, c.result(c.ask("session/load", opening(forked.SessionID, s.Root))).Error.Code)
	c.answers(made.SessionID, "/agent", "The agent behind this session is scripted.")
	c.answers(made.SessionID, "/inbox", "Nothing waits for an answer.")
	c.quit()
}

// In a turn of a client, the agent's file reads return the unsaved text of that client's editor.
// With --saved-files or saved_files = true they return the file on disk. Version 2 has no such
// reads, so the demo agent speaks version 1.
func TestACPUnsavedFiles(t *testing.T) {
	s := withoutDaemons(t, e2e.NewSite(e2e.Parallel(t)))
	s.Agents(fmt.Sprintf("[agents.earlier]\ncommand = [%q, \"demo-agent\", \"--protocol\", \"1\"]\n", e2e.FastProgram(t)))
	path := filepath.Join(s.Root, "demo.txt")
	require.NoError(t, os.WriteFile(path, []byte("saved\n"), 0o600))
	var read []string
	buffers := func(m acpMessage) any {
		if m.Method == "fs/read_text_file" {
			read = append(read, string(m.Params))
			return object{"content": "not saved\n"}
		}
		return allowing(m)
	}
	c := startACP(s, buffers, "--agent", "earlier")
	c.initializeWith(object{"readTextFile": true})
	session := c.begin(s.Root)
	turn := func(c *acpClient, text string) (diff string) {
		c.Mu.Lock()
		c.asked = nil
		c.Mu.Unlock()
		require.Equal(t, "end_turn", c.prompt(session, text))
		c.Mu.Lock()
		defer c.Mu.Unlock()
		for _, m := range c.asked {
			if m.Method == "session/request_permission" {
				diff = string(m.Params)
			}
		}
		return diff
	}
	require.Contains(t, turn(c, "Edit it"), `"oldText":"not saved\n"`)
	c.Mu.Lock()
	require.Len(t, read, 1)
	e2e.RequireParts(t, read[0], `"path":"`+path+`"`, `"sessionId":"`+session+`"`)
	c.Mu.Unlock()
	require.NoError(t, os.WriteFile(path, []byte("saved\n"), 0o600))

	other := startACP(s, allowing, "--saved-files")
	other.initializeWith(object{"readTextFile": true})
	other.call("session/resume", object{"sessionId": session, "cwd": s.Root}, nil)
	c.quit() // otherwise this client could answer the permission request first
	require.Contains(t, turn(other, "Edit it"), `"oldText":"saved\n"`)
	other.quit()

	// The configuration has the same setting.
	path = filepath.Join(s.Root, ".duet.toml")
	require.NoError(t, os.WriteFile(path, []byte("[acp]\nsaved_files = true\n"), 0o600))
	third := startACP(s, buffers)
	third.initializeWith(object{"readTextFile": true})
	third.call("session/resume", object{"sessionId": session, "cwd": s.Root}, nil)
	require.NotContains(t, turn(third, "Edit it"), `"oldText":"not saved\n"`)
	third.quit()
}

// The program answers with the requested protocol version, even if the request has the members of
// both versions.
func TestACPVersions(t *testing.T) {
	s := withoutDaemons(t, e2e.NewSite(e2e.Parallel(t)))
	both := object{
		"clientInfo": object{"name": "old", "version": "1"}, "clientCapabilities": object{"auth": object{"terminal": true}},
		"info": object{"name": "new", "version": "2"}, "capabilities": object{"fs": object{"readTextFile": true}},
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.Root, "demo.txt"), []byte("saved\n"), 0o600))
	for asked, methods := range map[int]string{1: `[{"id":"terminal"`, 2: `[{"methodId":"agent"`} {
		c := startACP(s, allowing)
		both["protocolVersion"] = asked
		var r struct {
			ProtocolVersion int
			AuthMethods     json.RawMessage
		}
		c.call("initialize", both, &r)
		require.Equal(t, asked, r.ProtocolVersion)
		require.True(t, strings.HasPrefix(string(r.AuthMethods), methods), "%s", r.AuthMethods)
		session := c.begin(s.Root)
		id := c.ask("session/prompt", promptOf(session, "Edit it"))
		if asked == 1 {
			require.Contains(t, string(c.result(id).Result), `"stopReason":"end_turn"`)
		} else {
			const usage = `"usage":{"totalTokens":22,"inputTokens":2,"outputTokens":20}`
			c.Until("the end", func() bool {
				n := len(c.updates)
				return n > 0 && string(c.updates[n-1].raw) == `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn",`+usage+`,"background":[]}`
			})
			require.Contains(t, string(c.result(id).Result), `"messageId":`)
			require.Equal(t, "session/request_permission", c.awaitAsked(1).Method)
			c.requireAsked(1, "version 2 has no file requests to the client")
		}
		c.quit()
	}
}

// member returns a member of a JSON object.
func member(t *testing.T, raw json.RawMessage, name string) json.RawMessage {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &m), "%s", raw)
	return m[name]
}

// The config option and the slash command /agent change the agent of a session after its first
// prompt. The new agent receives the transcript.
func TestACPAnotherAgent(t *testing.T) {
	s := withoutDaemons(t, e2e.NewSite(e2e.Parallel(t)))
	s.Agents("[agents.echo]\ndriver = \"command\"\ncommand = [\"echo\"]\n")
	c := startACPEditor(s, nil)
	session := c.begin(s.Root)
	require.Equal(t, "end_turn", c.prompt(session, "quiet first"))
	turn, question := c.asks(session, "Edit it", 1)
	refused := c.result(c.ask("session/set_config_option", object{"sessionId": session, "configId": "agent", "value": "echo"}))
	require.Equal(t, "the session is running a turn; change its agent when the turn has ended", refused.Error.Message)
	c.choose(question, "reject_once")
	require.Nil(t, c.result(turn).Error)

	var set struct {
		ConfigOptions []struct {
			ID           string
			CurrentValue json.RawMessage
		}
	}
	c.call("session/set_config_option", object{"sessionId": session, "configId": "agent", "value": "echo"}, &set)
	require.Equal(t, "agent", set.ConfigOptions[0].ID)
	require.JSONEq(t, `"echo"`, string(set.ConfigOptions[0].CurrentValue))
	require.Equal(t, "end_turn", c.prompt(session, "and you"))
	const note = "[echo continues here; until now the agent was scripted.]\n"
	require.Contains(t, c.said("agent_thought_chunk"), note)
	require.Contains(t, c.said("agent_message_chunk"), "User: quiet first")

	c.answers(session, "/agent scripted", "The agent behind this session is scripted.")
	c.answers(session, "quiet again", "You asked: quiet again")
	c.answers(session, "/agent unknown", "The agent behind this session stays scripted: there is no agent unknown. There are:")

	// Another editor loads the whole session.
	other := startACPEditor(s, nil)
	other.load(session, s.Root)
	for _, said := range []string{"quiet first", "and you", "quiet again"} {
		require.Contains(t, other.said("user_message_chunk"), said)
	}
	require.Equal(t, c.said("agent_thought_chunk"), other.said("agent_thought_chunk"))
	require.Contains(t, other.said("agent_thought_chunk"), note)
	other.quit()
	c.quit()
}

// A loaded session replays the text of the live session, even after invalid output, errors and a
// crash of the agent.
func TestACPLoadTellsWhatWasTold(t *testing.T) {
	s := withoutDaemons(t, e2e.NewSite(e2e.Parallel(t)))
	c := startACPEditor(s, allowing)
	session := c.begin(s.Root)
	for _, word := range []string{"garbage", "badutf8", "unknown", "think", "fail", "crash"} {
		c.result(c.ask("session/prompt", promptOf(session, "quiet "+word)))
	}
	other := startACPEditor(s, nil)
	other.load(session, s.Root)
	for _, kind := range []string{"agent_message_chunk", "agent_thought_chunk"} {
		require.Equal(t, c.said(kind), other.said(kind), kind)
	}
	require.NotContains(t, other.said("agent_message_chunk"), "this line is no JSON {]", "a line that is no JSON is no part of the transcript")
	other.quit()
	c.quit()
}

// orphaned requires that a prompt failed because the process that ran it died.
func orphaned(t *testing.T, r e2e.Reply) {
	t.Helper()
	require.NotNil(t, r.Error, "%s", r.Result)
	require.Contains(t, r.Error.Message, "the process that ran this has died")
	require.Contains(t, string(r.Error.Data), "ORPHANED")
}

// The kill of the hub with an open question fails the prompt. The error says that the question
// stays open. The next hub sends the question once to each editor, and the agent continues after
// its answer.
func TestACPHubIsKilledWithAQuestionOpen(t *testing.T) {
	s, c, session := newACPSession(e2e.Parallel(t))
	other := startACPEditor(s, nil)
	id, question := c.asks(session, "Edit it", 1)
	other.load(session, s.Root)
	seen := other.awaitAsked(1)
	s.CrashHub()
	r := c.result(id)
	orphaned(t, r)
	require.Contains(t, r.Error.Message, "its question is still open")
	again, seenAgain := c.awaitAsked(2), other.awaitAsked(2)
	c.choose(again, "allow_once")
	for _, e := range []*acpClient{c, other} {
		e.heard("That is all.")
	}
	c.requireTakenBack(question)
	other.requireTakenBack(seen, seenAgain)
	require.Equal(t, "end_turn", c.prompt(session, "quiet and on"))
	for _, e := range []*acpClient{c, other} {
		e.requireAsked(2, "the next hub sends the question once")
		e.quit()
	}
}

// requireTakenBack requires that the program withdraws exactly these questions, in this order.
func (c *acpClient) requireTakenBack(questions ...acpMessage) {
	c.t.Helper()
	c.Until("the withdrawal of questions", func() bool { return len(c.reported) >= len(questions) })
	c.Mu.Lock()
	defer c.Mu.Unlock()
	require.Len(c.t, c.reported, len(questions))
	for i, q := range questions {
		require.Equal(c.t, "$/cancel_request", c.reported[i].Method)
		require.JSONEq(c.t, fmt.Sprintf(`{"requestId":%s}`, q.ID), string(c.reported[i].Params))
	}
}

// After a kill of a hub that no request waits for, the editor's next request works.
func TestACPHubIsKilledIdle(t *testing.T) {
	s, c, session := newACPSession(e2e.Parallel(t))
	s.CrashHub() // the hub has no turn of the session yet
	require.Equal(t, "end_turn", c.prompt(session, "quiet"))
	for _, next := range []func(){
		func() { c.call("session/set_mode", object{"sessionId": session, "modeId": "plan"}, nil) },
		func() { c.load(session, s.Root) },
		func() { c.begin(s.Root) },
		func() { c.call("session/list", object{}, nil) },
		func() { require.Equal(t, "end_turn", c.prompt(session, "quiet")) },
	} {
		s.CrashHub()
		next()
		require.Equal(t, "end_turn", c.prompt(session, "quiet"))
	}
	c.quit()
}

// A kill of the hub at any moment keeps one copy of a prompt in the session. The prompt ends
// once, and its sender gets no echo. The session continues with the next hub, and the editor shows
// nothing twice.
func TestACPHubIsKilledAtAnyMoment(t *testing.T) {
	s, c, session := newACPSession(e2e.Parallel(t))
	id := c.ask("session/prompt", promptOf(session, "quiet stream:100000@50"))
	c.heard("chunk 3 ") // the agent works on the prompt
	s.CrashHub()
	orphaned(t, c.result(id))
	said := c.said("agent_message_chunk")
	for i, found := range regexp.MustCompile(`chunk (\d+) `).FindAllStringSubmatch(said, -1) {
		require.Equal(t, strconv.Itoa(i+1), found[1], said)
	}
	rounds := 3 // each kills the hub at another moment
	if testkit.Soak {
		rounds = 12
	}
	var ends []string
	for i := range rounds {
		if i%3 == 2 { // the suspended hub has read no part of the prompt
			e2e.Suspend(t, s.LockHolder())
		}
		id := c.ask("session/prompt", promptOf(session, fmt.Sprintf("quiet round-%d-", i)))
		<-time.After(time.Duration(i) * 3 * time.Millisecond) // machine: any moment will do
		s.CrashHub()
		r := c.result(id)
		end := string(r.Result)
		if r.Error != nil {
			orphaned(t, r)
			end = "orphaned"
		}
		ends = append(ends, end)
		c.call("session/list", object{}, nil)
	}
	t.Log(ends)
	require.Equal(t, "end_turn", c.prompt(session, "quiet at last"))
	require.Equal(t, 1, strings.Count(c.said("agent_message_chunk"), "You asked: quiet at last"))
	items := s.Lines().Items(session)
	for i := range rounds {
		times := 0
		for _, e := range items {
			if e.Role == "user" && strings.Contains(e.Content, fmt.Sprintf("round-%d-", i)) {
				times++
			}
		}
		assert.Equal(t, 1, times, "round %d", i)
	}
	assert.Empty(t, c.said("user_message_chunk"))
	c.quit()
}

// outsider is an agent that opens sessions only for a signed-in user. The user signs in by a
// request or in a terminal.
const outsider = `#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%%s,%%s}\n' "$id" "$1"; }
while read -r line; do
	id=${line#*'"id":'} id=${id%%%%,*}
	case $line in
	*'"initialize"'*) answer '"result":{"protocolVersion":1,"agentInfo":{"name":"outsider","version":"1"},"agentCapabilities":{"auth":{"logout":{}}},"authMethods":[{"id":"tui","name":"In a terminal","type":"terminal","args":["login"]},{"id":"browser","name":"In a browser"}]}' ;;
	*'"logout"'*) rm %[1]q; answer '"result":{}' ;;
	*'"authenticate"'*) touch %[1]q; answer '"result":{}' ;;
	*'"session/new"'*) if test -e %[1]q; then answer '"result":{"sessionId":"s"}'; else answer '"error":{"code":-32000,"message":"log in first"}'; fi ;;
	*'"session/prompt"'*) answer '"result":{"stopReason":"end_turn"}' ;;
	esac
done
`

// newOutsiderSite returns a site with this agent. The user is signed in while the file in exists.
func newOutsiderSite(t *testing.T) (s *e2e.Site, in string) {
	t.Helper()
	s = withoutDaemons(t, e2e.NewSite(t))
	program, in := filepath.Join(s.Home, "outsider"), filepath.Join(s.Home, "in")
	testkit.Program(t, program, fmt.Appendf(nil, outsider, in))
	s.Agents(fmt.Sprintf("[agents.outsider]\ncommand = [%q]\n", program))
	return s, in
}

// Every client receives Duet's own sign-in methods in initialize, as the agent registry requires. A
// refused prompt adds the methods of the session's agent.
func TestACPSignIn(t *testing.T) {
	s, in := newOutsiderSite(e2e.Parallel(t))

	type method struct {
		ID, Type string
		Args     []string
	}
	c := startACP(s, nil, "--agent", "outsider")
	var hello struct{ AuthMethods []method }
	c.call("initialize", object{"protocolVersion": 1, "clientCapabilities": object{"auth": object{"terminal": true}}}, &hello)
	require.Equal(t, []method{{"terminal", "terminal", []string{"--login"}}, {ID: "agent"}}, hello.AuthMethods)
	session := c.begin(s.Root)
	refused := c.result(c.ask("session/prompt", promptOf(session, "hello")))
	require.Equal(t, -32000, refused.Error.Code)
	var data struct{ AuthMethods []method }
	require.NoError(t, json.Unmarshal(refused.Error.Data, &data))
	require.Equal(t, []method{{"terminal", "terminal", []string{"--login"}}, {ID: "agent"}, {ID: "browser"}}, data.AuthMethods, "Duet replaces the agent's terminal method with its own")
	notYet := c.result(c.ask("authenticate", object{"methodId": "terminal"}))
	require.Equal(t, -32000, notYet.Error.Code)
	c.call("authenticate", object{"methodId": "agent"}, nil)
	require.FileExists(t, in)
	require.Equal(t, "end_turn", c.prompt(session, "hello"))
	c.call("authenticate", object{"methodId": "terminal"}, nil)
	require.NotNil(t, c.result(c.ask("authenticate", object{"methodId": "nothing"})).Error)
	c.call("logout", object{}, nil)
	require.NoFileExists(t, in)
	c.quit()

	// A client without terminals gets no terminal method. A sign-in that no agent requires succeeds
	// without a question, whatever the agent is.
	other := startACP(s, nil)
	hello.AuthMethods = nil
	other.call("initialize", object{"protocolVersion": 1}, &hello)
	require.Equal(t, []method{{ID: "agent"}}, hello.AuthMethods)
	other.call("authenticate", object{"methodId": "agent"}, nil)
	require.NoFileExists(t, in)
	other.quit()
}

// In version 2, the end of the turn reports the required sign-in and its methods. The client uses
// auth/login and auth/logout.
func TestACPSignInVersion2(t *testing.T) {
	s, in := newOutsiderSite(e2e.Parallel(t))
	c := startACP(s, nil, "--agent", "outsider")
	c.call("initialize", object{"protocolVersion": 2, "info": object{"name": "test", "version": "2"}}, nil)
	session := c.begin(s.Root)
	ended := func(n int) string {
		var ends []string
		c.Until("the end", func() bool {
			ends = nil
			for _, u := range c.updates {
				if u.Kind == "state_update" && member(t, u.raw, "stopReason") != nil {
					ends = append(ends, string(u.raw))
				}
			}
			return len(ends) == n
		})
		return ends[n-1]
	}
	c.call("session/prompt", promptOf(session, "hello"), nil)
	end := ended(1)
	e2e.RequireParts(t, end, `"stopReason":"error","error":{"code":-32000,`, `"authMethods":[{"methodId":"agent",`)
	require.Contains(t, end, `{"methodId":"browser","name":"In a browser","type":"agent"}`)
	require.NotContains(t, end, `"tui"`, "Duet does not list the agent's terminal method")
	c.call("auth/login", object{"methodId": "browser"}, nil)
	require.FileExists(t, in)
	c.call("session/prompt", promptOf(session, "hello"), nil)
	require.Contains(t, ended(2), `"stopReason":"end_turn"`)
	c.call("auth/logout", object{}, nil)
	require.NoFileExists(t, in)
	require.Equal(t, -32601, c.result(c.ask("authenticate", object{"methodId": "agent"})).Error.Code)
	c.quit()
}
