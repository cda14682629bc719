package watch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is ignored is what git ignores.
func TestPatternsAreThoseOfGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	dir := t.TempDir()
	out, err := exec.Command(git, "init", "-q", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	lines := []string{
		"# a comment", "", "*.log", "!keep.log", "build/", "/top", "a/b", "**/deep", "x/**", "y/**/z", "?.q", "[abc].r", "[!abc].s", `\#hash`, `\!bang`, "trail ", `sp\ `,
		"docs/*.txt", "/only/here/", "[]x].t", "no[", "foo.*.bar", "mid/*/end", "ends**", "[a-c]1", "*.o\r",
	}
	files := []string{
		"a.log", "sub/a.log", "keep.log", "sub/keep.log", "build/x", "sub/build/y", "build.txt", "top", "sub/top", "a/b", "sub/a/b", "deep", "p/q/deep", "deeper", "x/1", "x/2/3", "sub/x/1",
		"y/z", "y/1/z", "y/1/2/z", "y/zz", "1.q", "12.q", "a.r", "d.r", "a.s", "d.s", "#hash", "!bang", "trail", "sp ", "docs/1.txt", "docs/sub/1.txt", "only/here/x", "sub/only/here/x",
		"].t", "x.t", "y.t", "no[", "foo.1.bar", "foo.bar", "mid/1/end", "mid/1/2/end", "ends", "endsabc", "b1", "d1", "m.o", "n/m.o",
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(strings.Join(lines, "\n")), 0o644))
	write(t, dir, files...)
	w := &tree{root: dir, ignores: map[string]list{".": readList(filepath.Join(dir, ".gitignore"))}}
	for _, file := range files {
		err := exec.Command(git, "-C", dir, "check-ignore", "-q", "--no-index", file).Run()
		ignored := w.isIgnored(file, false)
		for in := filepath.Dir(file); in != "." && !ignored; in = filepath.Dir(in) {
			ignored = w.isIgnored(filepath.ToSlash(in), true)
		}
		assert.Equal(t, err == nil, ignored, "%q", file)
	}
}

func TestADeeperFileOfPatternsCounts(t *testing.T) {
	w := &tree{ignores: map[string]list{".": parseList([]string{"*.gen", "/out"}, false), "sub": parseList([]string{"!own.gen", "local"}, false)}}
	for file, ignored := range map[string]bool{"a.gen": true, "sub/a.gen": true, "sub/own.gen": false, "own.gen": true, "sub/local": true, "local": false, "sub/out": false, "out": true, ".git": true, "sub/node_modules": true} {
		assert.Equal(t, ignored, w.isIgnored(file, false), file)
	}
}
