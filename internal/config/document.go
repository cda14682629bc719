package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// place is where something stands, from 1; columns are bytes.
type place struct{ line, column int }

// document is a TOML file, the places of what is in it and what is wrong with
// it.
type document struct {
	path     string // empty for what is no file
	name     string // for people
	content  []byte
	root     map[string]any
	keys     map[string]place // by joined path
	values   map[string]place
	problems []Problem
}

// parse reads content as TOML. Where it is none, or crosses a bound, root is
// empty and the problem is in problems.
func parse(path, name string, content []byte, most bounds) *document {
	d := &document{path: path, name: name, content: content}
	if c := most.document.Check(content); c != nil {
		d.wrong(place{c.Line, c.Column}, "%s: that is too much for a configuration", c.Text)
		return d
	}
	var root map[string]any
	if err := toml.Unmarshal(content, &root); err != nil {
		at := place{}
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			at.line, at.column = syntax.Position()
		}
		d.wrong(at, "this is not TOML: %s", cutShort(strings.TrimPrefix(err.Error(), "toml: "), 200))
		return d
	}
	d.root = root
	d.locate()
	return d
}

func (d *document) wrong(at place, format string, args ...any) {
	d.problems = append(d.problems, Problem{
		File: d.path, Name: d.name, Line: at.line, Column: at.column, Message: fmt.Sprintf(format, args...),
	})
}

// joined is a path as the key of a map.
func joined(path []string) string { return strings.Join(path, "\x00") }

// locator finds the places of a document's keys and values.
type locator struct {
	d      *document
	parser unstable.Parser
	lines  []int          // where each line begins; the parser counts them anew for each place
	arrays map[string]int // how many tables [[path]] has begun
}

// locate fills keys and values. The decoder tells no places, so the document,
// which is known to be good, is walked again.
func (d *document) locate() {
	d.keys, d.values = map[string]place{}, map[string]place{}
	l := locator{d: d, lines: []int{0}, arrays: map[string]int{}}
	for i, c := range d.content {
		if c == '\n' {
			l.lines = append(l.lines, i+1)
		}
	}
	l.parser.Reset(d.content)
	var table []string
	for l.parser.NextExpression() {
		switch node := l.parser.Expression(); node.Kind {
		case unstable.Table:
			table, _ = l.header(node)
		case unstable.ArrayTable:
			var at place
			table, at = l.header(node)
			n := l.arrays[joined(table)]
			l.arrays[joined(table)]++
			l.d.keys[joined(append(table[:len(table):len(table)], strconv.Itoa(n)))] = at
			table = append(table, strconv.Itoa(n))
		case unstable.KeyValue:
			l.pair(table, node)
		}
	}
}

func (l *locator) at(node *unstable.Node) place {
	offset := int(node.Raw.Offset)
	line, exact := slices.BinarySearch(l.lines, offset)
	if !exact {
		line--
	}
	return place{line + 1, offset - l.lines[line] + 1}
}

// header gives the path of a table, with the index of the last table wherever
// an array of tables is passed through, and where the last part stands.
func (l *locator) header(node *unstable.Node) (path []string, at place) {
	for it := node.Key(); it.Next(); {
		key := it.Node()
		path, at = append(path, string(key.Data)), l.at(key)
		l.d.note(l.d.keys, path, at)
		if n := l.arrays[joined(path)]; n > 0 && !it.IsLast() {
			path = append(path, strconv.Itoa(n-1))
		}
	}
	return path, at
}

func (l *locator) pair(table []string, node *unstable.Node) {
	path := append([]string(nil), table...)
	var at place
	for it := node.Key(); it.Next(); {
		at = l.at(it.Node())
		path = append(path, string(it.Node().Data))
		l.d.note(l.d.keys, path, at)
	}
	l.value(path, node.Value(), at)
}

// value notes the place of a value. An array has none of its own: its key's.
func (l *locator) value(path []string, node *unstable.Node, keyAt place) {
	at := keyAt
	if node.Raw.Length > 0 {
		at = l.at(node)
	}
	l.d.note(l.d.values, path, at)
	switch node.Kind {
	case unstable.InlineTable:
		for it := node.Children(); it.Next(); {
			l.pair(path, it.Node())
		}
	case unstable.Array:
		i := 0
		for it := node.Children(); it.Next(); i++ {
			l.value(append(path[:len(path):len(path)], strconv.Itoa(i)), it.Node(), at)
		}
	}
}

// note keeps the first place of a path.
func (d *document) note(places map[string]place, path []string, at place) {
	if _, known := places[joined(path)]; !known {
		places[joined(path)] = at
	}
}

func (d *document) keyAt(path []string) place { return d.keys[joined(path)] }

// valueAt is the place of a value, or of what names it: a table that was
// written with a header has no other.
func (d *document) valueAt(path []string) place {
	if at, ok := d.values[joined(path)]; ok {
		return at
	}
	return d.keyAt(path)
}

// shorten writes the user's home directory as ~.
func shorten(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, getenv("HOME")+string(filepath.Separator)); ok && getenv("HOME") != "" {
		return filepath.Join("~", rest)
	}
	return path
}
