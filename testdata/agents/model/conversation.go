package model

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A conversation is what an agent tells of one, whatever the API.
type conversation struct {
	stream bool
	tools  []string
	behind string // the parameter of the shell tool that has it run a command in the background; "": it has none
	images [][]byte
	aside  string // what to say if it is none with a person
	form   bool   // the answer is to be JSON of a given form, which no person wants
	plans  string // the file in which the agent wants a plan
	agents string // the namespace of Codex's tools for sub-agents
	tagged bool   // the agent takes a plan from the text, between tags (Codex)
	turns  []turn
}

// A turn is an instruction and what came of it.
type turn struct {
	verb, words string
	results     []result // of its tools
	searched    bool     // for a tool
	approved    bool     // its plan
}

type result struct {
	tool   string // its name, where the API tells it
	text   string
	failed bool
}

// verbs are what the model understands, at the start of a line:
//
//	run: COMMAND      it calls the agent's shell tool, and then tells what came back
//	background: COMMAND  the same, in the background; when the agent tells that it has ended, run: touch made
//	write: PATH       it writes a file of one line with the agent's tool for that
//	plan: PATH        it leaves plan mode with a plan, and when it may, writes that file
//	delegate: WORDS   it gives WORDS to a sub-agent
//	todo: WORDS       it notes that with the agent's tool for lists of things to do
//	editor: TOOL      it calls a tool of the user's editor
//	say: WORDS        it says the words
//	talk:             it talks until the client hangs up
//	hang:             it says nothing, until the client hangs up
//	cut:              it ends the connection
//	fail: STATUS [N]  it answers with an HTTP status; with N as often as that, and then it says "at last"
//	Continue …        it begins again with the prompt before
//	Implement the approved plan.  Codex says that when the user agrees to a plan
var verbs = regexp.MustCompile(`(?m)^(run|background|write|plan|delegate|todo|editor|say|talk|hang|cut|fail): ?(.*)$`)

// planFile is what an agent in plan mode says of the file in which it wants the
// plan, or of its directory.
var planFile = regexp.MustCompile("(?:at |in `)([^\\s`]+/plans/(?:[\\w-]+\\.md)?)")

// notice is how agents tell their model that a command in the background has ended.
var notice = regexp.MustCompile("<task-notification>|<notification |<system_notification>")

// planTag is what Codex wants around a plan in the model's text.
const planTag = "<proposed_plan>"

// instructed adds a text of the agent's own.
func (c *conversation) instructed(text string) {
	c.tagged = c.tagged || strings.Contains(text, planTag)
	if found := planFile.FindStringSubmatch(text); found != nil {
		c.plans = found[1]
		if strings.HasSuffix(c.plans, "/") {
			c.plans += "plan.md"
		}
	}
}

// addText adds a text of the user, or of the agent on the user's behalf.
func (c *conversation) addText(text string) {
	c.instructed(text)
	text = strings.ReplaceAll(text, "[[PLAN]] ", "") // of Copilot in plan mode
	isNotice := notice.MatchString(text)             // which repeats the command
	switch found := verbs.FindStringSubmatch(text); {
	case strings.HasPrefix(text, "Continue ") && (strings.Contains(text, `"touch made"`) || strings.Contains(text, `Running: touch made"`)): // Duet asks for the same call again
		c.turns = append(c.turns, turn{verb: "run", words: "touch made"})
	case found != nil && !isNotice:
		c.turns = append(c.turns, turn{verb: found[1], words: strings.TrimSpace(found[2])})
	case isNotice && len(c.turns) > 0 && c.turns[len(c.turns)-1].verb == "background":
		c.turns = append(c.turns, turn{verb: "run", words: "touch made"})
	case strings.HasPrefix(text, "Continue ") && len(c.turns) > 0:
		t := &c.turns[len(c.turns)-1]
		t.results, t.searched = nil, false
	case text == "Implement the approved plan." && len(c.turns) > 0:
		c.turns[len(c.turns)-1].approved = true
	}
}

// returned adds a tool's result.
func (c *conversation) returned(r result) {
	if len(c.turns) == 0 {
		return
	}
	last := &c.turns[len(c.turns)-1]
	if r.tool == "read_bash" { // which Copilot calls by itself behind a notice
		return
	}
	if slices.Contains(searches, r.tool) {
		last.searched = true
		return
	}
	last.results = append(last.results, r)
}

// saw adds an image, in base64.
func (c *conversation) saw(data string) {
	if image, err := base64.StdEncoding.DecodeString(data); err == nil {
		c.images = append(c.images, image)
	}
}

func (t turn) String() string { return strings.TrimSuffix(t.verb+": "+t.words, " ") }

func (c conversation) prompts() (prompts []string) {
	for _, t := range c.turns {
		prompts = append(prompts, t.String())
	}
	return prompts
}

