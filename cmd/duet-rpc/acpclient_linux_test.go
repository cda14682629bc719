package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// An acpMessage is a message of the Agent Client Protocol.
type acpMessage struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	reply
}

// An acpUpdate is what tests look at of a session/update.
type acpUpdate struct {
	Kind       string `json:"sessionUpdate"`
	MessageID  string `json:"messageId"`
	ToolCallID string `json:"toolCallId"`
	Status     string `json:"status"`
	Title      string `json:"title"`
	Content    json.RawMessage
	raw        json.RawMessage
}

// text is that of a chunk.
func (u acpUpdate) text() string {
	var c struct{ Text string }
	_ = json.Unmarshal(u.Content, &c)
	return c.Text
}

// An acpClient is an editor that speaks the Agent Client Protocol with the program.
type acpClient struct {
	*process
	*peer
	t testing.TB

	// Guarded by the peer's lock.
	updates  []acpUpdate
	asked    []acpMessage // requests of the program
	reported []acpMessage // notifications but session/update
	came     []string     // all messages, in the order in which they came
	// exchange is all messages of both sides, as a golden file has them.
	exchange []string
	answer   func(acpMessage) any
}

// acp starts the program as an agent of a client. Where the answer is not nil the
// client answers requests with it, as far as that gives something.
func (s *site) acp(answer func(acpMessage) any, args ...string) *acpClient {
	s.t.Helper()
	l := s.launch()
	l.args = append(append([]string{"acp"}, args...), l.args...)
	p := l.start(s.t)
	c := &acpClient{process: p, t: s.t, answer: answer}
	c.peer = newPeer(s.t, func(message string) error {
		c.exchange = append(c.exchange, "editor: "+message)
		_, err := io.WriteString(p.stdin, message+"\n")
		return err
	})
	in := bufio.NewReaderSize(p.stdout, 64<<10)
	go c.read(func() ([]byte, error) { return in.ReadBytes('\n') }, c.take)
	return c
}

// editor is acp with the handshake done.
func (s *site) editor(answer func(acpMessage) any, args ...string) *acpClient {
	s.t.Helper()
	c := s.acp(answer, args...)
	c.initialize()
	return c
}

// newACPSession is a site in which an editor has made a session.
func newACPSession(t *testing.T) (s *site, c *acpClient, session string) {
	t.Helper()
	s = withoutDaemons(t, newSite(t))
	c = s.editor(nil)
	return s, c, c.begin(s.root)
}

// take sorts a message. The lock is held.
func (c *acpClient) take(line []byte) error {
	var m acpMessage
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Errorf("standard output has something else than messages: %.300q", line)
		return nil
	}
	c.came = append(c.came, strings.TrimSuffix(string(line), "\n"))
	c.exchange = append(c.exchange, c.came[len(c.came)-1])
	switch {
	case m.Method == "session/update":
		var p struct{ Update json.RawMessage }
		u := acpUpdate{}
		if json.Unmarshal(m.Params, &p) != nil || json.Unmarshal(p.Update, &u) != nil {
			c.t.Errorf("no update: %.300q", line)
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
		c.replies[string(m.ID)] = m.reply
	}
	return nil
}

func (c *acpClient) send(message object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sendLocked(message)
}

func (c *acpClient) sendLocked(message object) {
	message["jsonrpc"] = "2.0"
	body, err := json.Marshal(message)
	if err == nil {
		err = c.peer.write(string(body))
	}
	if err != nil {
		c.t.Logf("not sent: %v", err)
	}
}

// ask sends a request.
func (c *acpClient) ask(method string, params object) (id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	c.sendLocked(object{"id": c.serial, "method": method, "params": params})
	return c.serial
}

func (c *acpClient) tell(method string, params object) {
	c.send(object{"method": method, "params": params})
}

// result waits for the response to a request.
func (c *acpClient) result(id int) (r reply) {
	c.t.Helper()
	c.until(fmt.Sprintf("the response to %d", id), func() (there bool) {
		r, there = c.replies[strconv.Itoa(id)]
		return there
	})
	return r
}

// call sends a request, and requires that it succeeds.
func (c *acpClient) call(method string, params object, into any) {
	c.t.Helper()
	r := c.result(c.ask(method, params))
	require.Nil(c.t, r.Error, "%s: %v", method, r.Error)
	if into != nil {
		require.NoError(c.t, json.Unmarshal(r.Result, into))
	}
}

func (c *acpClient) initialize() { c.initializeWith(object{}) }

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

// load opens a session with all that was said in it.
func (c *acpClient) load(session, cwd string) {
	c.t.Helper()
	c.call("session/load", opening(session, cwd), nil)
}

// opening are the parameters of session/load.
func opening(session, cwd string) object {
	return object{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}
}

func promptOf(session, text string) object {
	return object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}}
}

// prompt runs a turn, and returns why it stopped.
func (c *acpClient) prompt(session, text string) string {
	c.t.Helper()
	var r struct{ StopReason string }
	c.call("session/prompt", promptOf(session, text), &r)
	return r.StopReason
}

// said is the text of all chunks of a kind.
func (c *acpClient) said(kind string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	c.until(fmt.Sprintf("%d requests", n), func() bool { return len(c.asked) >= n })
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[n-1]
}

// choose answers a permission request.
func (c *acpClient) choose(m acpMessage, option string) {
	c.send(object{"id": m.ID, "result": chosen(option)})
}

func chosen(option string) object {
	return object{"outcome": object{"outcome": "selected", "optionId": option}}
}

// allowing answers each permission request by its first option.
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

