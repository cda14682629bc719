package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// The mode and each hunk of a change are decided about separately.
func TestPartsOfAChange(t *testing.T) {
	const names, mode = "--- a/x\n+++ b/x\n", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
	const first, second = "@@ -1 +1 @@\n-one\n+two\n", "@@ -9 +9 @@\n-nine\n+ten\n"
	text := "two"
	file := &protocol.Change{
		Path: "/p/x", State: "open", Before: &text, After: &text,
		Hunks: []protocol.Hunk{{ID: "1", State: "open", Added: 1}, {ID: "2", State: "accepted", Added: 1}},
		Mode:  &protocol.FileMode{ID: "m", Old: "100644", New: "100755", State: "reverted"},
		Diff:  mode + names + first + second,
	}
	assert.Equal(t, []part{{"m", mode, "reverted"}, {"1", names + first, "open"}, {"2", names + second, "accepted"}}, partsOf(file))
	assert.Equal(t, "mode 100644 → 100755 +2", changeWords(file, "/p"))

	file.Hunks = nil // they did not fit into the answer
	assert.Equal(t, []part{{"", file.Diff, "open"}}, partsOf(file))
	file.Diff = mode
	assert.Equal(t, []part{{"", mode, "open"}}, partsOf(file))
	file.Mode, file.Hunks, file.Diff = nil, []protocol.Hunk{{ID: "1", State: "open"}}, names+first
	assert.Equal(t, []part{{"1", names + first, "open"}}, partsOf(file))
	file.Binary, file.Diff = true, "Binary file /p/x differs\n"
	assert.Equal(t, []part{{"", file.Diff, "open"}}, partsOf(file))
	file.Mode, file.Diff = &protocol.FileMode{ID: "m", State: "open"}, mode+file.Diff
	assert.Equal(t, []part{{"m", mode, "open"}, {"", "Binary file /p/x differs\n", "open"}}, partsOf(file))
}
