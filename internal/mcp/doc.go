// Package mcp is about the servers of the Model Context Protocol that agents get: it tries them when
// an agent starts, says in the conversation which do not work, and calls their tools for clients.
package mcp
