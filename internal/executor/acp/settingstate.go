package acp

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// The settings of an agent's session: mode, model, options, and its description of itself. Reports
// of the agent go into a State; a Setter changes settings by calls of the Agent Client Protocol.

// settingState is an agent's report of its session: the available settings and their current
// values. Its methods may be called from any goroutine. Values that it returns are never changed.
// The zero value is that of an agent that has reported nothing.
//
// Reports and accepted changes are merged in the order in which the agent sent them: the goroutine
// that reads the agent merges both. A report that the agent sent before it accepted a change is
// older than the change.
//
// An agent may report its mode and its model twice: as modes and models, and as options that
// choose them. The latest report counts for both.
// https://agentclientprotocol.com/protocol/v1/session-config-options
type settingState struct {
	reporting sync.Mutex // serializes reports to the hub, so that they arrive in order

	mu      sync.Mutex // guards the fields below
	now     catalog.Session
	changed catalog.Session // the parts of now that were not reported to the hub yet
	began   string          // the mode in which the session began; "" if it was resumed
	ignored string          // the last requested model that the agent could not take
}

// ignoresModel notes that a requested model could not be set, and reports whether that is new.
func (s *settingState) ignoresModel(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.ignored != id
	s.ignored = id
	return news
}

// isProgram reports whether the agent has introduced itself by that name.
func (s *settingState) isProgram(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Agent != nil && s.now.Agent.Name == name
}

// Categories of options that Duet uses, too. An option without a category may have one of these
// as its id.
const (
	categoryMode  = "mode"
	categoryModel = "model"
)

// Opened merges what the agent reported when it opened a session. A new session is reported
// completely; a resumed one may lack parts that are unchanged.
func (s *settingState) Opened(o offer, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	modes, models, options := o.modes, o.models, o.options
	if isNew {
		s.now.Mode, s.now.Model, s.now.Options = nil, nil, nil
		if modes == nil {
			modes = &catalog.Selection{}
		}
		if models == nil {
			models = &catalog.Selection{}
		}
		if options == nil {
			options = []catalog.Option{}
		}
	}
	if modes != nil {
		s.setMode(modes)
	}
	if models != nil {
		s.setModel(models)
	}
	if options != nil {
		s.setOptions(options)
	}
	if o.commands != nil {
		s.now.Commands, s.changed.Commands = o.commands, o.commands
	}
	if isNew {
		s.began = withPlan(s.now.Mode, s.now.Options).Current
	}
}

// Introduced stores the agent's program, if it reports one, and what it accepts in prompts.
func (s *settingState) Introduced(info *domain.AgentInfo, takes domain.PromptTakes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info != nil {
		s.now.Agent, s.changed.Agent = info, info
	}
	s.now.Takes, s.changed.Takes = &takes, &takes
}

// Update merges a session/update of that kind. It reports whether the update is a readable one
// about settings. It keeps nothing of raw.
func (s *settingState) Update(kind string, raw []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case "current_mode_update":
		var mode string
		if json.Unmarshal(rawjson.Member(raw, "currentModeId"), &mode) != nil || mode == "" {
			return false
		}
		s.switchMode(mode)
	case "config_option_update":
		options, ok := optionsOf(rawjson.Member(raw, "configOptions"))
		if !ok {
			return false
		}
		s.setOptions(options)
	case "available_commands_update":
		commands, ok := commandsOf(rawjson.Member(raw, "availableCommands"))
		if !ok {
			return false
		}
		s.now.Commands, s.changed.Commands = commands, commands
	case "session_info_update":
		info := infoAfter(s.now.Info, raw)
		s.now.Info, s.changed.Info = info, info
	default:
		return false
	}
	return true
}

// setOptions merges the complete list of options.
func (s *settingState) setOptions(options []catalog.Option) {
	s.now.Options, s.changed.Options = options, options
	if o := option(options, categoryMode); o != nil {
		s.setMode(&catalog.Selection{Current: o.Current, Choices: o.Choices})
	}
	if o := option(options, categoryModel); o != nil {
		s.setModel(&catalog.Selection{Current: o.Current, Choices: o.Choices})
	}
}

