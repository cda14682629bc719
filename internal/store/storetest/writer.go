package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func testConcurrentWritersLeaveNoGaps(t *testing.T, k kind) {
	var announced []domain.Event // by the writer's goroutine
	path := t.TempDir()
	s := k.openAt(t, path, func(events []domain.Event, _ store.Reader) { announced = append(announced, events...) })
	boom := errors.New("boom")
	var all sync.WaitGroup
	const writers, each = 40, 10
	for w := range writers {
		all.Go(func() {
			for i := range each {
				err := s.Write(ctx, func(tx store.Tx) error {
					if _, err := tx.Append(named(fmt.Sprint(w, "/", i))); err != nil {
						return err
					}
					switch w % 4 {
					case 1:
						return boom
					case 2:
						panic("a change that is wrong")
					}
					return nil
				})
				switch w % 4 {
				case 1:
					assert.ErrorIs(t, err, boom)
				case 2:
					assert.ErrorContains(t, err, "a change that is wrong")
				default:
					assert.NoError(t, err)
				}
			}
		})
	}
	all.Wait()
	const kept = writers / 2 * each
	list := AllEvents(t, s)
	RequireGapless(t, list, kept)
	require.NoError(t, s.Close())
	require.Len(t, announced, kept)
	for i, e := range announced {
		assert.Equal(t, list[i].Seq, e.Seq)
		assert.Equal(t, nameOf(list[i]), nameOf(e), "in the order of the log")
	}

	s = k.openAt(t, path)
	Write(t, s, AppendEvent("after"))
	RequireGapless(t, AllEvents(t, s), kept+1)
	last, err := s.LastSeq(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, kept+1, last)
}

// In a batch, a failing operation affects no other, and leaves no changes.
func testFailingChangeIsUndoneAlone(t *testing.T, k kind) {
	s := k.openNew(t)
	begun, release := Held(s)
	<-begun
	var results []error // by the writer's goroutine
	var order []string
	enqueue := func(name string, err error) {
		s.Enqueue(func(tx store.Tx) error {
			tx.AfterCommit(func() { order = append(order, "after "+name) })
			if e := tx.SetMeta(name, "set"); e != nil {
				return e
			}
			if _, e := tx.Append(named(name)); e != nil {
				return e
			}
			if name == "panic" {
				panic(name)
			}
			return err
		}, func(err error) {
			results = append(results, err)
			order = append(order, "done "+name)
		})
	}
	enqueue("one", nil)
	enqueue("fails", errors.New("no"))
	enqueue("panic", nil)
	enqueue("two", nil)
	release()
	Write(t, s, func(tx store.Tx) error { assert.EqualValues(t, 2, tx.Seq()); return nil })

	require.Len(t, results, 4)
	assert.NoError(t, results[0])
	assert.EqualError(t, results[1], "no")
	assert.ErrorContains(t, results[2], "panicked")
	assert.NoError(t, results[3])
	assert.Equal(t, []string{"after one", "after two", "done one", "done fails", "done panic", "done two"}, order,
		"a failed change has no after")
	for name, want := range map[string]string{"one": "set", "two": "set", "fails": "", "panic": ""} {
		got, err := s.Meta(ctx, name)
		require.NoError(t, err)
		assert.Equal(t, want, got, name)
	}
	RequireGapless(t, AllEvents(t, s), 2)
}

