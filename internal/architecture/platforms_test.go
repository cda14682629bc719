//go:build lint

package architecture

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The module and its tests type-check on the systems of its files with build constraints. That takes
// no compiled dependencies, which cost minutes for each system; `make cross` compiles them.
func TestOtherSystemsTypeCheck(t *testing.T) {
	for _, system := range []string{"windows", "darwin"} {
		t.Run(system, func(t *testing.T) {
			for _, err := range typeErrors(t, system) {
				t.Error(err)
			}
		})
	}
}

// A listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

// typeErrors type-checks the module with its tests for a system.
func typeErrors(t *testing.T, system string) (found []error) {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-test", "-tags=clients,soak", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	list.Dir = "../.."
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	fset := token.NewFileSet()
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; { // dependencies come first
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			require.NoError(t, err)
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // go test generates that one
			continue
		}
		own := p.Module != nil && p.Module.Main
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
		config := types.Config{
			IgnoreFuncBodies: !own,
			Sizes:            types.SizesFor("gc", "amd64"),
			Importer: importer(func(path string) (*types.Package, error) {
				if mapped := p.ImportMap[path]; mapped != "" {
					path = mapped
				}
				if found := checked[path]; found != nil {
					return found, nil
				}
				return nil, errors.New("not listed: " + path)
			}),
			Error: func(err error) {
				if own {
					found = append(found, err)
				}
			},
		}
		checked[p.ImportPath], _ = config.Check(strings.Fields(p.ImportPath)[0], fset, files, nil)
	}
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }
