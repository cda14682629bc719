// Package document reads TOML, key by key, and notes all that is wrong in it with its
// place. It knows no key: what a configuration may say is its callers' business. Values
// may be secrets, so problems tell them only where they cannot be.
package document

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/duet-rpc/duet-rpc/internal/config/bounded"
)

// A Place is where something stands, from 1; columns are bytes. The zero Place is nowhere.
type Place struct{ Line, Column int }

// A Document is a TOML file, the places of what is in it and what is wrong with
// it. The zero Document says nothing.
type Document struct {
	Path     string // empty for what is no file
	Name     string // for people
	Content  []byte
	Root     map[string]any
	Problems []Problem

	keys   map[string]Place // by joined path
	values map[string]Place
}

// Parse reads content as TOML. Where it is none, or crosses a bound, Root is
// empty and the problem is in Problems.
func Parse(path, name string, content []byte, most bounded.Bounds) *Document {
	d := &Document{Path: path, Name: name, Content: content}
	if c := most.Check(content); c != nil {
		d.Wrong(Place{c.Line, c.Column}, "%s: that is too much for a configuration", c.Text)
		return d
	}
	var root map[string]any
	if err := toml.Unmarshal(content, &root); err != nil {
		at := Place{}
		var syntax *toml.DecodeError
		if errors.As(err, &syntax) {
			at.Line, at.Column = syntax.Position()
		}
		d.Wrong(at, "this is not TOML: %s", CutShort(strings.TrimPrefix(err.Error(), "toml: "), 200))
		return d
	}
	d.Root = root
	d.locate()
	return d
}

// Wrong notes a problem.
func (d *Document) Wrong(at Place, format string, args ...any) {
	d.Problems = append(d.Problems, Problem{
		File: d.Path, Name: d.Name, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...),
	})
}

// joined is a path as the key of a map.
func joined(path []string) string { return strings.Join(path, "\x00") }

// locator finds the places of a document's keys and values.
type locator struct {
	d      *Document
	parser unstable.Parser
	lines  []int          // where each line begins; the parser counts them anew for each place
	arrays map[string]int // how many tables [[path]] has begun
}

// locate fills keys and values. The decoder tells no places, so the document,
// which is known to be good, is walked again.
func (d *Document) locate() {
	d.keys, d.values = map[string]Place{}, map[string]Place{}
	l := locator{d: d, lines: []int{0}, arrays: map[string]int{}}
	for i, c := range d.Content {
		if c == '\n' {
			l.lines = append(l.lines, i+1)
		}
	}
	l.parser.Reset(d.Content)
	var table []string
	for l.parser.NextExpression() {
		switch node := l.parser.Expression(); node.Kind {
		case unstable.Table:
			table, _ = l.header(node)
		case unstable.ArrayTable:
			var at Place
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

func (l *locator) at(node *unstable.Node) Place {
	offset := int(node.Raw.Offset)
	line, exact := slices.BinarySearch(l.lines, offset)
	if !exact {
		line--
	}
	return Place{line + 1, offset - l.lines[line] + 1}
}

// header gives the path of a table, with the index of the last table wherever
// an array of tables is passed through, and where the last part stands.
func (l *locator) header(node *unstable.Node) (path []string, at Place) {
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
	var at Place
	for it := node.Key(); it.Next(); {
		at = l.at(it.Node())
		path = append(path, string(it.Node().Data))
		l.d.note(l.d.keys, path, at)
	}
	l.value(path, node.Value(), at)
}

// value notes the place of a value. An array has none of its own: its key's.
func (l *locator) value(path []string, node *unstable.Node, keyAt Place) {
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
func (d *Document) note(places map[string]Place, path []string, at Place) {
	if _, known := places[joined(path)]; !known {
		places[joined(path)] = at
	}
}

// KeyAt is where a key or a table is named; nowhere if it is not.
func (d *Document) KeyAt(path []string) Place { return d.keys[joined(path)] }

// ValueAt is the place of a value, or of what names it: a table that was
// written with a header has no other.
func (d *Document) ValueAt(path []string) Place {
	if at, ok := d.values[joined(path)]; ok {
		return at
	}
	return d.KeyAt(path)
}

// Value looks a value up as it was written.
func (d *Document) Value(path ...string) (any, bool) {
	var v any = d.Root
	for _, key := range path {
		t, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = t[key]; !ok {
			return nil, false
		}
	}
	return v, true
}
