//go:build lint

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Package domain does not encode its values: the database and the dialects do.
func TestDomainValuesHaveNoSpelling(t *testing.T) {
	files, err := filepath.Glob("../domain/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		assert.Empty(t, spellings(t, name, nil))
	}
	for _, spelled := range []string{
		"type T struct { A int `json:\"a\"` }",
		"type T int; func (T) MarshalJSON() ([]byte, error) { return nil, nil }",
		`import "encoding/json"; var b, _ = json.Marshal(1)`,
	} {
		assert.NotEmpty(t, spellings(t, "x.go", "package domain; "+spelled), spelled)
	}
}

// spellings lists the struct tags, the encoding methods and the calls of an encoder in a
// file.
func spellings(t *testing.T, name string, source any) (found []string) {
	t.Helper()
	if source == nil {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		source = text
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		said := ""
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				said = n.Tag.Value
			}
		case *ast.FuncDecl:
			switch n.Name.Name {
			case "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "Scan", "Value":
				said = n.Name.Name
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "json" && n.Sel.Name != "RawMessage" {
				said = "json." + n.Sel.Name
			}
		}
		if said != "" {
			found = append(found, set.Position(n.Pos()).String()+": "+said)
		}
		return true
	})
	return found
}
