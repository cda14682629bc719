package acp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/executor/authmethod"
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
	if authmethod.IsRequired(err) {
		ways := []string{}
		for _, m := range a.info.AuthMethods {
			ways = append(ways, m.Name)
		}
		message := fmt.Sprintf("%s wants you to log in: %s. Do that with `duet-rpc agents login %s` in a terminal (in Emacs M-x duet-login), or configure its key, and try again", a.name, wire.Message, a.name)
		if len(ways) > 0 {
			message += " (it offers: " + strings.Join(ways, ", ") + ")"
		}
		return &task.Failure{Code: task.CodeAuthRequired, Message: message}
	}
	return &task.Failure{Code: task.CodeAgent, Message: a.name + ": " + wireText(wire)}
}

// wireText is an agent's error with the detail that some put into data.
func wireText(e *acp.RequestError) string {
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
	if detail == "" || strings.Contains(e.Message, detail) {
		return e.Message
	}
	return e.Message + ": " + detail
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
