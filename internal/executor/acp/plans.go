package acp

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// maxPlans limits the plans of an agent.
const maxPlans = 100

// A namedPlan is one of an agent's plans, by its id; the id is "" for an agent with one plan.
type namedPlan struct {
	PlanID  string
	Entries []domain.PlanEntry
}

// plan reports a plan: its entries, the lines of its Markdown, or the file that contains it. Duet
// merges all plans of an agent into one.
func (t *turn) plan(raw json.RawMessage) bool {
	var said struct {
		namedPlan
		Content *string // Markdown
		URI     string  // of a file
	}
	if json.Unmarshal(raw, &said) != nil {
		return false
	}
	p := said.namedPlan
	switch {
	case p.Entries != nil:
	case said.Content != nil:
		p.Entries = markdownPlan(*said.Content)
	case said.URI != "":
		p.Entries = []domain.PlanEntry{{Content: said.URI}}
	default:
		return false
	}
	i := slices.IndexFunc(t.plans, func(other namedPlan) bool { return other.PlanID == p.PlanID })
	switch {
	case i >= 0:
		t.plans[i] = p
	case len(t.plans) < maxPlans:
		t.plans = append(t.plans, p)
	}
	t.reportPlan()
	return true
}

// maxPlanLines limits the lines of a Markdown plan.
const maxPlanLines = 1000

// listMark matches the mark of an item of a Markdown list, with its box if it is a task.
var listMark = lazyregexp.New(`^(?:[-*+]|\d+[.)])\s+(?:\[([ xX])\]\s+)?`)

// markdownPlan returns the non-empty lines of a Markdown plan as entries. Items of a task list
// have the status of their box.
func markdownPlan(text string) []domain.PlanEntry {
	entries := []domain.PlanEntry{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(entries) == maxPlanLines {
			entries[maxPlanLines-1].Content = "…"
			break
		}
		e := domain.PlanEntry{Content: line}
		if mark := listMark().FindStringSubmatch(line); mark != nil && len(mark[0]) < len(line) {
			e.Content = line[len(mark[0]):]
			switch mark[1] {
			case "":
			case " ":
				e.Status = "pending"
			default:
				e.Status = "completed"
			}
		}
		entries = append(entries, e)
	}
	return entries
}

func (t *turn) planRemoved(raw json.RawMessage) bool {
	id, ok := rawjson.Text(rawjson.Member(raw, "planId"))
	if ok {
		t.plans = slices.DeleteFunc(t.plans, func(p namedPlan) bool { return p.PlanID == string(id) })
		t.reportPlan()
	}
	return ok
}

func (t *turn) reportPlan() {
	entries := []domain.PlanEntry{}
	for _, p := range t.plans {
		entries = append(entries, p.Entries...)
	}
	t.Event(catalog.EventPlan, catalog.Plan{Entries: entries})
}

// A planCall is the part of a tool call that may contain a plan.
type planCall struct {
	Tool  string // the agent's name of the tool; "": none
	Kind  string // of the Agent Client Protocol
	Title string
	Input json.RawMessage
	Text  string // the text of the call's content
}

// Asked reports whether a call asks for approval of a plan.
func (c planCall) Asked() bool {
	switch c.Tool {
	case "ExitPlanMode", "exit_plan_mode":
		return true
	}
	return c.Kind == "switch_mode" || c.Kind == "other" && c.Tool == "" && strings.HasPrefix(c.Title, inFile)
}

// Plan returns the plan for which the call asks approval: from its input, its content, or the
// file that its title names. The fallback is the title. "" means no plan.
func (c planCall) Plan() string {
	if !c.Asked() {
		return ""
	}
	var text string
	if members, err := toolinput.Members(c.Input); err == nil {
		_ = toolinput.Take(members, "plan", &text) // a plan of another type is not shown
	}
	if path, ok := strings.CutPrefix(c.Title, inFile); ok && text == "" && c.Text == "" {
		text = read(path)
	}
	return cmp.Or(text, c.Text, c.Title, "a plan of which the agent says nothing")
}

// maxPlanFile limits how much of a plan file is read, in bytes.
const maxPlanFile = 256 << 10

// read returns the content of a plan file, or "" if it cannot be read. Only users see it.
func read(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || filepath.Ext(path) != ".md" { // reading a pipe would block
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxPlanFile+1))
	if err != nil {
		return ""
	}
	if len(text) > maxPlanFile {
		text = append(text[:maxPlanFile], "\n… the rest of the plan is in "+path...)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
