package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// planInFile begins the title of gemini's question whether a plan is agreed to. The
// name of the file with the plan follows; the question has no more.
const planInFile = "Requesting plan approval for: "

// leavesPlanMode reports whether a call asks for leave to carry a plan out.
func (t *toolCall) leavesPlanMode() bool {
	switch t.named {
	case "ExitPlanMode", "exit_plan_mode":
		return true
	}
	return t.kind == "switch_mode" || t.kind == "other" && t.named == "" && strings.HasPrefix(t.title, planInFile)
}

// plan is what the agent would do next, if it asks for leave to carry a plan out:
// its input says that, or what the call shows, or the file that its title names.
// Where none does it is the title. "" is no plan.
func (t *toolCall) plan() string {
	if !t.leavesPlanMode() {
		return ""
	}
	var text string
	if members, err := toolinput.Members(t.input); err == nil {
		_ = toolinput.Take(members, "plan", &text) // of another type it is not shown
	}
	if path, ok := strings.CutPrefix(t.title, planInFile); ok && text == "" && t.text == "" {
		text = readPlan(path)
	}
	return cmp.Or(text, t.text, t.title, "a plan of which the agent says nothing")
}

// longestPlan is how much of a file with a plan is read, in bytes.
const longestPlan = 256 << 10

// readPlan is what stands in a file with a plan, "" if it cannot be read. It is
// shown to people alone.
func readPlan(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || filepath.Ext(path) != ".md" { // a pipe would keep us
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, longestPlan+1))
	if err != nil {
		return ""
	}
	if len(text) > longestPlan {
		text = append(text[:longestPlan], "\n… the rest of the plan is in "+path...)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// isEmpty reports whether an input says nothing.
func isEmpty(input json.RawMessage) bool {
	return bytes.Equal(bytes.Join(bytes.Fields(input), nil), []byte("{}"))
}
