package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
)

// The fields of a struct name their columns in a tag: `db:"name"`, with these options:
//
//	key    UPDATE finds the row by it
//	auto   a key that SQLite chooses: INSERT leaves it out
//	fixed  UPDATE leaves it as INSERT wrote it
//	read   no column: a query computes it, behind all columns, in the order of the fields
//	inline (without a name) the fields of a struct; those of an embedded one need no tag
//
// Times are nanoseconds since 1970, 0 for none. A json.RawMessage, and each type that SQLite
// does not have, is JSON; its zero value is the empty text.
type column struct {
	name                   string
	index                  []int // of the field, as of [reflect.Value.FieldByIndex]
	convert                conversion
	key, auto, fixed, read bool
}

// A conversion says how a field is written as a column.
type conversion int

const (
	asIs conversion = iota // a number, a text, a truth value, bytes, or a pointer to one
	asTime
	asRaw  // JSON that stays as it is
	asJSON // any other type
)

// columns returns the columns of a struct in the order of its fields, those that are only
// read behind the others; none for a type that has no tags.
func columns(t reflect.Type) []column {
	if known, ok := columnsOf.Load(t); ok {
		return known.([]column)
	}
	written, read := collect(t, nil)
	list := append(written, read...)
	columnsOf.Store(t, list)
	return list
}

// columnsOf remembers what [columns] found out: from reflect.Type to []column.
var columnsOf sync.Map

func collect(t reflect.Type, parent []int) (written, read []column) {
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("db"), ",")
		index := append(parent[:len(parent):len(parent)], i)
		if name == "" {
			if f.Anonymous || options == "inline" {
				w, r := collect(f.Type, index)
				written, read = append(written, w...), append(read, r...)
			}
			continue
		}
		c := column{name: name, index: index, convert: conversionOf(f.Type)}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "key":
				c.key, c.fixed = true, true
			case "auto":
				c.key, c.fixed, c.auto = true, true, true
			case "fixed":
				c.fixed = true
			case "read":
				c.read = true
			default:
				panic(fmt.Sprintf("store: %s.%s: unknown option %q", t, f.Name, option))
			}
		}
		if c.read {
			read = append(read, c)
		} else {
			written = append(written, c)
		}
	}
	return written, read
}

func conversionOf(t reflect.Type) conversion {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return asTime
	case t == reflect.TypeFor[json.RawMessage]():
		return asRaw
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return asIs
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		return asJSON
	}
	return asIs
}

// A statementKey names a text that [remembered] keeps.
type statementKey struct {
	of   reflect.Type
	what string
}

var statementTexts sync.Map // from statementKey to string

// remembered returns a text that is made of a type's columns, and makes it once.
func remembered(of reflect.Type, what string, text func([]column) string) string {
	key := statementKey{of, what}
	if known, ok := statementTexts.Load(key); ok {
		return known.(string)
	}
	made := text(columns(of))
	statementTexts.Store(key, made)
	return made
}

// columnNames lists the columns of T for a SELECT, as those of a table or its alias. What is
// only read has to follow.
func columnNames[T any](table string) string {
	return remembered(reflect.TypeFor[T](), table, func(list []column) string {
		var names []string
		for _, c := range list {
			if !c.read {
				names = append(names, table+"."+c.name)
			}
		}
		return strings.Join(names, ", ")
	})
}

// insertion returns the statement that adds a row to a table, and its arguments.
func insertion[T any](table string, row *T) (query string, args []any) {
	t := reflect.TypeFor[T]()
	query = remembered(t, "INSERT "+table, func(list []column) string {
		var names []string
		for _, c := range list {
			if !c.read && !c.auto {
				names = append(names, c.name)
			}
		}
		return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(names)-1) + ")"
	})
	v := reflect.ValueOf(row).Elem()
	for _, c := range columns(t) {
		if !c.read && !c.auto {
			args = append(args, c.value(v))
		}
	}
	return query, args
}

// assignments returns "column = ?" for each column that an UPDATE writes, and the arguments.
func assignments[T any](row *T) (set string, args []any) {
	t := reflect.TypeFor[T]()
	set = remembered(t, "SET", func(list []column) string {
		var names []string
		for _, c := range list {
			if !c.read && !c.fixed {
				names = append(names, c.name+" = ?")
			}
		}
		return strings.Join(names, ", ")
	})
	v := reflect.ValueOf(row).Elem()
	for _, c := range columns(t) {
		if !c.read && !c.fixed {
			args = append(args, c.value(v))
		}
	}
	return set, args
}

