package usercommand

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// severities maps the words of tools.
var severities = map[string]string{
	"error": DiagnosticError, "fatal error": DiagnosticError, "fatal": DiagnosticError, "warning": Warning, "note": Note, "remark": Note,
	"info": Note, "help": Note, "hint": Note,
}

// severity splits a severity from the beginning of a message, if present.
func severity(message string) (severity, rest string) {
	word, rest, found := strings.Cut(message, ":")
	if s, known := severities[strings.ToLower(strings.TrimSpace(word))]; found && known {
		return s, strings.TrimSpace(rest)
	}
	return "", message
}

// compilers matches FILE:LINE[:COLUMN]: MESSAGE, as in Go, GCC, Clang and the GNU coding standards
// (with PROGRAM: before, and a range of lines and columns). A name may have a drive before it, and
// spaces in it, but no colon.
var compilers = lazyregexp.New(`^(?:(vet|[A-Za-z][\w.+-]*): )?((?:[A-Za-z]:)?[^\s:"'()\[\]{}<>|=,;*?#$][^:"'<>|*?]*):(\d+)(?:[:.](\d+))?(?:-\d+(?:\.\d+)?)?:\s*(\S.*)$`)

// compiler parses the style that most compilers share.
func compiler(line string) (d diagnostic, ok bool) {
	m := compilers().FindStringSubmatch(strings.TrimRight(line, " \t"))
	if m == nil || !isFile(m[2]) {
		return d, false
	}
	d = diagnostic{File: m[2], Line: number(m[3]), Column: number(m[4])}
	if d.Line == 0 {
		return d, false
	}
	d.Severity, d.Message = severity(m[5])
	extension := path.Ext(m[2])
	switch {
	case extension == ".go":
		d.Source = "go"
	case cSources[strings.ToLower(extension)] && d.Severity != "":
		d.Source = "gcc"
	case m[1] != "" && m[1] != "vet":
		d.Source = m[1]
	}
	if d.Severity == "" {
		d.Severity = DiagnosticError
		if d.Source == "" || d.Source == "gcc" { // [Error/rule], [Warning/rule] of eslint --format unix
			d = unixESLint(d)
		}
	}
	return d, true
}

var cSources = map[string]bool{
	".c": true, ".h": true, ".cc": true, ".hh": true, ".cpp": true, ".hpp": true, ".cxx": true, ".hxx": true, ".c++": true, ".m": true,
	".mm": true, ".cu": true, ".s": true, ".inc": true,
}

var eslintTail = lazyregexp.New(`\s*\[(Error|Warning)(/[^\]]+)?\]$`)

func unixESLint(d diagnostic) diagnostic {
	if m := eslintTail().FindStringSubmatch(d.Message); m != nil {
		d.Source, d.Severity = "eslint", severities[strings.ToLower(m[1])]
		d.Message = strings.TrimSuffix(d.Message, m[0])
		if m[2] != "" {
			d.Message += " (" + m[2][1:] + ")"
		}
	}
	return d
}

// isFile reports whether a name is probably a file: a time, an address or a word may precede a
// colon and a number too.
func isFile(name string) bool {
	base := path.Base(strings.ReplaceAll(name, "\\", "/"))
	if strings.HasPrefix(name, "//") || strings.Contains(name, "://") || strings.Contains(base, " ") && path.Ext(base) == "" {
		return false
	}
	extension := path.Ext(base)
	switch {
	case strings.Contains(base, "akefile") || base == "Dockerfile" || base == "Rakefile" || base == "Gemfile":
		return true
	case extension == "" || extension == "." || strings.Contains(extension, " "):
		return false
	}
	first := extension[1]
	return first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z'
}

// makeErrors matches make's messages about a failed recipe or an unreadable makefile.
var makeErrors = lazyregexp.New(`^\S*make(?:\[\d+\])?: \*\*\* \[(?:([^:\]]+):(\d+): )([^\]]*)\] (.*)$|^([^\s:]*[Mm]akefile[^\s:]*|[^\s:]+\.mk):(\d+): (\*\*\* )?(.*)$`)

func makefile(line string) (d diagnostic, ok bool) {
	if !strings.Contains(line, "ake") && !strings.Contains(line, ".mk:") {
		return d, false
	}
	m := makeErrors().FindStringSubmatch(line)
	switch {
	case m == nil:
		return d, false
	case m[1] != "":
		return diagnostic{File: m[1], Line: number(m[2]), Severity: DiagnosticError, Message: m[3] + ": " + m[4], Source: "make"}, true
	}
	d = diagnostic{File: m[5], Line: number(m[6]), Source: "make"}
	if d.Severity, d.Message = severity(m[8]); m[7] != "" {
		d.Severity = DiagnosticError
	} else if d.Severity == "" {
		d.Severity = Note
	}
	return d, true
}

// The two styles of tsc: for people (with colours) and for programs.
var (
	tscPretty = lazyregexp.New(`^(.+?):(\d+):(\d+) - (error|warning|message|suggestion) (TS\d+): (.+)$`)
	tscPlain  = lazyregexp.New(`^(\S.*?)\((\d+),(\d+)\): (?:(error|warning|message) )?(TS\d+)?:? ?(.+)$`)
)

func typescript(line string) (d diagnostic, ok bool) {
	m := tscPretty().FindStringSubmatch(line)
	if m == nil {
		if m = tscPlain().FindStringSubmatch(line); m == nil || m[4] == "" {
			return d, false
		}
	}
	d = diagnostic{File: m[1], Line: number(m[2]), Column: number(m[3]), Severity: severities[m[4]], Message: m[6], Source: "typescript"}
	if d.Severity == "" {
		d.Severity = Note
	}
	if m[5] != "" {
		d.Message = m[5] + ": " + d.Message
	} else {
		d.Source = "" // Microsoft's compilers and similar tools
	}
	return d, true
}

