package main

import (
	"os"
	"runtime"
	"strconv"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// shown is how characters are written out that could not be seen.
var shown = func() visible.Marks {
	if runtime.GOOS == "windows" { // which has no such variables
		return visible.Brackets
	}
	return visible.ForLocale(os.Getenv)
}()

// quotedName is the name of a file in quotes.
func quotedName(name string) string { return shown.Exact(strconv.Quote(name)) }
