package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world fakes the store, the turns and the questions of a log.
type world struct {
	log *Log

	mu      sync.Mutex
	kept    []domain.Event
	pending []domain.Event
	asked   func(turn int64) // if not nil, called with each TurnOf
	looked  func()           // if not nil, called with each Pending

	damaged  func(seq int64) bool // if not nil, reports unreadable events
	hidden   func(seq int64) bool // if not nil, reports lost events
	broken   error                // error of one read
	sound    int                  // successful reads before broken
	reported int                  // calls of Damaged
	lost     map[int64]error      // errors of TurnOf
	quiet    map[int64]bool       // turns without deltas
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{}
	w.log = New(t.Context(), Options{Turns: w, Questions: w, Damaged: func(error) { w.reported++ }, Issue: "damaged", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, w.log.Open(t.Context(), w))
	return w
}

func (w *world) close(t *testing.T) { require.NoError(t, w.log.Close(context.Background())) }

func (w *world) Events(_ context.Context, after int64, limit int) ([]domain.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sound--; w.broken != nil && w.sound < 0 {
		err := w.broken
		w.broken = nil
		return nil, err
	}
	var events []domain.Event
	for _, e := range w.kept[min(after, int64(len(w.kept))):] {
		switch {
		case len(events) == limit:
			return events, nil
		case w.damaged != nil && w.damaged(e.Seq):
			return events, store.ErrDamaged
		case w.hidden == nil || !w.hidden(e.Seq):
			events = append(events, e)
		}
	}
	return events, nil
}

func (w *world) LastSeq(context.Context) (int64, error) { return int64(len(w.kept)), nil }

func (w *world) TurnOf(_ context.Context, turn int64) (domain.TurnInSession, error) {
	if w.asked != nil {
		w.asked(turn)
	}
	return domain.TurnInSession{Turn: domain.Turn{ID: turn, HumanLayerSession: fmt.Sprint("session ", turn), Task: turn, Quiet: w.quiet[turn]}}, w.lost[turn]
}

func (w *world) Scope(_ context.Context, id string) (turn, session int64, err error) {
	if _, err := fmt.Sscanf(id, "session %d", &session); err == nil {
		return 0, session, nil
	}
	if _, err := fmt.Sscanf(id, "turn %d", &turn); err != nil {
		return 0, 0, domain.Errorf(domain.KindTurnNotFound, "no turn has the id %q", id)
	}
	return turn, 0, nil
}

func (w *world) Pending(context.Context, int64) ([]domain.Event, error) {
	if w.looked != nil {
		w.looked()
	}
	return w.pending, nil
}

// commit stores events and announces them.
func (w *world) commit(events ...domain.Event) {
	w.mu.Lock()
	for i := range events {
		events[i].Seq, events[i].Time = int64(len(w.kept)+1), time.Now()
		w.kept = append(w.kept, events[i])
	}
	w.mu.Unlock()
	w.log.Committed(events)
}

func delta(turn int64, key, text string) domain.Event {
	return domain.Event{Session: turn, Turn: turn, Payload: domain.MessageDelta{Key: key, Text: text}}
}

func whole(turn int64, key string) domain.Event {
	return domain.Event{Session: turn, Turn: turn, Payload: domain.MessageAdded{Type: "message", Key: key}}
}

// heard is what a subscriber received, with the time since its start.
type heard struct {
	began time.Time

	mu    sync.Mutex
	lines []string
	last  int64
}

func (h *heard) deliver(_ context.Context, n Notice) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := time.Since(h.began)
	switch p := n.Payload.(type) {
	case domain.MessageDelta:
		h.lines = append(h.lines, fmt.Sprintf("%s %s of %s: %s", at, p.Key, n.Ref.HumanLayerSession, p.Text))
	case domain.MessageAdded:
		h.lines = append(h.lines, fmt.Sprintf("%s %s is whole", at, p.Key))
	case domain.ApprovalRequested:
		how := "asked"
		if p.Replayed {
			how = "waits"
		}
		if p.Replayed != (n.Seq == 0) {
			return errors.New("a question that waits has no number")
		}
		h.lines = append(h.lines, fmt.Sprintf("%s %s: %s", at, how, p.ApprovalID))
	case domain.LogDamaged:
		h.lines = append(h.lines, fmt.Sprintf("%s %s from %d to %d", at, p.Message, p.From, p.To))
	case domain.Lagged:
		h.lines = append(h.lines, fmt.Sprintf("%s lagged from %d to %d", at, p.From, p.To))
	default:
		h.lines = append(h.lines, fmt.Sprintf("%s %T", at, p))
	}
	if n.Seq > 0 && n.Seq <= h.last {
		return errors.New("numbers only rise")
	}
	h.last = max(h.last, n.Seq)
	return nil
}

