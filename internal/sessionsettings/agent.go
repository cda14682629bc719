package sessionsettings

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// agentAnswers is how long an agent may take to accept or refuse a setting: slightly longer than
// its executor allows.
const agentAnswers = 40 * time.Second

// OfTurn returns the modes, models and options of the agent in a turn's session, as reported for
// the session's session.
func (ts *Settings) OfTurn(ctx context.Context, s domain.TurnInSession) (Known, error) {
	seen, err := ts.opts.Store.AgentSession(ctx, s.Turn.Session)
	if seen.Agent != s.Session.Agent {
		seen.AgentSession = domain.AgentSession{}
	}
	return settingsOfAgent(ts.opts.Agents.Known(s.Session.Agent), seen.AgentSession), err
}

// OfAgent returns the modes, models and options of a configured agent, "" for the default one, as
// last reported in any session.
func (ts *Settings) OfAgent(ctx context.Context, name string) (Known, error) {
	agent, err := ts.opts.Agents.Agent(name)
	if err != nil {
		return Known{}, err
	}
	reported, err := ReportedBy(ctx, ts.opts.Store, 0, agent.Name)
	return settingsOfAgent(agent, reported), err
}

// Check refuses a mode, model or option value that the session's agent is known not to have. "" and
// nil are not checked. An agent without reports is asked when it starts.
func (ts *Settings) Check(
	ctx context.Context, from store.Reader, session int64, agent, mode, model string, options map[string]string,
) error {
	if mode == "" && model == "" && len(options) == 0 {
		return nil
	}
	reported, err := ReportedBy(ctx, from, session, agent)
	if err != nil {
		return err
	}
	return checkSetting(ts.opts.Agents.Known(agent), reported, mode, model, options)
}

// setLive sets the active agent of a session, and reports whether one is active.
func (ts *Settings) setLive(ctx context.Context, session domain.Session, c domain.SettingsChanged) (bool, error) {
	p := catalog.SetSessionParams{SessionID: session.UUID}
	set(&p.Mode, c.Mode)
	set(&p.Model, c.Model)
	for id, value := range c.Options {
		if value != "" { // otherwise it is no longer requested
			if p.Options == nil {
				p.Options = make(map[string]string)
			}
			p.Options[id] = value
		}
	}
	lease := ts.opts.Turns.LeaseOf(session.ID)
	if lease == nil || p.Mode == "" && p.Model == "" && p.Options == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, agentAnswers)
	defer cancel()
	result, err := lease.SetSession(ctx, p)
	switch {
	case err != nil:
		return false, &domain.Error{Kind: domain.KindSetting, Message: "cannot send the setting to the agent: " + err.Error(), Err: err}
	case result.Status == catalog.SessionRefused:
		return false, &domain.Error{Kind: domain.KindSetting, Message: result.Message}
	}
	return result.Status == catalog.SessionSet, nil
}

// tellInBackground sends a change to the agent after the earlier ones. It never blocks, because the
// store's writer calls it.
func (ts *Settings) tellInBackground(s domain.TurnInSession, c domain.SettingsChanged) {
	turn := ts.turns.take(s.Session.ID, true)
	if !ts.telling.Go(func() {
		defer turn.done()
		<-turn.before
		ts.setInBackground(s, c)
	}) {
		turn.done()
	}
}

