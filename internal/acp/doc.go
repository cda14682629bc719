// Package acp is the Agent Client Protocol (https://agentclientprotocol.com) as a client of
// agents speaks it: the connection, and what both of its versions have in common. The driver of
// package executor/acp and the short connections of package agentlink stand on it.
package acp
