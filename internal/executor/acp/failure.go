package acp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// failure says why a call of the agent failed.
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

// failureOf is what an error of the agent comes to, with what to do about it.
func (a *agent) failureOf(wire *acp.Error) *task.Failure {
	text := errorText(wire)
	switch {
	case wire.Code == acp.CodeAuthRequired:
		ways := []string{}
		for _, m := range a.info.AuthMethods {
			ways = append(ways, m.Name)
		}
		message := fmt.Sprintf("%s wants you to log in: %s. Do that with `duet-rpc agents login %s` in a terminal (in Emacs M-x duet-login), or configure its key, and try again", a.name, text, a.name)
		if len(ways) > 0 {
			message += " (it offers: " + strings.Join(ways, ", ") + ")"
		}
		return a.signInFirst(message)
	case missingVariable(text) != "":
		return a.signInFirst(fmt.Sprintf(
			"%s: %s. An agent is given few of your variables: to pass this one on, set it and write env_from = [%q] into the agent's table of the configuration; or name it under keys there, to be asked for it",
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

// signInFirst says that somebody has to sign in, or give the agent its key.
func (a *agent) signInFirst(message string) *task.Failure {
	return &task.Failure{Code: task.CodeAuthRequired, Message: message, SignIn: acp.Offers(a.info.AuthMethods)}
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
