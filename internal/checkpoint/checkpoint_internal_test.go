package checkpoint

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTagIsReadBack(t *testing.T) {
	for _, c := range []Checkpoint{
		{Message: ""},
		{Message: "one line"},
		{Message: "\n\nlines\n\n"},
		{Message: "x" + skippedHead + "special \"y\"\n"},
		{Message: skippedHead},
		{Message: "m", Skipped: []Skipped{{Path: "a b\n\xff\"", Reason: TooLarge}, {Path: "c", Reason: Nested}}, MoreSkipped: 3},
	} {
		c.tree, c.Time = "4b825dc642cb6eb9a060e54bf8d69288fbee4904", time.Unix(1700000000, 0)
		got, ok := parseTag(c.tag())
		assert.True(t, ok)
		assert.Equal(t, c, got)
	}
	for _, foreign := range []string{"", "object x\ntype commit\ntag v1\ntagger a <b> 1 +0000\n\nrelease\n", "object x\ntype tree\ntag v1\ntagger a <b> 1 +0000\n\nno list\n"} {
		_, ok := parseTag(foreign)
		assert.False(t, ok, foreign)
	}
}

// A value of a project's configuration cannot add a setting.
func TestConfigurationTakesOverWords(t *testing.T) {
	plain := configuration(nil, true)
	for _, value := range []string{"", "a b", "true\n[core]\n\tfsmonitor = x", "\"", "#", "ignorecaseignorecaseignorecase"} {
		users := map[string]string{"core.filter.x.clean": value, "core.fsmonitor": "true"}
		for _, name := range []string{"extensions.objectformat", "core.sharedrepository", "core.ignorecase", "core.symlinks"} {
			users[name] = value
		}
		assert.Equal(t, plain, configuration(users, true), value)
	}
	assert.Contains(t, configuration(map[string]string{"core.ignorecase": "true"}, false), "ignorecase = true")
}

func TestFindRepository(t *testing.T) {
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
	for dir, want := range map[string]repository{
		"main":         {top: filepath.Join(home, "main"), dir: git, common: git},
		"main/deep/er": {top: filepath.Join(home, "main"), dir: git, common: git},
		"main/bad/in":  {top: filepath.Join(home, "main"), dir: git, common: git},
		"link/sub":     {top: filepath.Join(home, "link"), dir: filepath.Join(git, "worktrees", "link"), common: git},
		"broken":       {},
		"large":        {},
	} {
		got, found := findRepository(filepath.Join(home, filepath.FromSlash(dir)))
		assert.Equal(t, want.top != "", found, dir)
		assert.Equal(t, want, got, dir)
	}
}
