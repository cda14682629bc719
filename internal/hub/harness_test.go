package hub

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

const within = time.Minute

type play = func(context.Context, *turn) catalog.ExecutePromptResult

// hang works until it is told to stop.
func hang(ctx context.Context, _ *turn) catalog.ExecutePromptResult {
	<-ctx.Done()
	return catalog.ExecutePromptResult{Status: catalog.StatusCancelled, StopReason: "cancelled"}
}

// askOnce asks to write, and says what it was answered.
func askOnce(ctx context.Context, x *turn) catalog.ExecutePromptResult {
	r := x.ask(ctx, "Write", map[string]string{"file_path": x.p.Prompt})
	if r.Cancelled || ctx.Err() != nil {
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	}
	x.say(verdictText(r))
	return completed
}

// always is a part of a configuration that does not change.
func always[T any](part T) func() T { return func() T { return part } }

func verdictText(r catalog.RequestPermissionResult) string {
	if r.Approved {
		return "yes " + r.Reason
	}
	return "no " + r.Reason
}

// pendingOf waits until so many questions wait for a human.
func pendingOf(t *testing.T, h *Hub, n int) (list []domain.Approval) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, _ = h.Approvals().Pending(context.Background(), "")
		return len(list) == n
	}, within, time.Millisecond, "%d questions", n)
	return list
}

// inState waits until a run is in a state.
func inState(t *testing.T, h *Hub, s domain.Session, state domain.State) (now domain.Session) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		now, err = h.Session(context.Background(), s.UUID)
		return err == nil && now.State == state
	}, within, time.Millisecond, "%s", state)
	return now
}

func approve(t *testing.T, h *Hub, a domain.Approval, scope string) {
	t.Helper()
	_, err := h.Approvals().Decide(context.Background(), approval.Decision{ID: a.ID, Decision: "approve", Scope: scope})
	require.NoError(t, err)
}

// kindOf is the kind of an error of the hub.
func kindOf(t *testing.T, err error) string {
	t.Helper()
	var e *domain.Error
	require.ErrorAs(t, err, &e)
	return e.Kind
}

// launchIn launches in a conversation of the caller's.
func launchIn(t *testing.T, h *Hub, thread, prompt string) domain.Session {
	t.Helper()
	s, err := h.Launch(context.Background(), LaunchSpec{Prompt: prompt, Source: domain.SourceTask, ThreadAlias: thread})
	require.NoError(t, err)
	return s
}

func (c *collected) all() []eventlog.Notice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]eventlog.Notice{}, c.list...)
}

// states are the transitions that a subscriber was told, such as
// "draft queued".
func (c *collected) states() (list []string) {
	for _, n := range c.all() {
		if p, ok := n.Payload.(domain.RunStateChanged); ok {
			list = append(list, string(p.From+" "+p.To))
		}
	}
	return list
}

// prompts are those that an agent was given, in order.
type prompts struct {
	mu   sync.Mutex
	list []string
}

func (p *prompts) add(x *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, x.p.Prompt)
}

func (p *prompts) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.list...)
}

// insert puts a run into a state without its history.
func insert(t *testing.T, h *Hub, state domain.State) domain.Run {
	t.Helper()
	r := newRun(LaunchSpec{Prompt: "p", Source: domain.SourceTask}, "fake")
	require.NoError(t, h.store.Write(context.Background(), func(tx store.Tx) error {
		thread := domain.Thread{UUID: r.UUID + "-thread", CWD: "/", Agent: "fake", Mode: "default", Created: tx.Now(), Active: tx.Now()}
		if err := h.addThread(tx, &thread, ""); err != nil {
			return err
		}
		r.Thread, r.State, r.Created, r.Active = thread.ID, state, tx.Now(), tx.Now()
		return tx.InsertRun(&r)
	}))
	return r
}
