//go:build lint

// Package architecture checks rules about the source code that the compiler does not
// check: which layer imports which, and what a test may depend on. make lint runs it.
package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/duet-rpc/duet-rpc"
	root   = "../.."
)

// A source is a parsed Go file of the module.
type source struct {
	path   string // relative to the root, with slashes
	isTest bool
	set    *token.FileSet
	file   *ast.File
}

// dir returns the directory of the file relative to the root. It is the import path
// of the file's package without the module's.
func (s source) dir() string { return path.Dir(s.path) }

// imports returns the import paths of the file.
func (s source) imports() (list []string) {
	for _, spec := range s.file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		list = append(list, name)
	}
	return list
}

// at formats a position in the file.
func (s source) at(pos token.Pos) string {
	return s.path + ":" + strconv.Itoa(s.set.Position(pos).Line)
}

// parse parses one file. text is nil to read the file from the disk.
func parse(name string, text any) (source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, filepath.Join(root, name), text, parser.ParseComments|parser.SkipObjectResolution)
	return source{path: name, isTest: strings.HasSuffix(name, "_test.go"), set: set, file: file}, err
}

var parsed = sync.OnceValues(func() (list []source, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			nested := err == nil && name != root
			hidden := strings.HasPrefix(d.Name(), ".") && name != root
			if nested || hidden || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), nil)
		list = append(list, s)
		return err
	})
	return list, err
})

// sources returns the Go files of the module, for every platform and with every build
// tag. It leaves out nested modules.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}
