package trigger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patternsOfGit are lines of a .gitignore file.
var patternsOfGit = []string{
	"# a comment", "", "*.log", "!keep.log", "build/", "/top", "a/b", "**/deep", "x/**", "y/**/z", "?.q", "[abc].r", "[!abc].s", `\#hash`, `\!bang`, "trail ", `sp\ `,
	"docs/*.txt", "/only/here/", "[]x].t", "no[", "foo.*.bar", "mid/*/end", "ends**", "[a-c]1", "*.o\r",
}

// ignoredByGit and keptByGit list git's results for these patterns. The tests with the tag clients
// ask an installed git.
var (
	ignoredByGit = []string{
		"a.log", "sub/a.log", "build/x", "sub/build/y", "top", "a/b", "deep", "p/q/deep", "x/1", "x/2/3", "y/z", "y/1/z", "y/1/2/z", "1.q", "a.r", "d.s",
		"#hash", "!bang", "trail", "sp ", "docs/1.txt", "only/here/x", "].t", "x.t", "foo.1.bar", "mid/1/end", "ends", "endsabc", "b1", "m.o", "n/m.o",
	}
	keptByGit = []string{
		"keep.log", "sub/keep.log", "build.txt", "sub/top", "sub/a/b", "deeper", "sub/x/1", "y/zz", "12.q", "d.r", "a.s", "docs/sub/1.txt",
		"sub/only/here/x", "y.t", "no[", "foo.bar", "mid/1/2/end", "d1",
	}
)

// isIgnoredIn reports whether a file or one of its directories is ignored.
func isIgnoredIn(w *tree, file string) bool {
	ignored := w.isIgnored(file, false)
	for in := filepath.Dir(file); in != "." && !ignored; in = filepath.Dir(in) {
		ignored = w.isIgnored(filepath.ToSlash(in), true)
	}
	return ignored
}

func TestPatternsAreThoseOfGit(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".gitignore")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(patternsOfGit, "\n")), 0o600))
	w := &tree{ignores: map[string]list{".": readList(file)}}
	for _, file := range ignoredByGit {
		assert.True(t, isIgnoredIn(w, file), "%q", file)
	}
	for _, file := range keptByGit {
		assert.False(t, isIgnoredIn(w, file), "%q", file)
	}
}

func TestADeeperFileOfPatternsCounts(t *testing.T) {
	w := &tree{ignores: map[string]list{".": parseList([]string{"*.gen", "/out"}, false), "sub": parseList([]string{"!own.gen", "local"}, false)}}
	for file, ignored := range map[string]bool{"a.gen": true, "sub/a.gen": true, "sub/own.gen": false, "own.gen": true, "sub/local": true, "local": false, "sub/out": false, "out": true, ".git": true, "sub/node_modules": true} {
		assert.Equal(t, ignored, w.isIgnored(file, false), file)
	}
}
