package acpagent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func newTranslator() *translator {
	return &translator{
		Bytes: func(id string) ([]byte, error) {
			if id == "gone" {
				return nil, errors.New("it is gone")
			}
			return []byte("bytes of " + id), nil
		},
		IsOurs: func(session string) bool { return session == "ours" },
	}
}

// translated returns the updates of an event, as JSON. Its data also have the turn.
func translated(t *testing.T, translator *translator, kind string, seq int64, data string) []string {
	t.Helper()
	e := eventstream.Event{Kind: kind, Seq: seq, Time: time.Unix(seq, 0)}
	require.NoError(t, json.Unmarshal([]byte(data), &e), data)
	event, err := protocol.DecodeEvent(kind, json.RawMessage(data))
	require.NoError(t, err, data)
	return asJSON(t, translator.Event(e, event))
}

func translatedItem(t *testing.T, translator *translator, item string) []string {
	t.Helper()
	i := new(protocol.SessionItem)
	require.NoError(t, json.Unmarshal([]byte(item), i), item)
	return asJSON(t, translator.Item(i))
}

func asJSON(t *testing.T, updates []any) (list []string) {
	t.Helper()
	for _, u := range updates {
		b, err := json.Marshal(u)
		require.NoError(t, err)
		list = append(list, string(b))
	}
	return list
}

func TestMessageIsSentOnceInOrder(t *testing.T) {
	const delta, whole = "text.delta", "item.added"
	text := func(updates []string) string {
		var b strings.Builder
		for _, u := range updates {
			var c struct{ Content struct{ Text string } }
			require.NoError(t, json.Unmarshal([]byte(u), &c))
			b.WriteString(c.Content.Text)
		}
		return b.String()
	}
	message := func(key, content string) string {
		return `{"turn_uuid":"s","type":"message","role":"assistant","key":"` + key + `","text":"` + content + `"}`
	}
	piece := func(key, content string) string {
		return `{"turn_uuid":"s","key":"` + key + `","text":"` + content + `"}`
	}
	translator := newTranslator()
	assert.Equal(t, "a b ", text(append(translated(t, translator, delta, 1, piece("m", "a ")), translated(t, translator, delta, 2, piece("m", "b "))...)))
	assert.Empty(t, translated(t, translator, whole, 3, message("m", "a b ")), "the client has the whole message")

	// Pieces are missing: the rest waits for the whole message.
	assert.Equal(t, "1 ", text(translated(t, translator, delta, 4, piece("n", "1 "))))
	assert.Empty(t, translated(t, translator, "lagged", 5, `{"from_seq":4,"to_seq":5}`))
	assert.Empty(t, translated(t, translator, delta, 6, piece("n", "3 ")))
	assert.Equal(t, "2 3 4 ", text(translated(t, translator, whole, 7, message("n", "1 2 3 4 "))))

	// The same for a message whose beginning may be missing.
	translated(t, translator, "lagged", 8, `{}`)
	assert.Empty(t, translated(t, translator, delta, 9, piece("o", "inside ")))
	assert.Equal(t, "from inside ", text(translated(t, translator, whole, 10, message("o", "from inside "))))
	assert.Equal(t, "new", text(translated(t, translator, delta, 11, piece("p", "new"))), "the next message is whole")

	// The hub redacted a key from text that the client has. The translator does not send the text
	// again.
	assert.Empty(t, translated(t, translator, whole, 12, message("p", "n** and more")))

	// A message that was incomplete during a replay gets its rest.
	translator = newTranslator()
	translator.Since = 20
	assert.Equal(t, "half ", text(translatedItem(t, translator, `{"turn_uuid":"s","open":true,"type":"message","role":"assistant","key":"q","text":"half ","seq":22}`)))
	assert.Empty(t, translated(t, translator, delta, 21, piece("q", "half ")))
	assert.Empty(t, translated(t, translator, delta, 23, piece("q", "of it ")))
	assert.Equal(t, "of it ", text(translated(t, translator, whole, 24, message("q", "half of it "))))
}

