// Package turn shows one turn of a conversation, from the prompt to its end, and asks the agent's
// questions at the terminal.
package turn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/visible"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A View shows a turn on a terminal or in a pipe: the agent's words on out,
// everything else on side. What is printed can all be seen, but for the agent's
// words in a pipe or a file: they go there as they are. On a terminal that can
// draw, and in colour, their Markdown is rendered, block by block; what is not
// complete stands below, as it was written, until it is. One goroutine uses it at a
// time.
type View struct {
	out, side io.Writer
	words     *visible.Stream // of the message that is being written; nil: as they are
	rendered  *term.Stream    // instead of words; nil: they are not rendered
	region    *term.Region    // the last lines of the terminal; nil: it cannot draw, or is none
	color     bool
	json      bool // events go to out, and nothing else does
	watched   bool // side is a terminal: somebody looks on

	session  protocol.Session
	ended    string    // the session whose end was told
	seq      int64     // of the last event that was shown
	keyboard *keyboard // nil until somebody is to be asked

	midLine  bool   // the last thing on out was no line end
	asking   bool   // the last thing on side is what somebody is asked, and they have not typed yet
	asked    string // what that is
	redraws  bool   // side is a terminal on which that can be taken away
	beside   bool   // what is shown now is no answer to it: it is asked again below
	message  string // the message that is being written
	shown    shownMessage
	diffs    map[string]bool
	tools    map[string]bool // the tool calls whose beginning was shown
	depths   map[string]int  // of tool calls that are part of others
	lastTool string
	plan     map[string]string // the line that was shown for each step
	status   status
	gates    gateWatch
	held     held
}

// NewView makes a view. Colours are used on a terminal; with json each event is
// printed as a line of JSON instead of the agent's words.
func NewView(out, side io.Writer, noColor, json bool) *View {
	v := &View{
		out: out, side: side, json: json, color: !noColor && term.IsTerminal(side) && !term.IsDumb(),
		diffs: make(map[string]bool), tools: make(map[string]bool), plan: make(map[string]string),
		depths: make(map[string]int), watched: term.IsTerminal(side) && !json, redraws: term.Draws(side),
	}
	if term.IsTerminal(out) {
		v.words = term.Marks.Stream()
	}
	switch {
	case json:
	case v.words != nil && term.Draws(out):
		v.drawOn(out, func() (columns, rows int) { columns, rows, _ = term.Size(out); return columns, rows })
		if !noColor {
			v.render()
		}
	case term.Draws(side):
		v.drawOn(side, func() (columns, rows int) { columns, rows, _ = term.Size(side); return columns, rows })
	}
	return v
}

// A shownMessage is the message of the agent that was shown last, and how many bytes of it were.
// Late text of the agent is added to it, and it comes whole again.
type shownMessage struct {
	key   string
	bytes int
}

func (s *shownMessage) add(key string, n int) {
	if key != s.key {
		*s = shownMessage{key: key}
	}
	s.bytes += n
}

// of returns how many of the bytes of a message were shown, at most size.
func (s *shownMessage) of(key string, size int) int {
	if key == "" || key != s.key {
		return 0
	}
	return min(s.bytes, size)
}

// drawOn lets the view draw the last lines of a terminal.
func (v *View) drawOn(terminal io.Writer, size func() (columns, rows int)) {
	v.region = term.NewRegion(terminal, size)
}

// render begins a message whose Markdown is rendered.
func (v *View) render() {
	v.rendered = &term.Stream{Renderer: term.Renderer{Marks: term.Marks}}
}

// Begin says which session is shown from now on.
func (v *View) Begin(s protocol.Session) {
	v.session, v.status.began, v.gates = s, time.Time{}, gateWatch{}
	v.Note(fmt.Sprintf("%s · agent %s · %s", s.TaskID, s.Agent, s.WorkingDir))
	if s.State == wire.Queued {
		v.Note(waitsFor(s))
	}
}

