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
		if json.Unmarshal(frame.Member(raw, "currentModeId"), &mode) != nil || mode == "" {
			return false
		}
		s.switchMode(mode)
	case "config_option_update":
		options, ok := optionsOf(frame.Member(raw, "configOptions"))
		if !ok {
			return false
		}
		s.setOptions(options)
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

// planOption returns the option that switches planning, as last reported, and its value for not
// planning. It returns nil if the agent has no such option.
func (s *settingState) planOption() (plan *catalog.Option, other string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return planOption(s.now.Options, s.now.Mode)
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

// Each agent names its modes itself. Some agents begin in a mode in which a model decides what to
// ask ("Auto review" of codex-acp 2.6, "auto" of claude-agent-acp 0.101 and qwen-code 0.24).
// Duet's rules and questions do not apply there. This file records the behaviour of the agents of
// November 2026 in each mode.

// preferred lists the modes for Duet's default, best first. In each of them an agent asks before
// it changes or runs something.
var preferred = []string{catalog.ModeDefault, "manual", "approve", "read-only", "agent"}

// asks reports whether an agent is known to ask, in one of its modes, before it changes or runs
// something. An unknown mode counts as one that does not ask.
func asks(now catalog.Session, id string) bool {
	switch name := catalog.ModeName(id); name {
	case catalog.ModeDefault, "manual", "approve", catalog.ModePlan:
		return true
	case "ask": // from the protocol's example; Cursor's mode of that name changes nothing, so no agent is set to it
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
	return fmt.Sprintf("%s is in its mode %s, in which it may act without asking: rules and questions hold only for what it asks about", agent, name)
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

// planOption returns the option that switches planning for an agent without a plan mode (codex),
// and its value for not planning. It returns nil if there is none.
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

// withPlan adds the mode plan to the modes of an agent that has it as an option.
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

// members are the members of an agent's JSON object. Reading a member removes it; the unknown
// rest is passed on.
type members map[string]json.RawMessage

func membersOf(raw json.RawMessage) members {
	var m members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// text removes and returns a string member. Null is no string.
func (m members) text(name string) (text string) {
	raw, there := m[name]
	if there && json.Unmarshal(raw, &text) == nil {
		delete(m, name)
	}
	return text
}

// list removes and returns a member that is a list of objects.
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

// rest returns the members that were not read.
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

// listOf returns the objects of a JSON list. It skips other values.
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

// choicesOf converts a list of objects to choices; id names the member with the id. It skips an
// object without one.
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

// An offer is the settings that an agent reports when it opens a session.
type offer struct {
	modes, models *catalog.Selection    // nil: not reported
	options       []catalog.Option      // nil: not reported
	commands      []domain.AgentCommand // nil: not reported
}

// readOffer reads the result of session/new, session/load or session/resume. A malformed member
// counts as absent.
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

// selectionOf reads the modes or models in the result of session/new. It returns nil if there are
// none.
func selectionOf(raw json.RawMessage, current, available, id string) *catalog.Selection {
	m := membersOf(raw)
	if m == nil {
		return nil
	}
	list, _ := m.list(available)
	return &catalog.Selection{Current: m.text(current), Choices: choicesOf(list, id, "")}
}

// optionsOf reads configuration options, those of unknown types included. ok is false if raw is
// no list.
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

// valuesOf returns the values of an option, also those in groups.
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

// commandsOf reads slash commands. ok is false if raw is no list.
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

// infoAfter returns a session's info after an update. An absent member changes nothing, and null
// removes a value.
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
