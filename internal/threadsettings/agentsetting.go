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

// This file determines which modes, models and options an agent accepts: those that it has
// reported, and Duet's own modes. It calls no agent and stores nothing.

// duets are Duet's own permission modes, available with every agent. Duet's plan mode is only for
// agents that report no modes: others may change files without asking in their own modes, so Duet
// cannot enforce it.
var duets = []string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass}

// Known is a configured agent with the settings that it accepts.
type Known struct {
	Agent    string              // its name
	Reported domain.AgentSession // zero: no report
	Modes    []string
}

// settingsOfAgent returns the settings of an agent with its last report.
func settingsOfAgent(agent config.Agent, reported domain.AgentSession) Known {
	return Known{agent.Name, reported, modesOf(agent, reported)}
}

// modesOf returns an agent's own modes and Duet's. reported is the agent's last report.
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

// checkSetting refuses a mode, model or option value that an agent is known not to have. "" and nil
// are not checked. An agent without reports is asked when it starts. Errors are of
// domain.KindInvalid and list the valid values.
func checkSetting(agent config.Agent, reported domain.AgentSession, mode, model string, options map[string]string) error {
	if err := checkMode(agent, reported, mode); err != nil {
		return err
	}
	if err := checkModel(agent.Name, reported, model); err != nil {
		return err
	}
	return checkOptions(agent.Name, reported, options)
}

// CheckContent refuses content that an agent is known not to accept in prompts. Unsupported
// resources become links. An agent without reports is asked when it starts. Errors are of
// domain.KindInvalid and list the accepted types.
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

// checkMode refuses a mode that neither the agent nor Duet has. Duet cannot enforce plan mode on a
// plain command, which acts without asking.
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
	case reported.Modes == nil: // not reported yet
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

// SettingSessions reads the reports of agents, see the store's ThreadReader.
type SettingSessions interface {
	AgentSession(ctx context.Context, thread int64) (domain.AgentSessionSeen, error)
	LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error)
}

// ReportedBy returns the report of a thread's agent for its session, or else the agent's last
// report in another thread. thread may be 0.
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
