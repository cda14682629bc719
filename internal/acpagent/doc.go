// Package acpagent is Duet as an agent of the Agent Client Protocol: an editor that
// speaks it starts `duet-rpc acp`, and gets sessions that are the hub's conversations.
//
//	editor ── lines on stdio ──► agent.go: methods ──► session.go, prompt.go ── client ──► hub
//	   ▲                                                                                   │
//	   └── session/update ◄── follow.go ◄── package update ◄──────────── events ───────────┘
//	   └── questions ◄─────── asking.go ◄── package question ◄──────────────┘
//
// One agent serves both versions of the protocol; initialize chooses. The types are those
// of version 1. Package version2 writes them as version 2 has them, and foreground.go makes
// the states of a session, which version 1 does not have.
//
// It speaks with the hub as any client does, and keeps nothing that is needed after its
// end: a turn goes on without it, and a question stays in the inbox.
package acpagent
