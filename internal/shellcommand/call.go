package shellcommand

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// A call is a simple command: its words, assignments and redirections.
type call struct {
	assigns      []assignment
	words        []word
	redirections []string
	required     []string // operators of redirections
	source       string
}

// An assignment sets a variable, for one command or for the following ones.
type assignment struct{ name, bare string }

func (r *reader) assign(a *syntax.Assign) assignment {
	if a.Name == nil || a.Array != nil || a.Index != nil || a.Append {
		r.doubt()
		return assignment{name: "?", bare: "?="}
	}
	value := word{texts: []string{""}, isLiteral: true}
	if a.Value != nil {
		value = r.word(a.Value)
	}
	if !value.isLiteral {
		r.doubt()
	}
	return assignment{a.Name.Value, a.Name.Value + "=" + value.bare}
}

// isHarmless reports whether a variable affects at most a program's output format. Any other
// variable may make some program run its value.
func (a assignment) isHarmless() bool {
	switch a.name {
	case "CI", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "TERM", "TZ", "LANG", "LC_ALL", "GOOS", "GOARCH",
		"CGO_ENABLED", "RUST_BACKTRACE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "DEBIAN_FRONTEND":
		return true
	}
	return false
}

// call adds a simple command.
func (r *reader) call(c call) {
	p := r.part(c)
	if len(r.parts) == 0 && !r.repeated {
		p.changesTo = changesTo(c)
	}
	r.parts = append(r.parts, p)
	r.deniesCall(c)
}

// changesTo returns the target directory of a call that only changes the directory; "" if it
// does more, or may do more.
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

// part returns a simple command as a part.
func (r *reader) part(c call) Part {
	var set []string
	p := Part{source: c.source, required: slices.Clone(c.required)}
	for _, a := range c.assigns {
		if len(c.words) == 0 || !a.isHarmless() {
			set = append(set, a.bare)
			p.required = append(p.required, a.name+"=")
		}
	}
	p.Text = strings.Join(slices.DeleteFunc([]string{
		strings.Join(set, " "), join(c.words), strings.Join(c.redirections, " "),
	}, func(s string) bool { return s == "" }), " ")
	if len(c.words) == 0 {
		return p
	}
	plain := len(set) == 0 && len(c.redirections) == 0
	name := c.words[0]
	if !name.isLiteral || name.expands || !isName(name.text()) {
		r.doubt()
		return p
	}
	p.required = append(p.required, requiredWords(c.words)...)
	if !plain {
		return p
	}
	if program, script, ok := scriptOf(c.words); ok {
		p.script = script
		for _, shell := range dialectsOf(program) {
			inner := r.inner(shell)
			r.read(inner, script)
			if inner.isUnclear() {
				p.runs = nil
				return p
			}
			p.runs = append(p.runs, inner.parts...)
		}
		return p
	}
	if rest, ok := runsRest(c.words); ok && r.nesting < mostNesting {
		inner := r.inner(r.shell)
		inner.words(rest, name.text() == "env")
		if !inner.isUnclear() {
			p.runs = inner.parts
		}
	}
	return p
}

// readWords reads the words of a program.
func (r *reader) readWords(words []word) {
	r.words(words, false)
	if r.stdin {
		r.readPiped()
	}
}

// words reads a command with its arguments; byEnv means that env runs it, so that assignments
// may come first.
func (r *reader) words(words []word, byEnv bool) {
	c := call{words: words, source: join(words)}
	for byEnv && len(c.words) > 0 {
		name, value, isSet := strings.Cut(c.words[0].text(), "=")
		if !isSet || !syntax.ValidName(name) || !c.words[0].isLiteral {
			break
		}
		c.assigns = append(c.assigns, assignment{name, name + "=" + quote(value)})
		c.words = c.words[1:]
	}
	r.call(c)
}

// isName reports whether a text can only be the name of a program, for every shell.
func isName(text string) bool {
	return text != "" && !strings.HasPrefix(
		text, "=",
	) && !strings.HasPrefix(text, "%") && !strings.HasPrefix(text, "-") && !strings.Contains(text, "=")
}

var duration = lazyregexp.New(`^[0-9]+(\.[0-9]+)?[smhd]?$`)

// runsRest returns the words that a command runs unchanged, if it does nothing else.
func runsRest(words []word) ([]word, bool) {
	skip := 1
	switch words[0].text() {
	case "command", "exec", "nohup", "time", "env", "nice":
	case "timeout":
		if len(words) < 2 || !words[1].isLiteral || !duration().MatchString(words[1].text()) {
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

// trustedShells are the directories whose shells are trusted by name.
var trustedShells = []string{"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}

// scriptOf returns the script that words pass to a supported shell, if they do nothing else.
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

// A Command is the parsed command of an agent. The zero value is empty. It is immutable, so any
// goroutine may use it.
type Command struct {
	// Text is the display text: the script of a shell, or the words of a program, quoted as
	// needed.
	Text string

	isScript bool   // the text is a shell's script, as far as it can be parsed
	original string // the agent's original text; "" if it sent words
	readings []reading
	unclear  bool     // in some reading the executed commands are unknown
	denial   []string // the commands that it could run, each as text, perhaps with Anything in it
	scanned  []string // texts that are searched for commands without parsing
}

const (
	mostText    = 16 << 10 // bytes of a script that is parsed
	mostOpening = 400      // nesting characters in such a script
	mostParts   = 2000     // of a command, in all readings
	mostNesting = 8        // nested shells
)

// Read parses the script of an unknown shell.
func Read(text string) Command {
	c := Command{Text: text, original: text}
	if strings.TrimSpace(text) == "" {
		return c
	}
	c.readScript(text, unknownShell)
	if script := onlyScript(c.readings); script != "" {
		c.Text, c.isScript = script, true
	}
	c.scanned = append(c.scanned, texts(text)...)
	return c
}

// ReadWords parses the words of a program with its arguments.
func ReadWords(argv []string) Command {
	if len(argv) == 0 {
		return Command{}
	}
	words := make([]word, len(argv))
	for i, text := range argv {
		words[i] = literal(text)
	}
	c := Command{Text: join(words)}
	r := newScriptReader(bash)
	r.readWords(words)
	c.take(r)
	if script := onlyScript(c.readings); script != "" {
		c.Text, c.isScript = script, true
		c.scanned = append(c.scanned, texts(script)...)
	}
	c.scanned = append(c.scanned, texts(strings.Join(argv, " "))...)
	for _, text := range argv {
		c.unclear = c.unclear || !isPlain(text)
	}
	return c
}

// Script returns the script of a shell, if the command runs nothing else.
func (c Command) Script() (script string, ok bool) { return c.Text, c.isScript }

// IsNothing reports whether the command is empty.
func (c Command) IsNothing() bool { return c.Text == "" }

func (c *Command) readScript(text string, shells []dialect) {
	for _, shell := range shells {
		r := newScriptReader(shell)
		r.readText(text)
		c.take(r)
	}
}

func (c *Command) take(r *reader) {
	c.readings = append(c.readings, r.reading)
	c.unclear = c.unclear || r.isUnclear()
	for _, text := range r.denial {
		if !slices.Contains(c.denial, text) {
			c.denial = append(c.denial, text)
		}
	}
}

// onlyScript returns the script of a shell, if starting it is all that the text does, or "".
func onlyScript(readings []reading) string {
	script := ""
	for i, r := range readings {
		if len(r.parts) != 1 || i > 0 && r.parts[0].script != script {
			return ""
		}
		script = r.parts[0].script
	}
	return script
}
