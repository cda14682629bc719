package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// The settings of an agent's session: mode, model, options, and its description of itself. Reports
// of the agent go into a State; a Setter changes settings by calls of the Agent Client Protocol.

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
func (s *settingState) Introduced(info *domain.AgentInfo, takes domain.PromptTakes) {
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
func has(choices []domain.Choice, id string) bool {
	return slices.ContainsFunc(choices, func(c domain.Choice) bool { return c.ID == id })
}

// settingIDs are the ids of choices, in their order.
func settingIDs(choices []domain.Choice) []string {
	list := make([]string, len(choices))
	for i, c := range choices {
		list[i] = c.ID
	}
	return list
}

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
	i := slices.IndexFunc(now.Mode.Choices, func(c domain.Choice) bool { return c.ID == now.Mode.Current })
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

// members are those of an object of an agent's. What was taken of them is there no
// more; what is left is what nobody here knows, and is passed on.
type members map[string]json.RawMessage

func membersOf(raw json.RawMessage) members {
	var m members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// text takes a member that is a text. Null is no text.
func (m members) text(name string) (text string) {
	raw, there := m[name]
	if there && json.Unmarshal(raw, &text) == nil {
		delete(m, name)
	}
	return text
}

// list takes a member that is a list of objects.
func (m members) list(name string) (list []members, ok bool) {
	raw, there := m[name]
	if !there {
		return nil, false
	}
	if list, ok = listOf(raw); ok {
		delete(m, name)
	}
	return list, ok
}

// rest is what was not taken.
func (m members) rest() json.RawMessage {
	for name, value := range m {
		if string(value) == "null" {
			delete(m, name)
		}
	}
	if len(m) == 0 {
		return nil
	}
	raw, _ := json.Marshal(m) // it was JSON
	return raw
}

// listOf are the objects of a list. What is no object is left out.
func listOf(raw json.RawMessage) (list []members, ok bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		return nil, false
	}
	list = []members{}
	for _, item := range items {
		if m := membersOf(item); m != nil {
			list = append(list, m)
		}
	}
	return list, true
}

// choicesOf are choices whose ids are the members of a name; one without is left
// out.
func choicesOf(list []members, id, group string) []domain.Choice {
	var choices []domain.Choice
	for _, m := range list {
		c := domain.Choice{ID: m.text(id), Name: m.text("name"), Description: m.text("description"), Group: group}
		if c.ID == "" {
			continue
		}
		c.Extra = m.rest()
		choices = append(choices, c)
	}
	return choices
}

// An offer is what an agent says of its settings when it opens a session.
type offer struct {
	modes, models *catalog.Selection    // nil: it says nothing
	options       []catalog.Option      // nil: it says nothing
	commands      []domain.AgentCommand // nil: it says nothing
}

// readOffer reads the result of session/new, session/load or session/resume. What is
// not as it should be was not said.
func readOffer(result json.RawMessage) offer {
	m := membersOf(result)
	options, _ := optionsOf(m["configOptions"])
	commands, _ := commandsOf(m["availableCommands"]) // in version 2 of the protocol
	return offer{
		commands: commands,
		modes:    selectionOf(m["modes"], "currentModeId", "availableModes", "id"),
		models:   selectionOf(m["models"], "currentModelId", "availableModels", "modelId"),
		options:  options,
	}
}

// selectionOf is what the members of session/new's result, modes and models, say;
// nil if there is none.
func selectionOf(raw json.RawMessage, current, available, id string) *catalog.Selection {
	m := membersOf(raw)
	if m == nil {
		return nil
	}
	list, _ := m.list(available)
	return &catalog.Selection{Current: m.text(current), Choices: choicesOf(list, id, "")}
}

// optionsOf are configuration options, those of unknown types included; not ok if
// that is no list.
func optionsOf(raw json.RawMessage) (options []catalog.Option, ok bool) {
	list, ok := listOf(raw)
	if !ok {
		return nil, false
	}
	options = []catalog.Option{}
	for _, m := range list {
		o := catalog.Option{ID: cmp.Or(m.text("id"), m.text("configId")), Name: m.text("name"), Description: m.text("description"), Category: m.text("category"), Type: m.text("type")}
		if o.ID == "" {
			continue
		}
		if o.Current = m.text("currentValue"); o.Type == "boolean" {
			var on bool
			if json.Unmarshal(m["currentValue"], &on) == nil {
				delete(m, "currentValue")
			}
			o.Current, o.Choices = "false", []domain.Choice{{ID: "true"}, {ID: "false"}}
			if on {
				o.Current = "true"
			}
		}
		if values, ok := m.list("options"); ok {
			o.Choices = append(o.Choices, valuesOf(values)...)
		}
		o.Extra = m.rest()
		options = append(options, o)
	}
	return options, true
}

// valuesOf are the values of an option, also those in groups.
func valuesOf(list []members) (choices []domain.Choice) {
	for _, m := range list {
		if grouped, ok := m.list("options"); ok {
			heading := m.text("name")
			if group := m.text("group"); heading == "" {
				heading = group
			}
			choices = append(choices, choicesOf(grouped, "value", heading)...)
			continue
		}
		choices = append(choices, choicesOf([]members{m}, "value", "")...)
	}
	return choices
}

// commandsOf are slash commands; not ok if that is no list.
func commandsOf(raw json.RawMessage) (commands []domain.AgentCommand, ok bool) {
	list, ok := listOf(raw)
	if !ok {
		return nil, false
	}
	commands = []domain.AgentCommand{}
	for _, m := range list {
		c := domain.AgentCommand{Name: m.text("name"), Description: m.text("description")}
		if c.Name == "" {
			continue
		}
		if input := membersOf(m["input"]); input != nil {
			c.InputHint = input.text("hint")
			if len(input) == 0 {
				delete(m, "input")
			}
		}
		c.Extra = m.rest()
		commands = append(commands, c)
	}
	return commands, true
}

// infoAfter is what a session is called after an update, of which an absent member
// changes nothing and null takes away.
func infoAfter(before *domain.SessionInfo, raw json.RawMessage) *domain.SessionInfo {
	var info domain.SessionInfo
	if before != nil {
		info = *before
	}
	m := membersOf(raw)
	for name, field := range map[string]*string{"title": &info.Title, "updatedAt": &info.Updated} {
		if _, there := m[name]; there {
			*field = m.text(name)
		}
	}
	return &info
}
