package project

import (
	"os"
	"strings"
)

// ShortenPaths returns a text for clients: it shortens paths of the project to begin at its
// root, and other paths of the user to begin at ~. A client need not learn the layout of the
// machine.
func (p Project) ShortenPaths(text string) string {
	text = replacePath(text, p.Root, "", "the project's directory")
	home, _ := os.UserHomeDir() // without a home no path is below it
	return replacePath(text, home, "~/", "~ (your home directory)")
}

// replacePath replaces a directory in a text: before the paths below it, and on its own.
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

// inPath reports whether a byte can continue the name of a file.
func inPath(c byte) bool {
	return c == '/' || c == '-' || c == '_' || c == '.' || c >= 0x80 ||
		'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
