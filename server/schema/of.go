package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

var (
	rawMessageType = reflect.TypeFor[json.RawMessage]()
	timeType       = reflect.TypeFor[time.Time]()
	enumType       = reflect.TypeFor[Enum]()
	typedType      = reflect.TypeFor[Typed]()
	unmarshalText  = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshalJSON  = reflect.TypeFor[json.Unmarshaler]()
	marshalText    = reflect.TypeFor[encoding.TextMarshaler]()
	marshalJSON    = reflect.TypeFor[json.Marshaler]()
)

// OfParams returns the schema of a Go type as a parameter, OfResult as a result. A struct's
// fields are its properties, described by the tag doc:"…". Both panic on types that JSON
// cannot hold and on recursive types.
//
// The two schemas of a type differ. As a parameter, a field is required unless it is a pointer
// or has omitempty or omitzero. As a result, a field with neither tag is always present, and a
// pointer may then be null.
func OfParams(t reflect.Type) *Schema { return asParams.schema(t, nil) }

// OfResult returns the schema of a Go type as a result; see [OfParams].
func OfResult(t reflect.Type) *Schema {
	s := asResult.schema(t, nil)
	s.Nullable = t != nil && t.Kind() == reflect.Pointer
	return s
}

// A Kind is the kind of JSON value that a Go type takes.
type Kind uint8

// The kinds of types.
const (
	Scalar Kind = iota // a string, a number, a boolean, or no value
	Object             // an object alone
	Array              // an array alone
	Any                // any value, as far as the type shows
)

// KindOf returns the kind of a type, without looking at its fields or elements.
func KindOf(t reflect.Type) Kind {
	t = pointedAt(t)
	switch {
	case t == rawMessageType:
		return Any
	case t == timeType || reflect.PointerTo(t).Implements(unmarshalText) || t.Implements(typedType):
		return Scalar
	case hasOwnJSON(t):
		return Any
	}
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return Any
		}
	case reflect.Struct, reflect.Map:
		return Object
	case reflect.Slice, reflect.Array:
		if !isBytes(t) {
			return Array
		}
	}
	return Scalar
}

// use is the purpose of a description: parameter or result.
type use uint8

const (
	asParams use = iota
	asResult
)

func (as use) schema(t reflect.Type, outer []reflect.Type) *Schema {
	if t == nil {
		return &Schema{}
	}
	t = pointedAt(t)
	if slices.Contains(outer, t) {
		panic(fmt.Sprintf("schema: the recursive type %v cannot be a parameter or a result", t))
	}
	outer = append(outer, t)
	s := &Schema{}
	switch {
	case t == rawMessageType:
		return s
	case t == timeType:
		return &Schema{Type: "string", Format: "date-time"}
	case reflect.PointerTo(t).Implements(unmarshalText):
		s.Type, s.text = "string", t
	case t.Implements(typedType):
		s.Types = reflect.Zero(t).Interface().(Typed).JSONTypes()
		return s
	case hasOwnJSON(t):
		return s
	case t.Implements(marshalText):
		s.Type = "string"
	default:
		as.describe(s, t, outer)
	}
	if t.Kind() == reflect.Struct && s.Properties != nil || t.Implements(enumType) {
		s.Name = t.Name()
	}
	if t.Implements(enumType) {
		s.Enum = reflect.Zero(t).Interface().(Enum).Accepted()
	}
	return s
}

// pointedAt is t without its pointers.
func pointedAt(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// hasOwnJSON reports whether a type defines its own JSON.
func hasOwnJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshalJSON) || p.Implements(unmarshalJSON)
}

func (as use) describe(s *Schema, t reflect.Type, outer []reflect.Type) {
	switch t.Kind() {
	case reflect.Interface:
	case reflect.Bool:
		s.Type = "boolean"
	case reflect.String:
		s.Type = "string"
	case reflect.Float32, reflect.Float64:
		s.Type = "number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.Type = "integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		s.Type, s.Minimum = "integer", new(int)
	case reflect.Slice, reflect.Array:
		if isBytes(t) {
			s.Type, s.Format = "string", "byte"
			return
		}
		s.Type, s.Items = "array", as.schema(t.Elem(), outer)
	case reflect.Map:
		s.Type, s.Values = "object", as.schema(t.Elem(), outer)
	case reflect.Struct:
		s.Type = "object"
		s.Properties = []*Property{}
		for _, f := range fieldsOf(t) {
			s.Properties = append(s.Properties, as.property(f, outer))
		}
	default:
		panic(fmt.Sprintf("schema: the type %v has no JSON", t))
	}
}

// isBytes reports whether encoding/json encodes a type as base64.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func (as use) property(f field, outer []reflect.Type) *Property {
	s := *as.schema(f.typ, outer)
	if f.quoted {
		s = Schema{Type: "string"}
	}
	s.Description = f.doc
	optional := f.maybeEmpty || f.viaPointer
	if isPointer := f.typ.Kind() == reflect.Pointer; as == asParams {
		optional = optional || isPointer
	} else {
		s.Nullable = isPointer && !f.maybeEmpty
	}
	return &Property{Name: f.name, Required: !optional, Schema: &s}
}
