package turn

import (
	"fmt"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Colours and weights, as ECMA-48 numbers them (SGR).
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// lineColors are the colours of the lines of a question.
var lineColors = map[questionKind]string{
	questionHeading: bold, input: "", fileName: bold, hunk: cyan, added: green, removed: red, Remark: dim,
}

// Note says something. Only its first line is at the margin, where ours are: the
// text may be an agent's.
func (v *View) Note(text string) {
	v.aside(term.Lines(v.side, "— "+term.Indented(term.Exact(text))), dim)
}

// heldAtMost is how long a remark waits for the end of a line that the agent is writing:
// it may say why the agent has stopped in the middle of it.
const heldAtMost = time.Second

// held are remarks that wait for the end of a line.
type held struct {
	texts []string
	due   <-chan time.Time // when they wait no longer; nil: there are none
}

// remark is Note for what is told beside the agent's words, and does not end them: above what
// of them is drawn, or once their line has ended.
func (v *View) remark(text string) {
	switch {
	case v.asking:
		v.Note(text)
	case v.rendered != nil && v.rendered.Pending() != "" && (v.watched || v.side == v.out):
		v.region.Above(v.noted(text))
	case v.rendered != nil && v.rendered.Pending() != "": // side is elsewhere
		fmt.Fprint(v.side, v.noted(text))
	case v.midLine:
		if v.held.due == nil {
			v.held.due = time.After(heldAtMost)
		}
		v.held.texts = append(v.held.texts, text)
	default:
		v.Note(text)
	}
}

// noted is a note as it is printed.
func (v *View) noted(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(term.Lines(v.side, "— "+term.Indented(term.Exact(text))), "\n") {
		b.WriteString(v.paint(term.Exact(line), dim) + "\n")
	}
	return b.String()
}

// release prints the remarks that wait. The line has ended, or side is elsewhere.
func (v *View) release() {
	texts := v.held.texts
	v.held = held{}
	for _, text := range texts {
		fmt.Fprint(v.side, v.noted(text))
	}
}

// heldLong prints the remarks that have waited long: the agent has stopped in the middle of
// a line. What goes into a pipe or a file stays whole.
func (v *View) heldLong() {
	switch {
	case v.words != nil:
		v.endLine()
		return
	case v.watched: // the line may stand there, too
		fmt.Fprintln(v.side)
	}
	v.release()
}

// lines prints lines that were laid out.
func (v *View) lines(list []QuestionLine) {
	v.endLine()
	for _, line := range list {
		switch line.Kind {
		case Remark, questionHeading, questionText: // words
			v.aside(term.Lines(v.side, line.Text), lineColors[line.Kind])
			continue
		}
		fmt.Fprintln(v.side, v.paint(line.Text, lineColors[line.Kind]))
	}
}

// aside prints lines on side, in a colour on a terminal.
func (v *View) aside(text, color string) {
	v.endLine()
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(v.side, v.paint(term.Exact(line), color))
	}
}

// ask prints what somebody is asked, below lines that were printed and are taken away
// with it when something else is shown.
func (v *View) ask(heading []QuestionLine, prompt string) {
	columns, _, _ := term.Size(v.side)
	prompt = fitting(prompt, columns)
	fmt.Fprint(v.side, prompt)
	v.asking, v.asked = true, prompt
	for _, line := range heading {
		v.asked = term.Lines(v.side, line.Text) + "\n" + v.asked
	}
}

// takeAway takes away what somebody is asked, which is asked again below what comes now,
// where the terminal can do that.
func (v *View) takeAway() {
	columns, _, ok := term.Size(v.side)
	if !v.asking || !v.redraws || !ok || columns == 0 {
		return
	}
	up := -1
	for line := range strings.SplitSeq(v.asked, "\n") {
		up += 1 + max(0, displaywidth.String(line)-1)/columns
	}
	back := "\r\x1b[J"
	if up > 0 {
		back = fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
	}
	fmt.Fprint(v.side, back)
	v.asking = false
}

func (v *View) paint(text, color string) string {
	if !v.color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// endLine ends the line on out, or that of a question on side, if one is begun, and
// takes away what is drawn over: whatever comes next stays.
func (v *View) endLine() {
	if v.rendered != nil {
		v.rendered.Columns = v.region.Columns()
		v.region.Print(v.rendered.End())
	}
	v.hide()
	if v.beside {
		v.takeAway()
	}
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
	v.release()
}

// hide takes what is drawn over away.
func (v *View) hide() {
	if v.region != nil {
		v.region.Clear()
	}
}

// widestResult is how much of a line of what a tool or a gate gives back is shown, in
// characters.
const widestResult = 200

func cutLine(line string) string { return term.Cut(term.Exact(line), widestResult) }

// mostThought is how many lines of a thought are shown, and how many of them are its
// last.
const (
	mostThought = 12
	lastThought = 2
)

// showThought shows what an agent has thought, where a human looks on: faint, with
// its Markdown rendered where the agent's words are. The transcript has all of it.
func (v *View) showThought(text string) {
	text = strings.TrimSpace(text)
	if !v.watched || text == "" {
		return
	}
	v.endLine()
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

// A gateWatch follows the gates of the session that is shown.
type gateWatch struct {
	checked int  // how many results have come since the turn ended
	over    bool // nothing more comes of the work
}

// isOver reports whether nothing more comes of the session with an event: its turn has ended,
// and its gates were checked.
func (v *View) isOver(kind string, d wire.EventData) bool {
	switch {
	case kind == protocol.TypeStatus && wire.Ended(d.State):
		v.gates.checked = 0
		return v.session.Gates == nil || d.State != wire.Completed
	case kind == protocol.TypeGate:
		v.gates.checked++
		return v.gates.checked >= len(v.session.Gates.Named())
	}
	v.gates.over = v.gates.over || kind == protocol.TypeGatesEnded
	return kind == protocol.TypeGatesEnded
}

// awaitsMore reports whether more is to be told of a session whose turn has ended.
func (g *gateWatch) awaitsMore(s protocol.Session) bool {
	if s.AreChecked() {
		g.checked = 0 // another hub checks them again
		return true
	}
	return s.Gates.IsOver() && s.Gates.SessionID == s.ID && s.Status == wire.Completed && !g.over
}

// What is shown of a gate that fails.
const (
	findingsShown = 5
	outputShown   = 6 // lines, the last ones
)

// showGate shows an event of gates.
func (v *View) showGate(kind string, d wire.EventData) {
	switch kind {
	case protocol.TypeIteration:
		if d.Iteration == 1 {
			v.Note(fmt.Sprintf("has to pass %s, within %s", strings.Join(d.Gates, ", "), term.Count(d.MaxIterations, "turn")))
		} else {
			v.Note(fmt.Sprintf("turn %d of %d", d.Iteration, d.MaxIterations))
		}
	case protocol.TypeGateStart:
		v.status.tool = d.Gate
		v.aside("◇ "+d.Gate, bold)
	case protocol.TypeGate:
		v.status.tool = ""
		if r := d.GateResult(); r.Passed {
			v.aside("✓ "+r.Outcome(), dim)
		} else {
			v.aside("✗ "+r.Outcome(), bold)
			v.showFailure(r)
		}
	}
}

// showFailure shows what is wrong, as far as that is known, else the end of the output.
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
