package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// agentAnswers is how long an agent may take to say whether it takes a setting: a
// little longer than its executor gives it.
const agentAnswers = 40 * time.Second

// duetsModes are the permission modes that are Duet's own, whatever an agent has.
// Plan is one for agents alone that say nothing of modes: the others may change
// something in their own modes without asking, so Duet cannot hold them to it.
var duetsModes = []string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass}

// toldBy is what the agent of a thread has told of its session, or else, told last
// in another thread. thread may be 0.
func (h *Hub) toldBy(ctx context.Context, from store.ThreadReader, thread int64, agent string) (domain.AgentSession, error) {
	if thread != 0 {
		seen, err := from.AgentSession(ctx, thread)
		if err != nil || seen.Agent == agent && seen.Agent != "" {
			return seen.AgentSession, err
		}
	}
	seen, err := from.LastAgentSession(ctx, agent)
	return seen.AgentSession, err
}

// AgentSession is what the agent of a run's thread has told of its session; zero
// where it has told nothing.
func (h *Hub) AgentSession(ctx context.Context, s domain.Session) (domain.AgentSession, error) {
	seen, err := h.store.AgentSession(ctx, s.Run.Thread)
	if seen.Agent != s.Thread.Agent {
		return domain.AgentSession{}, err
	}
	return seen.AgentSession, err
}

// KnownAgent is an agent of the configuration, or the default one for "", with what
// it has told of its session last; zero where it never has.
func (h *Hub) KnownAgent(ctx context.Context, name string) (agent string, told domain.AgentSession, modes []string, err error) {
	known, err := h.agent(name)
	if err != nil {
		return "", told, nil, err
	}
	told, err = h.toldBy(ctx, h.store, 0, known.Name)
	return known.Name, told, modesOf(known, told), err
}

// ModesFor are the modes that can be asked of an agent: its own, and Duet's.
func (h *Hub) ModesFor(agent string, told domain.AgentSession) []string {
	known, err := h.agent(agent)
	if err != nil {
		known = config.Agent{Name: agent}
	}
	return modesOf(known, told)
}

func modesOf(agent config.Agent, told domain.AgentSession) []string {
	if !told.TellsModes() {
		modes := slices.Clone(duetsModes)
		if agent.Driver != config.DriverCommand {
			modes = append(modes, catalog.ModePlan)
		}
		return modes
	}
	modes := domain.IDs(told.Modes.Choices)
	for _, mode := range duetsModes {
		if !slices.Contains(modes, mode) {
			modes = append(modes, mode)
		}
	}
	return modes
}

// checkSettings refuses what the agent of a thread is known not to have: a mode, a
// model, a value of an option. "" and nil are not looked at. An agent that has never
// said what it has is asked when it is started.
func (h *Hub) checkSettings(ctx context.Context, from store.ThreadReader, thread int64, agent, mode, model string, options map[string]string) error {
	if mode == "" && model == "" && len(options) == 0 {
		return nil
	}
	told, err := h.toldBy(ctx, from, thread, agent)
	if err != nil {
		return err
	}
	if err := h.checkMode(agent, told, mode); err != nil {
		return err
	}
	if err := checkModel(agent, told, model); err != nil {
		return err
	}
	return checkOptions(agent, told, options)
}

// checkMode refuses a mode that neither the agent nor Duet has. A plain command
// cannot be held to plan: it asks nobody before it acts.
func (h *Hub) checkMode(name string, told domain.AgentSession, mode string) error {
	if mode == "" {
		return nil
	}
	agent, err := h.agent(name)
	if err != nil { // it is told when it is needed
		agent = config.Agent{Name: name}
	}
	known := modesOf(agent, told)
	switch {
	case slices.Contains(known, mode):
		return nil
	case agent.Driver == config.DriverCommand && mode == catalog.ModePlan:
		return domain.Invalid("permission_mode", "a mode that the agent "+name+" can be held to: it is a plain command, which asks nobody before it acts", fmt.Sprintf("%q", mode), known...)
	case agent.Driver == config.DriverCommand, told.Modes != nil && !told.TellsModes():
		return domain.Invalid("permission_mode", "a permission mode", fmt.Sprintf("%q", mode), known...)
	case told.Modes == nil: // nobody knows yet
		return nil
	}
	return domain.Invalid("permission_mode", "a mode of the agent "+name+", or one of Duet's own", fmt.Sprintf("%q", mode), known...)
}

func checkModel(agent string, told domain.AgentSession, model string) error {
	if model == "" || !told.TellsModels() || told.Models.Has(model) {
		return nil
	}
	return domain.Invalid("model", "a model of the agent "+agent, fmt.Sprintf("%q", model), domain.IDs(told.Models.Choices)...)
}

func checkOptions(agent string, told domain.AgentSession, wanted map[string]string) error {
	if told.Options == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		option, there := told.Option(id)
		if !there {
			known := make([]string, len(told.Options))
			for i, o := range told.Options {
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

// setLive sets the agent that works for a thread, if one does, and reports
// whether it did.
func (h *Hub) setLive(ctx context.Context, thread domain.Thread, c SettingsChange) (bool, error) {
	p := catalog.SetSessionParams{SessionID: thread.UUID}
	set(&p.Mode, c.Mode)
	set(&p.Model, c.Model)
	for id, value := range c.Options {
		if value != "" { // else it is not asked for any more
			if p.Options == nil {
				p.Options = make(map[string]string)
			}
			p.Options[id] = value
		}
	}
	lease := h.leaseOf(thread.ID)
	if lease == nil || p.Mode == "" && p.Model == "" && p.Options == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, agentAnswers)
	defer cancel()
	result, err := lease.SetSession(ctx, p)
	switch {
	case err != nil:
		return false, &domain.Error{Kind: domain.KindSetting, Message: "the agent could not be told: " + err.Error(), Err: err}
	case result.Status == catalog.SessionRefused:
		return false, &domain.Error{Kind: domain.KindSetting, Message: result.Message}
	}
	return result.Status == catalog.SessionSet, nil
}

// setBeside is setLive for whoever does not wait: what the agent does not take is
// told as an error of the run.
func (h *Hub) setBeside(s domain.Session, c SettingsChange) {
	_, refused := h.setLive(h.ctx, s.Thread, c)
	if refused == nil || h.ctx.Err() != nil {
		return
	}
	report, _ := json.Marshal(map[string]string{"code": "SETTING_REFUSED", "message": refused.Error()})
	if err := h.write(h.ctx, func(t store.Tx) error { return h.announce(t, s.Run, domain.AgentErrorReported{Report: report}) }); err != nil {
		h.log.Warn("an agent did not take a setting, and nobody could be told", "err", err)
	}
}

// leaseOf is the executor that works for a thread, or nil.
func (h *Hub) leaseOf(thread int64) catalog.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, live := range h.live {
		if live.run.Thread == thread && live.lease != nil {
			return live.lease
		}
	}
	return nil
}
