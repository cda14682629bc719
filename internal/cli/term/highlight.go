package term

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Syntax highlighting for a terminal, line by line: keywords, strings, comments, numbers and
// constants of the languages that agents write most.
//
// No library does this fast enough. chroma adds 5 MB to the program and 5 ms to each start,
// because it loads its lexers at the start, and the first reply takes 5 ms in all. Streaming
// needs no grammar.

// Colours, with their ECMA-48 (SGR) numbers, that are readable on light and dark terminals.
const (
	keyword  = "35"
	text     = "32" // strings
	comment  = "2"
	constant = "33" // also numbers and variables
	plain    = "36" // all other code, to distinguish it from prose
)

// Highlighter colours a block of code line by line. It is not safe for concurrent use.
type Highlighter struct {
	language *language
	words    map[string]string // the colour of each word
	until    string            // the end mark of a comment or string that continues on the next line; or ""
	color    string            // of that comment or string
	escapes  bool              // a backslash escapes the end mark
	inTag    bool              // inside a tag of markup
}

// For returns a highlighter for the language at the start of a fence's info string, or nil if
// the language is unknown.
func For(name string) *Highlighter {
	l := find(strings.ToLower(strings.TrimLeft(name, "{.")))
	if l == nil {
		return nil
	}
	c := &Highlighter{language: l, words: make(map[string]string)}
	for word := range strings.FieldsSeq(l.keywords) {
		c.words[word] = keyword
	}
	for word := range strings.FieldsSeq(l.constants) {
		c.words[word] = constant
	}
	return c
}

// Line returns the next line with colours. All characters of the line must be visible already.
func (c *Highlighter) Line(line string) string {
	p := painter{rest: line}
	if c.until != "" {
		c.goOn(&p)
	} else if c.language.keys {
		c.key(&p)
	}
	for p.rest != "" {
		if c.language.markup && !c.inTag {
			c.untilTag(&p)
			continue
		}
		c.next(&p)
	}
	return p.String()
}

