package acp

import (
	"fmt"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Each agent names its modes itself. Some agents begin in a mode in which a model decides what to
// ask ("auto" of claude-agent-acp 0.101 and qwen-code 0.24, "Auto review" of codex-acp 2.6). Duet's
// rules and questions do not apply there. asks records the behaviour of the agents of November 2026.

// preferred lists the modes for Duet's default, best first. In each of them an agent asks before
// it changes or runs something.
var preferred = []string{catalog.ModeDefault, "manual", "approve", "read-only", "agent"}

// asks reports whether an agent is known to ask, in one of its modes, before it changes or runs
// something. An unknown mode counts as one that does not ask.
func asks(now catalog.Session, id string) bool {
	switch catalog.ModeName(id) {
	case catalog.ModeDefault, "manual", "approve", catalog.ModePlan:
		return true
	case "ask": // from the protocol's example; Cursor's mode of that name changes nothing, so no agent is set to it
		return true
	}
	return codexAsks(now, id) || copilotAsks(now, id)
}

// unasked explains to the user why Duet's rules and questions do not apply in the agent's current
// mode. It returns "" where they apply, or where the agent has no modes.
func unasked(agent string, now catalog.Session) string {
	if now.Mode == nil || len(now.Mode.Choices) == 0 || asks(now, now.Mode.Current) {
		return ""
	}
	i := slices.IndexFunc(now.Mode.Choices, func(c domain.Choice) bool { return c.ID == now.Mode.Current })
	if i < 0 {
		return ""
	}
	name := fmt.Sprintf("%q", now.Mode.Current)
	if title := now.Mode.Choices[i].Name; title != "" && title != now.Mode.Current {
		name = fmt.Sprintf("%q (%s)", title, now.Mode.Current)
	}
	return fmt.Sprintf("%s is in its mode %s, in which it may act without asking: rules and questions hold only for what it asks "+
		"about", agent, name)
}

// named returns the choice whose id, or the end of whose id, is the name of a mode.
func named(choices []domain.Choice, name string) (id string, ok bool) {
	for _, of := range []func(string) string{func(id string) string { return id }, catalog.ModeName} {
		for _, c := range choices {
			if of(c.ID) == name {
				return c.ID, true
			}
		}
	}
	return "", false
}

// askAgain sets an agent that may act without asking to the mode in which it asks, if it is known
// to have one.
func (s *setter) askAgain() error {
	now := s.State.Session()
	if unasked("", now) == "" {
		return nil
	}
	for _, name := range preferred {
		if id, ok := named(now.Mode.Choices, name); ok && asks(now, id) {
			return s.setMode(id)
		}
	}
	return nil
}
