package hub

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// A ruling is what the policy says without asking: nothing, if reason is "".
type ruling struct {
	approved bool
	reason   string
}

// rule applies the policy in its order (docs/protocol.md, "Questions"):
// bypass, until it expires > deny rules > allow rules > mode > ask.
func (h *Hub) rule(q question, thread domain.Thread, run domain.Run, rules []domain.Rule, now time.Time) ruling {
	s := thread.Settings
	bypass := s.SkipPermissions && (s.SkipPermissionsUntil == nil || now.Before(*s.SkipPermissionsUntil))
	if bypass || run.Mode == catalog.ModeBypass {
		return ruling{true, "mode=" + catalog.ModeBypass}
	}
	q.files, q.others.files = h.files(thread.CWD, q.paths), h.files(thread.CWD, q.others.paths)
	if len(run.Tools) > 0 && !slices.ContainsFunc(run.Tools, func(p string) bool { return q.fitsTool(config.EffectAllow, p) }) {
		return ruling{false, "rule=tools"}
	}
	if reason := h.matchRules(config.EffectDeny, q, thread, run, rules); reason != "" {
		return ruling{false, reason}
	}
	if !q.isUnclear() && !h.couldBeDenied(q, thread, run, rules) {
		if reason := h.matchRules(config.EffectAllow, q, thread, run, rules); reason != "" {
			return ruling{true, reason}
		}
	}
	switch {
	case !q.isUnclear() && (run.Mode == catalog.ModeAcceptEdits || s.AutoAcceptEdits) && q.edits():
		return ruling{true, "mode=" + catalog.ModeAcceptEdits}
	case run.Mode == catalog.ModePlan && q.mutates():
		return ruling{false, "mode=" + catalog.ModePlan}
	}
	return ruling{}
}

// matchRules names the first rule of an effect that fits, or returns "".
func (h *Hub) matchRules(effect string, q question, thread domain.Thread, run domain.Run, rules []domain.Rule) string {
	listed := thread.Settings.DisallowedTools
	if effect == config.EffectAllow {
		listed = thread.Settings.AllowedTools
	}
	for _, pattern := range listed {
		if q.fitsTool(effect, pattern) {
			return "rule=" + pattern
		}
	}
	for _, r := range rules {
		if r.Effect == effect && q.isTool(effect, r.Command != "", func(name string) bool { return name == r.Tool }) && (r.Command == "" ||
			q.isInput(effect, r.Command) || q.runs(effect, func(command string) bool { return command == r.Command })) {
			scope := "project"
			if r.Thread != 0 {
				scope = "session"
			}
			return "rule=" + scope
		}
	}
	restricted := wasRestricted(run)
	for _, r := range h.configuredRules() {
		if restricted && r.Effect == config.EffectAllow && r.Source == config.SourceProject {
			continue
		}
		if r.Effect == effect && (r.Agent == "" || r.Agent == thread.Agent) &&
			q.isTool(effect, r.Command != "" || r.Path != "", func(name string) bool { return matches(r.Tool, name) }) &&
			(r.Command == "" || q.runs(effect, func(command string) bool { return matchesCommand(effect, r.Command, command) })) &&
			(r.Path == "" || q.touches(effect, func(name string) bool { return matches(r.Path, name) })) {
			return "rule=" + r.Source
		}
	}
	return ""
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

// matchesCommand reports whether a command fits a glob. To be allowed, one
// that chains has to be what the rule says word for word.
func matchesCommand(effect, glob, command string) bool {
	return matches(glob, command) && (effect == config.EffectDeny || glob == "*" || glob == command || !chains(command))
}

// fitsTool reports whether a question fits a tool of a list, spelled as
// agents' own lists are: Bash, Bash(git:*), Bash(make test), mcp__x__*.
func (q question) fitsTool(effect, pattern string) bool {
	name, inner, _ := strings.Cut(pattern, "(")
	inner = strings.TrimSuffix(inner, ")")
	whole := inner == "" || inner == "*"
	if name == "" || !q.isTool(effect, !whole, func(tool string) bool { return matches(strings.TrimSpace(name), tool) }) {
		return false
	}
	if effect == config.EffectAllow && q.isUnclear() {
		return false
	}
	if whole {
		return true
	}
	if prefix, ok := strings.CutSuffix(inner, ":*"); ok {
		return q.runs(effect, func(command string) bool {
			return command == prefix || strings.HasPrefix(command, prefix+" ") && (effect == config.EffectDeny || !chains(command))
		})
	}
	return q.runs(effect, func(command string) bool { return command == inner }) ||
		q.touches(effect, func(name string) bool { return name == inner })
}

// runs reports whether what a question would run fits: for an allow rule all
// of it, for a deny rule any part, in any of the ways in which it can be read.
// What may not run may not run behind something else either.
func (q question) runs(effect string, fits func(command string) bool) bool {
	if effect == config.EffectAllow {
		return !q.oddCommand && fits(q.command)
	}
	return runsPart(q.command, mostShells, fits) || slices.ContainsFunc(q.others.commands, func(command string) bool { return runsPart(command, mostShells, fits) })
}

// mostShells is how many shells may stand behind each other in a command in
// which a part is looked for.
const mostShells = 8

// runsPart reports whether a command, or any that it runs, fits. Of those that
// shells are given so many deep are looked at.
func runsPart(command string, shells int, fits func(command string) bool) bool {
	if fits(command) || runsInShell(command, shells, fits) {
		return true
	}
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune(chaining, r) }) {
		for part = strings.TrimSpace(part); ; {
			if fits(part) || part != command && runsInShell(part, shells, fits) {
				return true
			}
			word, rest, _ := strings.Cut(part, " ")
			if !slices.Contains(leading, word) {
				break
			}
			part = strings.TrimSpace(rest)
		}
	}
	return false
}

func runsInShell(command string, shells int, fits func(command string) bool) bool {
	script, ok := inShell(command)
	return ok && shells > 0 && runsPart(script, shells-1, fits)
}

// inShell is what a shell is given to run, as in bash -lc 'make test': agents
// say so of each of their commands. The script is without the quotes around it.
func inShell(command string) (script string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(command), " ")
	if !slices.Contains(shellNames, path.Base(word)) {
		return "", false
	}
	for {
		word, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
		if !strings.HasPrefix(word, "-") {
			return "", false
		}
		if !strings.HasPrefix(word, "--") && strings.HasSuffix(word, "c") {
			return strings.Trim(strings.TrimSpace(rest), `'"`), true
		}
	}
}

var shellNames = []string{"sh", "bash", "dash", "ksh", "zsh", "fish"}

// leading are the words of a shell's own behind which a command may stand.
var leading = []string{"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"}

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
