package shellcommand

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// newScriptReader is a reader that can read scripts.
func newScriptReader(shell dialect) *reader {
	r := newReader(shell)
	r.read = (*reader).readText
	return r
}

// readText reads a script as far as it can be parsed: a shell runs the lines
// before its mistakes.
func (r *reader) readText(text string) {
	if !isPlain(text) || strings.Contains(text, "\\\n") && strings.Contains(text, "#") { // the parser continues comments, no shell does
		r.doubt()
	}
	if *r.left -= 1 + len(text)>>9; isTooMuch(text) || r.nesting > mostNesting || *r.left <= 0 {
		r.doubt()
		return
	}
	// A parser that fails on what nobody ought to write is no reason to end.
	defer func() {
		if recover() != nil {
			r.doubt()
		}
	}()
	var stmts []*syntax.Stmt
	for stmt, err := range syntax.NewParser(syntax.Variant(r.shell)).StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			r.doubt()
			continue // not break: the iterator may have more to say all the same
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

// isTooMuch reports whether it would take long to parse a text: whoever asks for
// leave waits.
func isTooMuch(text string) bool {
	return len(text) > mostText || strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`") > mostOpening
}

// findValues notes which texts the variables of a script may be.
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

// node reads a node of the tree, and reports whether what is below it is to be
// read too.
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

// stmt reads a statement for itself; those below it are read on their own.
func (r *reader) stmt(s *syntax.Stmt, text string) {
	if *r.left--; *r.left <= 0 || s.Coprocess || s.Disown {
		r.doubt()
	}
	redirections, operators := r.redirections(s)
	source := sourceOf(s, text)
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		call := call{source: source, redirections: redirections, says: operators}
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

// special adds what is no simple command, and allowed by none but a rule that
// names it.
func (r *reader) special(name, source string, operators []string) {
	r.parts = append(r.parts, Part{Text: source, source: source, says: append([]string{name}, operators...)})
	r.denies(source)
}

// sourceOf is a simple command as it was written, without comments and what
// comes behind it.
func sourceOf(s *syntax.Stmt, text string) string {
	if s.Cmd == nil {
		return ""
	}
	start, end := int(s.Cmd.Pos().Offset()), int(s.Cmd.End().Offset())
	for _, redirect := range s.Redirs { // one may stand before its command, or within
		end = max(end, int(redirect.End().Offset()))
	}
	if start < 0 || end > len(text) || start > end {
		return ""
	}
	return text[start:end]
}

// redirections are those of a statement that matter, as they are written in
// rules, with the operators that a rule has to have to allow them. What goes
// nowhere, or where another output goes, matters not.
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
	// Text is the command with its arguments, each separated by one blank and
	// with quotes only where they matter. Anything stands in it for the output of
	// another command.
	Text string
	// source is the same as it was written.
	source string
	// says are the words that a rule has to have itself to allow it: the name of
	// a command that runs others or changes what they are, a redirection that
	// writes to a file, a variable that is set for it.
	says []string
	// runs are the commands that it runs, if that is all it does: env, nohup,
	// bash -c. A rule allows it if it allows all of these.
	runs []Part
	// changesTo is the directory that it changes to, if nothing came before and
	// that is one below the one that the script begins in, or a path from the
	// root.
	changesTo string
	script    string // that it gives to a shell
}

// A reading is how one shell would read a command.
type reading struct {
	parts   []Part
	unclear bool     // it cannot be told that the parts are all, or what they are
	denial  []string // see Command
}

func (r *reading) isUnclear() bool { return r.unclear || len(r.parts) == 0 }

// A reader takes a script apart as one shell would.
type reader struct {
	reading
	shell   dialect
	nesting int
	left    *int // parts that may still come

	// read has a reader read a script. It is the top of what reads one, and scripts
	// are in scripts.
	read func(r *reader, text string)

	values   map[string][]string // of variables that the script sets to texts
	repeated bool                // what comes may run more than once, or later
	stdin    bool                // a shell reads its script from somewhere else
	piped    []string            // what is written, perhaps for it
}

func newReader(shell dialect) *reader {
	left := mostParts
	return &reader{shell: shell, left: &left, values: make(map[string][]string)}
}

// inner is a reader for what a part of the script runs.
func (r *reader) inner(shell dialect) *reader {
	return &reader{shell: shell, nesting: r.nesting + 1, left: r.left, read: r.read, values: r.values, repeated: r.repeated || len(r.parts) > 0}
}

// doubt notes that it cannot be told what would run.
func (r *reader) doubt() { r.unclear = true }

// scan reports whether a text, or any command that it may hold, fits. It knows
// nothing of quotes, so what it finds need not be a command. Of those that
// shells are given, so many deep are looked at.
func scan(text string, shells int, fits func(command string) bool) bool {
	if fits(text) || scanScript(text, shells, fits) {
		return true
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(chaining, r) }) {
		for part, left := strings.TrimSpace(part), mostLeading; ; left-- {
			// Each look reads all of the part. Behind more leading words it could be anything.
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

// mostLeading is how many leading words of a command are looked behind.
const mostLeading = 32

func scanScript(text string, shells int, fits func(command string) bool) bool {
	script, ok := scriptIn(text)
	return ok && shells > 0 && scan(script, shells-1, fits)
}

// scriptIn is what a shell seems to be given, as in bash -lc 'make test', without
// the quotes around it.
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

// leading are the words of a shell's own behind which a command may stand.
var leading = []string{"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"}

// chaining are the characters that join shell commands.
const chaining = ";&|`$<>\n()"
