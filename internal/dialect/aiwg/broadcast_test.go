package aiwg

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// said is a sent broadcast.
type said struct {
	at     time.Duration
	method string
	params string // JSON
}

// started runs a member. take delays each message to its peer.
func started(take func()) (m *member, got *[]said, end func()) {
	list := []said{}
	begin, ended := time.Now(), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	m = newMember(func(_ context.Context, message *protocol.Notification) error {
		take()
		params, err := json.Marshal(message.Params)
		list = append(list, said{time.Since(begin), message.Method, string(params)})
		return err
	})
	go func() {
		defer close(ended)
		m.run(ctx)
	}()
	return m, &list, func() {
		cancel()
		<-ended
	}
}

func output(chunk string) note { return note{task: 1, chunk: chunk} }

// queued returns a note without output, which n identifies.
func queued(n int) note {
	return note{task: 1, message: &protocol.Notification{Method: "event.taskQueued", Params: n}}
}

func chunkOf(t *testing.T, s said) string {
	t.Helper()
	var params struct{ Chunk string }
	require.NoError(t, json.Unmarshal([]byte(s.params), &params))
	return params.Chunk
}

func TestOutputIsToldAtMostTwentyTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, got, end := started(func() {})
		for range 1000 { // two seconds
			m.put(output("x"))
			time.Sleep(2 * time.Millisecond)
		}
		synctest.Wait()
		m.put(note{task: 1, message: TaskChanged(domain.Completed, domain.TurnInSession{}, 1), last: true})
		synctest.Wait()
		end()
		chunks, last := "", -outputEvery
		for _, s := range (*got)[:len(*got)-1] {
			chunks += chunkOf(t, s)
			if s.at < 2*time.Second-outputEvery {
				assert.GreaterOrEqual(t, s.at-last, outputEvery)
			}
			last = s.at
		}
		assert.Equal(t, strings.Repeat("x", 1000), chunks, "no output is lost")
		assert.LessOrEqual(t, len(*got), 43)
		assert.Equal(t, "event.taskCompleted", (*got)[len(*got)-1].method, "after all output")
	})
}

func TestASlowPeerLosesOutputAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m, got, end := started(func() { <-release })
		m.put(queued(0))
		synctest.Wait() // the peer, which takes nothing, has the first note
		part := strings.Repeat("x", outputAtMost/4)
		for range 4 {
			require.True(t, m.put(output(part)))
		}
		m.put(output("one too many"))
		for i := range notesAtMost - 1 { // the output takes a place, too
			require.True(t, m.put(queued(i)), "note %d", i)
		}
		assert.False(t, m.put(queued(0)))
		close(release)
		synctest.Wait()
		end()
		length, notes := 0, 0
		for _, s := range *got {
			if s.method == "event.taskOutput" {
				chunk := chunkOf(t, s)
				assert.LessOrEqual(t, len(chunk), 64<<10)
				length += len(chunk)
			} else {
				notes++
			}
		}
		assert.Equal(t, outputAtMost, length)
		assert.Equal(t, notesAtMost, notes)
	})
}

func TestAHeldMemberWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, got, end := started(func() {})
		m.hold(1)
		m.put(queued(0))
		synctest.Wait()
		assert.Empty(t, *got)
		m.hold(-1)
		synctest.Wait()
		assert.Len(t, *got, 1)
		end()
	})
}

// A client that sends requests without a pause still receives the earlier notes.
func TestAMemberThatAlwaysAsksIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		m, got, end := started(func() { <-blocked })
		for i := range 3 {
			m.put(queued(i))
		}
		m.hold(1)
		m.put(queued(3))
		m.hold(1) // another request before any note was sent
		close(blocked)
		synctest.Wait()
		assert.Len(t, *got, 3, "a note after a request waits for the response")
		m.hold(-1)
		m.hold(-1)
		m.hold(1) // before any note is sent
		m.put(queued(4))
		synctest.Wait()
		assert.Len(t, *got, 4)
		m.hold(-1)
		synctest.Wait()
		end()
		for i, s := range *got {
			assert.Equal(t, strconv.Itoa(i), s.params)
		}
		assert.Len(t, *got, 5)
	})
}

func TestWhatEventsMeanForTasks(t *testing.T) {
	s := domain.TurnInSession{}
	s.Task = 7
	for state, last := range map[domain.State]bool{domain.Queued: false, domain.Starting: false, domain.Completed: true, domain.Failed: true, domain.Cancelled: true} {
		n := noteOf(domain.Event{Seq: 9, Payload: domain.TurnStateChanged{To: state}}, s)
		require.NotNil(t, n, state)
		assert.Equal(t, note{task: 7, seq: 9, message: TaskChanged(state, s, 9), last: last}, *n)
	}
	assert.Nil(t, noteOf(domain.Event{Payload: domain.TurnStateChanged{To: domain.Running}}, s))
	assert.Equal(t, "x", noteOf(domain.Event{Payload: domain.MessageDelta{Text: "x"}}, s).chunk)
	assert.Nil(t, noteOf(domain.Event{Payload: domain.MessageDelta{Text: "x", Thought: true}}, s))
	assert.Nil(t, noteOf(domain.Event{Payload: domain.MessageDelta{Text: "x"}}, domain.TurnInSession{}), "an unknown session")
}
