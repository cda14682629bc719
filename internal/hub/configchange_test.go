package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// changing is a configuration that a test changes.
type changing struct {
	mu         sync.Mutex
	rules      []config.Rule
	generation uint64
	revoked    bool
	looked     int
	killed     []string // marks
}

func (c *changing) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.generation++
}

func (c *changing) Generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked++
	return c.generation
}

// Watch tells nothing.
func (c *changing) Watch() (changed <-chan struct{}, stop func()) { return nil, func() {} }

func (c *changing) timesLooked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looked
}

func (c *changing) Revoked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revoked
}

func (c *changing) options(o *Options) {
	o.Changes = c
	o.Rules = func() []config.Rule {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.rules
	}
	o.KillAgents = func(list []domain.Process) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range list {
			c.killed = append(c.killed, p.Mark)
		}
	}
}

func (c *changing) deny(tool string) {
	c.set(func() { c.rules = []config.Rule{{Effect: "deny", Tool: tool, Source: "user"}} })
}

// A rule that is new counts for the next question, and for those that are open.
func TestANewRuleCountsAtOnce(t *testing.T) {
	c := &changing{}
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": x.p.Prompt})))
		return completed
	}, c.options)
	open, err := h.Launch(context.Background(), LaunchSpec{Prompt: "a"})
	require.NoError(t, err)
	asked := pendingOf(t, h, 1)[0]
	c.deny("Edit")
	next, err := h.Launch(context.Background(), LaunchSpec{Prompt: "b"})
	require.NoError(t, err)
	pendingOf(t, h, 2) // of no concern
	c.deny("Write")
	later, err := h.Launch(context.Background(), LaunchSpec{Prompt: "c"})
	require.NoError(t, err)
	for _, s := range []domain.Session{open, next, later} {
		assert.Equal(t, domain.Completed, await(t, h, s).State)
	}
	a, err := h.Approvals().Find(context.Background(), asked.ID)
	require.NoError(t, err)
	assert.Equal(t, []string{domain.ApprovalDenied, "rule=user"}, []string{a.Status, a.DecidedBy})
	c.set(func() { c.rules = nil })
	last, err := h.Launch(context.Background(), LaunchSpec{Prompt: "d"})
	require.NoError(t, err)
	approve(t, h, pendingOf(t, h, 1)[0], "")
	await(t, h, last)
}

// killable are executors that count which of them are killed.
type killable struct {
	Executors
	kills atomic.Int64
}

func (k *killable) Acquire(ctx context.Context, want catalog.LeaseRequest) (catalog.Lease, error) {
	l, err := k.Executors.Acquire(ctx, want)
	return &killableLease{l, &k.kills}, err
}

type killableLease struct {
	catalog.Lease
	kills *atomic.Int64
}

func (l *killableLease) Kill() { l.kills.Add(1) }

// projects are agents that the project's file defines, but for one.
type projects struct{}

func (projects) Resolve(name string) (config.Agent, error) {
	driver := "acp"
	if name == "speaks" {
		driver = "executor"
	}
	return config.Agent{Name: name, Driver: driver, Command: []string{name}, FromProject: name != "mine"}, nil
}

// Whoever takes the trust back ends what the project's file has started, at work
// or idle, and nothing else.
func TestARevocationEndsTheProjectsAgents(t *testing.T) {
	c := &changing{}
	x := &killable{}
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventProcess, catalog.Process{PID: 1 << 30, Mark: "mark of " + x.p.Prompt})
		switch x.p.Prompt {
		case "ask":
			return askOnce(ctx, x)
		case "idle":
			return completed
		}
		return hang(ctx, x)
	}, c.options, func(o *Options) {
		o.Agents, o.Limits.MaxRuns = projects{}, 10
		made := o.Executors
		o.Executors = func(d catalog.Daemon) Executors {
			x.Executors = made(d)
			return x
		}
	})
	launch := func(prompt, agent string) domain.Session {
		s, err := h.Launch(context.Background(), LaunchSpec{Prompt: prompt, Agent: agent})
		require.NoError(t, err)
		return s
	}
	for _, agent := range []string{"theirs", "speaks"} {
		require.Equal(t, domain.Completed, await(t, h, launch("idle", agent)).State)
	}
	asks, works, mine := launch("ask", "theirs"), launch("work", "theirs"), launch("mine", "mine")
	asked := pendingOf(t, h, 1)[0]
	inState(t, h, works, domain.Running)
	inState(t, h, mine, domain.Running)

	c.deny("Nothing")
	seen := c.timesLooked()
	require.Eventually(t, func() bool { return c.timesLooked() > seen+1 }, within, time.Millisecond)
	inState(t, h, works, domain.Running) // a change alone ends nothing

	c.set(func() { c.revoked = true })
	for _, s := range []domain.Session{asks, works} {
		ended := await(t, h, s)
		assert.Equal(t, domain.Interrupted, ended.State)
		assert.Equal(t, codeRevoked, ended.ErrorCode)
		assert.Contains(t, ended.Error, "not trusted any more")
	}
	a, err := h.Approvals().Find(context.Background(), asked.ID)
	require.NoError(t, err)
	assert.Equal(t, domain.ApprovalCancelled, a.Status)
	assert.Equal(t, domain.Running, inState(t, h, mine, domain.Running).State)
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.killed) > 0
	}, within, time.Millisecond)
	c.mu.Lock()
	assert.ElementsMatch(t, []string{"mark of idle", "mark of ask", "mark of work"}, c.killed)
	c.mu.Unlock()
	assert.EqualValues(t, 1, x.kills.Load(), "the executor that is an agent itself")

	// One that was begun just before the look is ended as well.
	assert.Equal(t, codeRevoked, await(t, h, launch("late", "theirs")).ErrorCode)
	_, err = h.Interrupt(context.Background(), mine.UUID, "")
	require.NoError(t, err)
	await(t, h, mine)
}
