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

// This file reads files that came with a project, which are nobody's
// word: with a limit of time and length, and measured before they are parsed.

// readPatience is how long a configuration file may take to be read. What
// stands behind its name may be a file system that does not answer, and nobody
// waits for that: not an editor, and not the end of the process.
const readPatience = time.Second

// readBounded reads a configuration file. One that does not exist is empty. What
// is no regular file is refused, what is longer than most bytes, and what check gives
// an error for, which sees the file, its directory and what a link leads to.
func readBounded(path string, most int, check func(path string, info fs.FileInfo) error) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	done := make(chan result, 1)
	// Nothing can end a read that hangs; only the end of the process does.
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
	info, err := os.Stat(path) // first: to open a device can have effects of its own
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	// It may have become a pipe since, which would wait for whoever writes it.
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

// Bounds are what a TOML document may have. They are looked at before it is
// parsed: the parser takes time and memory that grow with the square of some of
// these.
type Bounds struct {
	Keys    int // keys and tables, wherever they stand
	Values  int // values of arrays
	Parts   int // of one key: agents.a.env.NAME has four
	Nesting int // of arrays and inline tables in each other
}

// A Crossing says where a document crosses a bound, and which. Lines and
// columns count from 1; columns are bytes.
type Crossing struct {
	Line, Column int
	Text         string
}

// Check walks a TOML document once, without taking it for one, and returns the
// first place where it crosses a bound; nil where it crosses none. Where the
// document is no TOML it gives up: the parser ends at the same place, and has
// not gone further than what was counted.
func (b Bounds) Check(document []byte) *Crossing {
	s := scan{bounds: b, text: document, line: 1}
	for s.at < len(s.text) && s.crossing == nil && s.expression() {
	}
	return s.crossing
}

// A scan is the walk through a document.
type scan struct {
	bounds      Bounds
	text        []byte
	at          int
	line, begin int // the line that at is in, from 1, and where it begins

	keysSeen, valuesSeen int
	crossing             *Crossing
}

func (s *scan) cross(format string, args ...any) bool {
	s.crossing = &Crossing{s.line, s.at - s.begin + 1, fmt.Sprintf(format, args...)}
	return false
}

// peek is the next byte, 0 at the end.
func (s *scan) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scan) startsWith(prefix string) bool {
	return len(s.text)-s.at >= len(prefix) && string(s.text[s.at:s.at+len(prefix)]) == prefix
}

// step goes over one byte.
func (s *scan) step() {
	if s.text[s.at] == '\n' {
		s.line, s.begin = s.line+1, s.at+1
	}
	s.at++
}

// comment goes to the end of the line, and stays before it.
func (s *scan) comment() {
	for s.at < len(s.text) && s.text[s.at] != '\n' {
		s.at++
	}
}

// expression goes over one table header or one key with its value, or over
// what may stand between two. It reports whether the document can go on.
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
		s.comment() // nothing else may stand there
		return true
	}
	return s.key('=') && s.value()
}

// key goes over a key to what ends it, which it goes over too.
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

// quoted goes over a string in one line. It reports whether it ends there.
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

// text3 goes over a string of any number of lines.
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

// value goes over a value to the end of its line, or of the line that the last
// bracket is closed in.
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
