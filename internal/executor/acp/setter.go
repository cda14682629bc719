package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// A setter changes an agent's session settings by calls to the agent. It must not be used
// concurrently.
type setter struct {
	State   *settingState // the agent's reports of the session; updated by each call
	Session string
	Agent   string // its name
	Info    *acp.Initialized
	// Ignored receives a message about a setting that the agent has no way to change, once per
	// session.
	Ignored func(message string)
	// Call calls a method of the agent. It passes the result to taken before later reports of the
	// agent reach State. Call is responsible for timeouts.
	Call func(method string, params any, taken func(result json.RawMessage)) error
}

// duetModes are the permission modes that Duet implements without the agent: Duet answers the agent's
// questions. Plan is not among them: an agent without a plan mode may change something without
// asking.
var duetModes = []string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass}

// ChooseMode sets the mode in which a prompt begins: the session's last mode, or else wanted; ""
// means none. It fails if the agent does not have or does not accept the wanted mode. It reports
// anything less important to problem.
func (s *setter) ChooseMode(last, wanted string, problem func(message string)) error {
	now := s.State.Session()
	hasModes := now.Mode != nil && len(now.Mode.Choices) > 0
	var id string
	isNamed := false
	if hasModes {
		id, isNamed = named(now.Mode.Choices, wanted)
	}
	switch {
	case last != "" && hasModes && has(now.Mode.Choices, last), last != "" && now.Mode == nil:
		if err := s.setMode(last); err != nil {
			problem(fmt.Sprintf("the agent does not continue in the mode %q: %v", last, err))
		}
		return nil
	case wanted == "": // like the default, except that an agent that plans stays in its own mode
		if err := s.askAgain(); err != nil {
			problem(err.Error())
		}
		return nil
	case hasModes && isNamed:
		err := s.setMode(id)
		if err != nil && wanted == catalog.ModeDefault { // the user may not have asked for the default
			problem(err.Error())
			return nil
		}
		return err
	case slices.Contains(duetModes, wanted):
		err := s.leavePlan(wanted)
		if err != nil && wanted == catalog.ModeDefault {
			problem(err.Error())
			return nil
		}
		if err == nil {
			if err := s.askAgain(); err != nil {
				problem(err.Error())
			}
		}
		return err
	case !hasModes && wanted == catalog.ModePlan:
		return nil
	case now.Mode == nil: // a resumed session that does not report its modes
		return s.setMode(wanted)
	}
	return noMode(now, wanted)
}

// Set changes the settings that the user wants: the mode, the model, and the options by their
// ids. Empty values change nothing. A mode of Duet that the agent does not have only makes the
// agent leave its plan mode.
//
// Set stops at the first setting that the agent does not have or does not accept. Earlier
// settings stay changed.
func (s *setter) Set(mode, model string, options map[string]string) error {
	if mode != "" {
		now := s.State.Session()
		id, isNamed := mode, false
		if now.Mode != nil {
			id, isNamed = named(now.Mode.Choices, mode)
		}
		switch {
		case isNamed, now.Mode == nil && !slices.Contains(duetModes, mode) && mode != catalog.ModePlan:
			if err := s.setMode(cmp.Or(id, mode)); err != nil {
				return err
			}
		case slices.Contains(duetModes, mode):
			if err := s.leavePlan(mode); err != nil {
				return err
			}
			if err := s.askAgain(); err != nil {
				return err
			}
		case mode == catalog.ModePlan && (now.Mode == nil || len(now.Mode.Choices) == 0): // plan mode of Duet itself
		default:
			return noMode(now, mode)
		}
	}
	if err := s.setModel(model); err != nil {
		return err
	}
	return s.setOptions(options)
}

// leavePlan takes an agent out of its plan mode, because the user wants a mode that the agent
// does not have. For the default, an agent that plans although no user asked for it stays in that
// mode: the default keeps the agent's own mode.
func (s *setter) leavePlan(wanted string) error {
	m := s.State.Session().Mode
	if m == nil || catalog.ModeName(m.Current) != catalog.ModePlan {
		return nil
	}
	if plan, other := s.State.planOption(); plan != nil {
		return s.setOption(*plan, other)
	}
	began := s.State.beganMode()
	others := slices.DeleteFunc(settingIDs(m.Choices), func(id string) bool { return catalog.ModeName(id) == catalog.ModePlan })
	switch {
	case slices.Contains(others, catalog.ModeDefault):
		return s.setMode(catalog.ModeDefault)
	case slices.Contains(others, began):
		return s.setMode(began)
	case catalog.ModeName(began) == catalog.ModePlan && wanted == catalog.ModeDefault:
		return nil
	case len(others) == 1:
		return s.setMode(others[0])
	case len(others) == 0:
		return nil
	}
	return fmt.Errorf("the agent stays in plan mode: %q is a mode of Duet, and it is unclear which of the agent's modes it means; choose "+
		"one of %s", wanted, listed(others))
}

