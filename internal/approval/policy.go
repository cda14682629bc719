package approval

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file decides tool calls by modes, rules and tool lists, before a person is asked: allow,
// deny, or no ruling.
//
// It stores nothing and asks no person. Each call reads the current rules, so a changed rule
// applies to the next call.
//
// Rules match the tool and input that an agent reports, never a text for people. If programs can
// read an input in several ways (package toolinput), no rule allows the call, and a deny rule that
// matches any reading denies it.

// Policy judges tool calls. Its methods may be called from any goroutine.
type Policy struct {
	// Worktree, if set, returns the project's directory in the git worktree that a directory is in,
	// or "". Set it before the first call.
	Worktree func(dir string) string

	root  string
	rules func() []config.Rule
}

// NewPolicy returns the policy of a project; root is an absolute path. rules, if not nil, returns
// the currently configured rules. Each call of the policy calls it, from any goroutine.
func NewPolicy(root string, rules func() []config.Rule) *Policy {
	if rules == nil {
		rules = func() []config.Rule { return nil }
	}
	return &Policy{root: root, rules: rules}
}

// Situation is the context in which a call is judged.
type Situation struct {
	Session domain.Session // the session, with its settings
	Turn    domain.Turn    // whose agent calls the tool
	Rules   []domain.Rule  // people's decisions for the session and the project
	Now     time.Time      // by a clock that is never set back (store.Store, Latest)

	AgentModes []string // ids of the agent's modes; nil if it has none or has not reported them
}

// Ruling is the policy's decision on a call.
type Ruling struct {
	Approved bool
	Reason   string // mode=… or rule=…; "": no ruling, so a person must be asked

	Explanation string // the mode or rule in words
}

// IsSettled reports whether the policy has decided.
func (r Ruling) IsSettled() bool { return r.Reason != "" }

// Judge applies the policy in order (docs/protocol.md, "Questions"): deny rules and the turn's tool
// list > bypass, until it expires > the editor's tools, which change nothing > allow rules > mode >
// ask.
func (p *Policy) Judge(c Call, in Situation) Ruling {
	p.locate(&c, in.Session.CWD)
	if len(in.Turn.Tools) > 0 && !c.isAmong(in.Turn.Tools) {
		return Ruling{false, "rule=tools", "the session may use these tools alone: " + strings.Join(in.Turn.Tools, ", ")}
	}
	if rule := p.matchRules(config.EffectDeny, c, in); rule != nil {
		return Ruling{false, rule.reason, rule.explanation}
	}
	s := in.Session.Settings
	bypass := s.SkipPermissions && (s.SkipPermissionsUntil == nil || in.Now.Before(*s.SkipPermissionsUntil))
	mode := in.mode()
	if bypass || mode == catalog.ModeBypass {
		return Ruling{true, "mode=" + catalog.ModeBypass, "the session allows every tool call without asking"}
	}
	if strings.HasPrefix(c.tool, "mcp__"+catalog.EditorServer+"__") {
		return Ruling{true, "rule=editor", "the tools of the editor change nothing"}
	}
	if !c.IsAmbiguous() && !p.couldBeDenied(c, in) {
		if rule := p.matchRules(config.EffectAllow, c, in); rule != nil {
			return Ruling{true, rule.reason, rule.explanation}
		}
	}
	switch {
	case !c.IsAmbiguous() && (mode == catalog.ModeAcceptEdits || s.AutoAcceptEdits) && c.edits():
		return Ruling{true, "mode=" + catalog.ModeAcceptEdits, "the session accepts edits without being asked"}
	case mode == catalog.ModePlan && c.changesSomething():
		return Ruling{false, "mode=" + catalog.ModePlan, "the session is in plan mode, in which nothing is changed or run"}
	}
	return Ruling{}
}

// Holds reports whether rules of an effect decide a call.
func (p *Policy) Holds(c Call, effect string, rules []domain.Rule, in domain.Session) bool {
	p.locate(&c, in.CWD)
	var conditions []condition
	for _, r := range rules {
		if of, ok := c.decided(r); ok {
			conditions = append(conditions, of)
		}
	}
	return c.firstMet(effect, conditions) != nil
}

// locate resolves the names of the files and directories of a call in a session that works in
// cwd.
func (p *Policy) locate(c *Call, cwd string) {
	in := p.directoriesOf(cwd)
	c.files, c.alternatives.files = filesOf(p.root, in.Worktree, cwd, c.paths), filesOf(p.root, in.Worktree, cwd, c.alternatives.paths)
	c.inside = insideOf(cmp.Or(in.Worktree, p.root), cwd)
}

// directoriesOf returns where the files of a session with directory cwd are.
func (p *Policy) directoriesOf(cwd string) Directories {
	in := Directories{Root: p.root, CWD: cwd}
	if p.Worktree != nil {
		in.Worktree = p.Worktree(cwd)
	}
	return in
}

// DirectoriesOf returns where the files of a session with directory cwd are.
func (in *Inbox) DirectoriesOf(cwd string) Directories { return in.policy.directoriesOf(cwd) }

// couldBeDenied reports whether an unknown tool could be one that a rule denies. Then no rule for
// all tools allows it, and a person is asked.
func (p *Policy) couldBeDenied(c Call, in Situation) bool {
	if !c.couldBeAny() {
		return false
	}
	c.asAnyTool = true
	return p.matchRules(config.EffectDeny, c, in) != nil
}

// matchRules returns the first matching rule of an effect, or nil.
func (p *Policy) matchRules(effect string, c Call, in Situation) *condition {
	listed := in.Session.Settings.DisallowedTools
	if effect == config.EffectAllow {
		listed = in.Session.Settings.AllowedTools
	}
	conditions := c.listedConditions(effect, listed)
	for _, r := range in.Rules {
		if r.Effect == effect {
			if of, ok := c.decided(r); ok {
				conditions = append(conditions, of)
			}
		}
	}
	isRestricted := in.Turn.Restricted
	for _, r := range p.rules() {
		if isRestricted && r.Effect == config.EffectAllow && r.Source == config.SourceProject {
			continue
		}
		if r.Effect == effect && (r.Agent == "" || r.Agent == in.Session.Agent) {
			if of, ok := c.configured(r); ok {
				conditions = append(conditions, of)
			}
		}
	}
	return c.firstMet(effect, conditions)
}

// mode returns the permission mode that judges a call (docs/protocol.md, "Modes"). It is the mode
// that the agent reports, within what people requested. An agent that leaves plan mode with
// permission may change files, and one that enters it may not. But only people can allow edits, or
// all tools, to run unasked. A mode of Duet that the agent does not have applies in every mode of
// the agent.
func (in Situation) mode() string {
	asked, is := catalog.ModeName(in.Turn.Mode), catalog.ModeName(in.Turn.AgentMode)
	switch {
	case is == "" || is == asked || is == catalog.ModePlan:
		return cmp.Or(is, asked)
	case !slices.ContainsFunc(in.AgentModes, func(id string) bool { return catalog.ModeName(id) == asked }):
		return asked
	case asked == catalog.ModeBypass && is == catalog.ModeAcceptEdits:
		return is
	}
	return catalog.ModeDefault
}
