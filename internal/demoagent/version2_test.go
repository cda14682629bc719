package demoagent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/demoagent"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

type object = map[string]any

// client2 is a client that speaks version 2, line by line. It answers questions itself.
type client2 struct {
	t    *testing.T
	in   *io.PipeWriter
	ends chan error
	last int // the id of the latest request

	testkit.Witness          // its lock guards the fields below
	log             []string // the agent's messages, in the form of summary
	raw             []string
	silent          bool // it does not answer questions
}

// message is a message of the agent.
type message struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
	Params struct {
		Title       string
		Mode        string
		SessionID   string
		RequestedID string
		Options     []struct{ OptionID string }
		Subject     struct{ ToolCall struct{ ToolCallID string } }
		Update      update
	}
}

type update struct {
	SessionUpdate string
	MessageID     string
	ToolCallID    string
	Name          string
	Status        string
	State         string
	StopReason    string
	Background    []struct{ Type, ToolCallID string }
	Error         struct{ Message string }
	Command       string
	Data          []byte
	ExitStatus    *struct{ ExitCode *int }
	Content       json.RawMessage
	Usage         json.RawMessage
	Plan          struct{ Entries []struct{ Status string } }
	ConfigOptions []struct{ ConfigID, Category, CurrentValue string }
}

// start2 starts an agent and initializes it with a version.
func start2(t *testing.T, opts demoagent.Options, version int) *client2 {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client2{t: t, in: inW, ends: make(chan error, 1)}
	go func() {
		err := demoagent.Serve(t.Context(), inR, outW, opts)
		outW.Close()
		c.ends <- err
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		for r := bufio.NewReader(outR); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			c.take(line)
		}
	}()
	t.Cleanup(func() { inW.Close(); outR.Close(); <-read })
	can := object{"elicitation": object{"form": object{}, "url": object{}}}
	c.call("initialize", object{"protocolVersion": version, "info": object{"name": "test", "version": "1"}, "capabilities": can})
	return c
}

func (c *client2) send(m object) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	require.NoError(c.t, err)
	_, err = c.in.Write(append(line, '\n'))
	require.NoError(c.t, err)
}

// request sends a request and returns its id.
func (c *client2) request(method string, params object) int {
	c.last++
	c.send(object{"id": c.last, "method": method, "params": params})
	return c.last
}

// call sends a request and returns the line of its response.
func (c *client2) call(method string, params object) string {
	c.t.Helper()
	id := c.request(method, params)
	c.awaits(fmt.Sprintf("= %d ", id))
	return c.line(fmt.Sprintf(`"id":%d,`, id))
}

// line returns the last line of the agent that contains a text.
func (c *client2) line(with string) (line string) {
	c.Lock()
	defer c.Unlock()
	for _, raw := range c.raw {
		if strings.Contains(raw, with) {
			line = raw
		}
	}
	return line
}

// session makes a session in a new directory.
func (c *client2) session(dir string) string {
	c.t.Helper()
	var answer struct{ Result struct{ SessionID string } }
	require.NoError(c.t, json.Unmarshal([]byte(c.call("session/new", object{"cwd": dir})), &answer))
	require.NotEmpty(c.t, answer.Result.SessionID)
	c.forget()
	return answer.Result.SessionID
}

func (c *client2) prompt(session, text string) int {
	return c.request("session/prompt", object{"sessionId": session, "prompt": []object{{"type": "text", "text": text}}})
}

// take records a message, and answers a question.
func (c *client2) take(line string) {
	var m message
	short := line
	if json.Unmarshal([]byte(line), &m) == nil {
		short = summary(m)
	}
	silent := false
	c.Note(func() {
		c.raw = append(c.raw, line)
		silent = c.silent
		if n := len(c.log) - 1; n >= 0 && strings.HasPrefix(short, "text ") { // merge the chunks of a message
			head, text, _ := strings.Cut(short, ": ")
			if strings.HasPrefix(c.log[n], head+": ") {
				c.log[n] += text
				return
			}
		}
		c.log = append(c.log, short)
	})
	if silent {
		return
	}
	switch m.Method {
	case "session/request_permission":
		go c.answer(m.ID, object{"outcome": object{"outcome": "selected", "optionId": m.Params.Options[0].OptionID}})
	case "elicitation/create":
		go c.answer(m.ID, object{"action": "accept", "content": object{"count": 2}})
	}
}