// quit closes the client's end, and waits for the end of the program.
func (c *acpClient) quit() {
	c.t.Helper()
	c.closeStdin()
	<-c.ended
	require.True(c.t, c.cmd.ProcessState.Success(), c.cmd.ProcessState)
}

// crash kills the program as an editor does that has no time.
func (c *acpClient) crash() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	<-c.ended
	c.closeStdin()
}

// withoutDaemons ends the daemon of a site at the end of a test.
func withoutDaemons(t *testing.T, s *site) *site {
	s.clearDaemons()
	t.Cleanup(func() {
		if !t.Failed() {
			_, _ = s.command("daemon", "stop", "--force")
		}
	})
	return s
}

// Whole exchanges with an editor, as testdata/acp has them: a line for each message,
// those of the editor behind "editor: ". Pieces of one message that came in several
// updates are one there, since how many there are is a matter of time.
func TestACPGoldenExchanges(t *testing.T) {
	t.Parallel()
	for name, converse := range map[string]func(*testing.T, *site, *acpClient){
		"turn": func(_ *testing.T, s *site, c *acpClient) {
			session := c.begin(s.root)
			c.awaitUpdate("available_commands_update")
			c.prompt(session, "Edit it")
			c.call("session/close", object{"sessionId": session}, nil)
		},
		"load": func(t *testing.T, s *site, c *acpClient) {
			first := s.editor(allowing)
			session := first.begin(s.root)
			require.Equal(t, "end_turn", first.prompt(session, "Edit it"))
			first.quit()
			c.load(session, s.root)
			c.awaitUpdate("available_commands_update")
			c.call("session/list", object{"cwd": s.root}, nil)
			c.call("session/delete", object{"sessionId": session}, nil)
			c.result(c.ask("session/load", opening(session, s.root)))
		},
		"refusals": func(_ *testing.T, s *site, c *acpClient) {
			session := c.begin(s.root)
			c.awaitUpdate("available_commands_update")
			c.result(c.ask("session/prompt", promptOf("nobody's", "Edit it")))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": "Edit it"}))
			c.result(c.ask("session/set_mode", object{"sessionId": session, "modeId": "yolo"}))
			c.result(c.ask("session/new", object{"cwd": "here", "mcpServers": []any{}}))
			c.result(c.ask("session/new", object{"cwd": filepath.Join(s.root, "nowhere"), "mcpServers": []any{}}))
			c.result(c.ask("session/set_config_option", object{"sessionId": session, "configId": "agent", "value": "nobody"}))
			c.result(c.ask("session/set_config_option", object{"sessionId": session, "configId": "colour", "value": "red"}))
			c.result(c.ask("session/load", object{"sessionId": "nobody's", "cwd": s.root, "mcpServers": []any{}}))
			c.result(c.ask("session/fork", object{"sessionId": "nobody's", "cwd": s.root}))
			c.result(c.ask("session/delete", object{"sessionId": "nobody's"}))
			c.result(c.ask("session/close", object{"sessionId": "nobody's"}))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": []any{}}))
			c.result(c.ask("session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "image", "mimeType": "image/png"}}}))
			c.result(c.ask("session/prompt", promptOf(session, "quiet fail")))
			c.result(c.ask("authenticate", object{"methodId": "nothing"}))
			c.result(c.ask("session/dance", object{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withoutDaemons(t, newSite(t))
			c := s.editor(allowing)
			converse(t, s, c)
			c.quit()
			testkit.GoldenBytes(t, filepath.Join("../../testdata/acp", name+".txt"), c.written(s.root))
		})
	}
}

// awaitUpdate waits for an update of a kind.
func (c *acpClient) awaitUpdate(kind string) {
	c.t.Helper()
	c.until(kind, func() bool {
		return slices.ContainsFunc(c.updates, func(u acpUpdate) bool { return u.Kind == kind })
	})
}

// written is the exchange as golden files have it.
func (c *acpClient) written(root string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	open := "" // the message that the line before is a piece of
	for _, line := range c.exchange {
		piece, text := pieceOf(line)
		if piece != "" && piece == open {
			lines[len(lines)-1] = withText(lines[len(lines)-1], text)
			continue
		}
		open = piece
		if n := len(lines); n > 0 && isSettings(line) && isSettings(lines[n-1]) { // they are sent whole, as they become known
			lines = lines[:n-1]
		}
		lines = append(lines, line)
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", root, "/project")
	text = numbered(anID, "<id %d>", text)
	text = numbered(aMessage, `"msg-%d"`, text) // they count pieces, too
	return []byte(aTime.ReplaceAllString(text, "<time>"))
}

// numbered has what matches counted in the order in which it comes.
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

// A chunkLine is the line of an update that has a piece of a text.
type chunkLine struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  struct {
		SessionID string                     `json:"sessionId"`
		Update    map[string]json.RawMessage `json:"update"`
	} `json:"params"`
}

// pieceOf says which message a line has a piece of, or "".
func pieceOf(line string) (message, text string) {
	var l chunkLine
	var content struct{ Type, Text string }
	if json.Unmarshal([]byte(line), &l) != nil || json.Unmarshal(l.Params.Update["content"], &content) != nil || content.Type != "text" {
		return "", ""
	}
	return string(l.Params.Update["sessionUpdate"]) + string(l.Params.Update["messageId"]), content.Text
}

func isSettings(line string) bool {
	var l chunkLine
	return json.Unmarshal([]byte(line), &l) == nil && string(l.Params.Update["sessionUpdate"]) == `"config_option_update"`
}

// withText is a line with more text.
func withText(line, more string) string {
	_, text := pieceOf(line)
	before, _ := json.Marshal(text)
	after, _ := json.Marshal(text + more)
	return string(bytes.Replace([]byte(line), before, after, 1))
}
