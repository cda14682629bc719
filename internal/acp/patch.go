package acp

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/diff"
)

// Diffs of version 2 of the protocol are patches in git's format.

// diff2 converts a change of a file to an operation with a path and a patch. For a relative path,
// which version 2 does not allow, it returns the diff as text.
func diff2(c ToolContent) any {
	if !filepath.IsAbs(c.Path) {
		text := TextContent("```diff\n" + diff.Unified("/", c.Path, c.OldText, c.NewText) + "```\n")
		return ToolContent{Type: "content", Content: &text}
	}
	operation := "modify"
	if c.OldText == nil {
		operation = "add"
	}
	d := object{"type": "diff", "changes": []object{{"operation": operation, "path": c.Path}}}
	if text := patch(c); text != "" {
		d["patch"] = object{"format": "git_patch", "text": text}
	}
	return d
}

// patch returns a change in git's format, but with absolute paths, and without the prefixes a/
// and b/. It is empty if nothing changes.
func patch(c ToolContent) string {
	unified := diff.Unified("/", c.Path, c.OldText, c.NewText)
	_, hunks, _ := strings.Cut("\n"+unified, "\n@@")
	if hunks == "" && c.OldText != nil {
		return ""
	}
	path := quoted(c.Path)
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", path, path)
	before := path
	if c.OldText == nil {
		b.WriteString("new file mode 100644\n")
		before = "/dev/null"
	}
	if hunks != "" {
		fmt.Fprintf(&b, "--- %s\n+++ %s\n@@%s", pathLine(before), pathLine(path), hunks)
	}
	return b.String()
}

// pathLine returns a path for a line of its own: like git, it adds a tab to a path with spaces.
func pathLine(path string) string {
	if strings.Contains(path, " ") {
		return path + "\t"
	}
	return path
}

// quoted returns a path in git's quotes.
func quoted(path string) string {
	isSpecial := func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }
	if !strings.ContainsFunc(path, isSpecial) {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case isSpecial(rune(c)):
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// A fileChange is one file of a diff that an agent sends with a patch.
type fileChange struct {
	Operation string // add, delete, modify, move, copy, or an unknown one
	Path      string
	OldPath   string // of move and copy
}

const devNull = "/dev/null"

// patched returns the content of a diff with a patch: one item for each hunk, and one without texts
// for a file without text in the patch.
func patched(changes []fileChange, patch string) (content []ReportedContent) {
	hunks := make(map[string][]diff.Hunk)
	for section := range strings.SplitSeq("\n"+patch, "\ndiff --git ") {
		if path := patchedPath(section); path != "" {
			hunks[path] = diff.Hunks(section + "\n")
		}
	}
	for _, c := range changes {
		if c.OldPath != "" && c.OldPath != c.Path {
			content = append(content, ReportedContent{Type: Touched, Path: c.OldPath})
		}
		if len(hunks[c.Path]) == 0 {
			content = append(content, ReportedContent{Type: Touched, Path: c.Path})
		}
		for _, h := range hunks[c.Path] {
			item := ReportedContent{Type: "diff", Path: c.Path, NewText: h.New}
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
