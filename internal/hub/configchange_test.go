package hub

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
	fakeOf(o).changes = c
	fakeOf(o).rules = func() []config.Rule {
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
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.say(verdictText(x.ask(ctx, "Write", map[string]string{"file_path": x.p.Prompt})))
		return completed
	}, c.options)
	open := must(h.Launch(context.Background(), LaunchSpec{Prompt: "a"}))(t)
	asked := pendingOf(t, h, 1)[0]
	c.deny("Edit")
	next := must(h.Launch(context.Background(), LaunchSpec{Prompt: "b"}))(t)
	pendingOf(t, h, 2) // unrelated
	c.deny("Write")
	later := must(h.Launch(context.Background(), LaunchSpec{Prompt: "c"}))(t)
	for _, s := range []domain.TurnInSession{open, next, later} {
		assert.Equal(t, domain.Completed, await(t, h, s).State)
	}
	a := must(h.Approvals().Find(context.Background(), asked.ID))(t)
	assert.Equal(t, []string{domain.ApprovalDenied, "rule=user"}, []string{a.Status, a.DecidedBy})
	c.set(func() { c.rules = nil })
	last := must(h.Launch(context.Background(), LaunchSpec{Prompt: "d"}))(t)
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
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
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
		fakeOf(o).Agents, o.Limits.MaxTurns = projects{}, 10
		made := o.Executors
		o.Executors = func(d catalog.Daemon) Executors {
			x.Executors = made(d)
			return x
		}
	})
	launch := func(prompt, agent string) domain.TurnInSession {
		return must(h.Launch(context.Background(), LaunchSpec{Prompt: prompt, Agent: agent}))(t)
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
	for _, s := range []domain.TurnInSession{asks, works} {
		ended := await(t, h, s)
		assert.Equal(t, []any{domain.Interrupted, codeRevoked}, []any{ended.State, ended.ErrorCode})
		assert.Contains(t, ended.Error, "no longer trusted")
	}
	assert.Equal(t, domain.ApprovalCancelled, must(h.Approvals().Find(context.Background(), asked.ID))(t).Status)
	assert.Equal(t, domain.Running, inState(t, h, mine, domain.Running).State)
	c.Await(t, func() bool { return len(c.marksKilled()) > 0 }, "the agents are killed")
	assert.ElementsMatch(t, []string{"mark of idle", "mark of ask", "mark of work"}, c.marksKilled())
	assert.EqualValues(t, 1, x.kills.Load(), "the executor that is an agent itself")

	// A turn that started just before the check is ended too.
	assert.Equal(t, codeRevoked, await(t, h, launch("late", "theirs")).ErrorCode)
	must(h.Interrupt(context.Background(), mine.UUID, ""))(t)
	await(t, h, mine)
}

// watched is a configuration that a test changes, with a record of the reactions.
type watched struct {
	mu         sync.Mutex // guards the fields below
	generation uint64
	revoked    bool
	executors  bool
	failure    error         // returned by the next reaction
	tells      chan struct{} // nil: no change notifications

	looks      int // calls of Generation
	watches    int // not yet stopped
	reconsider int
	ended      []changedAgent
	meanwhile  func() // called while agents are ended; nil: nothing happens
}

func (c *watched) Generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	return c.generation
}

func (c *watched) Revoked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revoked
}

func (c *watched) Watch() (changed <-chan struct{}, stop func()) {
	c.set(func() { c.watches++ })
	return c.tells, func() { c.set(func() { c.watches-- }) }
}

func (c *watched) hasExecutors() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.executors
}

func (c *watched) rulesChanged(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reconsider++
	err := c.failure
	c.failure = nil
	return err
}

func (c *watched) trustRevoked(_ context.Context, agents []changedAgent) error {
	if c.meanwhile != nil {
		c.meanwhile()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, agents...)
	err := c.failure
	c.failure = nil
	return err
}

func (c *watched) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// now returns the reactions so far.
func (c *watched) now() (looks, reconsider int, ended []changedAgent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks, c.reconsider, slices.Clone(c.ended)
}

// start returns a watch that is closed when the test ends.
func start(t *testing.T) (*watched, *configWatch) {
	c := &watched{}
	w := newConfigWatch(context.Background(), configWatchOptions{Changes: c, HasExecutors: c.hasExecutors, RulesChanged: c.rulesChanged, TrustRevoked: c.trustRevoked})
	t.Cleanup(func() { require.NoError(t, w.Close(context.Background())) })
	return c, w
}

// wait lets time pass. It never ends at the time of a poll, so that a poll is over when the test
// continues.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAChangeIsFollowedWhileThereAreAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := start(t)
		reconsidered := func() int {
			_, n, _ := c.now()
			return n
		}
		w.TurnStarted(1, false)
		wait(time.Hour + lookEvery/3)
		assert.Zero(t, reconsidered(), "nothing has changed")
		c.set(func() { c.generation++ })
		wait(lookEvery)
		assert.Equal(t, 1, reconsidered())
		wait(time.Hour)
		assert.Equal(t, 1, reconsidered(), "a change is followed once")
		c.set(func() { c.generation++; c.failure = errors.New("the disk is full") })
		wait(lookEvery)
		assert.Equal(t, 2, reconsidered())
		wait(lookEvery)
		assert.Equal(t, 3, reconsidered(), "or again, where that fails")

		w.TurnEnded(1)
		wait(lookEvery)
		looks, _, ended := c.now()
		assert.Empty(t, ended, "a change alone ends nothing")
		c.set(func() { c.generation++ })
		wait(time.Hour)
		still, _, _ := c.now()
		assert.Equal(t, looks, still, "nothing is looked at where no agent is")
		assert.Zero(t, c.watches)
		w.TurnStarted(2, false)
		wait(0)
		assert.Equal(t, 4, reconsidered(), "what changed meanwhile is followed then")
	})
}

func TestAChangeThatIsToldIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := start(t)
		c.tells = make(chan struct{}, 1)
		reconsidered := func() int {
			_, n, _ := c.now()
			return n
		}
		looked := func() int {
			n, _, _ := c.now()
			return n
		}
		tell := func() { c.tells <- struct{}{} }
		w.TurnStarted(1, false)
		wait(time.Hour + lookEvery/3)
		assert.LessOrEqual(t, looked(), int(time.Hour/lookStill)+2, "it is looked at seldom")

		c.set(func() { c.generation++ })
		tell()
		wait(0)
		assert.Equal(t, 1, reconsidered())
		c.set(func() { c.generation++; c.failure = errors.New("the disk is full") })
		tell()
		wait(0)
		assert.Equal(t, 2, reconsidered())
		wait(lookEvery)
		assert.Equal(t, 3, reconsidered(), "one that fails is tried again though nothing is reported")
		c.set(func() { c.generation++ })
		wait(lookStill)
		assert.Equal(t, 4, reconsidered(), "and what nothing tells of is seen later")

		close(c.tells)
		wait(0)
		c.set(func() { c.generation++ })
		wait(lookEvery)
		assert.Equal(t, 5, reconsidered(), "who cannot tell any more is looked at often")
		w.TurnEnded(1)
		wait(lookStill)
		assert.Zero(t, c.watches)
	})
}

func TestWhoTakesTheTrustBackEndsTheProjectsAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := start(t)
		ended := func() (list []int64) {
			_, _, agents := c.now()
			for _, a := range agents {
				list = append(list, a.Turn)
			}
			return list
		}
		c.set(func() { c.executors = true })
		var killed bool
		w.TurnStarted(1, true)
		w.AgentIsExecutor(1, func() { killed = true })
		w.TurnStarted(2, false)
		w.AgentIsExecutor(2, func() { t.Error("it is the user's own") })
		w.TurnEnded(1)
		wait(time.Hour + lookEvery/3)
		c.set(func() { c.revoked, c.failure = true, errors.New("the disk is full") })
		wait(lookEvery)
		assert.Equal(t, []int64{1}, ended(), "an agent may outlast its turns")
		wait(lookEvery)
		assert.Equal(t, []int64{1, 1}, ended(), "it is tried again")
		_, _, agents := c.now()
		agents[1].Kill()
		assert.True(t, killed)
		wait(time.Hour)
		assert.Equal(t, []int64{1, 1}, ended(), "and that is all")
		w.TurnStarted(3, true)
		wait(lookEvery)
		assert.Equal(t, []int64{1, 1, 3}, ended(), "one that started in the last moment ends, too")
	})
}

// An agent that starts just before or after a revocation ends at once: the poll does not wait for
// its next interval, and needs no change notification.
func TestAnAgentThatStartsWakesTheLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := start(t)
		c.tells = make(chan struct{})
		w.TurnStarted(1, false)
		wait(lookStill / 3)
		looks, _, _ := c.now()
		w.TurnStarted(2, false)
		wait(0)
		still, _, _ := c.now()
		assert.Equal(t, looks, still, "no revocation ends the user's own agents")

		c.set(func() { c.revoked = true })
		w.TurnStarted(3, true)
		wait(0)
		_, _, ended := c.now()
		assert.Equal(t, []changedAgent{{Turn: 3}}, ended)

		killed := make(map[int64]bool)
		w.AgentIsExecutor(2, func() { killed[2] = true })
		w.AgentIsExecutor(3, func() { killed[3] = true })
		wait(0)
		_, _, ended = c.now()
		require.Len(t, ended, 2, "the executor of a turn that was ended is an agent of the project, too")
		ended[1].Kill()
		assert.Equal(t, map[int64]bool{3: true}, killed)
		w.TurnEnded(3)
		w.TurnEnded(2)
		w.TurnEnded(1)
		wait(lookStill)
		assert.Zero(t, c.watches)
	})
}

func TestAnAgentIsGoneAWhileAfterItsLastTurnWhereNoExecutorIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := start(t)
		w.TurnStarted(1, true)
		w.TurnEnded(1)
		wait(mayIdle + lookEvery + lookEvery/3)
		looks, _, _ := c.now()
		c.set(func() { c.revoked = true })
		wait(time.Hour)
		still, _, ended := c.now()
		assert.Equal(t, looks, still, "nothing is looked at any more")
		assert.Empty(t, ended)
	})
}

// An agent's process may be put on record when its turn has been ended already.
func TestAProcessThatIsRecordedAfterTheRevocationIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := start(t)
		c.set(func() { c.executors = true })
		w.TurnStarted(1, true)
		w.TurnStarted(2, true)
		w.TurnStarted(3, false)
		w.AgentStarted(1)
		wait(lookEvery)
		_, _, ended := c.now()
		require.Empty(t, ended, "they are trusted")
		c.meanwhile = sync.OnceFunc(func() { w.AgentStarted(2) })
		c.set(func() { c.revoked = true })
		wait(lookEvery)
		of := func(turn int64) (n int) {
			_, _, ended := c.now()
			for _, a := range ended {
				if a.Turn == turn {
					n++
				}
			}
			return n
		}
		assert.Equal(t, []int{1, 2, 0}, []int{of(1), of(2), of(3)}, "recorded while the others were ended")
		for turn := range int64(3) {
			w.TurnEnded(turn + 1)
		}
		wait(time.Hour)
		w.AgentStarted(1)
		w.AgentStarted(3)
		wait(0)
		assert.Equal(t, []int{2, 2, 0}, []int{of(1), of(2), of(3)}, "recorded late")
	})
}
