//go:build unix

package hub

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// fillDisk limits the file size of this process, which looks like a full disk to SQLite, until free
// is called.
func fillDisk(t *testing.T, database string) (free func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	// Commits go to the WAL; the database file may already be longer.
	most := must(os.Stat(database + "-wal"))(t).Size()
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	now := was
	now.Cur = min(was.Cur, asLimit(was.Cur, most))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now))
	free = func() { assert.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was)) }
	t.Cleanup(free)
	return free
}

// inOwnProcess runs a test in a child process, and reports whether this is the child. A file size
// limit would also break go test itself, which logs the files that a test reads.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	const alone = "DUET_TEST_ALONE"
	if os.Getenv(alone) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), alone+"="+t.Name())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS")
	return false
}

// asLimit converts n to the system's limit type.
func asLimit[T uint64 | int64](_ T, n int64) T { return T(n) }

// awaitReserve waits until the reserve file is allocated; no event announces it.
func awaitReserve(t *testing.T, database string) {
	t.Helper()
	require.Eventually(t, func() bool {
		info, err := os.Stat(filepath.Join(filepath.Dir(database), "reserve"))
		return err == nil && info.Size() == 1<<20
	}, within, time.Millisecond)
}

func TestAFullDiskEndsWhatRunsAndIsGotOver(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	path := database(t)
	stopped, release, over := make(chan string, 2), make(chan struct{}), make(chan struct{})
	h := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		switch x.p.Prompt {
		case "ask":
			x.ask(ctx, "Write", nil)
		case "later":
			x.say("before, ")
			worksUntil(ctx, over)
			x.say("after")
		}
		if x.p.Prompt != "short" && x.p.Prompt != "later" {
			<-ctx.Done()
			stopped <- x.p.Prompt
			<-release // it takes its time
		}
		return completed
	})
	works := inState(t, h, launch(t, h, "work"), domain.Running)
	asks := launch(t, h, "ask")
	question := pendingOf(t, h, 1)[0]
	inState(t, h, asks, domain.WaitingInput)
	awaitReserve(t, path)

	free := fillDisk(t, path)
	_, err := h.Launch(context.Background(), LaunchSpec{Prompt: "one more"})
	assert.Equal(t, domain.KindUnavailable, kindOf(t, err))
	assert.ErrorContains(t, err, "the disk is full or fails (disk I/O error", "the system reports a limit, not a full disk")
	_, err = h.Launch(context.Background(), LaunchSpec{Prompt: "and again"})
	assert.Equal(t, domain.KindUnavailable, kindOf(t, err))
	assert.NotEmpty(t, h.Health().Issues())
	assert.NoFileExists(t, filepath.Join(filepath.Dir(path), "reserve"), "what was set aside is given up")
	assert.Len(t, must(h.query.Turns(context.Background(), domain.TurnFilter{}))(t, "what there is can be read"), 2)
	until(t, h, func() bool { // the announcement follows the commit
		kept, err := h.store.LastSeq(context.Background())
		return err == nil && kept == h.events.Last()
	}, "nothing was announced that is not kept")

	<-stopped // agents stop before space allows recording it
	<-stopped
	free()
	later := launch(t, h, "later") // before the ends of the others are retried
	for _, s := range []domain.TurnInSession{works, asks} {
		s = await(t, h, s)
		assert.Equal(t, []any{domain.Failed, "STORE_FULL"}, []any{s.State, s.ErrorCode})
		assert.Contains(t, s.Error, "the disk is full or fails (disk I/O error")
	}
	close(over)
	later = await(t, h, later)
	assert.Equal(t, domain.Completed, later.State, "what is started once there is room goes on: %s", later.Error)
	assert.Equal(t, "before, after", later.Result, "and what it says is kept")
	close(release)
	left := pendingOf(t, h, 1)
	assert.Equal(t, question.ID, left[0].ID)
	until(t, h, func() bool { return pendingOf(t, h, 1)[0].Stale }, "it can be answered still")
	assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "short")).State)
	assert.Empty(t, h.Health().Issues(), "a change that was kept says that there is room")
	events := must(h.store.Events(context.Background(), 0, 10_000))(t)
	for i, e := range events {
		require.EqualValues(t, i+1, e.Seq, "without gaps")
	}
}

// Agents that a full disk stopped may still answer. If space is free by then, the stored reason
// stays the full disk, and questions that they withdraw stay open.
func TestWhatAFullDiskEndedIsToldAsThatWhenThereIsRoomFirst(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	path := database(t)
	stopped, release := make(chan struct{}, 2), make(chan struct{})
	h := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		asking, takeBack := context.WithCancel(context.Background())
		defer takeBack()
		reported := func() {
			<-ctx.Done()
			stopped <- struct{}{}
			<-release
			takeBack()
		}
		if x.p.Prompt == "ask" {
			go reported()
			x.ask(asking, "Write", nil)
		} else {
			reported()
		}
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	})
	works := inState(t, h, launch(t, h, "work"), domain.Running)
	asks := launch(t, h, "ask")
	question := pendingOf(t, h, 1)[0]
	inState(t, h, asks, domain.WaitingInput)
	free := fillDisk(t, path)
	assert.ErrorContains(t, errorOf(h.Launch(context.Background(), LaunchSpec{Prompt: "one more"})), "the disk is full")
	<-stopped
	<-stopped
	free()
	close(release) // a second before the ends are retried
	for _, s := range []domain.TurnInSession{works, asks} {
		s = await(t, h, s)
		assert.Equal(t, []any{domain.Failed, "STORE_FULL"}, []any{s.State, s.ErrorCode})
	}
	left := pendingOf(t, h, 1)
	assert.Equal(t, question.ID, left[0].ID)
	until(t, h, func() bool { return pendingOf(t, h, 1)[0].Stale }, "it was taken back")
}

// A note about an answer that a full disk prevented is written when space is free.
func TestAnAnswerThatAFullDiskLeftOpenIsAskedAgain(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	path := database(t)
	h := openHub(t, path, turns(hears(hang), ends(completed), ends(completed)))
	s := launch(t, h, "p")
	a := pendingOf(t, h, 1)[0]
	approve(t, h, a, "")
	inState(t, h, s, domain.Running)
	awaitReserve(t, path)
	free := fillDisk(t, path)
	assert.Equal(t, domain.KindUnavailable, kindOf(t, errorOf(h.Launch(context.Background(), LaunchSpec{Prompt: "one more"}))))
	free()
	assert.Equal(t, domain.CodeStoreFull, await(t, h, s).ErrorCode)
	await(t, h, launch(t, h, "when there is room"))
	again := pendingOf(t, h, 1)[0]
	assert.Equal(t, a.ID, again.Reopens)
	assert.Contains(t, again.Reopened, "it may have been carried out")
}
