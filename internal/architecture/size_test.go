package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	packageLines    = 3000 // of a package, without its tests
	exportedMethods = 30   // of a type
	mainLines       = 50   // of cmd/duet-rpc
)

// eachSource calls f with the sources of the module, without tests.
func eachSource(t *testing.T, f func(pkg, path string, text []byte)) {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{$p := .ImportPath}}{{$d := .Dir}}{{range .GoFiles}}{{$p}} {{$d}}/{{.}}{{"\n"}}{{end}}`, module+"/...").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		pkg, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		f(strings.TrimPrefix(pkg, module+"/"), path, text)
	}
}

// A room has one idea, and no more in it than can be read in an afternoon.
func TestRoomsAreSmall(t *testing.T) {
	lines := make(map[string]int)
	eachSource(t, func(pkg, _ string, text []byte) { lines[pkg] += bytes.Count(text, []byte("\n")) })
	for pkg, n := range lines {
		if pkg != "handlers" { // one file a family
			assert.LessOrEqual(t, n, packageLines, "lines of %s", pkg)
		}
	}
	assert.Less(t, lines["cmd/duet-rpc"], mainLines)
}

// A type that can do everything owns everything.
func TestTypesAreSmall(t *testing.T) {
	methods := make(map[string]int)
	eachSource(t, func(pkg, path string, text []byte) {
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() {
				methods[pkg+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	})
	for name, n := range methods {
		assert.LessOrEqual(t, n, exportedMethods, "exported methods of %s", name)
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// What a comment cites stands in the repository, or is published.
func TestNothingIsCitedThatNobodyCanRead(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	require.NoError(t, err)
	unpublished := regexp.MustCompile(`\bseed 00\d|\bDESIGN(\.md)?\b`)
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if name == "internal/architecture/size_test.go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) { // removed, and not committed yet
			continue
		}
		require.NoError(t, err)
		assert.Nil(t, unpublished.Find(text), name)
	}
}
