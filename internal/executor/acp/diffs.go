package acp

import (
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/diff"
)

// A fileChange is one file of a diff of version 2 of the protocol.
type fileChange struct {
	Operation string // add, delete, modify, move, copy, or an unknown one
	Path      string
	OldPath   string // of move and copy
}

const devNull = "/dev/null"

// contentOfDiff converts a diff of version 2 to version 1: one item for each hunk, and one
// without texts for a file without text in the patch.
func contentOfDiff(changes []fileChange, patch string) (content []toolContent) {
	hunks := make(map[string][]diff.Hunk)
	for section := range strings.SplitSeq("\n"+patch, "\ndiff --git ") {
		if path := patchedPath(section); path != "" {
			hunks[path] = diff.Hunks(section + "\n")
		}
	}
	for _, c := range changes {
		if c.OldPath != "" && c.OldPath != c.Path {
			content = append(content, toolContent{Type: touched, Path: c.OldPath})
		}
		if len(hunks[c.Path]) == 0 {
			content = append(content, toolContent{Type: touched, Path: c.Path})
		}
		for _, h := range hunks[c.Path] {
			item := toolContent{Type: "diff", Path: c.Path, NewText: h.New}
			if c.Operation != "add" {
				item.OldText, item.Line = &h.Old, h.OldStart
				if h.OldLines == 0 { // the header names the line before
					item.Line++
				}
			}
			content = append(content, item)
		}
	}
	return content
}

// patchedPath returns the file of a section of a git patch, or "" if the section has no text.
func patchedPath(section string) string {
	before, after := "", ""
	for line := range strings.Lines(section) {
		switch name, isName := strings.CutPrefix(line, "+++ "); {
		case isName:
			after = unquoted(name)
		case strings.HasPrefix(line, "--- "):
			before = unquoted(line[len("--- "):])
		}
		if strings.HasPrefix(line, "@@ ") {
			break
		}
	}
	if after == devNull {
		return before
	}
	return after
}

// unquoted decodes a path in git's notation: quoted if it has unusual characters, and followed by
// a tab if it has spaces.
func unquoted(path string) string {
	path = strings.TrimSuffix(strings.TrimRight(path, "\r\n"), "\t")
	if plain, err := strconv.Unquote(path); err == nil && path[0] == '"' {
		return plain
	}
	return path
}
