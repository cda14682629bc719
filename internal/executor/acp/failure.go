package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// failure says why a call of the agent failed.
func (a *agent) failure(err error) *task.Failure {
	if a.gone() {
		return a.exited()
	}
	var wire *acp.RequestError
	if !errors.As(err, &wire) {
		return &task.Failure{Code: task.CodeAgent, Message: a.name + ": " + err.Error()}
	}
	return a.failureOf(wire)
}

// failureOf is what an error of the agent comes to, with what to do about it.
func (a *agent) failureOf(wire *acp.RequestError) *task.Failure {
	text := wireText(wire)
	switch {
	case wire.Code == acp.NewAuthRequired(nil).Code:
		ways := []string{}
		for _, m := range a.info.AuthMethods {
			ways = append(ways, m.Name)
		}
		message := fmt.Sprintf("%s wants you to log in: %s. Log in with the agent's own command line in a terminal, or configure its key, and try again", a.name, text)
		if len(ways) > 0 {
			message += " (it offers: " + strings.Join(ways, ", ") + ")"
		}
		return &task.Failure{Code: task.CodeAuthRequired, Message: message}
	case missingVariable.MatchString(text):
		name := missingVariable.FindStringSubmatch(text)[1]
		return &task.Failure{Code: task.CodeAuthRequired, Message: fmt.Sprintf(
			"%s: %s. An agent is given few of your variables: to pass this one on, set it and write env_from = [%q] into the agent's table of the configuration; or name it under keys there, to be asked for it",
			a.name, strings.TrimRight(text, "."), name)}
	case refusesKey(wire.Code, text):
		return &task.Failure{Code: task.CodeAuthRequired, Message: fmt.Sprintf(
			"%s: %s. The model's API does not take the key or login of the agent: log in with the agent's own command line in a terminal, or correct its key, and try again", a.name, strings.TrimRight(text, "."))}
	case wire.Code == 429 || strings.Contains(text, "429 Too Many Requests"):
		return &task.Failure{Code: task.CodeAgent, Message: fmt.Sprintf("%s: %s. The model's API takes no more requests for now: wait a while and continue, or look at your plan's limits", a.name, strings.TrimRight(text, "."))}
	}
	return &task.Failure{Code: task.CodeAgent, Message: a.name + ": " + text}
}

// missingVariable is how codex-acp says that its configuration names a variable
// that it was not given.
var missingVariable = regexp.MustCompile("Missing environment variable: `?([A-Za-z_][A-Za-z0-9_]*)")

// refusesKey reports whether an error says that the model's API does not know who
// asks: some agents pass the status of HTTP on as the code (Gemini CLI), others
// have it in words (codex-acp).
func refusesKey(code int, text string) bool {
	return code == 401 || code == 403 || strings.Contains(text, "401 Unauthorized") || strings.Contains(text, "403 Forbidden")
}

// wireText is an agent's error with the detail that some put into data. Of an API's
// answer in JSON it has the words alone.
func wireText(e *acp.RequestError) string {
	message, detail := words(e.Message, 3), words(wireDetail(e), 3)
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

func wireDetail(e *acp.RequestError) string {
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

// exited says why the agent has ended.
func (a *agent) exited() *task.Failure {
	if method := a.overdue.Load(); method != nil {
		return a.silent(*method)
	}
	return &task.Failure{Code: task.CodeExited, Message: a.name + " " + a.proc.ExitText()}
}

// silent says that the agent did not answer a call.
func (a *agent) silent(method string) *task.Failure {
	message := fmt.Sprintf("%s did not answer %s in time: check that its command speaks the Agent Client Protocol on stdin and stdout, and run it in a terminal to see what it waits for", a.name, method)
	if lines := a.proc.LastWords(); lines != "" {
		message += ". Its last words: " + lines
	}
	return &task.Failure{Code: task.CodeTimeout, Message: message}
}
