package threadsettings

import (
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// setModes changes the mode of a thread's runs that have not ended. Ended runs keep theirs; later
// runs begin with the thread's.
func (ts *Settings) setModes(t store.Tx, thread *domain.Thread, mode string) error {
	last, err := t.LastRun(ts.ctx, thread.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	thread.Settings.ModeRun = last.ID
	runs, err := t.UnfinishedRuns(ts.ctx, thread.ID)
	if err != nil {
		return err
	}
	for _, run := range runs {
		agentMode := run.AgentMode
		if run.State == domain.Draft || run.State == domain.Queued {
			agentMode = "" // the mode in which the agent would have continued
		}
		if run.Mode == mode && run.AgentMode == agentMode {
			continue
		}
		run.Mode, run.AgentMode = mode, agentMode
		if err := t.UpdateRun(run); err != nil {
			return err
		}
	}
	return nil
}
