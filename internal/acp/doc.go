// Package acp is the Agent Client Protocol (https://agentclientprotocol.com): its messages, and a
// client's or an agent's end of a connection. Messages are those of version 1. Each has a Version2
// method, or a function of that number, where version 2 spells it otherwise. Unknown members are
// ignored.
package acp
