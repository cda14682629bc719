package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

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

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// madeOf reports whether s begins with a byte of first and continues with bytes of rest.
func madeOf(s, first, rest string) bool {
	return s != "" && strings.IndexByte(first, s[0]) >= 0 && strings.Trim(s[1:], rest) == ""
}

// The checks of values below return errors that complete the sentence "expected …".

// anything accepts every value.
func anything(string) error { return nil }

// checkName checks the name of an agent, a service or similar.
func checkName(s string) error {
	if len(s) > 64 || !madeOf(s, letters+digits, letters+digits+"._-") {
		return errors.New("a name of up to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit")
	}
	return nil
}

// checkVariable checks the name of an environment variable.
func checkVariable(s string) error {
	if !madeOf(s, letters+"_", letters+digits+"_") {
		return errors.New("the name of an environment variable, such as ANTHROPIC_API_KEY")
	}
	return nil
}

// checkVariables checks the name of an environment variable, or the beginning of names with a *
// behind it.
func checkVariables(s string) error {
	if checkVariable(strings.TrimSuffix(s, "*")) != nil {
		return errors.New("the name of an environment variable, such as ANTHROPIC_API_KEY, or the beginning of names, such as ANTHROPIC_*")
	}
	return nil
}

// maxGlob bounds a pattern, in bytes: each tool call is matched with all.
const maxGlob = 1024

// checkGlob checks a pattern of [path.Match], of at most 1,024 bytes.
func checkGlob(s string) error {
	if len(s) > maxGlob {
		return fmt.Errorf("a pattern of at most %d bytes", maxGlob)
	}
	if _, err := path.Match(s, ""); err != nil {
		return errors.New("a pattern with * ? [ab] (a [ that is meant is written \\[)")
	}
	return nil
}

// oneOf checks that a value is one of accepted.
func oneOf(accepted ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(accepted, s) {
			return nil
		}
		quoted := make([]string, len(accepted))
		for i, a := range accepted {
			quoted[i] = strconv.Quote(a)
		}
		last := len(quoted) - 1
		return fmt.Errorf("%s or %s", strings.Join(quoted[:last], ", "), quoted[last])
	}
}

// wholeRange describes the valid numbers in words.
func wholeRange(least, most int) string {
	return fmt.Sprintf("a whole number from %d to %d", least, most)
}

func durationRange(least, most time.Duration) string {
	return fmt.Sprintf(`a time from %s to %s, such as "90s" or "2h"`, shortDuration(least), shortDuration(most))
}

// shortDuration writes 2h0m0s as 2h.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// fileNames makes the names of files in a configuration absolute.
type fileNames struct{ Base, Home string }

// Program makes the first word absolute if it is more than a name.
func (f fileNames) Program(words []string) []string {
	if len(words) > 0 {
		words[0] = f.Path(words[0], false)
	}
	return words
}

// Path makes a name absolute: ~/ is the home directory, and a relative name is relative to the
// directory of the configuration. A bare name stays, for a look-up on PATH, unless it can only
// be a file's.
func (f fileNames) Path(name string, isFile bool) string {
	switch rest, inHome := strings.CutPrefix(name, "~/"); {
	case name == "":
		return ""
	case inHome && f.Home != "":
		return filepath.Join(f.Home, rest)
	case filepath.IsAbs(name) || !isFile && !strings.ContainsAny(name, `/`+string(filepath.Separator)):
		return name
	}
	return filepath.Join(f.Base, name)
}

