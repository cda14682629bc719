package acpagent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// translated returns the updates of an event, as JSON.
func translated(t *testing.T, translator *translator, kind string, seq int64, data string) []string {
	t.Helper()
	event, err := protocol.DecodeEvent(kind, json.RawMessage(data))
	require.NoError(t, err, data)
	return asJSON(t, translator.Event(event, seq, time.Unix(seq, 0)))
}

func translatedEntry(t *testing.T, translator *translator, entry string) []string {
	t.Helper()
	var e hubclient.Entry
	require.NoError(t, json.Unmarshal([]byte(entry), &e), entry)
	return asJSON(t, translator.Entry(e))
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
	const delta, whole = "message_delta", "conversation_updated"
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
		return `{"session_id":"s","event_type":"message","role":"assistant","message_id":"` + key + `","content":"` + content + `"}`
	}
	piece := func(key, content string) string {
		return `{"session_id":"s","message_id":"` + key + `","delta":"` + content + `"}`
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
	assert.Equal(t, "half ", text(translatedEntry(t, translator, `{"session_id":"s","event_type":"message","role":"assistant","key":"q","content":"half ","seq":22}`)))
	assert.Empty(t, translated(t, translator, delta, 21, piece("q", "half ")))
	assert.Empty(t, translated(t, translator, delta, 23, piece("q", "of it ")))
	assert.Equal(t, "of it ", text(translated(t, translator, whole, 24, message("q", "half of it "))))
}

// Late text of the agent extends the last message. A client gets only the new part, even if it
// has the message from a replay.
func TestLateTextOfAMessage(t *testing.T) {
	late := func(translator *translator, seq int64, content string) []string {
		return translated(t, translator, "conversation_updated", seq, `{"session_id":"s","event_type":"message","role":"assistant","message_id":"m","content":"`+content+`"}`)
	}
	chunk := func(text string) []string {
		return []string{`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"` + text + `"}}`}
	}
	translator := newTranslator()
	translated(t, translator, "message_delta", 1, `{"session_id":"s","message_id":"m","delta":"one"}`)
	assert.Empty(t, late(translator, 2, "one"))
	translated(t, translator, "session_status_changed", 3, `{"session_id":"s","state":"interrupted"}`)
	assert.Equal(t, chunk(", two"), late(translator, 4, "one, two"))
	assert.Equal(t, chunk(", three"), late(translator, 5, "one, two, three"))

	translator = newTranslator()
	translator.Since = 10
	translatedEntry(t, translator, `{"session_id":"s","event_type":"message","role":"assistant","key":"m","content":"one","is_completed":true,"seq":9}`)
	assert.Equal(t, chunk(", two"), late(translator, 11, "one, two"))
}