func (s *settingState) setMode(m *catalog.Selection)  { s.now.Mode, s.changed.Mode = m, m }
func (s *settingState) setModel(m *catalog.Selection) { s.now.Model, s.changed.Model = m, m }

// switchMode stores the agent's current mode, both as a mode and as an option.
func (s *settingState) switchMode(id string) {
	s.setMode(switched(s.now.Mode, id))
	if o := option(s.now.Options, categoryMode); o != nil {
		s.switchOption(o.ID, id)
	}
}

func (s *settingState) switchModel(id string) {
	s.setModel(switched(s.now.Model, id))
	if o := option(s.now.Options, categoryModel); o != nil {
		s.switchOption(o.ID, id)
	}
}

// switchOption stores the value of an option.
func (s *settingState) switchOption(id, value string) {
	options := slices.Clone(s.now.Options)
	for i := range options {
		if options[i].ID == id {
			options[i].Current = value
		}
	}
	s.setOptions(options)
}

func switched(m *catalog.Selection, current string) *catalog.Selection {
	if m == nil {
		return &catalog.Selection{Current: current}
	}
	return &catalog.Selection{Current: current, Choices: m.Choices}
}

// beganMode returns the mode in which the session began, or "".
func (s *settingState) beganMode() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// modeTaken notes that the agent has accepted a mode.
func (s *settingState) modeTaken(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.switchMode(id)
}

// modelTaken notes that the agent has accepted a model.
func (s *settingState) modelTaken(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.switchModel(id)
}

// optionTaken notes that the agent has accepted the value of an option. The answer, a list of all
// options, counts. Without one, the option has the value.
func (s *settingState) optionTaken(id, value string, answer json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if options, ok := optionsOf(answer); ok {
		s.setOptions(options)
	} else {
		s.switchOption(id, value)
	}
}

// Session returns everything that the agent has reported. A plan mode that the agent has as an
// option is among its modes.
func (s *settingState) Session() catalog.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now
	now.Mode = withPlan(now.Mode, now.Options)
	return now
}

// Report passes the complete state to report, and marks it as reported. Reports are serialized:
// report must not make another.
func (s *settingState) Report(report func(now catalog.Session)) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.takeChanged()
	report(s.Session())
}

// ReportChanged passes the parts that changed since the last report to report. It does not call
// report if there are none. report must not make another report.
func (s *settingState) ReportChanged(report func(changed catalog.Session)) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if changed, some := s.takeChanged(); some {
		report(changed)
	}
}

// takeChanged returns the unreported parts and marks them as reported.
func (s *settingState) takeChanged() (c catalog.Session, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, s.changed = s.changed, catalog.Session{}
	if plan, _ := planOption(s.now.Options, s.now.Mode); plan != nil && (c.Mode != nil || c.Options != nil) {
		c.Mode = withPlan(s.now.Mode, s.now.Options)
	}
	return c, c.Agent != nil || c.Mode != nil || c.Model != nil || c.Options != nil || c.Commands != nil || c.Info != nil || c.Takes != nil
}

// option returns the option that chooses the mode, or the model: the first of its category, or
// else the one with that id.
func option(options []catalog.Option, category string) *catalog.Option {
	for i := range options {
		if o := &options[i]; o.Category == category && len(o.Choices) > 0 {
			return o
		}
	}
	for i := range options {
		if o := &options[i]; o.ID == category && o.Category == "" && len(o.Choices) > 0 {
			return o
		}
	}
	return nil
}

// has reports whether choices contain an id.
func has(choices []domain.Choice, id string) bool {
	return slices.ContainsFunc(choices, func(c domain.Choice) bool { return c.ID == id })
}

// settingIDs returns the ids of choices, in their order.
func settingIDs(choices []domain.Choice) []string {
	list := make([]string, len(choices))
	for i, c := range choices {
		list[i] = c.ID
	}
	return list
}
