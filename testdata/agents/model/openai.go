package model

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
)

// openAI is OpenAI's responses API, as a stream.
type openAI struct{}

func (openAI) key(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (openAI) refusal(status int, message string) any {
	kind := map[int]string{
		http.StatusUnauthorized: "invalid_api_key", http.StatusTooManyRequests: "rate_limit_exceeded",
	}[status]
	return object{"error": object{"type": "invalid_request_error", "code": kind, "message": message}}
}

// An openAIContent is a text or a list of parts.
type openAIContent []struct {
	Text  string
	Image string `json:"image_url"` // a data URL
}

func (c *openAIContent) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = make(openAIContent, 1)
		(*c)[0].Text = text
		return nil
	}
	type plain openAIContent
	return json.Unmarshal(b, (*plain)(c))
}

type openAITool struct {
	Type, Name string
	Tools      []openAITool // of a namespace
}

func (openAI) conversation(_ *http.Request, body []byte) (conversation, error) {
	var q struct {
		Stream bool
		Text   struct{ Format struct{ Type string } }
		Tools  []openAITool
		Input  []struct {
			Type, Role string
			Content    openAIContent
			Output     openAIContent
			Tools      []openAITool
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return conversation{}, err
	}
	c := conversation{stream: q.Stream, aside: "A title", agents: "multi_agent_v1"} // whose tools are searched for
	var offers func(tools []openAITool)
	offers = func(tools []openAITool) {
		for _, t := range tools {
			if t.Type == "namespace" {
				if t.Name == "collaboration" {
					c.agents = t.Name
				}
				offers(t.Tools)
			} else {
				c.tools = append(c.tools, cmp.Or(t.Name, t.Type))
			}
		}
	}
	offers(q.Tools)
	if q.Text.Format.Type == "json_schema" { // Codex wants a title
		c.form, c.aside = true, `{"title":"A title"}`
	}
	for _, item := range q.Input {
		switch {
		case item.Type == "additional_tools": // of Codex, for its newest models
			offers(item.Tools)
		case item.Type == "tool_search_output":
			c.returned(result{tool: "tool_search"})
		case strings.HasSuffix(item.Type, "_call_output"):
			var r result
			for _, part := range item.Output {
				r.text += part.Text
			}
			c.returned(r)
		case item.Role == "developer":
			for _, part := range item.Content {
				c.instructed(part.Text)
			}
		case item.Role == "user":
			for _, part := range item.Content {
				c.addText(part.Text)
				if _, data, ok := strings.Cut(part.Image, ";base64,"); ok {
					c.saw(data)
				}
			}
		}
	}
	return c, nil
}

func (openAI) begin(w http.ResponseWriter, c conversation, serial func() string) stream {
	s := &openAIStream{w: w, serial: serial, agents: c.agents, item: "msg_" + serial(), response: object{
		"id": "resp_" + serial(), "object": "response", "status": "in_progress", "model": "model-of-the-tests", "output": []any{},
	}}
	s.send("response.created", object{"response": s.response})
	return s
}

type openAIStream struct {
	w        http.ResponseWriter
	serial   func() string
	response object
	item     string // the message's id
	agents   string // the namespace of the tools for sub-agents
	text     string // of it, so far
	output   []any
}

func (s *openAIStream) send(kind string, data object) {
	data["type"] = kind
	sendEvent(s.w, kind, data)
}

func (s *openAIStream) message(content ...any) object {
	return object{"type": "message", "id": s.item, "role": "assistant", "content": append([]any{}, content...)}
}

func (s *openAIStream) say(text string) {
	if s.text == "" {
		s.send("response.output_item.added", object{"output_index": 0, "item": s.message()})
	}
	s.text += text
	s.send("response.output_text.delta", object{"item_id": s.item, "output_index": 0, "content_index": 0, "delta": text})
}

func (s *openAIStream) done(item object) {
	s.send("response.output_item.done", object{"output_index": len(s.output), "item": item})
	s.output = append(s.output, item)
}

func (s *openAIStream) endMessage() {
	if len(s.output) == 0 && s.text != "" {
		s.done(s.message(object{"type": "output_text", "text": s.text}))
	}
}

func (s *openAIStream) call(tool toolCall) {
	s.endMessage()
	number := s.serial()
	item := object{"id": "fc_" + number, "call_id": "call_" + number, "name": tool.name}
	text, isText := tool.input.(string)
	switch {
	case isText:
		item["type"], item["input"] = "custom_tool_call", text
		if tool.name == scripts {
			item["namespace"] = "functions"
		}
	case tool.name == "tool_search":
		item["type"], item["execution"], item["arguments"] = "tool_search_call", "client", tool.input
	default:
		input, _ := json.Marshal(tool.input)
		item["type"], item["arguments"] = "function_call", string(input)
		if tool.name == "spawn_agent" {
			item["namespace"] = s.agents
		}
	}
	s.send("response.output_item.added", object{"output_index": len(s.output), "item": item})
	s.done(item)
}

func (s *openAIStream) end() {
	s.endMessage()
	s.response["status"], s.response["output"] = "completed", s.output
	s.response["usage"] = object{
		"input_tokens": InputTokens, "input_tokens_details": nil, "output_tokens": OutputTokens, "output_tokens_details": nil,
		"total_tokens": InputTokens + OutputTokens,
	}
	s.send("response.completed", object{"response": s.response})
}
