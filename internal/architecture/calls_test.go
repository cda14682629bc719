package architecture

import (
	"bytes"
	"encoding/json"
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
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file calls the files below it: in no package do files call each other in a
// circle, so that each can be read from the top down. Whoever names a function
// or a method calls it. A call through an interface is no call of a file: who
// stands behind it is not known to the caller.
func TestNoFileCallsUp(t *testing.T) {
	listed, exports := listExports(t)
	for _, pkg := range listed {
		t.Run(strings.TrimPrefix(pkg.ImportPath, module+"/"), func(t *testing.T) {
			for _, circle := range fileCalls(t, pkg, exports).circles() {
				t.Errorf("files that call each other:\n%s", circle)
			}
		})
	}
}

// On other systems some packages have other files.
func TestNoFileCallsUpElsewhere(t *testing.T) {
	here, exports := listExports(t)
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, pkg := range listPackages(t, system) {
			i := slices.IndexFunc(here, func(p listedPackage) bool { return p.ImportPath == pkg.ImportPath })
			if i >= 0 && slices.Equal(here[i].GoFiles, pkg.GoFiles) {
				continue
			}
			for _, circle := range fileCalls(t, pkg, exports).circles() {
				t.Errorf("files of %s on %s that call each other:\n%s", pkg.ImportPath, system, circle)
			}
		}
	}
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
	exports = make(map[string]string)
	for _, p := range listPackages(t, runtime.GOOS, "-deps", "-export") {
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
	return packages, exports
}

// listPackages asks "go list" for the module's packages on a system.
func listPackages(t *testing.T, system string, flags ...string) (packages []listedPackage) {
	t.Helper()
	arguments := append([]string{"list", "-json=ImportPath,Dir,GoFiles,Export,DepOnly"}, flags...)
	list := exec.Command("go", append(arguments, module+"/...")...)
	list.Env = append(os.Environ(), "GOOS="+system)
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listedPackage
		require.NoError(t, decoder.Decode(&p))
		packages = append(packages, p)
	}
	return packages
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
	config := types.Config{
		Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }),
		Error: func(err error) { // what is imported on another system is not at hand here; it calls none of our files
			if pkg.Export != "" {
				t.Error(err)
			}
		},
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	checked, _ := config.Check(pkg.ImportPath, fset, files, &info)

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