// next handles the next token.
func (c *Highlighter) next(p *painter) {
	l, rest := c.language, p.rest
	for _, begin := range l.lineComments {
		if strings.HasPrefix(rest, begin) && (!l.wordComments || p.atWord()) {
			p.take(len(rest), comment)
			return
		}
	}
	for _, d := range l.delimited {
		if strings.HasPrefix(rest, d.open) {
			c.until, c.color, c.escapes = d.close, d.color, d.escapes
			p.begin(len(d.open))
			c.goOn(p)
			if c.until != "" && !d.lines {
				c.until = ""
			}
			return
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case l.chars && r == '\'':
		if n := charLiteral(rest); n > 0 {
			p.take(n, text)
			return
		}
	case l.variables && r == '$':
		if n := variable(rest); n > 1 {
			p.take(n, constant)
			return
		}
	case unicode.IsDigit(r):
		p.take(wordLength(rest), constant)
		return
	case isWord(r, l):
		n := wordLengthIn(rest, l)
		word := rest[:n]
		if l.anyCase {
			word = strings.ToLower(word)
		}
		p.take(n, c.words[word])
		return
	case l.markup && r == '>':
		c.inTag = false
	}
	p.take(size, "")
}

// goOn continues a comment or string to its end, or to the end of the line.
func (c *Highlighter) goOn(p *painter) {
	for i := p.taken(); i < len(p.rest); i++ {
		switch {
		case c.escapes && p.rest[i] == '\\':
			i++
		case strings.HasPrefix(p.rest[i:], c.until):
			p.take(i+len(c.until), c.color)
			c.until = ""
			return
		}
	}
	p.take(len(p.rest), c.color)
}

// key handles the name before the first colon or equals sign of a line, or a section heading.
func (c *Highlighter) key(p *painter) {
	line := p.rest
	indent := len(line) - len(strings.TrimLeft(line, " \t-"))
	rest := line[indent:]
	if strings.HasPrefix(rest, "[") && c.language.sections {
		if end := strings.LastIndexByte(rest, ']'); end > 0 {
			p.take(indent, "")
			p.take(end+1, keyword)
		}
		return
	}
	n := 0
	for n < len(rest) && (isNameByte(rest[n]) || rest[n] == '.') {
		n++
	}
	if after := strings.TrimLeft(
		rest[n:], " ",
	); n > 0 && (strings.HasPrefix(after, "=") || strings.HasPrefix(after, ":") && (len(after) == 1 || after[1] == ' ')) {
		p.take(indent, "")
		p.take(n, keyword)
	}
}

// untilTag handles text up to the next tag, the tag's name, or a comment.
func (c *Highlighter) untilTag(p *painter) {
	at := strings.IndexByte(p.rest, '<')
	if at != 0 {
		if at < 0 {
			at = len(p.rest)
		}
		p.take(at, "")
		return
	}
	if strings.HasPrefix(p.rest, "<!--") {
		c.until, c.color, c.escapes = "-->", comment, false
		p.begin(4)
		c.goOn(p)
		return
	}
	n := 1
	for n < len(p.rest) && (isNameByte(p.rest[n]) || strings.IndexByte("/!?:", p.rest[n]) >= 0) {
		n++
	}
	c.inTag = n > 1
	p.take(n, keyword)
}

// longestChar is the largest length of a character literal.
const longestChar = 12

// charLiteral returns the length of the character literal at the start of a text, or 0 if the
// quote has another meaning, such as a lifetime in Rust.
func charLiteral(rest string) int {
	_, size := utf8.DecodeRuneInString(rest[1:])
	n := 1 + size
	if strings.HasPrefix(rest[1:], `\`) {
		n = 1 + strings.IndexByte(rest[1:min(len(rest), longestChar)], '\'')
		if strings.HasPrefix(rest[1:], `\'`) {
			n = 3
		}
	}
	if n > 1 && n < len(rest) && rest[n] == '\'' {
		return n + 1
	}
	return 0
}

// variable returns the length of the shell variable at the start of a text, including its $.
func variable(rest string) int {
	if strings.HasPrefix(rest, "${") {
		if end := strings.IndexByte(rest, '}'); end > 0 {
			return end + 1
		}
		return 0
	}
	n := 1
	for n < len(rest) && (isNameByte(rest[n]) && rest[n] != '-') {
		n++
	}
	if n == 1 && n < len(rest) && strings.IndexByte("@*#?$!", rest[n]) >= 0 {
		n++
	}
	return n
}

func isNameByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

func isWord(r rune, l *language) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || l.lisp && strings.ContainsRune("-*+/<>=!?:&%", r)
}

func wordLength(rest string) int { return wordLengthIn(rest, &language{}) }

// wordLengthIn returns the length of the word at the start of a text. A number includes its
// decimal point.
func wordLengthIn(rest string, l *language) int {
	number := rest[0] >= '0' && rest[0] <= '9'
	for i, r := range rest {
		if !isWord(r, l) && !(number && r == '.' && i+1 < len(rest) && rest[i+1] >= '0' && rest[i+1] <= '9') {
			return i
		}
	}
	return len(rest)
}

// painter colours a line piece by piece.
type painter struct {
	out   strings.Builder
	rest  string
	last  byte // of the text so far; 0: none
	begun int  // how much of rest belongs to the next piece

	piece []byte // not in out yet
	color string // of piece
}

// begin starts the next piece with n bytes.
func (p *painter) begin(n int) { p.begun = n }

// taken returns how many bytes the next piece has so far.
func (p *painter) taken() int { return p.begun }

// take adds n bytes in a colour.
func (p *painter) take(n int, color string) {
	p.begun = 0
	piece := p.rest[:n]
	p.rest = p.rest[n:]
	if piece == "" {
		return
	}
	p.last = piece[len(piece)-1]
	if color == "" {
		color = plain
	}
	if color != p.color {
		p.flush()
		p.color = color
	}
	p.piece = append(p.piece, piece...)
}

