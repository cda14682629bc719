package document

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Table is one table of a document. Its methods give nil for a key that is not
// there, and for one whose value is wrong, which they note.
type Table struct {
	Values map[string]any

	doc   *Document
	path  []string
	place string // " in [limits]", empty for the document itself
}

// Table is the document itself.
func (d *Document) Table() Table { return Table{doc: d, Values: d.Root} }

// File is what the document is called for people.
func (t Table) File() string { return t.doc.Name }

// Path is the name of the table, part by part.
func (t Table) Path() []string { return t.path }

// At is where the table begins.
func (t Table) At() Place { return t.doc.KeyAt(t.path) }

// WrongHere notes a problem of the table itself.
func (t Table) WrongHere(format string, args ...any) { t.doc.Wrong(t.At(), format, args...) }

// Has reports whether the table has a key, whatever its value.
func (t Table) Has(key string) bool {
	_, has := t.Values[key]
	return has
}

// below is the path of a key. It never shares memory with another.
func (t Table) below(key string) []string { return append(t.path[:len(t.path):len(t.path)], key) }

// sub is a table below this one.
func (t Table) sub(key string, values map[string]any, place string) Table {
	return Table{doc: t.doc, path: t.below(key), Values: values, place: place}
}

// Only notes every key that is not known.
func (t Table) Only(known []string) {
	for _, key := range slices.Sorted(maps.Keys(t.Values)) {
		if !slices.Contains(known, key) {
			t.doc.Wrong(t.doc.KeyAt(t.below(key)), "unknown key %s%s%s", QuoteShort(key), t.place, DidYouMean(key, known))
		}
	}
}

// Wrong notes that the value of key is not what was expected. found is what
// to say of it, empty where it may be a secret.
func (t Table) Wrong(key, expected, found string) {
	if found != "" {
		found = ", found " + found
	}
	t.doc.Wrong(t.doc.ValueAt(t.below(key)), "%s%s: expected %s%s", key, t.place, expected, found)
}

// Missing notes that the table lacks a key.
func (t Table) Missing(key, what string) {
	t.doc.Wrong(t.doc.KeyAt(t.path), "%s is missing%s: %s", key, t.place, what)
}

// Kind says in words what a value is, without telling the value.
func Kind(v any) string {
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

// Text is a string that must not be empty.
func (t Table) Text(key string) *string {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		t.Wrong(key, "a string", Kind(v))
		return nil
	}
	if s == "" || strings.ContainsRune(s, 0) {
		t.Wrong(key, "a string that is not empty and has no NUL in it", "")
		return nil
	}
	return &s
}

// Checked is a string that check says nothing against.
func (t Table) Checked(key string, check func(string) error) *string {
	s := t.Text(key)
	if s == nil {
		return nil
	}
	if err := check(*s); err != nil {
		t.Wrong(key, err.Error(), QuoteShort(*s))
		return nil
	}
	return s
}

// Discreet is [Table.Checked] for where people put a secret by mistake.
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

// Whole is a number between two others, both allowed.
func (t Table) Whole(key string, least, most int) *int {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	n, ok := v.(int64)
	if !ok {
		t.Wrong(key, WholeRange(least, most), Kind(v))
		return nil
	}
	if n < int64(least) || n > int64(most) {
		t.Wrong(key, WholeRange(least, most), strconv.FormatInt(n, 10))
		return nil
	}
	whole := int(n)
	return &whole
}

// Number is a number, whole or not, between two others, both allowed.
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
		t.Wrong(key, expected, Kind(v))
		return nil
	}
	if !(n >= least && n <= most) {
		t.Wrong(key, expected, strconv.FormatFloat(n, 'g', -1, 64))
		return nil
	}
	return &n
}

// Flag is true or false.
func (t Table) Flag(key string) *bool {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	yes, ok := v.(bool)
	if !ok {
		t.Wrong(key, "true or false", Kind(v))
		return nil
	}
	return &yes
}

// Duration is a string such as "2h" between two durations, both allowed.
func (t Table) Duration(key string, least, most time.Duration) *time.Duration {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		t.Wrong(key, DurationRange(least, most), Kind(v))
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		t.Wrong(key, DurationRange(least, most), QuoteShort(s))
		return nil
	}
	return &d
}

