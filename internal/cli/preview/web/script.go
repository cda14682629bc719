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

// begins find the position for the script: before the page's other scripts, and after tags
// that decide about the layout mode.
var begins = []func() *regexp.Regexp{
	lazyregexp.New(`(?i)<head(\s[^>]*)?>`), lazyregexp.New(`(?i)<html(\s[^>]*)?>`), lazyregexp.New(`(?i)^\s*<!doctype[^>]*>`),
}

// withScript inserts the script and the number of the latest command into a page.
func withScript(page []byte, after int64) []byte {
	scriptTag := fmt.Sprintf(`<script src="%spage.js?after=%d"></script>`, own, after)
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
