package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/frame"
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
		message := fmt.Sprintf("%s wants you to log in: %s. Do that with `duet-rpc agents login %s` in a terminal (in Emacs M-x duet-login), or configure its key, and try again; `duet-rpc agents` names the variables with keys that it does not get", a.name, text, a.name)
		if len(ways) > 0 {
			message += " (it offers: " + strings.Join(ways, ", ") + ")"
		}
		return a.signInFirst(message)
	case missingVariable(text) != "":
		return a.signInFirst(fmt.Sprintf(
			"%s: %s. An agent does not get all of your variables: to pass this one on, set it and write env_from = [%q] into the agent's table of the configuration; or name it under keys there, to be asked for it",
			a.name, strings.TrimRight(text, "."), missingVariable(text)))
	case refusesKey(wire.Code, text):
		return a.signInFirst(fmt.Sprintf(
			"%s: %s. The model's API does not take the key or login of the agent: log in with `duet-rpc agents login %s` in a terminal (in Emacs M-x duet-login), or correct its key, and try again", a.name, strings.TrimRight(text, "."), a.name))
	case tooMany(wire.Code, text):
		return &task.Failure{Code: task.CodeAgent, Message: fmt.Sprintf("%s: %s. The model's API takes no more requests for now: wait a while and continue, or look at your plan's limits", a.name, strings.TrimRight(text, "."))}
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
	if method := a.overdue.Load(); method != nil {
		return a.silent(*method)
	}
	return &task.Failure{Code: task.CodeExited, Message: a.name + " " + a.proc.ExitText()}
}

// silent reports that the agent did not answer a call.
func (a *agent) silent(method string) *task.Failure {
	message := fmt.Sprintf("%s did not answer %s in time: check that its command speaks the Agent Client Protocol on stdin and stdout, and run it in a terminal to see what it waits for", a.name, method)
	if lines := a.proc.LastWords(); lines != "" {
		message += ". Its last words: " + lines
	}
	return &task.Failure{Code: task.CodeTimeout, Message: message}
}

// apiTrouble records how codex-acp 2.6 reports failed requests to its model's API. ACP v1 has no
// update for that: codex-acp puts it into the _meta of session_info_update, and answers the
// prompt with end_turn, as if the turn had succeeded.
type apiTrouble struct {
	failed bool   // the status of its session is an error
	retry  string // the last failure after which it tried again
	said   string // its text since the session failed, up to maxTroubleText bytes
}

// maxTroubleText limits the text kept of a failure, in bytes.
const maxTroubleText = 2000

// codexStatus is the _meta of codex-acp's session_info_update.
type codexStatus struct {
	Codex struct {
		ThreadStatus struct{ Type string }
		Error        struct {
			Message           string
			AdditionalDetails string
			WillRetry         bool
		}
	}
}

// readCodexStatus reads the status in an update, or returns the zero value.
func readCodexStatus(kind string, update []byte) (s codexStatus) {
	if kind == "session_info_update" {
		if meta := frame.Member(update, "_meta"); meta != nil {
			json.Unmarshal(meta, &s)
		}
	}
	return s
}

// retryNote describes a failed request that the agent retries, or returns "".
func (s codexStatus) retryNote() string {
	e := s.Codex.Error
	if !e.WillRetry {
		return ""
	}
	note := e.Message
	if e.AdditionalDetails != "" {
		note += ": " + e.AdditionalDetails
	}
	return bounded(note)
}

// took merges the status of an update.
func (p *apiTrouble) took(s codexStatus) {
	switch s.Codex.ThreadStatus.Type {
	case "systemError":
		p.failed, p.said = true, ""
	case "active":
		*p = apiTrouble{}
	}
	p.retry = cmp.Or(s.retryNote(), p.retry)
}

// text adds text of the agent.
func (p *apiTrouble) text(text string) {
	if p.failed && len(p.said) < maxTroubleText {
		p.said = bounded(p.said + text)
	}
}

func bounded(text string) string {
	if len(text) > maxTroubleText {
		text = strings.ToValidUTF8(text[:maxTroubleText], "")
	}
	return text
}

// codexFailure returns the failure of a turn that ended with end_turn although the agent reported a
// failure, or nil.
func (a *agent) codexFailure(t *turn) *task.Failure {
	t.mu.Lock()
	trouble := t.trouble
	t.mu.Unlock()
	if !trouble.failed {
		return nil
	}
	text := cmp.Or(strings.TrimSpace(trouble.said), trouble.retry, "a request to its model's API failed")
	return a.failureOf(&acp.Error{Code: -32603, Message: text})
}

// Agents' errors. Some kinds can only be recognized by their text.

// missingVariablePattern matches the error by which codex-acp reports that its configuration
// names an unset environment variable.
var missingVariablePattern = lazyregexp.New("Missing environment variable: `?([A-Za-z_][A-Za-z0-9_]*)")

// missingVariable returns the name of the missing environment variable in an error, or "".
func missingVariable(text string) string {
	if found := missingVariablePattern().FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// tooMany reports whether an error means that the model's API limits requests for now.
func tooMany(code int, text string) bool {
	return code == 429 || strings.Contains(text, "429 Too Many Requests")
}

// overflow matches the errors of APIs and agents for a prompt that exceeds the context.
var overflow = lazyregexp.New(`(?i)prompt is too long|context_length_exceeded|maximum context length|(exceeds?|ran out of room in) the (model's )?(context window|maximum number of tokens)|input token count .*exceeds`)

// contextOverflow reports whether an error means that the prompt with the conversation does not
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
