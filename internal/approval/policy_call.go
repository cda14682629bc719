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

// Ambiguity says why programs may read the input differently; "" if they do not.
func (c Call) Ambiguity() string { return c.ambiguity }

// IsAmbiguous reports whether the input has several readings. Then no rule allows the call: a
// person is asked, or it is denied.
func (c Call) IsAmbiguous() bool { return c.ambiguity != "" }

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
