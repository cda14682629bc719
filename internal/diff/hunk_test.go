package diff_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/diff"
)

func TestHunks(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		before, after *string
		want          []diff.Hunk
	}{
		"nothing changed": {text("same\n"), text("same\n"), nil},
		"a new file": {
			nil, text("a\nb\n"),
			[]diff.Hunk{{OldStart: 0, OldLines: 0, NewStart: 1, NewLines: 2, Added: 2, New: "a\nb\n", Body: "+a\n+b\n"}},
		},
		"a deleted file": {
			text("a"), nil,
			[]diff.Hunk{{OldStart: 1, OldLines: 1, Removed: 1, Old: "a", Body: "-a\n\\ No newline at end of file\n"}},
		},
		"lines that look like heads": {
			text("-- a\n@@ -1 +1 @@\n\\ x\n"), text("++ a\n@@ -1 +1 @@\n\\ x\n"),
			[]diff.Hunk{{
				OldStart: 1, OldLines: 3, NewStart: 1, NewLines: 3, Added: 1, Removed: 1, Old: "-- a\n@@ -1 +1 @@\n\\ x\n", New: "++ a\n@@ -1 +1 @@\n\\ x\n",
				Body: "--- a\n+++ a\n @@ -1 +1 @@\n \\ x\n",
			}},
		},
		"ends of lines": {
			text("a\r\nb"), text("a\r\nb\n"),
			[]diff.Hunk{{
				OldStart: 1, OldLines: 2, NewStart: 1, NewLines: 2, Added: 1, Removed: 1, Old: "a\r\nb", New: "a\r\nb\n",
				Body: " a\r\n-b\n\\ No newline at end of file\n+b\n",
			}},
		},
		"far apart": {
			text("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), text("one\n2\n3\n4\n5\n6\n7\n8\nnine"),
			[]diff.Hunk{
				{OldStart: 1, OldLines: 4, NewStart: 1, NewLines: 4, Added: 1, Removed: 1, Old: "1\n2\n3\n4\n", New: "one\n2\n3\n4\n", Body: "-1\n+one\n 2\n 3\n 4\n"},
				{
					OldStart: 6, OldLines: 4, NewStart: 6, NewLines: 4, Added: 1, Removed: 1, Old: "6\n7\n8\n9\n", New: "6\n7\n8\nnine",
					Body: " 6\n 7\n 8\n-9\n+nine\n\\ No newline at end of file\n",
				},
			},
		},
	} {
		assert.Equal(t, c.want, diff.Hunks(diff.Unified("/", "/a", c.before, c.after)), name)
	}
}

func TestChangesOfAHunkAreApart(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          []diff.Hunk // without their texts
		bare          []diff.Hunk
	}{
		"one change": {
			"1\n2\n3\n", "1\ntwo\n3\n",
			[]diff.Hunk{{OldStart: 1, OldLines: 3, NewStart: 1, NewLines: 3, Added: 1, Removed: 1}},
			[]diff.Hunk{{OldStart: 2, OldLines: 1, NewStart: 2, NewLines: 1, Added: 1, Removed: 1}},
		},
		"one line between them": {
			"1\n2\n3\n4\n5\n", "1\ntwo\n3\nfour\n4b\n5\n",
			[]diff.Hunk{
				{OldStart: 1, OldLines: 2, NewStart: 1, NewLines: 2, Added: 1, Removed: 1},
				{OldStart: 3, OldLines: 3, NewStart: 3, NewLines: 4, Added: 2, Removed: 1},
			},
			[]diff.Hunk{
				{OldStart: 2, OldLines: 1, NewStart: 2, NewLines: 1, Added: 1, Removed: 1},
				{OldStart: 4, OldLines: 1, NewStart: 4, NewLines: 2, Added: 2, Removed: 1},
			},
		},
		"an insertion and a removal": {
			"1\n2\n3\n4\n5\n", "0\n1\n2\n3\n5",
			[]diff.Hunk{
				{OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 2, Added: 1},
				{OldStart: 2, OldLines: 4, NewStart: 3, NewLines: 3, Added: 1, Removed: 2},
			},
			[]diff.Hunk{
				{OldStart: 0, OldLines: 0, NewStart: 1, NewLines: 1, Added: 1},
				{OldStart: 4, OldLines: 2, NewStart: 5, NewLines: 1, Added: 1, Removed: 2},
			},
		},
		"lines at both ends, and one line between them": {
			"1\n", "0\n1\n2\n",
			[]diff.Hunk{{OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 3, Added: 2}},
			[]diff.Hunk{{OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 3, Added: 2}},
		},
		"a line at the end": {
			"1\n2\n", "one\n2\n3\n",
			[]diff.Hunk{
				{OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 1, Added: 1, Removed: 1},
				{OldStart: 2, OldLines: 1, NewStart: 2, NewLines: 2, Added: 1},
			},
			[]diff.Hunk{
				{OldStart: 1, OldLines: 1, NewStart: 1, NewLines: 1, Added: 1, Removed: 1},
				{OldStart: 2, OldLines: 0, NewStart: 3, NewLines: 1, Added: 1},
			},
		},
	} {
		hunks := diff.Hunks(diff.Unified("/", "/a", &c.before, &c.after))
		require.Len(t, hunks, 1, name)
		var changes, bare []diff.Hunk
		var before, after string
		for _, one := range hunks[0].Changes() {
			bare = append(bare, one.Bare())
			before, after = before+one.Old, after+one.New
			one.Old, one.New, one.Body = "", "", ""
			changes = append(changes, one)
		}
		assert.Equal(t, c.want, changes, name)
		assert.Equal(t, c.bare, bare, name)
		assert.Equal(t, []string{c.before, c.after}, []string{before, after}, name)
	}
}
