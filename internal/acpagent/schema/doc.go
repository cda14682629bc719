// Package schema is what an agent says and hears in the Agent Client Protocol,
// version 1 (https://agentclientprotocol.com/protocol/v1/schema), as Go types: as
// much of it as Duet uses. Members that it does not know are ignored.
package schema

// The protocol's versions.
const (
	Version1 = 1
	Version2 = 2 // a draft
)

// The methods of an agent.
const (
	Initialize      = "initialize"
	Authenticate    = "authenticate"
	SessionNew      = "session/new"
	SessionLoad     = "session/load"
	SessionResume   = "session/resume"
	SessionFork     = "session/fork"
	SessionList     = "session/list"
	SessionClose    = "session/close"
	SessionDelete   = "session/delete"
	SessionPrompt   = "session/prompt"
	SessionSteering = "_session/steering" // an extension
	SessionCancel   = "session/cancel"
	SessionSetMode  = "session/set_mode"
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
