package shellcommand

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Pattern is the command pattern of a rule. The zero value matches nothing.
type Pattern struct {
	text   string
	glob   bool // * ? and [ are wildcards; as everywhere in commands, * matches slashes too
	prefix bool // also matches the text followed by a blank and anything
}

// Glob returns the pattern of a rule of the configuration: git *.
func Glob(text string) Pattern { return Pattern{text: text, glob: true} }

// Exactly returns the pattern for exactly one command.
func Exactly(text string) Pattern { return Pattern{text: text} }

// BeginsWith returns the pattern for a command with any further arguments.
func BeginsWith(text string) Pattern { return Pattern{text: text, prefix: true} }

// isEverything reports whether it matches every command.
func (p Pattern) isEverything() bool { return p.glob && (p.text == "*" || p.text == "") }

// fits reports whether a completely known text matches.
func (p Pattern) fits(text string) bool {
	switch {
	case p.isEverything():
		return true
	case p.glob:
		const slash = "\x00"
		ok, err := path.Match(strings.ReplaceAll(p.text, "/", slash), strings.ReplaceAll(text, "/", slash))
		return ok && err == nil
	case p.prefix && strings.HasPrefix(text, p.text+" "):
		return true
	}
	return text == p.text
}

// allows reports whether a rule with the pattern allows a part on its own: it matches whatever
// the part turns out to be, and contains the required words.
func (p Pattern) allows(part Part) bool {
	for _, word := range part.required {
		if !p.contains(word) {
			return false
		}
	}
	return p.covers(part.Text, false) || strings.ContainsAny(p.text, `'"\`) && !hasUnknown(part.Text) && p.fits(part.source)
}

// hasUnknown reports whether a text has an unknown part.
func hasUnknown(text string) bool {
	return strings.ContainsRune(text, Anything) || strings.ContainsRune(text, AnyWord)
}

// contains reports whether the pattern itself contains a word: at its beginning for the name of a
// command, else as any word. A variable only has to be set.
func (p Pattern) contains(word string) bool {
	fields := strings.Fields(p.text)
	switch {
	case len(fields) == 0:
		return false
	case strings.HasSuffix(word, "="):
		return slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, word) })
	case strings.ContainsAny(word[:1], "<>&"):
		return slices.ContainsFunc(fields, func(f string) bool { return strings.Contains(f, word) })
	case strings.HasPrefix(word, "-"):
		return slices.Contains(fields, word)
	}
	for _, f := range fields { // after its assignments
		if f == word {
			return true
		}
		if name, _, isSet := strings.Cut(f, "="); !isSet || name == "" {
			return false
		}
	}
	return false
}

// covers reports whether a text with unknown parts matches: for all values of these or, if anyOf
// is true, for one possible value. Then some literal text of the pattern must be in the known
// part: otherwise every text with an unknown part would match.
func (p Pattern) covers(text string, anyOf bool) bool {
	if !hasUnknown(text) {
		return p.fits(text)
	}
	if len(text) > mostOpenText {
		if !anyOf {
			return false
		}
		text = strings.ToValidUTF8(text[:mostOpenText], "") + string(Anything)
	}
	m := matcher{tokens: p.tokens(), text: []rune(text), anyOf: anyOf}
	return m.match(position{literalSeen: !anyOf})
}

// mostOpenText is how many bytes of a text with unknown parts are examined; the rest may be
// anything.
const mostOpenText = 4 << 10

// A token of a pattern matches one character, or with star any number of them.
type token struct {
	star  bool
	char  rune   // if there is no class
	class string // ? or [...] or \x
}

func (t token) fits(r rune) bool {
	if t.class == "" {
		return t.char == r
	}
	if r == '/' {
		r = 0
	}
	ok, err := path.Match(strings.ReplaceAll(t.class, "/", "\x00"), string(r))
	return ok && err == nil
}

func (p Pattern) tokens() (all []token) {
	text := p.text
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case !p.glob:
			all = append(all, token{char: r})
		case r == '*':
			all = append(all, token{star: true})
		case r == '?':
			all = append(all, token{class: "?"})
		case r == '\\' && n < len(text):
			r, m := utf8.DecodeRuneInString(text[n:])
			all = append(all, token{char: r})
			n += m
		case r == '[':
			if end := strings.IndexByte(text[2:], ']'); len(text) > 2 && end >= 0 {
				n = end + 3
				all = append(all, token{class: text[:n]})
			} else {
				all = append(all, token{char: r})
			}
		default:
			all = append(all, token{char: r})
		}
		text = text[n:]
	}
	if p.prefix {
		all = append(all, token{char: ' '}, token{star: true})
	}
	return all
}

// A matcher matches a text with unknown parts with a pattern.
type matcher struct {
	tokens []token
	text   []rune
	anyOf  bool
	failed map[position]bool
}

// A position is a state of a matcher.
type position struct {
	token, char int
	literalSeen bool // literal text of the pattern was in the text
}

func (m *matcher) match(at position) bool {
	if at.token == len(m.tokens) && at.char == len(m.text) {
		return at.literalSeen
	}
	if m.failed[at] {
		return false
	}
	if m.matchFrom(at) {
		return true
	}
	if m.failed == nil {
		m.failed = make(map[position]bool)
	}
	m.failed[at] = true
	return false
}

func (m *matcher) matchFrom(at position) bool {
	nextToken := position{at.token + 1, at.char, at.literalSeen}
	nextChar := position{at.token, at.char + 1, at.literalSeen}
	isOpen := at.char < len(m.text) && (m.text[at.char] == Anything || m.text[at.char] == AnyWord)
	if isOpen && m.anyOf {
		if m.match(nextChar) { // it is empty, or comes to its end
			return true
		}
		if at.token < len(m.tokens) && !m.tokens[at.token].star && (m.text[at.char] == Anything || !m.tokens[at.token].fits(' ')) && m.match(nextToken) {
			return true
		}
	}
	if at.token == len(m.tokens) {
		return false
	}
	token := m.tokens[at.token]
	if token.star {
		return m.match(nextToken) || at.char < len(m.text) && m.match(nextChar)
	}
	return at.char < len(m.text) && !isOpen && token.fits(m.text[at.char]) &&
		m.match(position{at.token + 1, at.char + 1, at.literalSeen || token.class == ""})
}
