// Package mcp handles the MCP (Model Context Protocol) servers of agents. It tests them when an
// agent starts, reports failing ones in the conversation, and calls their tools for clients.
package mcp
