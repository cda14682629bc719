// Package highlight colours code for a terminal, line by line: keywords, strings,
// comments, numbers and constants of the languages that agents write most.
//
// It is no library's: chroma adds 5 MB to the program and 5 ms to each start, of the
// 5 ms that there are to the first reply, since it reads its lexers when a program
// begins. What is shown while an agent writes needs no grammar.
package highlight

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Colours, as ECMA-48 numbers them (SGR), that can be read on light and dark
// terminals.
const (
	keyword  = "35"
	text     = "32" // in quotes
	comment  = "2"
	constant = "33" // and numbers, variables
	plain    = "36" // what else there is: code is told from prose by it
)

// A Code is a block of code that comes line by line. It is for one goroutine.
type Code struct {
	language *language
	words    map[string]string // to their colours
	until    string            // what ends the comment or the text that is open at the end of a line; ""
	color    string            // of that
	escapes  bool              // a backslash hides what ends it
	inTag    bool              // of markup
}

// For is the code of a language, by the word that begins a fence's first line; nil:
// it is not known.
func For(name string) *Code {
	l := find(strings.ToLower(strings.TrimLeft(name, "{.")))
	if l == nil {
		return nil
	}
	c := &Code{language: l, words: make(map[string]string)}
	for word := range strings.FieldsSeq(l.keywords) {
		c.words[word] = keyword
	}
	for word := range strings.FieldsSeq(l.constants) {
		c.words[word] = constant
	}
	return c
}

// Line is the next line with colours. A line in which every character is seen stays
// one.
func (c *Code) Line(line string) string {
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

// next takes what comes next.
func (c *Code) next(p *painter) {
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

// goOn goes on with a comment or a text up to its end, or that of the line.
func (c *Code) goOn(p *painter) {
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

// key takes the name before the first colon or equals sign of a line, or a whole
// section's.
func (c *Code) key(p *painter) {
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
	if after := strings.TrimLeft(rest[n:], " "); n > 0 && (strings.HasPrefix(after, "=") || strings.HasPrefix(after, ":") && (len(after) == 1 || after[1] == ' ')) {
		p.take(indent, "")
		p.take(n, keyword)
	}
}

// untilTag takes text up to the next tag, its name, or a comment.
func (c *Code) untilTag(p *painter) {
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

// longestChar is how long a character in quotes may be.
const longestChar = 12

// charLiteral is how long the character in quotes is that a text begins with, or 0:
// the quote is something else, such as a lifetime of Rust.
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

// variable is how long a variable of a shell is, with its $.
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

// wordLengthIn is how long the word is that a text begins with; a number goes on
// behind its point.
func wordLengthIn(rest string, l *language) int {
	number := rest[0] >= '0' && rest[0] <= '9'
	for i, r := range rest {
		if !isWord(r, l) && !(number && r == '.' && i+1 < len(rest) && rest[i+1] >= '0' && rest[i+1] <= '9') {
			return i
		}
	}
	return len(rest)
}

// A painter takes a line piece by piece.
type painter struct {
	out   strings.Builder
	rest  string
	last  byte // of what was taken; 0: nothing was
	begun int  // how much of rest belongs to the piece that comes next

	piece []byte // that was taken, and is not in out
	color string // of piece
}

// begin says that so many bytes belong to the piece that comes next.
func (p *painter) begin(n int) { p.begun = n }

// taken is how much that is.
func (p *painter) taken() int { return p.begun }

// take takes so many bytes in a colour.
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

// flush writes what was taken in one colour.
func (p *painter) flush() {
	if len(p.piece) > 0 {
		p.out.WriteString("\x1b[" + p.color + "m")
		p.out.Write(p.piece)
		p.out.WriteString("\x1b[0m")
	}
	p.piece = p.piece[:0]
}

// atWord reports whether a word begins here.
func (p *painter) atWord() bool { return p.last == 0 || strings.IndexByte(" \t;(", p.last) >= 0 }

func (p *painter) String() string {
	p.flush()
	return p.out.String()
}