// stylishes matches a line of ESLint's own style, below the name of its file.
var stylishes = lazyregexp.New(`^\s+(\d+):(\d+)\s+(error|warning|info)\s+(.+?)(?:\s{2,}(\S+))?\s*$`)

func (p *parser) stylish(line string) (d diagnostic, ok bool) {
	if line == "" {
		return d, false // it ends the file's lines, except that colours may leave an empty one
	}
	if m := stylishes().FindStringSubmatch(line); m != nil && p.eslint != "" {
		d = diagnostic{File: p.eslint, Line: number(m[1]), Column: number(m[2]), Severity: severities[m[3]], Message: m[4], Source: "eslint"}
		if m[5] != "" {
			d.Message += " (" + m[5] + ")"
		}
		return d, true
	}
	p.eslint = ""
	if line[0] != ' ' && !strings.Contains(
		line, ":",
	) && isFile(line) || len(line) > 3 && line[1] == ':' && isFile(line[2:]) && !strings.Contains(line[2:], ":") {
		p.eslint = line
	}
	return d, false
}

// The lines of pytest with an expectation and its place: at the end of a failure
// (tests/test_a.py:3: AssertionError), and in the summary.
var (
	pytestPlace = lazyregexp.New(`^\s{0,2}(\S[^:]*\.py):(\d+): ?(.*)$`)
	pytestError = lazyregexp.New(`^E\s{1,3}(.+)$`)
	pythonFrame = lazyregexp.New(`^(?:E\s+)?\s*File "([^"<]+)", line (\d+)`)
)

func (p *parser) pytest(line string) (d diagnostic, ok bool) {
	if m := pytestError().FindStringSubmatch(line); m != nil {
		if frame := pythonFrame().FindStringSubmatch(line); frame != nil {
			return diagnostic{
				File: frame[1], Line: number(frame[2]), Severity: DiagnosticError, Message: "the error is here", Source: "pytest",
			}, true
		}
		if p.python == "" {
			p.python = strings.TrimSpace(m[1])
		}
		return d, false
	}
	m := pytestPlace().FindStringSubmatch(line)
	if m == nil {
		return d, false
	}
	expected := p.python
	p.python = ""
	if word, _ := severity(m[3]); word != "" { // mypy, ruff and others
		return d, false
	}
	if message := strings.TrimSpace(m[3]); expected == "" && !exceptions().MatchString(message) {
		if warnings().MatchString(message) {
			return diagnostic{File: m[1], Line: number(m[2]), Severity: Warning, Message: message, Source: "pytest"}, true
		}
		return d, false
	} else if expected == "" {
		expected = message
	} else if message == "" || message == "in <module>" || strings.HasPrefix(message, "in ") {
		expected = strings.TrimSpace(expected)
	} else if !strings.Contains(expected, message) {
		expected = message + ": " + expected
	}
	return diagnostic{File: m[1], Line: number(m[2]), Severity: DiagnosticError, Message: expected, Source: "pytest"}, true
}

var (
	exceptions = lazyregexp.New(`^[A-Z]\w*(?:\.\w+)*(?:Error|Exception|Failed|Exit|Interrupt)\b`)
	warnings   = lazyregexp.New(`^[A-Z]\w*Warning:`)
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

// The two relevant lines of rustc: the message, then the place.
var (
	rustWhat  = lazyregexp.New(`^(error|warning|note|help)(\[[A-Za-z]\d+\])?: (.+)$`)
	rustWhere = lazyregexp.New(`^\s*--> (.+):(\d+):(\d+)$`)
)

func (p *parser) rustText(line string) (d diagnostic, ok bool) {
	if m := rustWhat().FindStringSubmatch(line); m != nil {
		p.rust = &diagnostic{Severity: severities[m[1]], Message: m[3], Source: "rust"}
		if m[2] != "" {
			p.rust.Message = m[2][1:len(m[2])-1] + ": " + m[3]
		}
		return d, false
	}
	m := rustWhere().FindStringSubmatch(line)
	if m == nil || p.rust == nil {
		return d, false
	}
	d, p.rust = *p.rust, nil
	d.File, d.Line, d.Column = m[1], number(m[2]), number(m[3])
	return d, true
}

// rustMessage is a line of cargo --message-format=json, or of rustc --error-format=json.
type rustMessage struct {
	Reason  string       `json:"reason"`
	Message *rustProblem `json:"message"`
}

type rustProblem struct {
	Message string `json:"message"`
	Level   string `json:"level"`
	Code    *struct {
		Code string `json:"code"`
	} `json:"code"`
	Spans []struct {
		File    string `json:"file_name"`
		Line    int    `json:"line_start"`
		Column  int    `json:"column_start"`
		Primary bool   `json:"is_primary"`
	} `json:"spans"`
}

// rustJSON returns the diagnostics of such a line.
func (p *parser) rustJSON(line string) []diagnostic {
	var m rustMessage
	if json.Unmarshal([]byte(line), &m) != nil || m.Reason != "compiler-message" || m.Message == nil {
		return nil
	}
	problem := *m.Message
	for _, span := range problem.Spans {
		if !span.Primary {
			continue
		}
		d := diagnostic{File: span.File, Line: max(
			span.Line, 0,
		), Column: max(span.Column, 0), Severity: severities[problem.Level], Message: problem.Message, Source: "rust"}
		if d.Severity == "" {
			d.Severity = DiagnosticError
		}
		if problem.Code != nil && problem.Code.Code != "" {
			d.Message = problem.Code.Code + ": " + d.Message
		}
		return []diagnostic{d}
	}
	return nil
}
