package hub

import (
	"context"
	"maps"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/fulldisk"
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

const (
	reasonDiskFull  = "disk_full"
	messageDiskFull = "the disk is full, so this could not go on; free some space and continue it"
)

func (f forFullDisk) FailFull(t store.Tx, run domain.Run) error {
	return f.hub.transition(t, &run, domain.Failed, outcome{
		code: domain.CodeStoreFull, reason: reasonDiskFull, leaveOpen: true, leaveApprovals: true, message: messageDiskFull,
	})
}

func (f forFullDisk) AnnounceFull(run domain.Run) {
	e := run.Event(domain.RunStateChanged{
		From: run.State, To: domain.Failed, Title: run.Title, Agent: run.Agent, Reason: reasonDiskFull, Error: messageDiskFull, ErrorCode: domain.CodeStoreFull,
	})
	f.hub.events.Publish(e)
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.hub.endAwaiting(run.ID)
}

// unstored gives a session the state failed where a full disk has ended it, and that is
// not stored yet.
func (f forFullDisk) unstored() (overlay func(*domain.Session)) {
	runs := f.hub.cutShort.Runs()
	if len(runs) == 0 {
		return nil
	}
	return func(s *domain.Session) {
		if fulldisk.CanEnd(s.State) && slices.Contains(runs, s.Run.ID) {
			s.State, s.Error, s.ErrorCode = domain.Failed, messageDiskFull, domain.CodeStoreFull
		}
	}
}
