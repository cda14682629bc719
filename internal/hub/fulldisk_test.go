package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// fullStore is a store whose disk the test fills.
type fullStore struct {
	store.Store
	full   atomic.Bool
	writes atomic.Int64 // writes without space

	hasRead func() // if set, runs after sessions are read and before they are returned
}

func (s *fullStore) TurnInSession(ctx context.Context, turn int64) (domain.TurnInSession, error) {
	of, err := s.Store.TurnInSession(ctx, turn)
	if s.hasRead != nil {
		s.hasRead()
	}
	return of, err
}

func (s *fullStore) TurnsInSessions(ctx context.Context, f domain.TurnFilter) ([]domain.TurnInSession, error) {
	list, err := s.Store.TurnsInSessions(ctx, f)
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
		open := fakeOf(o).openStore
		fakeOf(o).openStore = func(ctx context.Context, opts store.Options) (_ store.Store, err error) {
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

// A turn that is being interrupted when the disk gets full ends by itself, as what it is.
func TestAFullDiskLeavesAnInterruptedTurnToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fullStore
		release := make(chan struct{})
		h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			result := hang(ctx, x)
			<-release
			return result
		}, onFullStore(&s))
		ending := inState(t, h, launch(t, h, "ending"), domain.Running)
		working := inState(t, h, launch(t, h, "working"), domain.Running)
		_, err := h.Interrupt(t.Context(), ending.UUID, "")
		require.NoError(t, err)
		s.full.Store(true)
		_, err = h.Launch(t.Context(), LaunchSpec{Prompt: "one more"})
		require.Error(t, err)
		s.full.Store(false)
		later := inState(t, h, launch(t, h, "later"), domain.Running)
		s.full.Store(true) // again
		_, err = h.Launch(t.Context(), LaunchSpec{Prompt: "one more"})
		require.Error(t, err)
		s.full.Store(false)
		close(release)
		assert.Equal(t, domain.Interrupted, await(t, h, ending).State)
		assert.Equal(t, domain.CodeStoreFull, await(t, h, working).ErrorCode)
		assert.Equal(t, domain.CodeStoreFull, await(t, h, later).ErrorCode, "a turn that began meanwhile, too")
	})
}

// The open items of a turn are closed even if another transaction finds space before the turn's end
// is stored.
func TestRoomThatComesBeforeTheEndIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fullStore
		h := openHub(t, database(t), hang, onFullStore(&s))
		turn := inState(t, h, launch(t, h, "p"), domain.Running)
		s.full.Store(true)
		_, err := h.Launch(t.Context(), LaunchSpec{Prompt: "one more"})
		require.Error(t, err)
		h.cutShort.DiskHasRoom()
		synctest.Wait()
		leftOpen := func() (turn string) {
			require.NoError(t, s.Store.Write(t.Context(), func(tx store.Tx) (err error) {
				turn, err = tx.Meta(t.Context(), metaLeftOpen)
				return err
			}))
			return turn
		}
		s.full.Store(false)
		for len(h.cutShort.Turns()) > 0 {
			time.Sleep(time.Second)
		}
		assert.Equal(t, domain.CodeStoreFull, await(t, h, turn).ErrorCode)
		synctest.Wait()
		assert.Empty(t, leftOpen())
	})
}

// Gate results on a full disk are stored when space is free. Queued turns of the session do not wait
// for the next start of the hub.
func TestWhatCameOfGatesOutlastsAFullDisk(t *testing.T) { synctest.Test(t, testGatesOutlastAFullDisk) }

func testGatesOutlastAFullDisk(t *testing.T) {
	var s fullStore
	gates := &gateRunner{does: func(context.Context, string, int) (int, string) {
		s.full.Store(true)
		return 0, ""
	}}
	h := openHub(t, database(t), works, onFullStore(&s), gates.option)
	of := launchGated(t, h, "p", gate.Spec{Gates: []string{"make"}})
	require.Eventually(t, func() bool { return s.writes.Load() > 1 }, within, time.Millisecond, "it is not tried again")
	s.full.Store(false)
	assert.Equal(t, domain.LoopPassed, awaitGates(t, h, of).State)
	assert.Equal(t, []string{"make"}, gates.lines(), "the gate is not run again")
}

// Clients learn of the end of a turn even if it cannot be stored.
func TestTheEndOfATurnIsToldOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s fullStore
		h := openHub(t, database(t), hang, onFullStore(&s))
		id := launch(t, h, "p")
		inState(t, h, id, domain.Running)
		reported := make(chan domain.TurnStateChanged, 1)
		sub := must(h.Events().Subscribe(t.Context(), eventlog.Subscribing{}, func(_ context.Context, n eventlog.Notice) error {
			if p, ok := n.Payload.(domain.TurnStateChanged); ok && p.To == domain.Failed && n.Seq == 0 {
				reported <- p
			}
			return nil
		}))(t)
		sub.Start()
		defer sub.Close()
		ended := make(chan domain.TurnInSession, 1)
		go func() {
			s, err := h.Await(t.Context(), id.HumanLayerSession)
			assert.NoError(t, err)
			ended <- s
		}()
		synctest.Wait()
		s.full.Store(true)
		require.Error(t, errorOf(h.Launch(t.Context(), LaunchSpec{Prompt: "one more"})))
		assert.Equal(t, domain.CodeStoreFull, (<-reported).ErrorCode)
		assert.Equal(t, domain.CodeStoreFull, (<-ended).ErrorCode)
		assert.Equal(t, domain.Failed, must(h.Query().Turn(t.Context(), id.HumanLayerSession))(t).State)
		assert.Equal(t, domain.Failed, must(h.Query().Turns(t.Context(), domain.TurnFilter{}))(t)[0].State)
	})
}

// A turn that failed on a full disk never appears to run again, even if a read overlaps the write of
// its end.
func TestTheEndOfATurnOnAFullDiskIsToldWhileItIsStored(t *testing.T) {
	reads := map[string]func(context.Context, *Hub, domain.TurnInSession) (domain.TurnInSession, error){
		"one": func(ctx context.Context, h *Hub, s domain.TurnInSession) (domain.TurnInSession, error) {
			return h.Query().Turn(ctx, s.HumanLayerSession)
		},
		"a list": func(ctx context.Context, h *Hub, _ domain.TurnInSession) (domain.TurnInSession, error) {
			list, err := h.Query().Turns(ctx, domain.TurnFilter{})
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
					for len(h.cutShort.Turns()) > 0 {
						time.Sleep(time.Second)
					}
				})
				assert.Equal(t, domain.Failed, must(read(t.Context(), h, id))(t).State)
			})
		})
	}
}
