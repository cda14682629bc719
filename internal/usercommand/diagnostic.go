package usercommand

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file finds diagnostics in the output of compilers, linters and test runners.
//
// A [parser] reads the output line by line. It knows the styles of Go and its tests, GCC and Clang,
// TypeScript, Rust (text and JSON), ESLint, pytest and the GNU coding standards, which other tools
// follow. It skips unknown lines. It reads no files except go.mod, after failed Go tests.

// diagnostic is a problem at a place.
type diagnostic = domain.Diagnostic

// The severities.
const (
	DiagnosticError = domain.SeverityError
	Warning         = domain.SeverityWarning
	Note            = domain.SeverityNote
)

// maxLine limits the examined part of a line, and maxMessage a message, in bytes.
const (
	maxLine    = 64 << 10
	maxMessage = 4 << 10
)

// parser finds diagnostics. It is for one goroutine at a time.
type parser struct {
	paths  paths
	eslint string      // the file of the following lines, in ESLint's own style
	rust   *diagnostic // has a message and waits for its place
	python string      // pytest's last line with an expectation
	tests  goTests
}

// NewParser returns a parser for the output of a command in a directory of the project at root.
// Both paths are absolute.
func NewParser(root, directory string) *parser { return &parser{paths: newPaths(root, directory)} }

// Line parses the next line, with or without its end, and returns its diagnostics, mostly none.
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

// finish makes file names relative to the project, and drops diagnostics without a file.
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

// DiagnosticParse returns the diagnostics in a whole output.
func DiagnosticParse(root, directory, output string) (list []diagnostic) {
	p := NewParser(root, directory)
	for line := range strings.Lines(output) {
		list = append(list, p.Line(line)...)
	}
	return list
}
