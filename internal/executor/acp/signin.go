package acp

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// wantsSignIn reports whether an agent refused something until somebody signs in.
func wantsSignIn(err error) bool {
	var wire *acp.RequestError
	return errors.As(err, &wire) && wire.Code == acp.NewAuthRequired(nil).Code
}

// newSession opens a session. An agent that was given its key and does not use it
// before it is told to (codex) is told so.
func (a *agent) newSession(request acp.NewSessionRequest) (sessionResult, error) {
	patience := 4 * a.driver.opts.StartTimeout
	result, err := callWithin[sessionResult](a, patience, acp.AgentMethodSessionNew, request)
	method := a.keyMethod()
	if method == "" || !wantsSignIn(err) {
		return result, err
	}
	if _, failed := callWithin[json.RawMessage](a, patience, acp.AgentMethodAuthenticate, acp.AuthenticateRequest{MethodId: method}); failed != nil {
		a.driver.log.Info("the agent did not take the key that it has", "agent", a.name, "method", method, "err", failed)
		return result, err
	}
	return callWithin[sessionResult](a, patience, acp.AgentMethodSessionNew, request)
}

// keyMethod is the id of a way to sign in that needs nothing but variables that the
// agent has, or "".
func (a *agent) keyMethod() string {
	for _, m := range a.info.AuthMethods {
		var needed []struct {
			Name     string `json:"name"`
			Optional bool   `json:"optional"`
		}
		if m.Type != "env_var" || json.Unmarshal(m.Variables, &needed) != nil || len(needed) == 0 {
			continue
		}
		has := true
		for _, v := range needed {
			has = has && (v.Optional || slices.Contains(a.variables, v.Name))
		}
		if has {
			return m.ID
		}
	}
	return ""
}

// variablesOf are the names of the variables that have a value.
func variablesOf(env process.Environment) []string {
	var names []string
	for name, value := range env {
		if value != "" {
			names = append(names, name)
		}
	}
	return names
}
