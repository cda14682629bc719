// Package diff shows how a file changed as a unified diff, as git does. Conversations, approvals
// and clients all use it.
package diff

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
)

// Unified returns the change of a file from before to after, as git shows it; a nil text means
// that there is no file. A path below root is shown relative to it.
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
	return numbered(udiff.Unified(oldName, newName, oldText, newText))
}

// Count returns how many lines a unified diff of one file adds and removes. It ignores the
// header before the first hunk.
func Count(unified string) (added, removed int) {
	head := true
	for line := range strings.Lines(unified) {
		switch {
		case strings.HasPrefix(line, "@@"):
			head = false
		case head:
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	return added, removed
}
