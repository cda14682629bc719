package turn

import (
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
)

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
		v.region.Print(v.noted(text), v.rows()...)
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
	for line := range strings.SplitSeq(output.Lines(v.side, "— "+output.Indented(output.Exact(text))), "\n") {
		b.WriteString(v.paint(output.Exact(line), dim) + "\n")
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
