package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	for _, dir := range []string{"main/.git/objects", "main/.git/refs", "main/deep/er", "broken/.git/refs", "link/sub", "main/bad/in"} {
		require.NoError(t, os.MkdirAll(filepath.Join(home, dir), 0o755))
	}
	write("main/.git/HEAD", "ref: refs/heads/main\n")
	write("main/.git/worktrees/link/HEAD", "ref: refs/heads/x\n")
	write("main/.git/worktrees/link/commondir", "../..\n")
	write("link/.git", "gitdir: ../main/.git/worktrees/link\n")
	write("main/bad/.git", "gitdir: nowhere\n")
	write("large/.git", "gitdir: "+string(make([]byte, mostConfig)))

	git := filepath.Join(home, "main", ".git")
	for dir, want := range map[string]Repository{
		"main":         {Top: filepath.Join(home, "main"), Dir: git, Common: git},
		"main/deep/er": {Top: filepath.Join(home, "main"), Dir: git, Common: git},
		"main/bad/in":  {Top: filepath.Join(home, "main"), Dir: git, Common: git},
		"link/sub":     {Top: filepath.Join(home, "link"), Dir: filepath.Join(git, "worktrees", "link"), Common: git},
		"broken":       {},
		"large":        {},
	} {
		got, found := Find(filepath.Join(home, filepath.FromSlash(dir)))
		assert.Equal(t, want.Top != "", found, dir)
		assert.Equal(t, want, got, dir)
	}
}
