// Package schema is what an agent says and hears in the Agent Client Protocol, as Go
// types: as much of it as Duet uses. The types are those of version 1
// (https://agentclientprotocol.com/protocol/v1/schema); package version2 writes them as
// version 2 has them. Members that it does not know are ignored.
package schema

// The protocol's versions.
const (
	Version1 = 1
	Version2 = 2
)

// The methods of an agent.
const (
	Initialize      = "initialize"
	Authenticate    = "authenticate" // of version 1
	AuthLogin       = "auth/login"   // of version 2
	Logout          = "logout"       // of version 1
	AuthLogout      = "auth/logout"  // of version 2
	SessionNew      = "session/new"
	SessionLoad     = "session/load" // of version 1
	SessionResume   = "session/resume"
	SessionFork     = "session/fork"
	SessionList     = "session/list"
	SessionClose    = "session/close"
	SessionDelete   = "session/delete"
	SessionPrompt   = "session/prompt"
	SessionSteering = "_session/steering" // an extension
	SessionCancel   = "session/cancel"
	TerminalCancel  = "terminal/cancel"  // of version 2
	ToolCallCancel  = "tool_call/cancel" // of version 2
	SessionSetMode  = "session/set_mode" // of version 1
	SessionSetValue = "session/set_config_option"
)

// The methods of a client.
const (
	SessionUpdate       = "session/update"
	RequestPermission   = "session/request_permission"
	ElicitationCreate   = "elicitation/create"
	ElicitationComplete = "elicitation/complete"
	ReadTextFile        = "fs/read_text_file"
	WriteTextFile       = "fs/write_text_file"
)

// How a request is taken back, by either side.
const (
	CancelRequest       = "$/cancel_request"
	CancelRequestMember = "requestId"
)

// Codes of errors beyond those of JSON-RPC.
const (
	CodeAuthRequired     = -32000
	CodeResourceNotFound = -32002
)
