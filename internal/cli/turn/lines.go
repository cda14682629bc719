package turn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Colours and weights, with their ECMA-48 (SGR) numbers.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// lineColors are the colours of the lines of a question.
var lineColors = map[questionKind]string{
	questionHeading: bold, commandLine: bold, input: "", fileName: bold, hunk: cyan, added: green, removed: red, Remark: dim,
}

// Note prints a message. It indents all lines but the first, because the text may come from an
// agent and must not look like another message.
func (v *View) Note(text string) {
	if v.Named != nil {
		text = v.Named(text)
	}
	v.aside(term.Lines(v.side, "— "+term.Indented(term.Exact(text))), dim)
}

// maxRemarkDelay is how long a remark waits for the end of the agent's current line. It may
// explain why the agent has stopped there.
const maxRemarkDelay = time.Second

// pendingRemarks are remarks that wait for the end of a line.
type pendingRemarks struct {
	texts []string
	due   <-chan time.Time // when they are printed anyway; nil: there are none
}

// remark is Note for messages that do not end the agent's text. They appear above the text
// that is still being drawn, or after the current line.
func (v *View) remark(text string) {
	switch {
	case v.asking:
		v.Note(text)
	case v.rendered != nil && v.rendered.Pending() != "" && (v.watched || v.side == v.out):
		v.region.Above(v.noted(text))
	case v.rendered != nil && v.rendered.Pending() != "": // side is another file
		fmt.Fprint(v.side, v.noted(text))
	case v.midLine:
		if v.remarks.due == nil {
			v.remarks.due = time.After(maxRemarkDelay)
		}
		v.remarks.texts = append(v.remarks.texts, text)
	default:
		v.Note(text)
	}
}

// noted formats a note.
func (v *View) noted(text string) string {
	v.last = ""
	var b strings.Builder
	for line := range strings.SplitSeq(term.Lines(v.side, "— "+term.Indented(term.Exact(text))), "\n") {
		b.WriteString(v.paint(term.Exact(line), dim) + "\n")
	}
	return b.String()
}

// release prints the waiting remarks. The line has ended, or side is another file.
func (v *View) release() {
	texts := v.remarks.texts
	v.remarks = pendingRemarks{}
	for _, text := range texts {
		fmt.Fprint(v.side, v.noted(text))
	}
}

// releaseLate prints the remarks after the agent has stopped in the middle of a line. It does not
// break a line in a pipe or a file.
func (v *View) releaseLate() {
	switch {
	case v.words != nil:
		v.endLine()
		return
	case v.watched: // the unfinished line may be on the same terminal
		fmt.Fprintln(v.side)
	}
	v.release()
}

// lines prints laid-out lines.
func (v *View) lines(list []QuestionLine) {
	v.endLine()
	if len(list) > 0 {
		v.last = ""
	}
	for _, line := range list {
		for text := range strings.SplitSeq(v.fitted(line), "\n") {
			fmt.Fprintln(v.side, v.paint(text, lineColors[line.Kind]))
		}
	}
}

// fitted breaks a line of words to fit on the terminal. A line of code stays whole.
func (v *View) fitted(line QuestionLine) string {
	switch line.Kind {
	case Remark, questionHeading, questionText:
		return term.Exact(term.Lines(v.side, line.Text))
	}
	return line.Text
}

// question prints a question. It leaves out the heading that the lines above show already, and the start of
// its tool call does not repeat the heading.
func (v *View) question(q hubclient.Approval, list []QuestionLine) {
	n := len(v.announced)
	if len(list) >= n && slices.Equal(list[:n], v.announced) && (len(list) == n || list[n].Kind != commandLine) {
		list = list[n:]
	}
	v.lines(list)
	if v.last = q.ToolUseID; v.last != "" && v.tools[v.last] == nil {
		command, _ := commandOf(Question{Tool: q.ToolName, Input: q.ToolInput})
		v.tools[v.last] = &startedTool{heading: cmp.Or(command, term.Line(cmp.Or(q.Title, q.ToolName))), times: 1}
	}
}

