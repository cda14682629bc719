package workspace

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestLineOfAPart(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	path := filepath.Join(dir, "f")
	require.NoError(t, write("a\nb\nc\nb\nd\n")(path))
	changes := NewChanges(New(dir, dir, ""), slog.New(slog.DiscardHandler), func(catalog.FileChange) {})
	for _, c := range []struct {
		before, after string
		want          int
	}{
		{"c\n", "x\n", 3},
		{"gone\n", "d\n", 5},
		{"b\nd", "x", 4},
		{"b\n", "x\n", 0},
		{"gone", "lost", 0},
		{"a\nb\nc\nb\nd\n", "x", 0},
		{"", "x", 0},
	} {
		assert.Equal(t, c.want, changes.Line(path, c.before, c.after), "%q", c)
	}
	assert.Zero(t, changes.Line(filepath.Join(dir, "none"), "a", "b"))
	assert.Zero(t, (*Changes)(nil).Line(path, "a", "b"))
}

func TestFileChanges(t *testing.T) {
	old, empty := "old", ""
	diff := func(before *string, after string) []domain.Diff {
		return []domain.Diff{{OldText: before, NewText: after}}
	}
	for _, c := range []struct {
		name          string
		there         *string // before the tool call is known
		fast          bool    // the tool has written that already
		status        string
		diffs         []domain.Diff
		then          func(path string) error
		before, after string // "-": absent
		binary        bool
		none          bool
	}{
		{name: "edited", there: &old, then: write("new"), before: "old", after: "new"},
		{name: "made", then: write("new"), before: "-", after: "new"},
		{name: "deleted", there: &old, then: os.Remove, before: "old", after: "-"},
		{name: "untouched", there: &old, then: write("old"), none: true},
		{name: "heard of too late", there: ptr("a new b"), status: "completed", diffs: diff(&old, "new"), before: "a old b", after: "a new b"},
		{name: "made and heard of too late", there: ptr("new"), status: "completed", diffs: diff(nil, "new"), before: "-", after: "new"},
		{name: "heard of while it is being made", there: &empty, status: "completed", diffs: diff(nil, "new"), then: write("new"), before: "-", after: "new"},
		{name: "heard of in the middle", there: ptr("ne"), status: "completed", diffs: diff(nil, "new"), then: write("new"), before: "-", after: "new"},
		{name: "not unique", there: ptr("new new"), status: "completed", diffs: diff(&old, "new"), none: true},
		{name: "emptied and heard of too late", there: &empty, status: "completed", diffs: diff(&old, ""), before: "old", after: ""},
		{name: "faster than we", there: ptr("a new b"), diffs: diff(&old, "new"), before: "a old b", after: "a new b"},
		{name: "emptied, and written after that", there: &empty, fast: true, diffs: diff(&old, "new"), then: write("new"), before: "old", after: "new"},
		{name: "emptied, and a part is new", there: &empty, fast: true, diffs: diff(&old, "new"), then: write("a new b"), before: "a old b", after: "a new b"},
		{name: "half written", there: ptr("a n"), fast: true, diffs: diff(&old, "new"), then: write("a new b"), before: "a old b", after: "a new b"},
		{name: "diffs are not exact", there: ptr("x"), fast: true, diffs: diff(&old, "new"), then: write("y"), before: "x", after: "y"},
		{name: "emptied, and its time is still the old one", there: &empty, diffs: diff(&old, "new"), then: write("a new b"), before: "a old b", after: "a new b"},
		{name: "diffs are not exact, and text is added", there: ptr("x"), diffs: diff(&old, "new"), then: write("xy"), before: "x", after: "xy"},
		{name: "emptied, and no more", there: &empty, fast: true, diffs: diff(&old, "new"), none: true},
		{name: "1 MiB", there: &old, then: write(strings.Repeat("x", 1<<20)), before: "old", after: strings.Repeat("x", 1<<20)},
		{name: "over 1 MiB", there: &old, then: write(strings.Repeat("x", 1<<20+1)), binary: true},
		{name: "no text", there: &old, then: write("\xff"), binary: true},
		{name: "was no text", there: ptr("\xff"), then: write("new text"), binary: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			path := filepath.Join(dir, "f")
			if c.there != nil {
				require.NoError(t, write(*c.there)(path))
			}
			var reported []catalog.FileChange
			changes := NewChanges(New(dir, dir, ""), slog.New(slog.DiscardHandler), func(c catalog.FileChange) { reported = append(reported, c) })
			if c.there != nil { // the clock of the files may be behind
				at := time.Now().Add(-time.Minute)
				if c.fast {
					at = time.Now().Add(time.Second)
				}
				require.NoError(t, os.Chtimes(path, time.Time{}, at))
			}
			for i := range c.diffs {
				c.diffs[i].Path = path
			}
			changes.Mention("edit", c.status, []string{path, "/etc/hostname", dir}, c.diffs)
			if c.then != nil {
				require.NoError(t, c.then(path))
			}
			changes.Settle()
			changes.Settle() // no change is reported twice
			if c.none {
				assert.Empty(t, reported)
				return
			}
			require.Len(t, reported, 1)
			change := reported[0]
			assert.Equal(t, path, change.Path)
			assert.Equal(t, c.binary, change.Binary)
			if !c.binary {
				assert.Equal(t, c.before, orDash(change.Before))
				assert.Equal(t, c.after, orDash(change.After))
			}
		})
	}
}

func write(text string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

func ptr(s string) *string { return &s }

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
