package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// disk is a store on a disk that the test fills.
type disk struct {
	free  atomic.Int64
	gone  atomic.Bool
	looks atomic.Int64 // calls of Valid
	bad   atomic.Bool  // Check finds damage
	reads atomic.Int64 // calls of Check
}

func (d *disk) Check(context.Context) error {
	d.reads.Add(1)
	if d.bad.Load() {
		return ErrUnread
	}
	return nil
}

func (d *disk) FreeBytes() int64 { return d.free.Load() }

func (d *disk) Valid() error {
	d.looks.Add(1)
	if d.gone.Load() {
		return &LostError{Err: errors.New("gone")}
	}
	return nil
}

// reported records the reports of a monitor.
type reported struct {
	mu   sync.Mutex
	list []string
}

func (w *reported) add(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, what)
}

func (w *reported) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}

// watched returns a monitor of an open store.
func watched(t *testing.T, full bool, change ...func(*MonitorOptions)) (*Monitor, *disk, *reported) {
	t.Helper()
	d, w := &disk{}, &reported{}
	d.free.Store(1 << 40)
	opts := MonitorOptions{
		Database: filepath.Join(t.TempDir(), "duet.db"), Removed: make(chan struct{}),
		Full: func(error) { w.add("full") }, Room: func() { w.add("room") }, Lost: func(error) { w.add("lost") },
	}
	for _, f := range change {
		f(&opts)
	}
	m := NewMonitor(opts)
	m.Opened(d)
	var cause error
	if full {
		cause = ErrFull
	}
	m.Watch(cause)
	t.Cleanup(func() { assert.NoError(t, m.Close(context.Background())) })
	return m, d, w
}

// reserved returns the size of the reserve.
func reserved(m *Monitor) int64 {
	info, err := os.Stat(m.reserve.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func TestAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, d, w := watched(t, false)
		synctest.Wait()
		assert.EqualValues(t, reserveBytes, reserved(m))
		m.Note(nil)
		assert.Empty(t, m.Issues())

		m.Note(ErrFull)
		assert.Equal(t, []string{"full"}, w.take())
		assert.Equal(t, []string{"the disk is full; free some space"}, m.Issues())
		assert.Zero(t, reserved(m), "what was set aside is given up")
		m.Note(errors.New("another error"))
		m.NoRoom(ErrFull)
		assert.Equal(t, []string{"full"}, w.take(), "each time")

		d.free.Store(enough - 1)
		m.Note(nil)
		assert.Empty(t, w.take())
		assert.NotEmpty(t, m.Issues(), "there is too little room to set some aside again")
		assert.Zero(t, reserved(m))
		d.free.Store(enough)
		m.Note(nil)
		m.Note(nil)
		assert.Equal(t, []string{"room"}, w.take(), "once")
		assert.Empty(t, m.Issues())
		assert.EqualValues(t, reserveBytes, reserved(m))
	})
}

func TestAFailingDiskIsNotOnlyCalledFull(t *testing.T) {
	m, _, _ := watched(t, false)
	m.Note(errors.Join(ErrFailing))
	require.Len(t, m.Issues(), 1)
	assert.Regexp(t, `^the disk is full or fails \(.+\); free some space, or check the disk$`, m.Issues()[0])
}

func TestADiskThatWasFullWhenTheStoreWasOpened(t *testing.T) {
	m, _, w := watched(t, true)
	assert.Equal(t, []string{"the disk is full; free some space"}, m.Issues())
	assert.Empty(t, w.take(), "who opens it knows that")
	m.Note(nil)
	assert.Equal(t, []string{"room"}, w.take())
}

func TestTheReserveOfADeadProcess(t *testing.T) {
	database := filepath.Join(t.TempDir(), "duet.db")
	require.ErrorIs(t, FreeReserve(database), os.ErrNotExist)
	(&reserve{path: reservePath(database)}).hold()
	require.NoError(t, FreeReserve(database))
	require.ErrorIs(t, FreeReserve(database), os.ErrNotExist)
}

// AwaitRoom returns after another successful change, or after a second.
func TestWhenItIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _, _ := watched(t, true)
		began := time.Now()
		require.NoError(t, m.AwaitRoom(t.Context()))
		assert.Equal(t, retryEvery, time.Since(began))

		time.AfterFunc(7*time.Millisecond, func() { m.Note(nil) })
		require.NoError(t, m.AwaitRoom(t.Context()))
		assert.Equal(t, retryEvery+7*time.Millisecond, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, m.AwaitRoom(ctx), context.DeadlineExceeded)
	})
}

func TestALostStoreIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m, _, w := watched(t, false, func(o *MonitorOptions) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		assert.False(t, m.Lost())
		for range 2 {
			m.Note(&LostError{Err: errors.New("gone")})
		}
		assert.True(t, m.Lost())
		assert.Equal(t, []string{"lost"}, w.take())
		assert.Equal(t, 1, strings.Count(log.String(), "was removed, moved or replaced while duet-rpc used it"))
		m.ReportsLost(nil)
		assert.Equal(t, []string{textLost}, m.Issues(), "which says why")
	})
}

// With notifications of removed files the monitor does not poll, so an idle process sleeps.
func TestWhenItIsLookedWhetherTheStoreIsStillThere(t *testing.T) {
	t.Run("told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			removed := make(chan struct{}, 1)
			m, d, w := watched(t, false, func(o *MonitorOptions) { o.Removed = removed })
			time.Sleep(24 * time.Hour)
			assert.Zero(t, d.looks.Load())
			removed <- struct{}{} // something else
			synctest.Wait()
			assert.EqualValues(t, 1, d.looks.Load())
			assert.False(t, m.Lost())
			d.gone.Store(true)
			removed <- struct{}{}
			synctest.Wait()
			assert.True(t, m.Lost())
			assert.Equal(t, []string{"lost"}, w.take())
		})
	})
	t.Run("not told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, d, w := watched(t, false, func(o *MonitorOptions) { o.Removed = nil })
			time.Sleep(lookEvery + lookEvery/2)
			assert.EqualValues(t, 1, d.looks.Load())
			d.gone.Store(true)
			time.Sleep(lookEvery)
			assert.Equal(t, []string{"lost"}, w.take())
		})
	})
	t.Run("closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, _, w := watched(t, false)
			require.NoError(t, m.Close(t.Context()))
			m.Note(&LostError{Err: errors.New("gone")})
			assert.True(t, m.Lost())
			assert.Empty(t, w.take(), "it is the end anyway")
		})
	})
}

func TestWhatElseIsWrong(t *testing.T) {
	var log bytes.Buffer
	m, _, _ := watched(t, false, func(o *MonitorOptions) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	m.ReportsLost(errors.New("why"))
	for range 2 {
		m.Damaged(errors.New("a page"))
	}
	assert.Equal(t, []string{textReportsLost, TextDamaged}, m.Issues())
	assert.Equal(t, 1, strings.Count(log.String(), "a page"), "the first is logged")
}

// A part that cannot be read is reported until everything can be read again, and an impossible value for good.
func TestADiskThatReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, d, _ := watched(t, false)
		d.bad.Store(true)
		m.Damaged(ErrUnread)
		for range 3 {
			assert.Equal(t, []string{TextDamaged}, m.Issues())
			synctest.Wait()
		}
		assert.EqualValues(t, 1, d.reads.Load(), "a check reads everything, so it is seldom")

		d.bad.Store(false)
		time.Sleep(checkEvery)
		assert.EqualValues(t, 1, d.reads.Load(), "nobody asks")
		assert.Equal(t, []string{TextDamaged}, m.Issues())
		synctest.Wait()
		assert.Empty(t, m.Issues())

		m.Damaged(ErrUnread)
		m.Damaged(ErrDamaged)
		time.Sleep(checkEvery)
		assert.Equal(t, []string{TextDamaged}, m.Issues())
		synctest.Wait()
		assert.Equal(t, []string{TextDamaged}, m.Issues())
		assert.EqualValues(t, 2, d.reads.Load(), "a check would not find the value")
	})
}

func TestWhatUsersAreTold(t *testing.T) {
	other := errors.New("other")
	for err, text := range map[error]string{
		ErrClosed:               "duet-rpc is ending; connect again in a moment, and try again",
		ErrFull:                 "the disk is full: nothing was changed",
		ErrFailing:              "the disk is full or fails (the disk refuses to write: there is no room for more): nothing was changed; free some space, or check the disk, then try again",
		&LostError{Err: other}:  "nothing of this was kept: try again",
		ErrLocked:               "another process has the database",
		errors.Join(ErrDamaged): TextDamaged,
	} {
		reported := Explain(err)
		var refusal *domain.Error
		require.ErrorAs(t, reported, &refusal)
		assert.Equal(t, domain.KindUnavailable, refusal.Kind)
		assert.Contains(t, reported.Error(), text)
	}
	assert.NoError(t, Explain(nil))
	assert.Same(t, other, Explain(other))
}