func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := h.lines
	h.lines = nil
	return lines
}

func (w *world) subscribe(t *testing.T, want Subscribing) *heard {
	t.Helper()
	h, s := w.subscription(t, want)
	s.Start()
	return h
}

// subscription returns a subscription that reads nothing before it starts.
func (w *world) subscription(t *testing.T, want Subscribing) (*heard, *Subscription) {
	t.Helper()
	h := &heard{began: time.Now()}
	s, err := w.log.Subscribe(t.Context(), want, h.deliver)
	require.NoError(t, err)
	return h, s
}

// A subscriber gets the first delta of a message at once, and later ones at its pace.
func TestTheFirstDeltaOfAMessageIsToldAtOnceAndLaterOnesAtThePace(t *testing.T) {
	for pace, want := range map[time.Duration][]string{
		0: {"0s m1 of session 1: a", "50ms m1 of session 1: bcdef", "57ms m1 of session 1: g", "57ms m1 is whole", "57ms m2 of session 1: x", "107ms m2 of session 1: yz"},
		16 * time.Millisecond: {
			"0s m1 of session 1: a", "16ms m1 of session 1: b", "32ms m1 of session 1: cd", "48ms m1 of session 1: ef",
			"57ms m1 of session 1: g", "57ms m1 is whole", "57ms m2 of session 1: x", "73ms m2 of session 1: y", "89ms m2 of session 1: z",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			defer w.close(t)
			h := w.subscribe(t, Subscribing{Since: -1, Pace: pace})
			synctest.Wait()
			for text := range strings.SplitSeq("abcdef", "") {
				w.commit(delta(1, "m1", text))
				synctest.Wait()
				time.Sleep(9 * time.Millisecond)
			}
			time.Sleep(3 * time.Millisecond)
			w.commit(delta(1, "m1", "g"), whole(1, "m1"))
			synctest.Wait()
			for _, text := range []string{"x", "y", "z"} {
				w.commit(delta(1, "m2", text))
				synctest.Wait()
				time.Sleep(15 * time.Millisecond)
			}
			time.Sleep(time.Second)
			assert.Equal(t, want, h.take())
		})
	}
}

// The first delta of a message does not wait for the pace of another message.
func TestTheFirstDeltaIsToldAtOnceBesideAnotherMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		h := w.subscribe(t, Subscribing{Since: -1})
		synctest.Wait()
		w.commit(delta(1, "m1", "a"))
		synctest.Wait()
		time.Sleep(time.Millisecond)
		w.commit(delta(1, "m1", "b"))
		synctest.Wait()
		time.Sleep(time.Millisecond)
		w.commit(delta(2, "n1", "x"))
		synctest.Wait()
		assert.Equal(t, []string{"0s m1 of session 1: a", "2ms m1 of session 1: b", "2ms n1 of session 2: x"}, h.take())
	})
}

// What an agent says before a question arrives before the question, also for a new subscriber that
// gets the open questions.
func TestAQuestionThatIsAskedMeanwhileComesAfterWhatWasSaidBeforeIt(t *testing.T) {
	question := func(id string) domain.Event {
		return domain.Event{Session: 1, Turn: 1, Payload: domain.ApprovalRequested{ApprovalID: id}}
	}
	for since, want := range map[int64][]string{
		-1: {"0s waits: old", "0s m2 of session 1: I ask you", "0s m2 is whole", "0s asked: new"},
		2:  {"0s waits: old", "0s m2 of session 1: I ask you", "0s m2 is whole", "0s asked: new"},
		0:  {"0s asked: old", "0s m1 is whole", "0s m2 of session 1: I ask you", "0s m2 is whole", "0s asked: new"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			defer w.close(t)
			w.commit(question("old"), whole(1, "m1"))
			w.pending = []domain.Event{question("old")}
			w.looked = func() {
				w.looked = nil
				w.pending = append(w.pending, question("new"))
				w.commit(delta(1, "m2", "I ask you"), whole(1, "m2"), question("new"))
			}
			h := w.subscribe(t, Subscribing{Since: since})
			synctest.Wait()
			assert.Equal(t, want, h.take(), "since %d", since)
		})
	}
}

