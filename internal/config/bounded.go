package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// This file reads files that came with a project, which are not trustworthy: with a limit of
// time and length, and a check of their size before parsing.

// readPatience is how long reading a configuration file may take. The file may be on a file
// system that does not answer, which must not block an editor or the end of the process.
const readPatience = time.Second

// readBounded reads a configuration file. A missing file is empty. It refuses anything but a
// regular file, a file longer than most bytes, and one for which check returns an error. check
// receives the file, its directory and the target of a link.
func readBounded(path string, most int, check func(path string, info fs.FileInfo) error) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	done := make(chan result, 1)
	// A read that hangs cannot be interrupted; only the end of the process ends it.
	go func() {
		content, err := readRegular(path, most, check)
		done <- result{content, err}
	}()
	patience := time.NewTimer(readPatience)
	defer patience.Stop()
	select {
	case r := <-done:
		return r.content, r.err
	case <-patience.C:
		return nil, fmt.Errorf("it could not be read within %v", readPatience)
	}
}

func readRegular(path string, most int, check func(path string, info fs.FileInfo) error) ([]byte, error) {
	for _, name := range []string{path, filepath.Dir(path)} {
		if info, err := os.Lstat(name); err == nil {
			if err := check(name, info); err != nil {
				return nil, err
			}
		}
	}
	info, err := os.Stat(path) // first: opening a device can have side effects
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	// It may have become a pipe since, which would block until it has a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(content) > most {
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}
	return content, err
}

var errNotRegular = errors.New("it is no regular file")

// Bounds limit a TOML document. They are checked before parsing: the parser's time and memory
// grow with the square of some of them.
type Bounds struct {
	Keys    int // keys and tables, at any place
	Values  int // values of arrays
	Parts   int // of one key: agents.a.env.NAME has four
	Nesting int // of arrays and inline tables in each other
}

// A Crossing is the place where a document crosses a bound, and the bound. Lines and columns
// count from 1; columns are bytes.
type Crossing struct {
	Line, Column int
	Text         string
}

// Check scans a TOML document once, without parsing it, and returns the first place where it
// crosses a bound, or nil. At invalid TOML it stops: the parser stops at the same place, and has
// not read past the counted part.
func (b Bounds) Check(document []byte) *Crossing {
	s := scan{bounds: b, text: document, line: 1}
	for s.at < len(s.text) && s.crossing == nil && s.expression() {
	}
	return s.crossing
}

// A scan is the state of the scan of a document.
type scan struct {
	bounds      Bounds
	text        []byte
	at          int
	line, begin int // the line of at, from 1, and its first byte

	keysSeen, valuesSeen int
	crossing             *Crossing
}

func (s *scan) cross(format string, args ...any) bool {
	s.crossing = &Crossing{s.line, s.at - s.begin + 1, fmt.Sprintf(format, args...)}
	return false
}

// peek returns the next byte, 0 at the end.
func (s *scan) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scan) startsWith(prefix string) bool {
	return len(s.text)-s.at >= len(prefix) && string(s.text[s.at:s.at+len(prefix)]) == prefix
}

// step skips one byte.
func (s *scan) step() {
	if s.text[s.at] == '\n' {
		s.line, s.begin = s.line+1, s.at+1
	}
	s.at++
}

// comment skips to the end of the line.
func (s *scan) comment() {
	for s.at < len(s.text) && s.text[s.at] != '\n' {
		s.at++
	}
}

// expression skips one table header or one key with its value, or the space between two. It
// reports whether the scan can continue.
func (s *scan) expression() bool {
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
		s.comment() // only a comment may follow
		return true
	}
	return s.key('=') && s.value()
}

// key skips a key and the byte that ends it.
func (s *scan) key(end byte) bool {
	if s.keysSeen++; s.keysSeen > s.bounds.Keys {
		return s.cross("there are more than %d keys and tables", s.bounds.Keys)
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
			if parts++; parts > s.bounds.Parts {
				return s.cross("a key has more than %d parts", s.bounds.Parts)
			}
			s.step()
		default:
			s.step()
		}
	}
	return false
}

// quoted skips a string in one line. It reports whether it ends there.
func (s *scan) quoted(quote byte) bool {
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

// text3 skips a multi-line string.
func (s *scan) text3(quotes string) bool {
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

// value skips a value to the end of its line, or of the line with the last closing bracket.
func (s *scan) value() bool {
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
			if nesting++; nesting > s.bounds.Nesting {
				return s.cross("arrays and tables are nested more than %d deep", s.bounds.Nesting)
			}
			parts = 1
			s.step()
		case ']', '}':
			if nesting--; nesting < 0 {
				return false
			}
			s.step()
		case ',':
			if s.valuesSeen++; s.valuesSeen > s.bounds.Values {
				return s.cross("there are more than %d values in arrays", s.bounds.Values)
			}
			parts = 1
			s.step()
		case '=':
			if s.keysSeen++; s.keysSeen > s.bounds.Keys {
				return s.cross("there are more than %d keys and tables", s.bounds.Keys)
			}
			parts = 1
			s.step()
		case '.':
			if parts++; parts > s.bounds.Parts {
				return s.cross("a key has more than %d parts", s.bounds.Parts)
			}
			s.step()
		default:
			s.step()
		}
	}
	return true
}
