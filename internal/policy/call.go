package policy

import (
	"encoding/json"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// A Call is a tool call as the policy sees it.
type Call struct {
	tool       string
	toolByKind bool            // the agent has not named the tool: tool is made of its kind
	kind       string          // as the Agent Client Protocol has it: edit, execute, ...; "": not known
	input      json.RawMessage // what the tool gets
	hash       string          // by which the question is known again

	command        string   // what it runs, where that is one text
	commandNotText bool     // it runs something that is not simply one text
	paths          []string // what it touches
	pathNotText    bool     // it touches something that is not simply one text
	files          []file   // paths, by all their names; Judge sets it

	// ambiguity is why programs may read the input differently, "" if they do not.
	ambiguity string
	// alternatives are what else it may run and touch, if a program reads an
	// ambiguous input in another way. Only deny rules look at them.
	alternatives struct {
		commands, paths []string
		files           []file
	}

	asAnyTool bool // it counts as each tool that it could be; see couldBeDenied
}

// CallOf is the tool call that an approval is about.
func CallOf(a domain.Approval) Call {
	in := toolinput.Read(a.Input)
	c := Call{
		tool: a.Tool, toolByKind: a.NameByKind, kind: a.ToolKind, input: a.Input, hash: a.Question, paths: a.Paths,
		command: in.Command(), commandNotText: in.CommandNotText, pathNotText: in.FileNotText, ambiguity: in.Ambiguity,
	}
	if in.CommandNotText || in.Ambiguity != "" {
		c.alternatives.commands = in.Commands
	}
	if in.FileNotText {
		c.alternatives.paths = in.Files
		return c
	}
	for _, path := range in.Files {
		if path != "" && !slices.Contains(c.paths, path) {
			c.paths = append(slices.Clone(c.paths), path)
		}
	}
	return c
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

// changesSomething reports whether a call does more than to look, so that plan
// mode denies it.
func (c Call) changesSomething() bool {
	switch c.kind {
	case "delete", "move", "execute":
		return true
	}
	return c.edits() || c.tool == "Bash"
}