// A commit waits for no watcher, nor for its lookups.
func TestAWatcherHoldsUpNobodyAndMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		w.asked = func(int64) { time.Sleep(time.Second) } // as slow as a busy database
		var seen []int64
		watch := w.log.Watch(func(e domain.Event, s domain.TurnInSession) {
			assert.Equal(t, e.Turn, s.Turn.ID)
			seen = append(seen, e.Seq)
		})
		began := time.Now()
		for range 3 {
			w.commit(whole(1, "a"), whole(2, "b"))
		}
		assert.Zero(t, time.Since(began))
		w.log.Forget() // the watcher must read the rest from the store
		require.NoError(t, watch.CatchUp(t.Context()))
		assert.Equal(t, 6*time.Second, time.Since(began))
		assert.Equal(t, []int64{1, 2, 3, 4, 5, 6}, seen)
		w.commit(whole(1, "c"))
		late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, watch.CatchUp(late), context.DeadlineExceeded)
		watch.Stop()
		require.NoError(t, watch.CatchUp(t.Context()), "nothing more will come")
	})
}

// A process that ends can wait until its subscribers have the last events.
func TestASubscriptionSaysWhenAllWasDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		var seen []int64
		s, err := w.log.Subscribe(t.Context(), Subscribing{Since: -1}, func(_ context.Context, n Notice) error {
			time.Sleep(time.Second) // a slow reader
			seen = append(seen, n.Event.Seq)
			return nil
		})
		require.NoError(t, err)
		s.Start()
		w.commit(whole(1, "a"), whole(1, "b"))
		late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, s.CatchUp(late), context.DeadlineExceeded)
		require.NoError(t, s.CatchUp(t.Context()))
		assert.Equal(t, []int64{1, 2}, seen)
		w.commit(whole(1, "c"))
		s.Close()
		require.NoError(t, s.CatchUp(t.Context()), "nothing more will come")
	})
}

func TestSubscriptionsLeaveNothingBehind(t *testing.T) {
	w := open(t)
	defer w.close(t)
	for i := range 300 {
		s, err := w.log.Subscribe(t.Context(), Subscribing{Since: int64(i%2) - 1}, func(context.Context, Notice) error { return errors.New("gone") })
		require.NoError(t, err)
		s.Start()
		if i%3 == 0 {
			w.commit(whole(1, "a"))
		}
		s.Close()
		s.Close()
	}
	w.log.Watch(func(domain.Event, domain.TurnInSession) {}).Stop()
	assert.Empty(t, w.log.wakes)
	assert.Empty(t, w.log.open)
}

func TestWhatIsPublishedIsToldWhoeverIsThereAndNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		secret := domain.Event{Turn: 1, Payload: domain.SecretRequested{}}
		assert.Zero(t, w.log.Publish(secret))
		h := w.subscribe(t, Subscribing{Since: -1, Kinds: []domain.EventKind{domain.EventSecretRequested}})
		w.subscribe(t, Subscribing{Since: -1, Turn: "turn 2"})
		synctest.Wait()
		assert.Equal(t, 1, w.log.Publish(secret), "the other one wants none of that turn")
		synctest.Wait()
		assert.Equal(t, []string{"0s domain.SecretRequested"}, h.take())
		assert.Zero(t, w.log.Last())
	})
}