// Late text of the agent extends the last message. A client gets only the new part, even if it
// has the message from a replay.
func TestLateTextOfAMessage(t *testing.T) {
	late := func(translator *translator, seq int64, content string) []string {
		return translated(t, translator, "item.added", seq, `{"turn_uuid":"s","type":"message","role":"assistant","key":"m","text":"`+content+`"}`)
	}
	chunk := func(text string) []string {
		return []string{`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + text + `"}}`}
	}
	translator := newTranslator()
	translated(t, translator, "text.delta", 1, `{"turn_uuid":"s","key":"m","text":"one"}`)
	assert.Empty(t, late(translator, 2, "one"))
	translated(t, translator, "turn.state", 3, `{"turn_uuid":"s","state":"interrupted"}`)
	assert.Equal(t, chunk(", two"), late(translator, 4, "one, two"))
	assert.Equal(t, chunk(", three"), late(translator, 5, "one, two, three"))

	translator = newTranslator()
	translator.Since = 10
	translatedItem(t, translator, `{"turn_uuid":"s","type":"message","role":"assistant","key":"m","text":"one","seq":9}`)
	assert.Equal(t, chunk(", two"), late(translator, 11, "one, two"))
}

func TestReplayedEventIsNotRepeated(t *testing.T) {
	translator := newTranslator()
	translator.Since = 10
	translatedItem(t, translator, `{"turn_uuid":"s","type":"message","role":"assistant","key":"m","text":"x","seq":12}`)
	assert.Empty(t, translated(t, translator, "item.added", 12, `{"turn_uuid":"s","type":"message","role":"assistant","key":"m","text":"x"}`))
	translatedItem(t, translator, `{"turn_uuid":"s","type":"tool_call","key":"t","title":"T","status":"pending","seq":13}`)
	assert.Empty(t, translated(t, translator, "item.changed", 13, `{"turn_uuid":"s","type":"tool_call","key":"t","status":"pending"}`))
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`},
		translated(t, translator, "item.changed", 14, `{"turn_uuid":"s","type":"tool_call","key":"t","status":"completed"}`))
}

// A client already has its own prompts, but not the prompts of other clients.
func TestPromptsOfOtherClientsAreSent(t *testing.T) {
	translator := newTranslator()
	const prompt = `"type":"message","role":"user","key":"m","text":"hello"}`
	assert.Empty(t, translated(t, translator, "item.added", 1, `{"turn_uuid":"ours",`+prompt))
	assert.Equal(t, []string{`{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"hello"}}`},
		translated(t, translator, "item.added", 2, `{"turn_uuid":"another",`+prompt))
}

func TestToolCalls(t *testing.T) {
	translator := newTranslator()
	const event = "item.changed"
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Write a","kind":"edit","status":"pending","content":[{"type":"diff","path":"/a","newText":""}],"locations":[{"path":"/a"}],"rawInput":{"path":"/a"}}`},
		translated(t, translator, event, 1, `{"turn_uuid":"s","type":"tool_call","key":"c","title":"Write a","tool_kind":"edit","status":"pending","tool_input":{"path":"/a"},"details":{"paths":["/a"],"diffs":[{"path":"/a","new_text":""}]}}`))
	// The content of an update replaces the earlier content, so the update repeats the diff.
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"diff","path":"/a","newText":""},{"type":"content","content":{"type":"text","text":"done"}}],"rawOutput":"done"}`},
		translated(t, translator, event, 2, `{"turn_uuid":"s","type":"tool_call","key":"c","status":"completed","result":"done"}`))

	// The translator shows an agent's terminal as text: most clients show only their own terminals.
	translated(t, translator, event, 3, `{"turn_uuid":"s","type":"tool_call","key":"d","tool_name":"Bash","details":{"terminal":"T"}}`)
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","content":[{"type":"content","content":{"type":"text","text":"` + "```console\\na\\n```" + `"}}]}`},
		translated(t, translator, "terminal.output", 4, `{"terminal_id":"T","data":"a\n","encoding":"utf-8"}`))
	assert.Empty(t, translator.Event(eventstream.Event{Time: time.Unix(4, 1)}, &protocol.TerminalOutputEvent{TerminalID: "T", Data: "b\n"}), "text is not sent for each piece")
	assert.Contains(t, translated(t, translator, "terminal.exited", 6, `{"terminal_id":"T"}`)[0], `a\nb`)
	assert.NotContains(t, strings.Replace(translated(t, translator, event, 7, `{"turn_uuid":"s","type":"tool_call","key":"d","status":"completed","result":"a\nb\n"}`)[0], "rawOutput", "", 1), `"text":"a\nb\n"`, "the output is not sent twice")

	// The same id in another turn is another call for the client.
	translated(t, translator, "turn.state", 8, `{"turn_uuid":"s","state":"completed"}`)
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"c~s2","title":"again","status":"pending","_meta":{"duet":{"parentToolCallId":"d~s2"}}}`},
		translated(t, translator, event, 9, `{"turn_uuid":"s2","type":"tool_call","key":"c","title":"again","status":"pending","parent_tool_use_id":"d"}`))
	assert.Equal(t, "c~s2", translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s2", ToolUseID: "c"}}).ToolCallID)
	assert.Equal(t, "c", translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s", ToolUseID: "c"}}).ToolCallID)
}

// A client that shows an agent's terminals gets a terminal, piece by piece. In a replay it gets
// text.
func TestTerminalsInKind(t *testing.T) {
	translator := newTranslator()
	translator.Client.Can.Meta.TerminalOutput = true
	const event = "item.changed"
	assert.Empty(t, translated(t, translator, "terminal.output", 1, `{"terminal_id":"T","data":"early\n","encoding":"utf-8"}`), "its tool call is not known yet")
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"d","name":"Bash","title":"Bash","content":[{"type":"terminal","terminalId":"T"}],"_meta":{"terminal_info":{"terminal_id":"T"},"terminal_output":{"data":"early\n","terminal_id":"T"}}}`},
		translated(t, translator, event, 2, `{"turn_uuid":"s","type":"tool_call","key":"d","tool_name":"Bash","details":{"terminal":"T"}}`))
	for seq, text := range []string{"a", "b"} { // each piece
		assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","_meta":{"terminal_output":{"data":"` + text + `","terminal_id":"T"}}}`},
			translated(t, translator, "terminal.output", int64(3+seq), `{"terminal_id":"T","data":"`+text+`","encoding":"utf-8"}`))
	}
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","_meta":{"terminal_exit":{"exit_code":3,"signal":null,"terminal_id":"T"}}}`},
		translated(t, translator, "terminal.exited", 6, `{"terminal_id":"T","exit_code":3}`))
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","status":"completed","content":[{"type":"terminal","terminalId":"T"}],"rawOutput":"early\nab"}`},
		translated(t, translator, event, 7, `{"turn_uuid":"s","type":"tool_call","key":"d","status":"completed","result":"early\nab"}`))

	translator = newTranslator()
	translator.Client.Can.Meta.TerminalOutput = true
	assert.Equal(t, []string{
		`{"sessionUpdate":"tool_call","toolCallId":"d","title":"T","status":"completed"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"d","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ab"}}],"rawOutput":"ab"}`,
	}, translatedItem(t, translator, `{"turn_uuid":"s","type":"tool_call","key":"d","title":"T","status":"completed","details":{"terminal":"T"},"result":"ab","seq":2}`))
}

