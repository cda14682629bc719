package diff_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/diff"
)

func TestUnified(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		path          string
		before, after *string
		want          string
	}{
		"in the root":    {"/root/a.txt", text("old\n"), text("new\n"), "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"},
		"elsewhere":      {"/etc/a.txt", text("old\n"), text("new\n"), "--- a//etc/a.txt\n+++ b//etc/a.txt\n@@ -1 +1 @@\n-old\n+new\n"},
		"a new file":     {"/root/a.txt", nil, text("new\n"), "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+new\n"},
		"a deleted file": {"/root/a.txt", text("old\n"), nil, "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"},
		"a name has one line": {
			"/root/a\n+++ b/b", text("old\n"), text("new\n"), "--- \"a/a\\n+++ b/b\"\n+++ \"b/a\\n+++ b/b\"\n@@ -1 +1 @@\n-old\n+new\n",
		},
		"nothing changed": {"/root/a.txt", text("same\n"), text("same\n"), ""},
	} {
		assert.Equal(t, c.want, diff.Unified("/root", c.path, c.before, c.after), name)
	}
}

// The library ignores the lines between two edits of a hunk when it numbers the next one.
func TestNumbersOfLaterHunks(t *testing.T) {
	before, after := "", ""
	for i := range 30 {
		before += strconv.Itoa(i) + "\n"
	}
	after = strings.Replace(strings.Replace(strings.Replace(before, "1\n", "one\n1b\n", 1), "\n4\n", "\nfour\n", 1), "\n25\n", "\n", 1)
	hunks := diff.Hunks(diff.Unified("/", "/a", &before, &after))
	require.Len(t, hunks, 2)
	assert.Equal(t, []int{1, 8, 1, 9}, []int{hunks[0].OldStart, hunks[0].OldLines, hunks[0].NewStart, hunks[0].NewLines})
	assert.Equal(t, []int{23, 7, 24, 6}, []int{hunks[1].OldStart, hunks[1].OldLines, hunks[1].NewStart, hunks[1].NewLines})
	gone := ""
	assert.Contains(t, diff.Unified("/", "/a", &before, &gone), "@@ -1,30 +0,0 @@\n")
	assert.Contains(t, diff.Unified("/", "/a", &gone, &before), "@@ -0,0 +1,30 @@\n")
}

func TestPartHasTheNumbersOfTheFile(t *testing.T) {
	before, after, none := "a\nb\n", "a\nb\nc\n", ""
	for _, c := range []struct {
		line          int
		before, after *string
		want          string
	}{
		{0, &before, &after, "@@ -1,2 +1,3 @@\n"},
		{200, &before, &after, "@@ -200,2 +200,3 @@\n"},
		{200, &none, &after, "@@ -199,0 +200,3 @@\n"},
		{200, &after, &none, "@@ -200,3 +199,0 @@\n"},
	} {
		assert.Contains(t, diff.Part("/", "/a", c.before, c.after, c.line), c.want)
	}
}

// Lines of the file that look like the header of a diff count as lines.
func TestCount(t *testing.T) {
	before, after := "-- a comment in SQL\nkept\n", "kept\n++ a\n++ b\n"
	added, removed := diff.Count(diff.Unified("/", "/a.sql", &before, &after))
	assert.Equal(t, 2, added)
	assert.Equal(t, 1, removed)
	added, removed = diff.Count("")
	assert.Zero(t, added+removed)
}
