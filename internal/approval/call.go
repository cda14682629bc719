package approval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// This file says what a tool call is for the policy, and which rules match its tool, its command
// and its files.

// Call is a tool call as the policy sees it.
type Call struct {
	tool       string
	toolByKind bool            // the agent named no tool: tool is derived from kind
	kind       string          // in the Agent Client Protocol: edit, execute, ...; "": unknown
	input      json.RawMessage // the tool's input
	hash       string          // identifies the question when it is asked again
	isPlan     bool            // leaves the agent's plan mode

	command        shellcommand.Command   // the command, if the input has a text or words
	commandText    string                 // spelling of the command in a rule for it alone; "" if none can be made
	commandNotText bool                   // the input has a command that is neither text nor words
	extended       bool                   // requests more permissions than to run the command
	readings       []shellcommand.Command // other readings of command; each must be allowed too
	dir            string                 // working directory of the command; "": the session's
	inside         func(dir string) bool  // reports whether command rules apply in a directory; set by Judge
	paths          []string               // touched paths
	pathNotText    bool                   // the input has a path that is not one text
	files          []file                 // paths under all their names; set by Judge

	// ambiguity says why programs may read the input differently; "" if they do not.
	ambiguity string
	// alternatives are other commands and paths that a program may read in an ambiguous input. Only
	// deny rules use them.
	alternatives struct {
		commands []shellcommand.Command
		texts    []string // of commands
		paths    []string
		files    []file
	}

	// unknown says that Duet cannot see what the call would do: the agent sent an empty input, or
	// named a tool that runs or edits without saying what. No allow rule matches such a call, and
	// every deny rule of its tool does.
	unknown bool

	asAnyTool bool // counts as each tool that it could be; see couldBeDenied
}

// callOf returns the tool call of an approval.
func callOf(a domain.Approval) Call {
	in := toolinput.Read(a.Input)
	c := Call{
		tool: a.Tool, toolByKind: a.NameByKind, kind: a.ToolKind, input: a.Input, hash: a.Question, isPlan: a.IsPlan(), paths: a.Paths,
		commandText: in.Command(), commandNotText: in.CommandNotText, pathNotText: in.FileNotText, ambiguity: in.Ambiguity,
	}
	c.readCommand(in, a.Input)
	if in.FileNotText {
		c.alternatives.paths = in.Files
		return c
	}
	for _, path := range in.Files {
		if path != "" && !slices.Contains(c.paths, path) {
			c.paths = append(slices.Clone(c.paths), path)
		}
	}
	c.unknown = a.Type != domain.HumanContact && c.saysNothing()
	return c
}

// saysNothing reports whether neither the input nor the files show what the call does. For an MCP
// tool without arguments, agents send {}.
func (c Call) saysNothing() bool {
	switch {
	case c.isPlan || len(c.paths) > 0 || c.commandNotText || c.ambiguity != "" || !c.command.IsNothing() || len(c.readings) > 0:
		return false
	case toolinput.IsEmpty(c.input):
		return len(c.input) == 0 || !strings.HasPrefix(c.tool, "mcp__")
	}
	return c.tool == "Bash" || c.edits()
}

// IsUnknown reports whether Duet cannot see what the call would do. No lasting rule can be made of
// it.
func (c Call) IsUnknown() bool { return c.unknown }

// Ambiguity says why programs may read the input differently; "" if they do not.
func (c Call) Ambiguity() string { return c.ambiguity }

// IsAmbiguous reports whether the input has several readings. Then no rule allows the call: a
// person is asked, or it is denied.
func (c Call) IsAmbiguous() bool { return c.ambiguity != "" }

// readCommand reads the command of a call.
func (c *Call) readCommand(in toolinput.Input, input json.RawMessage) {
	switch {
	case in.Ambiguity != "" || in.CommandNotText && in.Words == nil:
		c.alternatives.texts = append(slices.Clip(in.Commands), in.Readings...)
		for _, text := range c.alternatives.texts {
			c.alternatives.commands = append(c.alternatives.commands, shellcommand.Read(text))
		}
		return
	case in.Words != nil:
		c.command, c.commandNotText = shellcommand.ReadWords(in.Words), false
		if script, ok := c.command.Script(); ok {
			c.commandText = script
		}
	default:
		c.command = shellcommand.Read(c.commandText)
	}
	for _, text := range in.Readings {
		c.readings, c.commandText = append(c.readings, shellcommand.Read(text)), ""
	}
	if c.command.IsNothing() && len(c.readings) == 0 {
		return
	}
	members, _ := toolinput.Members(input) // an object has a command
	for _, name := range []string{"cwd", "workdir"} {
		if toolinput.Take(members, name, &c.dir) != nil { // null is no error
			c.extended = true
		}
	}
	for _, name := range []string{"additional_permissions", "network_approval_context"} { // codex
		if value, there := members[name]; there && string(value) != "null" {
			c.extended = true
		}
	}
	if c.extended {
		c.commandText = ""
	}
}

// isTool reports whether a tool rule matches the call's tool. If only the kind is known, the tool
// may be any of that kind, so a deny rule for each of those matches. A completely unknown tool
// matches only a narrow rule, which also checks the command or the files.
func (c Call) isTool(effect string, narrow bool, fits func(name string) bool) bool {
	if fits(c.tool) {
		return true
	}
	if effect == config.EffectAllow || !c.toolByKind {
		return false
	}
	return c.couldBeAny() && (narrow || c.asAnyTool) || slices.ContainsFunc(catalog.ToolsOfKind(c.kind), fits)
}

