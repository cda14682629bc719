package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Deltas are merged, so one may begin in the middle of what a client has read: by
// the length of the message with it the client knows what of it is new.
func TestWhoReadsAMessageThatIsBeingWrittenHasNothingTwice(t *testing.T) {
	var whole strings.Builder
	more := make(chan struct{})
	w := newWorld(t, func(_ context.Context, x *turn) catalog.ExecutePromptResult {
		for i := range 60 {
			if i%20 == 0 {
				<-more
			}
			piece := fmt.Sprintf("Piece %d 🙂. ", i)
			whole.WriteString(piece)
			x.say(piece)
		}
		<-more
		return done
	})
	c := w.connect(frame.LSP)
	c.ask("Subscribe", `{"event_types":["message_delta"],"delta_interval_ms":1000}`)
	id := testkit.JSONAs[string](t, c.ask("launchSession", `{"query":"write"}`), "session_id")

	written := func() []uint16 {
		var r struct {
			Events []struct {
				Role, Content string
			}
		}
		require.NoError(t, json.Unmarshal(c.ask("getConversation", `{"session_id":"`+id+`"}`), &r))
		last := r.Events[len(r.Events)-1]
		if last.Role != "assistant" {
			return nil
		}
		return utf16.Encode([]rune(last.Content))
	}
	upTo := func(n int) {
		for until := time.Now().Add(patience); !strings.Contains(string(utf16.Decode(written())), fmt.Sprintf("Piece %d ", n)); {
			require.True(t, time.Now().Before(until), "piece %d is not written", n)
		}
	}
	more <- struct{}{}
	upTo(19)
	have := written() // the first piece has come as a delta, most others wait to be merged
	more <- struct{}{}
	upTo(39)
	more <- struct{}{}
	upTo(59)
	want := utf16.Encode([]rune(whole.String()))
	for len(have) < len(want) {
		var d struct {
			Delta  string
			Length int
		}
		require.NoError(t, json.Unmarshal(c.event("message_delta"), &d))
		text := utf16.Encode([]rune(d.Delta))
		require.Equal(t, string(utf16.Decode(want[d.Length-len(text):d.Length])), d.Delta)
		if d.Length > len(have) {
			have = append(have, text[len(text)-(d.Length-len(have)):]...)
		}
	}
	assert.Equal(t, whole.String(), string(utf16.Decode(have)))
	close(more)
	w.ended(id)
}