func TestWhatIsAskedIsToldWhoeverComesUntilItIsWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		secret := Subscribing{Since: -1, Kinds: []domain.EventKind{domain.EventSecretRequested}}
		early := w.subscribe(t, secret)
		synctest.Wait()
		logged, withdraw := w.log.Ask(domain.Event{Turn: 1, Payload: domain.SecretRequested{}})
		<-logged
		late := w.subscribe(t, secret)
		synctest.Wait()
		assert.Equal(t, []string{"0s domain.SecretRequested"}, early.take())
		assert.Equal(t, []string{"0s domain.SecretRequested"}, late.take())
		withdraw()
		tooLate := w.subscribe(t, secret)
		synctest.Wait()
		assert.Empty(t, tooLate.take())

		logged, withdraw = w.log.Ask(domain.Event{Turn: 2, Payload: domain.SecretRequested{}})
		defer withdraw()
		for _, h := range []*heard{early, late, tooLate} {
			synctest.Wait()
			assert.Len(t, h.take(), 1)
		}
		<-logged
	})
}

func TestNobodyHearsWhatIsAskedOfAnotherTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		w.subscribe(t, Subscribing{Since: -1, Turn: "turn 2"})
		synctest.Wait()
		logged, withdraw := w.log.Ask(domain.Event{Turn: 1, Payload: domain.SecretRequested{}})
		defer withdraw()
		synctest.Wait()
		select {
		case <-logged:
			t.Error("a subscriber was notified")
		default:
		}
	})
}

func TestAClosedLogStartsNothing(t *testing.T) {
	w := open(t)
	s, err := w.log.Subscribe(t.Context(), Subscribing{Since: -1}, func(context.Context, Notice) error { return nil })
	require.NoError(t, err)
	w.close(t)
	s.Start()
	<-s.Done()
	s.Close()
	w.log.Watch(func(domain.Event, domain.TurnInSession) {}).Stop()
}

// The memory holds the end of the log, limited in number and bytes.
func TestTheMemoryHoldsTheEnd(t *testing.T) {
	event := func(n, size int) domain.Event {
		return domain.Event{Seq: int64(n), Payload: domain.MessageAdded{Text: strings.Repeat("x", size)}}
	}
	most := keepBytes / size(event(1, 1<<20))
	for _, c := range []struct{ added, size, held int }{
		{1, 1, 1},
		{keepEvents, 1, keepEvents},
		{keepEvents + 3, 1, keepEvents},
		{3*keepEvents - 1, 1, keepEvents},
		{most, 1 << 20, most},
		{most + 2, 1 << 20, most},
		{2, 2 * keepBytes, 1},
	} {
		var m memory
		for n := 1; n <= c.added; n++ {
			m.add(event(n, c.size))
		}
		require.Equal(t, c.held, m.count, c)
		assert.Equal(t, c.held*size(event(1, c.size)), m.bytes, c)
		for _, behind := range []int{1, (c.held + 1) / 2, c.held} {
			for _, limit := range []int{1, 2, c.held} {
				var want, got []int64
				for i := range min(behind, limit) {
					want = append(want, int64(c.added-behind+1+i))
				}
				for _, e := range m.end(behind, limit) {
					got = append(got, e.Seq)
				}
				require.Equal(t, want, got, "%v: %d behind, at most %d", c, behind, limit)
			}
		}
	}
	w := open(t)
	defer w.close(t)
	w.commit(whole(1, "a"), whole(1, "b"), whole(1, "c"))
	for since, want := range map[int64]int{0: 3, 1: 2, 3: 0, 4: 0} {
		events, ok := w.log.recent(since, 9)
		assert.True(t, ok)
		assert.Len(t, events, want, since)
	}
	w.log.Forget()
	_, ok := w.log.recent(2, 9)
	assert.False(t, ok, "the store alone has it")
	events, ok := w.log.recent(3, 9)
	assert.True(t, ok)
	assert.Empty(t, events)
}

