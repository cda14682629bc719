package hub

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// fullStore is a store whose disk the test fills.
type fullStore struct {
	store.Store
	full   atomic.Bool
	writes atomic.Int64 // writes without space

	hasRead func() // if set, runs after sessions are read and before they are returned
}

func (s *fullStore) Session(ctx context.Context, run int64) (domain.Session, error) {
	session, err := s.Store.Session(ctx, run)
	if s.hasRead != nil {
		s.hasRead()
	}
	return session, err
}

func (s *fullStore) Sessions(ctx context.Context, f domain.RunFilter) ([]domain.Session, error) {
	list, err := s.Store.Sessions(ctx, f)
	if s.hasRead != nil {
		s.hasRead()
	}
	return list, err
}

func (s *fullStore) Write(ctx context.Context, change func(store.Tx) error) error {
	if s.full.Load() {
		s.writes.Add(1)
		return store.ErrFull
	}
	return s.Store.Write(ctx, change)
}

// onFullStore opens the hub on s.
func onFullStore(s *fullStore) func(*Options) {
	return func(o *Options) {
		open := o.OpenStore
		o.OpenStore = func(ctx context.Context, opts store.Options) (_ store.Store, err error) {
			s.Store, err = open(ctx, opts)
			return s, err
		}
	}
}

// A transaction that finds no space while or after the hub closes starts no goroutine.
func TestADiskThatIsFullAtTheEndStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fullStore
		h := openHub(t, database(t), hang, onFullStore(&s))
		inState(t, h, launch(t, h, "p"), domain.Running)
		s.full.Store(true)
		require.NoError(t, h.Close())
		before := s.writes.Load()
		assert.ErrorContains(t, errorOf(h.Launch(t.Context(), LaunchSpec{Prompt: "one more"})), "the disk is full")
		synctest.Wait()
		assert.Equal(t, before+1, s.writes.Load(), "something goes on after the end")
	})
}

func TestADiskThatGetsFullWhileTheHubEnds(t *testing.T) {
	for range 20 {
		var s fullStore
		h := openHub(t, database(t), hang, onFullStore(&s))
		inState(t, h, launch(t, h, "p"), domain.Running)
		s.full.Store(true)
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for range 20 {
					_, _ = h.Launch(context.Background(), LaunchSpec{Prompt: "one more"})
				}
			})
		}
		require.NoError(t, h.Close())
		clients.Wait()
	}
}

// Gate results on a full disk are stored when space is free. Queued runs of the thread do not wait
// for the next start of the hub.
func TestWhatCameOfGatesOutlastsAFullDisk(t *testing.T) { synctest.Test(t, testGatesOutlastAFullDisk) }

func testGatesOutlastAFullDisk(t *testing.T) {
	var s fullStore
	gates := &gateRunner{does: func(context.Context, string, int) (int, string) {
		s.full.Store(true)
		return 0, ""
	}}
	h := openHub(t, database(t), works, onFullStore(&s), gates.option)
	session := launchGated(t, h, "p", gate.Spec{Gates: []string{"make"}})
	require.Eventually(t, func() bool { return s.writes.Load() > 1 }, within, time.Millisecond, "it is not tried again")
	s.full.Store(false)
	assert.Equal(t, domain.LoopPassed, awaitGates(t, h, session).State)
	assert.Equal(t, []string{"make"}, gates.lines(), "the gate is not run again")
}

// Clients learn of the end of a run even if it cannot be stored.
func TestTheEndOfARunIsToldOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fullStore
		h := openHub(t, database(t), hang, onFullStore(&s))
		id := launch(t, h, "p")
		inState(t, h, id, domain.Running)
		reported := make(chan domain.RunStateChanged, 1)
		sub := must(h.Events().Subscribe(t.Context(), eventlog.Subscribing{}, func(_ context.Context, n eventlog.Notice) error {
			if p, ok := n.Payload.(domain.RunStateChanged); ok && p.To == domain.Failed && n.Seq == 0 {
				reported <- p
			}
			return nil
		}))(t)
		sub.Start()
		defer sub.Close()
		ended := make(chan domain.Session, 1)
		go func() {
			s, err := h.Await(t.Context(), id.SessionID)
			assert.NoError(t, err)
			ended <- s
		}()
		synctest.Wait()
		s.full.Store(true)
		require.Error(t, errorOf(h.Launch(t.Context(), LaunchSpec{Prompt: "one more"})))
		assert.Equal(t, domain.CodeStoreFull, (<-reported).ErrorCode)
		assert.Equal(t, domain.CodeStoreFull, (<-ended).ErrorCode)
		assert.Equal(t, domain.Failed, must(h.Query().Session(t.Context(), id.SessionID))(t).State)
		assert.Equal(t, domain.Failed, must(h.Query().Sessions(t.Context(), domain.RunFilter{}))(t)[0].State)
	})
}

// A run that failed on a full disk never appears to run again, even if a read overlaps the write of
// its end.
func TestTheEndOfARunOnAFullDiskIsToldWhileItIsStored(t *testing.T) {
	reads := map[string]func(context.Context, *Hub, domain.Session) (domain.Session, error){
		"one": func(ctx context.Context, h *Hub, s domain.Session) (domain.Session, error) {
			return h.Query().Session(ctx, s.SessionID)
		},
		"a list": func(ctx context.Context, h *Hub, _ domain.Session) (domain.Session, error) {
			list, err := h.Query().Sessions(ctx, domain.RunFilter{})
			return list[0], err
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s fullStore
				h := openHub(t, database(t), hang, onFullStore(&s))
				id := launch(t, h, "p")
				inState(t, h, id, domain.Running)
				s.full.Store(true)
				require.Error(t, errorOf(h.Launch(t.Context(), LaunchSpec{Prompt: "one more"})))
				synctest.Wait()
				s.hasRead = sync.OnceFunc(func() {
					s.full.Store(false)
					for len(h.cutShort.Runs()) > 0 {
						time.Sleep(time.Second)
					}
				})
				assert.Equal(t, domain.Failed, must(read(t.Context(), h, id))(t).State)
			})
		})
	}
}

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
		s := must(sqlite.Open(t.Context(), path, store.Options{}))(t)
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
		s := must(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "duet.db"), store.Options{}))(t)
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
