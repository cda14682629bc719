package catalog

import "slices"

// OtherTool is the name of a tool of which neither a name nor a kind is known.
const OtherTool = "other"

// toolsOfKinds are the names of tools by their kind in the Agent Client
// Protocol. A tool of which no more is known than its kind goes by the first.
var toolsOfKinds = map[string][]string{
	"read":        {"Read", "NotebookRead", "LS"},
	"edit":        {"Edit", "Write", "MultiEdit", "NotebookEdit"},
	"delete":      {"Delete"},
	"move":        {"Move"},
	"search":      {"Grep", "Glob", "LS"},
	"execute":     {"Bash"},
	"think":       {"Think", "Task", "TodoWrite"},
	"fetch":       {"WebFetch", "WebSearch"},
	"switch_mode": {"ExitPlanMode"},
}

// ToolsOfKind are the names under which tools of a kind are known to rules and
// to people; none for other, or what is no kind of the Agent Client Protocol.
func ToolsOfKind(kind string) []string { return slices.Clone(toolsOfKinds[kind]) }

// ToolOfKind is the name of a tool of which no more is known than its kind.
func ToolOfKind(kind string) string {
	if names := toolsOfKinds[kind]; len(names) > 0 {
		return names[0]
	}
	return OtherTool
}