// flush writes the current piece.
func (p *painter) flush() {
	if len(p.piece) > 0 {
		p.out.WriteString("\x1b[" + p.color + "m")
		p.out.Write(p.piece)
		p.out.WriteString("\x1b[0m")
	}
	p.piece = p.piece[:0]
}

// atWord reports whether a word can begin here.
func (p *painter) atWord() bool { return p.last == 0 || strings.IndexByte(" \t;(", p.last) >= 0 }

func (p *painter) String() string {
	p.flush()
	return p.out.String()
}

// language describes the tokens of a language.
type language struct {
	keywords, constants string // words
	lineComments        []string
	delimited           []delimited // longer start marks first
	wordComments        bool        // a line comment must begin where a word could
	chars               bool        // 'x' is a character, but a single ' is not
	variables           bool        // $NAME
	anyCase             bool        // keywords ignore case
	lisp                bool        // words may have more kinds of characters
	keys                bool        // lines begin with a name and a colon or equals sign
	sections            bool        // there are [sections]
	markup              bool        // there are tags
}

// delimited is a comment or string between two marks.
type delimited struct {
	open, close string
	color       string
	escapes     bool // a backslash escapes close
	lines       bool // it may span lines
}

var (
	quoted      = delimited{`"`, `"`, text, true, false}
	quotedLines = delimited{`"`, `"`, text, true, true}
	single      = delimited{`'`, `'`, text, true, false}
	rawSingle   = delimited{`'`, `'`, text, false, true}
	cComment    = delimited{"/*", "*/", comment, false, true}
)

const (
	cWords = "break case const continue default do else enum extern for goto if inline register return sizeof static struct switch " +
		"typedef union volatile while"
	cTypes = " bool char double float int long short signed size_t ssize_t unsigned void int8_t int16_t int32_t int64_t uint8_t " +
		"uint16_t uint32_t uint64_t"
	javaWords  = "abstract assert break case catch class const continue default do else enum extends final finally for if implements import instanceof interface native new package private protected public record return sealed static super switch synchronized this throw throws transient try var void volatile while yield boolean byte char double float int long short"
	jsWords    = "abstract any as async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in instanceof interface keyof let namespace never new number of package private protected public readonly return satisfies set static string super switch this throw try type typeof unknown var void while with yield"
	shellWords = "alias break case cd continue declare do done echo elif else esac eval exec exit export fi for function if in local printf " +
		"read readonly return select set shift source then time trap unset until while"
)

