package acp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// This file reads what agents answer instead of a result: in words, and for
// some of which kind it is.

// missingVariablePattern is how codex-acp says that its configuration names a variable
// that it was not given.
var missingVariablePattern = lazyregexp.New("Missing environment variable: `?([A-Za-z_][A-Za-z0-9_]*)")

// missingVariable is the environment variable that an error says is missing, or "".
func missingVariable(text string) string {
	if found := missingVariablePattern().FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// tooMany reports whether an error says that the model's API takes no more requests
// for now.
func tooMany(code int, text string) bool {
	return code == 429 || strings.Contains(text, "429 Too Many Requests")
}

// overflow is how the APIs of models, and agents, say that a prompt does not fit.
var overflow = lazyregexp.New(`(?i)prompt is too long|context_length_exceeded|maximum context length|(exceeds?|ran out of room in) the (model's )?(context window|maximum number of tokens)|input token count .*exceeds`)

// contextOverflow reports whether an error says that the prompt, with what was said
// before, does not fit into the model's context.
func contextOverflow(text string) bool { return overflow().MatchString(text) }

// refusesKey reports whether an error says that the model's API does not know who
// asks: some agents pass the status of HTTP on as the code (Gemini CLI), others
// have it in words (codex-acp).
func refusesKey(code int, text string) bool {
	return code == 401 || code == 403 || strings.Contains(text, "401 Unauthorized") || strings.Contains(text, "403 Forbidden")
}

// errorText is an agent's error with the detail that some put into data. Of an API's
// answer in JSON it has the words alone.
func errorText(e *acp.Error) string {
	message, detail := words(e.Message, 3), words(detailOf(e), 3)
	if detail == "" || strings.Contains(message, detail) {
		return message
	}
	return message + ": " + detail
}

// words is text with the message of a JSON object in its place, if it ends with an
// object that has one: {"message":…} or {"error":{"message":…}}, which may be such a
// text again.
func words(text string, depth int) string {
	begin := strings.IndexByte(text, '{')
	if begin < 0 || depth == 0 {
		return text
	}
	var answer struct {
		Message string
		Error   json.RawMessage
	}
	if json.Unmarshal([]byte(text[begin:]), &answer) != nil {
		return text
	}
	var inner struct{ Message string }
	json.Unmarshal(answer.Error, &inner)
	said := cmp.Or(answer.Message, inner.Message)
	if said == "" {
		return text
	}
	return text[:begin] + words(said, depth-1)
}

func detailOf(e *acp.Error) string {
	detail := ""
	switch d := e.Data.(type) {
	case string:
		detail = d
	case map[string]any:
		for _, name := range []string{"details", "error", "message"} {
			if s, ok := d[name].(string); ok && detail == "" {
				detail = s
			}
		}
	}
	return detail
}