// couldBeAny reports whether the tool is completely unknown.
func (c Call) couldBeAny() bool { return c.toolByKind && len(catalog.ToolsOfKind(c.kind)) == 0 }

// edits reports whether acceptEdits covers the call.
func (c Call) edits() bool {
	switch c.tool {
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		return true
	}
	return c.kind == "edit"
}

// touchesFiles reports whether a call acts on the files that it names, so that a rule for it names
// those files.
func (c Call) touchesFiles() bool {
	switch c.kind {
	case "read", "delete", "move":
		return true
	}
	return c.edits()
}

// changesSomething reports whether a call does more than read, so that plan mode denies it.
func (c Call) changesSomething() bool {
	switch c.kind {
	case "delete", "move", "execute":
		return true
	}
	return c.edits() || c.tool == "Bash"
}

// isAmong reports whether a list of tools contains the call.
func (c Call) isAmong(tools []string) bool {
	c.unknown = false // a list with the whole tool contains every input of it
	return c.firstMet(config.EffectAllow, c.listedConditions(config.EffectAllow, tools)) != nil
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

// decided returns the condition of a rule made by a decision. ok is false if the rule is for other
// calls.
func (c Call) decided(r domain.Rule) (of condition, ok bool) {
	of.reason = "rule=" + r.Scope()
	of.explanation = explanationOf(r)
	if !c.isTool(r.Effect, r.Command != "" || r.Path != "", func(name string) bool { return name == r.Tool }) || c.isPlan && r.Effect == config.EffectAllow {
		return of, false
	}
	if c.unknown && !isForExactInput(r) {
		return of, r.Effect == config.EffectDeny
	}
	switch {
	case c.unknown && r.Effect == config.EffectAllow && toolinput.IsEmpty(c.input): // an empty input identifies no call
		return of, false
	case r.Command == "" || c.isInput(r.Effect, r.Command):
	case r.Pattern:
		command := shellcommand.Glob(r.Command)
		of.command = &command
	default:
		command := shellcommand.Exactly(r.Command)
		of.command = &command
	}
	return of, r.Path == "" || c.touches(r.Effect, func(name string) bool { return isInPath(r.Effect, r.Path, name) })
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

// allowedBy reports whether command rules with these patterns allow the call's command.
func (c Call) allowedBy(patterns ...shellcommand.Pattern) bool {
	if c.commandNotText || c.extended || c.dir != "" && (c.inside == nil || !c.inside(c.dir)) {
		return false
	}
	for _, reading := range c.readings {
		if !reading.AllowedBy(patterns, c.inside) {
			return false
		}
	}
	return c.command.AllowedBy(patterns, c.inside)
}

// couldRun reports whether the call's command, or a part of it, could match a deny rule in any
// reading.
func (c Call) couldRun(p shellcommand.Pattern) bool {
	could := func(command shellcommand.Command) bool { return command.CouldRun(p) }
	return could(c.command) || slices.ContainsFunc(c.readings, could) || slices.ContainsFunc(c.alternatives.commands, could)
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
// src/** also covers those below it, but does not allow to change the files of git, which may run
// programs.
func isInPath(effect, pattern, name string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	above, all := strings.CutSuffix(pattern, "/**")
	if !all {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	above = cmp.Or(above, "/") // of /**
	for dir := path.Dir(name); ; {
		if ok, err := path.Match(above, dir); ok && err == nil {
			return effect == config.EffectDeny || !isInGit(strings.TrimPrefix(name, strings.TrimSuffix(dir, ".")))
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

// isInGit reports whether a part of a path is named .git.
func isInGit(name string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(name), "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// file is a file that a call touches, by every name that rules may use: the called names, and the
// targets of their links. denied are further names, for deny rules alone.
type file struct{ called, target, denied []string }

// filesOf resolves the names of paths in a project with a root. Relative paths are in cwd. worktree
// is the project's directory in the git worktree of the session, or "". Its files have the
// names of the project's files then. The project's own files have names for deny rules alone.
func filesOf(root, worktree, cwd string, paths []string) []file {
	if len(paths) == 0 {
		return nil
	}
	base := cmp.Or(worktree, root)
	target := followLinks(base)
	list := make([]file, 0, len(paths))
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			p = cwd + string(filepath.Separator) + p // not joined: link/.. may be another directory
		}
		called, links := filepath.Clean(p), followLinks(p) // src/../../etc is not below src
		f := file{called: namesOf(root, base, called), target: namesOf(root, target, links)}
		if worktree != "" {
			f.denied = append(namesOf(root, root, called), namesOf(root, followLinks(root), links)...)
			if isBelow(root, called) && !isBelow(base, called) {
				f.called = nil
			}
			if isBelow(followLinks(root), links) && !isBelow(target, links) {
				f.target = nil
			}
		}
		list = append(list, f)
	}
	return list
}

// namesOf returns the names of a file: its path, and, if it is below base, the name relative to it,
// also under the root's own spelling. base is the project's root, its directory in a worktree, or the
// link target of one of them.
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
			return called || target || slices.ContainsFunc(f.denied, fits)
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
