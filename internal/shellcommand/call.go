package shellcommand

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// A call is a simple command: what it runs, and what is set for it.
type call struct {
	assigns      []assignment
	words        []word
	redirections []string
	says         []string // operators of redirections
	source       string
}

// An assignment sets a variable, for one command or for those that follow.
type assignment struct{ name, bare string }

// isHarmless reports whether a variable changes at most how a program writes.
// Of all others it is not known: there is a program that runs what they say.
func (a assignment) isHarmless() bool {
	switch a.name {
	case "CI", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "TERM", "TZ", "LANG", "LC_ALL", "GOOS", "GOARCH",
		"CGO_ENABLED", "RUST_BACKTRACE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "DEBIAN_FRONTEND":
		return true
	}
	return false
}

// changesTo is the directory to which a call does nothing but to change, "" if
// it does more, or perhaps.
func changesTo(c call) string {
	if len(c.words) != 2 || len(c.assigns)+len(c.redirections) > 0 || !c.words[0].is("cd") || !c.words[1].isLiteral || c.words[1].expands {
		return ""
	}
	dir := c.words[1].text()
	if dir == "" || strings.HasPrefix(dir, "-") || strings.HasPrefix(dir, "+") || slices.Contains(strings.Split(dir, "/"), "..") {
		return ""
	}
	return dir
}

// isName reports whether a text can be the name of a program: nothing that some
// shell takes for anything else.
func isName(text string) bool {
	return text != "" && !strings.HasPrefix(text, "=") && !strings.HasPrefix(text, "%") && !strings.HasPrefix(text, "-") && !strings.Contains(text, "=")
}

var duration = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[smhd]?$`)

// runsRest are the words that a command runs as they stand there, if it does
// nothing else.
func runsRest(words []word) ([]word, bool) {
	skip := 1
	switch words[0].text() {
	case "command", "exec", "nohup", "time", "env", "nice":
	case "timeout":
		if len(words) < 2 || !words[1].isLiteral || !duration.MatchString(words[1].text()) {
			return nil, false
		}
		skip = 2
	default:
		return nil, false
	}
	if len(words) <= skip || !words[skip].isLiteral || strings.HasPrefix(words[skip].text(), "-") {
		return nil, false
	}
	return words[skip:], true
}

// trustedShells are the directories whose shells are what they are called.
var trustedShells = []string{"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}

// scriptOf is the script that words give to a shell that can be read, if they do
// nothing but that.
func scriptOf(words []word) (program, script string, ok bool) {
	if len(words) < 3 || !words[0].isLiteral {
		return "", "", false
	}
	program = words[0].text()
	if dir := path.Dir(program); dialectsOf(program) == nil || strings.Contains(program, "/") && !slices.Contains(trustedShells, dir) {
		return "", "", false
	}
	given := false
	rest := words[1:]
	for len(rest) > 0 {
		option := rest[0]
		if !option.isLiteral || option.expands {
			return "", "", false
		}
		text := option.text()
		if !strings.HasPrefix(text, "-") {
			break
		}
		rest = rest[1:]
		switch text {
		case "--login", "--norc", "--noprofile", "--posix":
			continue
		}
		if len(text) < 2 || strings.Trim(text[1:], "lceux") != "" {
			return "", "", false
		}
		given = given || strings.Contains(text, "c")
	}
	if !given || len(rest) == 0 || !rest[0].isLiteral || rest[0].expands {
		return "", "", false
	}
	return program, rest[0].text(), true
}
