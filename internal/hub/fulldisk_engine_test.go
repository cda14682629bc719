package hub

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// fulldiskWorld fakes the runs, approvals and conversations that a full disk affects.
type fulldiskWorld struct {
	store store.Store
	room  chan struct{} // receives when space may be free

	mu                           sync.Mutex // guards the fields below
	full                         bool
	live                         []int64
	stopped, announced           []int64
	kept, settled, ended, failed []int64
}

func (w *fulldiskWorld) Change(ctx context.Context, change func(store.Tx) error) error {
	w.mu.Lock()
	full := w.full
	w.mu.Unlock()
	if full {
		return store.ErrFull
	}
	return w.store.Write(ctx, change)
}

func (w *fulldiskWorld) note(list *[]int64, run int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, run)
}

func (w *fulldiskWorld) Live() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live
}

func (w *fulldiskWorld) AnnounceFull(run domain.Run) { w.note(&w.announced, run.ID) }
func (w *fulldiskWorld) StopperOf(run int64) func()  { return func() { w.note(&w.stopped, run) } }

func (w *fulldiskWorld) FailFull(t store.Tx, run domain.Run) error {
	w.note(&w.failed, run.ID)
	run.State, run.ErrorCode = domain.Failed, domain.CodeStoreFull
	return t.UpdateRun(run)
}

func (w *fulldiskWorld) KeepQuestions(_ store.Tx, run domain.Run) error {
	w.note(&w.kept, run.ID)
	return nil
}

func (w *fulldiskWorld) SettleAnswers(_ store.Tx, run domain.Run, _ bool) error {
	w.note(&w.settled, run.ID)
	return nil
}

func (w *fulldiskWorld) End(_ store.Tx, run *domain.Run) error {
	w.note(&w.ended, run.ID)
	return nil
}

func (w *fulldiskWorld) awaitRoom(ctx context.Context) error {
	select {
	case <-w.room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add stores a run in a state and returns its id.
func (w *fulldiskWorld) add(t *testing.T, state domain.State) int64 {
	t.Helper()
	var run domain.Run
	require.NoError(t, w.store.Write(t.Context(), func(tx store.Tx) error {
		thread := domain.Thread{UUID: t.Name() + string(state), CWD: "/", Created: tx.Now(), Active: tx.Now()}
		if err := tx.InsertThread(&thread); err != nil {
			return err
		}
		run = domain.Run{UUID: thread.UUID, SessionID: "s" + thread.UUID, RunID: "r" + thread.UUID, Thread: thread.ID, State: state, Created: tx.Now(), Active: tx.Now()}
		return tx.InsertRun(&run)
	}))
	return run.ID
}

// hasRoom signals free space and returns when the cleanup is done.
func (w *fulldiskWorld) hasRoom(t *testing.T, c *cutShortByFullDisk) {
	t.Helper()
	c.DiskHasRoom()
	require.NoError(t, w.store.Write(t.Context(), func(store.Tx) error { return nil })) // waits for the cleanup
}

// Runs that are active on a full disk are stopped, and ended when space is free; their open items
// are closed then. A run that is being interrupted ends by itself.
func TestWhatAFullDiskCutsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "duet.db")
		s, err := sqlite.Open(t.Context(), path, store.Options{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, s.Close()) }()
		w := &fulldiskWorld{store: s, room: make(chan struct{}), full: true}
		runs, ending := w.add(t, domain.Running), w.add(t, domain.Interrupting)
		w.live = []int64{runs, ending}
		ctx, cancel := context.WithCancel(t.Context())
		c := newFullDisk(ctx, fullDiskOptions{Store: s, Runs: w, Questions: w, Conversation: w, AwaitRoom: w.awaitRoom, Logger: slog.New(slog.DiscardHandler)})
		c.DiskIsFull(store.ErrFull)
		c.DiskIsFull(store.ErrFull) // already handled
		synctest.Wait()
		assert.True(t, c.Has(runs))
		assert.Equal(t, []int64{runs}, w.stopped, "before there is room to say so")
		assert.Equal(t, []int64{runs}, w.announced, "clients do not wait for room")
		assert.Empty(t, w.failed)
		assert.True(t, c.Ends(domain.Run{ID: runs, State: domain.Running}))
		assert.False(t, c.Ends(domain.Run{ID: ending, State: domain.Interrupting}))

		later := w.add(t, domain.WaitingInput)
		w.mu.Lock()
		w.live = []int64{runs, ending, later}
		w.mu.Unlock()
		c.DiskIsFull(store.ErrFull)
		w.room <- struct{}{} // too little space
		synctest.Wait()
		assert.True(t, c.Has(runs))
		assert.Equal(t, []int64{runs, later}, w.announced, "a run that began meanwhile, too")
		assert.Equal(t, []int64{runs, later}, w.stopped)
		w.mu.Lock()
		w.full = false
		w.mu.Unlock()
		w.room <- struct{}{}
		synctest.Wait()
		assert.False(t, c.Has(runs))
		assert.False(t, c.Has(ending))
		assert.Equal(t, []int64{runs, later}, w.failed)
		assert.Equal(t, []int64{runs, later}, w.kept)
		assert.Empty(t, w.ended, "in as few bytes as can be")

		w.hasRoom(t, c)
		assert.Equal(t, []int64{runs, later}, w.ended)
		assert.Equal(t, []int64{runs, later}, w.settled)
		w.hasRoom(t, c)
		assert.Equal(t, []int64{runs, later}, w.ended, "once")

		cancel()
		require.NoError(t, c.Close(context.Background()))
		c.DiskIsFull(store.ErrFull) // a closed one starts nothing
		synctest.Wait()
		assert.Equal(t, []int64{runs, later}, w.failed)
	})
}

// The open items of a run are closed even if another transaction finds space before the run's end
// is stored.
func TestRoomThatComesBeforeTheEndIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "duet.db"), store.Options{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, s.Close()) }()
		w := &fulldiskWorld{store: s, room: make(chan struct{}), full: true}
		run := w.add(t, domain.Running)
		w.live = []int64{run}
		ctx, cancel := context.WithCancel(t.Context())
		c := newFullDisk(ctx, fullDiskOptions{Store: s, Runs: w, Questions: w, Conversation: w, AwaitRoom: w.awaitRoom, Logger: slog.New(slog.DiscardHandler)})
		c.DiskIsFull(store.ErrFull)
		synctest.Wait()
		w.hasRoom(t, c)
		assert.Empty(t, w.settled)
		w.mu.Lock()
		w.full = false
		w.mu.Unlock()
		w.room <- struct{}{}
		synctest.Wait()
		require.NoError(t, s.Write(t.Context(), func(store.Tx) error { return nil })) // waits for the cleanup
		assert.Equal(t, []int64{run}, w.settled)
		cancel()
		require.NoError(t, c.Close(t.Context()))
	})
}
