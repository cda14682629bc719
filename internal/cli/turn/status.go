package turn

import (
	"cmp"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

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
	case kind == wire.EventStatus && d.State != "running":
		s.silent, s.noted, s.tool = nil, false, ""
	case kind != wire.EventConversation:
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