func TestReplayedEventIsNotRepeated(t *testing.T) {
	translator := newTranslator()
	translator.Since = 10
	translatedEntry(t, translator, `{"session_id":"s","event_type":"message","role":"assistant","key":"m","content":"x","is_completed":true,"seq":12}`)
	assert.Empty(t, translated(t, translator, "conversation_updated", 12, `{"session_id":"s","event_type":"message","role":"assistant","message_id":"m","content":"x"}`))
	translatedEntry(t, translator, `{"session_id":"s","event_type":"tool_call","tool_id":"t","title":"T","status":"pending","seq":13}`)
	assert.Empty(t, translated(t, translator, "conversation_updated", 13, `{"session_id":"s","event_type":"tool_call","tool_id":"t","tool_status":"pending"}`))
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`},
		translated(t, translator, "conversation_updated", 14, `{"session_id":"s","event_type":"tool_result","tool_id":"t","tool_status":"completed"}`))
}

// A client already has its own prompts, but not the prompts of other clients.
func TestPromptsOfOtherClientsAreSent(t *testing.T) {
	translator := newTranslator()
	const prompt = `"event_type":"message","role":"user","message_id":"m","content":"hello"}`
	assert.Empty(t, translated(t, translator, "conversation_updated", 1, `{"session_id":"ours",`+prompt))
	assert.Equal(t, []string{`{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"hello"}}`},
		translated(t, translator, "conversation_updated", 2, `{"session_id":"another",`+prompt))
}

func TestToolCalls(t *testing.T) {
	translator := newTranslator()
	const event = "conversation_updated"
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Write a","kind":"edit","status":"pending","content":[{"type":"diff","path":"/a","newText":""}],"locations":[{"path":"/a"}],"rawInput":{"path":"/a"}}`},
		translated(t, translator, event, 1, `{"session_id":"s","event_type":"tool_call","tool_id":"c","tool_title":"Write a","tool_kind":"edit","tool_status":"pending","tool_input":{"path":"/a"},"tool_data":{"paths":["/a"],"diffs":[{"path":"/a","new_text":""}]}}`))
	// The content of an update replaces the earlier content, so the update repeats the diff.
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"diff","path":"/a","newText":""},{"type":"content","content":{"type":"text","text":"done"}}],"rawOutput":"done"}`},
		translated(t, translator, event, 2, `{"session_id":"s","event_type":"tool_result","tool_id":"c","tool_status":"completed","tool_result_content":"done"}`))

	// The translator shows an agent's terminal as text: most clients show only their own terminals.
	translated(t, translator, event, 3, `{"session_id":"s","event_type":"tool_call","tool_id":"d","tool_name":"Bash","tool_data":{"terminal":"T"}}`)
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","content":[{"type":"content","content":{"type":"text","text":"` + "```console\\na\\n```" + `"}}]}`},
		translated(t, translator, "terminal_output", 4, `{"terminal_id":"T","data":"a\n","encoding":"utf-8"}`))
	assert.Empty(t, translator.Event(&protocol.TerminalEvent{TerminalID: "T", Data: "b\n"}, 5, time.Unix(4, 1)), "text is not sent for each piece")
	assert.Contains(t, translated(t, translator, "terminal_exit", 6, `{"terminal_id":"T"}`)[0], `a\nb`)
	assert.NotContains(t, strings.Replace(translated(t, translator, event, 7, `{"session_id":"s","event_type":"tool_result","tool_id":"d","tool_status":"completed","tool_result_content":"a\nb\n"}`)[0], "rawOutput", "", 1), `"text":"a\nb\n"`, "the output is not sent twice")

	// The same id in another turn is another call for the client.
	translated(t, translator, "session_status_changed", 8, `{"session_id":"s","state":"completed"}`)
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"c~s2","title":"again","status":"pending","_meta":{"duet":{"parentToolCallId":"d~s2"}}}`},
		translated(t, translator, event, 9, `{"session_id":"s2","event_type":"tool_call","tool_id":"c","tool_title":"again","tool_status":"pending","parent_tool_use_id":"d"}`))
	assert.Equal(t, "c~s2", translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s2", ToolUseID: "c"}}).ToolCallID)
	assert.Equal(t, "c", translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s", ToolUseID: "c"}}).ToolCallID)
}

// A client that shows an agent's terminals gets a terminal, piece by piece. In a replay it gets
// text.
func TestTerminalsInKind(t *testing.T) {
	translator := newTranslator()
	translator.Client.Can.Meta.TerminalOutput = true
	const event = "conversation_updated"
	assert.Empty(t, translated(t, translator, "terminal_output", 1, `{"terminal_id":"T","data":"early\n","encoding":"utf-8"}`), "its tool call is not known yet")
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"d","name":"Bash","title":"Bash","content":[{"type":"terminal","terminalId":"T"}],"_meta":{"terminal_info":{"terminal_id":"T"},"terminal_output":{"data":"early\n","terminal_id":"T"}}}`},
		translated(t, translator, event, 2, `{"session_id":"s","event_type":"tool_call","tool_id":"d","tool_name":"Bash","tool_data":{"terminal":"T"}}`))
	for seq, text := range []string{"a", "b"} { // each piece
		assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","_meta":{"terminal_output":{"data":"` + text + `","terminal_id":"T"}}}`},
			translated(t, translator, "terminal_output", int64(3+seq), `{"terminal_id":"T","data":"`+text+`","encoding":"utf-8"}`))
	}
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","_meta":{"terminal_exit":{"exit_code":3,"signal":null,"terminal_id":"T"}}}`},
		translated(t, translator, "terminal_exit", 6, `{"terminal_id":"T","exit_code":3}`))
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","status":"completed","content":[{"type":"terminal","terminalId":"T"}],"rawOutput":"early\nab"}`},
		translated(t, translator, event, 7, `{"session_id":"s","event_type":"tool_result","tool_id":"d","tool_status":"completed","tool_result_content":"early\nab"}`))

	translator = newTranslator()
	translator.Client.Can.Meta.TerminalOutput = true
	translatedEntry(t, translator, `{"session_id":"s","event_type":"tool_call","tool_id":"d","title":"T","status":"pending","data":{"terminal":"T"},"seq":1}`)
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ab"}}],"rawOutput":"ab"}`},
		translatedEntry(t, translator, `{"session_id":"s","event_type":"tool_result","tool_result_for_id":"d","status":"completed","tool_result_content":"ab","is_completed":true,"seq":2}`))
}