func clientWithStates() acp.Client {
	return acp.InitializeRequest{ProtocolVersion: acp.Version2, Info: &acp.Implementation{}, Capabilities: &acp.ClientCapabilities{}}.Accept(0)
}

// For a client of version 2 a terminal has its own updates, and outlives the turn.
func TestTerminalsOfVersion2(t *testing.T) {
	translator := newTranslator()
	translator.Client = clientWithStates()
	const event = "item.changed"
	assert.Empty(t, translated(t, translator, "terminal.output", 1, `{"terminal_id":"T","data":"early","encoding":"utf-8"}`))
	assert.Equal(t, []string{
		`{"sessionUpdate":"terminal_update","terminalId":"T","command":"ls","output":{"data":"ZWFybHk="}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"d","name":"Bash","title":"Bash","content":[{"type":"terminal","terminalId":"T"}],"rawInput":{"command":"ls"}}`,
	}, translated(t, translator, event, 2, `{"turn_uuid":"s","type":"tool_call","key":"d","tool_name":"Bash","tool_input":{"command":"ls"},"details":{"terminal":"T"}}`))
	assert.Equal(t, []string{`{"sessionUpdate":"terminal_output_chunk","terminalId":"T","data":"YQ=="}`}, translated(t, translator, "terminal.output", 3, `{"terminal_id":"T","data":"YQ==","encoding":"base64"}`))
	translated(t, translator, "turn.state", 4, `{"turn_uuid":"s","state":"completed"}`)
	assert.Equal(t, []string{`{"sessionUpdate":"terminal_output_chunk","terminalId":"T","data":"Yg=="}`}, translated(t, translator, "terminal.output", 5, `{"terminal_id":"T","data":"b","encoding":"utf-8"}`))
	assert.Equal(t, []string{`{"sessionUpdate":"terminal_update","terminalId":"T","exitStatus":{"exitCode":0}}`}, translated(t, translator, "terminal.exited", 6, `{"terminal_id":"T","exit_code":0}`))
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","status":"completed","content":[{"type":"terminal","terminalId":"T"}],"rawOutput":"over"}`},
		translated(t, translator, event, 7, `{"turn_uuid":"s","type":"tool_call","key":"d","status":"completed","result":"over"}`), "the call keeps its title and its terminal")

	translated(t, translator, "terminal.exited", 8, `{"terminal_id":"U","exit_code":3}`)
	assert.Equal(t, `{"sessionUpdate":"terminal_update","terminalId":"U","exitStatus":{"exitCode":3}}`,
		translated(t, translator, event, 9, `{"turn_uuid":"s","type":"tool_call","key":"e","details":{"terminal":"U"}}`)[0], "the terminal has ended before its tool call")
}

