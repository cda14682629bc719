package acpagent

// This file is what an agent says and hears in the Agent Client Protocol, as Go
// types: as much of it as Duet uses. The types are those of version 1
// (https://agentclientprotocol.com/protocol/v1/schema); package version2 writes them as
// version 2 has them. Members that it does not know are ignored.

// The protocol's versions.
const (
	version1 = 1
	version2 = 2
)

// The methods of an agent.
const (
	initialize      = "initialize"
	authenticate    = "authenticate" // of version 1
	authLogin       = "auth/login"   // of version 2
	logout          = "logout"       // of version 1
	authLogout      = "auth/logout"  // of version 2
	sessionNew      = "session/new"
	sessionLoad     = "session/load" // of version 1
	sessionResume   = "session/resume"
	sessionFork     = "session/fork"
	sessionList     = "session/list"
	sessionClose    = "session/close"
	sessionDelete   = "session/delete"
	sessionPrompt   = "session/prompt"
	sessionSteering = "_session/steering" // an extension
	sessionCancel   = "session/cancel"
	terminalCancel  = "terminal/cancel"  // of version 2
	toolCallCancel  = "tool_call/cancel" // of version 2
	sessionSetMode  = "session/set_mode" // of version 1
	sessionSetValue = "session/set_config_option"
)

// The methods of a client.
const (
	sessionUpdate       = "session/update"
	requestPermission   = "session/request_permission"
	elicitationCreate   = "elicitation/create"
	elicitationComplete = "elicitation/complete"
	readTextFile        = "fs/read_text_file"
	writeTextFile       = "fs/write_text_file"
)

// How a request is taken back, by either side.
const (
	cancelRequest       = "$/cancel_request"
	cancelRequestMember = "requestId"
)

// Codes of errors beyond those of JSON-RPC.
const (
	codeAuthRequired     = -32000
	codeResourceNotFound = -32002
)
