// Package acp is the client side of the Agent Client Protocol (https://agentclientprotocol.com): the
// connection to an agent, and the messages that both versions share. Packages executor/acp and
// agentlink use it.
package acp