// waitsFor says for what a session waits that is queued, as far as it tells.
func waitsFor(s protocol.Session) string {
	if s.ParentSessionID != "" {
		return "waiting for the conversation's turn before to end, or for a free slot; `duet-rpc task list` says which works, `duet-rpc approvals` what is asked"
	}
	return "waiting for a free slot; `duet-rpc task list` says what works"
}

// End says how the session ended, and how to go on.
func (v *View) End(s protocol.Session) {
	if v.ended != "" && v.ended == s.ID {
		return // it was said
	}
	v.ended = s.ID
	v.endLine()
	if spent := spentOn(s); spent != "" {
		v.Note(spent)
	}
	for _, name := range s.UnansweredServers { // who hears of this prompt alone would never know
		v.Note("the MCP server " + name + " has not answered yet; `duet-rpc doctor` tries it again")
	}
	if titles := s.BackgroundTitles(); titles != "" {
		v.Note("works in the background: " + titles + "; duet-rpc session interrupt " + s.TaskID + " ends it")
	}
	goOn := fmt.Sprintf("go on with: duet-rpc prompt --continue %s \"…\"", s.TaskID)
	if whole := s.Outcome() + "; " + goOn; term.Fits(v.side, "— "+whole) {
		v.Note(whole)
		return
	}
	v.Note(s.Outcome())
	v.Note(goOn)
}

// spentOn says what a session took: time, tokens and money, as far as they are known.
func spentOn(s protocol.Session) string {
	var parts []string
	if took := protocol.Value(s.DurationMS); took >= 100 {
		parts = append(parts, term.Duration(time.Duration(took)*time.Millisecond))
	}
	if total := protocol.Value(s.TotalTokens); total > 0 {
		parts = append(parts, term.Number(int(total))+" tokens")
	}
	if cost := protocol.Value(s.CostUSD); cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", cost))
	}
	return strings.Join(parts, " · ")
}

// A meaning is what an event asks of whoever follows a turn, once it is shown.
type meaning int

const (
	nothingToDo meaning = iota
	questionAsked
	questionResolved
	turnEnded
	keyAsked
)

// show shows an event of the turn.
func (v *View) show(e client.Event) meaning {
	v.seq = max(v.seq, e.Seq)
	d := wire.DataOf(e)
	if d.SessionID != v.session.ID && e.Type != protocol.TypeTerminal {
		return nothingToDo
	}
	if v.json {
		line, _ := json.Marshal(map[string]any{"seq": e.Seq, "type": e.Type, "timestamp": e.Timestamp, "data": e.Data}) // it came as JSON
		fmt.Fprintf(v.out, "%s\n", line)
	}
	v.status.follow(e.Type, d)
	v.beside = true
	defer func() { v.beside = false }()
	switch {
	case e.Type == protocol.TypeApproval:
		return questionAsked
	case e.Type == protocol.TypeResolved:
		return questionResolved
	case e.Type == protocol.TypeSecret:
		return keyAsked
	case !v.json:
		v.showText(e.Type, d)
	}
	if v.isOver(e.Type, d) {
		return turnEnded
	}
	return nothingToDo
}

func (v *View) showText(kind string, d wire.EventData) {
	switch kind {
	case protocol.TypeDelta:
		if d.ParentTool != "" { // of a sub-agent: it is shown when it is whole
			return
		}
		if v.message != d.MessageID {
			v.endMessage()
			v.message = d.MessageID
		}
		v.say(d.Delta)
		v.shown.add(d.MessageID, len(d.Delta))
	case protocol.TypeConversation:
		v.showItem(d)
	case protocol.TypePlan:
		v.showPlan(d.Entries)
	case protocol.TypeDiff:
		if !v.diffs[d.Diff] {
			v.diffs[d.Diff] = true
			v.showDiff(d)
		}
	case protocol.TypeSilent:
		v.agentSilent(d)
	case protocol.TypeError:
		if !wire.InConversation(d.Code) { // else its own entry tells it
			v.remark("error: " + d.Message)
		}
	case protocol.TypeStatus:
		if d.State == "interrupting" && d.Reason == "timeout" {
			v.remark("its time is up; the agent is told to end, and ended if it does not")
		}
	case protocol.TypeIteration, protocol.TypeGateStart, protocol.TypeGate:
		v.showGate(kind, d)
	case protocol.TypeTerminal:
		if d.Encoding != "base64" {
			v.status.printed = true
			printed := strings.TrimRight(strings.ReplaceAll(visible.WithoutColors(d.Data), "\r\n", "\n"), "\n")
			v.aside("  "+term.Indented(printed), dim)
		}
	}
}

