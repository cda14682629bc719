package diff_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/diff"
	_ "github.com/duet-rpc/duet-rpc/internal/golden" // for go test ./... -update
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

// Lines of the file that look like the head of a diff are lines nevertheless.
func TestCount(t *testing.T) {
	before, after := "-- a comment in SQL\nkept\n", "kept\n++ a\n++ b\n"
	added, removed := diff.Count(diff.Unified("/", "/a.sql", &before, &after))
	assert.Equal(t, 2, added)
	assert.Equal(t, 1, removed)
	added, removed = diff.Count("")
	assert.Zero(t, added+removed)
}
