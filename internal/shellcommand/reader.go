package shellcommand

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// newScriptReader returns a reader that can parse scripts.
func newScriptReader(shell dialect) *reader {
	r := newReader(shell)
	r.read = (*reader).readText
	return r
}

// readText parses a script as far as possible: a shell runs the lines before a syntax error.
func (r *reader) readText(text string) {
	if !isPlain(text) || strings.Contains(text, "\\\n") && strings.Contains(text, "#") { // the parser continues comments, no shell does
		r.doubt()
	}
	if *r.left -= 1 + len(text)>>9; isTooMuch(text) || r.nesting > mostNesting || *r.left <= 0 {
		r.doubt()
		return
	}
	// A panic of the parser on strange input must not end the program.
	defer func() {
		if recover() != nil {
			r.doubt()
		}
	}()
	var stmts []*syntax.Stmt
	for stmt, err := range syntax.NewParser(syntax.Variant(r.shell)).StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			r.doubt()
			continue // not break: the iterator may still yield more
		}
		stmts = append(stmts, stmt)
	}
	r.findValues(stmts)
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool { return n == nil || r.node(n, text) })
	}
	if r.stdin {
		r.readPiped()
	}
}

// isTooMuch reports whether parsing a text would take long: the permission request waits for it.
func isTooMuch(text string) bool {
	return len(text) > mostText || strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`") > mostOpening
}

// findValues records the possible values of a script's variables.
func (r *reader) findValues(stmts []*syntax.Stmt) {
	note := func(name string, from *syntax.Word) {
		if from == nil || len(r.values[name]) == mostAlternatives/2 {
			return
		}
		scratch := newReader(r.shell)
		if w := scratch.word(from); w.isLiteral {
			r.values[name] = append(r.values[name], w.text())
		}
	}
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Assign:
				if n.Name != nil {
					note(n.Name.Value, n.Value)
				}
			case *syntax.WordIter:
				for _, item := range n.Items {
					note(n.Name.Value, item)
				}
			}
			return true
		})
	}
}

// node handles a node of the tree, and reports whether to visit its children.
func (r *reader) node(n syntax.Node, text string) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		r.stmt(n, text)
	case *syntax.ForClause, *syntax.WhileClause, *syntax.FuncDecl:
		r.repeated = true
	case *syntax.CoprocClause, *syntax.TestDecl, *syntax.CStyleLoop, *syntax.ParamExp, *syntax.ArithmExp, *syntax.ExtGlob, *syntax.ArrayExpr:
		r.doubt()
	}
	return *r.left > 0
}

// stmt handles a single statement; the walk visits those below it separately.
func (r *reader) stmt(s *syntax.Stmt, text string) {
	if *r.left--; *r.left <= 0 || s.Coprocess || s.Disown {
		r.doubt()
	}
	redirections, operators := r.redirections(s)
	source := sourceOf(s, text)
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		call := call{source: source, redirections: redirections, required: operators}
		for _, assign := range cmd.Assigns {
			call.assigns = append(call.assigns, r.assign(assign))
		}
		for _, arg := range cmd.Args {
			call.words = append(call.words, r.word(arg))
		}
		r.call(call)
	case *syntax.DeclClause:
		r.special(cmd.Variant.Value, source, operators)
	case *syntax.TestClause:
		r.special("[[", source, operators)
	case *syntax.ArithmCmd:
		r.special("((", source, operators)
	case *syntax.LetClause:
		r.special("let", source, operators)
	default:
		if len(operators) > 0 {
			r.special(operators[0], strings.Join(redirections, " "), operators)
		}
	}
}

// special adds a construct that is not a simple command. Only a rule that names it allows it.
func (r *reader) special(name, source string, operators []string) {
	r.parts = append(r.parts, Part{Text: source, source: source, required: append([]string{name}, operators...)})
	r.denies(source)
}

// sourceOf returns a simple command as written, without comments and without the text after it.
func sourceOf(s *syntax.Stmt, text string) string {
	if s.Cmd == nil {
		return ""
	}
	start, end := int(s.Cmd.Pos().Offset()), int(s.Cmd.End().Offset())
	for _, redirect := range s.Redirs { // one may be before its command, or within
		end = max(end, int(redirect.End().Offset()))
	}
	if start < 0 || end > len(text) || start > end {
		return ""
	}
	return text[start:end]
}

// redirections returns the relevant redirections of a statement, as rules spell them, with the
// operators that a rule must contain to allow them. Redirections to the null device, or to
// another output, are not relevant.
func (r *reader) redirections(s *syntax.Stmt) (written, operators []string) {
	for _, redirect := range s.Redirs {
		target := word{texts: []string{""}}
		if redirect.Word != nil {
			target = r.word(redirect.Word)
		}
		switch redirect.Op {
		case syntax.DplIn, syntax.DplOut:
			if target.isLiteral && target.text() != "" && strings.Trim(target.text(), "0123456789") == "" || target.is("-") {
				continue
			}
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		default:
			if target.is("/dev/null") {
				continue
			}
		}
		number := ""
		if redirect.N != nil {
			number = redirect.N.Value
		}
		written = append(written, number+redirect.Op.String()+" "+target.bare)
		operators = append(operators, redirect.Op.String())
		if redirect.Hdoc != nil {
			r.mayBeScript(r.word(redirect.Hdoc))
		}
		if redirect.Op == syntax.WordHdoc {
			r.mayBeScript(target)
		}
	}
	return written, operators
}

// A Part is a simple command that a script could run.
type Part struct {
	// Text is the command with its arguments, separated by one blank and with quotes only as
	// needed. Anything replaces the output of another command.
	Text string
	// source is the same as written.
	source string
	// required are the words that a rule must contain to allow it. They are the name of a
	// command that runs or redefines others, a redirection that writes to a file, and a variable
	// that is set for it.
	required []string
	// runs are the commands that it runs, if it does nothing else: env, nohup, bash -c. A rule
	// allows it if it allows all of these.
	runs []Part
	// changesTo is the directory that it changes to, if it is the first command and the
	// directory is below the script's own, or an absolute path.
	changesTo string
	script    string // that it passes to a shell
}

// A reading is the parse of a command by one shell.
type reading struct {
	parts   []Part
	unclear bool     // the parts may be incomplete or uncertain
	denial  []string // see Command
}

func (r *reading) isUnclear() bool { return r.unclear || len(r.parts) == 0 }

// A reader parses a script as one shell would.
type reader struct {
	reading
	shell   dialect
	nesting int
	left    *int // remaining limit of parts

	// read makes a reader parse a script. It is the entry point, because scripts contain
	// scripts.
	read func(r *reader, text string)

	values   map[string][]string // of variables that the script sets to known texts
	repeated bool                // later commands may run more than once, or later
	stdin    bool                // a shell reads its script from its input
	piped    []string            // written text, perhaps for that shell
}

func newReader(shell dialect) *reader {
	left := mostParts
	return &reader{shell: shell, left: &left, values: make(map[string][]string)}
}

// inner returns a reader for commands that a part of the script runs.
func (r *reader) inner(shell dialect) *reader {
	return &reader{shell: shell, nesting: r.nesting + 1, left: r.left, read: r.read, values: r.values, repeated: r.repeated || len(r.parts) > 0}
}

// doubt records that the executed commands are uncertain.
func (r *reader) doubt() { r.unclear = true }

// scan reports whether a text, or any command that it may contain, matches. It ignores quotes,
// so its findings need not be commands. It follows nested shells to the given depth.
func scan(text string, shells int, fits func(command string) bool) bool {
	if fits(text) || scanScript(text, shells, fits) {
		return true
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(chaining, r) }) {
		for part, left := strings.TrimSpace(part), mostLeading; ; left-- {
			// Each call of fits reads all of the part. After more leading words it could be
			// anything.
			if left == 0 || fits(part) || part != text && scanScript(part, shells, fits) {
				return true
			}
			word, rest, _ := strings.Cut(part, " ")
			if !slices.Contains(leading, word) {
				break
			}
			part = strings.TrimSpace(rest)
		}
	}
	return false
}

// mostLeading is how many leading words of a command are skipped.
const mostLeading = 32

func scanScript(text string, shells int, fits func(command string) bool) bool {
	script, ok := scriptIn(text)
	return ok && shells > 0 && scan(script, shells-1, fits)
}

// scriptIn returns the apparent script of a shell, as in bash -lc 'make test', without the
// quotes around it.
func scriptIn(text string) (script string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if !slices.Contains(shellNames, path.Base(word)) {
		return "", false
	}
	for {
		word, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
		if !strings.HasPrefix(word, "-") {
			return "", false
		}
		if !strings.HasPrefix(word, "--") && strings.HasSuffix(word, "c") {
			return strings.Trim(strings.TrimSpace(rest), `'"`), true
		}
	}
}

// leading are the reserved words of a shell that may precede a command.
var leading = []string{"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"}

// chaining are the characters that join shell commands.
const chaining = ";&|`$<>\n()"
