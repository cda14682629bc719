package usercommand

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
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

// controls matches control sequences of ECMA-48, such as colours, and OSC, such as links.
var controls = lazyregexp.New(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]`)

// Plain returns a line without its end, colours, and overwritten text.
func Plain(line string) string {
	line = strings.TrimRight(cut(line, maxLine), "\r\n")
	if strings.ContainsRune(line, '\x1b') {
		line = controls().ReplaceAllString(line, "")
	}
	if i := strings.LastIndexByte(line, '\r'); i >= 0 { // a progress bar was overwritten
		line = line[i+1:]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, "\uFFFD"))
}

// cut returns at most the first most bytes of s.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// paths tracks a tool's working directory: make reports the directories that it enters.
type paths struct {
	root    string
	entered []string // the innermost last; the first is the initial one
}

func newPaths(root, directory string) paths {
	return paths{root: filepath.Clean(root), entered: []string{filepath.Clean(directory)}}
}

// moves matches the directory messages of make, which cargo and ninja use too.
var moves = lazyregexp.New("^(?:\\S*make(?:\\[\\d+\\])?|ninja): (Entering|Leaving) directory [`'\"]?(.+?)['\"]?\\.?$")

// most limits the nesting of directories.
const most = 100

// follow records a directory message.
func (p *paths) follow(line string) {
	if !strings.Contains(line, " directory ") {
		return
	}
	m := moves().FindStringSubmatch(line)
	switch {
	case m == nil:
	case m[1] == "Entering" && len(p.entered) < most:
		p.entered = append(p.entered, p.absolute(m[2]))
	case m[1] == "Leaving" && len(p.entered) > 1:
		p.entered = p.entered[:len(p.entered)-1]
	}
}

func (p *paths) absolute(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(p.entered[len(p.entered)-1], name)
}

// name returns a file's name relative to the root, with slashes, or absolute if outside it; "" if
// it is no file.
func (p *paths) name(file string) string {
	file = strings.TrimSpace(file)
	if file == "" || strings.HasPrefix(file, "<") { // <stdin>, <built-in>, <autogenerated>
		return ""
	}
	file = p.absolute(filepath.FromSlash(file))
	if relative, err := filepath.Rel(p.root, file); err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
		file = relative
	}
	return filepath.ToSlash(file)
}

// longest limits the buffered part of a line, and roughly each piece passed on, in bytes.
const longest = 8 << 10

// Reader passes on a command's output in whole lines and finds its diagnostics. It is for one
// goroutine at a time.
type Reader struct {
	Parser *parser
	Text   func(context.Context, string) // gets whole lines, the last one possibly without its end; may be nil
	Found  func(context.Context, diagnostic)

	kept []byte // the beginning of a line
}

// Take reads a piece of output.
func (r *Reader) Take(ctx context.Context, p []byte) {
	r.kept = append(r.kept, p...)
	end := bytes.LastIndexByte(r.kept, '\n') + 1
	if end == 0 && len(r.kept) > longest {
		end = len(r.kept)
	}
	r.pass(ctx, r.kept[:end])
	r.kept = append(r.kept[:0], r.kept[end:]...)
}

// Flush passes on an unfinished last line.
func (r *Reader) Flush(ctx context.Context) {
	r.pass(ctx, r.kept)
	r.kept = nil
}

func (r *Reader) pass(ctx context.Context, p []byte) {
	text := strings.ToValidUTF8(string(p), "\uFFFD")
	if r.Text != nil {
		r.passText(ctx, text)
	}
	for line := range strings.Lines(text) {
		for _, d := range r.Parser.Line(line) {
			r.Found(ctx, d)
		}
	}
}

func (r *Reader) passText(ctx context.Context, text string) {
	var piece strings.Builder
	for line := range strings.Lines(text) {
		if piece.Len()+len(line) > longest && piece.Len() > 0 {
			r.Text(ctx, piece.String())
			piece.Reset()
		}
		piece.WriteString(line)
	}
	if piece.Len() > 0 {
		r.Text(ctx, piece.String())
	}
}
