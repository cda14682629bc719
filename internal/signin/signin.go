// Package signin speaks with an agent about who it works for, and about nothing
// else: whether somebody is signed in, signing in, signing out. It starts the
// agent for that, in a directory that is empty, and ends it.
//
// What agents advertise and answer is described on
// https://agentclientprotocol.com/protocol/v1/authentication.
package signin

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// Values of [Method.Type].
const (
	TypeAgent    = acp.Agent        // the agent does it, when it is told to: in a browser, mostly
	TypeTerminal = acp.Terminal     // a program in a terminal does it
	TypeVariable = acp.AuthVariable // variables of the agent's environment do it
)

// A Method is a way to sign in that an agent offers.
type Method struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Type        string   `json:"type" doc:"agent: it does that itself, in a browser mostly; terminal: a program in a terminal does; env_var: variables of its environment do."`
	Variables   []string `json:"variables,omitempty" doc:"Of type env_var: those that are needed."`
	Missing     []string `json:"missing,omitempty" doc:"Of type env_var: those that the agent does not have."`

	// Of type terminal: what is run.
	Command     []string          `json:"command,omitempty" doc:"Of type terminal: what duet-rpc agents login runs."`
	Environment map[string]string `json:"-"`
}

// Values of [Report.SignedIn].
const (
	SignedIn      = "yes"
	SignedOut     = "no"
	NotNeeded     = "not_needed"     // it offers no way to sign in, and works without
	OpensSessions = "opens_sessions" // it has not said; some agents look only when they get a prompt
)

// A Report is what an agent says of itself.
type Report struct {
	Agent    string   `json:"agent,omitempty" doc:"What the program calls itself."`
	Version  string   `json:"version,omitempty"`
	SignedIn string   `json:"signed_in" doc:"yes, no, not_needed, or opens_sessions: it works so far, and has not said whether somebody is signed in; some agents look only when they get a prompt."`
	Account  string   `json:"account,omitempty" doc:"As whom, in the agent's words; or why not."`
	Methods  []Method `json:"methods" doc:"The ways to sign in that it offers."`
	Logout   bool     `json:"logout" doc:"Whether it can be told to sign out."`
}

// Find is the method of an id. An empty id means the only one that there is.
func (r Report) Find(id string) (Method, error) {
	if len(r.Methods) == 0 {
		return Method{}, fmt.Errorf("%s offers no way to sign in", cmp.Or(r.Agent, "the agent"))
	}
	if id == "" && len(r.Methods) == 1 {
		return r.Methods[0], nil
	}
	for _, m := range r.Methods {
		if m.ID == id && id != "" {
			return m, nil
		}
	}
	unknown := &UnknownMethodError{ID: id}
	for _, m := range r.Methods {
		unknown.Known = append(unknown.Known, m.ID)
	}
	return Method{}, unknown
}

// An UnknownMethodError says that an agent offers other ways to sign in, or
// several and none was named.
type UnknownMethodError struct {
	ID    string
	Known []string
}

func (e *UnknownMethodError) Error() string {
	if e.ID == "" {
		return "say which way: " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("there is no way %s to sign in; there are %s", e.Received(), strings.Join(e.Known, ", "))
}

// Received is what was named, in words.
func (e *UnknownMethodError) Received() string {
	if e.ID == "" {
		return "none"
	}
	return strconv.Quote(agentlink.Text(e.ID))
}

// How long an agent may take.
const (
	statusTime = 5 * time.Second // to say who is signed in, where it said that it would
	// LoginTime is what a person has for signing in, in a browser mostly.
	LoginTime = 10 * time.Minute
)

// maxMethods is how many ways to sign in are taken of an agent.
const maxMethods = 20

// methods are those of an agent that was started by l, as they are used.
func methods(offered []acp.AuthMethod, l agentlink.Launch, env process.Environment) []Method {
	list := []Method{}
	for _, o := range offered[:min(len(offered), maxMethods)] {
		if o.ID == "" || agentlink.Text(o.ID) != o.ID {
			continue
		}
		m := Method{ID: o.ID, Name: agentlink.Text(cmp.Or(o.Name, o.ID)), Description: agentlink.Text(o.Description), Type: o.Kind()}
		switch {
		case o.Type == TypeTerminal:
			m.Command, m.Environment = append(slices.Clone(l.Command), o.Args...), o.Env
		case m.Type == TypeTerminal: // by a command of its own
			terminal := o.Meta.Terminal
			m.Command, m.Environment = append([]string{terminal.Command}, terminal.Args...), terminal.Env
		case o.Type == TypeVariable:
			for _, v := range o.Needs() {
				m.Variables = append(m.Variables, v)
				if env[v] == "" {
					m.Missing = append(m.Missing, v)
				}
			}
		}
		list = append(list, m)
	}
	return list
}
