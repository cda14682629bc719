package conversation

import (
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// longSilence is the duration from which a silence without a complaint gets a note. Shorter ones
// may be a thinking model.
const longSilence = time.Minute

// Silence notes that a run's agent was silent, after the silence has ended. A complaint, such as a
// retried API call, explains the pause to a later reader. An open message continues after it.
func (w *Writer) Silence(t store.Tx, run domain.Run, s catalog.Silence) error {
	took := t.Now().Sub(time.UnixMilli(s.SinceMS))
	complaint := strings.TrimPrefix(strings.TrimPrefix(s.Note, catalog.Starting), "\n")
	if complaint == "" && (took < longSilence || s.Tool != "") {
		return nil
	}
	text := fmt.Sprintf("%s said nothing for %d s", run.Agent, int(max(0, took).Seconds()))
	if took >= 2*longSilence {
		text = fmt.Sprintf("%s said nothing for %d min", run.Agent, int(took.Minutes()))
	}
	if s.Tool != "" {
		text += ", in the middle of: " + s.Tool
	}
	if s.Note != "" {
		text += ": " + s.Note
	}
	return w.say(t, run, "agent_silent", text)
}
