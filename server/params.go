package server

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/duet-rpc/duet-rpc/frame"
)

// form is how a type takes parameters.
type form uint8

const (
	unfit      form = iota // not at all: JSON-RPC's are an object or an array
	byName                 // an object
	byPosition             // an array
	anyForm                // whatever comes
)

// formOf is how a type takes parameters.
func formOf(t reflect.Type) form {
	t = pointedAt(t)
	switch {
	case t == rawMessageType:
		return anyForm
	case t == timeType || reflect.PointerTo(t).Implements(unmarshalText):
		return unfit
	case hasOwnJSON(t):
		return anyForm
	}
	switch t.Kind() {
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return anyForm
		}
	case reflect.Struct, reflect.Map:
		return byName
	case reflect.Slice, reflect.Array:
		if !isBytes(t) {
			return byPosition
		}
	}
	return unfit
}

// decode checks raw against the schema and decodes it.
func (f form) decode(raw json.RawMessage, schema func() *Schema, into any) error {
	var bad *ParamError
	none := false // there is nothing to decode
	switch f {
	case byName:
		if raw, bad = namedParams(raw); raw == nil {
			raw, none = json.RawMessage("{}"), reflect.TypeOf(into).Elem().Kind() == reflect.Struct
		}
	case byPosition:
		raw, bad = positionalParams(raw, reflect.TypeOf(into).Elem())
	}
	if bad != nil {
		return InvalidParam(*bad)
	}
	if len(raw) == 0 {
		return nil
	}
	var c checker
	if f != anyForm {
		path := ""
		if f == byPosition {
			path = "params"
		}
		if bad = c.value(schema(), raw, path); bad != nil {
			return InvalidParam(*bad)
		}
	}
	if none {
		return nil
	}
	if c.twins {
		raw = schema().exact(raw)
	}
	if err := json.Unmarshal(raw, into); err != nil { // a number out of range, mostly
		e := ParamError{Param: "params", Expected: "values in range", Received: "a value that does not fit"}
		if t, ok := err.(*json.UnmarshalTypeError); ok && t.Field != "" {
			e = ParamError{Param: t.Field, Expected: t.Type.String(), Received: clip(t.Value)}
		}
		return InvalidParam(e)
	}
	return nil
}

// positionalParams gives positional parameters their one form, for a type with
// any number of them or, where it is an array, as many as that has.
func positionalParams(raw json.RawMessage, t reflect.Type) (json.RawMessage, *ParamError) {
	if len(raw) == 0 || raw[0] == 'n' {
		raw = json.RawMessage("[]")
	}
	if raw[0] != '[' {
		return nil, &ParamError{Param: "params", Expected: "array", Received: typeName(raw)}
	}
	if t = pointedAt(t); t.Kind() == reflect.Array {
		n := 0
		for range frame.Elements(raw) {
			n++
		}
		if n != t.Len() {
			return nil, &ParamError{Param: "params", Expected: fmt.Sprintf("array of %d", t.Len()), Received: fmt.Sprintf("array of %d", n)}
		}
	}
	return raw, nil
}

// namedParams gives a method's named parameters their one form: absent, null, {},
// [] and [null] mean none (nil); {…} or [{…}] are the object; anything else is
// wrong. (jsonrpc.el and vscode-jsonrpc send all of these.)
func namedParams(raw json.RawMessage) (json.RawMessage, *ParamError) {
	if len(raw) == 0 {
		return nil, nil
	}
	value, received := raw, typeName(raw)
	if received == "array" {
		n := 0
		value = nil
		for element := range frame.Elements(raw) {
			value = element
			n++
		}
		if n > 1 {
			return nil, &ParamError{Param: "params", Expected: "object", Received: fmt.Sprintf("array of %d", n)}
		}
		if n == 1 {
			received = "array of " + typeName(value)
		}
	}
	switch {
	case len(value) == 0 || value[0] == 'n':
		return nil, nil
	case value[0] == '{':
		return value, nil
	}
	return nil, &ParamError{Param: "params", Expected: "object", Received: received}
}
