package acp

import (
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/diff"
)

// A fileChange is one file of a diff of version 2 of the protocol.
type fileChange struct {
	Operation string // add, delete, modify, move, copy, or one that is not known
	Path      string
	OldPath   string // of move and copy
}

const devNull = "/dev/null"

// contentOfDiff is a diff of version 2 as version 1 has it: one item for each hunk, and one
// without texts for a file of which the patch shows no text.
func contentOfDiff(changes []fileChange, patch string) (content []toolContent) {
	hunks := make(map[string][]diff.Hunk)
	for _, section := range strings.Split("\n"+patch, "\ndiff --git ") {
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
				item.OldText = &h.Old
			}
			content = append(content, item)
		}
	}
	return content
}

// patchedPath is the file of a section of a git patch, or "" if the section has no text.
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

// unquoted is a path as git writes it: in quotes if it has unusual characters, and with a tab
// behind it if it has spaces.
func unquoted(path string) string {
	path = strings.TrimSuffix(strings.TrimRight(path, "\r\n"), "\t")
	if plain, err := strconv.Unquote(path); err == nil && path[0] == '"' {
		return plain
	}
	return path
}
