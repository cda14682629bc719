//go:build lint

package architecture

import (
	"go/ast"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A duration between two moments does not change when the clock is set: both times have a monotonic
// part. A number or a file's time has none.
func TestElapsedTimeIsMonotonic(t *testing.T) {
	for _, s := range sources(t) {
		if !s.isTest {
			assert.Empty(t, wallClockDurations(s))
		}
	}
	for text, found := range map[string]bool{
		`last.Store(time.Now().UnixNano())`:       true,
		`f(time.Since(time.Unix(0, since)))`:      true,
		`f(time.Until(time.UnixMilli(until)))`:    true,
		`f(now.Sub(time.UnixMilli(since)))`:       true,
		`f(time.Since(began))`:                    false,
		`f(now.Sub(began))`:                       false,
		`f(at.UnixNano())`:                        false,
		`f(time.Unix(0, 1).Sub(time.Unix(0, 0)))`: true,
	} {
		s, err := parse("x.go", "package x; func f() { "+text+" }")
		assert.NoError(t, err)
		assert.Equal(t, found, len(wallClockDurations(s)) > 0, text)
	}
}

// wallClockDurations lists the durations in a file that depend on the wall clock.
func wallClockDurations(s source) (found []string) {
	// of returns the name of a function of package time that an expression calls, or "".
	of := func(e ast.Expr) string {
		call, _ := e.(*ast.CallExpr)
		if call == nil {
			return ""
		}
		sel, _ := call.Fun.(*ast.SelectorExpr)
		if sel == nil {
			return ""
		}
		if from, _ := sel.X.(*ast.Ident); from == nil || from.Name != "time" {
			return ""
		}
		return sel.Sel.Name
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, _ := n.(*ast.CallExpr)
		if call == nil {
			return true
		}
		sel, _ := call.Fun.(*ast.SelectorExpr)
		if sel == nil {
			return true
		}
		isNow := sel.Sel.Name == "UnixNano" && of(sel.X) == "Now"
		isDuration := of(call) == "Since" || of(call) == "Until" || sel.Sel.Name == "Sub"
		ofNumber := false
		for _, e := range call.Args {
			name := of(e)
			ofNumber = ofNumber || name == "Unix" || name == "UnixMilli" || name == "UnixMicro"
		}
		if isNow || isDuration && ofNumber {
			found = append(found, s.at(call.Pos())+" measures time with the wall clock, which can be set; keep a time.Time of time.Now, or a duration since one")
		}
		return true
	})
	return found
}
