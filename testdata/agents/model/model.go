// Package model is a language model for tests of real agents: it does what
// its prompts say, and costs nothing.
package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A Model is as much of Anthropic's messages API as agents need, on a loopback
// address. What it does is in a line of the last prompt:
//
//	run: COMMAND  it calls the agent's shell tool, and then tells what came back
//	talk:         it talks until nobody listens
//	say: WORDS    it says the words
//	Continue …    it begins again with what it was told before
//
// Each answer costs InputTokens and OutputTokens.
type Model struct {
	URL    string
	Key    string          // that it wants
	HungUp <-chan struct{} // closed when nobody listens to talk any more

	mu       sync.Mutex // guards the fields below
	serial   int
	heard    []string // the prompts in the conversation, as it was told last
	strayKey bool
	hungUp   chan struct{}
	hangUp   sync.Once
}

// What an answer costs.
const (
	InputTokens  = 10
	OutputTokens = 7
)

// Serve serves a model until the test has ended.
func Serve(t testing.TB) *Model {
	m := &Model{Key: "sk-ant-" + uuid.NewString() + uuid.NewString(), hungUp: make(chan struct{})}
	m.HungUp = m.hungUp
	server := httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(server.Close)
	m.URL = server.URL
	return m
}

// A request is what of one matters here.
type request struct {
	Stream   bool
	Tools    []struct{ Name string }
	Messages []struct {
		Role    string
		Content content
	}
}

// A content is a text or a list of blocks.
type content []block

type block struct {
	Type    string
	Text    string
	Content content // of a tool's result
}

func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = content{{Type: "text", Text: text}}
		return nil
	}
	return json.Unmarshal(b, (*[]block)(c))
}

func (c content) String() (text string) {
	for _, b := range c {
		text += b.Text
	}
	return text
}

type object = map[string]any

var instruction = regexp.MustCompile(`(?m)^(run|talk|say): ?(.*)$`)

func (m *Model) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/messages" || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("X-Api-Key") != m.Key {
		m.mu.Lock()
		m.strayKey = true
		m.mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
		return
	}
	var q request
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	shell := slices.IndexFunc(q.Tools, func(t struct{ Name string }) bool { return strings.EqualFold(t.Name, "bash") })
	if shell < 0 { // it is not the conversation: agents also ask for a title
		m.answer(w, q.Stream, "A title", nil)
		return
	}
	var heard []string
	var last turn
	for _, message := range q.Messages {
		if message.Role != "user" {
			continue
		}
		for _, b := range message.Content {
			if b.Type == "tool_result" {
				last.ran, last.result = true, b.Content.String()
			} else if found := instruction.FindStringSubmatch(b.Text); found != nil {
				heard = append(heard, found[0])
				last = turn{verb: found[1], words: found[2]}
			} else if strings.HasPrefix(b.Text, "Continue ") {
				last.ran = false
			}
		}
	}
	m.mu.Lock()
	m.heard = heard
	m.mu.Unlock()
	switch {
	case last.verb == "run" && !last.ran:
		input := map[string]string{"command": last.words, "description": "What was asked for"}
		m.answer(w, q.Stream, "I will run it.", &toolCall{q.Tools[shell].Name, input})
	case last.verb == "run":
		m.answer(w, q.Stream, "The tool said: "+last.result, nil)
	case last.verb == "talk":
		m.talk(w, r)
	default:
		m.answer(w, q.Stream, last.words, nil)
	}
}

// A turn is what came of an instruction.
type turn struct {
	verb, words string
	ran         bool // its tool
	result      string
}

// Prompts are what the agent told of the conversation when it asked last.
func (m *Model) Prompts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard
}

// Refused reports whether somebody came with another key.
func (m *Model) Refused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.strayKey
}

type toolCall struct {
	name  string
	input any
}

// answer says text and calls a tool, if there is one.
func (m *Model) answer(w http.ResponseWriter, stream bool, text string, tool *toolCall) {
	message, stop := m.message(), "end_turn"
	if !stream {
		message["content"], message["stop_reason"] = []any{object{"type": "text", "text": text}}, stop
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	send := eventStream(w)
	send("message_start", object{"message": message})
	send("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	for _, part := range []string{text[:len(text)/2], text[len(text)/2:]} {
		send("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": part}})
	}
	send("content_block_stop", object{"index": 0})
	if tool != nil {
		stop = "tool_use"
		input, _ := json.Marshal(tool.input)
		send("content_block_start", object{"index": 1, "content_block": object{"type": "tool_use", "id": "toolu_" + m.next(), "name": tool.name, "input": object{}}})
		send("content_block_delta", object{"index": 1, "delta": object{"type": "input_json_delta", "partial_json": string(input)}})
		send("content_block_stop", object{"index": 1})
	}
	send("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": OutputTokens}})
	send("message_stop", object{})
}

// talk goes on until the agent hangs up.
func (m *Model) talk(w http.ResponseWriter, r *http.Request) {
	send := eventStream(w)
	send("message_start", object{"message": m.message()})
	send("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			m.hangUp.Do(func() { close(m.hungUp) })
			return
		case <-tick.C:
			send("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": "and on "}})
		}
	}
}

// message is one without content.
func (m *Model) message() object {
	return object{
		"id": "msg_" + m.next(), "type": "message", "role": "assistant", "model": "model-of-the-tests", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": InputTokens, "output_tokens": 1},
	}
}

func (m *Model) next() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serial++
	return fmt.Sprint(m.serial)
}

// eventStream begins a stream of server-sent events.
func eventStream(w http.ResponseWriter) func(kind string, data object) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(kind string, data object) {
		data["type"] = kind
		text, _ := json.Marshal(data)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
		w.(http.Flusher).Flush()
	}
}
