// Package turn shows one turn of a session, from the prompt to its end, and asks the
// agent's questions on the terminal.
package turn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// View shows a turn on a terminal or in a pipe: the agent's text on out, everything else on
// side. All printed characters are visible, except in the agent's text in a pipe or a file,
// which is unchanged. On a terminal with cursor control and colours, the view renders the
// Markdown block by block. An incomplete block is below in its raw form. A View is not
// safe for concurrent use.
type View struct {
	// Named, if set, completes the commands that a note names.
	Named func(note string) string

	out, side io.Writer
	words     *visible.Stream // of the current message; nil: text is printed unchanged
	rendered  *term.Stream    // used instead of words; nil: Markdown is not rendered
	region    *term.Region    // the last lines of the terminal; nil: no terminal, or it cannot move the cursor
	color     bool
	json      bool // out has only events
	watched   bool // side is a terminal

	session  protocol.Turn
	ended    string    // the turn whose end was shown
	spent    string    // the turn whose time, tokens and cost were shown
	seq      int64     // of the last event shown
	keyboard *keyboard // nil until a question is asked

	midLine  bool   // out is in the middle of a line
	asking   bool   // side shows a prompt that the user has not answered
	asked    string // the text of that prompt, and the answer
	answer   string // what the user has typed after the prompt
	after    string // the end of answer that is after the cursor
	redraws  bool   // side is a terminal from which a prompt can be removed
	beside   bool   // the current output is not about the prompt, which is repeated below it
	message  string // the id of the current message
	shown    shownMessage
	diffs    map[string]bool
	proposed map[string]bool         // changedLines of the diffs in questions, until the changes are made
	tools    map[string]*startedTool // the tool calls whose start was shown
	depths   map[string]int          // of tool calls that belong to others
	// held is a tool call that has not started: its title and input may still come, and its question may say
	// all of it.
	held   *protocol.Item
	heldAt time.Time
	// announced is the heading of a question about the command that the lines above show; nil:
	// they show none.
	announced []QuestionLine
	last      string            // the tool call that the last lines are about; "": they are about something else
	denied    map[string]bool   // tool calls that the user has denied, as the screen shows
	plan      map[string]string // the last line for each step
	status    status
	gates     gateWatch
	remarks   pendingRemarks

	talk    *Talk  // the session whose prompt box is below the turn; nil: there is none
	partial string // the agent's unfinished line above the box, if Markdown is not rendered
}

