package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// readFile is what the hub asks for files of sessions that were begun with reads_files
// (docs/protocol.md, "Files").
const readFile = "file.read"

// readsFiles reports whether the agent behind is to see files as the client has them.
func (a *agent) readsFiles() bool {
	return !a.opts.SavedFiles && a.client.capabilities().FS.ReadTextFile
}

var errNotOurs = errors.New("the session is none of this client's")

// readFile reads a file as the client has it, for a turn that it has begun.
func (a *agent) readFile(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		SessionID string `json:"session_id"`
		Path      string `json:"path"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	s := a.ofRun(ctx, p.SessionID)
	if s == nil {
		return nil, errNotOurs
	}
	var file struct {
		Content string `json:"content"`
	}
	err := s.conn.Call(ctx, readTextFile, map[string]string{"sessionId": s.id, "path": p.Path}, &file)
	return map[string]string{"text": file.Content}, err
}

// ofRun is the session in which the client has begun a turn, or nil. An agent may be
// quicker than the hub's answer to who has begun its turn, so turns that are being begun
// are waited for.
func (a *agent) ofRun(ctx context.Context, run string) *session {
	for _, beginning := range a.beginning() {
		select {
		case <-beginning:
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		if s.isOurs(run) {
			return s
		}
	}
	return nil
}

// beginning are the turns that the client has begun and the hub has not, each closed when
// it has.
func (a *agent) beginning() (list []<-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		s.mu.Lock()
		for _, t := range s.turns {
			list = append(list, t.begun)
		}
		s.mu.Unlock()
	}
	return list
}

// An editor is what a client has said of itself.
type editor struct {
	mu      sync.Mutex // guards the fields below
	version int        // of the protocol
	can     clientCapabilities
	name    string
}

// initialize takes what a client says of itself in its first request, and chooses the
// version of the protocol.
func (e *editor) initialize(p initializeRequest) {
	version, can, info := version1, p.ClientCapabilities, p.ClientInfo
	if p.ProtocolVersion >= version2 {
		version, can, info = version2, p.Capabilities, p.Info
	}
	var who implementation
	_ = json.Unmarshal(info, &who) // one that does not say
	e.mu.Lock()
	defer e.mu.Unlock()
	e.version, e.can, e.name = version, readCapabilities(can), cmp.Or(who.Title, who.Name, "a client")
	if version == version2 { // which has nothing else of what Duet asks for
		e.can = clientCapabilities{Auth: e.can.Auth, Elicitation: e.can.Elicitation}
		e.can.Session.ConfigOptions.Boolean = json.RawMessage("{}") // every client has them
	}
}

// isVersion2 reports whether it speaks version 2 of the protocol.
func (e *editor) isVersion2() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.version == version2
}

func (e *editor) capabilities() clientCapabilities {
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
func (e *editor) signInMethods() []schemaAuthMethod {
	var list []schemaAuthMethod
	if e.capabilities().SignsInInTerminal() {
		list = append(list, schemaAuthMethod{
			ID: signInInTerminal, Name: "Sign in to the agent in a terminal", Description: "The agent behind Duet says there which ways it has",
			Type: "terminal", Args: []string{LoginFlag},
		})
	}
	return append(list, schemaAuthMethod{
		ID: signInByAgent, Name: "Have the agent sign you in", Description: "The agent behind Duet does that itself, mostly in your browser",
	})
}