func clientWithStates() acp.Client {
	return acp.InitializeRequest{ProtocolVersion: acp.Version2, Info: &acp.Implementation{}, Capabilities: &acp.ClientCapabilities{}}.Accept(0)
}

// For a client of version 2 a terminal has its own updates, and outlives the turn.
func TestTerminalsOfVersion2(t *testing.T) {
	translator := newTranslator()
	translator.Client = clientWithStates()
	const event = "conversation_updated"
	assert.Empty(t, translated(t, translator, "terminal_output", 1, `{"terminal_id":"T","data":"early","encoding":"utf-8"}`))
	assert.Equal(t, []string{
		`{"sessionUpdate":"terminal_update","terminalId":"T","command":"ls","output":{"data":"ZWFybHk="}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"d","name":"Bash","title":"Bash","content":[{"type":"terminal","terminalId":"T"}],"rawInput":{"command":"ls"}}`,
	}, translated(t, translator, event, 2, `{"session_id":"s","event_type":"tool_call","tool_id":"d","tool_name":"Bash","tool_input":{"command":"ls"},"tool_data":{"terminal":"T"}}`))
	assert.Equal(t, []string{`{"sessionUpdate":"terminal_output_chunk","terminalId":"T","data":"YQ=="}`}, translated(t, translator, "terminal_output", 3, `{"terminal_id":"T","data":"YQ==","encoding":"base64"}`))
	translated(t, translator, "session_status_changed", 4, `{"session_id":"s","state":"completed"}`)
	assert.Equal(t, []string{`{"sessionUpdate":"terminal_output_chunk","terminalId":"T","data":"Yg=="}`}, translated(t, translator, "terminal_output", 5, `{"terminal_id":"T","data":"b","encoding":"utf-8"}`))
	assert.Equal(t, []string{`{"sessionUpdate":"terminal_update","terminalId":"T","exitStatus":{"exitCode":0}}`}, translated(t, translator, "terminal_exit", 6, `{"terminal_id":"T","exit_code":0}`))
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call_update","toolCallId":"d","status":"completed","content":[{"type":"terminal","terminalId":"T"}],"rawOutput":"over"}`},
		translated(t, translator, event, 7, `{"session_id":"s","event_type":"tool_result","tool_id":"d","tool_status":"completed","tool_result_content":"over"}`), "the call keeps its title and its terminal")

	translated(t, translator, "terminal_exit", 8, `{"terminal_id":"U","exit_code":3}`)
	assert.Equal(t, `{"sessionUpdate":"terminal_update","terminalId":"U","exitStatus":{"exitCode":3}}`,
		translated(t, translator, event, 9, `{"session_id":"s","event_type":"tool_call","tool_id":"e","tool_data":{"terminal":"U"}}`)[0], "the terminal has ended before its tool call")
}

