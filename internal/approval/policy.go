package approval

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
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
	root  string
	rules func() []config.Rule
}

// NewPolicy returns the policy of a project; root is an absolute path. rules, if not nil, returns
// the currently configured rules. Each call of the policy calls it, from any goroutine.
func NewPolicy(root string, rules func() []config.Rule) *Policy {
	if rules == nil {
		rules = func() []config.Rule { return nil }
	}
	return &Policy{root, rules}
}

// Situation is the context in which a call is judged.
type Situation struct {
	Thread domain.Thread // the conversation, with its settings
	Run    domain.Run    // whose agent calls the tool
	Rules  []domain.Rule // people's decisions for the conversation and the project
	Now    time.Time

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

// Judge applies the policy in order (docs/protocol.md, "Questions"): deny rules and the run's tool
// list > bypass, until it expires > allow rules > mode > ask.
func (p *Policy) Judge(c Call, in Situation) Ruling {
	c.files, c.alternatives.files = filesOf(p.root, in.Thread.CWD, c.paths), filesOf(p.root, in.Thread.CWD, c.alternatives.paths)
	c.inside = insideOf(p.root, in.Thread.CWD)
	if len(in.Run.Tools) > 0 && !c.isAmong(in.Run.Tools) {
		return Ruling{false, "rule=tools", "the session may use these tools alone: " + strings.Join(in.Run.Tools, ", ")}
	}
	if rule := p.matchRules(config.EffectDeny, c, in); rule != nil {
		return Ruling{false, rule.reason, rule.explanation}
	}
	s := in.Thread.Settings
	bypass := s.SkipPermissions && (s.SkipPermissionsUntil == nil || in.Now.Before(*s.SkipPermissionsUntil))
	mode := in.mode()
	if bypass || mode == catalog.ModeBypass {
		return Ruling{true, "mode=" + catalog.ModeBypass, "the session allows every tool call without asking"}
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

// isAmong reports whether a list of tools contains the call.
func (c Call) isAmong(tools []string) bool {
	c.unknown = false // a list with the whole tool contains every input of it
	return c.firstMet(config.EffectAllow, c.listedConditions(config.EffectAllow, tools)) != nil
}

// Holds reports whether rules of an effect decide a call.
func (p *Policy) Holds(c Call, effect string, rules []domain.Rule, in domain.Thread) bool {
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

func (c Call) listedConditions(effect string, list []string) (conditions []condition) {
	for _, pattern := range list {
		if of, ok := c.listed(effect, pattern); ok {
			of.explanation = fmt.Sprintf("the session's list of tools to %s has %s", effect, pattern)
			conditions = append(conditions, of)
		}
	}
	return conditions
}

// decided returns the condition of a rule made by a decision. ok is false if the rule is for other
// calls.
func (c Call) decided(r domain.Rule) (of condition, ok bool) {
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
	case c.unknown && r.Effect == config.EffectAllow && toolinput.IsEmpty(c.input): // made by an earlier version
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

// configured returns the condition of a configured rule, for any agent. ok is false if the rule is
// for other calls.
func (c Call) configured(r config.Rule) (of condition, ok bool) {
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

// mode returns the permission mode that judges a call (docs/protocol.md, "Modes"). It is the mode
// that the agent reports, within what people requested. An agent that leaves plan mode with
// permission may change files, and one that enters it may not. But only people can allow edits, or
// all tools, to run unasked. A mode of Duet that the agent does not have applies in every mode of
// the agent.
func (in Situation) mode() string {
	asked, is := catalog.ModeName(in.Run.Mode), catalog.ModeName(in.Run.AgentMode)
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

// matches reports whether text matches a glob; "" matches everything. Unlike in paths, * also
// matches slashes: rm -rf * must match its arguments.
func matches(glob, text string) bool {
	if glob == "" || glob == "*" {
		return true
	}
	const slash = "\x00"
	ok, err := path.Match(strings.ReplaceAll(glob, "/", slash), strings.ReplaceAll(text, "/", slash))
	return ok && err == nil
}

// isInPath reports whether a file name matches the pattern of a rule made by a decision. Unlike in
// configured rules, * matches no slash: a directory's pattern covers only files directly in it.
// src/** also covers those below it.
func isInPath(pattern, name string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	above, all := strings.CutSuffix(pattern, "/**")
	if !all {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	for dir := path.Dir(name); ; {
		if ok, err := path.Match(above, dir); ok && err == nil {
			return true
		}
		switch slash := strings.LastIndexByte(dir, '/'); { // path.Dir would read the whole name again
		case dir == "." || dir == "/":
			return false
		case slash < 0:
			dir = "."
		default:
			dir = dir[:max(1, slash)]
		}
	}
}

// condition is what remains to check of a rule that otherwise matches a call.
type condition struct {
	command *shellcommand.Pattern // pattern of the command; nil: any command
	reason  string                // name of the rule in a ruling

	explanation string // the rule in words
}

// meets reports whether a call meets a condition on its own.
func (c Call) meets(effect string, of condition) bool {
	switch {
	case of.command == nil:
		return true
	case effect == config.EffectAllow:
		return c.allowedBy(*of.command)
	}
	return c.couldRun(*of.command)
}

// firstMet returns the first condition that a call meets, or nil. Different rules may allow the
// parts of a compound command; firstMet then returns the first one needed.
func (c Call) firstMet(effect string, conditions []condition) *condition {
	for i, of := range conditions {
		if c.meets(effect, of) {
			return &conditions[i]
		}
	}
	if effect != config.EffectAllow || len(conditions) < 2 {
		return nil
	}
	patterns := make([]shellcommand.Pattern, len(conditions))
	for i, of := range conditions {
		patterns[i] = *of.command
	}
	if !c.allowedBy(patterns...) {
		return nil
	}
	for i := range conditions {
		if !c.allowedBy(slices.Delete(slices.Clone(patterns), i, i+1)...) {
			return &conditions[i]
		}
	}
	return &conditions[0]
}

// listed returns the condition of a tool list entry in the agents' own syntax: Bash, Bash(git:*),
// Bash(make test), mcp__x__*. ok is false if the entry is for other calls.
func (c Call) listed(effect, pattern string) (of condition, ok bool) {
	of.reason = "rule=" + pattern
	name, inner, _ := strings.Cut(pattern, "(")
	inner = strings.TrimSuffix(inner, ")")
	whole := inner == "" || inner == "*"
	if name == "" || !c.isTool(effect, !whole, func(tool string) bool { return matches(strings.TrimSpace(name), tool) }) {
		return of, false
	}
	if effect == config.EffectAllow && (c.IsAmbiguous() || c.unknown) {
		return of, false
	}
	if whole || c.unknown || c.touches(effect, func(name string) bool { return name == inner }) {
		return of, true
	}
	command := shellcommand.Exactly(inner)
	if prefix, ok := strings.CutSuffix(inner, ":*"); ok {
		command = shellcommand.BeginsWith(prefix)
	}
	of.command = &command
	return of, true
}

// file is a file that a call touches, by every name that rules may use: the called names, and the
// targets of their links.
type file struct{ called, target []string }

// filesOf resolves the names of paths in a project with a root. Relative paths are in cwd.
func filesOf(root, cwd string, paths []string) []file {
	if len(paths) == 0 {
		return nil
	}
	target := followLinks(root)
	list := make([]file, 0, len(paths))
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			p = cwd + string(filepath.Separator) + p // not joined: link/.. may be another directory
		}
		list = append(list, file{
			called: namesOf(root, root, filepath.Clean(p)), // src/../../etc is not below src
			target: namesOf(root, target, followLinks(p)),
		})
	}
	return list
}

// namesOf returns the names of a file: its path, and, if it is below base, the name relative to it,
// also under the root's own spelling. base is the project's root or its link target.
func namesOf(root, base, p string) []string {
	names := []string{filepath.ToSlash(p)}
	if rel, err := filepath.Rel(base, p); err == nil && filepath.IsLocal(rel) {
		names = append(names, filepath.ToSlash(rel), filepath.ToSlash(filepath.Join(root, rel)))
	}
	return names
}

// insideOf returns a function that reports whether a directory is in the project or in the
// session's directory, both by its name and by its link target.
func insideOf(root, cwd string) func(dir string) bool {
	return func(dir string) bool {
		if !filepath.IsAbs(dir) {
			if cwd == "" {
				return false
			}
			dir = cwd + string(filepath.Separator) + dir
		}
		for _, base := range []string{root, cwd} {
			if base != "" && isBelow(base, filepath.Clean(dir)) && isBelow(followLinks(base), followLinks(dir)) {
				return true
			}
		}
		return false
	}
}

func isBelow(base, p string) bool {
	rel, err := filepath.Rel(base, p)
	return err == nil && filepath.IsLocal(rel)
}

// touches reports whether the files of a call match. A deny rule needs one file that matches by any
// name. An allow rule needs every file to match, by its called name and by its target.
func (c Call) touches(effect string, fits func(name string) bool) bool {
	fit := func(f file) bool {
		called, target := slices.ContainsFunc(f.called, fits), slices.ContainsFunc(f.target, fits)
		if effect == config.EffectDeny {
			return called || target
		}
		return called && target
	}
	if effect == config.EffectDeny {
		return slices.ContainsFunc(c.files, fit) || slices.ContainsFunc(c.alternatives.files, fit)
	}
	return !c.pathNotText && len(c.files) > 0 && !slices.ContainsFunc(c.files, func(f file) bool { return !fit(f) })
}

// maxLinks limits the links followed for one path, as in Linux.
const maxLinks = 40

// followLinks resolves the links of an absolute path as far as it exists, and keeps the rest.
func followLinks(p string) string {
	const slash = string(filepath.Separator)
	volume := filepath.VolumeName(p)
	at, left := volume+slash, strings.Split(filepath.FromSlash(p[len(volume):]), slash)
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(at, name) // .. of the link's target, not of the link
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&os.ModeSymlink == 0 || links == maxLinks {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		links++
		if filepath.IsAbs(target) {
			volume = filepath.VolumeName(target)
			at, target = volume+slash, target[len(volume):]
		}
		left = append(strings.Split(filepath.FromSlash(target), slash), left...)
	}
	return at
}
