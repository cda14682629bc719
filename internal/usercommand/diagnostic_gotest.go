package usercommand

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// goTests reads what `go test` says of tests that fail. What a test has logged stands
// below "--- FAIL: NAME", and with -v above it, below "=== RUN NAME"; the files have no
// directory, and which package they are of comes last.
type goTests struct {
	test    string                  // whose lines come now
	logged  map[string][]diagnostic // of tests of which nobody knows yet whether they fail
	failed  []diagnostic            // of the package
	writing *diagnostic             // what further lines are part of, if they are indented deeper
	indent  int
}

// mostLogged is how much is remembered of the tests of a package.
const mostLogged = 1000

var (
	goTestState   = lazyregexp.New(`^\s*(?:=== (RUN|CONT|NAME)\s+|--- (FAIL|PASS|SKIP): )(\S+)`)
	goTestPackage = lazyregexp.New(`^(FAIL|ok  |---)\t(\S+)\s`)
	goTestLog     = lazyregexp.New(`^(\s{4,})([^\s:]+\.go):(\d+): ?(.*)$`)
	testifyLabel  = lazyregexp.New(`^(Error Trace|Error|Test|Messages):\s*`)
)

// line takes a line, and reports whether it is one of `go test`; the package's diagnostics
// come with its last line.
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

// begin notes which test the lines are of that follow, or what has become of it.
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

// log takes the first line of what a test has logged.
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

// goOn takes a further line. Of testify's, what is said elsewhere is left out.
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

const mostModule = 1 << 20 // bytes that are read of a go.mod

// packageDirectory is the directory of a package, which the nearest go.mod tells, or the
// one in which the tool runs.
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

// moduleOf is the module whose go.mod is in a directory; "" if there is none.
func moduleOf(directory string) string {
	name := filepath.Join(directory, "go.mod")
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() { // a pipe would keep us waiting
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
