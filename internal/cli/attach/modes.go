package attach

import (
	"bytes"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// modes are those that programs put a terminal into and that this one is to be
// in no more when it is a shell's again.
type modes struct {
	set   []string // in the order in which they were set
	begun []byte   // the beginning of a change at the end of what was shown
}

// resets are modes that are undone: application cursor keys, the mouse, the
// alternate screen, focus and bracketed paste; and the cursor, which is shown
// where nothing is set (xterm, "DEC Private Mode Set").
var resets = map[string]string{
	"1": "l", "9": "l", "47": "l", "1000": "l", "1002": "l", "1003": "l", "1004": "l", "1005": "l", "1006": "l", "1015": "l",
	"1047": "l", "1049": "l", "2004": "l", "25": "h",
}

var (
	modeChange = lazyregexp.New(`\x1b\[\?([0-9;]+)([hl])`)
	modeBegun  = lazyregexp.New(`\x1b(\[(\?[0-9;]{0,100})?)?$`)
)

// note looks for changes of modes in what is shown.
func (m *modes) note(output []byte) {
	output = append(m.begun, output...)
	m.begun = bytes.Clone(modeBegun().Find(output))
	for _, change := range modeChange().FindAllSubmatch(output, -1) {
		for mode := range strings.SplitSeq(string(change[1]), ";") {
			undone, known := resets[mode]
			if !known {
				continue
			}
			m.set = slices.DeleteFunc(m.set, func(other string) bool { return other == mode })
			if string(change[2]) != undone {
				m.set = append(m.set, mode)
			}
		}
	}
}

// undo is what puts a terminal back, the last mode first.
func (m *modes) undo() string {
	if len(m.set) == 0 {
		return ""
	}
	var b strings.Builder
	for _, mode := range slices.Backward(m.set) {
		b.WriteString("\x1b[?" + mode + resets[mode])
	}
	b.WriteString("\x1b[m")
	return b.String()
}
