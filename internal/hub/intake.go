package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/executorcall"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// Intake takes in what agents report.
func (h *Hub) Intake() *intake.Intake { return h.intake }

// ExecutorCalls answers what executors ask, and clients that have a token as they do.
func (h *Hub) ExecutorCalls() *executorcall.Calls { return h.calls }

// A daemon is the hub as executors see it.
type daemon struct {
	ownTurns
	*executorcall.Calls
	*intake.Intake
	*credential.Keys
	*terminal.Registry
	*usercommand.Runner
}

// forIntake is the hub as the intake of reports sees it.
type forIntake struct{ hub *Hub }

// RunOf is as of [intake.Runs].
func (f forIntake) RunOf(ctx context.Context, token, task string) (int64, error) {
	known, err := f.hub.calls.TokenOf(ctx, token, task)
	return known.Run, err
}

// GoesOn is as of [intake.Runs]: what an agent says is not wanted any more once
// its run was ended, nor while a full disk does not let it end, since what room
// there is is needed for that.
func (f forIntake) GoesOn(run int64) bool {
	return f.hub.liveRun(run) != nil && !f.hub.cutShort.Has(run)
}

// Changed is as of [intake.Runs].
func (f forIntake) Changed(t store.Tx, run int64) { f.hub.query.Changed(t, run) }
