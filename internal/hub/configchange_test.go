package hub

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// changing is a configuration that a test changes. Its lock guards the fields.
type changing struct {
	testkit.Witness
	rules      []config.Rule
	generation uint64
	revoked    bool
	looked     uint64   // the generation that was read last
	killed     []string // markers
	notify     chan struct{}
}

func newChanging() *changing { return &changing{notify: make(chan struct{}, 1)} }

// set changes the configuration and signals the change.
func (c *changing) set(change func()) {
	c.Lock()
	defer c.Unlock()
	change()
	c.generation++
	select {
	case c.notify <- struct{}{}:
	default:
	}
}

func (c *changing) Generation() (generation uint64) {
	c.Note(func() {
		generation = c.generation
		c.looked = generation
	})
	return generation
}

func (c *changing) Watch() (changed <-chan struct{}, stop func()) { return c.notify, func() {} }

// follow waits until a change has been handled, which shows when the next one is read.
func (c *changing) follow(t *testing.T) {
	t.Helper()
	for range 2 {
		c.set(func() {})
		c.Await(t, func() bool {
			c.Lock()
			defer c.Unlock()
			return c.looked == c.generation
		}, "a look at what has changed")
	}
}

func (c *changing) Revoked() bool {
	c.Lock()
	defer c.Unlock()
	return c.revoked
}

func (c *changing) options(o *Options) {
	o.Changes = c
	o.Rules = func() []config.Rule {
		c.Lock()
		defer c.Unlock()
		return c.rules
	}
	o.KillAgents = func(list []domain.Process) {
		c.Note(func() {
			for _, p := range list {
				c.killed = append(c.killed, p.Mark)
			}
		})
	}
}

func (c *changing) marksKilled() []string {
	c.Lock()
	defer c.Unlock()
	return slices.Clone(c.killed)
}

func (c *changing) deny(tool string) {
	c.set(func() { c.rules = []config.Rule{{Effect: "deny", Tool: tool, Source: "user"}} })
}

// A new rule applies to the next question and to the open ones.
func TestANewRuleCountsAtOnce(t *testing.T) {
	c := newChanging()
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
	pendingOf(t, h, 2) // unrelated
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

// killable counts which executors are killed.
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

// projects are agents that the project's file defines, except one.
type projects struct{}

func (projects) Resolve(name string) (config.Agent, error) {
	driver := "acp"
	if name == "speaks" {
		driver = "executor"
	}
	return config.Agent{Name: name, Driver: driver, Command: []string{name}, FromProject: name != "mine"}, nil
}

// Revoking trust ends the agents that the project's file started, active or idle, and no others.
func TestARevocationEndsTheProjectsAgents(t *testing.T) {
	c := newChanging()
	x := &killable{}
	reported := make(chan struct{}, 10)
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventProcess, catalog.Process{PID: 1 << 30, Mark: "mark of " + x.p.Prompt})
		reported <- struct{}{}
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
	for range 5 { // the two idle ones, and these
		<-reported
	}

	c.deny("Nothing")
	c.follow(t)
	inState(t, h, works, domain.Running) // a change alone ends nothing

	c.set(func() { c.revoked = true })
	for _, s := range []domain.Session{asks, works} {
		ended := await(t, h, s)
		assert.Equal(t, domain.Interrupted, ended.State)
		assert.Equal(t, codeRevoked, ended.ErrorCode)
		assert.Contains(t, ended.Error, "no longer trusted")
	}
	a, err := h.Approvals().Find(context.Background(), asked.ID)
	require.NoError(t, err)
	assert.Equal(t, domain.ApprovalCancelled, a.Status)
	assert.Equal(t, domain.Running, inState(t, h, mine, domain.Running).State)
	c.Await(t, func() bool { return len(c.marksKilled()) > 0 }, "the agents are killed")
	assert.ElementsMatch(t, []string{"mark of idle", "mark of ask", "mark of work"}, c.marksKilled())
	assert.EqualValues(t, 1, x.kills.Load(), "the executor that is an agent itself")

	// A run that started just before the check is ended too.
	assert.Equal(t, codeRevoked, await(t, h, launch("late", "theirs")).ErrorCode)
	_, err = h.Interrupt(context.Background(), mine.UUID, "")
	require.NoError(t, err)
	await(t, h, mine)
}
