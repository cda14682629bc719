package acpagent

import (
	"cmp"
	"encoding/json"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
)

// An editor is what a client has said of itself.
type editor struct {
	mu      sync.Mutex // guards the fields below
	version int        // of the protocol
	can     schema.ClientCapabilities
	name    string
}

// initialize takes what a client says of itself in its first request.
func (e *editor) initialize(version int, can, info json.RawMessage) {
	var who schema.Implementation
	_ = json.Unmarshal(info, &who) // one that does not say
	e.mu.Lock()
	defer e.mu.Unlock()
	e.version, e.can, e.name = version, schema.ReadCapabilities(can), cmp.Or(who.Title, who.Name, "a client")
}

// isVersion2 reports whether it speaks the draft of version 2.
func (e *editor) isVersion2() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.version == schema.Version2
}

func (e *editor) capabilities() schema.ClientCapabilities {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.can
}

func (e *editor) title() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.name
}

// The ways to sign in that every client is offered, whichever agent is behind. Those of
// the agent itself are told when it wants somebody to sign in.
const (
	signInByAgent    = "agent"
	signInInTerminal = "terminal"
)

// LoginFlag is the flag with which the program signs in, in a terminal.
const LoginFlag = "--login"

// signInMethods are the ways to sign in that a client can use. It appends the arguments
// of the one in a terminal to those that it starts Duet with.
func (e *editor) signInMethods() []schema.AuthMethod {
	var list []schema.AuthMethod
	if e.capabilities().SignsInInTerminal() {
		list = append(list, schema.AuthMethod{
			ID: signInInTerminal, Name: "Sign in to the agent in a terminal", Description: "The agent behind Duet says there which ways it has",
			Type: "terminal", Args: []string{LoginFlag},
		})
	}
	return append(list, schema.AuthMethod{
		ID: signInByAgent, Name: "Have the agent sign you in", Description: "The agent behind Duet does that itself, mostly in your browser",
	})
}