// An unreadable part of the log is reported by its numbers, and everything else is delivered.
func TestEverythingButTheDamageIsTold(t *testing.T) {
	for _, c := range []struct{ events, from, to int64 }{
		{1, 1, 1},
		{2, 1, 1},
		{2, 2, 2},
		{3, 2, 2},
		{3, 1, 3},
		{pageSize, pageSize, pageSize},
		{pageSize + 1, pageSize + 1, pageSize + 1},
		{3 * pageSize, 2, 2*pageSize + 7},
		{3 * pageSize, pageSize - 1, 3*pageSize - 1},
		{3 * pageSize, pageSize + 1, 3 * pageSize},
		{3 * pageSize, 40, 81},
	} {
		for name, missing := range map[string]bool{"unreadable": false, "missing": true} {
			synctest.Test(t, func(t *testing.T) {
				w := open(t)
				defer w.close(t)
				for range c.events {
					w.commit(whole(1, "a"))
				}
				is := func(seq int64) bool { return c.from <= seq && seq <= c.to }
				if missing {
					w.hidden = is
				} else {
					w.damaged = is
				}
				w.log.Forget()
				var logged, want []string
				for seq := int64(1); seq <= c.events; seq++ {
					switch {
					case seq == c.to:
						want = append(want, fmt.Sprintf("damaged from %d to %d", c.from, c.to))
					case !is(seq):
						want = append(want, fmt.Sprint(seq))
					}
				}
				s, err := w.log.Subscribe(t.Context(), Subscribing{}, func(_ context.Context, n Notice) error {
					if d, ok := n.Payload.(domain.LogDamaged); ok {
						assert.Equal(t, []any{d.To, "damaged"}, []any{n.Seq, d.Message})
						logged = append(logged, fmt.Sprintf("damaged from %d to %d", d.From, d.To))
					} else {
						logged = append(logged, fmt.Sprint(n.Seq))
					}
					return nil
				})
				require.NoError(t, err)
				s.Start()
				require.NoError(t, s.CatchUp(t.Context()))
				require.Equal(t, want, logged, "%v %s", c, name)
				assert.Equal(t, missing, w.reported > 0, "%v: what is missing is reported", c)

				var replayed int64
				require.NoError(t, w.log.Replay(t.Context(), []domain.EventKind{domain.EventMessage}, 0, c.events, func(e domain.Event, _ domain.TurnInSession) bool {
					assert.False(t, is(e.Seq))
					replayed++
					return true
				}))
				assert.Equal(t, c.events-(c.to-c.from+1), replayed, c)
			})
		}
	}
}

// A slow subscriber misses only deltas, and gets their range.
func TestWhoFallsBehindMissesDeltasAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		h, all := w.subscription(t, Subscribing{Since: -1})
		narrow, one := w.subscription(t, Subscribing{Since: -1, Turn: "turn 2"})
		w.damaged = func(seq int64) bool { return seq == 8 }
		w.commit(delta(1, "m1", "a"), whole(1, "m1"), delta(1, "m2", "b"), delta(2, "m3", "c"), delta(1, "m2", "d"), whole(1, "m2"), delta(1, "m4", "e"), whole(1, "m4"), delta(2, "m5", "f"))
		w.log.Forget() // before the subscribers read them
		all.Start()
		one.Start()
		synctest.Wait()
		assert.Equal(t, []string{
			"0s lagged from 1 to 1", "0s m1 is whole", "0s lagged from 3 to 5", "0s m2 is whole", "0s lagged from 7 to 7", "0s damaged from 8 to 8", "0s lagged from 9 to 9",
		}, h.take())
		assert.Equal(t, []string{"0s lagged from 4 to 4", "0s damaged from 8 to 8", "0s lagged from 9 to 9"}, narrow.take())
		w.commit(whole(1, "m5"), whole(2, "n"))
		synctest.Wait()
		assert.Equal(t, []string{"0s m5 is whole", "0s n is whole"}, h.take(), "it goes on")
		assert.Equal(t, []string{"0s n is whole"}, narrow.take())
	})
}

// A failed read is retried after a second; a closed log is not.
func TestAReadThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		w.commit(whole(1, "a"))
		w.broken = errors.New("too many open files")
		h := w.subscribe(t, Subscribing{})
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"1s a is whole"}, h.take())
		w.commit(whole(1, "b"), whole(1, "c"))
		time.Sleep(time.Second)
		h.take()
		w.damaged = func(seq int64) bool { return seq == 2 }
		w.broken, w.sound = errors.New("too many open files"), 1 // during the search for the end of the damage
		h = w.subscribe(t, Subscribing{})
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"1s a is whole", "1s damaged from 2 to 2", "1s c is whole"}, h.take())
		w.sound = 0
		w.broken = store.ErrClosed
		s, err := w.log.Subscribe(t.Context(), Subscribing{}, h.deliver)
		require.NoError(t, err)
		s.Start()
		<-s.Done()
		assert.Empty(t, h.take())
		w.broken = errors.New("too many open files")
		w.sound = 0
		assert.ErrorContains(t, w.log.Replay(t.Context(), nil, 0, 1, nil), "too many open files", "who replays can ask again")
	})
}

