package diff_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
