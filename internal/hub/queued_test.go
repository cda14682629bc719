package hub

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A queued prompt that no client has written keeps its place and its text.
func TestWhatNoClientHasWrittenStaysWhereItIsInTheQueue(t *testing.T) {
	ctx := context.Background()
	release := make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, _ *fakeTurn) catalog.ExecutePromptResult {
		return worksUntil(ctx, release)
	})
	first := launch(t, h, "first")
	follow := func(prompt, source string) domain.TurnInSession {
		return must(h.Continue(ctx, ContinueSpec{From: first.HumanLayerSession, Prompt: prompt, Source: source}))(t)
	}
	order := func() (prompts []string) {
		list := must(h.Queued(ctx, first.HumanLayerSession))(t)
		before := first.Turn.ID
		for _, s := range list {
			prompts = append(prompts, s.Prompt)
			assert.Equal(t, before, s.Turn.Parent, "%s continues what is before it", s.Prompt)
			before = s.Turn.ID
		}
		return prompts
	}
	a, gate, b, c := follow("a", domain.SourceSession), follow("gate", domain.SourceGate), follow("b", domain.SourceSession), follow("c", domain.SourceSession)
	require.NoError(t, h.MoveQueued(ctx, c.HumanLayerSession, a.HumanLayerSession))
	assert.Equal(t, []string{"c", "gate", "a", "b"}, order())
	require.NoError(t, h.MoveQueued(ctx, c.HumanLayerSession, ""))
	assert.Equal(t, []string{"a", "gate", "b", "c"}, order())
	for _, err := range []error{h.MoveQueued(ctx, gate.HumanLayerSession, ""), h.MoveQueued(ctx, b.HumanLayerSession, gate.HumanLayerSession), h.EditQueued(ctx, gate.HumanLayerSession, "x")} {
		assert.Equal(t, domain.KindBadState, kindOf(t, err))
	}
	other := launch(t, h, "another session")
	elsewhere := must(h.Continue(ctx, ContinueSpec{From: other.HumanLayerSession, Prompt: "x", Source: domain.SourceSession}))(t)
	assert.ErrorContains(t, h.MoveQueued(ctx, a.HumanLayerSession, elsewhere.HumanLayerSession), "the same session")
	assert.Equal(t, []string{"a", "gate", "b", "c"}, order())
	close(release)
	await(t, h, c)
	await(t, h, elsewhere)
}

// An agent that continues by itself takes the next queued prompt.
func TestAnOwnTurnTakesTheNextPrompt(t *testing.T) {
	ctx := context.Background()
	daemons, release := make(chan catalog.Daemon, 4), make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		daemons <- x.daemon
		if x.p.Prompt != "first" {
			worksUntil(ctx, release)
		}
		return completed
	}, func(o *Options) { o.Limits.MaxTurns = 1 })
	first := await(t, h, launch(t, h, "first"))
	daemon := <-daemons
	launch(t, h, "takes the only slot")
	<-daemons
	queued := []domain.TurnInSession{}
	from := first
	for _, prompt := range []string{"second", "third"} {
		s := must(h.Continue(ctx, ContinueSpec{From: from.HumanLayerSession, Prompt: prompt, Source: domain.SourceSession}))(t)
		queued, from = append(queued, s), s
	}
	begun := must(daemon.BeginTurn(ctx, catalog.BeginTurnParams{SessionID: first.Session.UUID, TaskID: first.UUID}))(t)
	assert.Equal(t, queued[0].UUID, begun.TaskID)
	close(release)
	await(t, h, queued[1])
}

// If a prompt starts first, the output of an agent-initiated turn belongs to that prompt's turn, and
// no further turn starts.
func TestAnOwnTurnThatAPromptForestalls(t *testing.T) {
	ctx := context.Background()
	daemons, release := make(chan catalog.Daemon, 4), make(chan struct{})
	var count func(string) int
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		daemons <- x.daemon
		if x.p.Prompt != "first" {
			worksUntil(ctx, release)
		}
		return completed
	}, func(o *Options) { count = countCalls(o) })
	first := await(t, h, launch(t, h, "first"))
	<-daemons
	next := must(h.Continue(ctx, ContinueSpec{From: first.HumanLayerSession, Prompt: "second", Source: domain.SourceSession}))(t)
	daemon := <-daemons
	asked, begun := count("TurnsIn"), make(chan string, 1)
	go func() {
		r, err := daemon.BeginTurn(ctx, catalog.BeginTurnParams{SessionID: first.Session.UUID, TaskID: first.UUID})
		assert.NoError(t, err)
		begun <- r.TaskID
	}()
	require.Eventually(t, func() bool { return count("TurnsIn") > asked }, within, time.Millisecond, "it sees the prompt's turn")
	close(release)
	assert.Equal(t, next.UUID, <-begun)
}

