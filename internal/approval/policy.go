package approval

import (
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// This file is what modes, rules and lists say of a tool call before
// anybody is asked: that it may run, that it may not, or nothing.
//
// It keeps nothing and asks nobody. What is allowed is looked up at each call,
// so that a rule that was changed holds for the next one.
//
// A rule is held against what an agent says that a tool is and gets, never
// against a text for people. Where a tool's input can be read in more than one
// way (package toolinput), nothing allows the call, and a deny rule that fits
// any of the readings denies it.

// A Policy judges tool calls. Its methods may be called from any goroutine.
type Policy struct {
	root  string
	rules func() []config.Rule
}

// NewPolicy is the policy of a project, whose root is an absolute path. rules, if not
// nil, are those of the configuration as it is now; they are asked for at each
// call, by any goroutine.
func NewPolicy(root string, rules func() []config.Rule) *Policy {
	if rules == nil {
		rules = func() []config.Rule { return nil }
	}
	return &Policy{root, rules}
}

// A situation is what a call is judged in.
type situation struct {
	Thread domain.Thread // the conversation, with its settings
	Run    domain.Run    // whose agent calls the tool
	Rules  []domain.Rule // what people have decided for the conversation and the project
	Now    time.Time

	AgentModes []string // the IDs of those that the agent has; nil if it has none, or nobody was told
}

// A ruling is what the policy says of a call without asking anybody.
type ruling struct {
	Approved bool
	Reason   string // mode=…, or rule=…; "": the policy says nothing, so somebody is to be asked

	Explanation string // what that mode or rule is, in words
}

// IsSettled reports whether the policy says anything.
func (r ruling) IsSettled() bool { return r.Reason != "" }

// Judge applies the policy in its order (docs/protocol.md, "Questions"): deny rules and the
// run's list of tools > bypass, until it expires > allow rules > mode > ask.
func (p *Policy) Judge(c call, in situation) ruling {
	c.files, c.alternatives.files = filesOf(p.root, in.Thread.CWD, c.paths), filesOf(p.root, in.Thread.CWD, c.alternatives.paths)
	c.inside = insideOf(p.root, in.Thread.CWD)
	if len(in.Run.Tools) > 0 && !c.isAmong(in.Run.Tools) {
		return ruling{false, "rule=tools", "the session may use these tools alone: " + strings.Join(in.Run.Tools, ", ")}
	}
	if rule := p.matchRules(config.EffectDeny, c, in); rule != nil {
		return ruling{false, rule.reason, rule.explanation}
	}
	s := in.Thread.Settings
	bypass := s.SkipPermissions && (s.SkipPermissionsUntil == nil || in.Now.Before(*s.SkipPermissionsUntil))
	mode := in.mode()
	if bypass || mode == catalog.ModeBypass {
		return ruling{true, "mode=" + catalog.ModeBypass, "the session allows every tool call without asking"}
	}
	if !c.IsAmbiguous() && !p.couldBeDenied(c, in) {
		if rule := p.matchRules(config.EffectAllow, c, in); rule != nil {
			return ruling{true, rule.reason, rule.explanation}
		}
	}
	switch {
	case !c.IsAmbiguous() && (mode == catalog.ModeAcceptEdits || s.AutoAcceptEdits) && c.edits():
		return ruling{true, "mode=" + catalog.ModeAcceptEdits, "the session accepts edits without being asked"}
	case mode == catalog.ModePlan && c.changesSomething():
		return ruling{false, "mode=" + catalog.ModePlan, "the session is in plan mode, in which nothing is changed or run"}
	}
	return ruling{}
}

// isAmong reports whether a list of tools has the call.
func (c call) isAmong(tools []string) bool {
	c.unknown = false // a list that has the whole tool has it whatever its input is
	return c.firstMet(config.EffectAllow, c.listedConditions(config.EffectAllow, tools)) != nil
}

// Holds reports whether rules of an effect say what becomes of a call.
func (p *Policy) Holds(c call, effect string, rules []domain.Rule, in domain.Thread) bool {
	c.files, c.alternatives.files = filesOf(p.root, in.CWD, c.paths), filesOf(p.root, in.CWD, c.alternatives.paths)
	c.inside = insideOf(p.root, in.CWD)
	var conditions []condition
	for _, r := range rules {
		if of, ok := c.decided(r); ok {
			conditions = append(conditions, of)
		}
	}
	return c.firstMet(effect, conditions) != nil
}

// couldBeDenied reports whether a tool of which nothing is known could be one
// that a rule denies. Then no rule for all tools allows it: it is asked.
func (p *Policy) couldBeDenied(c call, in situation) bool {
	if !c.couldBeAny() {
		return false
	}
	c.asAnyTool = true
	return p.matchRules(config.EffectDeny, c, in) != nil
}

// matchRules is the first rule of an effect that fits, or nil.
func (p *Policy) matchRules(effect string, c call, in situation) *condition {
	listed := in.Thread.Settings.DisallowedTools
	if effect == config.EffectAllow {
		listed = in.Thread.Settings.AllowedTools
	}
	conditions := c.listedConditions(effect, listed)
	for _, r := range in.Rules {
		if r.Effect == effect {
			if of, ok := c.decided(r); ok {
				conditions = append(conditions, of)
			}
		}
	}
	isRestricted := in.Run.Restricted
	for _, r := range p.rules() {
		if isRestricted && r.Effect == config.EffectAllow && r.Source == config.SourceProject {
			continue
		}
		if r.Effect == effect && (r.Agent == "" || r.Agent == in.Thread.Agent) {
			if of, ok := c.configured(r); ok {
				conditions = append(conditions, of)
			}
		}
	}
	return c.firstMet(effect, conditions)
}

func (c call) listedConditions(effect string, list []string) (conditions []condition) {
	for _, pattern := range list {
		if of, ok := c.listed(effect, pattern); ok {
			of.explanation = fmt.Sprintf("the session's list of tools to %s has %s", effect, pattern)
			conditions = append(conditions, of)
		}
	}
	return conditions
}

// decided is the condition of a rule that somebody's decision has become. It is
// not ok if that is for other calls.
func (c call) decided(r domain.Rule) (of condition, ok bool) {
	if of.reason = "rule=project"; r.Thread != 0 {
		of.reason = "rule=session"
	}
	of.explanation = explanationOf(r)
	if !c.isTool(r.Effect, r.Command != "" || r.Path != "", func(name string) bool { return name == r.Tool }) || c.isPlan && r.Effect == config.EffectAllow {
		return of, false
	}
	if c.unknown && !isForExactInput(r) {
		return of, r.Effect == config.EffectDeny
	}
	switch {
	case c.unknown && r.Effect == config.EffectAllow && toolinput.IsEmpty(c.input): // of an earlier version
		return of, false
	case r.Command == "" || c.isInput(r.Effect, r.Command):
	case r.Pattern:
		command := shellcommand.Glob(r.Command)
		of.command = &command
	default:
		command := shellcommand.Exactly(r.Command)
		of.command = &command
	}
	return of, r.Path == "" || c.touches(r.Effect, func(name string) bool { return isInPath(r.Path, name) })
}

// configured is the condition of a rule of the configuration, whoever's agent
// makes the call. It is not ok if that is for other calls.
func (c call) configured(r config.Rule) (of condition, ok bool) {
	of.reason, of.explanation = "rule="+r.Source, r.String()
	if r.File != "" {
		of.explanation = fmt.Sprintf("%s, line %d: %s", r.File, r.Line, r)
	}
	if !c.isTool(r.Effect, r.Command != "" || r.Path != "", func(name string) bool { return matches(r.Tool, name) }) {
		return of, false
	}
	if c.unknown {
		return of, r.Effect == config.EffectDeny
	}
	if r.Command != "" {
		command := shellcommand.Glob(r.Command)
		of.command = &command
	}
	return of, r.Path == "" || c.touches(r.Effect, func(name string) bool { return matches(r.Path, name) })
}
