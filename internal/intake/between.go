package intake

import (
	"encoding/json"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// between says where a report comes from that an agent's executor makes while no
// prompt runs: from a conversation, after a task of it.
type between struct{ conversation, task string }

var errOthersTask = errors.New("the task is none of that conversation's")

// recordBetween keeps what an agent tells of its session while no prompt runs. It
// counts while its task is the last of the conversation: the next one is told
// everything when it begins.
func (w *recorder) recordBetween(t store.Tx, from between, s catalog.Session) error {
	run, err := w.runOf(t, from)
	if err != nil {
		return err
	}
	last, err := t.LastRun(w.ctx, run.Thread)
	if err != nil || last.ID != run.ID {
		return err
	}
	if thread, err := t.Thread(w.ctx, run.Thread); err != nil || thread.Agent != run.Agent { // another agent goes on there
		return err
	}
	if err := json.Unmarshal(w.opts.Keys(run.Thread).JSON(encode(s)), &s); err != nil {
		return err
	}
	if err := w.recordAgentSession(t, run, s); err != nil || s.Mode == nil || s.Mode.Current == "" {
		return err
	}
	return w.recordMode(t, run, catalog.Mode{Current: s.Mode.Current})
}

// runOf is the run that a report between two turns comes after.
func (w *recorder) runOf(t store.Tx, from between) (domain.Run, error) {
	id, err := t.Find(w.ctx, from.task)
	if err != nil {
		return domain.Run{}, err
	}
	run, err := t.Run(w.ctx, id)
	if err != nil {
		return run, err
	}
	thread, err := t.Thread(w.ctx, run.Thread)
	if err == nil && (run.UUID != from.task || thread.UUID != from.conversation) {
		err = errOthersTask
	}
	return run, err
}