// noMode returns an error that lists the available modes.
func noMode(now catalog.Session, wanted string) error {
	if now.Mode == nil || len(now.Mode.Choices) == 0 {
		return fmt.Errorf("there is no mode %q: the agent has no modes of its own; Duet has %s", wanted,
			listed(append(slices.Clone(duetModes), catalog.ModePlan)))
	}
	return fmt.Errorf("there is no mode %q: the agent has %s; %s are Duet's own", wanted, listed(settingIDs(now.Mode.Choices)),
		listed(duetModes))
}

// setMode sets one of the agent's modes, and checks that the agent reports it afterwards.
func (s *setter) setMode(id string) error {
	now := s.State.Session()
	if now.Mode != nil && now.Mode.Current == id {
		return nil
	}
	if plan, other := s.State.planOption(); plan != nil {
		if id == catalog.ModePlan {
			if err := s.askAgain(); err != nil {
				return err
			}
			return s.setOption(*plan, id)
		}
		if plan.Current == catalog.ModePlan {
			if err := s.setOption(*plan, other); err != nil {
				return err
			}
			if now = s.State.Session(); now.Mode.Current == id {
				return nil
			}
		}
	}
	if o := option(now.Options, categoryMode); o != nil && has(o.Choices, id) {
		if err := s.setOption(*o, id); err != nil {
			return err
		}
	} else {
		err := s.Call(acp.MethodSessionSetMode, map[string]any{
			"sessionId": s.Session, "modeId": id,
		}, func(json.RawMessage) { s.State.modeTaken(id) })
		if err != nil {
			return fmt.Errorf("the agent did not take the mode %q: %w", id, err)
		}
	}
	if now = s.State.Session(); now.Mode != nil && now.Mode.Current != id {
		return fmt.Errorf("the agent did not take the mode %q: it is in %q", id, now.Mode.Current)
	}
	return nil
}

// setModel sets the model. If the agent does not report its models, it changes nothing and
// reports that to Ignored.
func (s *setter) setModel(id string) error {
	now := s.State.Session()
	switch {
	case id == "", now.Model != nil && now.Model.Current == id:
		return nil
	case now.Model == nil: // a resumed session that does not report its models
		return nil
	case len(now.Model.Choices) == 0:
		if s.State.ignoresModel(id) {
			s.Ignored(fmt.Sprintf("%s does not report its models, so it uses its own model instead of %q", s.Agent, id))
		}
		return nil
	case !has(now.Model.Choices, id):
		return fmt.Errorf("there is no model %q: the agent has %s", id, listed(settingIDs(now.Model.Choices)))
	}
	if o := option(now.Options, categoryModel); o != nil && has(o.Choices, id) {
		return s.setOption(*o, id)
	}
	err := s.Call(acp.MethodSessionSetModel, map[string]any{
		"sessionId": s.Session, "modelId": id,
	}, func(json.RawMessage) { s.State.modelTaken(id) })
	if err != nil {
		return fmt.Errorf("the agent did not take the model %q: %w", id, err)
	}
	return nil
}

// setOptions sets options, in the agent's order: one may depend on another.
func (s *setter) setOptions(wanted map[string]string) error {
	known := s.State.Session().Options
	for id := range wanted {
		if !slices.ContainsFunc(known, func(o catalog.Option) bool { return o.ID == id }) {
			all := make([]string, len(known))
			for i, o := range known {
				all[i] = o.ID
			}
			return fmt.Errorf("there is no option %q: the agent has %s", id, listed(all))
		}
	}
	for _, before := range known {
		value, ask := wanted[before.ID]
		if !ask {
			continue
		}
		for _, o := range s.State.Session().Options {
			if o.ID != before.ID || o.Current == value {
				continue
			}
			if len(o.Choices) > 0 && !has(o.Choices, value) {
				return fmt.Errorf("the option %q has no value %q: it has %s", o.ID, value, listed(settingIDs(o.Choices)))
			}
			if err := s.setOption(o, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// setOption sets an option.
func (s *setter) setOption(o catalog.Option, value string) error {
	var wanted any = value
	if o.Type == "boolean" {
		wanted = value == "true"
	}
	err := s.Call(acp.MethodSessionSetValue, s.Info.SetOption(s.Session, o.ID, wanted), func(result json.RawMessage) {
		s.State.optionTaken(o.ID, value, rawjson.Member(result, "configOptions"))
	})
	if err != nil {
		return fmt.Errorf("the agent did not take %q for its option %q: %w", value, o.ID, err)
	}
	return nil
}

// listed formats names for a message.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
