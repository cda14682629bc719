package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// This file reads TOML, key by key, and records all problems in it with their places. It knows
// no key: the callers define what a configuration may contain. Values may be secrets, so
// problems quote them only if they cannot be.

// A documentPlace is a position, from 1; columns are bytes. The zero value is no position.
type documentPlace struct{ Line, Column int }

// A Document is a TOML file with the places of its content and its problems. The zero Document
// is empty.
type Document struct {
	Path     string // empty if it is not a file
	Name     string // for display
	Content  []byte // as it is in the file
	Root     map[string]any
	Problems []Problem

	files  fileNames
	keys   map[string]documentPlace // by joined path
	values map[string]documentPlace
}

// ParseDocument parses content as TOML. If it is invalid, or crosses a bound, Root is empty and
// Problems has the problem.
func ParseDocument(path, name string, content []byte, most Bounds) *Document {
	d := &Document{Path: path, Name: name, Content: content}
	text := d.text()
	if c := most.Check(text); c != nil {
		d.Wrong(documentPlace{c.Line, c.Column}, "%s: that is too much for a configuration", c.Text)
		return d
	}
	var root map[string]any
	if err := toml.Unmarshal(text, &root); err != nil {
		at := documentPlace{}
		if syntax, ok := errors.AsType[*toml.DecodeError](err); ok {
			at.Line, at.Column = syntax.Position()
		}
		d.Wrong(at, "this is not TOML: %s", cutShort(strings.TrimPrefix(err.Error(), "toml: "), 200))
		return d
	}
	d.Root = root
	d.locate()
	return d
}

// text returns the content without the byte order mark that some editors write, and that the
// parser does not accept.
func (d *Document) text() []byte { return bytes.TrimPrefix(d.Content, []byte("\ufeff")) }

// Wrong records a problem.
func (d *Document) Wrong(at documentPlace, format string, args ...any) {
	d.Problems = append(d.Problems, Problem{
		File: d.Path, Name: d.Name, Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...),
	})
}

// joined returns a path as the key of a map.
func joined(path []string) string { return strings.Join(path, "\x00") }

// locator finds the places of a document's keys and values.
type locator struct {
	d      *Document
	parser unstable.Parser
	lines  []int          // first byte of each line; the parser would count lines again for each place
	arrays map[string]int // how many tables [[path]] has opened
}

