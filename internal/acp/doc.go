// Package acp implements the Agent Client Protocol (https://agentclientprotocol.com): its
// messages, and a client's or an agent's end of a connection. Messages are those of version 1. A
// type that differs in version 2 has a Version2 method, or a function with that number. Unknown
// members are ignored.
package acp
