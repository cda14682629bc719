package acp

import "slices"

// A Client is a client as it has introduced itself to an agent, and the form in which it gets the
// agent's messages. The zero value is a client of version 1 that can do nothing.
type Client struct {
	Info Implementation
	Can  ClientCapabilities

	version int
}

// Accept chooses the newest version of the protocol that the client and the agent know. newest is the
// agent's; 0 is the newest of this package.
func (r InitializeRequest) Accept(newest int) Client {
	if r.ProtocolVersion < Version2 || newest == Version1 {
		return Client{Info: r.ClientInfo, Can: r.ClientCapabilities, version: Version1}
	}
	c := Client{Info: *r.Info, version: Version2}
	c.Can.Auth, c.Can.Elicitation = r.Capabilities.Auth, r.Capabilities.Elicitation
	c.Can.Session.ConfigOptions.Boolean = Supported // every client has them
	return c
}

// HasStates reports whether the client receives the state of each session. For such a client the
// response to a prompt starts the turn. For any other client the response ends it.
func (c Client) HasStates() bool { return c.version == Version2 }

// HasTerminals reports whether the client shows terminals of the agent. Any other client has terminals
// of its own, perhaps, which the agent can use.
func (c Client) HasTerminals() bool { return c.version == Version2 }

// RequiresTypes reports whether the client names the type of an option's value.
func (c Client) RequiresTypes() bool { return c.version == Version2 }

// HasToolNames reports whether the protocol has a member for the name of a tool.
func (c Client) HasToolNames() bool { return c.version == Version2 }

// HasModes reports whether the client knows the modes of a session. To any other client the mode is an
// option.
func (c Client) HasModes() bool { return c.version != Version2 }

// Replays returns the beginning of the history that a client wants when it resumes a session; nil means
// none.
func (c Client) Replays(r OpenSessionRequest) *ReplayCursor {
	if c.version == Version2 {
		return r.ReplayFrom
	}
	return nil
}

// methodsOf are the methods that only one version has.
var methodsOf = map[int][]string{
	Version1: {MethodAuthenticate, MethodLogout, MethodSessionLoad, MethodSessionSetMode},
	Version2: {MethodAuthLogin, MethodAuthLogout, MethodTerminalCancel, MethodToolCallCancel},
}

// Knows reports whether the client's version of the protocol has a method.
func (c Client) Knows(method string) bool {
	other := Version2
	if c.version == Version2 {
		other = Version1
	}
	return !slices.Contains(methodsOf[other], method)
}

// A versioned value has another form in version 2.
type versioned interface{ version2() any }

// Result returns the result of a method in the client's form.
func (c Client) Result(result any) any {
	switch r := result.(type) {
	case InitializeResponse:
		r.ProtocolVersion = c.version
		result = r
	case Reply:
		r.Result = c.Result(r.Result)
		return r
	}
	if v, ok := result.(versioned); ok && c.version == Version2 {
		return v.version2()
	}
	return result
}

// AuthMethods returns sign-in methods in the client's form.
func (c Client) AuthMethods(methods []AuthMethod) any {
	if c.version == Version2 {
		return authMethods2(methods)
	}
	return methods
}

// Updates returns updates about one item in the client's form. It drops updates that the client does
// not know.
func (c Client) Updates(updates ...any) []any {
	if c.version == Version2 {
		return updates2(updates)
	}
	return updates1(updates)
}

// Passes reports whether an update of that kind, from an agent behind, has the client's form.
func (c Client) Passes(kind string) bool {
	switch kind {
	case KindNotice, KindCompaction, KindCompactionSummary:
		return c.version == Version2
	case KindAgentMessageChunk, KindAgentThoughtChunk, KindToolCall, KindToolUpdate, KindPlan, KindUsage:
		return c.version != Version2
	}
	return false
}

// Question returns a permission request in the client's form.
func (c Client) Question(q PermissionRequest) any {
	if c.version == Version2 {
		return q.version2()
	}
	return q
}