// Texts is an array of strings. What is in it is not told in problems.
func (t Table) Texts(key string, check func(string) error) []string {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		t.Wrong(key, `an array of strings, such as ["one", "two"]`, Kind(v))
		return nil
	}
	out := make([]string, 0, len(list))
	for i, v := range list {
		s, ok := v.(string)
		switch {
		case !ok:
			t.wrongItem(key, i, "a string", ", found "+Kind(v))
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

// wrongItem is [Table.Wrong] for one value of an array.
func (t Table) wrongItem(key string, i int, expected, found string) {
	at := t.doc.ValueAt(append(t.below(key), strconv.Itoa(i)))
	t.doc.Wrong(at, "value %d of %s%s: expected %s%s", i+1, key, t.place, expected, found)
}

// TextMap is a table of strings. Its values are not told in problems.
func (t Table) TextMap(key string, CheckName, checkValue func(string) error) map[string]string {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		t.Wrong(key, `a table of strings, such as { NAME = "value" }`, Kind(v))
		return nil
	}
	inner := t.sub(key, values, fmt.Sprintf(" of %s%s", key, t.place))
	out := make(map[string]string, len(values))
	for name, v := range values {
		if err := CheckName(name); err != nil {
			t.doc.Wrong(t.doc.KeyAt(inner.below(name)), "a key%s: expected %v, found %s", inner.place, err, QuoteShort(name))
			continue
		}
		s, ok := v.(string)
		switch {
		case !ok:
			inner.Wrong(name, "a string", Kind(v))
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

// title is the name of a key with those of the tables that it is in, without which one
// of several that is.
func (t Table) title(key string) string {
	names := slices.DeleteFunc(t.below(key), func(part string) bool { return strings.Trim(part, "0123456789") == "" })
	return strings.Join(names, ".")
}

// Sub is the table [key], and whether there is one; what stands in its place is noted.
func (t Table) Sub(key string) (Table, bool) {
	v, ok := t.Values[key]
	if !ok {
		return Table{}, false
	}
	values, ok := v.(map[string]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("a table, [%s]", t.title(key)), Kind(v))
		return Table{}, false
	}
	return t.sub(key, values, fmt.Sprintf(" in [%s]", t.title(key))), true
}

// Tables are the tables of a table, by name: [agents.NAME]. Where there are
// more than most it gives none.
func (t Table) Tables(key string, most int) map[string]Table {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("tables such as [%s.NAME]", key), Kind(v))
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
		if err := CheckName(name); err != nil {
			t.doc.Wrong(t.doc.KeyAt(outer.below(name)), "the name of [%s.NAME]: expected %v, found %s", key, err, QuoteShort(name))
			continue
		}
		inner, ok := v.(map[string]any)
		if !ok {
			outer.Wrong(name, fmt.Sprintf("a table, [%s]", title), Kind(v))
			continue
		}
		out[name] = outer.sub(name, inner, fmt.Sprintf(" in [%s]", title))
	}
	return out
}

// List is an array of tables: [[rules]]. Where there are more than most it gives
// none.
func (t Table) List(key, title string, most int) []Table {
	v, ok := t.Values[key]
	if !ok {
		return nil
	}
	values, ok := v.([]any)
	if !ok {
		t.Wrong(key, fmt.Sprintf("tables, each begun with [[%s]]", title), Kind(v))
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
			t.wrongItem(key, i, fmt.Sprintf("a table, [[%s]]", title), ", found "+Kind(v))
			continue
		}
		out = append(out, outer.sub(strconv.Itoa(i), inner, fmt.Sprintf(" in [[%s]]", title)))
	}
	return out
}

// Command is the words of a program: at least one, the first not empty.
func (t Table) Command(key string) []string {
	words := t.Texts(key, Anything)
	if words != nil && (len(words) == 0 || words[0] == "") {
		t.Wrong(key, `a program and its arguments, such as ["program", "argument"]`, "no program")
	}
	return words
}
