package approval

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// A Call is a tool call as the policy sees it.
type Call struct {
	tool       string
	toolByKind bool            // the agent has not named the tool: tool is made of its kind
	kind       string          // as the Agent Client Protocol has it: edit, execute, ...; "": not known
	input      json.RawMessage // what the tool gets
	hash       string          // by which the question is known again
	isPlan     bool            // it leaves the agent's plan mode

	command        shellcommand.Command   // what it runs, where that is a text, or words
	commandText    string                 // as a rule for it alone says it; "" where none can
	commandNotText bool                   // it runs something that is neither
	extended       bool                   // it wants leave for more than to run that
	readings       []shellcommand.Command // what it may run instead of command: each counts as that does
	dir            string                 // in which it runs that; "": the session's
	inside         func(dir string) bool  // reports whether rules for commands are meant to hold there; Judge sets it
	paths          []string               // what it touches
	pathNotText    bool                   // it touches something that is not simply one text
	files          []file                 // paths, by all their names; Judge sets it

	// ambiguity is why programs may read the input differently, "" if they do not.
	ambiguity string
	// alternatives are what else it may run and touch, if a program reads an
	// ambiguous input in another way. Only deny rules look at them.
	alternatives struct {
		commands []shellcommand.Command
		texts    []string // of commands
		paths    []string
		files    []file
	}

	// unknown says that Duet cannot see what the call would do: an agent asks with an empty
	// input, or names a tool that runs or edits and does not say what. No allow rule holds
	// for such a call, and each deny rule of its tool does.
	unknown bool

	asAnyTool bool // it counts as each tool that it could be; see couldBeDenied
}

// callOf is the tool call that an approval is about.
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

// saysNothing reports whether neither the input nor the files of a call say what it does. An
// MCP tool may have no arguments: its agent then sends {} and not nothing at all.
func (c Call) saysNothing() bool {
	switch {
	case c.isPlan || len(c.paths) > 0 || c.commandNotText || c.ambiguity != "" || !c.command.IsNothing() || len(c.readings) > 0:
		return false
	case toolinput.IsEmpty(c.input):
		return len(c.input) == 0 || !strings.HasPrefix(c.tool, "mcp__")
	}
	return c.tool == "Bash" || c.edits()
}

// IsUnknown reports whether Duet cannot see what the call would do. No rule for good can be
// made of it.
func (c Call) IsUnknown() bool { return c.unknown }

// readCommand reads what a call runs.
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
	members, _ := toolinput.Members(input) // it is an object: it has a command
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

// allowedBy reports whether rules for commands with these patterns allow what a
// call runs.
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

// couldRun reports whether what a call runs, or a part of it, could be what a
// deny rule says, in any of the ways in which it can be read.
func (c Call) couldRun(p shellcommand.Pattern) bool {
	could := func(command shellcommand.Command) bool { return command.CouldRun(p) }
	return could(c.command) || slices.ContainsFunc(c.readings, could) || slices.ContainsFunc(c.alternatives.commands, could)
}

// Ambiguity is why programs may read the input differently, "" if they do not.
func (c Call) Ambiguity() string { return c.ambiguity }

// IsAmbiguous reports whether the input can be read in more than one way. Then
// no rule allows it, whatever the rule says: it is asked, or denied.
func (c Call) IsAmbiguous() bool { return c.ambiguity != "" }

// isTool reports whether a rule for tools is for the tool of a call. One
// of which no more is known than its kind may be any tool of that kind, so a
// deny rule for each of those is for it. Of one that could be any tool at all
// that can be said only if the rule is narrow, which means that it looks at
// the command or the files too.
func (c Call) isTool(effect string, narrow bool, fits func(name string) bool) bool {
	if fits(c.tool) {
		return true
	}
	if effect == config.EffectAllow || !c.toolByKind {
		return false
	}
	return c.couldBeAny() && (narrow || c.asAnyTool) || slices.ContainsFunc(catalog.ToolsOfKind(c.kind), fits)
}

// couldBeAny reports whether nothing is known of the tool.
func (c Call) couldBeAny() bool { return c.toolByKind && len(catalog.ToolsOfKind(c.kind)) == 0 }

// edits reports whether a call changes files, as far as acceptEdits goes.
func (c Call) edits() bool {
	switch c.tool {
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		return true
	}
	return c.kind == "edit"
}

// touchesFiles reports whether what a call does is done to the files that it
// names, so that a rule for it is for those.
func (c Call) touchesFiles() bool {
	switch c.kind {
	case "read", "delete", "move":
		return true
	}
	return c.edits()
}

// changesSomething reports whether a call does more than to look, so that plan
// mode denies it.
func (c Call) changesSomething() bool {
	switch c.kind {
	case "delete", "move", "execute":
		return true
	}
	return c.edits() || c.tool == "Bash"
}

// ofAsking are the members in which an agent says when and why it asks, beside
// what is to be done. They are codex's, whose inputs are the events in which it
// asks; other tools may mean something else by these names.
var ofAsking = []string{"call_id", "turn_id", "approval_id", "started_at_ms", "process_id", "reason", "parsed_cmd"}

// callIdentity is the input of a tool call without what differs when the same is asked
// again: what says when and why it is asked, and how a command is spaced. call
// is the agent's own id of the call, by which its inputs of that sort are known.
// It is for telling questions apart, not for running.
func callIdentity(input json.RawMessage, call string) json.RawMessage {
	in := toolinput.Read(input)
	members, err := toolinput.Members(input)
	if err != nil || in.Ambiguity != "" {
		return input
	}
	changed := false
	set := func(value any) {
		if raw, err := json.Marshal(value); err == nil {
			members["command"], changed = raw, true
		}
	}
	var said string
	if call != "" && toolinput.Take(members, "call_id", &said) == nil && said == call {
		for _, name := range ofAsking {
			delete(members, name)
		}
		changed = true
	}
	if in.Words != nil {
		if words := shellcommand.CanonicalWords(in.Words); !slices.Equal(words, in.Words) {
			set(words)
		}
	} else if command := in.Command(); command != "" {
		if canonical := shellcommand.Canonical(command); canonical != command {
			set(canonical)
		}
	}
	if !changed {
		return input
	}
	identity, err := json.Marshal(members)
	if err != nil {
		return input
	}
	return identity
}
