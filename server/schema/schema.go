// Package schema describes the JSON of Go types, by the rules of encoding/json, and checks JSON
// from elsewhere against the description. It makes a [Schema] from a type ([OfParams],
// [OfResult]). A Schema is shown to clients as a JSON Schema, and decodes JSON ([Schema.Decode])
// with errors that say which value is wrong.
//
// It knows nothing of JSON-RPC.
package schema

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// A Schema describes the JSON that a Go type takes as a parameter, or gives as a result. It is
// made from the type, used to check parameters, and shown to clients; its own JSON is a JSON
// Schema (draft 7, as OpenRPC requires).
//
// A nil slice or map is null in JSON, which its Schema does not allow: a handler must return an
// empty one.
type Schema struct {
	Name        string       `json:"-"`              // of the Go type, for structs and enums that have one
	Type        string       `json:"type,omitempty"` // empty: any value
	Types       []string     `json:"-"`              // the types, if there are several; Type is empty then
	Nullable    bool         `json:"-"`              // null is allowed too
	Format      string       `json:"format,omitempty"`
	Description string       `json:"description,omitempty"`
	Enum        []string     `json:"enum,omitempty"`
	Minimum     *int         `json:"minimum,omitempty"` // of an integer
	Properties  []*Property  `json:"-"`
	Items       *Schema      `json:"items,omitempty"`
	Values      *Schema      `json:"additionalProperties,omitempty"` // of a map
	text        reflect.Type // implements encoding.TextUnmarshaler, which decides which strings are valid
}

// A Property is a named member of an object.
type Property struct {
	Name     string
	Required bool
	Schema   *Schema
}

// An Enum is a string type with a fixed list of values.
type Enum interface {
	// Accepted lists the values, in display order.
	Accepted() []string
}

// A Typed is a type that takes several types of JSON.
type Typed interface {
	// JSONTypes lists the types, such as string and integer.
	JSONTypes() []string
}

// withNull appends null to a list of accepted values, if there is a list.
func withNull(accepted []string) (list []any) {
	if accepted == nil {
		return nil
	}
	for _, value := range accepted {
		list = append(list, value)
	}
	return append(list, nil)
}

// MarshalJSON writes the properties as JSON Schema does. They are a list here to keep their
// order.
func (s *Schema) MarshalJSON() ([]byte, error) {
	type plain Schema
	var b []byte
	var err error
	switch {
	case len(s.Types) > 0:
		b, err = rawjson.Encode(struct {
			Type []string `json:"type"`
			*plain
		}{s.Types, (*plain)(s)})
	case s.Nullable && s.Type != "":
		b, err = rawjson.Encode(struct {
			Type []string `json:"type"`
			Enum []any    `json:"enum,omitempty"`
			*plain
		}{[]string{s.Type, "null"}, withNull(s.Enum), (*plain)(s)})
	default:
		b, err = rawjson.Encode((*plain)(s))
	}
	if err != nil || s.Type != "object" || s.Properties == nil {
		return b, err
	}
	var props bytes.Buffer
	var required []string
	for i, p := range s.Properties {
		if i > 0 {
			props.WriteByte(',')
		}
		sub, err := rawjson.Encode(p.Schema)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&props, "%q:%s", p.Name, sub)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	b = append(b[:len(b)-1], `,"properties":{`...)
	b = append(append(b, props.Bytes()...), '}')
	if required != nil {
		list, _ := rawjson.Encode(required)
		b = append(append(b, `,"required":`...), list...)
	}
	return append(b, '}'), nil
}

// typeWords describes the expected value, for an error.
func (s *Schema) typeWords() string {
	if len(s.Types) > 0 {
		return strings.Join(s.Types, " or ")
	}
	if s.Type == "" {
		return "any value"
	}
	return s.Type
}

// String describes the schema in a few words: "string", "array of integer", "string or null",
// "{name: string, note?: string}".
func (s *Schema) String() string {
	if s.Nullable && s.Type != "" {
		plain := *s
		plain.Nullable = false
		return plain.String() + " or null"
	}
	switch {
	case len(s.Types) > 0:
		return strings.Join(s.Types, " or ")
	case s.Items != nil:
		return "array of " + s.Items.String()
	case s.Values != nil:
		return "object of " + s.Values.String()
	case s.Properties != nil:
		var parts []string
		for _, p := range s.Properties {
			parts = append(parts, p.String())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// String returns the property as "name: type", or "name?: type" if it is optional.
func (p *Property) String() string {
	if p.Required {
		return p.Name + ": " + p.Schema.String()
	}
	return p.Name + "?: " + p.Schema.String()
}