// aside prints lines on side, coloured on a terminal.
func (v *View) aside(text, color string) {
	v.endLine()
	v.last = ""
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(v.side, v.paint(term.Exact(line), color))
	}
}

// ask prints a prompt below heading. takeAway removes both when other output appears.
func (v *View) ask(heading []QuestionLine, prompt string) {
	columns, _, _ := term.Size(v.side)
	prompt = fitting(prompt, columns)
	fmt.Fprint(v.side, prompt)
	v.asking, v.asked, v.answer, v.after = true, prompt, "", ""
	for _, line := range heading {
		v.asked = v.fitted(line) + "\n" + v.asked
	}
}

// typing shows what the user has typed so far after the prompt, with the cursor between before and after.
func (v *View) typing(before, after string) {
	before, after = onOneLine(before), onOneLine(after)
	text := before + after
	if !v.asking || text == v.answer && after == v.after {
		return
	}
	v.toEnd()
	prompt := strings.TrimSuffix(v.asked, v.answer)
	last := strings.LastIndexByte(prompt, '\n') + 1
	if added, ok := strings.CutPrefix(text, v.answer); ok {
		fmt.Fprint(v.side, added)
	} else {
		v.erase(v.asked[last:])
		fmt.Fprint(v.side, prompt[last:]+text)
	}
	v.asked, v.answer = prompt+text, text
	v.back(prompt[last:]+text, after)
}

func onOneLine(text string) string { return term.Exact(strings.ReplaceAll(text, "\n", "⏎")) }

// back puts the cursor before the end of a line of the screen that it has just written.
func (v *View) back(line, end string) {
	columns, _, ok := term.Size(v.side)
	if end == "" || !ok || columns == 0 {
		return
	}
	width := displaywidth.String(line)
	at := width - displaywidth.String(end)
	if up := max(0, width-1)/columns - at/columns; up > 0 {
		fmt.Fprintf(v.side, "\x1b[%dA", up)
	}
	fmt.Fprint(v.side, "\r")
	if right := at % columns; right > 0 {
		fmt.Fprintf(v.side, "\x1b[%dC", right)
	}
	v.after = end
}

// toEnd puts the cursor at the end of what the user has typed.
func (v *View) toEnd() {
	fmt.Fprint(v.side, v.after)
	v.after = ""
}

// typed shows the whole answer, and ends the line.
func (v *View) typed(text string) {
	v.typing(text, "")
	fmt.Fprintln(v.side)
	v.asking = false
}

// takeAway removes a prompt from the screen, if the terminal can do that. It is printed again
// below the next output.
func (v *View) takeAway() {
	if v.asking {
		v.toEnd()
	}
	if v.asking && v.redraws && v.erase(v.asked) {
		v.asking = false
	}
}

// erase removes the text before the cursor. It returns false if the terminal's size is unknown.
func (v *View) erase(text string) bool {
	columns, _, ok := term.Size(v.side)
	if !ok || columns == 0 {
		return false
	}
	up := -1
	for line := range strings.SplitSeq(text, "\n") {
		up += 1 + max(0, displaywidth.String(line)-1)/columns
	}
	back := "\r\x1b[J"
	if up > 0 {
		back = fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
	}
	fmt.Fprint(v.side, back)
	return true
}

