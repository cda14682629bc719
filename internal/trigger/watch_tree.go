package trigger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// never are the names that are not watched in any directory.
var never = []string{".git", "node_modules", ".duet"}

// mostKnown limits the known existing files. A replaced known file is not reported as new.
const mostKnown = 1 << 18

// mostPatterns limits the lines of all .gitignore files: they come from the project, and each costs
// memory and time.
const mostPatterns = 20_000

// tree holds the watched directories. Only the watcher's goroutine uses it.
type tree struct {
	root    string
	exclude []string // absolute
	add     func(dir string) error
	remove  func(dir string)
	wanted  func(dir string) bool // reports whether a trigger may match in or below it

	ignores  map[string]list // .gitignore of the watched directories, by path
	files    map[uint64]struct{}
	patterns int   // number of all patterns
	unread   int   // .gitignore lines beyond the limit
	refused  int   // directories that the system refused to watch
	refusal  error // the last refusal
}

// isIgnored reports whether a path below the root is ignored. Its directory is watched.
func (t *tree) isIgnored(file string, dir bool) bool {
	if slices.Contains(never, path.Base(file)) || slices.Contains(t.exclude, t.absolute(file)) {
		return true
	}
	for in := path.Dir(file); ; in = path.Dir(in) {
		below := file
		if in != "." {
			below = strings.TrimPrefix(file, in+"/")
		}
		if ignored, said := t.ignores[in].verdict(below, dir); said {
			return ignored
		}
		if in == "." {
			return false
		}
	}
}

func (t *tree) absolute(file string) string { return filepath.Join(t.root, filepath.FromSlash(file)) }

func (t *tree) relative(file string) (string, bool) {
	rel, err := filepath.Rel(t.root, file)
	rel = filepath.ToSlash(rel)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// walk watches a directory and its unwatched subdirectories, and calls found with each file. It
// ends when stop returns true.
func (t *tree) walk(dir string, stop func() bool, found func(file string, entry fs.DirEntry)) {
	if stop() || !t.wanted(dir) {
		return
	}
	if _, known := t.ignores[dir]; !known {
		// Before reading it: later changes are notified.
		if err := t.add(t.absolute(dir)); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				t.refused, t.refusal = t.refused+1, err
			}
			return
		}
	}
	t.readIgnores(dir)
	entries, err := os.ReadDir(t.absolute(dir))
	if err != nil {
		return
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		switch {
		case t.isIgnored(name, entry.IsDir()):
		case entry.IsDir():
			t.walk(name, stop, found)
		case entry.Type().IsRegular():
			found(name, entry)
		}
	}
}

func (t *tree) readIgnores(dir string) {
	l := readList(t.absolute(path.Join(dir, ".gitignore")))
	if dir == "." {
		l = append(readList(filepath.Join(t.root, ".git", "info", "exclude")), l...)
	}
	t.patterns -= len(t.ignores[dir])
	if room := max(mostPatterns-t.patterns, 0); len(l) > room {
		t.unread, l = t.unread+len(l)-room, slices.Clip(l[:room])
	}
	t.patterns += len(l)
	t.ignores[dir] = l
}

// know records an existing file, and reports whether it was known.
func (t *tree) know(file string) bool {
	h := hashOf(file)
	_, known := t.files[h]
	if !known && len(t.files) < mostKnown {
		t.files[h] = struct{}{}
	}
	return known
}

// forget removes a file, or a directory with its content, and reports whether it was a known file.
func (t *tree) forget(file string) (wasFile bool) {
	_, wasFile = t.files[hashOf(file)]
	delete(t.files, hashOf(file))
	if _, wasDir := t.ignores[file]; !wasDir {
		return wasFile || len(t.files) >= mostKnown
	}
	for dir := range t.ignores {
		if dir == file || strings.HasPrefix(dir, file+"/") {
			t.remove(t.absolute(dir))
			t.patterns -= len(t.ignores[dir])
			delete(t.ignores, dir)
		}
	}
	return false
}

// problem describes why some directories are not watched.
func (t *tree) problem() string {
	if t.refused == 0 && t.unread > 0 {
		return fmt.Sprintf(
			"%d lines of .gitignore files are not heeded, since there are more than %d: narrow the paths of the triggers", t.unread, mostPatterns,
		)
	}
	if t.refused == 0 {
		return ""
	}
	return fmt.Sprintf("%d directories are not watched: %s", t.refused, explain(t.refusal))
}

// explain returns the remedy for a system error.
func explain(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the system allows no more watches (sysctl fs.inotify.max_user_watches); raise that, or narrow the paths of the triggers"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "the system allows no more watchers or open files (sysctl fs.inotify.max_user_instances, ulimit -n); raise that, or narrow the " +
			"paths of the triggers"
	}
	return err.Error()
}

// changedSince reports whether a file was written after a time.
func changedSince(entry fs.DirEntry, since time.Time) bool {
	info, err := entry.Info()
	return err == nil && info.ModTime().After(since)
}

// pattern is a line of a .gitignore file (gitignore(5)).
type pattern struct {
	matches *regexp.Regexp // matches a slash-separated path relative to the pattern's directory
	negated bool           // a match is not ignored
	dirOnly bool
}

// parsePattern parses a line; ok is false for an empty one or a comment. With anchored, a pattern
// without a slash matches only at the top, unless it contains *.
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

// trimTrailing removes unescaped trailing spaces.
func trimTrailing(line string) string {
	line = strings.TrimSuffix(line, "\r")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	return line
}

// translate converts a pattern to a regular expression.
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

// translateClass converts [abc], and returns its length in the pattern.
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
		return "[", len(s) // invalid in git and in regexp
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

// list is the patterns of a file or of a trigger. The last match counts.
type list []pattern

func parseList(lines []string, anchored bool) (l list) {
	for _, line := range lines {
		if p, ok := parsePattern(line, anchored); ok {
			l = append(l, p)
		}
	}
	return l
}

// verdict reports whether a path is ignored, and whether any pattern matches.
func (l list) verdict(path string, dir bool) (ignored, said bool) {
	for i := len(l) - 1; i >= 0; i-- {
		if p := l[i]; (dir || !p.dirOnly) && p.matches.MatchString(path) {
			return !p.negated, true
		}
	}
	return false, false
}

// holds reports whether the list matches a path or one of its directories.
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
	// No system has paths as long as a longer line, so it is skipped.
	longestIgnoreLine = 4096 // bytes
)

// readList reads a file of patterns; it returns none if the file is missing.
func readList(path string) list {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	// The file may have become a pipe, whose open would block.
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