// The deltas of a turn with an unreadable session are left out. Damage is reported once.
func TestDeltasOfATurnThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		w.lost = map[int64]error{1: store.ErrDamaged, 2: store.ErrNotFound}
		w.quiet = map[int64]bool{3: true}
		h := w.subscribe(t, Subscribing{Since: -1})
		synctest.Wait()
		for turn := range int64(4) {
			w.commit(delta(turn+1, "m", "a"), delta(turn+1, "m", "b"))
		}
		time.Sleep(time.Second)
		assert.Equal(t, []string{"0s damaged from 1 to 1", "0s m of session 4: a", "50ms m of session 4: b"}, h.take())
	})
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		w.lost = map[int64]error{1: errors.New("too many open files")}
		s, err := w.log.Subscribe(t.Context(), Subscribing{Since: -1}, func(context.Context, Notice) error { return nil })
		require.NoError(t, err)
		s.Start()
		w.commit(delta(1, "m", "a"))
		<-s.Done() // ended, so that it can resume and miss nothing
	})
}

// Much text is sent at once, whatever the pace.
func TestMuchTextDoesNotWaitForThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		h := w.subscribe(t, Subscribing{Since: -1})
		synctest.Wait()
		half, rest := strings.Repeat("x", mergeMost/2), strings.Repeat("y", mergeMost/2-1)
		for _, text := range []string{"a", half, rest, "z"} {
			w.commit(delta(1, "m", text))
			synctest.Wait()
			if text == rest {
				assert.Equal(t, []string{"0s m of session 1: a"}, h.take(), "one byte less waits")
			}
		}
		assert.Equal(t, []string{"0s m of session 1: " + half + rest + "z"}, h.take())
	})
}

// The queue of unstored events for a slow subscriber is limited.
func TestWhatIsNotKeptWaitsForASlowSubscriberWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		reads, got := make(chan struct{}), 0
		s, err := w.log.Subscribe(t.Context(), Subscribing{Since: -1}, func(_ context.Context, n Notice) error {
			<-reads
			assert.Equal(t, time.Now(), n.Time)
			got++
			return nil
		})
		require.NoError(t, err)
		s.Start()
		synctest.Wait()
		secret := domain.Event{Turn: 1, Payload: domain.SecretRequested{}}
		assert.Equal(t, 1, w.log.Publish(secret))
		synctest.Wait() // it is being delivered
		_, withdraw := w.log.Ask(secret)
		defer withdraw()
		for range unkeptMost - 1 {
			assert.Equal(t, 1, w.log.Publish(secret))
		}
		assert.Zero(t, w.log.Publish(secret))
		logged, withdrawLast := w.log.Ask(secret)
		withdrawLast()
		close(reads)
		synctest.Wait()
		assert.Equal(t, 1+unkeptMost, got)
		select {
		case <-logged:
			t.Error("there was no room for it")
		default:
		}
	})
}

