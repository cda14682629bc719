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

// never are the names of what is not watched, wherever it is.
var never = []string{".git", "node_modules", ".duet"}

// mostKnown is how many files are known to be there, so that one that is replaced is not
// told as new.
const mostKnown = 1 << 18

// mostPatterns is how many lines of .gitignore files are heeded in all: they come with a
// project, and each takes some memory and time.
const mostPatterns = 20_000

// A tree is the directories that are watched. It belongs to the watcher's goroutine.
type tree struct {
	root    string
	exclude []string // absolute
	add     func(dir string) error
	remove  func(dir string)
	wanted  func(dir string) bool // something in or below it may be for a trigger

	ignores  map[string]list // .gitignore of the directories that are watched, by path
	files    map[uint64]struct{}
	patterns int   // of all ignores
	unread   int   // lines of .gitignore files that were too many
	refused  int   // directories that could not be watched
	refusal  error // why the last of them could not
}

// isIgnored reports whether a path below the root is not to be told. Its directory is
// watched.
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

// walk watches a directory and those in it that are not watched yet, and calls found with
// each file. It goes on until stop.
func (t *tree) walk(dir string, stop func() bool, found func(file string, entry fs.DirEntry)) {
	if stop() || !t.wanted(dir) {
		return
	}
	if _, known := t.ignores[dir]; !known {
		// Before it is read: what comes meanwhile is told.
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

// know notes that a file is there, and reports whether that was known.
func (t *tree) know(file string) bool {
	h := hashOf(file)
	_, known := t.files[h]
	if !known && len(t.files) < mostKnown {
		t.files[h] = struct{}{}
	}
	return known
}

// forget notes that a file, or a directory with all in it, is not there any more, and
// reports whether it was a file that was known.
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

// problem is why not all is watched, in words.
func (t *tree) problem() string {
	if t.refused == 0 && t.unread > 0 {
		return fmt.Sprintf("%d lines of .gitignore files are not heeded, since there are more than %d: narrow the paths of the triggers", t.unread, mostPatterns)
	}
	if t.refused == 0 {
		return ""
	}
	return fmt.Sprintf("%d directories are not watched: %s", t.refused, explain(t.refusal))
}

// explain says what to do about an error of the system.
func explain(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the system allows no more watches (sysctl fs.inotify.max_user_watches); raise that, or narrow the paths of the triggers"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "the system allows no more watchers or open files (sysctl fs.inotify.max_user_instances, ulimit -n); raise that, or narrow the paths of the triggers"
	}
	return err.Error()
}

// changedSince reports whether a file was written after a time.
func changedSince(entry fs.DirEntry, since time.Time) bool {
	info, err := entry.Info()
	return err == nil && info.ModTime().After(since)
}

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
