package shellcommand

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// These characters represent text that is unknown before the command runs. They are
// noncharacters, and no plain text contains them.
const (
	Anything = '\uFFFF' // any text, or none
	AnyWord  = '\uFFFE' // any text without blanks, or none
)

// A word is one of a simple command.
type word struct {
	texts     []string // its possible values without quotes; one, except for variables with known values
	bare      string   // as rules spell it: with quotes only as needed
	isLiteral bool     // it is exactly texts[0]
	expands   bool     // into file names
}

// literal returns the word of a text that no shell parses.
func literal(text string) word {
	return word{texts: []string{text}, bare: quote(text), isLiteral: true}
}

// text returns the word's value, as far as it is known.
func (w word) text() string { return w.texts[0] }

// is reports whether a word is certainly equal to a text.
func (w word) is(text string) bool { return w.isLiteral && !w.expands && w.text() == text }

const mostAlternatives = 8 // maximum number of values of a word

// word reads a word.
func (r *reader) word(from *syntax.Word) word {
	w := word{texts: []string{""}, isLiteral: true}
	var bare strings.Builder
	add := func(texts ...string) {
		var all []string
		for _, before := range w.texts {
			for _, text := range texts {
				if len(all) < mostAlternatives {
					all = append(all, before+text)
				}
			}
		}
		w.texts = all
	}
	quoted := false
	if r.shell != posix {
		if braces := (&syntax.Word{Parts: slices.Clone(from.Parts)}); syntax.SplitBraces(braces) && slices.ContainsFunc(braces.Parts, isBraces) {
			return r.braces(braces)
		}
	}
	for i, part := range from.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text, expands := unescape(part.Value)
			w.expands = w.expands || expands || i == 0 && (part.Value[0] == '~' || part.Value[0] == '=' && r.shell == zsh)
			quoted = quoted || text != part.Value
			add(text)
			bare.WriteString(text)
		case *syntax.SglQuoted:
			text := part.Value
			if part.Dollar {
				var err error
				if text, err = expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{part}}); err != nil || !isPlain(text) {
					r.doubt()
				}
			} else if strings.HasSuffix(text, `\`) { // fish treats the quote as a character
				r.doubt()
			}
			quoted = true
			add(text)
			bare.WriteString(text)
		case *syntax.DblQuoted:
			if part.Dollar { // a translation
				r.doubt()
			}
			quoted = true
			for _, inner := range part.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					text := unescapeInQuotes(lit.Value)
					add(text)
					bare.WriteString(text)
					continue
				}
				w.unknown(inner, AnyWord, r, add, &bare)
			}
		default:
			w.unknown(part, Anything, r, add, &bare)
		}
	}
	switch {
	case !w.isLiteral || w.expands && quoted:
		w.bare = bare.String()
	case w.expands:
		w.bare = w.text()
	default:
		w.bare = quote(w.text())
	}
	if w.expands && quoted {
		r.doubt() // its quotes can no longer be distinguished
	}
	return w
}

func isBraces(part syntax.WordPart) bool {
	_, is := part.(*syntax.BraceExp)
	return is
}

// braces parses a word that its braces expand to several. The results are not separated: the
// texts of all are one.
func (r *reader) braces(from *syntax.Word) word {
	r.doubt()
	plain := *r
	plain.shell = posix // in which braces are characters
	var texts []string
	for w, err := range expand.BracesSeq(nil, from) {
		if err != nil || len(texts) == mostAlternatives {
			texts = append(texts, string(Anything))
			break
		}
		texts = append(texts, plain.word(w).text())
	}
	text := strings.Join(texts, " ")
	return word{texts: append([]string{text}, texts...), bare: text}
}

// unknown adds a part of a word with an unknown value. The output of a command causes no doubt:
// the command counts by itself.
func (w *word) unknown(part syntax.WordPart, what rune, r *reader, add func(...string), bare *strings.Builder) {
	w.isLiteral = false
	texts := []string{}
	switch part := part.(type) {
	case *syntax.CmdSubst:
	case *syntax.ProcSubst:
		what = AnyWord
	case *syntax.ParamExp:
		r.doubt()
		texts = r.values[nameOf(part)]
	default:
		r.doubt()
	}
	bare.WriteRune(what)
	add(append([]string{string(what)}, texts...)...)
}

// nameOf returns the variable of a plain expansion, or "".
func nameOf(p *syntax.ParamExp) string {
	if p.Param == nil {
		return ""
	}
	return p.Param.Value
}

// unescape removes the backslashes of a text outside of quotes, and reports whether the result
// is a file name pattern.
func unescape(value string) (text string, expands bool) {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '\\':
			if i++; i < len(value) && value[i] != '\n' {
				b.WriteByte(value[i])
			}
		case '*', '?', '[':
			expands = true
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), expands
}

// unescapeInQuotes removes the backslashes of a text in double quotes.
func unescapeInQuotes(value string) string {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) && strings.IndexByte("$`\"\\\n", value[i+1]) >= 0 {
			if i++; value[i] != '\n' {
				b.WriteByte(value[i])
			}
			continue
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

const bareCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./^-"

// quote returns a text as a word with the same meaning in every shell.
func quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < 0x80 && !strings.ContainsRune(bareCharacters, r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Argument returns a text as one word of a command that a person is to run. It quotes more than quote
// does.
func Argument(text string) string {
	isPlain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !isPlain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// join returns words as rules spell them.
func join(words []word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.bare)
	}
	return b.String()
}