// A client of version 2 stores tool calls: a question does not change the title of a call, and an
// update in another turn does not begin the call again.
func TestToolCallsOfVersion2(t *testing.T) {
	translator := newTranslator()
	translator.Client = clientWithStates()
	const event = "item.changed"
	assert.Equal(t, "T", translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s", ToolUseID: "c", Title: "T"}}).Title)
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"c","name":"Bash","status":"paused"}`},
		translated(t, translator, event, 1, `{"turn_uuid":"s","type":"tool_call","key":"c","tool_name":"Bash","status":"paused"}`))
	q := translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s", ToolUseID: "c", Title: "Run it?", ToolName: "Bash", Plan: "the plan", Details: "why", Reopened: "again"}})
	assert.Empty(t, q.Title)
	assert.Equal(t, "Bash", q.Name)
	assert.Len(t, q.Content, 1, "the content has the text of the question")

	// Background work refers to the latest call with the agent's id.
	translated(t, translator, event, 2, `{"turn_uuid":"s2","type":"tool_call","key":"c","title":"again"}`)
	updates, items := translator.Background([]domain.BackgroundTask{{ID: "c", Kind: domain.BackgroundToolCall}})
	assert.Empty(t, updates)
	assert.Equal(t, []string{`{"type":"tool_call","toolCallId":"c~s2"}`}, asJSON(t, items))
}

// A message of the hub is a notice for a client of version 2 and, in a replay, a thought.
func TestNotices(t *testing.T) {
	translator := newTranslator()
	translator.Client = clientWithStates()
	said := func(subtype, text string) string {
		return translated(t, translator, "item.added", 1, `{"turn_uuid":"s","type":"notice","key":"n","subtype":"`+subtype+`","text":"`+text+`"}`)[0]
	}
	assert.JSONEq(t, `{"sessionUpdate":"notice","severity":"info","title":"It continued."}`, said("went_on", "It continued."))
	assert.JSONEq(t, `{"sessionUpdate":"notice","severity":"warning","title":"Cut","description":"a\nb"}`, said("background_cut", `Cut\na\nb`))
	assert.JSONEq(t, `{"sessionUpdate":"notice","severity":"info","title":"gates"}`, said("gates", ""))
	assert.Equal(t, []string{`{"sessionUpdate":"agent_thought_chunk","messageId":"n","content":{"type":"text","text":"[It continued.]\n"}}`},
		translatedItem(t, translator, `{"turn_uuid":"s","type":"notice","key":"n","text":"It continued."}`))
	for raw, passes := range map[string]bool{
		`{"sessionUpdate":"notice","severity":"info","title":"x"}`: true, `{"sessionUpdate":"_mine"}`: true,
		`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}`: true, `{"sessionUpdate":"tool_call"}`: false,
	} {
		assert.Equal(t, passes, len(translated(t, translator, "agent.update", 2, `{"update":`+raw+`}`)) == 1, raw)
	}
}

func TestContentAsBlockOrText(t *testing.T) {
	translator := newTranslator()
	assert.Equal(t, []string{
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"image","data":"Ynl0ZXMgb2YgaQ==","mimeType":"image/png"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"[image a.png image/png 7 B]\n"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"resource_link","uri":"file:///x","name":"x"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"resource","resource":{"uri":"file:///y","mimeType":"text/plain","text":"bytes of r"}}}`,
	}, translated(t, translator, "item.added", 1, `{"turn_uuid":"s","type":"message","role":"assistant","key":"m",
		"text":"[image image/png]\n[image a.png image/png 7 B]\n…","attachments":[
		{"type":"image","attachment_id":"i","mime_type":"image/png"},
		{"type":"image","attachment_id":"gone","mime_type":"image/png","name":"a.png","size":7},
		{"type":"resource_link","uri":"file:///x","name":"x"},
		{"type":"resource","attachment_id":"r","uri":"file:///y","mime_type":"text/plain"}]}`))
	assert.Equal(t, []string{`{"sessionUpdate":"agent_thought_chunk","messageId":"n","content":{"type":"image","data":"Ynl0ZXMgb2YgaQ==","mimeType":"image/png"}}`},
		translated(t, translator, "item.added", 2, `{"turn_uuid":"s","type":"thought","role":"assistant","key":"n",
			"text":"[image image/png]","attachments":[{"type":"image","attachment_id":"i","mime_type":"image/png"}]}`))
	assert.Equal(t, []string{`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"pending"}]}`}, translated(t, translator, "plan", 2, `{"entries":[{"content":"a"}]}`))
	assert.Equal(t, []string{`{"sessionUpdate":"usage_update","used":5,"size":10,"cost":{"amount":0.5,"currency":"USD"}}`}, translated(t, translator, "usage", 3, `{"context_used":5,"context_size":10,"cost_usd":0.5}`))
	assert.Empty(t, translated(t, translator, "usage", 4, `{"input_tokens":5}`), "the size of the used context is unknown")
	assert.Empty(t, translated(t, translator, "agent.update", 5, `{"update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}`), "sent with settings")
	assert.Equal(t, []string{`{"sessionUpdate":"_mine","x":1}`}, translated(t, translator, "agent.update", 6, `{"update":{"sessionUpdate":"_mine","x":1}}`))
}

