package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	values "github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/question"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// quietLevel is how much is logged beside a conversation unless told
// otherwise: what went wrong.
const quietLevel = slog.LevelError

// What a notice means for who follows a run.
type noticeKind int

const (
	noticeShown noticeKind = iota
	noticeAsks
	noticeResolves
	noticeEnds
)

// A promptView shows a run on a terminal or in a pipe: the agent's words on
// out, everything else on side. What is printed can all be seen, but for the
// agent's words in a pipe or a file: they go there as they are.
type promptView struct {
	out, side io.Writer
	words     *visible.Stream // of the message that is being written; nil: as they are
	color     bool
	asJSON    bool
	session   listedSession
	midLine   bool   // the last thing on out was no line end
	asking    bool   // the last thing on side is what somebody is asked, and they have not typed yet
	message   string // the message that is being written
	shown     map[string]bool
	lastTool  string
	plan      map[string]string // the line that was shown for each step
}

func newPromptView(out, side io.Writer, s *settings) *promptView {
	v := &promptView{
		out: out, side: side, asJSON: s.json, shown: make(map[string]bool), plan: make(map[string]string),
		color: !s.noColor && term.IsTerminal(int(os.Stderr.Fd())),
	}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		v.words = shown.Stream()
	}
	return v
}

func (v *promptView) begin(s listedSession) {
	v.session = s
	v.note(fmt.Sprintf("%s · agent %s · %s", s.TaskID, s.Agent, s.WorkingDir))
	if s.State == string(values.Queued) {
		v.note("waiting for a free slot")
	}
}

// noticeData is what the view reads of any event.
type noticeData struct {
	SessionID  string              `json:"session_id"`
	State      string              `json:"state"`
	MessageID  string              `json:"message_id"`
	Delta      string              `json:"delta"`
	EventType  string              `json:"event_type"`
	Role       string              `json:"role"`
	Content    string              `json:"content"`
	ToolID     string              `json:"tool_id"`
	ToolName   string              `json:"tool_name"`
	ToolTitle  string              `json:"tool_title"`
	ToolStatus string              `json:"tool_status"`
	Result     string              `json:"tool_result_content"`
	Entries    []catalog.PlanEntry `json:"entries"`
	Path       string              `json:"path"`
	Diff       string              `json:"diff"`
	Added      int                 `json:"added"`
	Removed    int                 `json:"removed"`
	Binary     bool                `json:"binary"`
	Truncated  bool                `json:"truncated"`
	Message    string              `json:"message"`
	Data       string              `json:"data"`
	Encoding   string              `json:"encoding"`
}

// show shows an event of the run.
func (v *promptView) show(e client.Event) noticeKind {
	var d noticeData
	_ = json.Unmarshal(e.Data, &d) // the hub's own
	if d.SessionID != v.session.ID && e.Type != dialect.TypeTerminal {
		return noticeShown
	}
	if v.asJSON {
		line, _ := json.Marshal(map[string]any{"seq": e.Seq, "type": e.Type, "timestamp": e.Timestamp, "data": e.Data})
		fmt.Fprintf(v.out, "%s\n", line)
	}
	switch e.Type {
	case dialect.TypeApproval:
		return noticeAsks
	case dialect.TypeResolved:
		return noticeResolves
	case dialect.TypeStatus:
		if values.State(d.State).Ended() {
			return noticeEnds
		}
		return noticeShown
	}
	if !v.asJSON {
		v.showText(e.Type, d)
	}
	return noticeShown
}

func (v *promptView) showText(kind string, d noticeData) {
	switch kind {
	case dialect.TypeDelta:
		if v.message != d.MessageID {
			v.line()
			v.message = d.MessageID
		}
		v.say(d.Delta)
	case dialect.TypeConversation:
		v.showItem(d)
	case dialect.TypePlan:
		v.showPlan(d.Entries)
	case dialect.TypeDiff:
		if !v.shown[d.Diff] {
			v.shown[d.Diff] = true
			v.showDiff(d)
		}
	case dialect.TypeError:
		v.note("error: " + d.Message)
	case dialect.TypeTerminal:
		if d.Encoding != "base64" {
			printed := strings.TrimRight(strings.ReplaceAll(d.Data, "\r\n", "\n"), "\n")
			v.aside("  "+strings.ReplaceAll(printed, "\n", "\n  "), dim)
		}
	}
}