// A client of version 2 stores tool calls: a question does not change the title of a call, and an
// update in another turn does not begin the call again.
func TestToolCallsOfVersion2(t *testing.T) {
	translator := newTranslator()
	translator.Client = clientWithStates()
	const event = "conversation_updated"
	assert.Equal(t, "T", translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s", ToolUseID: "c", Title: "T"}}).Title)
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"c","name":"Bash","status":"paused"}`},
		translated(t, translator, event, 1, `{"session_id":"s","event_type":"tool_call","tool_id":"c","tool_name":"Bash","tool_status":"paused"}`))
	q := translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s", ToolUseID: "c", Title: "Run it?", ToolName: "Bash", Plan: "the plan", Details: "why", Reopened: "again"}})
	assert.Empty(t, q.Title)
	assert.Equal(t, "Bash", q.Name)
	assert.Len(t, q.Content, 1, "the content has the text of the question")

	// Background work refers to the latest call with the agent's id.
	translated(t, translator, event, 2, `{"session_id":"s2","event_type":"tool_call","tool_id":"c","tool_title":"again"}`)
	updates, items := translator.Background([]domain.BackgroundTask{{ID: "c", Kind: domain.BackgroundToolCall}})
	assert.Empty(t, updates)
	assert.Equal(t, []string{`{"type":"tool_call","toolCallId":"c~s2"}`}, asJSON(t, items))
}

// A message of the hub is a notice for a client of version 2 and, in a replay, a thought.
func TestNotices(t *testing.T) {
	translator := newTranslator()
	translator.Client = clientWithStates()
	said := func(subtype, text string) string {
		return translated(t, translator, "conversation_updated", 1, `{"session_id":"s","event_type":"system","message_id":"n","subtype":"`+subtype+`","content":"`+text+`"}`)[0]
	}
	assert.JSONEq(t, `{"sessionUpdate":"notice","severity":"info","title":"It continued."}`, said("went_on", "It continued."))
	assert.JSONEq(t, `{"sessionUpdate":"notice","severity":"warning","title":"Cut","description":"a\nb"}`, said("background_cut", `Cut\na\nb`))
	assert.JSONEq(t, `{"sessionUpdate":"notice","severity":"info","title":"gates"}`, said("gates", ""))
	assert.Equal(t, []string{`{"sessionUpdate":"agent_thought_chunk","messageId":"n","content":{"type":"text","text":"[It continued.]\n"}}`},
		translatedEntry(t, translator, `{"session_id":"s","event_type":"system","key":"n","content":"It continued."}`))
	for raw, passes := range map[string]bool{
		`{"sessionUpdate":"notice","severity":"info","title":"x"}`: true, `{"sessionUpdate":"_mine"}`: true,
		`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}`: true, `{"sessionUpdate":"tool_call"}`: false,
	} {
		assert.Equal(t, passes, len(translated(t, translator, "agent_update", 2, `{"update":`+raw+`}`)) == 1, raw)
	}
}

func TestContentAsBlockOrText(t *testing.T) {
	translator := newTranslator()
	assert.Equal(t, []string{
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"image","data":"Ynl0ZXMgb2YgaQ==","mimeType":"image/png"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"[image a.png image/png 7 B]\n"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"resource_link","uri":"file:///x","name":"x"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"resource","resource":{"uri":"file:///y","mimeType":"text/plain","text":"bytes of r"}}}`,
	}, translated(t, translator, "conversation_updated", 1, `{"session_id":"s","event_type":"message","role":"assistant","message_id":"m",
		"content":"[image image/png]\n[image a.png image/png 7 B]\n…","attachments":[
		{"type":"image","attachment_id":"i","mime_type":"image/png"},
		{"type":"image","attachment_id":"gone","mime_type":"image/png","name":"a.png","size":7},
		{"type":"resource_link","uri":"file:///x","name":"x"},
		{"type":"resource","attachment_id":"r","uri":"file:///y","mime_type":"text/plain"}]}`))
	assert.Equal(t, []string{`{"sessionUpdate":"agent_thought_chunk","messageId":"n","content":{"type":"image","data":"Ynl0ZXMgb2YgaQ==","mimeType":"image/png"}}`},
		translated(t, translator, "conversation_updated", 2, `{"session_id":"s","event_type":"thinking","role":"assistant","message_id":"n",
			"content":"[image image/png]","attachments":[{"type":"image","attachment_id":"i","mime_type":"image/png"}]}`))
	assert.Equal(t, []string{`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"pending"}]}`}, translated(t, translator, "plan", 2, `{"entries":[{"content":"a"}]}`))
	assert.Equal(t, []string{`{"sessionUpdate":"usage_update","used":5,"size":10,"cost":{"amount":0.5,"currency":"USD"}}`}, translated(t, translator, "usage", 3, `{"context_used":5,"context_size":10,"cost_usd":0.5}`))
	assert.Empty(t, translated(t, translator, "usage", 4, `{"input_tokens":5}`), "the size of the used context is unknown")
	assert.Empty(t, translated(t, translator, "agent_update", 5, `{"update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}`), "sent with settings")
	assert.Equal(t, []string{`{"sessionUpdate":"_mine","x":1}`}, translated(t, translator, "agent_update", 6, `{"update":{"sessionUpdate":"_mine","x":1}}`))
}

