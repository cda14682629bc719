package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Intake takes in what agents report.
func (h *Hub) Intake() *intake.Intake { return h.intake }

// A daemon is the hub as executors see it.
type daemon struct {
	*Hub
	*intake.Intake
}

// forIntake is the hub as the intake of reports sees it.
type forIntake struct{ hub *Hub }

// RunOf is as of [intake.Runs].
func (f forIntake) RunOf(ctx context.Context, token, task string) (int64, error) {
	known, _, err := f.hub.speakerOf(ctx, token, task)
	return known.Run, err
}

// GoesOn is as of [intake.Runs]: what an agent says is not wanted any more once
// its run was ended, nor while a full disk does not let it end, since what room
// there is is needed for that.
func (f forIntake) GoesOn(run int64) bool {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	_, doomed := f.hub.doomed[run]
	return f.hub.live[run] != nil && !doomed
}

// Changed is as of [intake.Runs].
func (f forIntake) Changed(t store.Tx, run int64) { f.hub.forget(t, run) }

// NoRoom is as of [intake.Health].
func (f forIntake) NoRoom(err error) { f.hub.diskIsFull(err) }

// ReportsLost is as of [intake.Health].
func (f forIntake) ReportsLost(error) {
	f.hub.setIssue("store", "events could not be kept; run `duet-rpc doctor`")
}