// A prompt ends an agent-initiated turn if the agent accepts prompts while it works.
func TestAPromptEndsAnOwnTurn(t *testing.T) {
	ctx := context.Background()
	daemons, yielded := make(chan catalog.Daemon, 4), make(chan string, 1)
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		daemons <- x.daemon
		if x.p.Unprompted {
			select {
			case task := <-yielded:
				assert.Equal(t, x.p.TaskID, task)
			case <-ctx.Done():
			}
		}
		return completed
	})
	first := await(t, h, launch(t, h, "first"))
	asked := 0
	h.executors.(*executors).yield = func(p catalog.YieldTurnParams) string {
		if asked++; asked == 1 { // as if the turn were still on its way to the executor
			return catalog.YieldUnknown
		}
		yielded <- p.TaskID
		return catalog.YieldYielding
	}
	begun := must((<-daemons).BeginTurn(ctx, catalog.BeginTurnParams{SessionID: first.Session.UUID, TaskID: first.UUID}))(t)
	<-daemons
	next := must(h.Continue(ctx, ContinueSpec{From: first.HumanLayerSession, Prompt: "second", Source: domain.SourceSession}))(t)
	next = await(t, h, next)
	assert.Equal(t, domain.Completed, next.Turn.State)
	own := turnOf(t, h, begun.TaskID)
	assert.Equal(t, domain.Completed, own.Turn.State)
	events := must(h.store.Events(ctx, 0, 1000))(t)
	var order []string
	for _, e := range events {
		if s, ok := e.Payload.(domain.TurnStateChanged); ok && (e.Turn == own.Turn.ID && s.To == domain.Completed || e.Turn == next.Turn.ID) {
			order = append(order, string(s.To))
		}
	}
	assert.Equal(t, []string{"queued", "completed", "starting", "running", "completed"}, order)
}

func TestARestrictedEditorsTextIsRestricted(t *testing.T) {
	ctx := context.Background()
	release := make(chan struct{})
	h := openTrusted(t, "", func(ctx context.Context, _ *fakeTurn) catalog.ExecutePromptResult {
		return worksUntil(ctx, release)
	})
	untrusting := clientenv.Restrict(ctx)
	queued := func(agent string) domain.TurnInSession {
		s := must(h.Launch(ctx, LaunchSpec{Prompt: "p", Agent: agent}))(t)
		return must(h.Continue(ctx, ContinueSpec{From: s.HumanLayerSession, Prompt: "q", Source: domain.SourceSession}))(t)
	}
	theirs, mine := queued("project"), queued("mine")
	assert.Equal(t, domain.KindNotTrusted, kindOf(t, h.EditQueued(untrusting, theirs.HumanLayerSession, "x")))
	require.NoError(t, h.EditQueued(untrusting, mine.HumanLayerSession, "x"))
	close(release)
	assert.False(t, await(t, h, theirs).Turn.Restricted)
	now := await(t, h, mine)
	assert.True(t, now.Turn.Restricted)
	assert.Equal(t, "x", now.Prompt)
}

// lateExecutors provide no executor until proceed is closed.
type lateExecutors struct {
	Executors
	asked, proceed chan struct{}
}

func (l lateExecutors) Acquire(ctx context.Context, w catalog.LeaseRequest) (catalog.Lease, error) {
	l.asked <- struct{}{}
	select {
	case <-l.proceed:
		return l.Executors.Acquire(ctx, w)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The agent of an agent-initiated turn works before the turn has its executor. An interruption at
// that time reaches the agent.
func TestAnOwnTurnIsInterruptedAtItsStart(t *testing.T) {
	ctx := context.Background()
	daemons := make(chan catalog.Daemon, 2)
	stopped := false
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		daemons <- x.daemon
		if x.p.Unprompted {
			select {
			case <-ctx.Done():
				stopped = true
			case <-time.After(within):
			}
		}
		return completed
	})
	first := await(t, h, launch(t, h, "first"))
	late := lateExecutors{h.executors, make(chan struct{}), make(chan struct{})}
	h.executors = late
	begun := must((<-daemons).BeginTurn(ctx, catalog.BeginTurnParams{SessionID: first.Session.UUID, TaskID: first.UUID}))(t)
	<-late.asked
	interrupted := must(h.Interrupt(ctx, first.HumanLayerSession, ""))(t)
	assert.Equal(t, []any{begun.TaskID, domain.Interrupting}, []any{interrupted.UUID, interrupted.State})
	close(late.proceed)
	assert.Equal(t, domain.Interrupted, await(t, h, interrupted).State)
	assert.True(t, stopped, "the agent was asked to stop")
}
