package model

import (
	"encoding/json"
	"net/http"
	"strings"
)

// chat is OpenAI's chat completions API.
type chat struct{ openAI }

// A chatContent is a text or a list of parts.
type chatContent []struct {
	Text  string
	Image struct{ URL string } `json:"image_url"` // a data URL
}

func (c *chatContent) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = make(chatContent, 1)
		(*c)[0].Text = text
		return nil
	}
	type plain chatContent
	return json.Unmarshal(b, (*plain)(c))
}

func (chat) conversation(_ *http.Request, body []byte) (conversation, error) {
	var q struct {
		Stream bool
		Format struct{ Type string } `json:"response_format"`
		Tools  []struct {
			Function struct {
				Name       string
				Parameters struct {
					Properties map[string]json.RawMessage
				}
			}
		}
		Messages []struct {
			Role    string
			Content chatContent
			Calls   []struct {
				ID       string
				Function struct{ Name string }
			} `json:"tool_calls"`
			Of string `json:"tool_call_id"` // the call that a message of a tool is the result of
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return conversation{}, err
	}
	c := conversation{stream: q.Stream, aside: "A title", form: q.Format.Type == "json_schema"}
	for _, t := range q.Tools {
		c.offered(t.Function.Name, t.Function.Parameters.Properties)
	}
	called := make(map[string]string) // names by id
	for _, message := range q.Messages {
		for _, call := range message.Calls {
			called[call.ID] = call.Function.Name
		}
		switch message.Role {
		case "tool":
			r := result{tool: called[message.Of]}
			for _, part := range message.Content {
				r.text += part.Text
			}
			c.returned(r)
		case "system", "developer":
			for _, part := range message.Content {
				c.instructed(part.Text)
			}
		case "user":
			for _, part := range message.Content {
				c.addText(part.Text)
				if _, data, ok := strings.Cut(part.Image.URL, ";base64,"); ok {
					c.saw(data)
				}
			}
		}
	}
	return c, nil
}

func (chat) begin(w http.ResponseWriter, c conversation, serial func() string) stream {
	return &chatStream{w: w, whole: !c.stream, serial: serial, id: "chatcmpl-" + serial(), stop: "stop"}
}

type chatStream struct {
	w      http.ResponseWriter
	whole  bool // one answer, at the end
	serial func() string
	id     string
	text   string // so far
	calls  []object
	stop   string
}

// answer returns the answer, or a part of it.
func (s *chatStream) answer(kind string, choices []object, more object) object {
	answer := object{"id": s.id, "object": kind, "created": 1, "model": "model-of-the-tests", "choices": choices}
	for name, value := range more {
		answer[name] = value
	}
	return answer
}

func (s *chatStream) delta(delta object, finish any) {
	if !s.whole {
		sendEvent(s.w, "", s.answer("chat.completion.chunk", []object{{"index": 0, "delta": delta, "finish_reason": finish}}, nil))
	}
}

func (s *chatStream) say(text string) {
	s.text += text
	s.delta(object{"role": "assistant", "content": text}, nil)
}

func (s *chatStream) call(tool toolCall) {
	s.stop = "tool_calls"
	input, _ := json.Marshal(tool.input)
	call := object{"index": len(s.calls), "id": "call_" + s.serial(), "type": "function", "function": object{"name": tool.name, "arguments": string(input)}}
	s.calls = append(s.calls, call)
	s.delta(object{"tool_calls": []object{call}}, nil)
}

func (s *chatStream) end() {
	usage := object{"usage": object{"prompt_tokens": InputTokens, "completion_tokens": OutputTokens, "total_tokens": InputTokens + OutputTokens}}
	if s.whole {
		message := object{"role": "assistant", "content": s.text}
		if s.calls != nil {
			message["tool_calls"] = s.calls
		}
		sendJSON(s.w, http.StatusOK, s.answer("chat.completion", []object{{"index": 0, "message": message, "finish_reason": s.stop}}, usage))
		return
	}
	s.delta(object{}, s.stop)
	sendEvent(s.w, "", s.answer("chat.completion.chunk", []object{}, usage))
	_, _ = s.w.Write([]byte("data: [DONE]\n\n"))
}
