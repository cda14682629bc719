package config

import "fmt"

// bounds are what a configuration file may have. They are looked at before it
// is parsed: a file that came with a project is nobody's word, and the parser
// takes time and memory that grow with the square of some of these.
type bounds struct {
	bytes   int // of the file
	keys    int // keys and tables, wherever they stand
	values  int // values of arrays
	parts   int // of one key: agents.a.env.NAME has four
	nesting int // of arrays and inline tables in each other
	agents  int
	rules   int
}

// boundsOf are those of a source. The user's own file may be larger; an honest
// one of a project has a few hundred lines.
func boundsOf(source string) bounds {
	if source == SourceProject {
		return bounds{bytes: 256 << 10, keys: 5_000, values: 5_000, parts: 16, nesting: 16, agents: 100, rules: 1_000}
	}
	return bounds{bytes: 1 << 20, keys: 50_000, values: 50_000, parts: 16, nesting: 16, agents: 1_000, rules: 10_000}
}

// mostServers is how many MCP servers an agent may have.
const mostServers = 100

// crossed says where a document crosses a bound, and which.
type crossed struct {
	at   place
	text string
}

// check walks a TOML document once, without taking it for one, and returns the
// first place where it crosses a bound; nil where it crosses none. Where the
// document is no TOML it gives up: the parser ends at the same place, and has
// not gone further than what was counted.
func (b bounds) check(content []byte) *crossed {
	s := boundsScan{bounds: b, text: content, line: 1}
	for s.at < len(s.text) && s.crossed == nil && s.expression() {
	}
	return s.crossed
}

// boundsScan is the walk through a document.
type boundsScan struct {
	bounds
	text        []byte
	at          int
	line, begin int // the line that at is in, from 1, and where it begins

	keysSeen, valuesSeen int
	crossed              *crossed
}

func (s *boundsScan) cross(format string, args ...any) bool {
	s.crossed = &crossed{place{s.line, s.at - s.begin + 1}, fmt.Sprintf(format, args...)}
	return false
}

// peek is the next byte, 0 at the end.
func (s *boundsScan) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *boundsScan) startsWith(prefix string) bool {
	return len(s.text)-s.at >= len(prefix) && string(s.text[s.at:s.at+len(prefix)]) == prefix
}

// step goes over one byte.
func (s *boundsScan) step() {
	if s.text[s.at] == '\n' {
		s.line, s.begin = s.line+1, s.at+1
	}
	s.at++
}

// comment goes to the end of the line, and stays before it.
func (s *boundsScan) comment() {
	for s.at < len(s.text) && s.text[s.at] != '\n' {
		s.at++
	}
}

// expression goes over one table header or one key with its value, or over
// what may stand between two. It reports whether the document can go on.
func (s *boundsScan) expression() bool {
	switch s.peek() {
	case ' ', '\t', '\r', '\n':
		s.step()
		return true
	case '#':
		s.comment()
		return true
	case '[':
		s.step()
		if s.peek() == '[' {
			s.step()
		}
		if !s.key(']') {
			return false
		}
		for s.peek() == ']' {
			s.step()
		}
		s.comment() // nothing else may stand there
		return true
	}
	return s.key('=') && s.value()
}

// key goes over a key to what ends it, which it goes over too.
func (s *boundsScan) key(end byte) bool {
	if s.keysSeen++; s.keysSeen > s.keys {
		return s.cross("there are more than %d keys and tables", s.keys)
	}
	for parts := 1; s.at < len(s.text); {
		switch c := s.peek(); c {
		case end:
			s.step()
			return true
		case '\n', '#':
			return false // a key ends in its line
		case '"', '\'':
			if !s.quoted(c) {
				return false
			}
		case '.':
			if parts++; parts > s.parts {
				return s.cross("a key has more than %d parts", s.parts)
			}
			s.step()
		default:
			s.step()
		}
	}
	return false
}

// quoted goes over a string in one line. It reports whether it ends there.
func (s *boundsScan) quoted(quote byte) bool {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case quote:
			s.at++
			return true
		case '\n':
			return false
		case '\\':
			if quote == '"' {
				s.at++
			}
		}
	}
	return false
}

// text3 goes over a string of any number of lines.
func (s *boundsScan) text3(quotes string) bool {
	for s.at += len(quotes); s.at < len(s.text); {
		switch {
		case s.startsWith(quotes):
			s.at += len(quotes)
			for range 2 { // it may end in two quotes of its own
				if s.peek() == quotes[0] {
					s.at++
				}
			}
			return true
		case s.text[s.at] == '\\' && quotes[0] == '"' && s.at+1 < len(s.text):
			s.step()
			s.step()
		default:
			s.step()
		}
	}
	return false
}

// value goes over a value to the end of its line, or of the line that the last
// bracket is closed in.
func (s *boundsScan) value() bool {
	nesting, parts := 0, 1
	for s.at < len(s.text) {
		switch c := s.peek(); c {
		case '\n':
			if nesting == 0 {
				return true
			}
			s.step()
		case '#':
			s.comment()
		case '"', '\'':
			three := string([]byte{c, c, c})
			if s.startsWith(three) {
				if !s.text3(three) {
					return false
				}
			} else if !s.quoted(c) {
				return false
			}
		case '[', '{':
			if nesting++; nesting > s.nesting {
				return s.cross("arrays and tables are nested more than %d deep", s.nesting)
			}
			parts = 1
			s.step()
		case ']', '}':
			if nesting--; nesting < 0 {
				return false
			}
			s.step()
		case ',':
			if s.valuesSeen++; s.valuesSeen > s.values {
				return s.cross("there are more than %d values in arrays", s.values)
			}
			parts = 1
			s.step()
		case '=':
			if s.keysSeen++; s.keysSeen > s.keys {
				return s.cross("there are more than %d keys and tables", s.keys)
			}
			parts = 1
			s.step()
		case '.':
			if parts++; parts > s.parts {
				return s.cross("a key has more than %d parts", s.parts)
			}
			s.step()
		default:
			s.step()
		}
	}
	return true
}
