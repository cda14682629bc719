package acp

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// This file knows the settings of an agent's session: its mode, its model, its
// options and what it says of itself. What the agent tells of them goes into a State; a
// Setter changes them by the calls of the Agent Client Protocol.

// settingState is what an agent tells of its session: what it can be set to, and what
// it is set to. Its methods may be called from any goroutine. What it gives out
// is never changed. The zero value is that of an agent that has told nothing.
//
// An agent may tell its mode and its model twice: as modes and models, and as
// options that choose them. What was told last counts for both.
// https://agentclientprotocol.com/protocol/v1/session-config-options
type settingState struct {
	reporting sync.Mutex // held while the hub is told, which so hears of changes in their order

	mu       sync.Mutex // guards the fields below
	now      catalog.Session
	changed  catalog.Session // the parts of now that the hub was not told yet
	began    string          // the mode in which the session began; "" if that was elsewhere
	toldMode int             // how often the agent has told in which mode it is
	toldAny  map[string]int  // how often it has told the value of an option
	ignored  string          // the model that was last asked for in vain
}

// ignoresModel notes that a model was asked for in vain, and reports whether that is news.
func (s *settingState) ignoresModel(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.ignored != id
	s.ignored = id
	return news
}

// Categories of options that are Duet's business, too. An option may have the name
// as its id and no category.
const (
	categoryMode  = "mode"
	categoryModel = "model"
)

// Opened takes over what the agent told when it opened a session. Of a session
// that is new it has told everything; one that was there before may be as it was.
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

// Introduced takes over which program the agent is, if it says so, and what it takes in
// prompts.
func (s *settingState) Introduced(info *catalog.AgentInfo, takes catalog.PromptTakes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if info != nil {
		s.now.Agent, s.changed.Agent = info, info
	}
	s.now.Takes, s.changed.Takes = &takes, &takes
}

// Update takes over a session/update of that kind, and reports whether it is one that
// is about settings, and can be read. It keeps nothing of raw.
func (s *settingState) Update(kind string, raw []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case "current_mode_update":
		var mode string
		if json.Unmarshal(frame.Member(raw, "currentModeId"), &mode) != nil || mode == "" {
			return false
		}
		s.toldMode++
		s.switchMode(mode)
	case "config_option_update":
		options, ok := optionsOf(frame.Member(raw, "configOptions"))
		if !ok {
			return false
		}
		s.toldOptions(options)
	case "available_commands_update":
		commands, ok := commandsOf(frame.Member(raw, "availableCommands"))
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

// toldOptions takes over all options, as the agent has told them.
func (s *settingState) toldOptions(options []catalog.Option) {
	for _, o := range options {
		if s.toldAny == nil {
			s.toldAny = make(map[string]int)
		}
		s.toldAny[o.ID]++
	}
	if option(options, categoryMode) != nil {
		s.toldMode++
	}
	s.setOptions(options)
}

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

// switchMode notes that the agent is in a mode, wherever it tells that.
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

// switchOption notes the value of an option.
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

// beganMode is the mode in which the session began, or "".
func (s *settingState) beganMode() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// modeCount is how often the agent has told in which mode it is.
func (s *settingState) modeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.toldMode
}

// modeTaken notes that the agent took a mode by a call, unless it has told since the
// count in which it is.
func (s *settingState) modeTaken(id string, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.toldMode == count {
		s.switchMode(id)
	}
}

// modelTaken notes that the agent took a model by a call.
func (s *settingState) modelTaken(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.switchModel(id)
}

// optionCount is how often the agent has told the value of an option.
func (s *settingState) optionCount(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.toldAny[id]
}

// optionTaken notes that the agent took a value by a call. Its answer counts, which is all
// options. If it answers none, it has the value, unless it has told another since the count.
func (s *settingState) optionTaken(id, value string, answer json.RawMessage, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if options, ok := optionsOf(answer); ok {
		s.toldOptions(options)
	} else if s.toldAny[id] == count {
		s.switchOption(id, value)
	}
}

// Session is all that the agent has told. A plan mode that the agent has as an option is
// among its modes.
func (s *settingState) Session() catalog.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now
	now.Mode = withPlan(now.Mode, now.Options)
	return now
}

// planOption is the option by which the agent plans, as told last, and its value for
// everything else; nil if the agent has no such option.
func (s *settingState) planOption() (plan *catalog.Option, other string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return planOption(s.now.Options, s.now.Mode)
}

// Report hands over all that the agent has told, with which the hub is up to date.
// Reports are made one after the other: tell must not ask for another.
func (s *settingState) Report(tell func(now catalog.Session)) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	s.takeChanged()
	tell(s.Session())
}

// ReportChanged hands over the parts that the agent has told since the last report;
// tell is not called if there are none, and must not ask for another report.
func (s *settingState) ReportChanged(tell func(changed catalog.Session)) {
	s.reporting.Lock()
	defer s.reporting.Unlock()
	if changed, some := s.takeChanged(); some {
		tell(changed)
	}
}

// takeChanged is what the hub was not told yet, and is told now.
func (s *settingState) takeChanged() (c catalog.Session, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, s.changed = s.changed, catalog.Session{}
	if plan, _ := planOption(s.now.Options, s.now.Mode); plan != nil && (c.Mode != nil || c.Options != nil) {
		c.Mode = withPlan(s.now.Mode, s.now.Options)
	}
	return c, c.Agent != nil || c.Mode != nil || c.Model != nil || c.Options != nil || c.Commands != nil || c.Info != nil || c.Takes != nil
}

// option is the one that chooses the mode, or the model: the first of its
// category, or else the one with that id.
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

// has reports whether there is a choice.
func has(choices []catalog.Choice, id string) bool {
	return slices.ContainsFunc(choices, func(c catalog.Choice) bool { return c.ID == id })
}

// settingIDs are the ids of choices, in their order.
func settingIDs(choices []catalog.Choice) []string {
	list := make([]string, len(choices))
	for i, c := range choices {
		list[i] = c.ID
	}
	return list
}
