package usercommand

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// goTests parses the failures of `go test`. The log of a test follows "--- FAIL: NAME", and with -v
// precedes it, after "=== RUN NAME". File names have no directory, and the package comes last.
type goTests struct {
	test    string                  // the test of the current lines
	logged  map[string][]diagnostic // logs of tests without a result yet
	failed  []diagnostic            // of the package
	writing *diagnostic             // receives further lines that are indented deeper
	indent  int
}

// mostLogged limits the remembered logs of a package's tests.
const mostLogged = 1000

var (
	goTestState   = lazyregexp.New(`^\s*(?:=== (RUN|CONT|NAME)\s+|--- (FAIL|PASS|SKIP): )(\S+)`)
	goTestPackage = lazyregexp.New(`^(FAIL|ok  |---)\t(\S+)\s`)
	goTestLog     = lazyregexp.New(`^(\s{4,})([^\s:]+\.go):(\d+): ?(.*)$`)
	testifyLabel  = lazyregexp.New(`^(Error Trace|Error|Test|Messages):\s*`)
)

// line parses a line, and reports whether it is from `go test`. The package's diagnostics come with
// its last line.
func (g *goTests) line(line string, paths *paths) (list []diagnostic, ok bool) {
	if m := goTestState().FindStringSubmatch(line); m != nil {
		g.begin(m[1]+m[2], m[3])
		return nil, true
	}
	if m := goTestPackage().FindStringSubmatch(line + " "); m != nil {
		if m[1] == "FAIL" {
			list = g.failed
			directory := packageDirectory(paths, m[2])
			for i, d := range list {
				list[i].File = filepath.Join(directory, d.File)
			}
		}
		*g = goTests{}
		return list, len(list) > 0
	}
	if g.test == "" {
		return nil, false
	}
	if m := goTestLog().FindStringSubmatch(line); m != nil {
		g.log(m)
		return nil, true
	}
	if g.writing == nil || len(line)-len(strings.TrimLeft(line, " \t")) <= g.indent {
		g.writing = nil
		return nil, false
	}
	g.goOn(strings.TrimSpace(line))
	return nil, true
}

// begin records the test of the following lines, or its result.
func (g *goTests) begin(what, test string) {
	g.writing = nil
	switch what {
	case "FAIL":
		for _, d := range g.logged[test] {
			g.fail(d)
		}
		g.test = test
	case "PASS", "SKIP":
		g.test = ""
	default:
		if g.logged == nil {
			g.logged = make(map[string][]diagnostic)
		}
		if len(g.logged) < mostLogged && g.logged[test] == nil {
			g.logged[test] = []diagnostic{}
		}
		g.test = test
		return
	}
	delete(g.logged, test)
}

func (g *goTests) fail(d diagnostic) {
	if len(g.failed) < mostLogged {
		g.failed = append(g.failed, d)
	}
}

// log parses the first line of a test's log entry.
func (g *goTests) log(m []string) {
	d := diagnostic{File: m[2], Line: number(m[3]), Severity: DiagnosticError, Message: g.test + ": " + m[4], Source: "go test"}
	g.indent, g.writing = len(m[1]), nil
	if list, waits := g.logged[g.test]; !waits {
		if g.fail(d); len(g.failed) < mostLogged {
			g.writing = &g.failed[len(g.failed)-1]
		}
	} else if len(list) < mostLogged {
		g.logged[g.test] = append(list, d)
		g.writing = &g.logged[g.test][len(list)]
	}
}

// goOn adds a further line. It drops testify's repeated details.
func (g *goTests) goOn(text string) {
	if m := testifyLabel().FindStringSubmatch(text); m != nil {
		if m[1] == "Error Trace" || m[1] == "Test" {
			return
		}
		text = text[len(m[0]):]
	}
	if d := g.writing; text != "" && len(d.Message) < maxMessage {
		d.Message = strings.TrimSpace(d.Message) + " " + text
	}
}

const mostModule = 1 << 20 // bytes read from a go.mod

// packageDirectory returns the directory of a package, by the nearest go.mod, or the tool's working
// directory.
func packageDirectory(p *paths, name string) string {
	here := p.entered[len(p.entered)-1]
	for directory := here; ; directory = filepath.Dir(directory) {
		if module := moduleOf(directory); module != "" && (name == module || strings.HasPrefix(name, module+"/")) {
			return filepath.Join(directory, filepath.FromSlash(strings.TrimPrefix(name, module)))
		}
		if directory == p.root || directory == filepath.Dir(directory) {
			return here
		}
	}
}

// moduleOf returns the module of a directory's go.mod; "" if it has none.
func moduleOf(directory string) string {
	name := filepath.Join(directory, "go.mod")
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() { // a pipe would block
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, mostModule))
	for lines.Scan() {
		if module, is := strings.CutPrefix(strings.TrimSpace(lines.Text()), "module "); is {
			module, _, _ = strings.Cut(module, "//")
			return strings.Trim(strings.TrimSpace(module), `"`)
		}
	}
	return ""
}
