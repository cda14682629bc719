package web

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

//go:embed page.js
var script []byte

// begins finds where the script goes: before what else a page runs, behind what decides how it
// is laid out.
var begins = []func() *regexp.Regexp{
	lazyregexp.New(`(?i)<head(\s[^>]*)?>`), lazyregexp.New(`(?i)<html(\s[^>]*)?>`), lazyregexp.New(`(?i)^\s*<!doctype[^>]*>`),
}

// withScript is a page with the script in it, and what pages have been told by now.
func withScript(page []byte, told int64) []byte {
	scriptTag := fmt.Sprintf(`<script src="%spage.js?after=%d"></script>`, own, told)
	at := 0
	for _, begin := range begins {
		if found := begin().FindIndex(page); found != nil {
			at = found[1]
			break
		}
	}
	out := make([]byte, 0, len(page)+len(scriptTag))
	out = append(out, page[:at]...)
	out = append(out, scriptTag...)
	return append(out, page[at:]...)
}

func isHTML(contentType string) bool { return strings.HasPrefix(contentType, "text/html") }