// What agents call the tools that are used here.
var (
	shells    = []string{"Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", scripts}
	writers   = []string{"Write", "write", "write_file", "apply_patch"}
	exits     = []string{"ExitPlanMode", "exit_plan_mode"}
	delegates = []string{"Task", "Agent", "agent", "task", "invoke_agent", "spawn_agent"}
	todos     = []string{"TodoWrite", "todowrite", "update_plan", "write_todos", "TaskCreate", "TodoList"}
	searches  = []string{"ToolSearch", "tool_search"} // what loads tools that are not offered before
)

// scripts is the tool by which Codex offers its newest models all others: it runs JavaScript
// that calls them.
const scripts = "exec"

// script calls a tool from JavaScript.
func script(tool string, input any) *toolCall {
	argument, _ := json.Marshal(input)
	return &toolCall{scripts, "text(await tools." + tool + "(" + string(argument) + "));"}
}

// tool is the one of names that is offered.
func (c conversation) tool(names []string) string {
	for _, name := range names {
		if slices.Contains(c.tools, name) {
			return name
		}
	}
	return ""
}

type toolCall struct {
	name  string
	input any
}

// An action is what the model does next.
type action struct {
	text    string
	tool    *toolCall
	endless bool // the text again and again
	hang    bool
	cut     bool

	prompt string
	status int // the HTTP status of an error
	times  int // that it comes; 0: always
}

// next is what the conversation asks for.
func (c conversation) next() action {
	if len(c.turns) == 0 {
		return action{}
	}
	t := c.turns[len(c.turns)-1]
	switch t.verb {
	case "run":
		return c.take(t, step{"I will run it.", c.shell(t.words)})
	case "background":
		return c.take(t, step{"I will run it in the background.", c.inBackground(t.words)})
	case "write":
		return c.take(t, step{"I will write it.", c.write(t.words, Written)})
	case "plan":
		switch {
		case t.approved:
			return c.take(t, step{"I will write it.", c.write(t.words, Written)})
		case c.tagged:
			return action{text: planTag + "\n" + Plan + "</proposed_plan>\n"}
		}
		steps := []step{{"This is my plan.", c.exit(t)}, {"I will write it.", c.write(t.words, Written)}}
		written := len(t.results) > 0 && slices.Contains(writers, t.results[0].tool)
		if steps[0].tool != nil && c.plans != "" || written {
			steps = slices.Insert(steps, 0, step{"I will write the plan down.", c.write(c.plans, Plan)})
		}
		return c.take(t, steps...)
	case "delegate":
		return c.take(t, step{"Somebody else will do it.", c.delegate(t)})
	case "todo":
		return c.take(t, step{"I will note it.", c.todo(t)})
	case "editor":
		return c.take(t, step{"I will look.", c.editor(t)})
	case "talk":
		return action{text: "and on ", endless: true}
	case "hang":
		return action{hang: true}
	case "cut":
		return action{cut: true}
	case "fail":
		status, times, _ := strings.Cut(t.words, " ")
		a := action{prompt: t.String(), text: "at last"}
		a.status, _ = strconv.Atoi(status)
		a.times, _ = strconv.Atoi(times)
		if a.times == 0 {
			a.text = http.StatusText(a.status) + ", as it was asked for"
		}
		return a
	}
	return action{text: t.words}
}

// A step is what is said and then done.
type step struct {
	text string
	tool *toolCall
}

// take takes the next of some steps. It ends with what the last one gave, or
// the first one that failed, or for which there is no tool.
func (c conversation) take(t turn, steps ...step) action {
	done := len(t.results)
	switch {
	case done > 0 && (done >= len(steps) || t.results[done-1].failed):
		return action{text: "The tool said: " + t.results[done-1].text}
	case steps[done].tool == nil:
		return action{text: "There is no tool for that."}
	}
	return action{text: steps[done].text, tool: steps[done].tool}
}

// What the model writes into files, and what it plans.
const (
	Written = "written by the model\n"
	Plan    = "# The plan\n\n1. Write the file.\n"
)

func (c conversation) shell(command string) *toolCall {
	switch name := c.tool(shells); name {
	case "":
		return nil
	case "exec_command", scripts:
		input := object{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "What was asked for"}
		if name == scripts {
			return script("exec_command", input)
		}
		return &toolCall{name, input}
	case "shell_command":
		return &toolCall{name, object{"command": command, "sandbox_permissions": "require_escalated", "justification": "What was asked for"}}
	case "shell":
		return &toolCall{name, object{"command": []string{"bash", "-lc", command}}}
	default:
		return &toolCall{name, object{"command": command, "description": "What was asked for"}}
	}
}

