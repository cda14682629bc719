package project

import (
	"os"
	"strings"
)

// ShortenPaths is a text for clients: paths in it that are the project's begin
// at its root, and others of the user's at ~. Where things are on a machine is
// nobody else's business.
func (p Project) ShortenPaths(text string) string {
	text = replacePath(text, p.Root, "", "the project's directory")
	home, _ := os.UserHomeDir() // without a home nothing is below it
	return replacePath(text, home, "~/", "~ (your home directory)")
}

// replacePath replaces a directory in a text: before what is below it, and
// where it stands alone.
func replacePath(text, dir, before, alone string) string {
	if len(dir) < 2 {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, dir)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		j := i + len(dir)
		b.WriteString(text[:i])
		switch {
		case i > 0 && inPath(text[i-1]):
			b.WriteString(dir)
		case j < len(text) && text[j] == '/':
			b.WriteString(before)
			j++
		case j < len(text) && inPath(text[j]):
			b.WriteString(dir)
		default:
			b.WriteString(alone)
		}
		text = text[j:]
	}
}

// inPath reports whether a byte goes on with the name of a file.
func inPath(c byte) bool {
	return c == '/' || c == '-' || c == '_' || c == '.' || c >= 0x80 ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
