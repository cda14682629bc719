package turn

import (
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A gateWatch follows the gates of the session that is shown.
type gateWatch struct {
	checked int  // how many results have come since the turn ended
	over    bool // nothing more comes of the work
}

// isOver reports whether nothing more comes of the session with an event: its turn has ended,
// and its gates were checked.
func (v *View) isOver(kind string, d wire.EventData) bool {
	switch {
	case kind == wire.EventStatus && wire.Ended(d.State):
		v.gates.checked = 0
		return v.session.Gates == nil || d.State != wire.Completed
	case kind == wire.EventGate:
		v.gates.checked++
		return v.gates.checked >= len(v.session.Gates.Named())
	}
	v.gates.over = v.gates.over || kind == wire.EventGatesEnded
	return kind == wire.EventGatesEnded
}

// awaitsMore reports whether more is to be told of a session whose turn has ended.
func (g *gateWatch) awaitsMore(s wire.Session) bool {
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
	case wire.EventIteration:
		if d.Iteration == 1 {
			v.Note(fmt.Sprintf("has to pass %s, within %s", strings.Join(d.Gates, ", "), term.Count(d.MaxIterations, "turn")))
		} else {
			v.Note(fmt.Sprintf("turn %d of %d", d.Iteration, d.MaxIterations))
		}
	case wire.EventGateStart:
		v.status.tool = d.Gate
		v.aside("◇ "+d.Gate, bold)
	case wire.EventGate:
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
func (v *View) showFailure(r wire.GateResult) {
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