// A subscriber to a session or a turn gets no other events, stored or not.
func TestASubscriberHearsOfItsSessionAlone(t *testing.T) {
	question := func(session, turn int64, id string) domain.Event {
		return domain.Event{Session: session, Turn: turn, Payload: domain.ApprovalRequested{ApprovalID: id}}
	}
	for want, heard := range map[*Subscribing][]string{
		{Since: -1, Turn: "session 1"}: {"0s waits: a", "0s waits: b", "0s m1 is whole"},
		{Since: -1}:                    {"0s waits: a", "0s waits: b", "0s waits: c", "0s m1 is whole", "0s m2 is whole"},
		{Since: -1, Kinds: []domain.EventKind{domain.EventMessage}}:           {"0s m1 is whole", "0s m2 is whole"},
		{Since: -1, Kinds: []domain.EventKind{domain.EventApprovalRequested}}: {"0s waits: a", "0s waits: b", "0s waits: c"},
		{Since: -1, Kinds: []domain.EventKind{}}:                              nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := open(t)
			defer w.close(t)
			w.pending = []domain.Event{question(1, 11, "a"), question(1, 12, "b"), question(2, 21, "c")}
			for i := range w.pending {
				w.pending[i].Seq = 7 // another log's number
			}
			h := w.subscribe(t, *want)
			synctest.Wait()
			w.commit(whole(1, "m1"), whole(2, "m2"), domain.Event{Session: 1, Turn: 1, Payload: domain.Erased{}})
			synctest.Wait()
			assert.Equal(t, heard, h.take(), "%+v", *want)
		})
	}
	w := open(t)
	defer w.close(t)
	var refused *domain.Error
	_, err := w.log.Subscribe(t.Context(), Subscribing{Turn: "x"}, nil)
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, domain.KindTurnNotFound, refused.Kind)
	w.commit(whole(1, "a"))
	for since, ok := range map[int64]bool{-1: true, 0: true, 1: true, 2: false} {
		s, err := w.log.Subscribe(t.Context(), Subscribing{Since: since}, nil)
		if !ok {
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, []string{domain.KindInvalid, "since"}, []string{refused.Kind, refused.Param})
			continue
		}
		require.NoError(t, err)
		from := since
		if since < 0 {
			from = 1
		}
		assert.Equal(t, from, s.From())
		s.Close()
	}
}

// A replay returns the events of the wanted kinds between two numbers, and ends when its function
// returns false.
func TestAReplayIsOfAPartOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		for range pageSize {
			w.commit(whole(1, "a"), delta(2, "m", "x"))
		}
		w.commit(domain.Event{Payload: domain.MessageAdded{}}, whole(3, "lost"), whole(4, "b"))
		w.lost = map[int64]error{3: store.ErrDamaged}
		const last = 2*pageSize + 3
		for _, c := range []struct{ since, upTo, stop, first, end, n int64 }{
			{0, last, last, 1, last, pageSize + 1},
			{0, last - 1, last, 1, 2*pageSize - 1, pageSize},
			{1, 5, last, 3, 5, 2},
			{2, 5, last, 3, 5, 2},
			{5, 5, last, 0, 0, 0},
			{0, last + 7, 3, 1, 3, 2},
		} {
			var first, end, n int64
			require.NoError(t, w.log.Replay(t.Context(), []domain.EventKind{domain.EventMessage}, c.since, c.upTo, func(e domain.Event, s domain.TurnInSession) bool {
				assert.Equal(t, e.Turn, s.Turn.ID)
				if n++; first == 0 {
					first = e.Seq
				}
				end = e.Seq
				return e.Seq < c.stop
			}))
			assert.Equal(t, []int64{c.first, c.end, c.n}, []int64{first, end, n}, "%v", c)
		}
		w.lost[3] = errors.New("too many open files")
		assert.ErrorContains(t, w.log.Replay(t.Context(), []domain.EventKind{domain.EventMessage}, 0, last, func(domain.Event, domain.TurnInSession) bool { return true }), "too many")
	})
}

// An opened log continues after the store's last event.
func TestALogGoesOnBehindItsLastEvent(t *testing.T) {
	synctest.Test(t, testLastEvent)
}

func testLastEvent(t *testing.T) {
	w := &world{kept: make([]domain.Event, 3)}
	w.log = New(t.Context(), Options{Turns: w, Questions: w, Logger: slog.New(slog.DiscardHandler)})
	defer w.close(t)
	require.NoError(t, w.log.Open(t.Context(), w))
	w.commit(whole(1, "a"))
	assert.Equal(t, []int64{3, 4}, []int64{w.log.Began(), w.log.Last()})
	assert.NoError(t, w.log.Watch(func(domain.Event, domain.TurnInSession) {}).CatchUp(t.Context()), "a watch begins there")
}

