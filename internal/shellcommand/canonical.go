package shellcommand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Canonical is the same for scripts that differ in blanks and comments alone,
// for whichever shell they are. One that shells could take for different things
// is the same as itself alone.
func Canonical(script string) string {
	if !isPlain(script) || isTooMuch(script) || strings.Contains(script, "<<") || strings.Contains(script, "`") {
		return script
	}
	canonical := ""
	for _, shell := range unknownShell {
		text, ok := minified(script, shell)
		if again, still := minified(text, shell); !ok || !still || again != text || canonical != "" && canonical != text {
			return script
		}
		canonical = text
	}
	return canonical
}

// minified is a script as the printer writes it for a shell.
func minified(script string, shell dialect) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			text, ok = "", false
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(shell)).Parse(strings.NewReader(script), "")
	if err != nil {
		return "", false
	}
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, file); err != nil {
		return "", false
	}
	return strings.TrimSuffix(b.String(), "\n"), b.Len() > 0
}

// CanonicalWords are the words of a program, with the script that a shell among
// them is given as its Canonical.
func CanonicalWords(argv []string) []string {
	words := make([]word, len(argv))
	for i, text := range argv {
		words[i] = literal(text)
	}
	if _, script, ok := scriptOf(words); ok {
		for i, text := range argv {
			if i > 0 && text == script {
				canonical := append([]string(nil), argv...)
				canonical[i] = Canonical(script)
				return canonical
			}
		}
	}
	return argv
}
