package usercommand

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file finds in what a compiler, a linter or a test runner prints where
// something is wrong, and what.
//
// A [parser] takes the output line by line, as it comes, and knows the styles of Go and its tests, GCC and
// Clang, TypeScript, Rust (as people read it, and as JSON), ESLint, pytest and the GNU
// coding standards, which others follow. What it does not know it passes over: a line that
// is prose is no diagnostic. It reads no files but go.mod, when tests of Go have failed.

// A diagnostic is something that is wrong at a place.
type diagnostic = domain.Diagnostic

// The severities.
const (
	DiagnosticError = domain.SeverityError
	Warning         = domain.SeverityWarning
	Note            = domain.SeverityNote
)

// maxLine is how much of a line is looked at, in bytes, and maxMessage how long a message is.
const (
	maxLine    = 64 << 10
	maxMessage = 4 << 10
)

// A parser finds diagnostics. It is for one goroutine at a time.
type parser struct {
	paths  paths
	eslint string      // the file of the lines that follow, as ESLint's own style has it
	rust   *diagnostic // has a message, and waits for its place
	python string      // the last line of pytest that says what was expected
	tests  goTests
}

// NewParser makes a Parser of what a command prints that runs in a directory of the project
// at root; both are absolute.
func NewParser(root, directory string) *parser { return &parser{paths: newPaths(root, directory)} }

// Line takes the next line, with or without its end, and returns what it tells of, mostly
// nothing.
func (p *parser) Line(line string) []diagnostic {
	line = Plain(line)
	p.paths.follow(line)
	if strings.HasPrefix(strings.TrimSpace(line), "{") {
		return p.finish(p.rustJSON(line))
	}
	if list, ok := p.tests.line(line, &p.paths); ok {
		return p.finish(list)
	}
	for _, style := range []func(string) (diagnostic, bool){p.rustText, p.stylish, typescript, p.pytest, makefile, compiler} {
		if d, ok := style(line); ok {
			return p.finish([]diagnostic{d})
		}
	}
	return nil
}

// finish gives diagnostics the names of files that everybody knows, and leaves out what
// names no file.
func (p *parser) finish(list []diagnostic) (out []diagnostic) {
	for _, d := range list {
		if d.File = p.paths.name(d.File); d.File == "" {
			continue
		}
		d.Message = strings.TrimSpace(cut(d.Message, maxMessage))
		if d.Message != "" {
			out = append(out, d)
		}
	}
	return out
}

// DiagnosticParse finds the diagnostics in a whole output.
func DiagnosticParse(root, directory, output string) (list []diagnostic) {
	p := NewParser(root, directory)
	for line := range strings.Lines(output) {
		list = append(list, p.Line(line)...)
	}
	return list
}
