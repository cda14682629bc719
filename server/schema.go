package server

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
)

// A Schema describes the JSON that a Go type takes and gives. It is made from
// the type, used to check parameters, and shown to clients; its own JSON is a
// JSON Schema (draft 7, as OpenRPC wants it).
type Schema struct {
	Type        string       `json:"type,omitempty"` // empty: any value
	Format      string       `json:"format,omitempty"`
	Description string       `json:"description,omitempty"`
	Enum        []string     `json:"enum,omitempty"`
	Minimum     *int         `json:"minimum,omitempty"` // of an integer
	Properties  []*Property  `json:"-"`
	Items       *Schema      `json:"items,omitempty"`
	Values      *Schema      `json:"additionalProperties,omitempty"` // of a map
	text        reflect.Type // implements encoding.TextUnmarshaler: it decides which strings it takes
}

// A Property is a named member of an object.
type Property struct {
	Name     string
	Required bool
	Schema   *Schema
}

// An Enum is a string type that takes only some values.
type Enum interface {
	// Accepted lists the values, in the order in which to show them.
	Accepted() []string
}

// MarshalJSON writes the properties, which are a list here to keep their
// order, as JSON Schema has them.
func (s *Schema) MarshalJSON() ([]byte, error) {
	type plain Schema
	b, err := encode((*plain)(s))
	if err != nil || s.Type != "object" || s.Properties == nil {
		return b, err
	}
	var props bytes.Buffer
	var required []string
	for i, p := range s.Properties {
		if i > 0 {
			props.WriteByte(',')
		}
		sub, err := encode(p.Schema)
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
		list, _ := encode(required)
		b = append(append(b, `,"required":`...), list...)
	}
	return append(b, '}'), nil
}

var (
	rawMessageType = reflect.TypeFor[json.RawMessage]()
	timeType       = reflect.TypeFor[time.Time]()
	enumType       = reflect.TypeFor[Enum]()
	unmarshalText  = reflect.TypeFor[encoding.TextUnmarshaler]()
	marshalText    = reflect.TypeFor[encoding.TextMarshaler]()
	marshalJSON    = reflect.TypeFor[json.Marshaler]()
)

// schemaOf makes the schema of a Go type by the rules of encoding/json. A
// struct's fields are its properties: required unless they are pointers or
// have omitempty or omitzero; described by the tag doc:"…". It panics on what
// JSON cannot hold and on recursive types.
func schemaOf(t reflect.Type) *Schema { return schemaWithin(t, nil) }

func schemaWithin(t reflect.Type, outer []reflect.Type) *Schema {
	if t == nil {
		return &Schema{}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if slices.Contains(outer, t) {
		panic(fmt.Sprintf("server: the recursive type %v cannot be a parameter or a result", t))
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
	case reflect.PointerTo(t).Implements(marshalJSON): // its JSON is its own business
		return s
	case t.Implements(marshalText):
		s.Type = "string"
	default:
		s.ofKind(t, outer)
	}
	if t.Implements(enumType) {
		s.Enum = reflect.Zero(t).Interface().(Enum).Accepted()
	}
	return s
}

func (s *Schema) ofKind(t reflect.Type, outer []reflect.Type) {
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
		if t.Elem().Kind() == reflect.Uint8 {
			s.Type, s.Format = "string", "byte"
			return
		}
		s.Type, s.Items = "array", schemaWithin(t.Elem(), outer)
	case reflect.Map:
		s.Type, s.Values = "object", schemaWithin(t.Elem(), outer)
	case reflect.Struct:
		s.Type = "object"
		s.Properties = []*Property{}
		s.addFields(t, outer)
	default:
		panic(fmt.Sprintf("server: the type %v has no JSON", t))
	}
}

// addFields makes a struct's fields properties, those of an embedded struct
// without a name of its own as if they stood in the outer one.
func (s *Schema) addFields(t reflect.Type, outer []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.addFields(f.Type, outer)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		sub := *schemaWithin(f.Type, outer)
		sub.Description = f.Tag.Get("doc")
		optional := f.Type.Kind() == reflect.Pointer ||
			strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		s.Properties = append(s.Properties, &Property{Name: name, Required: !optional, Schema: &sub})
	}
}

