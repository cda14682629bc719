package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// filled returns a store with a number of turns, each in its own session and with a message.
func filled(t testing.TB, turns int) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "duet.db"), store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	states := []domain.State{domain.Completed, domain.Completed, domain.Completed, domain.Failed, domain.Interrupted}
	err = s.Write(t.Context(), func(tx store.Tx) error {
		for i := range turns {
			session := domain.Session{UUID: uuid.NewString(), CWD: "/project", Agent: "demo", Archived: i%10 == 0, Created: tx.Now(), Active: tx.Now()}
			if err := tx.InsertSession(&session); err != nil {
				return err
			}
			turn := domain.Turn{
				UUID: uuid.NewString(), HumanLayerSession: uuid.NewString(), HumanLayerRun: uuid.NewString(), Session: session.ID, Agent: "demo", Source: "task",
				Prompt: "mend what is broken " + strconv.Itoa(i), State: states[i%len(states)], Created: tx.Now(), Active: tx.Now(), Result: "It works again.",
			}
			if err := tx.InsertTurn(&turn); err != nil {
				return err
			}
			item := domain.Item{Session: session.ID, Turn: turn.ID, Kind: "message", Role: "assistant", Content: "a flaky test, number " + strconv.Itoa(i), Created: tx.Now(), Updated: tx.Now()}
			if err := tx.InsertItem(&item); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	return s
}

func TestSessionsAreTheNewestMatches(t *testing.T) {
	s := filled(t, 200) // 40 of them failed, 40 were interrupted, 20 are archived
	yes, no := true, false
	for _, c := range []struct {
		name   string
		filter domain.TurnFilter
		tasks  []int64
	}{
		{"all", domain.TurnFilter{Limit: 3}, []int64{200, 199, 198}},
		{"one state", domain.TurnFilter{States: []domain.State{domain.Failed}, Limit: 3}, []int64{199, 194, 189}},
		{"two states", domain.TurnFilter{States: []domain.State{domain.Failed, domain.Interrupted}, Limit: 3}, []int64{200, 199, 195}},
		{"before", domain.TurnFilter{States: []domain.State{domain.Interrupted, domain.Failed}, Before: 199, Limit: 3}, []int64{195, 194, 190}},
		{"archived", domain.TurnFilter{States: []domain.State{domain.Completed, domain.Failed}, Archived: &yes, Limit: 2}, []int64{191, 181}},
		{"not archived", domain.TurnFilter{Archived: &no, Before: 192, Limit: 2}, []int64{190, 189}},
		{"leaves", domain.TurnFilter{States: []domain.State{domain.Completed}, Leaves: true, Limit: 2}, []int64{198, 197}},
		{"a session", domain.TurnFilter{States: []domain.State{domain.Completed, domain.Failed}, Session: 7, Limit: 2}, []int64{7}},
		{"an agent", domain.TurnFilter{Agent: "demo", Source: "task", Limit: 1}, []int64{200}},
		{"an agent without any", domain.TurnFilter{Agent: "other", Limit: 1}, nil},
		{"a state without any", domain.TurnFilter{States: []domain.State{domain.Running}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := s.TurnsInSessions(t.Context(), c.filter)
			require.NoError(t, err)
			var tasks []int64
			for _, one := range list {
				tasks = append(tasks, one.Task)
			}
			assert.Equal(t, c.tasks, tasks)
		})
	}
	list, err := s.TurnsInSessions(t.Context(), domain.TurnFilter{States: []domain.State{domain.Completed, domain.Failed, domain.Interrupted}})
	require.NoError(t, err)
	assert.Len(t, list, 200, "without a limit")
}

func TestSearchRanksUpToALimit(t *testing.T) {
	s := filled(t, 1001)
	hits, err := s.Search(t.Context(), "fla", 2, 0) // 1001 items
	require.NoError(t, err)
	require.Len(t, hits, 2)
	assert.Equal(t, []int64{1001, 1000}, []int64{hits[0].Turn, hits[1].Turn}, "the newest")
	assert.Zero(t, hits[0].Rank)
	assert.Contains(t, hits[0].Snippet, "«flaky»")
	next, err := s.Search(t.Context(), "fla", 2, 2)
	require.NoError(t, err)
	require.Len(t, next, 2)
	assert.Equal(t, int64(999), next[0].Turn)

	hits, err = s.Search(t.Context(), "flaky 500", 2, 0)
	require.NoError(t, err)
	require.Len(t, hits, 1)
	assert.Equal(t, int64(501), hits[0].Turn)
	assert.NotZero(t, hits[0].Rank)

	s = filled(t, 1000)
	hits, err = s.Search(t.Context(), "flaky", 1, 0)
	require.NoError(t, err)
	require.Len(t, hits, 1)
	assert.NotZero(t, hits[0].Rank, "just as many as are ranked")
}

// The write-ahead log is copied into the database in the background, and then starts again.
func TestWriteAheadLogIsReused(t *testing.T) {
	s := filled(t, 1)
	wal := s.Path() + "-wal"
	write := func() {
		require.NoError(t, enqueue(s, func(tx store.Tx) error {
			for range 1500 {
				if _, err := tx.Append(domain.Event{Session: 1, Turn: 1, Payload: domain.MessageDelta{Key: "msg-1", Text: strings.Repeat("a piece of what it says ", 10)}}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	brought := func() bool { // the whole log is in the database
		index, err := os.ReadFile(s.Path() + "-shm")
		require.NoError(t, err)
		// mxFrame and nBackfill: https://sqlite.org/walformat.html#the_wal_index_header
		return bytes.Equal(index[16:20], index[96:100])
	}
	length := func() int64 {
		info, err := os.Stat(wal)
		require.NoError(t, err)
		return info.Size()
	}
	for range 20 {
		longest := length()
		write()
		if length() == longest { // its space was reused
			return
		}
		require.Eventually(t, brought, 30*time.Second, 5*time.Millisecond, "the events come into the database")
	}
	t.Fatal("the log never began anew")
}

func BenchmarkSessions(b *testing.B) {
	s := filled(b, 20_000)
	ended := []domain.State{domain.Queued, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting, domain.Completed, domain.Failed, domain.TimedOut, domain.Cancelled, domain.Interrupted}
	for _, c := range []struct {
		name   string
		filter domain.TurnFilter
	}{
		{"20", domain.TurnFilter{States: ended, Limit: 20}},
		{"1000", domain.TurnFilter{States: ended, Limit: 1000}},
		{"leaves-1000", domain.TurnFilter{States: ended, Leaves: true, Limit: 1000}},
		{"failed-20", domain.TurnFilter{States: []domain.State{domain.Failed}, Limit: 20}},
		{"running", domain.TurnFilter{States: []domain.State{domain.Running}, Limit: 20}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				_, err := s.TurnsInSessions(b.Context(), c.filter)
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	s := filled(b, 50_000)
	for _, words := range []string{"flaky", "fla", "flaky 4711"} {
		b.Run(words, func(b *testing.B) {
			for b.Loop() {
				_, err := s.Search(b.Context(), words, 20, 0)
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkAppend measures a delta, alone and with 64 in a transaction, as from a busy agent.
func BenchmarkAppend(b *testing.B) {
	s := filled(b, 1)
	for b.Loop() {
		require.NoError(b, enqueue(s, func(tx store.Tx) error {
			for range 64 {
				if _, err := tx.Append(domain.Event{Session: 1, Turn: 1, Payload: domain.MessageDelta{Key: "msg-1", Text: "a piece of what it says "}}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/event")
}

// BenchmarkToolCall measures an update of a tool call.
func BenchmarkToolCall(b *testing.B) {
	s := filled(b, 1)
	n := 0
	for b.Loop() {
		require.NoError(b, enqueue(s, func(tx store.Tx) error {
			for range 64 {
				n++
				key := fmt.Sprintf("call-%d", n)
				if _, err := tx.Turn(b.Context(), 1); err != nil {
					return err
				}
				if _, err := tx.ToolItem(b.Context(), 1, key); err != store.ErrNotFound {
					return err
				}
				seq, err := tx.Append(domain.Event{Session: 1, Turn: 1, Payload: domain.ToolCallChanged{ID: "call"}})
				if err != nil {
					return err
				}
				item := domain.Item{Session: 1, Turn: 1, Kind: "tool_call", Key: key, Seq: seq, Title: "make test", Status: "pending", Created: tx.Now(), Updated: tx.Now()}
				if err := tx.InsertItem(&item); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/event")
}

// enqueue waits for the commit of a change that need not survive a power cut.
func enqueue(s *sqlite.Store, change func(store.Tx) error) error {
	done := make(chan error, 1)
	s.Enqueue(change, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		return context.DeadlineExceeded
	}
}
