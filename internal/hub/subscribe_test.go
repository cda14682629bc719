package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
)

// said returns the text of the deltas of one kind in order of arrival.
func said(notices []eventlog.Notice, kind domain.EventKind) string {
	var text strings.Builder
	for _, n := range notices {
		if d, ok := n.Payload.(domain.MessageDelta); ok && d.Kind() == kind {
			text.WriteString(d.Text)
		}
	}
	return text.String()
}

// requireRising checks that sequence numbers only rise. Events that are not stored have none.
func requireRising(t *testing.T, notices []eventlog.Notice) {
	t.Helper()
	last := int64(0)
	for _, n := range notices {
		if n.Seq > 0 {
			require.Greater(t, n.Seq, last)
			last = n.Seq
		}
	}
}

// hasEnd waits until the subscriber has received the ends of n turns.
func hasEnd(t *testing.T, c *collected, n int) {
	t.Helper()
	c.until(t, func() bool {
		ends := 0
		for _, s := range c.states() {
			if strings.HasSuffix(s, " completed") {
				ends++
			}
		}
		return ends >= n
	})
}

func TestDeltasAreMergedAndTheirTextIsWhole(t *testing.T) { synctest.Test(t, testDeltasAreMerged) }

func testDeltasAreMerged(t *testing.T) {
	const tokens = 400
	var want strings.Builder
	for i := range tokens {
		fmt.Fprintf(&want, "tökén %d ", i)
	}
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		for i := range tokens {
			x.say(fmt.Sprintf("tökén %d ", i))
			if i%20 == 0 {
				time.Sleep(5 * time.Millisecond) // typical pace of an agent
			}
		}
		return completed
	})
	c := subscribe(t, h, eventlog.Subscribing{}, -1)
	began := time.Now()
	s := await(t, h, launch(t, h, "p"))
	took := time.Since(began)
	hasEnd(t, c, 1)
	live := c.all()
	assert.Equal(t, want.String(), said(live, domain.EventDelta))
	assert.Equal(t, want.String(), s.Result)
	requireRising(t, live)
	deltas := 0
	for _, n := range live {
		if n.Payload.Kind() == domain.EventDelta {
			deltas++
		}
	}
	assert.LessOrEqual(t, deltas, int(took/eventlog.DefaultPace)+2, "at most 20 a second, and what is left at the end")

	replayed := subscribe(t, h, eventlog.Subscribing{}, 0)
	hasEnd(t, replayed, 1)
	requireRising(t, replayed.all())
	assert.Equal(t, want.String(), said(replayed.all(), domain.EventDelta))
	lasting := func(list []eventlog.Notice) (lines []string) {
		for _, n := range list {
			if n.Payload.Kind() != domain.EventDelta {
				lines = append(lines, fmt.Sprintf("%d %d %T %+v %+v", n.Seq, n.Time.UnixNano(), n.Payload, n.Ref, n.Payload))
			}
		}
		return lines
	}
	assert.Equal(t, lasting(live), lasting(replayed.all()), "what lasts is the same in every replay")
}

// Two messages are written concurrently. A subscriber that resumes after any number it saw misses
// nothing and gets no completed group again.
func TestNothingIsMissedWhereMessagesWereMergedAtTheSameTime(t *testing.T) {
	const chunks = 300
	turns := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	turns[0] <- struct{}{}
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		me := int(x.p.Prompt[0] - '0')
		for i := range chunks {
			<-turns[me]
			x.say(fmt.Sprintf("%d:%d ", me, i))
			turns[1-me] <- struct{}{}
		}
		return completed
	})
	c := subscribe(t, h, eventlog.Subscribing{}, -1)
	var sessions []string
	texts := make(map[string]string)
	for _, prompt := range []string{"0", "1"} {
		sessions = append(sessions, launch(t, h, prompt).UUID)
	}
	for _, id := range sessions {
		s := must(h.Await(context.Background(), id))(t)
		texts[s.HumanLayerSession] = s.Result
	}
	hasEnd(t, c, 2)
	live := c.all()
	requireRising(t, live)
	saidBy := func(list []eventlog.Notice) map[string]string {
		reported := make(map[string]string)
		for _, n := range list {
			if d, ok := n.Payload.(domain.MessageDelta); ok {
				reported[n.Ref.HumanLayerSession] += d.Text
			}
		}
		return reported
	}
	assert.Equal(t, texts, saidBy(live))
	for i, n := range live {
		if n.Payload.Kind() != domain.EventDelta {
			continue
		}
		rest := subscribe(t, h, eventlog.Subscribing{}, n.Seq)
		hasEnd(t, rest, 2-strings.Count(strings.Join((&collected{list: live[:i+1]}).states(), " "), "completed"))
		before, after := saidBy(live[:i+1]), saidBy(rest.all())
		for id, text := range texts {
			require.True(t, strings.HasPrefix(text, before[id]))
			require.True(t, strings.HasSuffix(text, after[id]))
			require.GreaterOrEqual(t, len(before[id])+len(after[id]), len(text), "text is missing after %d", n.Seq)
			if !n.More {
				require.Len(t, text, len(before[id])+len(after[id]), "text comes again after %d", n.Seq)
			}
		}
	}
}

