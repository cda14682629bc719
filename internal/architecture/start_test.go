//go:build lint

package architecture

import (
	"go/ast"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
)

// An editor waits while packages initialise, so none compiles a regular expression then.
// Package lazyregexp compiles one when it is first used.
func TestNoRegexpCompilesAtStart(t *testing.T) {
	for _, s := range sources(t) {
		if !s.isTest {
			assert.Empty(t, compiledAtStart(s))
		}
	}
	for text, found := range map[string]bool{
		`package x; var a = regexp.MustCompile("a")`:                          true,
		`package x; var a = []any{regexp.MustCompile("a")}`:                   true,
		`package x; var a = func() any { return regexp.MustCompile("a") }`:    false,
		`package x; func f() { var a = regexp.MustCompile("a"); a.String() }`: false,
		`package x; var a = lazyregexp.New("a")`:                              false,
	} {
		s, err := parse("x.go", text)
		assert.NoError(t, err)
		assert.Equal(t, found, len(compiledAtStart(s)) > 0, text)
	}
}

// compiledAtStart lists the package variables of a file whose initialisation compiles a
// regular expression.
func compiledAtStart(s source) (found []string) {
	for _, d := range s.file.Decls {
		variables, ok := d.(*ast.GenDecl)
		if !ok || variables.Tok != token.VAR {
			continue
		}
		ast.Inspect(variables, func(n ast.Node) bool {
			if _, later := n.(*ast.FuncLit); later {
				return false
			}
			if sel, ok := n.(*ast.SelectorExpr); ok {
				from, _ := sel.X.(*ast.Ident)
				if from != nil && from.Name == "regexp" && sel.Sel.Name == "MustCompile" {
					found = append(found, s.at(sel.Pos())+" compiles a regular expression when the program starts; use package lazyregexp")
				}
			}
			return true
		})
	}
	return found
}
