package hub

import (
	"context"
	"maps"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// forFullDisk is the life of runs as a full disk needs it, as of [fulldisk.Runs].
type forFullDisk struct{ hub *Hub }

func (f forFullDisk) Change(ctx context.Context, change func(store.Tx) error) error {
	return f.hub.change(ctx, change)
}

func (f forFullDisk) Live() []int64 {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	return slices.Collect(maps.Keys(f.hub.live))
}

func (f forFullDisk) StopperOf(run int64) func() {
	live := f.hub.liveRun(run)
	return func() { f.hub.stopAgent(live) }
}

func (f forFullDisk) FailFull(t store.Tx, run domain.Run) error {
	return f.hub.transition(t, &run, domain.Failed, outcome{
		code: domain.CodeStoreFull, reason: "disk_full", leaveOpen: true, leaveApprovals: true,
		message: "the disk is full, so this could not go on; free some space and continue it",
	})
}
