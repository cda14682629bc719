package turn

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

// happened is an event of the session that is shown.
func happened(t *testing.T, kind string, data map[string]any) client.Event {
	if data["session_id"] == nil {
		data["session_id"] = "s"
	}
	raw, err := json.Marshal(data)
	require.NoError(t, err)
	return client.Event{Type: kind, Data: raw}
}

type members = map[string]any

func TestWhatAnAgentSaysAndDoesIsShown(t *testing.T) {
	var out, side bytes.Buffer
	v := NewView(&out, &side, false, false)
	v.session = wire.Session{ID: "s"}
	for _, e := range []client.Event{
		happened(t, wire.EventDelta, members{"message_id": "1", "delta": "Hel"}),
		happened(t, wire.EventDelta, members{"message_id": "1", "delta": "lo"}),
		happened(t, wire.EventDelta, members{"message_id": "x", "delta": "of another session", "session_id": "other"}),
		happened(t, wire.EventConversation, members{"event_type": "message", "role": "assistant", "message_id": "1", "content": "Hello"}),
		happened(t, wire.EventConversation, members{"event_type": "tool_call", "tool_id": "a", "tool_title": "Read x", "tool_status": "pending"}),
		happened(t, wire.EventConversation, members{"event_type": "tool_call", "tool_id": "a", "tool_title": "Read x", "tool_status": "running"}),
		happened(t, wire.EventConversation, members{"event_type": "tool_call", "tool_id": "b", "tool_name": "Bash"}),
		happened(t, wire.EventConversation, members{"event_type": "tool_call", "tool_id": "a", "tool_title": "Read x"}),
		happened(t, wire.EventConversation, members{"event_type": "tool_result", "tool_id": "a", "tool_name": "Read", "tool_status": "failed"}),
		happened(t, wire.EventConversation, members{"event_type": "tool_result", "tool_id": "c", "tool_name": "Bash", "tool_status": "failed", "refused_by": "mode=plan", "refusal": "it is in plan mode"}),
		happened(t, wire.EventConversation, members{"event_type": "tool_result", "tool_id": "d", "tool_name": "Bash", "tool_status": "failed", "refused_by": "user", "refusal": "not now"}),
		happened(t, wire.EventConversation, members{"event_type": "message", "role": "assistant", "message_id": "2", "content": "It came whole."}),
		happened(t, wire.EventPlan, members{"entries": []members{{"content": "one", "status": "completed"}, {"content": "two"}}}),
		happened(t, wire.EventPlan, members{"entries": []members{{"content": "one", "status": "completed"}, {"content": "two", "status": "in_progress"}}}),
		happened(t, wire.EventDiff, members{"path": "f", "binary": true, "diff": ""}),
		happened(t, wire.EventTerminal, members{"session_id": "", "data": "a\r\nb\x1b[2J\r\n"}),
		happened(t, wire.EventError, members{"message": "no\nmore"}),
		happened(t, wire.EventStatus, members{"state": "running"}),
	} {
		assert.Equal(t, nothingToDo, v.show(e), "%s", e.Data)
	}
	assert.Equal(t, "Hello\nIt came whole.\n", out.String())
	assert.Equal(t, `● Read x
● Bash
✗ Read
⊘ Bash — not run, denied by mode=plan: it is in plan mode
⊘ Bash — not run, denied: not now
☑ one
☐ two
▶ two
— f has changed; it is binary
  a
  b<U+001B>[2J
— error: no
  more
`, normal(side.String()))
}

// normal is text with unseen characters written as where the locale is UTF-8.
func normal(text string) string {
	return strings.NewReplacer("⟨", "<", "⟩", ">").Replace(text)
}

func TestWhereThereIsNoTerminalTheAgentsSilenceIsToldOnce(t *testing.T) {
	var out, side bytes.Buffer
	v := NewView(&out, &side, false, false)
	v.session = wire.Session{ID: "s", Agent: "claude"}
	since := time.Now().Add(-7 * time.Second)
	for _, note := range []string{"", "API error 500,\ntrying again", "and again"} {
		v.show(happened(t, wire.EventSilent, members{"since": since, "note": note}))
	}
	v.show(happened(t, wire.EventSilent, members{"since": since, "ended": true}))
	v.show(happened(t, wire.EventSilent, members{"since": time.Now().Add(-31 * time.Minute), "tool_title": "make"}))
	assert.Equal(t, `— claude has said nothing for 7 s
— claude has said nothing for 7 s: API error 500,
  trying again
— claude has said nothing for 31 min, in the middle of: make
`, side.String())
	assert.Empty(t, out.String())
}

func TestOnATerminalTheAgentsSilenceIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, side bytes.Buffer
		v := NewView(&out, &side, false, false)
		v.session = wire.Session{ID: "s", Agent: "claude"}
		v.silence.columns = func() int { return 45 }
		assert.Nil(t, v.silence.ticks(), "nothing wakes while there is nothing to tell")
		v.show(happened(t, wire.EventDelta, members{"message_id": "1", "delta": "Hel"}))
		v.show(happened(t, wire.EventSilent, members{"since": time.Now().Add(-5 * time.Second), "note": "x\ny"}))
		for range 2 {
			<-v.silence.ticks()
			v.countSilence()
		}
		v.show(happened(t, wire.EventSilent, members{"since": time.Now().Add(-7 * time.Second), "note": "much too long for a line"}))
		v.show(happened(t, wire.EventSilent, members{"since": time.Now(), "ended": true}))
		assert.Nil(t, v.silence.ticks())
		v.show(happened(t, wire.EventDelta, members{"message_id": "1", "delta": "lo"}))
		assert.Equal(t, "Hel\nlo", out.String())
		const again = "\r\x1b[K"
		assert.Equal(t, again+"— claude has said nothing for 5 s: x y"+again+"— claude has said nothing for 6 s: x y"+again+"— claude has said nothing for 7 s: x y"+
			again+again+"— claude has said nothing for 7 s: much too…"+again, side.String())
		v.show(happened(t, wire.EventSilent, members{"since": time.Now()}))
		v.show(happened(t, wire.EventStatus, members{"state": "interrupting"}))
		assert.Nil(t, v.silence.ticks(), "it is over with the turn")
	})
}

func TestEventsSayWhatIsToBeDone(t *testing.T) {
	var out bytes.Buffer
	v := NewView(&out, &out, false, true)
	v.session = wire.Session{ID: "s"}
	assert.Equal(t, questionAsked, v.show(happened(t, wire.EventApproval, members{"approval_id": "1"})))
	assert.Equal(t, questionResolved, v.show(happened(t, wire.EventResolved, members{"approval_id": "1"})))
	assert.Equal(t, nothingToDo, v.show(happened(t, wire.EventStatus, members{"state": "running"})))
	assert.Equal(t, turnEnded, v.show(happened(t, wire.EventStatus, members{"state": "timed_out"})))
	assert.Equal(t, nothingToDo, v.show(happened(t, wire.EventStatus, members{"state": "completed", "session_id": "other"})))
	assert.Equal(t, 4, bytes.Count(out.Bytes(), []byte("\n")), "an event of the session is a line of JSON: %s", out.String())
}