func (v *promptView) showItem(d noticeData) {
	switch d.EventType {
	case "message":
		if d.Role == "assistant" && v.message != d.MessageID { // it came whole
			v.line()
			v.say(d.Content)
		}
		v.line()
		v.message = ""
	case "tool_call":
		if text := firstText(d.ToolTitle, d.ToolName); d.ToolStatus == "pending" || v.lastTool != d.ToolID {
			v.lastTool = d.ToolID
			if !v.shown["tool "+d.ToolID] {
				v.shown["tool "+d.ToolID] = true
				v.aside("● "+oneLine(text), bold)
			}
		}
	case "tool_result":
		mark := "✓ "
		if d.ToolStatus == "failed" {
			mark = "✗ "
		}
		v.aside(mark+oneLine(firstText(d.ToolTitle, d.ToolName)), dim)
	case "system":
		v.note(d.Content)
	}
}

// showPlan shows the steps of a plan that are new or have changed.
func (v *promptView) showPlan(entries []catalog.PlanEntry) {
	for _, e := range entries {
		mark := "☐"
		switch e.Status {
		case "in_progress":
			mark = "▶"
		case "completed":
			mark = "☑"
		}
		if line := mark + " " + oneLine(e.Content); v.plan[e.Content] != line {
			v.plan[e.Content] = line
			v.aside(line, dim)
		}
	}
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// aside prints lines on side, in a colour on a terminal.
func (v *promptView) aside(text, color string) {
	v.line()
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(v.side, v.paint(shown.Exact(line), color))
	}
}

// say prints the agent's words.
func (v *promptView) say(text string) {
	if v.asking {
		v.line()
	}
	if v.words == nil {
		v.midLine = !strings.HasSuffix(text, "\n")
	} else {
		text = v.words.Next(text)
		v.midLine = v.midLine && text == "" || !strings.HasSuffix(text, "\n")
	}
	fmt.Fprint(v.out, text)
}

func (v *promptView) paint(text, color string) string {
	if !v.color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// note says something. Only its first line is at the margin, where ours are: the
// text may be an agent's.
func (v *promptView) note(text string) {
	v.aside("— "+strings.ReplaceAll(text, "\n", "\n  "), dim)
}

// showDiff shows what has changed in a file.
func (v *promptView) showDiff(d noticeData) {
	v.lines(question.Diff(d.Diff, shown))
	switch {
	case d.Binary:
		v.note(d.Path + " has changed; it is binary")
	case d.Truncated:
		v.note(fmt.Sprintf("%s: the rest of this change is too long; in all it is +%d −%d lines", d.Path, d.Added, d.Removed))
	}
}

// lineColors are the colours of the lines of a question.
var lineColors = map[question.Kind]string{
	question.Heading: bold, question.Input: "", question.FileName: bold, question.Hunk: cyan, question.Added: green, question.Removed: red, question.Remark: dim,
}

// lines prints lines that were laid out.
func (v *promptView) lines(list []question.Line) {
	v.line()
	for _, line := range list {
		fmt.Fprintln(v.side, v.paint(line.Text, lineColors[line.Kind]))
	}
}

// line ends the line on out, or that of a question on side, if one is begun.
func (v *promptView) line() {
	if v.asking {
		fmt.Fprintln(v.side)
		v.asking = false
	}
	if v.words != nil {
		fmt.Fprint(v.out, v.words.End())
	}
	if v.midLine {
		fmt.Fprintln(v.out)
		v.midLine = false
	}
}

func (v *promptView) end(s listedSession) {
	v.line()
	text := s.Status
	if s.Status != string(values.Completed) && s.Error != "" {
		text += ": " + s.Error
		if s.ErrorCode != "" {
			text += " (" + s.ErrorCode + ")"
		}
	}
	v.note(fmt.Sprintf("%s; go on with: duet-rpc prompt --continue %s \"…\"", text, s.TaskID))
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
