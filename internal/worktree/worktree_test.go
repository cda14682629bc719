package worktree

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestContaining(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "worktrees")
	for _, c := range []struct{ path, top string }{
		{filepath.Join(parent, "fix"), filepath.Join(parent, "fix")},
		{filepath.Join(parent, "fix", "sub", "a.txt"), filepath.Join(parent, "fix")},
		{parent, ""},
		{filepath.Join(parent, ".duet-0123", "common"), ""}, // Duet's own directory
		{filepath.Join(parent, "..", "worktrees-2", "fix"), ""},
		{filepath.Dir(parent), ""},
		{"fix", ""},
	} {
		top, found := Containing(parent, c.path)
		assert.Equal(t, c.top != "", found, c.path)
		if found {
			assert.Equal(t, c.top, top)
			assert.Equal(t, "duet/fix", BranchOf(top))
		}
	}
	_, found := Containing("", "fix")
	assert.False(t, found)
}
