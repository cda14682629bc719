package hub

import (
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A question is a tool call as the policy sees it.
type question struct {
	tool    string
	kind    string // of ACP: edit, execute, ...; "" if it is not known
	command string // tool_input.command, or ""
	paths   []string
	hash    string // of tool and input
}

func questionOf(a Approval) question {
	var input struct {
		Command  json.RawMessage `json:"command"`
		FilePath string          `json:"file_path"`
	}
	_ = json.Unmarshal(a.Input, &input) // what has no such members has none
	q := question{tool: a.Tool, kind: a.ToolKind, paths: a.Paths, hash: a.Question}
	if len(input.Command) > 0 {
		q.command = textOf(input.Command)
	}
	if input.FilePath != "" && !slices.Contains(q.paths, input.FilePath) {
		q.paths = append(slices.Clone(q.paths), input.FilePath)
	}
	return q
}

// A ruling is what the policy says without asking: nothing, if reason is "".
type ruling struct {
	approved bool
	reason   string
}

// rule applies the policy in its order (DESIGN section 5, "Approvals"):
// bypass, until it expires > deny rules > allow rules > mode > ask.
func (h *Hub) rule(q question, thread Thread, run Run, rules []store.Rule, now time.Time) ruling {
	s := thread.Settings
	bypass := s.SkipPermissions && (s.SkipPermissionsUntil == nil || now.Before(*s.SkipPermissionsUntil))
	if bypass || run.Mode == catalog.ModeBypass {
		return ruling{true, "mode=" + catalog.ModeBypass}
	}
	if len(run.Tools) > 0 && !slices.ContainsFunc(run.Tools, func(p string) bool { return matchesTool(p, q) }) {
		return ruling{false, "rule=tools"}
	}
	for _, effect := range []string{config.EffectDeny, config.EffectAllow} {
		if reason := h.matchRules(effect, q, thread, run, rules); reason != "" {
			return ruling{effect == config.EffectAllow, reason}
		}
	}
	switch {
	case (run.Mode == catalog.ModeAcceptEdits || s.AutoAcceptEdits) && q.edits():
		return ruling{true, "mode=" + catalog.ModeAcceptEdits}
	case run.Mode == catalog.ModePlan && q.mutates():
		return ruling{false, "mode=" + catalog.ModePlan}
	}
	return ruling{}
}

// matchRules names the first rule of an effect that fits, or returns "".
func (h *Hub) matchRules(effect string, q question, thread Thread, run Run, rules []store.Rule) string {
	listed := thread.Settings.DisallowedTools
	if effect == config.EffectAllow {
		listed = thread.Settings.AllowedTools
	}
	for _, pattern := range listed {
		if matchesTool(pattern, q) || effect == config.EffectDeny && hidesTool(pattern, q) {
			return "rule=" + pattern
		}
	}
	for _, r := range rules {
		if r.Effect == effect && r.Tool == q.tool && (r.Command == "" || r.Command == q.command || r.Command == sameInput+q.hash) {
			scope := "project"
			if r.Thread != 0 {
				scope = "session"
			}
			return "rule=" + scope
		}
	}
	restricted := wasRestricted(run)
	for _, r := range h.opts.Rules {
		if restricted && r.Effect == config.EffectAllow && r.Source == config.SourceProject {
			continue
		}
		if r.Effect == effect && (r.Agent == "" || r.Agent == thread.Agent) && matches(r.Tool, q.tool) &&
			(r.Command == "" || matches(r.Command, q.command)) && (r.Path == "" || h.matchesPaths(effect, r.Path, thread.CWD, q.paths)) {
			return "rule=" + r.Source
		}
	}
	return ""
}

// matchesPaths reports whether the files of a question fit a pattern: for a
// deny rule one of them, for an allow rule all. Relative ones are cwd's.
func (h *Hub) matchesPaths(effect, pattern, cwd string, paths []string) bool {
	fits := func(p string) bool {
		if !filepath.IsAbs(p) {
			p = filepath.Join(cwd, p)
		}
		p = filepath.Clean(p) // src/../../etc is not below src
		if rel, err := filepath.Rel(h.opts.Root, p); err == nil && filepath.IsLocal(rel) && matches(pattern, filepath.ToSlash(rel)) {
			return true
		}
		return matches(pattern, filepath.ToSlash(p))
	}
	if effect == config.EffectDeny {
		return slices.ContainsFunc(paths, fits)
	}
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return !fits(p) })
}

// matches reports whether text fits a glob; "" fits everything. Unlike a
// path's, * also stands for slashes: rm -rf * must fit what it says.
func matches(glob, text string) bool {
	if glob == "" || glob == "*" {
		return true
	}
	const slash = "\x00"
	ok, err := path.Match(strings.ReplaceAll(glob, "/", slash), strings.ReplaceAll(text, "/", slash))
	return ok && err == nil
}

// matchesTool reports whether a question fits a tool of a list, spelled as
// agents' own lists are: Bash, Bash(git:*), Bash(make test), mcp__x__*.
func matchesTool(pattern string, q question) bool {
	name, inner, has := strings.Cut(pattern, "(")
	if !matches(strings.TrimSpace(name), q.tool) || name == "" {
		return false
	}
	inner = strings.TrimSuffix(inner, ")")
	if !has || inner == "" || inner == "*" {
		return true
	}
	if prefix, ok := strings.CutSuffix(inner, ":*"); ok {
		return q.command == prefix || strings.HasPrefix(q.command, prefix+" ") && !chains(q.command)
	}
	return q.command == inner || slices.Contains(q.paths, inner)
}

// hidesTool reports whether a chained command has a part that fits the pattern
// of a deny rule: what may not run may not run behind something else either.
func hidesTool(pattern string, q question) bool {
	if !chains(q.command) {
		return false
	}
	for part := range strings.FieldsFuncSeq(q.command, func(r rune) bool { return strings.ContainsRune(chaining, r) }) {
		q.command = strings.TrimSpace(part)
		if matchesTool(pattern, q) {
			return true
		}
	}
	return false
}

// chaining are the characters that join shell commands.
const chaining = ";&|`$<>\n()"

// chains reports whether a shell command holds more than one, so that its
// beginning says nothing of the rest.
func chains(command string) bool { return strings.ContainsAny(command, chaining) }

func (q question) edits() bool {
	switch q.tool {
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		return true
	}
	return q.kind == "edit"
}

func (q question) mutates() bool {
	switch q.kind {
	case "delete", "move", "execute":
		return true
	}
	return q.edits() || q.tool == "Bash"
}

// remembered is the rule that a decision becomes: the tool, and where it runs
// commands, this one alone.
func remembered(a Approval, thread int64, effect string) store.Rule {
	q := questionOf(a)
	rule := store.Rule{Thread: thread, Effect: effect, Tool: q.tool, Command: q.command}
	if q.kind == "execute" && q.command == "" {
		rule.Command = sameInput + a.Question
	}
	return rule
}

// sameInput begins the command of a rule for a tool that runs something, but
// does not say what in a member of its own: it holds for this input alone.
const sameInput = "\x00"