// NewView returns a view. It uses colours on a terminal unless noColor is set. With json it
// prints each event as a line of JSON instead of text.
func NewView(out, side io.Writer, noColor, json bool) *View {
	v := &View{
		out: out, side: side, json: json, color: !noColor && term.IsTerminal(side) && !term.IsDumb(),
		diffs: make(map[string]bool), proposed: make(map[string]bool), tools: make(map[string]*startedTool), plan: make(map[string]string),
		depths: make(map[string]int), denied: make(map[string]bool), watched: term.IsTerminal(side) && !json, redraws: term.Draws(side),
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

// shownMessage is the agent's last message and how many of its bytes were shown. The hub sends
// the whole message again when the agent adds late text.
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

// of returns how many bytes of a message were shown, at most size.
func (s *shownMessage) of(key string, size int) int {
	if key == "" || key != s.key {
		return 0
	}
	return min(s.bytes, size)
}

// drawOn makes the view draw on the last lines of a terminal.
func (v *View) drawOn(terminal io.Writer, size func() (columns, rows int)) {
	v.region = term.NewRegion(terminal, size)
}

// render starts a message whose Markdown is rendered.
func (v *View) render() {
	v.rendered = &term.Stream{Renderer: term.Renderer{Marks: term.Marks}}
}

// Begin sets the turn to show.
func (v *View) Begin(s protocol.Turn) {
	v.session, v.status.began, v.gates = s, time.Time{}, gateWatch{}
	if v.talk != nil {
		v.talk.begin(s)
		return
	}
	v.Note(fmt.Sprintf("%s · agent %s · %s", s.Name, s.Agent, s.WorkingDir))
	if s.State == domain.Queued {
		v.Note(waitsFor(s))
	}
}

// waitsFor says what a queued turn waits for, if the hub reports it.
func waitsFor(s protocol.Turn) string {
	if s.Parent != "" {
		return "queued: waiting for the previous turn or a free slot; `duet-rpc session list` shows what runs, `duet-rpc approvals` the open " +
			"questions"
	}
	return "queued: waiting for a free slot; `duet-rpc session list` shows what runs"
}

// End shows how the turn ended, and how to continue.
func (v *View) End(s protocol.Turn) {
	if v.ended != "" && v.ended == s.ID {
		return // it was shown
	}
	v.ended = s.ID
	v.endLine()
	if v.talk != nil {
		v.talk.end(s)
		return
	}
	v.Spent(s)
	for _, name := range s.UnansweredServers { // the output of this prompt does not mention it otherwise
		v.Note("the MCP server " + name + " has not answered yet; `duet-rpc doctor` tries it again")
	}
	if titles := s.BackgroundTitles(); titles != "" {
		v.Note("works in the background: " + titles + "; duet-rpc session interrupt " + s.Name + " ends it")
	}
	if w := s.Worktree; w != nil && !w.Gone {
		v.Note("its worktree is on the branch " + term.Line(w.Branch) + "; bring its changes here with: duet-rpc land " + strconv.FormatInt(
			s.Session, 10,
		))
	}
	goOn := fmt.Sprintf("go on with: duet-rpc prompt --continue %d \"…\"", s.Session)
	if whole := s.Outcome() + "; " + goOn; term.Fits(v.side, "— "+whole) {
		v.Note(whole)
		return
	}
	v.Note(s.Outcome())
	v.Note(goOn)
}

// Spent shows the time, tokens and cost of a turn, once. Call it for a turn that another one
// continues; [View.End] does the same for the last one.
func (v *View) Spent(s protocol.Turn) {
	if v.spent == s.ID && s.ID != "" {
		return
	}
	v.spent = s.ID
	if spent := spentOn(s); spent != "" {
		v.Note(spent)
	}
}

// spentOn returns the known time, tokens and cost of a turn.
func spentOn(s protocol.Turn) string {
	var parts []string
	if took := protocol.Value(s.DurationMS); took >= 100 {
		parts = append(parts, term.Duration(time.Duration(took)*time.Millisecond))
	}
	if total := protocol.Value(s.TotalTokens); total > 0 {
		parts = append(parts, term.Number(int(total))+" tokens")
	}
	if cost := protocol.Value(s.CostUSD); cost > 0 {
		parts = append(parts, domain.Dollars(cost))
	}
	return strings.Join(parts, " · ")
}

// show shows an event of the turn. It returns the event if the caller has to act on it: a question,
// its answer, or a request for a key; otherwise nil. isOver reports whether the turn has ended with
// the event.
func (v *View) show(e eventstream.Event) (todo any, isOver bool) {
	v.seq = max(v.seq, e.Seq)
	event := hubclient.DataOf(e)
	if e.TurnUUID != v.session.ID && e.Kind != protocol.KindTerminalOutput {
		return nil, false
	}
	if v.json {
		line, _ := json.Marshal(e) // the values were decoded from JSON, so this cannot fail
		fmt.Fprintf(v.out, "%s\n", line)
	}
	v.status.follow(event)
	v.beside = true
	defer func() { v.beside = false }()
	if v.held != nil && callOf(event) != v.held.Key {
		v.showHeld()
	}
	if _, isQuestion := event.(*protocol.ApprovalOpenedEvent); isQuestion {
		v.held = nil
	}
	switch event.(type) {
	case *protocol.ApprovalOpenedEvent, *protocol.ApprovalClosedEvent, *protocol.SecretEvent:
		return event, false
	}
	if !v.json {
		v.showText(e.Kind, event)
	}
	return nil, v.isOver(event)
}

// callOf returns the tool call that an item or a question is about, or "".
func callOf(event any) string {
	switch d := event.(type) {
	case *protocol.Item:
		return d.Key
	case *protocol.ApprovalOpenedEvent:
		return d.ToolUseID
	}
	return ""
}

func (v *View) showText(kind string, event any) {
	switch d := event.(type) {
	case *protocol.TextEvent:
		if d.ParentID != "" || kind == protocol.KindThought { // it is shown when it is complete
			return
		}
		if v.message != d.Key {
			v.endMessage()
			v.message = d.Key
		}
		v.say(d.Text)
		v.shown.add(d.Key, len(d.Text))
	case *protocol.Item:
		v.showItem(d)
	case *protocol.PlanEvent:
		v.showPlan(d.Entries)
	case *protocol.ChangeEvent:
		if !v.diffs[d.Diff] && !v.wasProposed(d.Diff) {
			v.within(func() { v.showDiff(d) })
		}
		v.diffs[d.Diff] = true
	case *protocol.SilentEvent:
		v.agentSilent(d)
	case *protocol.AgentErrorEvent:
		if !d.IsItem() { // otherwise the session has a notice
			v.remark("error: " + d.Message)
		}
	case *protocol.TurnStateEvent:
		if d.State == "interrupting" && d.Reason == "timeout" {
			v.remark("the time limit is reached; the agent is asked to stop, and ended if it does not")
		}
	case *protocol.GateIterationEvent, *protocol.GateStartedEvent, *protocol.GateResultEvent:
		v.showGate(d)
	case *protocol.TerminalOutputEvent:
		if d.Encoding != "base64" {
			v.status.printed = true
			printed := strings.TrimRight(strings.ReplaceAll(visible.WithoutColors(d.Data), "\r\n", "\n"), "\n")
			v.within(func() { v.aside("  "+term.Indented(printed), dim) })
		}
	}
}

// showItem shows an item of the turn.
func (v *View) showItem(d *protocol.Item) {
	switch d.Type {
	case protocol.ItemMessage:
		if len(d.Attachments) > 0 {
			v.showAttachments(v.belowIfAny(d.ParentID)+"  ", d.Role, d.Attachments)
			v.message = ""
			return
		}
		if d.ParentID != "" {
			indent := v.below(d.ParentID)
			for line := range strings.SplitSeq(strings.TrimRight(d.Text, "\n"), "\n") {
				v.aside(indent+line, dim)
			}
			return
		}
		if d.Role == "assistant" && v.message != d.Key { // the message arrived whole, or late text was added to it
			v.endMessage()
			v.say(d.Text[v.shown.of(d.Key, len(d.Text)):])
		}
		v.shown = shownMessage{d.Key, len(d.Text)}
		v.endMessage()
		v.message = ""
	case protocol.ItemThought:
		switch {
		case len(d.Attachments) > 0:
			v.showAttachments(v.belowIfAny(d.ParentID)+"✻ ", d.Role, d.Attachments)
		case d.ParentID == "":
			v.showThought(d.Text)
		}
	case protocol.ItemToolCall:
		v.showTool(d)
	case protocol.ItemNotice:
		if d.Subtype != "gates" { // gates have their own events
			v.remark(d.Text)
		}
	}
}

// within shows something of the tool call that the last lines are about.
func (v *View) within(show func()) {
	last := v.last
	show()
	v.last = last
}

// showTool shows the start or the end of a tool call. The end does not repeat what the lines directly above
// say, and a denial says nothing more than the user's answer.
func (v *View) showTool(d *protocol.Item) {
	if !d.Ended() {
		if v.held = nil; v.tools[d.Key] == nil && d.Status == "pending" {
			v.held, v.heldAt = d, time.Now()
			return
		}
		v.showStart(d)
		return
	}
	if held := v.held; held != nil {
		v.held = nil
		if hasNoInput(held) || !hasNoInput(d) {
			held = d
		}
		v.showStart(held)
	}
	tool, mark, word := term.Line(cmp.Or(d.Title, d.ToolName)), "✓ ", "done"
	if d.Status == "failed" {
		mark, word = "✗ ", "failed"
	}
	switch {
	case d.RefusedBy != "" && d.Status == "failed":
		v.showRefused(d, tool)
		return
	case v.last == d.Key && d.Key != "":
		tool = word
	}
	v.aside(v.nested(d)+mark+tool, dim)
	if !v.status.printed { // otherwise its output was shown when it arrived
		v.showResult(d)
	}
	v.showAttachments(v.nested(d)+"  ", "tool", protocol.Value(d.Details).Attachments)
}

// showRefused says that a tool call was not run. The user knows what they have denied on this screen.
func (v *View) showRefused(d *protocol.Item, tool string) {
	switch {
	case v.denied[d.Key] && d.RefusedBy == "user" && d.Key != "":
	case v.last == d.Key && d.Key != "":
		v.aside(v.nested(d)+"⊘ not run, "+refusedBy(d), dim)
	default:
		v.aside(v.nested(d)+"⊘ "+tool+" — not run, "+refusedBy(d), dim)
	}
}

// mostCommand is how many lines of a command are shown when it starts.
const mostCommand = 6

// startedTool is a tool call whose start was shown.
type startedTool struct {
	heading string // as it was shown
	times   int
}

// mostStarts is how often the start of a tool call is shown: again if the agent changes its title.
const mostStarts = 2

// hasNoInput reports whether an agent has not sent the input of a tool call. claude-agent-acp sends it
// with a better title a moment after the start.
func hasNoInput(d *protocol.Item) bool {
	input := strings.TrimSpace(string(d.ToolInput))
	return input == "" || input == "{}" || input == "null"
}

// showHeld shows the start of the tool call that was held back.
func (v *View) showHeld() {
	if held := v.held; held != nil {
		v.held = nil
		v.showStart(held)
	}
}

// showStart shows the start of a tool call: its command as in a shell, or else its title. If it was
// shown before, it is shown again only if that has changed. A question about the command that follows
// does not repeat it.
func (v *View) showStart(d *protocol.Item) {
	title := term.Line(cmp.Or(d.Title, d.ToolName))
	command, _ := commandOf(Question{Tool: d.ToolName, Input: d.ToolInput})
	shown, heading := v.tools[d.Key], cmp.Or(command, title)
	switch {
	case shown == nil:
		shown = &startedTool{}
		v.tools[d.Key] = shown
	case shown.heading == heading, shown.times == mostStarts:
		return
	}
	shown.heading, shown.times = heading, shown.times+1
	v.showHeading(d, title)
	v.last = d.Key
}

func (v *View) showHeading(d *protocol.Item, title string) {
	q := Question{Tool: d.ToolName, Title: d.Title, Input: d.ToolInput}
	heading := sheetHeading(q, term.Marks).body
	if command, _ := commandOf(q); command == "" {
		v.aside(v.nested(d)+"● "+title, bold)
		v.announced = heading
		return
	}
	shown := heading[:min(len(heading), mostCommand)]
	for i, line := range shown {
		text := line.Text
		if i == 0 {
			text = strings.TrimPrefix(text, "? ")
		}
		v.aside(v.nested(d)+cutLine(text), lineColors[line.Kind])
	}
	if hidden := len(heading) - len(shown); hidden > 0 {
		v.aside(v.nested(d)+"  … "+term.Count(hidden, "more line"), dim)
	} else {
		v.announced = heading
	}
}

// nested returns the indentation of a tool call, which grows with the calls that it belongs
// to, such as that of a sub-agent.
func (v *View) nested(d *protocol.Item) string {
	depth, known := v.depths[d.Key]
	if !known || d.ParentID != "" {
		depth = 0
		if d.ParentID != "" {
			depth = v.depthBelow(d.ParentID)
		}
		v.depths[d.Key] = depth
	}
	return strings.Repeat("  ", depth)
}

// below returns the indentation of a part of a tool call.
func (v *View) below(call string) string { return strings.Repeat("  ", v.depthBelow(call)) }

// belowIfAny is below, or "" without a call.
func (v *View) belowIfAny(call string) string {
	if call == "" {
		return ""
	}
	return v.below(call)
}

func (v *View) depthBelow(call string) int { return min(v.depths[call]+1, mostNested) }

// mostNested limits how far nested sub-agents are indented.
const mostNested = 8

// showAttachments lists attachments and the commands that save them.
func (v *View) showAttachments(indent, role string, list []protocol.Attachment) {
	for _, a := range list {
		line := term.Line(a.Label())
		if how := howToSave(a); how != "" && role != "user" {
			line += " · " + term.Line(how)
		}
		v.aside(indent+line, dim)
	}
}

// refusedBy says who denied a tool call, and why.
func refusedBy(d *protocol.Item) string {
	text := "denied by " + d.RefusedBy
	if d.RefusedBy == "user" {
		text = "denied"
	}
	if d.Refusal != "" && d.Refusal != "denied" { // the default, which is no reason
		text += ": " + term.Line(d.Refusal)
	}
	return text
}

// refusal shows what a rule or a mode has denied without a question.
func (v *View) refusal(d *protocol.ApprovalClosedEvent) {
	if d.Status != "denied" || v.json || !strings.HasPrefix(d.DecidedBy, "rule=") && !strings.HasPrefix(d.DecidedBy, "mode=") {
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

// showDiff shows the changes in a file.
func (v *View) showDiff(d *protocol.ChangeEvent) {
	v.lines(Diff(d.Diff, term.Marks))
	switch {
	case d.Binary:
		v.Note(d.Path + " has changed; it is binary")
	case d.Truncated:
		v.Note(fmt.Sprintf("%s: the rest of this change is too long to show; the whole change is +%d −%d lines", d.Path, d.Added, d.Removed))
	}
}

// propose notes the changes that a question shows. They are not shown again when they are made.
func (v *View) propose(diffs []string) {
	for _, diff := range diffs {
		for _, line := range changedLines(diff) {
			v.proposed[line] = true
		}
	}
}

// wasProposed reports whether questions have shown all lines of a change, which is made now.
func (v *View) wasProposed(unified string) bool {
	changed := changedLines(unified)
	if len(changed) == 0 || slices.ContainsFunc(changed, func(line string) bool { return !v.proposed[line] }) {
		return false
	}
	for _, line := range changed {
		delete(v.proposed, line)
	}
	return true
}

// changedLines returns the added and removed lines of the diff of one file, each with the file and
// its place before the change. Diffs of the same change may have different lines around it.
func changedLines(unified string) (changed []string) {
	file, _, _ := strings.Cut(unified, "\n@@ ")
	for _, h := range diff.Hunks(unified) {
		at := h.OldStart
		if h.OldLines == 0 { // the header names the line before
			at++
		}
		for line := range strings.Lines(h.Body) {
			if line[0] == '+' || line[0] == '-' {
				changed = append(changed, fmt.Sprintf("%s\n%d%s", file, at, line))
			}
			if line[0] == ' ' || line[0] == '-' {
				at++
			}
		}
	}
	return changed
}

// ShowDiff prints a unified diff.
func (v *View) ShowDiff(diff string) { v.lines(Diff(diff, term.Marks)) }

// say prints the agent's text.
func (v *View) say(text string) {
	v.last = ""
	if v.asking {
		v.endLine()
	}
	if line, rest, ends := strings.Cut(text, "\n"); ends && len(v.remarks.texts) > 0 {
		remarks := v.remarks
		v.remarks.texts = nil
		v.say(line + "\n")
		v.remarks = remarks
		v.release()
		if text = rest; text == "" {
			return
		}
	}
	v.status.spoken, v.announced = time.Now(), nil
	if v.words != nil {
		text = term.Marks.Signs(text)
	}
	switch {
	case v.rendered != nil:
		v.rendered.Columns = v.region.Columns()
		v.region.Print(v.rendered.Next(text), v.rows()...)
		return
	case v.words != nil && v.talk.hasBox():
		text = v.partial + v.words.Next(text)
		ends := strings.LastIndexByte(text, '\n') + 1
		v.partial = text[ends:]
		v.region.Print(text[:ends], v.rows()...)
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

// endMessage ends the current message of the agent.
func (v *View) endMessage() {
	v.endLine()
	if v.rendered != nil {
		v.render()
	}
}

// mostResult is how many lines of a tool result are shown, and how many of them are its last.
const (
	mostResult = 6
	lastResult = 2
)

// leastCut is the smallest size, in bytes, of a result that an event has shortened.
const leastCut = domain.MaxEventText - utf8.UTFMax

// showResult shows the first and the last lines of a tool result. If the event has only the
// beginning, it shows the first lines and says how to read the whole result.
func (v *View) showResult(d *protocol.Item) {
	text := strings.Trim(strings.ReplaceAll(visible.WithoutColors(d.Result), "\r\n", "\n"), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	lines := strings.Split(text, "\n")
	if d.Truncated && len(d.Result) >= leastCut {
		lines = append(lines[:min(len(lines), mostResult-lastResult)],
			"… the rest is too long to show here: duet-rpc session show "+v.session.Name)
	} else if hidden := len(lines) - mostResult; hidden > 1 {
		lines = append(append(lines[:mostResult-lastResult:mostResult-lastResult], "… "+term.Count(hidden, "more line")),
			lines[len(lines)-lastResult:]...)
	}
	for _, line := range lines {
		line = line[strings.LastIndexByte(line, '\r')+1:] // of a progress bar, only the final state
		v.aside(v.nested(d)+"  "+cutLine(line), dim)
	}
}

// status is the last line of the terminal during a turn. It shows the elapsed time and the
// agent's activity, or how long the agent has been silent.
type status struct {
	ticking bool                  // a ticker redraws the line
	began   time.Time             // of the turn
	spoken  time.Time             // of the agent's last text
	tool    string                // the running tool; or ""
	printed bool                  // the tool's terminal has shown output
	silent  *protocol.SilentEvent // nil: the agent is not silent
	noted   bool                  // a permanent line has reported all about the silence
	step    int                   // of the spinner
}

// tick is the interval for redrawing the status line. beat is how long after the agent's last
// text the line appears.
const (
	tick = 250 * time.Millisecond
	beat = time.Second
)

// follow updates the status from an event.
func (s *status) follow(event any) {
	switch d := event.(type) {
	case *protocol.TurnStateEvent:
		if d.State != domain.Running {
			s.silent, s.noted, s.tool = nil, false, ""
		}
	case *protocol.Item:
		switch {
		case d.Type != protocol.ItemToolCall:
		case d.Ended():
			s.tool = ""
		default:
			if s.tool == "" {
				s.printed = false
			}
			s.tool = cmp.Or(d.Title, d.ToolName)
		}
	}
}

// agentSilent handles an event about the agent's silence.
func (v *View) agentSilent(d *protocol.SilentEvent) {
	s := &v.status
	switch {
	case d.Ended:
		s.silent, s.noted = nil, false
	case v.region != nil && s.ticking:
		if v.rendered == nil { // the unfinished line has no room for it
			v.endLine()
		}
		s.silent = d
	case !s.noted:
		s.noted = d.Note != ""
		v.remark(silentText(v.session.Agent, d))
	}
	v.draw()
}

// draw redraws the region.
func (v *View) draw() {
	if v.region != nil && !v.asking && !v.midLine {
		v.region.Draw(v.rows()...)
	}
}

// rows returns the last lines of the terminal: the agent's incomplete text, and the status.
func (v *View) rows() (rows []string) {
	if v.rendered != nil {
		if text := v.rendered.Pending(); text != "" {
			rows = term.Rows(text, v.region.Columns())
		}
	}
	if v.partial != "" {
		rows = term.Rows(v.partial, v.region.Columns())
	}
	if line := v.statusLine(); line != "" {
		for _, row := range v.statusRows(line) {
			rows = append(rows, v.paint(row, dim))
		}
	}
	if v.talk.hasBox() {
		rows = append(rows, v.talk.rows(v.region.Columns())...)
	}
	return rows
}

// mostSilence is how many rows of the terminal say that the agent is silent, and how many of them
// are the last, which say when it tries again.
const (
	mostSilence = 4
	lastSilence = 2
)

// statusRows returns the rows of the status line: one, or several about a silent agent.
func (v *View) statusRows(line string) []string {
	columns := v.region.Columns()
	if v.status.silent == nil {
		return []string{term.CutToFit(line, columns)}
	}
	rows := strings.Split(term.Wrapped(line, columns, "  "), "\n")
	if hidden := len(rows) - mostSilence; hidden > 0 {
		rows = append(rows[:mostSilence-lastSilence], rows[len(rows)-lastSilence:]...)
		rows[mostSilence-lastSilence] = "… " + strings.TrimSpace(rows[mostSilence-lastSilence])
	}
	for i, row := range rows {
		rows[i] = term.CutToFit(row, columns) // a word may be wider than the terminal
	}
	return rows
}

// statusLine returns the status line, or "".
func (v *View) statusLine() string {
	s := &v.status
	switch {
	case !s.ticking, time.Since(s.spoken) < beat:
		return ""
	case s.silent != nil:
		return "— " + term.Line(silentText(v.session.Agent, s.silent))
	}
	turning := term.Spinner()
	text := turning[s.step%len(turning)] + " " + term.Duration(time.Since(s.began).Truncate(time.Second))
	if s.tool != "" {
		text += " · " + term.Line(s.tool)
	}
	return text
}

// work starts the status line of a turn. The caller must call ticked for each tick until it
// calls stop. ticks is nil if nothing is drawn.
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
	if v.held != nil && time.Since(v.heldAt) >= beat {
		v.showHeld()
	}
	v.draw()
}

// silentText says how long an agent has been silent.
func silentText(agent string, d *protocol.SilentEvent) string {
	return term.Silence(agent, d.Since, d.ToolTitle, d.Note)
}
