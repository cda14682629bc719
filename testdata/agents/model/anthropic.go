package model

import (
	"encoding/json"
	"net/http"
)

// anthropic is Anthropic's messages API.
type anthropic struct{}

func (anthropic) key(r *http.Request) string { return r.Header.Get("X-Api-Key") }

func (anthropic) refusal(status int, message string) any {
	kind := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusTooManyRequests: "rate_limit_error",
	}[status]
	if kind == "" {
		kind = "api_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": message}}
}

// An anthropicContent is a text or a list of blocks.
type anthropicContent []struct {
	Type    string
	Text    string
	ID      string           // of a tool's call
	Name    string           // of the tool
	Of      string           `json:"tool_use_id"` // the call that it is the result of
	Content anthropicContent // of a tool's result
	IsError bool             `json:"is_error"`
	Source  struct{ Data string }
}

func (c *anthropicContent) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = make(anthropicContent, 1)
		(*c)[0].Type, (*c)[0].Text = "text", text
		return nil
	}
	type plain anthropicContent
	return json.Unmarshal(b, (*plain)(c))
}

func (anthropic) conversation(_ *http.Request, body []byte) (conversation, error) {
	var q struct {
		Stream bool
		Tools  []struct {
			Name   string
			Schema struct {
				Properties map[string]json.RawMessage
			} `json:"input_schema"`
		}
		Messages []struct {
			Role    string
			Content anthropicContent
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return conversation{}, err
	}
	c := conversation{stream: q.Stream, aside: "A title"}
	for _, t := range q.Tools {
		c.offered(t.Name, t.Schema.Properties)
	}
	called := make(map[string]string) // names by id
	for _, message := range q.Messages {
		for _, b := range message.Content {
			switch b.Type {
			case "text":
				switch message.Role {
				case "user":
					c.addText(b.Text)
				case "system":
					c.instructed(b.Text)
				}
			case "tool_use":
				called[b.ID] = b.Name
			case "image":
				c.saw(b.Source.Data)
			case "tool_result":
				r := result{tool: called[b.Of], failed: b.IsError}
				for _, part := range b.Content {
					r.text += part.Text
				}
				c.returned(r)
			}
		}
	}
	return c, nil
}

func (anthropic) begin(w http.ResponseWriter, c conversation, serial func() string) stream {
	s := &anthropicStream{w: w, whole: !c.stream, serial: serial, stop: "end_turn", message: object{
		"id": "msg_" + serial(), "type": "message", "role": "assistant", "model": "model-of-the-tests", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": InputTokens, "output_tokens": 1},
	}}
	s.send("message_start", object{"message": s.message})
	return s
}

type anthropicStream struct {
	w       http.ResponseWriter
	whole   bool // one answer, at the end
	serial  func() string
	message object
	text    string // so far
	blocks  int    // that have ended
	stop    string
}

func (s *anthropicStream) send(kind string, data object) {
	if !s.whole {
		data["type"] = kind
		sendEvent(s.w, kind, data)
	}
}

func (s *anthropicStream) delta(data object) {
	s.send("content_block_delta", object{"index": s.blocks, "delta": data})
}

func (s *anthropicStream) start(block object) {
	s.send("content_block_start", object{"index": s.blocks, "content_block": block})
}

func (s *anthropicStream) say(text string) {
	if s.text == "" {
		s.start(object{"type": "text", "text": ""})
	}
	s.text += text
	s.delta(object{"type": "text_delta", "text": text})
}

func (s *anthropicStream) stopBlock() {
	s.send("content_block_stop", object{"index": s.blocks})
	s.blocks++
}

func (s *anthropicStream) call(tool toolCall) {
	if s.text != "" {
		s.stopBlock()
	}
	s.stop = "tool_use"
	input, _ := json.Marshal(tool.input)
	s.start(object{"type": "tool_use", "id": "toolu_" + s.serial(), "name": tool.name, "input": object{}})
	s.delta(object{"type": "input_json_delta", "partial_json": string(input)})
}

func (s *anthropicStream) end() {
	if s.whole {
		s.message["content"], s.message["stop_reason"] = []any{object{"type": "text", "text": s.text}}, s.stop
		sendJSON(s.w, http.StatusOK, s.message)
		return
	}
	s.stopBlock()
	s.send("message_delta", object{"delta": object{"stop_reason": s.stop, "stop_sequence": nil}, "usage": object{"output_tokens": OutputTokens}})
	s.send("message_stop", object{})
}