// longestName is more than any value of an Enum has, in bytes.
const longestName = 1000

// check looks for the first thing in raw, valid JSON found at path, that the
// schema does not allow. It returns nil if there is none.
func (s *Schema) check(raw []byte, path string) *ParamError {
	got := typeName(raw)
	wrong := func(expected, received string) *ParamError {
		return &ParamError{Param: path, Expected: expected, Received: received, Accepted: s.Enum}
	}
	switch {
	case s.Type == "" || s.Type == got || s.Type == "number" && got == "integer":
	case s.Type == "integer" && got == "number":
		return wrong("integer", "number "+clip(string(raw)))
	default:
		return wrong(s.Type, got)
	}
	switch {
	case s.Minimum != nil && raw[0] == '-':
		return wrong(fmt.Sprintf("integer from %d on", *s.Minimum), clip(string(raw)))
	case s.Enum != nil && len(raw) > longestName:
		return wrong("one of "+strings.Join(s.Enum, ", "), fmt.Sprintf("a string of %d bytes", len(raw)))
	case s.Enum != nil || s.text != nil:
		if value := stringValue(raw); !s.accepts(value) {
			e := wrong("one of "+strings.Join(s.Enum, ", "), fmt.Sprintf("%q", clip(value)))
			if s.Enum == nil {
				e.Expected = "a value in the right form"
			}
			return e
		}
	case s.Items != nil:
		i := 0
		for element := range frame.Elements(raw) {
			if e := s.Items.check(element, fmt.Sprintf("%s[%d]", path, i)); e != nil {
				return e
			}
			i++
		}
	case s.Properties != nil || s.Values != nil:
		return s.checkMembers(raw, path)
	}
	return nil
}

// checkMembers checks an object without taking it apart: it may have a million
// members that nobody wants.
func (s *Schema) checkMembers(raw []byte, path string) *ParamError {
	within := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	values := make([][]byte, len(s.Properties)) // of each property; the last one counts
	var wrong *ParamError
	for quoted, value := range frame.Members(raw) {
		name, _ := plainString(quoted)
		if i := s.property(name); i >= 0 {
			values[i] = value
		} else if s.Values != nil && wrong == nil {
			wrong = s.Values.check(value, within(clip(string(name))))
		}
	}
	for i, p := range s.Properties {
		value := values[i]
		switch {
		case value != nil && !(string(value) == "null" && !p.Required):
			if e := p.Schema.check(value, within(p.Name)); e != nil {
				return e
			}
		case p.Required:
			return &ParamError{Param: within(p.Name), Expected: p.Schema.typeWords(), Received: "nothing", Accepted: p.Schema.Enum}
		}
	}
	return wrong
}

// property is the index of the property with that name, or -1.
func (s *Schema) property(name []byte) int {
	for i, p := range s.Properties {
		if p.Name == string(name) {
			return i
		}
	}
	return -1
}

// accepts reports whether a string is one of an enum's, or what the type's
// own UnmarshalText takes.
func (s *Schema) accepts(value string) bool {
	if s.text != nil {
		return reflect.New(s.text).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(value)) == nil
	}
	return slices.Contains(s.Enum, value)
}

// typeWords is what a value must be, for an error.
func (s *Schema) typeWords() string {
	if s.Type == "" {
		return "any value"
	}
	return s.Type
}

// String is the schema in a few words: "string", "array of integer",
// "{name: string, note?: string}".
func (s *Schema) String() string {
	switch {
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

// String is the property as "name: type", or "name?: type" if it is optional.
func (p *Property) String() string {
	if p.Required {
		return p.Name + ": " + p.Schema.String()
	}
	return p.Name + "?: " + p.Schema.String()
}

// typeName is the JSON Schema type of valid JSON.
func typeName(raw []byte) string {
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "number"
	}
	return "integer"
}

// stringValue is the string that raw JSON spells.
func stringValue(raw []byte) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
