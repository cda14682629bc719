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
	assert.Equal(t, []part{{id: "m", text: mode, state: "reverted"}, {id: "1", text: names + first, state: "open"}, {id: "2", text: names + second, state: "accepted"}}, partsOf(file))
	assert.Equal(t, "mode 100644 → 100755 +2", changeWords(file, "/p"))

	file.Hunks = nil // they did not fit into the answer
	assert.Equal(t, []part{{id: "", text: file.Diff, state: "open"}}, partsOf(file))
	file.Diff = mode
	assert.Equal(t, []part{{id: "", text: mode, state: "open"}}, partsOf(file))
	file.Mode, file.Hunks, file.Diff = nil, []protocol.Hunk{{ID: "1", State: "open"}}, names+first
	assert.Equal(t, []part{{id: "1", text: names + first, state: "open"}}, partsOf(file))
	file.Binary, file.Diff = true, "Binary file /p/x differs\n"
	assert.Equal(t, []part{{id: "", text: file.Diff, state: "open"}}, partsOf(file))
	file.Mode, file.Diff = &protocol.FileMode{ID: "m", State: "open"}, mode+file.Diff
	assert.Equal(t, []part{{id: "m", text: mode, state: "open"}, {id: "", text: "Binary file /p/x differs\n", state: "open"}}, partsOf(file))
}

// A hunk with several changes is split into them. If some are decided already, the others are asked about.
func TestChangesOfAHunk(t *testing.T) {
	const names, hunk = "--- a/x\n+++ b/x", "\n@@ -1,6 +1,5 @@\n-one\n+ONE\n two\n-three\n four\n five\n-six\n+6\n\\ No newline at end of file\n"
	one := part{id: "a", text: names + "\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n", state: "open"}
	two := part{id: "b", text: names + "\n@@ -2,4 +2,3 @@\n two\n-three\n four\n five\n", state: "open"}
	three := part{id: "c", text: names + "\n@@ -4,3 +3,3 @@\n four\n five\n-six\n+6\n\\ No newline at end of file\n", state: "open"}
	file := &protocol.Change{Path: "/p/x", State: "open", Diff: names + hunk, Hunks: []protocol.Hunk{{ID: "1", OldStart: 1, NewStart: 1, State: "open", Parts: []protocol.HunkPart{
		{ID: "a", OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 1, State: "open"},
		{ID: "b", OldStart: 3, OldLines: 1, NewStart: 2, State: "open"},
		{ID: "c", OldStart: 6, OldLines: 1, NewStart: 5, NewLines: 1, State: "open"},
	}}}}
	assert.Equal(t, []part{{id: "1", text: names + hunk, state: "open", changes: []part{one, two, three}}}, partsOf(file))
	file.Hunks[0].Parts[1].State, two.state = "accepted", "accepted"
	assert.Equal(t, []part{one, two, three}, partsOf(file))

	// A change that nothing could find alone stays with the one before it.
	const merged = "\n@@ -1,4 +1,5 @@\n-one\n+ONE\n two\n three\n+3\n four\n+5\n"
	file.Diff, file.Hunks = names+merged, []protocol.Hunk{{ID: "1", OldStart: 1, NewStart: 1, State: "open", Parts: []protocol.HunkPart{
		{ID: "a", OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 1, State: "open"}, {ID: "b", OldStart: 3, OldLines: 1, NewStart: 4, NewLines: 3, State: "open"},
	}}}
	assert.Equal(t, []part{
		{id: "a", text: names + "\n@@ -1,3 +1,3 @@\n-one\n+ONE\n two\n three\n", state: "open"},
		{id: "b", text: names + "\n@@ -2,3 +2,5 @@\n two\n three\n+3\n four\n+5\n", state: "open"},
	}, partsOf(file)[0].changes)
}
