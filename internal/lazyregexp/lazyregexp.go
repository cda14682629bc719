// Package lazyregexp has regular expressions that are compiled when they are needed:
// an editor waits for the program to start, and most of its processes never use one.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New makes a function that gives the regular expression, which it compiles when it is
// first called. It may be called from many goroutines. As [regexp.MustCompile] does, it
// panics if expr is none.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