// Caches are informed of a rollback before the next transaction begins.
func testRollbackReachesCachesFirst(t *testing.T, k kind) {
	var order []string // by the writer's goroutine
	s, err := k.open(ctx, t.TempDir(), store.Options{RolledBack: func() { order = append(order, "rolled back") }})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	begun, release := Held(s)
	<-begun
	for _, name := range []string{"one", "fails", "panics", "two"} {
		s.Enqueue(func(tx store.Tx) error {
			order = append(order, name)
			switch name {
			case "fails":
				return errors.New("no")
			case "panics":
				panic(name)
			}
			return nil
		}, func(error) {})
	}
	release()
	Write(t, s, func(store.Tx) error { return nil })
	assert.Equal(t, []string{"one", "fails", "rolled back", "panics", "rolled back", "two"}, order)
	order = nil
	full := s.Write(ctx, func(store.Tx) error { return fmt.Errorf("a page: %w", store.ErrFull) }) // ends the transaction
	assert.ErrorIs(t, full, store.ErrFull)
	assert.Equal(t, []string{"rolled back"}, order)
}

func testEventsAreAnnouncedBeforeWriteReturns(t *testing.T, k kind) {
	var order []string
	s := k.openNew(t, func(events []domain.Event, _ store.Reader) { order = append(order, "announced "+nameOf(events[0])) })
	Write(t, s, func(tx store.Tx) error {
		for _, n := range []string{"1", "2"} {
			tx.AfterCommit(func() { order = append(order, "after "+n) })
		}
		return AppendEvent("e")(tx)
	})
	assert.Equal(t, []string{"after 1", "after 2", "announced e"}, order, "who hears of an event finds memory as it says")
	Write(t, s, func(store.Tx) error { return nil })
	assert.Len(t, order, 3, "a change without events announces nothing")
}

// A commit is readable before it is announced. A reader that sees it so early waits for the
// announcement, or for the end of its context.
func testReadsWaitForAnnouncement(t *testing.T, k kind) {
	var s store.Store
	order := make(chan string, 10)
	read := make(chan struct{})
	moment := func() { // long enough for a read that does not wait
		select {
		case <-read:
		case <-time.After(50 * time.Millisecond):
		}
	}
	s = k.openNew(t, func(_ []domain.Event, now store.Reader) {
		last, err := now.LastSeq(ctx)
		assert.NoError(t, err)
		assert.EqualValues(t, 1, last, "who announces reads without waiting")
		moment()
		order <- "announced"
	})
	ended, end := context.WithCancel(ctx)
	impatient := make(chan error, 1)
	Write(t, s, func(tx store.Tx) error {
		tx.AfterCommit(func() {
			go func() {
				defer close(read)
				last, err := s.LastSeq(ctx)
				assert.NoError(t, err)
				assert.EqualValues(t, 1, last)
				order <- "read"
			}()
			go func() {
				_, err := s.LastSeq(ended)
				impatient <- err
			}()
			moment()
			end()
			assert.ErrorIs(t, <-impatient, context.Canceled)
			order <- "followed"
		})
		return AppendEvent("e")(tx)
	})
	<-read
	assert.Equal(t, []string{"followed", "announced", "read"}, []string{<-order, <-order, <-order})
}

func testWriteReturnsWhenItsContextEnds(t *testing.T, k kind) {
	s := k.openNew(t)
	begun, release := Held(s)
	defer release()
	<-begun
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, s.Write(ended, AppendEvent("late")), context.Canceled)
	release()
	Write(t, s, AppendEvent("next"))
	RequireGapless(t, AllEvents(t, s), 2) // the change was committed, as documented
}

func testCloseCommitsQueuedChanges(t *testing.T, k kind) {
	path := t.TempDir()
	s := k.openAt(t, path)
	begun, release := Held(s)
	<-begun
	const queued = 1025 // several transactions
	done := make(chan error, queued)
	for range queued {
		s.Enqueue(AppendEvent("e"), func(err error) { done <- err })
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	release()
	require.NoError(t, <-closed)
	for range queued {
		require.NoError(t, <-done)
	}
	assert.ErrorIs(t, s.Write(ctx, AppendEvent("too late")), store.ErrClosed)
	s.Enqueue(AppendEvent("too late"), func(err error) { done <- err })
	assert.ErrorIs(t, <-done, store.ErrClosed)
	RequireGapless(t, AllEvents(t, k.openAt(t, path)), queued)
}
