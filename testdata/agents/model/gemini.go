package model

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
)

// gemini is Gemini's API: generateContent and streamGenerateContent.
type gemini struct{}

func (gemini) key(r *http.Request) string {
	return cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"))
}

func (gemini) refusal(status int, message string) any {
	kind := map[int]string{
		http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusInternalServerError: "INTERNAL",
	}[status]
	return object{"error": object{"code": status, "status": kind, "message": message}}
}

func (gemini) conversation(r *http.Request, body []byte) (conversation, error) {
	var q struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Text             string
				InlineData       struct{ Data string }
				FunctionResponse *struct {
					Name     string
					Response json.RawMessage
				}
			}
		}
		SystemInstruction struct{ Parts []struct{ Text string } }
		Tools             []struct {
			FunctionDeclarations []struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return conversation{}, err
	}
	// What it asks besides wants JSON: who speaks next, and the like.
	c := conversation{stream: strings.Contains(r.URL.Path, "stream"), aside: `{"reasoning":"it is","next_speaker":"user"}`}
	for _, t := range q.Tools {
		for _, f := range t.FunctionDeclarations {
			c.tools = append(c.tools, f.Name)
		}
	}
	for _, part := range q.SystemInstruction.Parts {
		c.instructed(part.Text)
	}
	for _, message := range q.Contents {
		if message.Role != "user" {
			continue
		}
		for _, part := range message.Parts {
			switch {
			case part.FunctionResponse != nil:
				var output struct{ Output, Error string }
				_ = json.Unmarshal(part.FunctionResponse.Response, &output)
				c.returned(result{tool: part.FunctionResponse.Name, text: cmp.Or(output.Error, output.Output), failed: output.Error != ""})
			case part.InlineData.Data != "":
				c.saw(part.InlineData.Data)
			default:
				c.addText(part.Text)
			}
		}
	}
	return c, nil
}

func (gemini) begin(w http.ResponseWriter, c conversation, _ func() string) stream {
	return &geminiStream{w: w, whole: !c.stream}
}

type geminiStream struct {
	w     http.ResponseWriter
	whole bool // one answer, at the end
	parts []any
}

func (s *geminiStream) add(part object) {
	if s.whole {
		s.parts = append(s.parts, part)
		return
	}
	sendEvent(s.w, "", s.chunk("", part))
}

func (s *geminiStream) say(text string) { s.add(object{"text": text}) }
func (s *geminiStream) call(tool toolCall) {
	s.add(object{"functionCall": object{"name": tool.name, "args": tool.input}})
}

func (s *geminiStream) end() {
	if s.whole {
		sendJSON(s.w, http.StatusOK, s.chunk("STOP", s.parts...))
		return
	}
	sendEvent(s.w, "", s.chunk("STOP", object{"text": ""}))
}

func (*geminiStream) chunk(finish string, parts ...any) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	return object{"candidates": []any{candidate}, "modelVersion": "model-of-the-tests", "usageMetadata": object{
		"promptTokenCount": InputTokens, "candidatesTokenCount": OutputTokens, "totalTokenCount": InputTokens + OutputTokens,
	}}
}
