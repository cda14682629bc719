package trigger

import (
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A pattern is a line of a .gitignore file (gitignore(5)).
type pattern struct {
	matches *regexp.Regexp // of a path with slashes, below where the pattern stands
	negated bool           // what it matches is not ignored after all
	dirOnly bool
}

// parsePattern reads a line; ok is false for one that says nothing. Where anchored is
// set, what names no place is one at the top, unless it has a * in it.
func parsePattern(line string, anchored bool) (p pattern, ok bool) {
	line = trimTrailing(line)
	if line == "" || line[0] == '#' {
		return p, false
	}
	if p.negated = line[0] == '!'; p.negated {
		line = line[1:]
	}
	if p.dirOnly = strings.HasSuffix(line, "/"); p.dirOnly {
		line = strings.TrimSuffix(line, "/")
	}
	top := strings.Contains(line, "/") || anchored && !strings.ContainsAny(line, "*?[")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	text := "^" + translate(line) + "$"
	if !top {
		text = "^(?:.*/)?" + translate(line) + "$"
	}
	var err error
	p.matches, err = regexp.Compile(text)
	return p, err == nil
}

// trimTrailing cuts off the spaces at the end that are not quoted.
func trimTrailing(line string) string {
	line = strings.TrimSuffix(line, "\r")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	return line
}

// translate is a pattern as a regular expression.
func translate(glob string) string {
	var b strings.Builder
	if rest, ok := strings.CutPrefix(glob, "**/"); ok {
		b.WriteString("(?:.*/)?")
		glob = rest
	}
	for i := 0; i < len(glob); {
		switch rest := glob[i:]; {
		case strings.HasPrefix(rest, "/**/"):
			b.WriteString("/(?:.*/)?")
			i += 4
		case rest == "/**":
			b.WriteString("/.+")
			i += 3
		case rest[0] == '*':
			b.WriteString("[^/]*")
			i++
		case rest[0] == '?':
			b.WriteString("[^/]")
			i++
		case rest[0] == '[':
			class, n := translateClass(rest)
			b.WriteString(class)
			i += n
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			i++
		}
	}
	return b.String()
}

// translateClass is [abc], and how long it is in the pattern.
func translateClass(s string) (class string, n int) {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for i < len(s) && s[i] != ']' {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(s) {
		return "[", len(s) // git takes it for no pattern either, and so does regexp
	}
	inner := s[1:i]
	not := ""
	if inner != "" && (inner[0] == '!' || inner[0] == '^') {
		not, inner = "^/", inner[1:]
	}
	inner = strings.NewReplacer("[", `\[`, "^", `\^`).Replace(inner)
	if strings.HasPrefix(inner, "]") {
		inner = `\` + inner
	}
	return "[" + not + inner + "]", i + 1
}

// A list is the patterns of a file, or of a trigger. The last that matches counts.
type list []pattern

func parseList(lines []string, anchored bool) (l list) {
	for _, line := range lines {
		if p, ok := parsePattern(line, anchored); ok {
			l = append(l, p)
		}
	}
	return l
}

// verdict tells whether a path is ignored, and whether any pattern says so or the
// opposite.
func (l list) verdict(path string, dir bool) (ignored, said bool) {
	for i := len(l) - 1; i >= 0; i-- {
		if p := l[i]; (dir || !p.dirOnly) && p.matches.MatchString(path) {
			return !p.negated, true
		}
	}
	return false, false
}

// holds reports whether a path, or a directory that it is in, is among those that are
// listed.
func (l list) holds(path string, dir bool) bool {
	for i := 0; i <= len(path); i++ {
		if i == len(path) || path[i] == '/' {
			if in, _ := l.verdict(path[:i], dir || i < len(path)); in {
				return true
			}
		}
	}
	return false
}

const (
	mostIgnoreFile  = 256 << 10 // bytes
	mostIgnoreLines = 5000
	// A longer line names no path that a system has: it is left out, and those after it count.
	longestIgnoreLine = 4096 // bytes
)

// readList reads a file of patterns; none where there is no such file.
func readList(path string) list {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	// It may have become a pipe since, which would wait for whoever writes it.
	f, err := os.OpenFile(path, os.O_RDONLY|project.NoFollow|project.NonBlocking, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(f, mostIgnoreFile))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(string(content), "\n") {
		if len(lines) == mostIgnoreLines {
			break
		}
		if len(line) <= longestIgnoreLine {
			lines = append(lines, line)
		}
	}
	return parseList(lines, false)
}
