package approval

import (
	"encoding/json"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// ofAsking are the members in which an agent says when and why it asks, beside
// what is to be done. They are codex's, whose inputs are the events in which it
// asks; other tools may mean something else by these names.
var ofAsking = []string{"call_id", "turn_id", "approval_id", "started_at_ms", "process_id", "reason", "parsed_cmd"}

// callIdentity is the input of a tool call without what differs when the same is asked
// again: what says when and why it is asked, and how a command is spaced. call
// is the agent's own id of the call, by which its inputs of that sort are known.
// It is for telling questions apart, not for running.
func callIdentity(input json.RawMessage, call string) json.RawMessage {
	in := toolinput.Read(input)
	members, err := toolinput.Members(input)
	if err != nil || in.Ambiguity != "" {
		return input
	}
	changed := false
	set := func(value any) {
		if raw, err := json.Marshal(value); err == nil {
			members["command"], changed = raw, true
		}
	}
	var said string
	if call != "" && toolinput.Take(members, "call_id", &said) == nil && said == call {
		for _, name := range ofAsking {
			delete(members, name)
		}
		changed = true
	}
	if in.Words != nil {
		if words := shellcommand.CanonicalWords(in.Words); !slices.Equal(words, in.Words) {
			set(words)
		}
	} else if command := in.Command(); command != "" {
		if canonical := shellcommand.Canonical(command); canonical != command {
			set(canonical)
		}
	}
	if !changed {
		return input
	}
	identity, err := json.Marshal(members)
	if err != nil {
		return input
	}
	return identity
}