// locate fills keys and values. The decoder reports no places, so it walks the document, which
// is valid, again.
func (d *Document) locate() {
	d.keys, d.values = map[string]documentPlace{}, map[string]documentPlace{}
	l := locator{d: d, lines: []int{0}, arrays: map[string]int{}}
	for i, c := range d.text() {
		if c == '\n' {
			l.lines = append(l.lines, i+1)
		}
	}
	l.parser.Reset(d.text())
	var table []string
	for l.parser.NextExpression() {
		switch node := l.parser.Expression(); node.Kind {
		case unstable.Table:
			table, _ = l.header(node)
		case unstable.ArrayTable:
			var at documentPlace
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

func (l *locator) at(node *unstable.Node) documentPlace {
	offset := int(node.Raw.Offset)
	line, exact := slices.BinarySearch(l.lines, offset)
	if !exact {
		line--
	}
	return documentPlace{line + 1, offset - l.lines[line] + 1}
}

// header returns the path of a table, with the index of the last table for each array of tables
// on the way, and the place of the last part.
func (l *locator) header(node *unstable.Node) (path []string, at documentPlace) {
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
	var at documentPlace
	for it := node.Key(); it.Next(); {
		at = l.at(it.Node())
		path = append(path, string(it.Node().Data))
		l.d.note(l.d.keys, path, at)
	}
	l.value(path, node.Value(), at)
}

// value records the place of a value. An array has none of its own: it gets its key's.
func (l *locator) value(path []string, node *unstable.Node, keyAt documentPlace) {
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

// note records the first place of a path.
func (d *Document) note(places map[string]documentPlace, path []string, at documentPlace) {
	if _, known := places[joined(path)]; !known {
		places[joined(path)] = at
	}
}

// KeyAt returns the place of a key or a table; the zero place if there is none.
func (d *Document) KeyAt(path []string) documentPlace { return d.keys[joined(path)] }

// ValueAt returns the place of a value, or of its key: a table with a header has no other.
func (d *Document) ValueAt(path []string) documentPlace {
	if at, ok := d.values[joined(path)]; ok {
		return at
	}
	return d.KeyAt(path)
}

// Value returns a value as written.
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

// Problem is one problem of a configuration. It never contains a value that could be a secret.
type Problem struct {
	File    string `json:"file,omitempty"`   // the path; empty for the environment
	Name    string `json:"name"`             // of the file or the variable, for display
	Line    int    `json:"line,omitempty"`   // from 1; 0 if the problem has no place
	Column  int    `json:"column,omitempty"` // in bytes, from 1
	Message string `json:"message"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.Name, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Name, p.Line, p.Column, p.Message)
}

// sortProblems sorts problems by place.
func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// didYouMean returns a hint with the known word nearest to an unknown one, or "" if none is
// near.
func didYouMean(unknown string, known []string) string {
	best, bestDistance := "", max(1, min(3, len(unknown)/3))+1
	for _, word := range known {
		if d := distance(unknown, word); d < bestDistance {
			best, bestDistance = word, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// fewKeys is how many keys a hint lists.
const fewKeys = 5

// hint returns the known key nearest to an unknown one, or else a few known keys.
func hint(unknown string, known []string) string {
	near := didYouMean(unknown, known)
	if near == "" && len(known) <= fewKeys {
		return fmt.Sprintf(" (the keys are %s)", strings.Join(known, ", "))
	}
	return near
}

// distance returns the Levenshtein distance, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// quoteShort returns a value for a problem: quoted, so that it cannot control a terminal, and
// shortened.
func quoteShort(s string) string {
	const most = 40
	return strconv.Quote(cutShort(s, most))
}

// cutShort returns the beginning of a text, at most so many characters of it.
func cutShort(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// A Table is one table of a document. Its methods record the problems in it.
type Table struct {
	Values map[string]any

	doc   *Document
	path  []string // of keys and of indices of arrays
	title string   // such as limits or agents.claude; "" for the document itself
	place string   // " in [limits]", "" for the document itself
}

// Table returns the document's top table.
func (d *Document) Table() Table { return Table{doc: d, Values: d.Root} }

// At returns the place of the table.
func (t Table) At() documentPlace { return t.doc.KeyAt(t.path) }

// Has reports whether the table has a key, whatever its value.
func (t Table) Has(key string) bool {
	_, has := t.Values[key]
	return has
}

// below returns the path of a key. It never shares memory with another.
func (t Table) below(key string) []string { return append(t.path[:len(t.path):len(t.path)], key) }

// named returns the title of a table below this one.
func (t Table) named(key string) string {
	if t.title == "" {
		return key
	}
	return t.title + "." + key
}

// Only records every unknown key.
func (t Table) Only(known []string) {
	for _, key := range slices.Sorted(maps.Keys(t.Values)) {
		if !slices.Contains(known, key) {
			t.doc.Wrong(t.doc.KeyAt(t.below(key)), "unknown key %s%s%s", quoteShort(key), t.place, hint(key, known))
		}
	}
}

// Wrong records that the value of key is not the expected one. found describes the value; empty
// if it may be a secret.
func (t Table) Wrong(key, expected, found string) {
	if found != "" {
		found = ", found " + found
	}
	t.doc.Wrong(t.doc.ValueAt(t.below(key)), "%s%s: expected %s%s", key, t.place, expected, found)
}

// Missing records that the table lacks a key.
func (t Table) Missing(key, what string) {
	t.doc.Wrong(t.At(), "%s is missing%s: %s", key, t.place, what)
}

// valueKind describes the kind of a value in words, without its content.
func valueKind(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case bool:
		return "true or false"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// wrongItem is [Table.Wrong] for one element of an array.
func (t Table) wrongItem(key string, i int, expected, found string) {
	at := t.doc.ValueAt(append(t.below(key), strconv.Itoa(i)))
	t.doc.Wrong(at, "value %d of %s%s: expected %s%s", i+1, key, t.place, expected, found)
}

// texts returns an array of strings; nil if there is none.
func (t Table) texts(key string, check func(string) error) []string {
	list, ok := t.Values[key].([]any)
	if !ok {
		t.Wrong(key, `an array of strings, such as ["one", "two"]`, valueKind(t.Values[key]))
		return nil
	}
	out := make([]string, 0, len(list))
	for i, v := range list {
		s, ok := v.(string)
		switch {
		case !ok:
			t.wrongItem(key, i, "a string", ", found "+valueKind(v))
		case strings.ContainsRune(s, 0):
			t.wrongItem(key, i, "a string without NUL", "")
		default:
			if err := check(s); err != nil {
				t.wrongItem(key, i, err.Error(), "")
			}
		}
		out = append(out, s)
	}
	return out
}

// textMap returns a table of strings; nil if there is none.
func (t Table) textMap(key string, checkKey, checkValue func(string) error) map[string]string {
	values, ok := t.Values[key].(map[string]any)
	if !ok {
		t.Wrong(key, `a table of strings, such as { NAME = "value" }`, valueKind(t.Values[key]))
		return nil
	}
	inner := Table{doc: t.doc, path: t.below(key), Values: values, place: fmt.Sprintf(" of %s%s", key, t.place)}
	out := make(map[string]string, len(values))
	for name, v := range values {
		if err := checkKey(name); err != nil {
			t.doc.Wrong(t.doc.KeyAt(inner.below(name)), "a key%s: expected %v, found %s", inner.place, err, quoteShort(name))
			continue
		}
		s, ok := v.(string)
		switch {
		case !ok:
			inner.Wrong(name, "a string", valueKind(v))
		case strings.ContainsRune(s, 0):
			inner.Wrong(name, "a string without NUL", "")
		default:
			if err := checkValue(s); err != nil {
				inner.Wrong(name, err.Error(), "")
			}
		}
		out[name] = s
	}
	return out
}

// Sub returns the table [key]; ok is false if the value is not a table.
func (t Table) Sub(key string) (sub Table, ok bool) {
	title := t.named(key)
	values, ok := t.Values[key].(map[string]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("a table, [%s]", title), valueKind(t.Values[key]))
	}
	return Table{doc: t.doc, path: t.below(key), Values: values, title: title, place: fmt.Sprintf(" in [%s]", title)}, ok
}

// Tables returns the tables of a table, sorted by name: [agents.NAME]. If there are more than most it
// returns none.
func (t Table) Tables(key string, most int) (names []string, sub map[string]Table) {
	values, ok := t.Values[key].(map[string]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("tables such as [%s.NAME]", key), valueKind(t.Values[key]))
		return nil, nil
	}
	if len(values) > most {
		t.doc.Wrong(t.doc.KeyAt(t.below(key)), "there are more than %d tables [%s.NAME]", most, key)
		return nil, nil
	}
	outer, _ := t.Sub(key)
	sub = make(map[string]Table, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := checkName(name); err != nil {
			t.doc.Wrong(t.doc.KeyAt(outer.below(name)), "the name of [%s.NAME]: expected %v, found %s", key, err, quoteShort(name))
		} else if table, ok := outer.Sub(name); ok {
			names, sub[name] = append(names, name), table
		}
	}
	return names, sub
}

// List returns an array of tables: [[rules]]. If there are more than most it returns none.
func (t Table) List(key string, most int) (out []Table) {
	title := t.named(key)
	values, ok := t.Values[key].([]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("tables, each begun with [[%s]]", title), valueKind(t.Values[key]))
		return nil
	}
	if len(values) > most {
		t.doc.Wrong(t.doc.KeyAt(append(t.below(key), strconv.Itoa(most))), "there are more than %d tables [[%s]]", most, title)
		return nil
	}
	for i, v := range values {
		inner, ok := v.(map[string]any)
		if !ok {
			t.wrongItem(key, i, fmt.Sprintf("a table, [[%s]]", title), ", found "+valueKind(v))
			continue
		}
		out = append(out,
			Table{doc: t.doc, path: append(t.below(key), strconv.Itoa(i)), Values: inner, title: title, place: fmt.Sprintf(" in [[%s]]", title)})
	}
	return out
}
