// Package acpagent is Duet as an agent of the Agent Client Protocol: an editor starts
// `duet-rpc acp`, and its sessions are the hub's conversations.
//
//	editor ── lines on stdio ──► serve.go: methods ──► session.go, prompt.go ── client ──► hub
//	   ▲                                                                                   │
//	   └── session/update ◄── foreground.go ◄── update_translator.go ◄──── events ─────────┘
//	   └── questions ◄─────── asking.go ◄───────────────────────────────────┘
//
// One agent serves both versions of the protocol; initialize chooses. The types are those
// of version 1; version2.go writes them for version 2, and foreground.go adds the session states
// that version 1 does not have.
//
// It is a client of the hub like any other and keeps no state: a turn continues after its end, and
// a question stays in the inbox.
package acpagent
