package architecture

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file calls the files below it: in no package do files call each other in a
// circle, so that each can be read from the top down. Whoever names a function
// or a method calls it. A call through an interface is no call of a file: who
// stands behind it is not known to the caller.
func TestNoFileCallsUp(t *testing.T) {
	listed, exports := listExports(t)
	for _, pkg := range listed {
		name := strings.TrimPrefix(pkg.ImportPath, module+"/")
		t.Run(name, func(t *testing.T) {
			circles := fileCalls(t, pkg, exports).circles()
			if slices.Contains(notYet, name) {
				assert.NotEmpty(t, circles, "no file of %s calls up any more: take it out of notYet", name)
				return
			}
			for _, circle := range circles {
				t.Errorf("files that call each other:\n%s", circle)
			}
		})
	}
}

// notYet has the packages in which files call up still.
var notYet = []string{
	"client",
	"frame",
	"handlers",
	"internal/approval",
	"internal/cli",
	"internal/cli/turn",
	"internal/config",
	"internal/conversation",
	"internal/database",
	"internal/demoagent",
	"internal/eventlog",
	"internal/executor/acp",
	"internal/executor/process",
	"internal/executor/terminal",
	"internal/host",
	"internal/hub",
	"internal/intake",
	"internal/project",
	"internal/query",
	"internal/question",
	"internal/redact",
	"internal/relay",
	"internal/socket",
	"internal/store/sqlite",
	"internal/store/storetest",
	"internal/supervisor",
	"internal/terminal",
	"server",
	"server/stdio",
}

// listedPackage is what "go list" says of a package.
type listedPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Export     string // the file with its types
	DepOnly    bool
}

// listExports returns the packages of the module, and where the types of
// everything they import are.
func listExports(t *testing.T) (packages []listedPackage, exports map[string]string) {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,GoFiles,Export,DepOnly", module+"/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	exports = make(map[string]string)
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, exports
		} else {
			require.NoError(t, err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
}

// calls are the calls between files: who names what, by the file that calls
// and the file that is called.
type calls map[string]map[string][]string

// fileCalls returns the calls between the files of a package.
func fileCalls(t *testing.T, pkg listedPackage, exports map[string]string) calls {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	checked, err := config.Check(pkg.ImportPath, fset, files, &info)
	require.NoError(t, err)

	found := make(calls)
	for _, file := range files {
		from := filepath.Base(fset.Position(file.Package).Filename)
		found[from] = make(map[string][]string)
		for _, decl := range file.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				ident, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				f, ok := info.Uses[ident].(*types.Func)
				if !ok || f.Pkg() != checked {
					return true
				}
				if r := f.Signature().Recv(); r != nil && types.IsInterface(r.Type()) {
					return true
				}
				if to := filepath.Base(fset.Position(f.Origin().Pos()).Filename); to != from {
					found[from][to] = append(found[from][to], fmt.Sprintf("%s calls %s (line %d)", declared(decl), f.Name(), fset.Position(ident.Pos()).Line))
				}
				return true
			})
		}
	}
	return found
}

// declared is what a declaration is called in a message.
func declared(decl ast.Decl) string {
	if f, ok := decl.(*ast.FuncDecl); ok {
		if f.Recv != nil {
			return receiver(f.Recv.List[0].Type) + "." + f.Name.Name
		}
		return f.Name.Name
	}
	return "a declaration"
}

// circles returns, for each group of files that all reach each other, the
// shortest way around and the calls that make it.
func (c calls) circles() []string {
	var circles []string
	done := make(map[string]bool)
	for _, file := range slices.Sorted(maps.Keys(c)) {
		if done[file] {
			continue
		}
		way := c.around(file)
		if way == nil {
			continue
		}
		for other := range c {
			if c.way(file, other) != nil && c.way(other, file) != nil {
				done[other] = true
				if shorter := c.around(other); len(shorter) < len(way) {
					way = shorter
				}
			}
		}
		var text strings.Builder
		for i := range len(way) - 1 {
			fmt.Fprintf(&text, "%s → %s\n\t%s\n", way[i], way[i+1], strings.Join(c[way[i]][way[i+1]], "\n\t"))
		}
		circles = append(circles, text.String())
	}
	return circles
}

// around is the shortest way from a file back to itself.
func (c calls) around(file string) []string { return c.way(file, file) }

// way is the shortest way from one file to another, of at least one step.
func (c calls) way(from, to string) []string {
	came := make(map[string]string)
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, next := range slices.Sorted(maps.Keys(c[queue[0]])) {
			if came[next] != "" {
				continue
			}
			came[next] = queue[0]
			if next != to {
				queue = append(queue, next)
				continue
			}
			way := []string{to}
			for at := came[to]; ; at = came[at] {
				way = append(way, at)
				if at == from {
					slices.Reverse(way)
					return way
				}
			}
		}
	}
	return nil
}