// offered adds a tool, with the names of its parameters.
func (c *conversation) offered(name string, parameters map[string]json.RawMessage) {
	c.tools = append(c.tools, name)
	if !slices.Contains(shells, name) {
		return
	}
	for parameter, of := range parameters {
		if parameter == "run_in_background" || parameter == "is_background" || parameter == "mode" && strings.Contains(string(of), `"async"`) {
			c.behind = parameter
		}
	}
}

// inBackground is shell for a command that runs on when the turn has ended.
func (c conversation) inBackground(command string) *toolCall {
	input := object{"command": command, "description": "What was asked for"}
	switch c.behind {
	case "":
		return nil
	case "mode":
		input[c.behind] = "async"
	default:
		input[c.behind] = true
	}
	return &toolCall{c.tool(shells), input}
}

func (c conversation) write(path, text string) *toolCall {
	patch := "*** Begin Patch\n*** Add File: " + path + "\n+" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n+") + "\n*** End Patch"
	switch name := c.tool(writers); name {
	case "":
		if slices.Contains(c.tools, scripts) {
			return script("apply_patch", patch)
		}
		return c.shell("apply_patch <<'END'\n" + patch + "\nEND")
	case "apply_patch":
		return &toolCall{name, patch}
	case "write":
		return &toolCall{name, object{"filePath": path, "content": text}}
	default:
		return &toolCall{name, object{"file_path": path, "content": text}}
	}
}

func (c conversation) exit(t turn) *toolCall {
	switch name := c.tool(exits); name {
	case "exit_plan_mode":
		if c.plans == "" {
			return &toolCall{name, object{"plan": Plan}}
		}
		return &toolCall{name, object{"plan_filename": path.Base(c.plans)}}
	case "":
		return c.search(t, "ToolSearch", object{"query": "select:ExitPlanMode", "max_results": 1}, &toolCall{"ExitPlanMode", object{}})
	default:
		return &toolCall{name, object{}}
	}
}

func (c conversation) delegate(t turn) *toolCall {
	switch name := c.tool(delegates); name {
	case "spawn_agent":
		return &toolCall{name, object{"task_name": "what_was_asked_for", "message": t.words}}
	case "":
		return c.search(t, "tool_search", object{"query": "spawn agent", "limit": 8}, &toolCall{"spawn_agent", object{"message": t.words}})
	case "invoke_agent":
		return &toolCall{name, object{"agent_name": "generalist", "prompt": t.words}}
	case "task":
		input := object{"description": "What was asked for", "prompt": t.words, "subagent_type": "general"}
		if slices.Contains(c.tools, "read_agent") { // Copilot's
			input["agent_type"], input["name"] = "general-purpose", "what-was-asked-for"
		}
		return &toolCall{name, input}
	default:
		kind := "general-purpose"
		if slices.Contains(c.tools, "AgentSwarm") { // Kimi's
			kind = "coder"
		}
		return &toolCall{name, object{"description": "What was asked for", "prompt": t.words, "subagent_type": kind}}
	}
}

func (c conversation) todo(t turn) *toolCall {
	switch name := c.tool(todos); name {
	case "":
		return c.search(t, "ToolSearch", object{"query": "select:TodoWrite", "max_results": 1}, &toolCall{"TodoWrite", object{
			"todos": []object{{"content": t.words, "activeForm": t.words, "status": "in_progress"}},
		}})
	case "update_plan":
		return &toolCall{name, object{"plan": []object{{"step": t.words, "status": "in_progress"}}}}
	case "TodoList":
		return &toolCall{name, object{"todos": []object{{"title": t.words, "status": "in_progress"}}}}
	case "TaskCreate":
		return &toolCall{name, object{"subject": t.words, "description": t.words}}
	case "write_todos":
		return &toolCall{name, object{"todos": []object{{"description": t.words, "status": "in_progress"}}}}
	default:
		return &toolCall{name, object{"todos": []object{{"content": t.words, "activeForm": t.words, "status": "in_progress", "priority": "high"}}}}
	}
}

// editor calls a tool of the MCP server duet-editor, under the name that the agent gives it.
func (c conversation) editor(t turn) *toolCall {
	for _, name := range c.tools {
		if strings.Contains(name, "editor") && strings.HasSuffix(name, t.words) {
			return &toolCall{name, object{}}
		}
	}
	if slices.Contains(c.tools, scripts) {
		return script("mcp__duet_editor__"+t.words, object{})
	}
	name := "mcp__duet-editor__" + t.words
	return c.search(t, "ToolSearch", object{"query": "select:" + name, "max_results": 1}, &toolCall{name, object{}})
}

// search looks for a tool, if the agent has a tool for that, and then calls it.
func (c conversation) search(t turn, with string, query object, found *toolCall) *toolCall {
	switch {
	case !slices.Contains(c.tools, with):
		return nil
	case t.searched:
		return found
	}
	return &toolCall{with, query}
}