// change returns the statement that writes everything of a row that can change, and its
// arguments.
func change[T any](table string, row *T) (query string, args []any) {
	set, args := assignments(row)
	for _, c := range columns(reflect.TypeFor[T]()) {
		if c.key {
			return "UPDATE " + table + " SET " + set + " WHERE " + c.name + " = ?", append(args, c.value(reflect.ValueOf(row).Elem()))
		}
	}
	panic(fmt.Sprintf("store: %T has no key", row))
}

// value returns the argument of a statement that writes the column.
func (c column) value(row reflect.Value) any {
	f := row.FieldByIndex(c.index)
	switch c.convert {
	case asTime:
		return nano(f.Interface().(time.Time))
	case asRaw:
		return string(f.Bytes())
	case asJSON:
		if f.IsZero() {
			return ""
		}
		text, err := encode(f.Interface())
		if err != nil {
			panic(fmt.Sprintf("store: %s has no JSON: %v", f.Type(), err))
		}
		return text
	}
	return f.Interface()
}

// target returns what a row is scanned into for the column.
func (c column) target(row reflect.Value) any {
	f := row.FieldByIndex(c.index)
	switch c.convert {
	case asTime:
		return (*timeTarget)(f.Addr().Interface().(*time.Time))
	case asRaw:
		return (*rawTarget)(f.Addr().Interface().(*json.RawMessage))
	case asJSON:
		return &jsonTarget{into: f.Addr()}
	}
	return f.Addr().Interface()
}

// targets returns what a row is scanned into: structs that have columns become theirs.
func targets(into []any) []any {
	var list []any
	for i, one := range into {
		v := reflect.ValueOf(one).Elem()
		of := columns(v.Type())
		if len(of) == 0 {
			if list != nil {
				list = append(list, one)
			}
			continue
		}
		if list == nil {
			list = append(make([]any, 0, len(into)+len(of)), into[:i]...)
		}
		for _, c := range of {
			list = append(list, c.target(v))
		}
	}
	if list == nil {
		return into
	}
	return list
}

type timeTarget time.Time

// Scan takes a number of nanoseconds.
func (t *timeTarget) Scan(from any) error {
	var n sql.NullInt64
	if err := n.Scan(from); err != nil {
		return err
	}
	*t = timeTarget(fromNano(n.Int64))
	return nil
}

type rawTarget json.RawMessage

// Scan takes a text.
func (t *rawTarget) Scan(from any) error {
	text, err := scanText(from)
	*t = nil
	if text != "" {
		*t = rawTarget(text)
	}
	return err
}

// A jsonTarget keeps a text until its row has been checked.
type jsonTarget struct {
	text string
	into reflect.Value // a pointer
}

// Scan takes a text.
func (t *jsonTarget) Scan(from any) (err error) {
	t.text, err = scanText(from)
	return err
}

func scanText(from any) (string, error) {
	var s sql.NullString
	err := s.Scan(from)
	return s.String, err
}

// nano is a time as a column has it: nanoseconds since 1970, 0 for none.
func nano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// fromNano is the inverse of [nano].
func fromNano(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// A plainEncoder writes < and > as they are.
type plainEncoder struct {
	buffer  bytes.Buffer
	encoder *json.Encoder
}

var plainEncoders = sync.Pool{New: func() any {
	e := &plainEncoder{}
	e.encoder = json.NewEncoder(&e.buffer)
	e.encoder.SetEscapeHTML(false)
	return e
}}

// encode returns a value as JSON. Raw JSON in it stays as it is, byte for byte, apart from
// white space.
func encode(v any) (string, error) {
	const maxKept = 64 << 10 // bytes of a buffer
	e := plainEncoders.Get().(*plainEncoder)
	if err := e.encoder.Encode(v); err != nil {
		return "", err // the encoder is not used again
	}
	text := string(bytes.TrimSuffix(e.buffer.Bytes(), []byte("\n")))
	if e.buffer.Cap() <= maxKept {
		e.buffer.Reset()
		plainEncoders.Put(e)
	}
	return text, nil
}
