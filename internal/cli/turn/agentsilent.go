package turn

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

// An agentSilence shows on side that the agent gives no sign of life: on a terminal
// a line that counts the seconds and goes when the agent goes on, elsewhere a
// line that stays.
type agentSilence struct {
	columns func() int   // of the terminal; 0: side is none, or nobody ticks
	ticker  *time.Ticker // while it is told
	event   wire.EventData
	shown   bool // the line stands on the terminal
	noted   bool // a line that stays has told all that there is
}

// terminalColumns is how wide the terminal is that is written to.
func terminalColumns(side io.Writer) func() int {
	return func() int {
		columns, _, _ := tty.Size(side)
		return columns
	}
}

// ticks tells when the line is to be drawn again; nil: never.
func (s *agentSilence) ticks() <-chan time.Time {
	if s.ticker == nil {
		return nil
	}
	return s.ticker.C
}

// stop ends the telling.
func (s *agentSilence) stop() {
	if s.ticker != nil {
		s.ticker.Stop()
		s.ticker = nil
	}
	s.noted = false
}

// agentSilent takes an event that tells of the agent's silence.
func (v *View) agentSilent(d wire.EventData) {
	v.endLine()
	s := &v.silence
	s.event = d
	switch {
	case d.Ended:
		s.stop()
	case s.columns != nil && s.columns() > 0:
		if s.ticker == nil {
			s.ticker = time.NewTicker(time.Second)
		}
		v.countSilence()
	case !s.noted:
		s.noted = d.Note != ""
		v.Note(silentText(v.session.Agent, d))
	}
}

// countSilence draws the line that counts anew.
func (v *View) countSilence() {
	if v.asking || v.silence.ticker == nil {
		return
	}
	if !v.silence.shown {
		v.endLine()
	}
	line := "— " + strings.Join(strings.Fields(output.Line(silentText(v.session.Agent, v.silence.event))), " ")
	if most := v.silence.columns() - 1; utf8.RuneCountInString(line) > most { // one that wraps could not be drawn over
		line = string([]rune(line)[:max(most-1, 0)]) + "…"
	}
	fmt.Fprint(v.side, "\r\x1b[K"+v.paint(line, dim))
	v.silence.shown = true
}

// silentText says for how long an agent has been silent.
func silentText(agent string, d wire.EventData) string {
	return output.Silence(agent, d.Since, d.ToolTitle, d.Note)
}