// answer answers a question of the agent, unless the agent has ended.
func (c *client2) answer(id json.RawMessage, result object) {
	line, _ := json.Marshal(object{"jsonrpc": "2.0", "id": id, "result": result})
	_, _ = c.in.Write(append(line, '\n'))
}

// summary returns a short form of a message.
func summary(m message) string {
	switch {
	case m.Method == "session/update":
		return m.Params.Update.summary()
	case m.Method == "session/request_permission":
		return "permission " + m.Params.Title + " " + m.Params.Subject.ToolCall.ToolCallID
	case m.Method == "elicitation/create" && m.Params.SessionID != "":
		return "elicitation " + m.Params.Mode
	case m.Method != "":
		return m.Method
	case m.Error != nil:
		return fmt.Sprintf("= %s error %d", m.ID, m.Error.Code)
	}
	var prompt struct{ MessageID string }
	_ = json.Unmarshal(m.Result, &prompt)
	return fmt.Sprintf("= %s %s", m.ID, prompt.MessageID)
}

func (u update) summary() string {
	switch u.SessionUpdate {
	case "user_message":
		return "user " + u.MessageID + " " + string(u.Content)
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		var b struct{ Type, Text string }
		_ = json.Unmarshal(u.Content, &b)
		if b.Type != "text" {
			return b.Type + " " + u.MessageID
		}
		return "text " + u.MessageID + ": " + b.Text
	case "state_update":
		var background strings.Builder
		for _, b := range u.Background {
			fmt.Fprintf(&background, " +%s %s", b.Type, b.ToolCallID)
		}
		if u.Background == nil {
			return "a state without background"
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s%s %s", u.State, u.StopReason, background.String(), u.Error.Message))
	case "tool_call_update":
		var content []struct{ Type string }
		_ = json.Unmarshal(u.Content, &content)
		s := fmt.Sprintf("tool %s %s %s", u.ToolCallID, u.Name, u.Status)
		for _, c := range content {
			s += " " + c.Type
		}
		return s
	case "terminal_update":
		if u.ExitStatus != nil {
			return fmt.Sprintf("exit %d", *u.ExitStatus.ExitCode)
		}
		return "terminal " + u.Command
	case "terminal_output_chunk":
		if len(u.Data) > 0 {
			return "text output: "
		}
		return "no output"
	case "config_option_update":
		o := u.ConfigOptions[0]
		return strings.Join([]string{"option", o.ConfigID, o.Category, o.CurrentValue}, " ")
	case "plan_update":
		marks := ""
		for _, e := range u.Plan.Entries {
			marks += e.Status[:1]
		}
		return "plan " + marks
	}
	return u.SessionUpdate
}

// awaits waits for a message with this beginning.
func (c *client2) awaits(start string) {
	c.t.Helper()
	c.Await(c.t, func() bool { return c.has(start) > 0 }, start)
}

// has counts the messages with this beginning.
func (c *client2) has(start string) (n int) {
	c.Lock()
	defer c.Unlock()
	for _, short := range c.log {
		if strings.HasPrefix(short+" ", start) {
			n++
		}
	}
	return n
}

func (c *client2) forget() {
	c.Lock()
	defer c.Unlock()
	c.log, c.raw = nil, nil
}

func (c *client2) all() []string {
	c.Lock()
	defer c.Unlock()
	return append([]string(nil), c.log...)
}

// Each keyword has the same effect in version 2 as in version 1.
func TestKeywordsInVersion2(t *testing.T) {
	type words = map[string]string
	const hello = "text message-1-0: Hello from the demo agent. You asked: "
	all := words{
		"quiet":    hello + "quiet That is all. | usage_update",
		"refuse":   "plan ppp | plan ipp | " + hello + "refuse | plan cip | refusal",
		"fail":     "plan ppp | plan ipp | " + hello + "fail | plan cip | error the demo agent was asked to fail",
		"image":    hello + "image Here is a picture. | image message-1-0 | tool call-1-1 Read pending | tool call-1-1  completed content | text message-1-1: That is all. | usage_update",
		"garbage":  hello + "garbage | this line is no JSON {]\n | text message-1-0: That is all. | usage_update",
		"unknown":  hello + "unknown | duet_demo_unknown | text message-1-0: That is all. | usage_update",
		"stream:3": hello + "stream:3 chunk 1 chunk 2 chunk 3 That is all. | usage_update",
		"tools:1":  hello + "tools:1 | tool call-1-1 Bash pending | tool call-1-1  in_progress | tool call-1-1  completed | text message-1-1: That is all. | usage_update",
		"ask":      hello + "ask | requires_action | permission Which colour do you like? call-1-1 | running | text message-1-0: You answered: red. That is all. | usage_update",
		"form":     hello + "form | requires_action | elicitation form | running | text message-1-0: You answered: {\"count\":2}. That is all. | usage_update",
		"link":     hello + "link | requires_action | elicitation url | running | text message-1-0: You answered: {\"count\":2}. | elicitation/complete | text message-1-0: That is all. | usage_update",
		"permit:1": hello + "permit:1 | tool call-1-1 Bash pending | requires_action | permission Bash call-1-1 | running | tool call-1-1  completed | text message-1-1: That is all. | usage_update",
		"please": "plan ppp | plan ipp | " + hello + "please | plan cip | tool call-1-1 Write pending diff | requires_action | permission Write demo.txt call-1-1 | running | tool call-1-1  completed diff | plan cci | " +
			"text message-1-1: I wrote demo.txt. That is all. | plan ccc | usage_update",
		"quiet think":     "text thought-1-0: The human wants to see me think, so I think. | " + hello + "quiet think That is all. | usage_update",
		"quiet mode:plan": "option mode mode plan | " + hello + "quiet mode:plan That is all. | usage_update",
		"subagent": hello + "subagent | tool call-1-1 Task pending | tool call-1-2 Bash pending | tool call-1-2  completed | text message-1-2-call-1-1: There is demo.txt. | image message-1-2-call-1-1 | " +
			"tool call-1-1  completed | text message-1-2: That is all. | usage_update",
		"terminal": hello + "terminal | tool call-1-1 Bash pending | terminal ls -la | tool call-1-1  in_progress terminal | text output: | exit 0 | tool call-1-1  completed terminal | " +
			"text message-1-1: The command is done. That is all. | usage_update",
		"background": hello + "background | tool call-1-1 Bash in_progress | text message-1-1: It runs in the background, and my turn ends. That is all. | usage_update | end_turn +tool_call call-1-1 | " +
			"tool call-1-1  completed | idle | running | text message-2-0: The background task has finished. | tool call-2-1 Write pending diff | requires_action | permission Write demo.txt call-2-1 | running | " +
			"tool call-2-1  completed diff | plan cci | text message-2-1: I wrote demo.txt. | plan ccc | end_turn",
		"late:2": hello + "late:2 That is all. | usage_update | end_turn | running | text message-2-0: chunk 1 chunk 2 | end_turn",
	}
	for word, want := range all {
		t.Run(word, func(t *testing.T) {
			if word == "terminal" && runtime.GOOS == "windows" {
				t.Skip("on Windows the word runs another command")
			}
			t.Parallel()
			c := start2(t, demoagent.Options{}, 2)
			id := c.prompt(c.session(t.TempDir()), word)
			turns := 1
			if word == "background" || word == "late:2" {
				turns = 2
			}
			c.Await(t, func() bool {
				n := 0
				for _, short := range c.all() {
					if strings.HasPrefix(short, "idle ") {
						n++
					}
				}
				return n == turns
			}, "the end")
			opening := fmt.Sprintf(`user prompt-1 [{"text":%q,"type":"text"}] | = %d prompt-1 | running | `, word, id)
			if !regexp.MustCompile(`(refusal|end_turn|error [a-z ]+)$`).MatchString(want) {
				want += " | end_turn"
			}
			want = regexp.MustCompile(`\| (refusal|end_turn|error )`).ReplaceAllString(want, "| idle $1")
			got := strings.Join(toolFirst(c.all()), " | ")
			assert.Equal(t, opening+want, regexp.MustCompile(` +\|`).ReplaceAllString(got, " |"))
		})
	}
}

// toolFirst moves the message that a tool call runs in a terminal to its place behind the
// terminal's beginning: the terminal's output and end come meanwhile, sooner or later than it.
func toolFirst(log []string) []string {
	begins, runs := slices.Index(log, "terminal ls -la"), slices.Index(log, "tool call-1-1  in_progress terminal")
	if begins < 0 || runs < begins {
		return log
	}
	log = slices.Insert(slices.Delete(log, runs, runs+1), begins+1, "tool call-1-1  in_progress terminal")
	return slices.CompactFunc(log, func(a, b string) bool { return a == b && a == "text output: " })
}

// A client gets the version that it requests, up to the newest one of the options.
func TestVersionsAreNegotiated(t *testing.T) {
	for _, c := range []struct{ asked, most, want int }{{1, 0, 1}, {2, 0, 2}, {3, 0, 2}, {2, 1, 1}, {2, 2, 2}} {
		client := start2(t, demoagent.Options{Protocol: c.most}, c.asked)
		var answer struct {
			Result struct {
				ProtocolVersion   int
				AgentCapabilities json.RawMessage
				Capabilities      struct {
					Session struct {
						Prompt struct{ Image, EmbeddedContext json.RawMessage }
						MCP    struct{ Stdio json.RawMessage }
					}
					Meta json.RawMessage `json:"_meta"`
				}
				Info, AuthMethods json.RawMessage
				Meta              json.RawMessage `json:"_meta"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(client.line(`"result"`)), &answer))
		r := answer.Result
		assert.Equal(t, c.want, r.ProtocolVersion, "%+v", c)
		assert.JSONEq(t, `{"steering":{"supported":true}}`, string(r.Meta))
		if c.want == 1 {
			assert.NotEmpty(t, r.AgentCapabilities)
			continue
		}
		assert.Empty(t, r.AgentCapabilities)
		assert.JSONEq(t, `{"name":"duet-demo","title":"Duet demo agent","version":"dev"}`, string(r.Info))
		assert.JSONEq(t, `[]`, string(r.AuthMethods))
		assert.JSONEq(t, `{"duet":{"updatedInput":true}}`, string(r.Capabilities.Meta))
		for _, present := range []json.RawMessage{r.Capabilities.Session.Prompt.Image, r.Capabilities.Session.Prompt.EmbeddedContext, r.Capabilities.Session.MCP.Stdio} {
			assert.JSONEq(t, `{}`, string(present))
		}
	}
}

// A mode is a value of an option.
func TestModesInVersion2(t *testing.T) {
	c := start2(t, demoagent.Options{}, 2)
	dir := t.TempDir()
	s := c.session(dir)
	set := func(option string, value any) string {
		return c.call("session/set_config_option", object{"sessionId": s, "configId": option, "type": "id", "value": value})
	}
	assert.Contains(t, set("mode", "acceptEdits"), `"currentValue":"acceptEdits"`)
	for _, refused := range []string{set("mode", "no such mode"), set("mode", true), set("model", "x")} {
		assert.Contains(t, refused, "-32602")
	}
	assert.Contains(t, c.call("session/resume", object{"sessionId": s, "cwd": dir}), `"currentValue":"acceptEdits"`, "a refused value changes nothing")
}

// A diff is a git patch with absolute paths.
func TestDiffsInVersion2(t *testing.T) {
	c := start2(t, demoagent.Options{}, 2)
	dir := filepath.Join(t.TempDir(), "my \"project\"")
	require.NoError(t, os.Mkdir(dir, 0o700))
	file := filepath.Join(dir, "demo.txt")
	require.NoError(t, os.WriteFile(file, []byte("no newline"), 0o600))
	c.prompt(c.session(dir), "please")
	c.awaits("permission ")
	line := c.line("session/request_permission")
	var m struct {
		Params struct {
			Subject struct {
				ToolCall struct {
					Content []struct {
						Changes []struct{ Operation, Path string }
						Patch   struct{ Format, Text string }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(line), &m), line)
	diff := m.Params.Subject.ToolCall.Content[0]
	assert.Equal(t, []struct{ Operation, Path string }{{"modify", file}}, diff.Changes)
	name := fmt.Sprintf("%q", file)
	assert.Equal(t, "diff --git "+name+" "+name+"\n--- "+name+"\t\n+++ "+name+"\t\n@@ -1 +1,2 @@\n-no newline\n\\ No newline at end of file\n+no newline\n+Turn 1: please\n", diff.Patch.Text)
	assert.Equal(t, "git_patch", diff.Patch.Format)
}

// A session is resumed with its state and, if the client requests it, with its history.
func TestResumeInVersion2(t *testing.T) {
	opts := demoagent.Options{StateDir: t.TempDir()}
	dir := t.TempDir()
	c := start2(t, opts, 2)
	s := c.session(dir)
	c.prompt(s, "late:1")
	c.Await(t, func() bool { return c.has("idle end_turn ") == 2 }, "both turns")
	c.prompt(s, "quiet")
	c.Await(t, func() bool { return c.has("idle end_turn ") == 3 }, "the third turn")
	c.in.Close()
	require.NoError(t, <-c.ends)

	c = start2(t, opts, 2)
	c.forget()
	c.call("session/resume", object{"sessionId": s, "cwd": dir})
	assert.Equal(t, []string{"idle", "= 2 "}, c.all())
	c.forget()
	c.call("session/resume", object{"sessionId": s, "cwd": dir, "replayFrom": object{"type": "start"}})
	assert.Equal(t, []string{
		`user prompt-1 [{"type":"text","text":"late:1"}]`, "text message-1-0: Hello from the demo agent. You asked: late:1 That is all. ", "text message-2-0: chunk 1 ",
		`user prompt-3 [{"type":"text","text":"quiet"}]`, "text message-3-0: Hello from the demo agent. You asked: quiet That is all. ", "idle", "= 3 ",
	}, c.all())
	assert.Contains(t, c.call("session/resume", object{"sessionId": s, "cwd": dir, "replayFrom": object{"type": "message", "messageId": "prompt-3"}}), "-32602")
	assert.Contains(t, c.call("session/list", object{}), s)
	assert.Contains(t, c.call("session/load", object{"sessionId": s, "cwd": dir}), "-32601", "a method of version 1")
}

// A message keeps its id in a replay, even if older turns were dropped.
func TestReplayOfALongSessionInVersion2(t *testing.T) {
	c := start2(t, demoagent.Options{}, 2)
	dir := t.TempDir()
	s := c.session(dir)
	for n := range 52 {
		c.prompt(s, fmt.Sprint("quiet ", n+1))
		c.Await(t, func() bool { return c.has("idle end_turn ") == n+1 }, "the end of the turn")
	}
	c.forget()
	c.call("session/resume", object{"sessionId": s, "cwd": dir, "replayFrom": object{"type": "start"}})
	assert.Equal(t, `user prompt-3 [{"type":"text","text":"quiet 3"}]`, c.all()[0])
}

// A cancel ends the running turn, and refuses the waiting prompts.
func TestCancelInVersion2(t *testing.T) {
	c := start2(t, demoagent.Options{}, 2)
	s := c.session(t.TempDir())
	c.silent = true
	running := c.prompt(s, "please")
	c.awaits("permission ")
	waiting := c.prompt(s, "quiet")
	c.send(object{"method": "session/cancel", "params": object{"sessionId": s}})
	c.awaits("idle cancelled")
	c.awaits(fmt.Sprintf("= %d error -32800", waiting))
	assert.Equal(t, 1, c.has(fmt.Sprintf("= %d prompt-1 ", running)))
	assert.Equal(t, 1, c.has("user "), "the prompt that waited is no part of the session")
	assert.Equal(t, 1, c.has("running "), "nothing went on")
	c.forget()
	c.prompt(s, "quiet")
	c.awaits("idle end_turn ")
}

// Prompts run one after the other, each with its own states.
func TestPromptsQueueInVersion2(t *testing.T) {
	c := start2(t, demoagent.Options{}, 2)
	s := c.session(t.TempDir())
	for range 3 {
		c.prompt(s, "quiet")
	}
	c.Await(t, func() bool { return c.has("idle end_turn ") == 3 }, "three turns")
	var states []string
	for _, short := range c.all() {
		if kind, _, _ := strings.Cut(short, " "); kind == "running" || kind == "idle" || kind == "user" {
			states = append(states, kind)
		}
	}
	assert.Equal(t, strings.Fields(strings.Repeat("user running idle ", 3)), states)
}

// Closing a session waits for the end of its work.
func TestCloseInVersion2(t *testing.T) {
	c := start2(t, demoagent.Options{}, 2)
	c.silent = true
	for range 30 { // the order varies
		s := c.session(t.TempDir())
		c.prompt(s, "please")
		c.awaits("permission ")
		c.call("session/close", object{"sessionId": s})
		all := c.all()
		answered := slices.Index(all, fmt.Sprintf("= %d ", c.last))
		assert.Contains(t, all[:answered], "idle cancelled")
	}
}

// A steered message reaches the running turn.
func TestSteeringInVersion2(t *testing.T) {
	c := start2(t, demoagent.Options{}, 2)
	s := c.session(t.TempDir())
	steer := func() string {
		return c.call("_session/steering", object{"sessionId": s, "prompt": []object{{"type": "text", "text": "hurry"}}})
	}
	assert.Contains(t, steer(), "promptRequired")
	c.silent = true
	c.prompt(s, "permit:1")
	c.awaits("permission ")
	assert.Contains(t, steer(), "injected")
	var m message
	require.NoError(t, json.Unmarshal([]byte(c.line("session/request_permission")), &m))
	c.answer(m.ID, object{"outcome": object{"outcome": "selected", "optionId": "allow_once"}})
	c.awaits("idle end_turn ")
	assert.Equal(t, 1, c.has("text message-1-1: You said meanwhile: hurry "))
}

// Invalid UTF-8 and long lines reach a client of version 2, too.
func TestOddLinesInVersion2(t *testing.T) {
	c := start2(t, demoagent.Options{}, 2)
	s := c.session(t.TempDir())
	c.prompt(s, "badutf8")
	c.awaits("idle end_turn ")
	c.prompt(s, "longline:3")
	c.Await(t, func() bool { return c.has("idle end_turn ") == 2 }, "the second turn")
	c.Lock()
	defer c.Unlock()
	assert.Contains(t, strings.Join(c.raw, ""), "bad \xff\xfe\xc3( bytes ")
	longest := 0
	for _, line := range c.raw {
		longest = max(longest, len(line))
	}
	assert.GreaterOrEqual(t, longest, 3<<20)
}