// showItem shows an entry of the conversation.
func (v *View) showItem(d wire.EventData) {
	tool := term.Line(cmp.Or(d.ToolTitle, d.ToolName))
	switch d.EventType {
	case wire.EntryMessage:
		if len(d.Attachments) > 0 {
			v.showAttachments(v.belowIfAny(d.ParentTool)+"  ", d.Role, d.Attachments)
			v.message = ""
			return
		}
		if d.ParentTool != "" {
			indent := v.below(d.ParentTool)
			for line := range strings.SplitSeq(strings.TrimRight(d.Content, "\n"), "\n") {
				v.aside(indent+line, dim)
			}
			return
		}
		if d.Role == "assistant" && v.message != d.MessageID { // it came whole, or late text was added to it
			v.endMessage()
			v.say(d.Content[v.shown.of(d.MessageID, len(d.Content)):])
		}
		v.shown = shownMessage{d.MessageID, len(d.Content)}
		v.endMessage()
		v.message = ""
	case wire.EntryThinking:
		switch {
		case len(d.Attachments) > 0:
			v.showAttachments(v.belowIfAny(d.ParentTool)+"✻ ", d.Role, d.Attachments)
		case d.ParentTool == "":
			v.showThought(d.Content)
		}
	case wire.EntryToolCall:
		if d.ToolStatus == "pending" || v.lastTool != d.ToolID {
			v.lastTool = d.ToolID
			if !v.tools[d.ToolID] {
				v.tools[d.ToolID] = true
				v.aside(v.nested(d)+"● "+tool, bold)
			}
		}
	case wire.EntryToolResult:
		mark := "✓ "
		if d.ToolStatus == "failed" {
			mark = "✗ "
		}
		if d.RefusedBy != "" && d.ToolStatus == "failed" {
			v.aside(v.nested(d)+"⊘ "+tool+" — not run, "+refusedBy(d), dim)
			return
		}
		v.aside(v.nested(d)+mark+tool, dim)
		if !v.status.printed { // what it has printed was shown as it came
			v.showResult(d)
		}
		v.showAttachments(v.nested(d)+"  ", "tool", d.ToolData.Attachments)
	case wire.EntrySystem:
		if d.Subtype != "gates" { // else their own events have told it
			v.remark(d.Content)
		}
	}
}

// nested is what stands before a tool call: the more, the more calls it is part of,
// such as that of a sub-agent.
func (v *View) nested(d wire.EventData) string {
	depth, known := v.depths[d.ToolID]
	if !known || d.ParentTool != "" {
		depth = 0
		if d.ParentTool != "" {
			depth = v.depthBelow(d.ParentTool)
		}
		v.depths[d.ToolID] = depth
	}
	return strings.Repeat("  ", depth)
}

// below is what stands before something that is part of a tool call.
func (v *View) below(call string) string { return strings.Repeat("  ", v.depthBelow(call)) }

// belowIfAny is the same, or nothing if it is part of none.
func (v *View) belowIfAny(call string) string {
	if call == "" {
		return ""
	}
	return v.below(call)
}

func (v *View) depthBelow(call string) int { return min(v.depths[call]+1, mostNested) }

// mostNested is how many levels of sub-agents are told apart.
const mostNested = 8

// showAttachments says what was said that is no text, and how to get it, behind indent.
func (v *View) showAttachments(indent, role string, list []protocol.Attachment) {
	for _, a := range list {
		line := term.Line(a.Label())
		if how := howToSave(a); how != "" && role != "user" {
			line += " · " + term.Line(how)
		}
		v.aside(indent+line, dim)
	}
}

