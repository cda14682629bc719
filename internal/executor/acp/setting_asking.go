package acp

import (
	"fmt"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Each agent names its modes itself. Some agents begin in a mode in which a model decides what
// to ask ("Auto review" of codex-acp 2.6, "auto" of claude-agent-acp 0.101 and qwen-code 0.24):
// Duet's rules and questions do not hold there. This file records what the agents of November
// 2026 do in each mode.

// preferred are the modes that an agent is set to for Duet's default, the first that it has:
// in each it asks before it changes or runs something.
var preferred = []string{catalog.ModeDefault, "manual", "approve", "read-only", "agent"}

// asks reports whether an agent is known to ask, in one of its modes, before it changes or runs
// something. A mode of which nothing is known is none of those.
func asks(now catalog.Session, id string) bool {
	switch name := catalog.ModeName(id); name {
	case catalog.ModeDefault, "manual", "approve", catalog.ModePlan:
		return true
	case "ask": // of the protocol's own example; Cursor's changes nothing, so no agent is set to it
		return true
	case "read-only": // codex; in workspace-write it changes the project's files without asking
		return true
	case "auto": // codex-acp 0.16: within its sandbox
		return has(now.Mode.Choices, "read-only") && has(now.Mode.Choices, "full-access")
	case "agent": // Copilot, where its id is a URL; codex has a mode of that name that does not ask
		all := slices.IndexFunc(now.Options, func(o catalog.Option) bool { return o.ID == "allow_all" })
		return name != id && (all < 0 || now.Options[all].Current != "on")
	}
	return false
}

// unasked says for people why Duet's rules and questions do not hold in the mode that an agent
// is in, or is "" where they hold, or where the agent has no modes.
func unasked(agent string, now catalog.Session) string {
	if now.Mode == nil || len(now.Mode.Choices) == 0 || asks(now, now.Mode.Current) {
		return ""
	}
	i := slices.IndexFunc(now.Mode.Choices, func(c catalog.Choice) bool { return c.ID == now.Mode.Current })
	if i < 0 {
		return ""
	}
	name := fmt.Sprintf("%q", now.Mode.Current)
	if title := now.Mode.Choices[i].Name; title != "" && title != now.Mode.Current {
		name = fmt.Sprintf("%q (%s)", title, now.Mode.Current)
	}
	return fmt.Sprintf("%s is in its mode %s, in which it may act without asking: rules and questions hold only for what it asks about", agent, name)
}

// named is the choice that has the name of a mode, by its id or by the end of that.
func named(choices []catalog.Choice, name string) (id string, ok bool) {
	for _, of := range []func(string) string{func(id string) string { return id }, catalog.ModeName} {
		for _, c := range choices {
			if of(c.ID) == name {
				return c.ID, true
			}
		}
	}
	return "", false
}

// askAgain sets an agent that may act without asking to the mode in which it asks, if it is
// known to have one.
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

// planOption is the option by which an agent plans whose modes have no plan (codex), and its
// value for everything else; nil if there is none.
func planOption(options []catalog.Option, modes *catalog.Selection) (plan *catalog.Option, other string) {
	if modes == nil {
		return nil, ""
	}
	if _, ok := named(modes.Choices, catalog.ModePlan); ok {
		return nil, ""
	}
	for i := range options {
		o := &options[i]
		if o.ID != "collaboration_mode" || !has(o.Choices, catalog.ModePlan) {
			continue
		}
		for _, c := range o.Choices {
			if c.ID != catalog.ModePlan && (other == "" || c.ID == catalog.ModeDefault) {
				other = c.ID
			}
		}
		return o, other
	}
	return nil, ""
}

// withPlan adds the mode plan to those of an agent that has it as an option.
func withPlan(modes *catalog.Selection, options []catalog.Option) *catalog.Selection {
	plan, _ := planOption(options, modes)
	if plan == nil {
		return modes
	}
	all := &catalog.Selection{Current: modes.Current, Choices: slices.Clone(modes.Choices)}
	for _, c := range plan.Choices {
		if c.ID == catalog.ModePlan {
			all.Choices = append(all.Choices, c)
		}
	}
	if plan.Current == catalog.ModePlan {
		all.Current = catalog.ModePlan
	}
	return all
}
