//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// killsInMidStream is how often TestResumedTextIsWhole kills the program where
// tests may take their time; else it is a few times.
const (
	killsInMidStream    = 20
	fewKillsInMidStream = 2
)

// said is a session's messages, built from their deltas.
func said(t testing.TB, events []event, session string) string {
	var text strings.Builder
	for _, e := range events {
		require.NotEqual(t, "lagged", e.Type, "%s", e.Raw)
		if e.Type == "message_delta" && e.Data.SessionID == session {
			text.WriteString(e.Data.Delta)
		}
	}
	return text.String()
}

// An editor whose program was killed while agents talked goes on after the
// last number that it saw: then it has all that the transcript has. Where one
// agent talked it has nothing twice either.
func TestResumedTextIsWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	since, again := int64(0), 0
	rounds := fewKillsInMidStream
	if soak {
		rounds = killsInMidStream
	}
	for round := range rounds {
		c := s.start()
		c.call("Subscribe", object{"since": since}, nil)
		var talking []launched
		for range 1 + round%2 {
			talking = append(talking, c.launch("quiet stream:1000000@1500", ""))
		}
		mark := fmt.Sprintf("chunk %d ", 20+17*round) // at another moment each time
		for _, l := range talking {
			var text strings.Builder
			c.await("text", func(e event) bool {
				if e.Type == "message_delta" && e.Data.SessionID == l.SessionID {
					text.WriteString(e.Data.Delta)
				}
				return strings.Contains(text.String(), mark)
			})
		}
		c.crash()
		before := c.seen()
		since = lastSeq(before)

		c = s.start()
		c.call("Subscribe", object{"since": since}, nil)
		for _, l := range talking {
			end := c.awaitEnd(l.SessionID)
			assert.Equal(t, "ORPHANED", end.Data.ErrorCode)
			since = max(since, end.Seq)
			whole, first, second := c.conversation(l.SessionID), said(t, before, l.SessionID), said(t, c.seen(), l.SessionID)
			if len(talking) == 1 {
				require.Equal(t, whole, first+second, "round %d", round)
				continue
			}
			require.True(t, strings.HasPrefix(whole, first), "round %d", round)
			require.True(t, strings.HasSuffix(whole, second), "round %d", round)
			require.GreaterOrEqual(t, len(first)+len(second), len(whole), "round %d: text is missing", round)
			if len(first)+len(second) > len(whole) {
				again++
			}
		}
		requireRising(t, c.seen())
		c.leave()
		since = max(since, lastSeq(c.seen()))
	}
	t.Logf("%d times some text came twice", again)
}