// refusedBy says who did not let a tool run, and why.
func refusedBy(d wire.EventData) string {
	text := "denied by " + d.RefusedBy
	if d.RefusedBy == "user" {
		text = "denied"
	}
	if d.Refusal != "" && d.Refusal != "denied" { // which stands for no reason
		text += ": " + term.Line(d.Refusal)
	}
	return text
}

// refusal tells of what a rule or a mode has denied, so that nobody was asked.
func (v *View) refusal(d wire.EventData) {
	if d.Decision != "denied" || v.json || !strings.HasPrefix(d.DecidedBy, "rule=") && !strings.HasPrefix(d.DecidedBy, "mode=") {
		return
	}
	text := "not asked: " + term.Line(cmp.Or(d.Title, d.ToolName)) + " is denied by " + d.DecidedBy
	if d.Explanation != "" {
		text += " (" + term.Line(d.Explanation) + ")"
	}
	v.Note(text)
}

// showPlan shows the steps of a plan that are new or have changed.
func (v *View) showPlan(steps []domain.PlanEntry) {
	for _, step := range steps {
		mark := "☐"
		switch step.Status {
		case "in_progress":
			mark = "▶"
		case "completed":
			mark = "☑"
		}
		if line := mark + " " + term.Line(step.Content); v.plan[step.Content] != line {
			v.plan[step.Content] = line
			v.aside(line, dim)
		}
	}
}

// showDiff shows what has changed in a file.
func (v *View) showDiff(d wire.EventData) {
	v.lines(Diff(d.Diff, term.Marks))
	switch {
	case d.Binary:
		v.Note(d.Path + " has changed; it is binary")
	case d.Truncated:
		v.Note(fmt.Sprintf("%s: the rest of this change is too long to show; the whole change is +%d −%d lines", d.Path, d.Added, d.Removed))
	}
}

// say prints the agent's words.
func (v *View) say(text string) {
	if v.asking {
		v.endLine()
	}
	if line, rest, ends := strings.Cut(text, "\n"); ends && len(v.held.texts) > 0 {
		held := v.held
		v.held.texts = nil
		v.say(line + "\n")
		v.held = held
		v.release()
		if text = rest; text == "" {
			return
		}
	}
	v.status.spoken = time.Now()
	if v.words != nil {
		text = term.Marks.Signs(text)
	}
	switch {
	case v.rendered != nil:
		v.rendered.Columns = v.region.Columns()
		v.region.Print(v.rendered.Next(text), v.rows()...)
		return
	case v.words != nil:
		v.hide()
		text = v.words.Next(text)
		v.midLine = v.midLine && text == "" || !strings.HasSuffix(text, "\n")
	default:
		v.midLine = !strings.HasSuffix(text, "\n")
	}
	fmt.Fprint(v.out, text)
}

// endMessage ends what the agent says: what comes next is another text.
func (v *View) endMessage() {
	v.endLine()
	if v.rendered != nil {
		v.render()
	}
}

// mostResult is how many lines of what a tool gives back are shown, and how many of
// them are its last.
const (
	mostResult = 6
	lastResult = 2
)

// leastCut is the least that is left of a result, in bytes, of which the event left
// out the end.
const leastCut = domain.MaxEventText - utf8.UTFMax

