package eventlog

import (
	"context"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is what a log of a test stands on: its events, and runs that are known by
// their number alone.
type world struct {
	log *Log

	mu      sync.Mutex
	kept    []domain.Event
	pending []domain.Event
	asked   func(run int64) // is called when a session is asked for; may be nil
	looked  func()          // is called when somebody asks what waits for a human; may be nil
}

func open(t *testing.T) *world {
	t.Helper()
	w := &world{}
	w.log = New(t.Context(), Options{Runs: w, Questions: w, Damaged: func(err error) { t.Error(err) }, Issue: "damaged", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, w.log.Open(t.Context(), w))
	return w
}

func (w *world) close(t *testing.T) { require.NoError(t, w.log.Close(context.Background())) }

func (w *world) Events(_ context.Context, after int64, limit int) ([]domain.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.kept[min(after, int64(len(w.kept))):]
	return append([]domain.Event{}, rest[:min(limit, len(rest))]...), nil
}

func (w *world) LastSeq(context.Context) (int64, error) { return int64(len(w.kept)), nil }

func (w *world) SessionOf(_ context.Context, run int64) (domain.Session, error) {
	if w.asked != nil {
		w.asked(run)
	}
	return domain.Session{Run: domain.Run{ID: run, SessionID: fmt.Sprint("session ", run), Task: run}}, nil
}

func (w *world) Scope(_ context.Context, id string) (run, thread int64, err error) {
	if _, err := fmt.Sscanf(id, "run %d", &run); err != nil {
		return 0, 0, domain.Errorf(domain.KindRunNotFound, "no run has the id %q", id)
	}
	return run, 0, nil
}

func (w *world) Pending(context.Context, int64) ([]domain.Event, error) {
	if w.looked != nil {
		w.looked()
	}
	return w.pending, nil
}

// commit keeps events and announces them.
func (w *world) commit(events ...domain.Event) {
	w.mu.Lock()
	for i := range events {
		events[i].Seq, events[i].Time = int64(len(w.kept)+1), time.Now()
		w.kept = append(w.kept, events[i])
	}
	w.mu.Unlock()
	w.log.Append(events)
}

func delta(run int64, key, text string) domain.Event {
	return domain.Event{Thread: run, Run: run, Payload: domain.MessageDelta{Key: key, Text: text}}
}

func whole(run int64, key string) domain.Event {
	return domain.Event{Thread: run, Run: run, Payload: domain.MessageAdded{Type: "message", Key: key}}
}

// A heard is what a subscriber was told, and when since it began.
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
		h.lines = append(h.lines, fmt.Sprintf("%s %s of %s: %s", at, p.Key, n.Ref.SessionID, p.Text))
	case domain.MessageAdded:
		h.lines = append(h.lines, fmt.Sprintf("%s %s is whole", at, p.Key))
	case domain.ApprovalRequested:
		how := "asked"
		if p.Replayed {
			how = "waits"
		}
		h.lines = append(h.lines, fmt.Sprintf("%s %s: %s", at, how, p.ApprovalID))
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
	h := &heard{began: time.Now()}
	s, err := w.log.Subscribe(t.Context(), want, h.deliver)
	require.NoError(t, err)
	s.Start()
	return h
}

// Who looks at a screen sees at once that an agent has begun to write, and then
// what it writes at a pace that was asked for.
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
			for _, text := range strings.Split("abcdef", "") {
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

// A message that begins while another one is being written does not wait for
// that one's pace.
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

// What an agent says before it asks comes before its question, also to somebody who begins
// to listen in that moment, and is told what waits.
func TestAQuestionThatIsAskedMeanwhileComesAfterWhatWasSaidBeforeIt(t *testing.T) {
	question := func(id string) domain.Event {
		return domain.Event{Thread: 1, Run: 1, Payload: domain.ApprovalRequested{ApprovalID: id}}
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

// Whoever commits waits for no watcher, nor for what a watcher needs to know.
func TestAWatcherHoldsUpNobodyAndMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		w.asked = func(int64) { time.Sleep(time.Second) } // as a database may take that is written to
		var seen []int64
		watch := w.log.Watch(func(e domain.Event, s domain.Session) {
			assert.Equal(t, e.Run, s.Run.ID)
			seen = append(seen, e.Seq)
		})
		began := time.Now()
		for range 3 {
			w.commit(whole(1, "a"), whole(2, "b"))
		}
		assert.Zero(t, time.Since(began))
		w.log.Forget() // what it has not read yet is in the store
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

// A process that ends waits until its subscribers know what it did to their runs.
func TestASubscriptionSaysWhenAllWasDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		var seen []int64
		s, err := w.log.Subscribe(t.Context(), Subscribing{Since: -1}, func(_ context.Context, n Notice) error {
			time.Sleep(time.Second) // a peer that reads slowly
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
	w.log.Watch(func(domain.Event, domain.Session) {}).Stop()
	assert.Empty(t, w.log.wakes)
	assert.Empty(t, w.log.open)
}

func TestWhatIsPublishedIsToldWhoeverIsThereAndNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		secret := domain.Event{Run: 1, Payload: domain.SecretRequested{}}
		assert.Zero(t, w.log.Publish(secret))
		h := w.subscribe(t, Subscribing{Since: -1, Kinds: []domain.EventKind{domain.EventSecretRequested}})
		w.subscribe(t, Subscribing{Since: -1, Run: "run 2"})
		synctest.Wait()
		assert.Equal(t, 1, w.log.Publish(secret), "the other one wants none of that run")
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
		told, withdraw := w.log.Ask(domain.Event{Run: 1, Payload: domain.SecretRequested{}})
		<-told
		late := w.subscribe(t, secret)
		synctest.Wait()
		assert.Equal(t, []string{"0s domain.SecretRequested"}, early.take())
		assert.Equal(t, []string{"0s domain.SecretRequested"}, late.take())
		withdraw()
		tooLate := w.subscribe(t, secret)
		synctest.Wait()
		assert.Empty(t, tooLate.take())

		told, withdraw = w.log.Ask(domain.Event{Run: 2, Payload: domain.SecretRequested{}})
		defer withdraw()
		for _, h := range []*heard{early, late, tooLate} {
			synctest.Wait()
			assert.Len(t, h.take(), 1)
		}
		<-told
	})
}

func TestNobodyHearsWhatIsAskedOfAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.close(t)
		w.subscribe(t, Subscribing{Since: -1, Run: "run 2"})
		synctest.Wait()
		told, withdraw := w.log.Ask(domain.Event{Run: 1, Payload: domain.SecretRequested{}})
		defer withdraw()
		synctest.Wait()
		select {
		case <-told:
			t.Error("somebody was told")
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
	w.log.Watch(func(domain.Event, domain.Session) {}).Stop()
}