// find returns the language with this name, or nil. It is a function and not a table, so that
// the start of the program does no work for it.
func find(name string) *language {
	cLike := func(keywords, constants string) *language {
		return &language{
			keywords: keywords, constants: constants, lineComments: []string{"//"}, delimited: []delimited{cComment, quoted}, chars: true,
		}
	}
	switch name {
	case "go", "golang":
		l := cLike("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var", "true false nil iota")
		l.delimited = append(l.delimited, delimited{"`", "`", text, false, true})
		return l
	case "c", "h":
		return cLike(cWords+cTypes, "NULL true false")
	case "cpp", "c++", "cc", "cxx", "hpp", "objc", "objective-c":
		return cLike(cWords+cTypes+" auto catch class constexpr delete explicit final friend mutable namespace new noexcept operator override "+
			"private protected public template this throw try typename using virtual concept requires co_await co_return "+
			"co_yield", "NULL nullptr true false")
	case "java":
		return cLike(javaWords, "true false null")
	case "kotlin", "kt":
		return cLike("as break by catch class companion constructor continue data do else enum extends final finally for fun if import in inline interface internal is lateinit object open operator override package private protected public return sealed super suspend this throw try typealias val var vararg when while", "true false null")
	case "scala":
		return cLike("abstract case catch class def do else enum extends final finally for given if implicit import lazy match new object override package private protected return sealed super then this throw trait try type using val var while with yield", "true false null")
	case "swift":
		return cLike("as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough fileprivate final for func guard if import in init inout internal is lazy let mutating open override private protocol public repeat rethrows return self static struct subscript super switch throw throws try typealias var weak where while", "true false nil")
	case "csharp", "cs", "c#":
		return cLike(javaWords+" as async await base checked decimal delegate event explicit extern fixed foreach get goto implicit in init "+
			"internal is lock namespace object operator out override params partial readonly ref sbyte set sizeof string struct typeof uint ulong "+
			"unchecked unsafe ushort using value virtual when where", "true false null")
	case "rust", "rs":
		l := cLike("as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref "+
			"return self Self static struct super trait type union unsafe use where while", "true false None Some Ok Err")
		l.delimited = []delimited{cComment, quotedLines}
		return l
	case "zig":
		return cLike("align and anyerror break catch comptime const continue defer else enum errdefer error export extern fn for if inline or "+
			"orelse pub return struct switch test try union unreachable usingnamespace var while", "true false null undefined")
	case "js", "javascript", "jsx", "mjs", "cjs", "ts", "typescript", "tsx":
		return &language{
			keywords: jsWords, constants: "true false null undefined NaN Infinity", lineComments: []string{"//"},
			delimited: []delimited{cComment, quoted, single, {"`", "`", text, true, true}},
		}
	case "php":
		return &language{
			keywords: "abstract and array as break case catch class clone const continue declare default do echo else elseif enum extends final " +
				"finally fn for foreach function global if implements include instanceof interface isset list match namespace new or print private " +
				"protected public readonly require require_once return static switch throw trait try unset use var while yield",
			constants: "true false null TRUE FALSE NULL", lineComments: []string{"//", "#"}, delimited: []delimited{cComment, quotedLines, {`'`, `'`, text, true, true}}, variables: true,
		}
	case "py", "python", "python3", "pyi", "starlark", "bzl":
		return &language{
			keywords:  "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
			constants: "True False None self cls", lineComments: []string{"#"},
			delimited: []delimited{{`"""`, `"""`, text, true, true}, {`'''`, `'''`, text, true, true}, quoted, single},
		}
	case "rb", "ruby":
		return &language{
			keywords: "alias and begin break case class def defined do else elsif end ensure extend for if in include module next not or private " +
				"protected public raise redo require require_relative rescue retry return super then undef unless until when while yield " +
				"attr_accessor attr_reader attr_writer",
			constants: "true false nil self", lineComments: []string{"#"}, wordComments: true, delimited: []delimited{quotedLines, {`'`, `'`, text, true, true}},
		}
	case "console", "shell-session": // output of programs contains apostrophes
		return &language{keywords: shellWords, lineComments: []string{"# "}, wordComments: true, variables: true, delimited: []delimited{quoted}}
	case "sh", "bash", "zsh", "shell", "fish":
		return &language{
			keywords: shellWords, constants: "true false", lineComments: []string{"#"}, wordComments: true, variables: true,
			delimited: []delimited{quotedLines, rawSingle},
		}
	case "dockerfile", "docker":
		return &language{
			keywords: "add arg as cmd copy entrypoint env expose from healthcheck label onbuild run shell stopsignal user volume " +
				"workdir", anyCase: true,
			lineComments: []string{"#"}, wordComments: true, variables: true, delimited: []delimited{quoted, rawSingle},
		}
	case "make", "makefile", "mk":
		return &language{
			keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override", lineComments: []string{"#"}, wordComments: true,
			variables: true,
			delimited: []delimited{quoted, {`'`, `'`, text, false, false}}, keys: true,
		}
	case "sql", "postgres", "postgresql", "mysql", "sqlite":
		return &language{
			keywords: "add all alter and any as asc begin between by case cast check collate column commit conflict constraint create cross cte " +
				"default delete desc distinct do drop else end except exists explain foreign from full group having if in index inner insert " +
				"intersect into is join key left like limit match natural not offset on or order outer over partition pragma primary references " +
				"replace returning right rollback row select set table temp then transaction trigger union unique update using values view virtual " +
				"when where window with without",
			constants: "true false null current_timestamp integer int bigint text blob real numeric varchar char boolean timestamp " +
				"date", anyCase: true,
			lineComments: []string{"--"}, delimited: []delimited{cComment, {`'`, `'`, text, false, true}, quoted},
		}
	case "json", "jsonc", "json5", "jsonl", "ndjson":
		return &language{constants: "true false null", lineComments: []string{"//"}, delimited: []delimited{cComment, quoted}}
	case "yaml", "yml":
		return &language{constants: "true false null yes no on off", lineComments: []string{"#"}, wordComments: true, delimited: []delimited{quoted, {`'`, `'`, text, false, false}}, keys: true}
	case "toml", "ini", "conf", "cfg", "properties", "dotenv", "env", "systemd", "gitconfig":
		return &language{
			constants: "true false yes no on off", lineComments: []string{"#", ";"}, wordComments: true, keys: true, sections: true,
			delimited: []delimited{{`"""`, `"""`, text, true, true}, {`'''`, `'''`, text, false, true}, quoted, {`'`, `'`, text, false, false}},
		}
	case "html", "xml", "svg", "xhtml", "vue", "svelte", "plist":
		return &language{markup: true, delimited: []delimited{{`"`, `"`, text, false, true}, {`'`, `'`, text, false, true}}}
	case "css", "scss", "less":
		return &language{
			keywords: "important media import keyframes supports font-face include mixin use", constants: "none auto inherit initial unset",
			delimited: []delimited{cComment, quoted, single}, lineComments: []string{"//"}, wordComments: true, keys: true,
		}
	case "lua":
		return &language{
			keywords:  "and break do else elseif end for function goto if in local not or repeat return then until while",
			constants: "true false nil self", lineComments: []string{},
			delimited: []delimited{
				{"--[[", "]]", comment, false, true}, {"[[", "]]", text, false, true}, {"--", "\n", comment, false, false}, quoted, single,
			},
		}
	case "elisp", "emacs-lisp", "lisp", "common-lisp", "cl", "scheme", "racket", "clojure", "clj":
		return &language{
			keywords: "and case catch cond cond-> condition-case declare def define defn defmacro defun defvar defconst defcustom defface " +
				"defstruct cl-defstruct cl-defun defmethod cl-defmethod cl-defgeneric defalias do dolist dotimes fn if if-let if-let* interactive " +
				"lambda let let* letrec loop ns or pcase pcase-let prog1 progn quote require provide save-excursion save-restriction setf setq " +
				"setq-local unless unwind-protect use-package when when-let when-let* while with-current-buffer with-temp-buffer cl-loop cl-flet " +
				"cl-labels -> ->>",
			constants: "nil t true false", lineComments: []string{";"}, delimited: []delimited{quotedLines}, lisp: true,
		}
	case "haskell", "hs", "elm", "ocaml", "ml":
		return &language{
			keywords:  "as case class data default deriving do else end exception forall fun function foreign hiding if import in infix infixl infixr instance let match mod module newtype of open qualified rec sig struct then try type val when where with",
			constants: "True False Nothing Just true false", lineComments: []string{"-- "}, chars: true,
			delimited: []delimited{{"{-", "-}", comment, false, true}, {"(*", "*)", comment, false, true}, quoted},
		}
	case "elixir", "ex", "exs":
		return &language{
			keywords:  "after alias and case catch cond def defimpl defmacro defmodule defp defprotocol defstruct do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with",
			constants: "true false nil", lineComments: []string{"#"}, wordComments: true, delimited: []delimited{{`"""`, `"""`, text, true, true}, quotedLines},
		}
	}
	return nil
}
