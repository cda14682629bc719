package turn

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func textDelta(t *testing.T, text string) eventstream.Event {
	return happened(t, protocol.KindText, members{"key": "1", "text": text})
}

func retrying(t *testing.T) eventstream.Event {
	return happened(t, protocol.KindItemAdded, members{"type": "notice", "text": "overloaded;\ntrying again"})
}

// A remark does not split the agent's line.
func TestRemarkWaitsForEndOfLine(t *testing.T) {
	var out bytes.Buffer // for text and remarks
	v := NewView(&out, &out, false, false)
	v.session = protocol.Turn{ID: "s"}
	for _, e := range []eventstream.Event{
		retrying(t), textDelta(t, "One li"), retrying(t), textDelta(t, "ne.\nAnother "), happened(t, protocol.KindAgentError, members{"message": "odd"}), textDelta(t, "one"), textDelta(t, ".\n"),
		textDelta(t, "The la"), retrying(t), textDelta(t, "st"),
		happened(t, protocol.KindItemAdded, members{"type": "message", "role": "assistant", "key": "1"}),
	} {
		v.show(e)
	}
	note := "— overloaded;\n  trying again\n"
	assert.Equal(t, note+"One line.\n"+note+"Another one.\n— error: odd\nThe last\n"+note, out.String())
}

// The cause of the remark may have stopped the agent in the middle of a line.
func TestRemarkDelayIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, side bytes.Buffer
		v := NewView(&out, &side, false, false)
		v.session = protocol.Turn{ID: "s"}
		assert.Nil(t, v.remarks.due)
		v.show(textDelta(t, "wor"))
		v.show(retrying(t))
		assert.Empty(t, side.String())
		began := time.Now()
		<-v.remarks.due
		assert.Equal(t, time.Second, time.Since(began))
		v.releaseLate()
		assert.Nil(t, v.remarks.due)
		assert.Equal(t, "— overloaded;\n  trying again\n", side.String())
		v.show(textDelta(t, "ds"))
		assert.Equal(t, "words", out.String(), "a pipe gets the whole text")

		v.words = term.Marks.Stream() // as on a terminal
		v.show(retrying(t))
		v.releaseLate()
		assert.Equal(t, "words\n", out.String())
	})
}

func TestRemarkIsDrawnAboveIncompleteBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, screen := drawing()
		v.words = term.Marks.Stream()
		v.render()
		v.show(textDelta(t, "some *wor"))
		printed(screen)
		v.show(retrying(t))
		assert.Equal(t, "\r^[J— overloaded;\n  trying again\nsome *wor", printed(screen))
		v.show(textDelta(t, "ds*"))
		v.endMessage()
		assert.Contains(t, printed(screen), "some ^[3mwords^[0m\n", "the text before and after the remark is one block")
	})
}

func TestFooterHasWholeParts(t *testing.T) {
	const footer = "  demo · context 12 % · C-c interrupts, RET queues, C-s sends now"
	for columns, want := range map[int]string{
		80: footer, 60: "  demo · context 12 % · C-c interrupts, RET queues", 40: "  demo · context 12 % · C-c interrupts", 20: "  demo", 4: "  d…",
	} {
		assert.Equal(t, term.CutToFit(want, columns), wholeParts(footer, columns))
	}
}