func TestReplayBeginsAfterWhatWasSeen(t *testing.T) {
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult { x.say("x"); return completed })
	await(t, h, launch(t, h, "p"))
	all := subscribe(t, h, eventlog.Subscribing{}, 0)
	hasEnd(t, all, 1)
	list := all.all()
	for i, n := range list {
		rest := subscribe(t, h, eventlog.Subscribing{}, n.Seq)
		rest.until(t, func() bool { return len(rest.all()) == len(list)-i-1 })
		if i < len(list)-1 {
			assert.Equal(t, list[i+1].Seq, rest.all()[0].Seq)
		}
	}
}

func TestFiltersChoose(t *testing.T) {
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult { x.say(x.p.Prompt); return completed })
	a1 := await(t, h, launchIn(t, h, "a", "a1"))
	b1 := await(t, h, launchIn(t, h, "b", "b1"))
	a2 := await(t, h, launchIn(t, h, "a", "a2"))
	for name, c := range map[string]struct {
		f    eventlog.Subscribing
		want string
		ends int
	}{
		"all":          {eventlog.Subscribing{}, "a1b1a2", 3},
		"a turn":       {eventlog.Subscribing{Turn: a1.HumanLayerRun}, "a1", 1},
		"a task":       {eventlog.Subscribing{Turn: domain.TaskName(b1.Task)}, "b1", 1},
		"a session":    {eventlog.Subscribing{Turn: a1.Session.UUID}, "a1a2", 2},
		"a last turn":  {eventlog.Subscribing{Turn: a2.HumanLayerSession}, "a2", 1},
		"only its end": {eventlog.Subscribing{Turn: a1.HumanLayerRun, Kinds: []domain.EventKind{domain.EventTurnState}}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := subscribe(t, h, c.f, 0)
			hasEnd(t, got, c.ends)
			assert.Equal(t, c.want, said(got.all(), domain.EventDelta))
			if c.f.Kinds != nil {
				assert.Subset(t, c.f.Kinds, got.kinds())
			}
		})
	}
}

func TestWhatWaitsIsShownOnceToWhoeverSubscribes(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	s := launch(t, h, "a")
	a := pendingOf(t, h, 1)[0]
	for name, c := range map[string]struct {
		f     eventlog.Subscribing
		since int64
		want  int
	}{
		"from now on":        {eventlog.Subscribing{}, -1, 1},
		"from the beginning": {eventlog.Subscribing{}, 0, 1},
		"from the end":       {eventlog.Subscribing{}, h.events.Last(), 1},
		"of this turn":       {eventlog.Subscribing{Turn: s.HumanLayerRun, Kinds: []domain.EventKind{domain.EventApprovalRequested}}, -1, 1},
		"not that":           {eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventTurnState}}, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := subscribe(t, h, c.f, c.since)
			// A later event shows that the replay is complete.
			title := "new " + name
			must(h.Settings().Update(context.Background(), s.UUID, domain.SettingsChanged{Title: &title}))(t)
			count := func(kind domain.EventKind) (n int) {
				for _, k := range got.kinds() {
					if k == kind {
						n++
					}
				}
				return n
			}
			isLast := func(e domain.Event) bool {
				p, is := e.Payload.(domain.SettingsChanged)
				return is && p.Title != nil && *p.Title == title
			}
			if c.f.Kinds == nil {
				got.until(t, func() bool { // the replay may deliver it before the pending questions
					return count(domain.EventApprovalRequested) >= c.want && slices.ContainsFunc(got.all(), func(n eventlog.Notice) bool { return isLast(n.Event) })
				})
			} else {
				got.until(t, func() bool { return count(domain.EventApprovalRequested) == c.want })
			}
			assert.Equal(t, c.want, count(domain.EventApprovalRequested))
		})
	}
	other := launch(t, h, "b")
	approve(t, h, a, "")
	await(t, h, s)
	pendingOf(t, h, 1)
	inState(t, h, other, domain.WaitingInput)
	got := subscribe(t, h, eventlog.Subscribing{Turn: other.HumanLayerRun}, -1)
	// The announcement follows the commit, so more may arrive.
	got.until(t, func() bool { return slices.Contains(got.kinds(), domain.EventApprovalRequested) })
}

// A question asked during Subscribe arrives once, from the replay or from the log.
func TestAQuestionAskedDuringSubscribeComesOnce(t *testing.T) {
	h := openHub(t, database(t), hang)
	s := inState(t, h, launch(t, h, "p"), domain.Running)
	for range 20 {
		c := &collected{}
		sub, err := h.events.Subscribe(context.Background(), eventlog.Subscribing{Kinds: []domain.EventKind{domain.EventApprovalRequested, domain.EventApprovalResolved}, Since: -1}, c.deliver)
		require.NoError(t, err)
		a, err := h.Approvals().Create(context.Background(), approval.Spec{Turn: s.HumanLayerRun, Tool: "Write"}) // before the turn starts
		require.NoError(t, err)
		sub.Start()
		c.until(t, func() bool { return len(c.kinds()) > 0 })
		approve(t, h, a, "")
		c.until(t, func() bool { return slices.Contains(c.kinds(), domain.EventApprovalResolved) })
		assert.Equal(t, []domain.EventKind{domain.EventApprovalRequested, domain.EventApprovalResolved}, c.kinds())
		sub.Close()
	}
}

