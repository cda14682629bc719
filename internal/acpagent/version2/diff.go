package version2

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/diff"
)

// diffOf is a change of a file: what it does to which path, and a patch. Where the path is
// not absolute, which version 2 wants, it is a diff as text.
func diffOf(c schema.ToolContent) any {
	if !filepath.IsAbs(c.Path) {
		text := schema.Text("```diff\n" + diff.Unified("/", c.Path, c.OldText, c.NewText) + "```\n")
		return schema.ToolContent{Type: "content", Content: &text}
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

// patch is a change as git writes it, but with absolute paths, and without the prefixes
// a/ and b/. It is empty if nothing changes.
func patch(c schema.ToolContent) string {
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
		fmt.Fprintf(&b, "--- %s\n+++ %s\n@@%s", ended(before), ended(path), hunks)
	}
	return b.String()
}

// ended is a path in a line of its own: git puts a tab behind one with spaces.
func ended(path string) string {
	if strings.Contains(path, " ") && path[0] != '"' {
		return path + "\t"
	}
	return path
}

// quoted is a path as git quotes it.
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
