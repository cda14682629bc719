package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// A question is a tool call as the policy sees it.
type question struct {
	tool    string
	byKind  bool   // the agent has not named the tool: tool is made of its kind
	kind    string // of ACP: edit, execute, ...; "" if it is not known
	command string // tool_input.command, or ""
	paths   []string
	hash    string // of tool and input
	files   []file // paths, by all their names

	// What else it may run and touch, by who reads its input otherwise: that is
	// for deny rules alone.
	others     others
	unclear    string // why programs may read the input differently; see toolinput.Input
	oddCommand bool   // it runs what is not one text
	oddFile    bool   // it touches what is not one text
	input      json.RawMessage

	suspected bool // it counts as each tool that it could be; see couldBeDenied
}

type others struct {
	commands, paths []string
	files           []file
}

func questionOf(a domain.Approval) question {
	in := toolinput.Read(a.Input)
	q := question{
		tool: a.Tool, byKind: a.NameByKind, kind: a.ToolKind, paths: a.Paths, hash: a.Question, input: a.Input,
		command: in.Command(), unclear: in.Ambiguity, oddCommand: in.OddCommand, oddFile: in.OddFile,
	}
	if in.OddCommand || in.Ambiguity != "" {
		q.others.commands = in.Commands
	}
	if in.OddFile {
		q.others.paths = in.Files
		return q
	}
	for _, path := range in.Files {
		if path != "" && !slices.Contains(q.paths, path) {
			q.paths = append(slices.Clone(q.paths), path)
		}
	}
	return q
}

// isUnclear reports whether the input can be read in more than one way. Then
// no rule allows it, whatever the rule says: it is asked, or denied.
func (q question) isUnclear() bool { return q.unclear != "" }

// isTool reports whether a rule for tools is for the tool of a question. One
// of which no more is known than its kind may be any tool of that kind, so a
// deny rule for each of those is for it. Of one that could be any tool at all
// that can be said only if the rule is narrow, which means that it looks at
// the command or the files too.
func (q question) isTool(effect string, narrow bool, fits func(name string) bool) bool {
	if fits(q.tool) {
		return true
	}
	if effect == config.EffectAllow || !q.byKind {
		return false
	}
	return q.couldBeAny() && (narrow || q.suspected) || slices.ContainsFunc(catalog.ToolsOfKind(q.kind), fits)
}

// couldBeAny reports whether nothing is known of the tool.
func (q question) couldBeAny() bool { return q.byKind && len(catalog.ToolsOfKind(q.kind)) == 0 }

// couldBeDenied reports whether a tool of which nothing is known could be one
// that a rule denies. Then no rule for all tools allows it: it is asked.
func (h *Hub) couldBeDenied(q question, thread domain.Thread, run domain.Run, rules []domain.Rule) bool {
	if !q.couldBeAny() {
		return false
	}
	q.suspected = true
	return h.matchRules(config.EffectDeny, q, thread, run, rules) != ""
}

// isInput reports whether the command of a standing rule means the input of a
// question.
func (q question) isInput(effect, command string) bool {
	return command == sameInput+q.hash || effect == config.EffectDeny &&
		(command == sameInput+questionHash(q.tool, q.input) || command == sameInput+formerHash(q.tool, q.input))
}

// sameInput begins the command of a rule for a tool that runs something, but
// does not say what in a member of its own: it holds for this input alone.
const sameInput = "\x00"

// remembered are the rules that a decision becomes: the tool, and where it runs
// commands, this one alone; where it can be read in several ways, each of them.
func remembered(a domain.Approval, thread int64, effect string) []domain.Rule {
	q := questionOf(a)
	rule := domain.Rule{Thread: thread, Effect: effect, Tool: q.tool, Command: q.command}
	if q.command == "" && (q.kind == "execute" || q.oddCommand) || q.isUnclear() {
		rule.Command = sameInput + a.Question
	}
	rules := []domain.Rule{rule}
	if q.isUnclear() {
		for _, command := range q.others.commands {
			if command != "" {
				rule.Command = command
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// unsaid are diffs as far as they say what the input of their tool does not. A
// text that the input has, too, is written whatever the file held before: that
// may have changed when the question is asked again, for another conversation
// wrote to the file meanwhile.
func unsaid(diffs []FileDiff, input json.RawMessage) []FileDiff {
	said := map[string]bool{}
	for decoder := json.NewDecoder(bytes.NewReader(input)); ; {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		if text, ok := token.(string); ok && text != "" {
			said[text] = true
		}
	}
	list := slices.Clone(diffs)
	for i := range list {
		if said[list[i].NewText] {
			list[i].OldText, list[i].NewText = nil, ""
		}
	}
	return list
}

// questionHash knows a question again: the same tool with the same input.
func questionHash(tool string, input json.RawMessage) string {
	hash := sha256.New()
	hash.Write([]byte(tool + "\x00" + toolinput.Print(input)))
	return hex.EncodeToString(hash.Sum(nil))
}

// saysNothing reports whether an input has nothing by which two calls of a tool
// could be told apart.
func saysNothing(input json.RawMessage) bool {
	return len(input) == 0 || toolinput.Same(input, []byte("{}")) || toolinput.Same(input, []byte("null"))
}

// formerHash is the questionHash of former versions, by which standing rules
// may still name an input. Several inputs can have one, so it is for what is
// denied alone.
func formerHash(tool string, input json.RawMessage) string {
	var value any
	canonical := []byte(input)
	if json.Unmarshal(input, &value) == nil {
		canonical = encode(value)
	}
	hash := sha256.New()
	hash.Write([]byte(tool + "\x00"))
	hash.Write(canonical)
	return hex.EncodeToString(hash.Sum(nil))
}

// Presented is the title of a question as people are to be shown it, and why
// programs may read the tool's input differently, "" if they do not. The title
// says so too: each client shows it, and perhaps but one way to read the input.
func Presented(a domain.Approval) (ambiguity, title string) {
	if a.Type != domain.FunctionCall {
		return "", a.Title
	}
	if ambiguity = toolinput.Read(a.Input).Ambiguity; ambiguity == "" {
		return "", a.Title
	}
	return ambiguity, "[programs may read this input differently: " + ambiguity + "] " + firstOf(a.Title, a.Tool)
}