// Problem is one problem of a configuration. It never contains a value that could be a secret.
type Problem struct {
	File    string `json:"file,omitempty"`   // the path; empty for the environment and flags
	Name    string `json:"name"`             // of the file, the variable or the flag, for display
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

// A Table is one table of a document. Its methods return nil for a missing key, and for one
// whose value is wrong, which they record.
type Table struct {
	Values map[string]any

	doc   *Document
	path  []string
	place string // " in [limits]", empty for the document itself
}

// Table returns the document's top table.
func (d *Document) Table() Table { return Table{doc: d, Values: d.Root} }

// File returns the document's display name.
func (t Table) File() string { return t.doc.Name }

// Path returns the name of the table, part by part.
func (t Table) Path() []string { return t.path }

// At returns the place of the table.
func (t Table) At() documentPlace { return t.doc.KeyAt(t.path) }

// WrongHere records a problem of the table itself.
func (t Table) WrongHere(format string, args ...any) { t.doc.Wrong(t.At(), format, args...) }

// Has reports whether the table has a key, whatever its value.
func (t Table) Has(key string) bool {
	_, has := t.Values[key]
	return has
}

// below returns the path of a key. It never shares memory with another.
func (t Table) below(key string) []string { return append(t.path[:len(t.path):len(t.path)], key) }

// sub returns a table below this one.
func (t Table) sub(key string, values map[string]any, place string) Table {
	return Table{doc: t.doc, path: t.below(key), Values: values, place: place}
}

// Only records every unknown key.
func (t Table) Only(known []string) {
	for _, key := range slices.Sorted(maps.Keys(t.Values)) {
		if !slices.Contains(known, key) {
			t.doc.Wrong(t.doc.KeyAt(t.below(key)), "unknown key %s%s%s", quoteShort(key), t.place, didYouMean(key, known))
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
	t.doc.Wrong(t.doc.KeyAt(t.path), "%s is missing%s: %s", key, t.place, what)
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

// Text returns a string that must not be empty.
func (t Table) Text(key string) *string {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		t.Wrong(key, "a string", valueKind(v))
		return nil
	}
	if s == "" || strings.ContainsRune(s, 0) {
		t.Wrong(key, "a string that is not empty and has no NUL in it", "")
		return nil
	}
	return &s
}

// Checked returns a string that check accepts.
func (t Table) Checked(key string, check func(string) error) *string {
	s := t.Text(key)
	if s == nil {
		return nil
	}
	if err := check(*s); err != nil {
		t.Wrong(key, err.Error(), quoteShort(*s))
		return nil
	}
	return s
}

// Discreet is [Table.Checked] for a key where people may put a secret by mistake.
func (t Table) Discreet(key string, check func(string) error) *string {
	s := t.Text(key)
	if s == nil {
		return nil
	}
	if err := check(*s); err != nil {
		t.Wrong(key, err.Error(), "something else")
		return nil
	}
	return s
}

// Whole returns an integer between two limits, inclusive.
func (t Table) Whole(key string, least, most int) *int {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	n, ok := v.(int64)
	if !ok {
		t.Wrong(key, wholeRange(least, most), valueKind(v))
		return nil
	}
	if n < int64(least) || n > int64(most) {
		t.Wrong(key, wholeRange(least, most), strconv.FormatInt(n, 10))
		return nil
	}
	whole := int(n)
	return &whole
}

// Number returns a number, whole or not, between two limits, inclusive.
func (t Table) Number(key string, least, most float64) *float64 {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	expected := fmt.Sprintf("a number from %s to %s", strconv.FormatFloat(least, 'f', -1, 64), strconv.FormatFloat(most, 'f', -1, 64))
	n, ok := v.(float64)
	if whole, isWhole := v.(int64); isWhole {
		n, ok = float64(whole), true
	}
	if !ok {
		t.Wrong(key, expected, valueKind(v))
		return nil
	}
	if !(n >= least && n <= most) {
		t.Wrong(key, expected, strconv.FormatFloat(n, 'g', -1, 64))
		return nil
	}
	return &n
}

// Flag returns true or false.
func (t Table) Flag(key string) *bool {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	yes, ok := v.(bool)
	if !ok {
		t.Wrong(key, "true or false", valueKind(v))
		return nil
	}
	return &yes
}

// Duration returns a duration from a string such as "2h", between two limits, inclusive.
func (t Table) Duration(key string, least, most time.Duration) *time.Duration {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		t.Wrong(key, durationRange(least, most), valueKind(v))
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		t.Wrong(key, durationRange(least, most), quoteShort(s))
		return nil
	}
	return &d
}

// Texts returns an array of strings. Problems do not quote its elements.
func (t Table) Texts(key string, check func(string) error) []string {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		t.Wrong(key, `an array of strings, such as ["one", "two"]`, valueKind(v))
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

// wrongItem is [Table.Wrong] for one element of an array.
func (t Table) wrongItem(key string, i int, expected, found string) {
	at := t.doc.ValueAt(append(t.below(key), strconv.Itoa(i)))
	t.doc.Wrong(at, "value %d of %s%s: expected %s%s", i+1, key, t.place, expected, found)
}

// TextMap returns a table of strings. Problems do not quote its values.
func (t Table) TextMap(key string, CheckName, checkValue func(string) error) map[string]string {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		t.Wrong(key, `a table of strings, such as { NAME = "value" }`, valueKind(v))
		return nil
	}
	inner := t.sub(key, values, fmt.Sprintf(" of %s%s", key, t.place))
	out := make(map[string]string, len(values))
	for name, v := range values {
		if err := CheckName(name); err != nil {
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

// title returns the name of a key with those of its tables, where the key alone would be
// ambiguous.
func (t Table) title(key string) string {
	names := slices.DeleteFunc(t.below(key), func(part string) bool { return strings.Trim(part, "0123456789") == "" })
	return strings.Join(names, ".")
}

// Sub returns the table [key], and whether there is one; it records a problem if the value is
// not a table.
func (t Table) Sub(key string) (Table, bool) {
	v, ok := t.Values[key]
	if !ok {
		return Table{}, false
	}
	values, ok := v.(map[string]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("a table, [%s]", t.title(key)), valueKind(v))
		return Table{}, false
	}
	return t.sub(key, values, fmt.Sprintf(" in [%s]", t.title(key))), true
}

// Tables returns the tables of a table, by name: [agents.NAME]. If there are more than most it
// returns none.
func (t Table) Tables(key string, most int) map[string]Table {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("tables such as [%s.NAME]", key), valueKind(v))
		return nil
	}
	if len(values) > most {
		t.doc.Wrong(t.doc.KeyAt(t.below(key)), "there are more than %d tables [%s.NAME]", most, key)
		return nil
	}
	outer := t.sub(key, values, fmt.Sprintf(" in [%s]", key))
	out := make(map[string]Table, len(values))
	for name, v := range values {
		title := key + "." + name
		if err := checkName(name); err != nil {
			t.doc.Wrong(t.doc.KeyAt(outer.below(name)), "the name of [%s.NAME]: expected %v, found %s", key, err, quoteShort(name))
			continue
		}
		inner, ok := v.(map[string]any)
		if !ok {
			outer.Wrong(name, fmt.Sprintf("a table, [%s]", title), valueKind(v))
			continue
		}
		out[name] = outer.sub(name, inner, fmt.Sprintf(" in [%s]", title))
	}
	return out
}

// List returns an array of tables: [[rules]]. If there are more than most it returns none.
func (t Table) List(key, title string, most int) []Table {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	values, ok := v.([]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("tables, each begun with [[%s]]", title), valueKind(v))
		return nil
	}
	if len(values) > most {
		t.doc.Wrong(t.doc.KeyAt(append(t.below(key), strconv.Itoa(most))), "there are more than %d tables [[%s]]", most, title)
		return nil
	}
	outer := t.sub(key, nil, t.place)
	var out []Table
	for i, v := range values {
		inner, ok := v.(map[string]any)
		if !ok {
			t.wrongItem(key, i, fmt.Sprintf("a table, [[%s]]", title), ", found "+valueKind(v))
			continue
		}
		out = append(out, outer.sub(strconv.Itoa(i), inner, fmt.Sprintf(" in [[%s]]", title)))
	}
	return out
}

// Command returns the words of a command: at least one, the first not empty.
func (t Table) Command(key string) []string {
	words := t.Texts(key, anything)
	if words != nil && (len(words) == 0 || words[0] == "") {
		t.Wrong(key, `a program and its arguments, such as ["program", "argument"]`, "no program")
	}
	return words
}
