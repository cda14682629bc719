package acp

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// This file finds the plan of an agent that asks whether it may carry one out.
// Agents of the Agent Client Protocol have it in several places.

// inFile begins the title of gemini's question whether a plan is agreed to. The
// name of the file with the plan follows; the question has no more.
const inFile = "Requesting plan approval for: "

// A planCall is what is known of a tool call.
type planCall struct {
	Tool  string // as the agent names it; "": it does not
	Kind  string // as of the Agent Client Protocol
	Title string
	Input json.RawMessage
	Text  string // what the call shows
}

// Asked reports whether a call asks for leave to carry a plan out.
func (c planCall) Asked() bool {
	switch c.Tool {
	case "ExitPlanMode", "exit_plan_mode":
		return true
	}
	return c.Kind == "switch_mode" || c.Kind == "other" && c.Tool == "" && strings.HasPrefix(c.Title, inFile)
}

// Plan is what the agent would do next, if the call asks for leave to carry a plan
// out: its input says that, or what the call shows, or the file that its title names.
// Where none does it is the title. "" is no plan.
func (c planCall) Plan() string {
	if !c.Asked() {
		return ""
	}
	var text string
	if members, err := toolinput.Members(c.Input); err == nil {
		_ = toolinput.Take(members, "plan", &text) // of another type it is not shown
	}
	if path, ok := strings.CutPrefix(c.Title, inFile); ok && text == "" && c.Text == "" {
		text = read(path)
	}
	return cmp.Or(text, c.Text, c.Title, "a plan of which the agent says nothing")
}

// longest is how much of a file with a plan is read, in bytes.
const longest = 256 << 10

// read is what stands in a file with a plan, "" if it cannot be read. It is
// shown to people alone.
func read(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || filepath.Ext(path) != ".md" { // a pipe would keep us
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, longest+1))
	if err != nil {
		return ""
	}
	if len(text) > longest {
		text = append(text[:longest], "\n… the rest of the plan is in "+path...)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
