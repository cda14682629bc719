package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// failure explains why a call of the agent failed.
func (a *agent) failure(err error) *task.Failure {
	if a.gone() {
		return a.exited()
	}
	var wire *acp.Error
	if !errors.As(err, &wire) {
		return &task.Failure{Code: task.CodeAgent, Message: a.name + ": " + err.Error()}
	}
	return a.failureOf(wire)
}

// failureOf converts an error of the agent into a failure with advice for the user.
func (a *agent) failureOf(wire *acp.Error) *task.Failure {
	text := errorText(wire)
	switch {
	case wire.Code == acp.CodeAuthRequired:
		ways := []string{}
		for _, m := range a.info.AuthMethods {
			ways = append(ways, m.Name)
		}
		message := fmt.Sprintf("%s wants you to log in: %s. Do that with `duet-rpc agents login %s` in a terminal (in Emacs M-x duet-login), "+
			"or configure its key, and try again; `duet-rpc agents` names the variables with keys that it does not get", a.name, text, a.name)
		if len(ways) > 0 {
			message += " (it offers: " + strings.Join(ways, ", ") + ")"
		}
		return a.signInFirst(message)
	case missingVariable(text) != "":
		return a.signInFirst(fmt.Sprintf(
			"%s: %s. An agent does not get all of your variables: to pass this one on, set it and write env_from = [%q] into the agent's table of "+
				"the configuration; or name it under keys there, to be asked for it",
			a.name, strings.TrimRight(text, "."), missingVariable(text)))
	case refusesKey(wire.Code, text):
		return a.signInFirst(fmt.Sprintf(
			"%s: %s. The model's API does not take the key or login of the agent: log in with `duet-rpc agents login %s` in a terminal (in Emacs "+
				"M-x duet-login), or correct its key, and try again", a.name, strings.TrimRight(text, "."), a.name))
	case tooMany(wire.Code, text):
		return &task.Failure{Code: task.CodeAgent, Message: fmt.Sprintf("%s: %s. The model's API takes no more requests for now: wait a while "+
			"and continue, or look at your plan's limits", a.name, strings.TrimRight(text, "."))}
	}
	code := task.CodeAgent
	if contextOverflow(text) {
		code = task.CodeContextOverflow
	}
	return &task.Failure{Code: code, Message: a.name + ": " + text}
}

// signInFirst reports that the user has to sign in, or give the agent its key.
func (a *agent) signInFirst(message string) *task.Failure {
	return &task.Failure{Code: task.CodeAuthRequired, Message: message, SignIn: acp.Offers(a.info.AuthMethods)}
}

// exited explains why the agent has ended.
func (a *agent) exited() *task.Failure {
	if method := a.requests.timedOut(); method != "" {
		return a.silent(method)
	}
	return &task.Failure{Code: task.CodeExited, Message: a.name + " " + a.proc.ExitText()}
}

// silent reports that the agent did not answer a call.
func (a *agent) silent(method string) *task.Failure {
	message := fmt.Sprintf("%s did not answer %s in time: check that its command speaks the Agent Client Protocol on stdin and stdout, and "+
		"run it in a terminal to see what it waits for", a.name, method)
	if lines := a.proc.LastWords(); lines != "" {
		message += ". Its last words: " + lines
	}
	return &task.Failure{Code: task.CodeTimeout, Message: message}
}

// maxTroubleText limits the text kept of a failure, in bytes.
const maxTroubleText = 2000

func bounded(text string) string {
	if len(text) > maxTroubleText {
		text = strings.ToValidUTF8(text[:maxTroubleText], "")
	}
	return text
}

// Agents' errors. Some kinds can only be recognized by their text.

// tooMany reports whether an error means that the model's API limits requests for now.
func tooMany(code int, text string) bool {
	return code == 429 || strings.Contains(text, "429 Too Many Requests")
}

// overflow matches the errors of APIs and agents for a prompt that exceeds the context.
var overflow = lazyregexp.New(`(?i)prompt is too long|context_length_exceeded|maximum context length|(exceeds?|ran out of room in) the (model's )?(context window|maximum number of tokens)|input token count .*exceeds`)

// contextOverflow reports whether an error means that the prompt with the transcript does not
// fit into the model's context.
func contextOverflow(text string) bool { return overflow().MatchString(text) }

// refusesKey reports whether an error means that the model's API rejects the credentials. Some
// agents pass the HTTP status on as the code (Gemini CLI), others write it into the text
// (codex-acp).
func refusesKey(code int, text string) bool {
	return code == 401 || code == 403 || strings.Contains(text, "401 Unauthorized") || strings.Contains(text, "403 Forbidden")
}

// errorText returns an agent's error with the detail that some put into data. Of an API's JSON
// answer it keeps the message only.
func errorText(e *acp.Error) string {
	message, detail := words(e.Message, 3), words(detailOf(e), 3)
	if detail == "" || strings.Contains(message, detail) {
		return message
	}
	return message + ": " + detail
}

// words replaces a JSON object at the end of text with the object's message: {"message":…} or
// {"error":{"message":…}}. The message may end with such an object again.
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
