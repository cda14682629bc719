//go:build unix

package supervisor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A pausable records the calls to an executor.
type pausable struct {
	catalog.Executor
	calls []string
	fail  bool
}

func (x *pausable) record(what string) error {
	if x.fail {
		return errors.New("not now")
	}
	x.calls = append(x.calls, what)
	return nil
}

func (x *pausable) PauseNotifications(context.Context) error  { return x.record("pause") }
func (x *pausable) ResumeNotifications(context.Context) error { return x.record("resume") }

// A shared executor pauses while one of its leases wants it to.
func TestExecutorPausesWhileALeaseWantsIt(t *testing.T) {
	synctest.Test(t, testPauses)
}

func testPauses(t *testing.T) {
	x := &pausable{}
	p := &process{supervisor: New(Options{}), executor: x}
	lease := func() *lease { return &lease{Executor: x, process: p, release: func() {}} }
	calls := func() string {
		synctest.Wait()
		all := strings.Join(x.calls, " ")
		x.calls = nil
		return all
	}
	ctx := context.Background()
	a, b := lease(), lease()
	assert.NoError(t, a.ResumeNotifications(ctx))
	assert.Empty(t, calls(), "it goes on as it is")
	assert.NoError(t, a.PauseNotifications(ctx))
	assert.NoError(t, b.PauseNotifications(ctx))
	assert.NoError(t, a.ResumeNotifications(ctx))
	assert.Equal(t, "pause", calls())
	assert.NoError(t, a.PauseNotifications(ctx))
	assert.NoError(t, b.ResumeNotifications(ctx))
	assert.Empty(t, calls())
	a.Release()
	assert.Equal(t, "resume", calls(), "who is gone wants nothing any more")
	assert.NoError(t, a.PauseNotifications(ctx))
	assert.Empty(t, calls(), "also if it says so late")
	b.Release()
	assert.Empty(t, calls())

	c := lease()
	x.fail = true
	assert.Error(t, c.PauseNotifications(ctx))
	x.fail = false
	assert.NoError(t, c.PauseNotifications(ctx))
	assert.Equal(t, "pause", calls(), "a refused call is repeated")
	x.fail = true
	assert.Error(t, c.ResumeNotifications(ctx))
	x.fail = false
	c.Release()
	assert.Equal(t, "resume", calls())
}

// Releasing a lease after the supervisor was closed starts no goroutine.
func TestReleaseAfterCloseSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &pausable{}
		p := &process{supervisor: New(Options{}), executor: x}
		l := &lease{Executor: x, process: p, release: func() {}}
		assert.NoError(t, l.PauseNotifications(t.Context()))
		p.supervisor.Close(t.Context())
		l.Release()
		synctest.Wait()
		assert.Equal(t, []string{"pause"}, x.calls)
	})
}
