package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An editor waits while packages are initialised, so none compiles a regular expression
// then: package lazyregexp does when one is needed.
func TestNothingIsCompiledAtStart(t *testing.T) {
	eachSource(t, func(pkg, path string, text []byte) {
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			variables, ok := d.(*ast.GenDecl)
			if !ok || variables.Tok != token.VAR {
				continue
			}
			ast.Inspect(variables, func(n ast.Node) bool {
				if _, later := n.(*ast.FuncLit); later {
					return false
				}
				if s, ok := n.(*ast.SelectorExpr); ok {
					from, _ := s.X.(*ast.Ident)
					assert.False(t, from != nil && from.Name == "regexp" && s.Sel.Name == "MustCompile", "%s compiles a regular expression when the program starts", path)
				}
				return true
			})
		}
	})
}
