package threadsettings

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file is what may be asked of an agent: its own modes, models and
// options, as far as it has told them, and Duet's modes. It asks no agent and keeps
// nothing.

// duets are the permission modes that are Duet's own, whatever an agent has.
// Plan is one for agents alone that say nothing of modes: the others may change
// something in their own modes without asking, so Duet cannot hold them to it.
var duets = []string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass}

// A Known agent is one of the configuration, and what can be asked of it.
type Known struct {
	Agent    string              // its name
	Reported domain.AgentSession // zero: it has told nothing
	Modes    []string
}

// settingsOfAgent is what can be asked of an agent that has told that of its session.
func settingsOfAgent(agent config.Agent, reported domain.AgentSession) Known {
	return Known{agent.Name, reported, modesOf(agent, reported)}
}

// modesOf are those that can be asked of an agent: its own, and Duet's. told is what it
// has told of its session.
func modesOf(agent config.Agent, reported domain.AgentSession) []string {
	if !reported.TellsModes() {
		modes := slices.Clone(duets)
		if agent.Driver != config.DriverCommand {
			modes = append(modes, catalog.ModePlan)
		}
		return modes
	}
	modes := domain.IDs(reported.Modes.Choices)
	for _, mode := range duets {
		if !slices.Contains(modes, mode) {
			modes = append(modes, mode)
		}
	}
	return modes
}

// checkSetting refuses what an agent is known not to have: a mode, a model, a value of an
// option. "" and nil are not looked at. An agent that has told nothing is asked when
// it is started. Errors are of domain.KindInvalid, with what would do.
func checkSetting(agent config.Agent, reported domain.AgentSession, mode, model string, options map[string]string) error {
	if err := checkMode(agent, reported, mode); err != nil {
		return err
	}
	if err := checkModel(agent.Name, reported, model); err != nil {
		return err
	}
	return checkOptions(agent.Name, reported, options)
}

// CheckContent refuses what an agent is known not to take in prompts. What it does not
// take of resources has links in its place. An agent that has told nothing is asked when
// it is started. Errors are of domain.KindInvalid, and say what it takes.
func CheckContent(agent string, reported domain.AgentSession, list []domain.Content) error {
	if reported.Takes == nil {
		return nil
	}
	for _, c := range list {
		if c.Type == domain.BlockImage && !reported.Takes.Image || c.Type == domain.BlockAudio && !reported.Takes.Audio {
			return domain.Invalid("content", fmt.Sprintf("what the agent %s takes in prompts: %s", agent, reported.Takes), "content of the type "+c.Type)
		}
	}
	return nil
}

// checkMode refuses a mode that neither the agent nor Duet has. A plain command
// cannot be held to plan: it asks nobody before it acts.
func checkMode(agent config.Agent, reported domain.AgentSession, mode string) error {
	if mode == "" {
		return nil
	}
	known := modesOf(agent, reported)
	switch {
	case slices.Contains(known, mode):
		return nil
	case agent.Driver == config.DriverCommand && mode == catalog.ModePlan:
		return domain.Invalid("permission_mode", "a mode that the agent "+agent.Name+" can be held to: it is a plain command, which asks nobody before it acts", fmt.Sprintf("%q", mode), known...)
	case agent.Driver == config.DriverCommand, reported.Modes != nil && !reported.TellsModes():
		return domain.Invalid("permission_mode", "a permission mode", fmt.Sprintf("%q", mode), known...)
	case reported.Modes == nil: // nobody knows yet
		return nil
	}
	return domain.Invalid("permission_mode", "a mode of the agent "+agent.Name+", or one of Duet's own", fmt.Sprintf("%q", mode), known...)
}

func checkModel(agent string, reported domain.AgentSession, model string) error {
	if model == "" || !reported.TellsModels() || reported.Models.Has(model) {
		return nil
	}
	return domain.Invalid("model", "a model of the agent "+agent, fmt.Sprintf("%q", model), domain.IDs(reported.Models.Choices)...)
}

func checkOptions(agent string, reported domain.AgentSession, wanted map[string]string) error {
	if reported.Options == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		option, there := reported.Option(id)
		if !there {
			known := make([]string, len(reported.Options))
			for i, o := range reported.Options {
				known[i] = o.ID
			}
			return domain.Invalid("options", "options of the agent "+agent, fmt.Sprintf("%q", id), known...)
		}
		if value := wanted[id]; value != "" && len(option.Choices) > 0 && !slices.Contains(domain.IDs(option.Choices), value) {
			return domain.Invalid("options."+id, "a value that the agent "+agent+" has for it", fmt.Sprintf("%q", value), domain.IDs(option.Choices)...)
		}
	}
	return nil
}

// SettingSessions are what agents have told of their sessions, as of the store's ThreadReader.
type SettingSessions interface {
	AgentSession(ctx context.Context, thread int64) (domain.AgentSessionSeen, error)
	LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error)
}

// ReportedBy is what the agent of a thread has told of its session, or else, told last
// in another thread. thread may be 0.
func ReportedBy(ctx context.Context, from SettingSessions, thread int64, agent string) (domain.AgentSession, error) {
	if thread != 0 {
		seen, err := from.AgentSession(ctx, thread)
		if err != nil || seen.Agent == agent && seen.Agent != "" {
			return seen.AgentSession, err
		}
	}
	seen, err := from.LastAgentSession(ctx, agent)
	return seen.AgentSession, err
}