// showResult shows the first and the last lines of what a tool gives back. An event
// may carry only the beginning: then it shows the first lines and says how to read all.
func (v *View) showResult(d wire.EventData) {
	text := strings.Trim(strings.ReplaceAll(visible.WithoutColors(d.Result), "\r\n", "\n"), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	lines := strings.Split(text, "\n")
	if d.Truncated && len(d.Result) >= leastCut {
		lines = append(lines[:min(len(lines), mostResult-lastResult)],
			"… the rest is too long to show here: duet-rpc session show "+v.session.TaskID)
	} else if hidden := len(lines) - mostResult; hidden > 1 {
		lines = append(append(lines[:mostResult-lastResult:mostResult-lastResult], "… "+term.Count(hidden, "more line")), lines[len(lines)-lastResult:]...)
	}
	for _, line := range lines {
		line = line[strings.LastIndexByte(line, '\r')+1:] // a progress bar is what it came to
		v.aside(v.nested(d)+"  "+cutLine(line), dim)
	}
}

// A status is what the last line of a terminal says while a turn goes on: for how
// long it does, and what the agent does, or since when it gives no sign of life.
type status struct {
	ticking bool            // somebody has it drawn anew as time goes by
	began   time.Time       // the turn
	spoken  time.Time       // when the agent has last said something
	tool    string          // that runs; or ""
	printed bool            // a terminal has shown something since the tool began
	silent  *wire.EventData // nil: it is not silent
	noted   bool            // a line that stays has told all that there is of the silence
	step    int             // of what turns
}

// tick is how often the last line is drawn anew, beat how long after the last words
// it appears.
const (
	tick = 250 * time.Millisecond
	beat = time.Second
)

// follow notes what an event means for the status.
func (s *status) follow(kind string, d wire.EventData) {
	switch {
	case kind == protocol.TypeStatus && d.State != "running":
		s.silent, s.noted, s.tool = nil, false, ""
	case kind != protocol.TypeConversation:
	case d.EventType == wire.EntryToolCall:
		if s.tool == "" {
			s.printed = false
		}
		s.tool = cmp.Or(d.ToolTitle, d.ToolName)
	case d.EventType == wire.EntryToolResult:
		s.tool = ""
	}
}

// agentSilent takes an event that tells of the agent's silence.
func (v *View) agentSilent(d wire.EventData) {
	s := &v.status
	switch {
	case d.Ended:
		s.silent, s.noted = nil, false
	case v.region != nil && s.ticking:
		if v.rendered == nil { // there is no place for it in the line that is being written
			v.endLine()
		}
		s.silent = &d
	case !s.noted:
		s.noted = d.Note != ""
		v.remark(silentText(v.session.Agent, d))
	}
	v.draw()
}

// draw draws what changes with time.
func (v *View) draw() {
	if v.region != nil && !v.asking && !v.midLine {
		v.region.Draw(v.rows()...)
	}
}

// rows are the last lines of the terminal: what the agent has not completed, and the
// status.
func (v *View) rows() (rows []string) {
	if v.rendered != nil {
		if text := v.rendered.Pending(); text != "" {
			rows = term.Rows(text, v.region.Columns())
		}
	}
	if line := v.statusLine(); line != "" {
		rows = append(rows, v.paint(term.CutToFit(line, v.region.Columns()), dim))
	}
	return rows
}

// statusLine is what the last line says, or "".
func (v *View) statusLine() string {
	s := &v.status
	switch {
	case !s.ticking, time.Since(s.spoken) < beat:
		return ""
	case s.silent != nil:
		return "— " + term.Line(silentText(v.session.Agent, *s.silent))
	}
	turning := term.Spinner()
	text := turning[s.step%len(turning)] + " " + term.Duration(time.Since(s.began).Truncate(time.Second))
	if s.tool != "" {
		text += " · " + term.Line(s.tool)
	}
	return text
}

// work says that the turn goes on, and that somebody ticks until stop is called. The
// channel is nil where nothing is to be drawn.
func (v *View) work() (ticks <-chan time.Time, stop func()) {
	if v.region == nil {
		return nil, func() {}
	}
	if v.status.began.IsZero() {
		v.status.began, v.status.step = time.Now(), 0
	}
	v.status.ticking = true
	ticker := time.NewTicker(tick)
	return ticker.C, func() {
		ticker.Stop()
		v.status.ticking = false
		v.endLine()
	}
}

// ticked draws the next step.
func (v *View) ticked() {
	v.status.step++
	v.draw()
}

// silentText says for how long an agent has been silent.
func silentText(agent string, d wire.EventData) string {
	return term.Silence(agent, d.Since, d.ToolTitle, d.Note)
}