// After Close of a subscription, no delivery is running.
func TestCloseWaitsForADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		delivered := false
		s, err := w.log.Subscribe(t.Context(), Subscribing{Since: -1}, func(context.Context, Notice) error {
			time.Sleep(time.Second)
			delivered = true
			return nil
		})
		require.NoError(t, err)
		s.Start()
		synctest.Wait()
		w.commit(whole(1, "a"))
		synctest.Wait()
		s.Close()
		assert.True(t, delivered)
	})
}

// A waiter continues when its number is reached, or never will be.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p progress
		ended := make(chan struct{})
		var reached []int64
		for _, seq := range []int64{2, 4, 9} {
			go func() {
				assert.NoError(t, p.await(t.Context(), seq, ended))
				reached = append(reached, seq)
			}()
			synctest.Wait()
		}
		for _, c := range []struct {
			seq  int64
			want []int64
		}{{1, nil}, {3, []int64{2}}, {4, []int64{2, 4}}} {
			p.reach(c.seq)
			synctest.Wait()
			assert.Equal(t, c.want, reached)
			assert.NoError(t, p.await(t.Context(), c.seq, nil), "it is reached")
		}
		close(ended)
		synctest.Wait()
		assert.Equal(t, []int64{2, 4, 9}, reached)
	})
}

// A subscription ends with its first failed delivery.
func TestADeliveryThatFailsEndsTheSubscription(t *testing.T) {
	question := domain.Event{Session: 1, Turn: 1, Payload: domain.ApprovalRequested{ApprovalID: "a"}}
	history := []domain.Event{delta(1, "m1", "a"), whole(1, "m1"), delta(1, "m2", "b"), whole(1, "x"), whole(1, "m2"), delta(1, "m3", "c")}
	for name, c := range map[string]struct {
		since int64
		after func(w *world) // run after the subscription has started
		most  int            // limit of deliveries
	}{
		"as it falls behind": {-1, func(*world) {}, 7},
		"in a replay":        {0, func(*world) {}, 7},
		"as it happens": {-1, func(w *world) {
			w.commit(history...)
			time.Sleep(time.Second)
			w.log.Publish(domain.Event{Turn: 1, Payload: domain.SecretRequested{}})
			w.log.Publish(domain.Event{Turn: 1, Payload: domain.SecretRequested{}})
			synctest.Wait()
			w.commit(delta(1, "m3", "d"))
			synctest.Wait()
			w.commit(delta(1, "m3", "e"))
			time.Sleep(time.Second)
		}, 11},
	} {
		for fails := 1; fails <= c.most+1; fails++ {
			synctest.Test(t, func(t *testing.T) {
				w := open(t)
				defer w.close(t)
				w.pending = []domain.Event{question}
				if c.since == 0 {
					w.commit(history...)
				}
				if c.since == 0 || c.most == 7 {
					w.damaged = func(seq int64) bool { return seq == 4 }
				}
				n := 0
				s, err := w.log.Subscribe(t.Context(), Subscribing{Since: c.since}, func(context.Context, Notice) error {
					if n++; n == fails {
						return errors.New("gone")
					}
					return nil
				})
				require.NoError(t, err)
				if name == "as it falls behind" {
					w.commit(history...)
					w.log.Forget()
				}
				s.Start()
				synctest.Wait()
				c.after(w)
				synctest.Wait()
				if fails > c.most {
					require.Equal(t, c.most, n, name)
					return
				}
				<-s.Done()
				assert.Equal(t, fails, n, name)
			})
		}
	}
}

// Pieces with a different _meta are sent separately, in order.
func TestDeltasOfOneMetaAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		h := w.subscribe(t, Subscribing{Since: -1, Pace: time.Second})
		with := func(text, meta string) domain.Event {
			e := delta(1, "m1", text)
			d := e.Payload.(domain.MessageDelta)
			d.Meta = json.RawMessage(meta)
			e.Payload = d
			return e
		}
		synctest.Wait()
		w.commit(delta(1, "m1", "first"), with("a", `{"n":1}`), with("b", `{"n":1}`), with("c", `{"n":2}`), with("d", `{"n":1}`))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"0s m1 of session 1: first", "1s m1 of session 1: ab", "1s m1 of session 1: c", "1s m1 of session 1: d"}, h.take())
	})
}