// The translator passes on the agent's _meta of a tool call, merged with Duet's.
func TestMetaOfToolCalls(t *testing.T) {
	translator := newTranslator()
	assert.Equal(t, []string{`{"sessionUpdate":"tool_call","toolCallId":"c","title":"c","_meta":{"duet":{"parentToolCallId":"p"},"vendor":{"n":1}}}`},
		translated(t, translator, "conversation_updated", 1, `{"session_id":"s","event_type":"tool_call","tool_id":"c","parent_tool_use_id":"p","tool_data":{"_meta":{"vendor":{"n":1}}}}`))
	assert.Equal(t, map[string]any{"vendor": map[string]any{"n": 1.0}}, translator.Question(hubclient.Approval{Approval: protocol.Approval{TurnUUID: "s", ToolUseID: "c"}}).Meta)
}

// A replay contains the _meta of messages and thoughts, and so does a whole message.
func TestMetaOfMessagesInAReplay(t *testing.T) {
	translator := newTranslator()
	for kind, update := range map[string]string{"message": "agent_message_chunk", "thinking": "agent_thought_chunk"} {
		want := []string{`{"sessionUpdate":"` + update + `","messageId":"` + kind + `","content":{"type":"text","text":"x"},"_meta":{"duet":{"parentToolCallId":"p"},"n":1}}`}
		assert.Equal(t, want, translatedEntry(t, translator, `{"session_id":"s","event_type":"`+kind+`","role":"assistant","key":"`+kind+`","content":"x","parent_tool_use_id":"p","data":{"_meta":{"n":1}},"is_completed":true,"seq":1}`))
		assert.Equal(t, want, translated(t, newTranslator(), "conversation_updated", 2, `{"session_id":"s","event_type":"`+kind+`","role":"assistant","message_id":"`+kind+`","content":"x","parent_tool_use_id":"p","_meta":{"n":1}}`))
	}
}

// The translator passes on the _meta of live messages, usage and session updates.
func TestMetaOfOtherUpdates(t *testing.T) {
	translator := newTranslator()
	for kind, c := range map[string]struct{ data, want string }{
		"message_delta":  {`{"message_id":"m","delta":"x","parent_tool_use_id":"p","_meta":{"n":1}}`, `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"x"},"_meta":{"duet":{"parentToolCallId":"p"},"n":1}}`},
		"thinking_delta": {`{"message_id":"t","delta":"x","_meta":{"n":1}}`, `{"sessionUpdate":"agent_thought_chunk","messageId":"t","content":{"type":"text","text":"x"},"_meta":{"n":1}}`},
		"usage":          {`{"context_used":1,"context_size":2,"_meta":{"n":1}}`, `{"sessionUpdate":"usage_update","used":1,"size":2,"_meta":{"n":1}}`},
		"agent_update":   {`{"update":{"sessionUpdate":"session_info_update","title":"T","_meta":{"n":1}}}`, `{"sessionUpdate":"session_info_update","_meta":{"n":1}}`},
	} {
		assert.Equal(t, []string{c.want}, translated(t, translator, kind, 1, c.data), kind)
	}
	assert.Empty(t, translated(t, translator, "agent_update", 2, `{"update":{"sessionUpdate":"session_info_update","title":"T"}}`))
}
