package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server/schema"
)

// form is the form in which a type takes parameters.
type form uint8

const (
	unfit      form = iota // none: JSON-RPC's parameters are an object or an array
	byName                 // an object
	byPosition             // an array
	anyForm                // any value
)

// formOf returns the form in which a type takes parameters.
func formOf(t reflect.Type) form {
	switch schema.KindOf(t) {
	case schema.Any:
		return anyForm
	case schema.Object:
		return byName
	case schema.Array:
		return byPosition
	}
	return unfit
}

// decode checks raw against the schema and decodes it.
func (f form) decode(raw json.RawMessage, of func() *schema.Schema, into any) error {
	var bad *ParamError
	none := false // there is nothing to decode
	path := ""
	switch f {
	case byName:
		if raw, bad = namedParams(raw); raw == nil {
			raw, none = json.RawMessage("{}"), reflect.TypeOf(into).Elem().Kind() == reflect.Struct
		}
	case byPosition:
		path = "params"
		raw, bad = positionalParams(raw, reflect.TypeOf(into).Elem())
	}
	if bad != nil {
		return InvalidParam(*bad)
	}
	var wrong *schema.Mismatch
	switch {
	case len(raw) == 0:
	case f == anyForm:
		wrong = schema.Unmarshal(raw, into)
	case none:
		wrong = of().Check(raw, path)
	default:
		wrong = of().Decode(raw, path, into)
	}
	if wrong != nil {
		return InvalidParam(ParamError{
			Param: cmp.Or(wrong.Path, "params"), Expected: wrong.Expected, Received: wrong.Received, Accepted: wrong.Accepted,
		})
	}
	return nil
}

// positionalParams normalises positional parameters to an array, for a type with any number of
// them, or with the length of an array type.
func positionalParams(raw json.RawMessage, t reflect.Type) (json.RawMessage, *ParamError) {
	if len(raw) == 0 || raw[0] == 'n' {
		raw = json.RawMessage("[]")
	}
	if raw[0] != '[' {
		return nil, &ParamError{Param: "params", Expected: "array", Received: schema.TypeOf(raw)}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Array {
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

// namedParams normalises a method's named parameters: absent, null, {}, [] and [null] mean none
// (nil); {…} or [{…}] are the object; anything else is wrong. (jsonrpc.el and vscode-jsonrpc
// send all of these.)
func namedParams(raw json.RawMessage) (json.RawMessage, *ParamError) {
	if len(raw) == 0 {
		return nil, nil
	}
	value, received := raw, schema.TypeOf(raw)
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
			received = "array of " + schema.TypeOf(value)
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
