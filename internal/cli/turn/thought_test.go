package turn

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// A terminal shows thoughts in a faint colour, and omits the middle of long thoughts.
func TestThoughtsAreShownOnATerminal(t *testing.T) {
	think := func(v *View, text string) {
		v.show(happened(t, protocol.KindItemAdded, members{"type": "thought", "key": "1", "text": text}))
		v.show(happened(t, protocol.KindItemAdded, members{"type": "thought", "key": "2", "text": "of a sub-agent", "parent_tool_use_id": "a"}))
	}
	long := strings.TrimRight(strings.Repeat("line\n\n", 20), "\n")

	var side bytes.Buffer
	v := NewView(&side, &side, false, false)
	v.session = protocol.Turn{ID: "s"}
	think(v, "nobody looks on")
	assert.Empty(t, side.String())

	v.watched = true // as on a terminal without colours
	think(v, "I **think**\x1b[2J\n\nso")
	assert.Equal(t, "✻ I **think**<U+001B>[2J\n  \n  so\n", normal(side.String()))
	side.Reset()
	think(v, long)
	assert.Equal(t, 13, strings.Count(side.String(), "\n"))
	assert.Contains(t, side.String(), "  … 27 more lines\n  \n  line\n")

	v, screen := drawing()
	v.render()
	v.watched, v.color = true, true
	v.show(happened(t, protocol.KindText, members{"key": "0", "text": "Hello"}))
	think(v, "I **think** that I am, and that this is long enough")
	assert.Equal(t, "Hello\r^[JHello\n^[2m✻ ^[0m^[2mI ^[0m^[1;2mthink^[0m^[2m that I am, and that this is long^[0m\n  ^[2menough^[0m\n", printed(screen))
}
