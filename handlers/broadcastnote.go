package handlers

import (
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A note is one broadcast that waits: a message, or output.
type note struct {
	task    int64
	seq     int64
	message *dialect.Notification // nil: output
	last    bool                  // the task has ended
	chunk   string                // of output that comes
	output  []byte                // of output that waits
}

// noteOf is what an event means for those who watch tasks, or nil. s is the
// session as it is now: it may have gone on since.
func noteOf(e domain.Event, s domain.Session) *note {
	if s.Task == 0 {
		return nil
	}
	switch p := e.Payload.(type) {
	case domain.MessageDelta:
		if !p.Thought && p.Text != "" {
			return &note{task: s.Task, seq: e.Seq, chunk: p.Text}
		}
	case domain.RunStateChanged:
		if message := dialect.TaskChanged(p.To, s, e.Seq); message != nil {
			return &note{task: s.Task, seq: e.Seq, message: message, last: p.To.Ended()}
		}
	}
	return nil
}
