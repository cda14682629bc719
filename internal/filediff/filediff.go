// Package filediff spells how a file has changed, as a unified diff.
package filediff

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
)

// Unified is how a file changed, as git shows it: paths are relative to root
// where they lie in it, and /dev/null where there is no file.
func Unified(root, path string, before, after *string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	path = filepath.ToSlash(path)
	name := func(prefix string, text *string) (string, string) {
		if text == nil {
			return "/dev/null", ""
		}
		if strings.ContainsFunc(path, unicode.IsControl) { // as git writes it: a name has one line
			return strconv.Quote(prefix + path), *text
		}
		return prefix + path, *text
	}
	oldName, oldText := name("a/", before)
	newName, newText := name("b/", after)
	return udiff.Unified(oldName, newName, oldText, newText)
}
