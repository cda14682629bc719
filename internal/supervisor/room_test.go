//go:build unix

package supervisor

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func TestSessionHasOwnExecutorWhileThereIsRoom(t *testing.T) {
	inBubble(t, func(o *Options) { o.Most = 3 }, testOwnExecutors)
}

func testOwnExecutors(t *testing.T, s *Supervisor, _ *memory) {
	a, b := acquire(t, s, acp("a")), acquire(t, s, acp("b"))
	pidA, pidB := prompt(t, a, "pid"), prompt(t, b, "pid")
	assert.NotEqual(t, pidA, pidB)
	c1, c2 := acquire(t, s, command("c")), acquire(t, s, command("d"))
	pidC := prompt(t, c1, "pid")
	assert.Equal(t, pidC, prompt(t, c2, "pid"), "commands share one")
	assert.NotContains(t, []string{pidA, pidB}, pidC)
	assert.Equal(t, 3, s.Count())

	again := acquire(t, s, acp("a"))
	assert.Equal(t, pidA, prompt(t, again, "pid"), "a session keeps its own")
	third, fourth := acquire(t, s, acp("e")), acquire(t, s, acp("f"))
	assert.Equal(t, pidB, prompt(t, third, "pid"), "then they share the one with the least to do")
	assert.Contains(t, []string{pidA, pidB}, prompt(t, fourth, "pid"))
	assert.Equal(t, 3, s.Count())
	for _, l := range []catalog.Lease{a, b, c1, c2, again, third, fourth} {
		l.Release()
		l.Release() // a second release does nothing
	}
}

func foreign(name, session string) catalog.LeaseRequest {
	self, _ := os.Executable()
	return catalog.LeaseRequest{Session: session, Agent: name, Driver: "executor", Command: []string{self}}
}

// waits requires that there is no room, and returns a channel for the later lease.
func waits(t *testing.T, s *Supervisor, want catalog.LeaseRequest) <-chan catalog.Lease {
	t.Helper()
	assert.False(t, s.HasRoom(want))
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, err := s.Acquire(ctx, want)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	got := make(chan catalog.Lease, 1)
	go func() {
		if l, err := s.Acquire(context.Background(), want); err == nil {
			got <- l
		}
	}()
	return got
}

func TestUnusedExecutorMakesRoom(t *testing.T) {
	inBubble(t, func(o *Options) { o.Most, o.IdleAfter = 2, 1000*time.Hour }, testRoom)
}

func testRoom(t *testing.T, s *Supervisor, m *memory) {
	a := acquire(t, s, acp("a"))
	pid := prompt(t, a, "pid")
	got := waits(t, s, foreign("x", "1"))
	a.Release()
	x := <-got
	defer x.Release()
	assert.False(t, m.has(pid), "there is never one too many")
	assert.NotEqual(t, pid, prompt(t, x, "pid"))

	more := waits(t, s, foreign("x", "2"))
	assert.False(t, s.HasRoom(acp("b")), "it cannot share that")
	assert.True(t, s.HasRoom(foreign("x", "1")), "it is there")
	_, err := x.ExecutePrompt(context.Background(), catalog.ExecutePromptParams{Prompt: "crash"})
	require.ErrorIs(t, err, jsonrpc2.ErrClosed)
	(<-more).Release() // the place of a dead one is free
}

// However many agents wait for a user, a command or a terminal gets a place.
func TestCommandsAlwaysHaveAPlace(t *testing.T) {
	inBubble(t, func(o *Options) { o.IdleAfter = 1000 * time.Hour }, testPlaceForCommands)
}

func testPlaceForCommands(t *testing.T, s *Supervisor, _ *memory) {
	var all []catalog.Lease
	pids := map[string]int{}
	for i := range 12 {
		l := acquire(t, s, acp(fmt.Sprint(i)))
		all = append(all, l)
		pids[prompt(t, l, "pid")]++
	}
	assert.Len(t, pids, 9, "the others share")
	assert.Equal(t, 9, s.Count())
	require.True(t, s.HasRoom(command("c")))
	c := acquire(t, s, command("c"))
	d := acquire(t, s, catalog.LeaseRequest{Driver: "command"})
	assert.Equal(t, prompt(t, c, "pid"), prompt(t, d, "pid"))
	assert.NotContains(t, pids, prompt(t, c, "pid"))
	assert.Equal(t, 10, s.Count())
	c.Release()
	d.Release()
	got := waits(t, s, foreign("x", "1"))
	assert.Equal(t, 10, s.Count(), "an idle one of commands does not make room for others")
	for _, l := range all {
		l.Release()
	}
	(<-got).Release()
}

func TestCloseWakesCallersThatWait(t *testing.T) {
	inBubble(t, func(o *Options) { o.Most = 2 }, testEndWhileWaiting)
}

func testEndWhileWaiting(t *testing.T, s *Supervisor, _ *memory) {
	a := acquire(t, s, acp("a"))
	defer a.Release()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Acquire(context.Background(), foreign("x", "1"))
		ended <- err
	}()
	synctest.Wait() // it is blocked
	closed(t, s)
	assert.ErrorIs(t, <-ended, errClosed)
}