// setInBackground is setLive without a waiting caller: a refusal becomes an error of the turn.
func (ts *Settings) setInBackground(s domain.TurnInSession, c domain.SettingsChanged) {
	_, refused := ts.setLive(ts.ctx, s.Session, c)
	if refused == nil || ts.ctx.Err() != nil {
		return
	}
	report, _ := json.Marshal(map[string]string{"code": "SETTING_REFUSED", "message": refused.Error()})
	if err := ts.opts.Turns.Write(ts.ctx, func(t store.Tx) error {
		return announce(
			t, s.Turn, domain.AgentErrorReported{Report: report},
		)
	}); err != nil {
		ts.opts.Logger.Warn("an agent refused a setting, and this cannot be recorded", "err", err)
	}
}

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
			return domain.Invalid("content", fmt.Sprintf("what the agent %s takes in prompts: %s", agent, reported.Takes),
				"content of the type "+c.Type)
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
		return domain.Invalid(
			"permission_mode", "a mode that Duet can enforce for the agent "+agent.Name+": it is a plain command, which acts without asking",
			fmt.Sprintf("%q", mode), known...,
		)
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
			return domain.Invalid("options."+id, "a value that the agent "+agent+" has for it", fmt.Sprintf("%q", value),
				domain.IDs(option.Choices)...)
		}
	}
	return nil
}

// SettingSessions reads the reports of agents, see [store.Reader].
type SettingSessions interface {
	AgentSession(ctx context.Context, session int64) (domain.AgentSessionSeen, error)
	LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error)
}

// ReportedBy returns the report of a session's agent for its session, or else the agent's last
// report in another session. session may be 0.
func ReportedBy(ctx context.Context, from SettingSessions, session int64, agent string) (domain.AgentSession, error) {
	if session != 0 {
		seen, err := from.AgentSession(ctx, session)
		if err != nil || seen.Agent == agent && seen.Agent != "" {
			return seen.AgentSession, err
		}
	}
	seen, err := from.LastAgentSession(ctx, agent)
	return seen.AgentSession, err
}

// agentAfter returns the agent of a session after a change. It checks that the
// caller may use that agent.
func (ts *Settings) agentAfter(ctx context.Context, s domain.TurnInSession, c domain.SettingsChanged) (string, error) {
	if !isForAnother(c, s.Session) {
		return s.Session.Agent, nil
	}
	agent, err := ts.opts.Agents.AgentFor(clientenv.IsRestricted(ctx), *c.Agent)
	return agent.Name, err
}

// giveTo changes the agent of a session, from the next prompt on. The new agent starts its own
// session and gets the transcript. The previous agent's settings and permissions do not carry over,
// and its open questions are closed. giveTo adds these effects to changed.
func (ts *Settings) giveTo(t store.Tx, session *domain.Session, agent string, changed *domain.SettingsChanged) error {
	turns, err := t.UnfinishedTurns(ts.ctx, session.ID)
	if err != nil {
		return err
	}
	for _, turn := range turns {
		if turn.State != domain.Draft {
			return domain.Errorf(domain.KindBadState, "%s is %s: its session can get another agent when it has ended", turn.Label(),
				turn.State.Words())
		}
		turn.Agent, turn.Mode, turn.AgentMode = agent, askingMode(turn.Mode), ""
		if err := t.UpdateTurn(turn); err != nil {
			return err
		}
	}
	if err := ts.opts.Questions.CloseStale(t, session.ID); err != nil {
		return err
	}
	session.Agent, session.NativeSession = agent, ""
	session.Model, session.Settings.Options = "", nil
	changed.Agent = &agent
	if mode := askingMode(session.Mode); mode != session.Mode {
		session.Mode = mode
		changed.Mode = cmp.Or(changed.Mode, &mode)
	}
	no := false
	if session.Settings.SkipPermissions {
		session.Settings.SkipPermissions, session.Settings.SkipPermissionsUntil = false, nil
		changed.SkipPermissions = cmp.Or(changed.SkipPermissions, &no)
	}
	if session.Settings.AutoAcceptEdits {
		session.Settings.AutoAcceptEdits = false
		changed.AutoAcceptEdits = cmp.Or(changed.AutoAcceptEdits, &no)
	}
	return ts.setModes(t, session, session.Mode)
}

// askingMode returns plan for plan, else default, so that no permission carries over.
func askingMode(mode string) string {
	if mode == catalog.ModePlan {
		return mode
	}
	return catalog.ModeDefault
}
