package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// table is one table of a document. Its methods give nil for a key that is not
// there, and for one whose value is wrong, which they note.
type table struct {
	doc    *document
	path   []string
	values map[string]any
	place  string // " in [limits]", empty for the document itself
}

func (d *document) table() table { return table{doc: d, values: d.root} }

// below is the path of a key. It never shares memory with another.
func (t table) below(key string) []string { return append(t.path[:len(t.path):len(t.path)], key) }

func (t table) sub(key string, values map[string]any, place string) table {
	return table{doc: t.doc, path: t.below(key), values: values, place: place}
}

// only notes every key that is not known.
func (t table) only(known []string) {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		if !slices.Contains(known, key) {
			t.doc.wrong(t.doc.keyAt(t.below(key)), "unknown key %s%s%s", quoteShort(key), t.place, didYouMean(key, known))
		}
	}
}

// wrong notes that the value of key is not what was expected. found is what
// to say of it, empty where it may be a secret.
func (t table) wrong(key, expected, found string) {
	if found != "" {
		found = ", found " + found
	}
	t.doc.wrong(t.doc.valueAt(t.below(key)), "%s%s: expected %s%s", key, t.place, expected, found)
}

// missing notes that the table lacks a key.
func (t table) missing(key, what string) {
	t.doc.wrong(t.doc.keyAt(t.path), "%s is missing%s: %s", key, t.place, what)
}

// kind says in words what a value is, without telling the value.
func kind(v any) string {
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

// text is a string that must not be empty.
func (t table) text(key string) *string {
	v, ok := t.values[key]
	if !ok {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		t.wrong(key, "a string", kind(v))
		return nil
	}
	if s == "" || strings.ContainsRune(s, 0) {
		t.wrong(key, "a string that is not empty and has no NUL in it", "")
		return nil
	}
	return &s
}

// checked is a string that check says nothing against.
func (t table) checked(key string, check func(string) error) *string {
	s := t.text(key)
	if s == nil {
		return nil
	}
	if err := check(*s); err != nil {
		t.wrong(key, err.Error(), quoteShort(*s))
		return nil
	}
	return s
}

// discreet is [table.checked] for where people put a secret by mistake.
func (t table) discreet(key string, check func(string) error) *string {
	s := t.text(key)
	if s == nil {
		return nil
	}
	if err := check(*s); err != nil {
		t.wrong(key, err.Error(), "something else")
		return nil
	}
	return s
}

// whole is a number between two others, both allowed.
func (t table) whole(key string, least, most int) *int {
	v, ok := t.values[key]
	if !ok {
		return nil
	}
	n, ok := v.(int64)
	if !ok {
		t.wrong(key, wholeRange(least, most), kind(v))
		return nil
	}
	if n < int64(least) || n > int64(most) {
		t.wrong(key, wholeRange(least, most), strconv.FormatInt(n, 10))
		return nil
	}
	whole := int(n)
	return &whole
}

// flag is true or false.
func (t table) flag(key string) *bool {
	v, ok := t.values[key]
	if !ok {
		return nil
	}
	yes, ok := v.(bool)
	if !ok {
		t.wrong(key, "true or false", kind(v))
		return nil
	}
	return &yes
}

// duration is a string such as "2h" between two durations, both allowed.
func (t table) duration(key string, least, most time.Duration) *time.Duration {
	v, ok := t.values[key]
	if !ok {
		return nil
	}
	s, ok := v.(string)
	if !ok {
		t.wrong(key, durationRange(least, most), kind(v))
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		t.wrong(key, durationRange(least, most), quoteShort(s))
		return nil
	}
	return &d
}

// texts is an array of strings. What is in it is not told in problems.
func (t table) texts(key string, check func(string) error) []string {
	v, ok := t.values[key]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		t.wrong(key, `an array of strings, such as ["one", "two"]`, kind(v))
		return nil
	}
	out := make([]string, 0, len(list))
	for i, v := range list {
		s, ok := v.(string)
		switch {
		case !ok:
			t.wrongItem(key, i, "a string", ", found "+kind(v))
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

// wrongItem is [table.wrong] for one value of an array.
func (t table) wrongItem(key string, i int, expected, found string) {
	at := t.doc.valueAt(append(t.below(key), strconv.Itoa(i)))
	t.doc.wrong(at, "value %d of %s%s: expected %s%s", i+1, key, t.place, expected, found)
}

// textMap is a table of strings. Its values are not told in problems.
func (t table) textMap(key string, checkName, checkValue func(string) error) map[string]string {
	v, ok := t.values[key]
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		t.wrong(key, `a table of strings, such as { NAME = "value" }`, kind(v))
		return nil
	}
	inner := t.sub(key, values, fmt.Sprintf(" of %s%s", key, t.place))
	out := make(map[string]string, len(values))
	for name, v := range values {
		if err := checkName(name); err != nil {
			t.doc.wrong(t.doc.keyAt(inner.below(name)), "a key%s: expected %v, found %s", inner.place, err, quoteShort(name))
			continue
		}
		s, ok := v.(string)
		switch {
		case !ok:
			inner.wrong(name, "a string", kind(v))
		case strings.ContainsRune(s, 0):
			inner.wrong(name, "a string without NUL", "")
		default:
			if err := checkValue(s); err != nil {
				inner.wrong(name, err.Error(), "")
			}
		}
		out[name] = s
	}
	return out
}

// tables are the tables of a table, by name: [agents.NAME]. Where there are
// more than most it gives none.
func (t table) tables(key string, most int) map[string]table {
	v, ok := t.values[key]
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		t.wrong(key, fmt.Sprintf("tables such as [%s.NAME]", key), kind(v))
		return nil
	}
	if len(values) > most {
		t.doc.wrong(t.doc.keyAt(t.below(key)), "there are more than %d tables [%s.NAME]", most, key)
		return nil
	}
	outer := t.sub(key, values, fmt.Sprintf(" in [%s]", key))
	out := make(map[string]table, len(values))
	for name, v := range values {
		title := key + "." + name
		if err := checkName(name); err != nil {
			t.doc.wrong(t.doc.keyAt(outer.below(name)), "the name of [%s.NAME]: expected %v, found %s", key, err, quoteShort(name))
			continue
		}
		inner, ok := v.(map[string]any)
		if !ok {
			outer.wrong(name, fmt.Sprintf("a table, [%s]", title), kind(v))
			continue
		}
		out[name] = outer.sub(name, inner, fmt.Sprintf(" in [%s]", title))
	}
	return out
}

// list is an array of tables: [[rules]]. Where there are more than most it gives
// none.
func (t table) list(key, title string, most int) []table {
	v, ok := t.values[key]
	if !ok {
		return nil
	}
	values, ok := v.([]any)
	if !ok {
		t.wrong(key, fmt.Sprintf("tables, each begun with [[%s]]", title), kind(v))
		return nil
	}
	if len(values) > most {
		t.doc.wrong(t.doc.keyAt(append(t.below(key), strconv.Itoa(most))), "there are more than %d tables [[%s]]", most, title)
		return nil
	}
	outer := t.sub(key, nil, t.place)
	var out []table
	for i, v := range values {
		inner, ok := v.(map[string]any)
		if !ok {
			t.wrongItem(key, i, fmt.Sprintf("a table, [[%s]]", title), ", found "+kind(v))
			continue
		}
		out = append(out, outer.sub(strconv.Itoa(i), inner, fmt.Sprintf(" in [[%s]]", title)))
	}
	return out
}
