package jsonwalk

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// This file reads and writes JSON objects of which a program knows only
// some members: those of newer programs, and of others, are kept and passed on.

// OpenjsonRead decodes an object into known, which points to a struct, and returns the
// members that it has no field for, as they stand there; nil if there are none.
// What cannot be decoded is an error, as of [json.Unmarshal].
func OpenjsonRead(data []byte, known any) (others map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(data, known); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &others); err != nil {
		return nil, err
	}
	fields := reflect.VisibleFields(reflect.TypeOf(known).Elem())
	maps.DeleteFunc(others, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(fields, func(f reflect.StructField) bool { return strings.EqualFold(name, nameOf(f)) })
	})
	if len(others) == 0 {
		return nil, nil
	}
	return others, nil
}

// nameOf is what a field is called in JSON.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}

// OpenjsonWrite is a struct as an object, with other members behind its own, in the order
// of their names. Those stay as they are, byte for byte.
func OpenjsonWrite(known any, others map[string]json.RawMessage) ([]byte, error) {
	object, err := json.Marshal(known)
	if err != nil || len(others) == 0 {
		return object, err
	}
	b := bytes.NewBuffer(bytes.TrimSuffix(object, []byte("}")))
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		quoted, _ := json.Marshal(name) // a string: it cannot fail
		b.Write(quoted)
		b.WriteByte(':')
		b.Write(others[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