// The translator passes on the agent's _meta of a tool call, merged with Duet's.
func TestMetaOfToolCalls(t *testing.T) {
	translator := newTranslator()
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"c","title":"c","_meta":{"duet":{"parentToolCallId":"p"},"vendor":{"n":1}}}`},
		translated(t, translator, "item.changed", 1, `{"turn_uuid":"s","type":"tool_call","key":"c","parent_tool_use_id":"p","details":{"_meta":{"vendor":{"n":1}}}}`))
	assert.Equal(t, map[string]any{"vendor": map[string]any{"n": 1.0}}, translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s", ToolUseID: "c"}}).Meta)
}

// A replay contains the _meta of messages and thoughts, and so does a whole message.
func TestMetaOfMessagesInAReplay(t *testing.T) {
	translator := newTranslator()
	for kind, update := range map[string]string{"message": "agent_message_chunk", "thought": "agent_thought_chunk"} {
		want := []string{`{"sessionUpdate":"` + update + `","messageId":"` + kind + `","content":{"type":"text","text":"x"},"_meta":{"duet":{"parentToolCallId":"p"},"n":1}}`}
		assert.Equal(t, want, translatedItem(t, translator, `{"turn_uuid":"s","type":"`+kind+`","role":"assistant","key":"`+kind+`","text":"x","parent_tool_use_id":"p","_meta":{"n":1},"seq":1}`))
		assert.Equal(t, want, translated(t, newTranslator(), "item.added", 2, `{"turn_uuid":"s","type":"`+kind+`","role":"assistant","key":"`+kind+`","text":"x","parent_tool_use_id":"p","_meta":{"n":1}}`))
	}
}

// The translator passes on the _meta of live messages, usage and session updates.
func TestMetaOfOtherUpdates(t *testing.T) {
	translator := newTranslator()
	for kind, c := range map[string]struct{ data, want string }{
		"text.delta":    {`{"key":"m","text":"x","parent_tool_use_id":"p","_meta":{"n":1}}`, `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"},"_meta":{"duet":{"parentToolCallId":"p"},"n":1}}`},
		"thought.delta": {`{"key":"t","text":"x","_meta":{"n":1}}`, `{"sessionUpdate":"agent_thought_chunk","messageId":"t","content":{"type":"text","text":"x"},"_meta":{"n":1}}`},
		"usage":         {`{"context_used":1,"context_size":2,"_meta":{"n":1}}`, `{"sessionUpdate":"usage_update","used":1,"size":2,"_meta":{"n":1}}`},
		"agent.update":  {`{"update":{"sessionUpdate":"session_info_update","title":"T","_meta":{"n":1}}}`, `{"sessionUpdate":"session_info_update","_meta":{"n":1}}`},
	} {
		assert.Equal(t, []string{c.want}, translated(t, translator, kind, 1, c.data), kind)
	}
	assert.Empty(t, translated(t, translator, "agent.update", 2, `{"update":{"sessionUpdate":"session_info_update","title":"T"}}`))
}
