// Package diff shows how a file changed as a unified diff, as git does. Conversations, approvals
// and clients all use it.
package diff

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
)

// Unified returns the change of a file from before to after, as git shows it; a nil text means
// that there is no file. A path below root is shown relative to it.
func Unified(root, path string, before, after *string) string {
	return Part(root, path, before, after, 1)
}

// Part is [Unified] for texts that are a part of the file, from one of its lines on. A line below 1
// is the first.
func Part(root, path string, before, after *string, line int) string {
	name := func(prefix string, text *string) (string, string) {
		if text == nil {
			return "/dev/null", ""
		}
		return shown(prefix, root, path), *text
	}
	oldName, oldText := name("a/", before)
	newName, newText := name("b/", after)
	return numbered(udiff.Unified(oldName, newName, oldText, newText), max(line, 1)-1)
}

// Mode returns the lines with which git shows a change of a file's mode, before those of its text.
func Mode(root, path string, before, after uint32) string {
	if before == after {
		return ""
	}
	return fmt.Sprintf("diff --git %s %s\nold mode %o\nnew mode %o\n", shown("a/", root, path), shown("b/", root, path), before, after)
}

// shown returns the path as git shows it.
func shown(prefix, root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	path = filepath.ToSlash(path)
	if strings.ContainsFunc(path, unicode.IsControl) { // a name has one line
		return strconv.Quote(prefix + path)
	}
	return prefix + path
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