func (v *View) paint(text, color string) string {
	if !v.color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// endLine ends an unfinished line of text on out or of a prompt on side, and removes the drawn
// region, so that later output stays on the screen.
func (v *View) endLine() {
	v.announced = nil
	if v.rendered != nil {
		v.rendered.Columns = v.region.Columns()
		v.region.Print(v.rendered.End())
	}
	if v.partial != "" {
		text := v.partial + "\n"
		v.partial = ""
		v.region.Print(text)
	}
	v.hide()
	if v.beside {
		v.takeAway()
	}
	if v.asking {
		v.toEnd()
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
	v.release()
}

// hide removes the drawn region.
func (v *View) hide() {
	if v.region != nil {
		v.region.Clear()
	}
}

// widestResult is how many characters of a line of a tool or gate result are shown.
const widestResult = 200

func cutLine(line string) string { return term.Cut(term.Exact(line), widestResult) }

// mostThought is how many lines of a thought are shown, and how many of them are its last.
const (
	mostThought = 12
	lastThought = 2
)

// showThought shows the agent's thoughts on a terminal, in faint colour. It renders Markdown
// if the agent's text is rendered. The transcript has the whole text.
func (v *View) showThought(text string) {
	text = strings.TrimSpace(text)
	if !v.watched || text == "" {
		return
	}
	v.endLine()
	v.last = ""
	lines := strings.Split(term.Exact(text), "\n")
	if v.rendered != nil && v.color {
		r := term.Renderer{Columns: v.region.Columns() - 2, Marks: term.Marks, Dim: true}
		lines = strings.Split(strings.TrimRight(r.Text(text), "\n"), "\n")
	}
	if hidden := len(lines) - mostThought; hidden > 1 {
		more := v.paint("… "+term.Count(hidden, "more line"), dim)
		lines = append(append(lines[:mostThought-lastThought:mostThought-lastThought], more), lines[len(lines)-lastThought:]...)
	}
	for i, line := range lines {
		mark := "  "
		if i == 0 {
			mark = v.paint("✻ ", dim)
		}
		fmt.Fprintln(v.side, mark+line)
	}
}

// gateWatch follows the gates of the turn that is shown.
type gateWatch struct {
	checked int  // how many results have arrived since the turn ended
	over    bool // no more results will arrive
}

// isOver reports whether the turn is complete with an event: it has ended and its gates
// have run.
func (v *View) isOver(event any) bool {
	switch d := event.(type) {
	case *protocol.TurnStateEvent:
		if !d.State.Ended() {
			return false
		}
		v.gates.checked = 0
		return v.session.Gates == nil || d.State != domain.Completed
	case *protocol.GateResultEvent:
		v.gates.checked++
		return v.gates.checked >= len(v.session.Gates.Named())
	case *protocol.GatesEndedEvent:
		v.gates.over = true
		return true
	}
	return false
}

// awaitsMore reports whether events of gates are still to come after the turn has ended.
func (g *gateWatch) awaitsMore(s protocol.Turn) bool {
	if s.AreChecked() {
		g.checked = 0 // another hub runs them again
		return true
	}
	return s.Gates.IsOver() && s.Gates.TurnUUID == s.ID && s.State == domain.Completed && !g.over
}

// Limits for the output of a failed gate.
const (
	findingsShown = 5
	outputShown   = 6 // lines, from the end
)

// showGate shows an event of gates.
func (v *View) showGate(event any) {
	switch d := event.(type) {
	case *protocol.GateIterationEvent:
		if d.Iteration == 1 {
			v.Note(fmt.Sprintf("must pass %s within %s", strings.Join(d.Gates, ", "), term.Count(d.MaxIterations, "turn")))
		} else {
			v.Note(fmt.Sprintf("turn %d of %d", d.Iteration, d.MaxIterations))
		}
	case *protocol.GateStartedEvent:
		v.status.tool = d.Gate
		v.aside("◇ "+d.Gate, bold)
	case *protocol.GateResultEvent:
		v.status.tool = ""
		if r := d.GateResult; r.Passed {
			v.aside("✓ "+r.Outcome(), dim)
		} else {
			v.aside("✗ "+r.Outcome(), bold)
			v.showFailure(r)
		}
	}
}

// showFailure shows the known problems, or else the end of the output.
func (v *View) showFailure(r protocol.GateResult) {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, f.Text())
	}
	if left := len(lines) - findingsShown; left > 1 {
		lines = append(lines[:findingsShown], fmt.Sprintf("… %d more", left))
	}
	if len(lines) == 0 && r.Output != "" {
		lines = strings.Split(r.Output, "\n")
		if left := len(lines) - outputShown; left > 1 {
			lines = append([]string{fmt.Sprintf("… %d lines before", left)}, lines[left:]...)
		}
	}
	for _, line := range lines {
		v.aside("  "+cutLine(line), dim)
	}
}
