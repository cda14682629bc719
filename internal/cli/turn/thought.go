package turn

import (
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

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
