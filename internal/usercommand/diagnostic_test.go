package usercommand_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// diagnosticsIn returns the diagnostics in a whole output.
func diagnosticsIn(root, directory, output string) (list []domain.Diagnostic) {
	p := usercommand.NewParser(root, directory)
	for line := range strings.Lines(output) {
		list = append(list, p.Line(line)...)
	}
	return list
}

// testdata/*.txt has the output of tools run in /project; testdata/*.golden has the diagnostics.
func TestWhatToolsPrint(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			output, err := os.ReadFile(file)
			require.NoError(t, err)
			var b strings.Builder
			for _, d := range diagnosticsIn("/project", "/project", string(output)) {
				fmt.Fprintf(&b, "%s:%d:%d: %s [%s] %s\n", d.File, d.Line, d.Column, d.Severity, d.Source, d.Message)
			}
			testkit.GoldenBytes(t, strings.TrimSuffix(file, ".txt")+".golden", []byte(b.String()))
		})
	}
}

func TestFilesAreNamedFromTheRoot(t *testing.T) {
	list := diagnosticsIn("/project", "/project/web", "src/a.go:1:2: wrong\n../b.go:1: wrong\n/elsewhere/c.go:3: wrong\n/project/d.go:1: wrong\n../../e.go:1: wrong\n")
	var files []string
	for _, d := range list {
		files = append(files, d.File)
	}
	assert.Equal(t, []string{"web/src/a.go", "b.go", "/elsewhere/c.go", "d.go", "/e.go"}, files)
}

func TestALongLineIsCutAndALongOutputIsNoTrouble(t *testing.T) {
	list := diagnosticsIn("/", "/", "a.go:1: "+strings.Repeat("ä", 1<<20)+"\n")
	require.Len(t, list, 1)
	assert.LessOrEqual(t, len(list[0].Message), 4<<10)
	deep := strings.Repeat("make: Entering directory 'x'\n", 100_000)
	assert.Empty(t, diagnosticsIn("/", "/", deep))
}

func FuzzParser(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		if output, err := os.ReadFile(file); err == nil {
			f.Add(string(output))
		}
	}
	f.Fuzz(func(t *testing.T, output string) {
		for _, d := range diagnosticsIn("/project", "/project", output) {
			assert.NotEmpty(t, d.File)
			assert.NotEmpty(t, d.Message)
			assert.Contains(t, []string{usercommand.DiagnosticError, usercommand.Warning, usercommand.Note}, d.Severity)
			assert.GreaterOrEqual(t, d.Line, 0)
			assert.GreaterOrEqual(t, d.Column, 0)
			for _, s := range []string{d.File, d.Message} {
				assert.NotContains(t, s, "\x1b")
				assert.NotContains(t, s, "\n")
			}
		}
	})
}

// go test names files without a directory, and their package later.
func TestFilesOfGoTestsAreInTheDirectoryOfTheirPackage(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "server"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "server", "go.mod"), []byte("// a shop\nmodule example.com/shop // v2\n"), 0o644))
	output := "--- FAIL: TestSum (0.00s)\n    a_test.go:8: wrong\nFAIL\nFAIL\t%s\t0.004s\n"
	for name, file := range map[string]string{
		"example.com/shop":         "server/a_test.go",
		"example.com/shop/a/b":     "server/a/b/a_test.go",
		"example.com/shopping":     "server/a_test.go",
		"example.com/other/module": "server/a_test.go", // unknown, so the tool's directory
	} {
		list := diagnosticsIn(root, filepath.Join(root, "server"), fmt.Sprintf(output, name))
		require.Len(t, list, 1, name)
		assert.Equal(t, file, list[0].File, name)
	}
	assert.Equal(t, "server/a/a_test.go", diagnosticsIn(root, filepath.Join(root, "server", "a"), fmt.Sprintf(output, "example.com/shop/a"))[0].File, "go test was run in a package")
	assert.Empty(t, diagnosticsIn(root, root, strings.Replace(fmt.Sprintf(output, "x"), "FAIL\tx", "ok  \tx", 1)), "a test that was expected to fail, of a package that did not")
}
