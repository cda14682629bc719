package main

import (
	"strconv"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// shown is how characters are written out that could not be seen.
var shown = visible.ForTerminal()

// quotedName is the name of a file in quotes.
func quotedName(name string) string { return shown.Exact(strconv.Quote(name)) }