func TestASlowSubscriberLosesDeltasAndNothingElse(t *testing.T) {
	gate, first := make(chan struct{}), make(chan struct{})
	h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		<-first         // the subscriber has read no delta yet, and reads no more
		for range 600 { // more than the buffer holds
			x.say(strings.Repeat("x", 10_000))
		}
		return completed
	})
	c := &collected{}
	var once sync.Once
	sub := must(h.events.Subscribe(context.Background(), eventlog.Subscribing{Since: -1}, func(ctx context.Context, n eventlog.Notice) error {
		once.Do(func() { close(first) })
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
		return c.deliver(ctx, n)
	}))(t)
	sub.Start()
	defer sub.Close()
	s := launch(t, h, "p")
	<-first
	await(t, h, s)
	close(gate)
	hasEnd(t, c, 1)
	requireRising(t, c.all())
	assert.Equal(t, []string{" queued", "queued starting", "starting running", "running completed"}, c.states())
	lagged, last := 0, int64(0)
	for _, n := range c.all() {
		if gap, ok := n.Payload.(domain.Lagged); ok {
			lagged++
			assert.Equal(t, last+1, gap.From, "the gap is reported exactly")
			assert.Equal(t, gap.To, n.Seq)
		} else {
			assert.Equal(t, last+1, n.Seq, "all the rest is there")
		}
		last = n.Seq
	}
	assert.Positive(t, lagged)
}

func TestHundredsOfSubscribersComeAndGo(t *testing.T) { synctest.Test(t, testHundredsOfSubscribers) }

func testHundredsOfSubscribers(t *testing.T) {
	stop := make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		for {
			select {
			case <-stop:
				return completed
			case <-ctx.Done():
				return completed
			default:
				x.say("x")
				time.Sleep(time.Millisecond)
			}
		}
	})
	s := launch(t, h, "p")
	var all sync.WaitGroup
	broken := errors.New("the connection broke")
	for i := range 300 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			n := 0
			sub, err := h.events.Subscribe(ctx, eventlog.Subscribing{Turn: s.HumanLayerRun, Since: int64(i%2) - 1}, func(context.Context, eventlog.Notice) error {
				if n++; n > 3 && i%3 == 0 {
					return broken
				}
				return nil
			})
			if !assert.NoError(t, err) {
				return
			}
			sub.Start()
			switch i % 3 {
			case 0:
				<-sub.Done()
			case 1:
				cancel()
				<-sub.Done()
			}
			sub.Close()
			sub.Close()
		})
	}
	all.Wait()
	close(stop)
	await(t, h, s)
}

func TestCloseEndsASubscriberThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed })
		blocked := make(chan struct{})
		var once sync.Once
		sub := must(h.events.Subscribe(context.Background(), eventlog.Subscribing{Since: -1}, func(ctx context.Context, _ eventlog.Notice) error {
			once.Do(func() { close(blocked) })
			<-ctx.Done()
			return ctx.Err()
		}))(t)
		sub.Start()
		launch(t, h, "p")
		<-blocked
		began := time.Now()
		require.NoError(t, h.Close())
		assert.Less(t, time.Since(began), 900*time.Millisecond)
		<-sub.Done()

		late, err := h.events.Subscribe(context.Background(), eventlog.Subscribing{Since: -1}, func(context.Context, eventlog.Notice) error { return nil })
		require.NoError(t, err)
		late.Start()
		<-late.Done()
	})
}

// A watcher receives each event once, in order and with its session, even when two sessions change
// concurrently.
func TestWatchKnowsTheSessionOfEachEvent(t *testing.T) {
	end := make(chan struct{})
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { <-end; return completed },
		func(o *Options) { o.Limits.MaxTurns = 1 })
	first := inState(t, h, launch(t, h, "first"), domain.Running)
	second := launch(t, h, "second") // starts in the transaction that ends the first
	var mu sync.Mutex
	var wrong []domain.Event
	var seq int64
	watch := h.events.Watch(func(e domain.Event, s domain.TurnInSession) {
		mu.Lock()
		defer mu.Unlock()
		if s.Turn.ID != e.Turn || seq > 0 && e.Seq != seq+1 {
			wrong = append(wrong, e)
		}
		seq = e.Seq
	})
	defer watch.Stop()
	close(end)
	await(t, h, first)
	await(t, h, second)
	require.NoError(t, watch.CatchUp(context.Background()))
	mu.Lock()
	defer mu.Unlock()
	assert.Empty(t, wrong)
}
