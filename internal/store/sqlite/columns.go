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

// A column is a field of a struct. The field's tag names it, `db:"name"`, with these options:
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

// A conversion is how a field is written as a column.
type conversion int

const (
	asIs conversion = iota // a number, a text, a truth value, bytes, or a pointer to one
	asTime
	asRaw  // JSON that stays unchanged
	asJSON // any other type
)

// A layout describes the columns of a type, in the order of its fields, with read-only ones last.
// A type without tags has none.
type layout struct {
	columns  []column
	inserted []column // by INSERT
	changed  []column // by UPDATE
	key      *column

	insert string   // the list of inserted columns, and their placeholders
	set    string   // "column = ?" of each changed column
	names  sync.Map // from a table or its alias to the columns of a SELECT
}

// layouts has the *layout of each stored type, by its reflect.Type.
var layouts sync.Map

func layoutOf(t reflect.Type) *layout {
	if known, ok := layouts.Load(t); ok {
		return known.(*layout)
	}
	written, read := collect(t, nil)
	l := &layout{columns: append(written, read...)}
	var inserted, changed []string
	for i, c := range l.columns {
		if c.key {
			l.key = &l.columns[i]
		}
		if !c.read && !c.auto {
			l.inserted, inserted = append(l.inserted, c), append(inserted, c.name)
		}
		if !c.read && !c.fixed {
			l.changed, changed = append(l.changed, c), append(changed, c.name+" = ?")
		}
	}
	if len(inserted) > 0 {
		l.insert = " (" + strings.Join(inserted, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(inserted)-1) + ")"
	}
	l.set = strings.Join(changed, ", ")
	known, _ := layouts.LoadOrStore(t, l)
	return known.(*layout)
}

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

// columnNames lists the columns of T for a SELECT, as columns of a table or its alias. The
// read-only columns must follow.
func columnNames[T any](table string) string {
	l := layoutOf(reflect.TypeFor[T]())
	if known, ok := l.names.Load(table); ok {
		return known.(string)
	}
	var names []string
	for _, c := range l.columns {
		if !c.read {
			names = append(names, table+"."+c.name)
		}
	}
	list := strings.Join(names, ", ")
	l.names.Store(table, list)
	return list
}

// values returns the arguments of a statement that writes columns of a row, with capacity for one
// more.
func values(list []column, row reflect.Value) []any {
	args := make([]any, len(list), len(list)+2)
	for i, c := range list {
		args[i] = c.value(row)
	}
	return args
}

// insertion returns the statement that adds a row to a table, and its arguments.
func insertion[T any](table string, row *T) (query string, args []any) {
	l := layoutOf(reflect.TypeFor[T]())
	return "INSERT INTO " + table + l.insert, values(l.inserted, reflect.ValueOf(row).Elem())
}

// assignments returns "column = ?" for each column that an UPDATE writes, and the arguments.
func assignments[T any](row *T) (set string, args []any) {
	l := layoutOf(reflect.TypeFor[T]())
	return l.set, values(l.changed, reflect.ValueOf(row).Elem())
}

// change returns the statement that writes the changeable columns of a row, and its arguments. T
// has a key.
func change[T any](table string, row *T) (query string, args []any) {
	l := layoutOf(reflect.TypeFor[T]())
	set, args := assignments(row)
	return "UPDATE " + table + " SET " + set + " WHERE " + l.key.name + " = ?", append(args, l.key.value(reflect.ValueOf(row).Elem()))
}

func (c column) field(row reflect.Value) reflect.Value {
	if len(c.index) == 1 {
		return row.Field(c.index[0])
	}
	return row.FieldByIndex(c.index)
}

// value returns the argument of a statement that writes the column.
func (c column) value(row reflect.Value) any {
	f := c.field(row)
	switch c.convert {
	case asTime:
		return nano(*f.Addr().Interface().(*time.Time))
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

// target returns the destination in a row of the column's scan.
func (c column) target(row reflect.Value) any {
	f := c.field(row)
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

// targets expands structs with columns to the destinations of their columns.
func targets(into []any) []any {
	var list []any
	for i, one := range into {
		v := reflect.ValueOf(one).Elem()
		of := layoutOf(v.Type()).columns
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

// Scan accepts a number of nanoseconds.
func (t *timeTarget) Scan(from any) error {
	var n sql.NullInt64
	if err := n.Scan(from); err != nil {
		return err
	}
	*t = timeTarget(fromNano(n.Int64))
	return nil
}

type rawTarget json.RawMessage

// Scan accepts a text.
func (t *rawTarget) Scan(from any) error {
	text, err := scanText(from)
	*t = nil
	if text != "" {
		*t = rawTarget(text)
	}
	return err
}

// A jsonTarget stores a text until its row has been checked.
type jsonTarget struct {
	text string
	into reflect.Value // a pointer
}

// Scan accepts a text.
func (t *jsonTarget) Scan(from any) (err error) {
	t.text, err = scanText(from)
	return err
}

func scanText(from any) (string, error) {
	var s sql.NullString
	err := s.Scan(from)
	return s.String, err
}

// nano returns a time in the form of a column: nanoseconds since 1970, 0 for none.
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

// A plainEncoder does not escape < and >.
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

// encode returns a value as JSON. Raw JSON in it stays unchanged, byte for byte, apart from white
// space.
func encode(v any) (string, error) {
	const maxKept = 64 << 10 // bytes of a buffer
	e := plainEncoders.Get().(*plainEncoder)
	if err := e.encoder.Encode(v); err != nil {
		return "", err // the encoder is not reused
	}
	text := string(bytes.TrimSuffix(e.buffer.Bytes(), []byte("\n")))
	if e.buffer.Cap() <= maxKept {
		e.buffer.Reset()
		plainEncoders.Put(e)
	}
	return text, nil
}
