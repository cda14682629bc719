package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// maxDepth limits how deep a value nests whose type the schema leaves open. Such a value is passed on
// inside other messages, and those must nest no deeper than [frame.MaxDepth], and than Emacs 28 can
// decode (2,048).
const maxDepth = 1000

// longestName is more than any value of an Enum has, in bytes.
const longestName = 1000

// A checker searches raw, valid JSON for values that a schema does not allow.
type checker struct {
	// duplicates says that an object has members that encoding/json would treat as one: the same
	// name, or one in another case. The checker checked only the last member with the exact
	// name, so only that one may be decoded: see exact.
	duplicates bool
}

// value checks a value at path. It returns nil if it is valid.
func (c *checker) value(s *Schema, raw []byte, path string) *Mismatch {
	got := TypeOf(raw)
	wrong := func(expected, received string) *Mismatch {
		return &Mismatch{Path: path, Expected: expected, Received: received, Accepted: s.Enum}
	}
	switch {
	case len(s.Types) > 0:
		if !slices.Contains(s.Types, got) {
			return wrong(s.typeWords(), got)
		}
	case s.Type == "" && (got == "object" || got == "array") && !frame.ParseWithin(raw, new(frame.Message), maxDepth):
		return wrong(fmt.Sprintf("a value that nests at most %d levels", maxDepth), "a deeper one")
	case s.Type == "" || s.Type == got || s.Type == "number" && got == "integer":
	case s.Type == "integer" && got == "number":
		return wrong("integer", "number "+frame.Excerpt(string(raw)))
	default:
		return wrong(s.Type, got)
	}
	switch {
	case s.Minimum != nil && raw[0] == '-':
		return wrong(fmt.Sprintf("integer from %d on", *s.Minimum), frame.Excerpt(string(raw)))
	case s.Enum != nil && len(raw) > longestName:
		return wrong(s.oneOf(), fmt.Sprintf("a string of %d bytes", len(raw)))
	case s.Enum != nil || s.text != nil:
		if value := stringValue(raw); !s.accepts(value) {
			e := wrong(s.oneOf(), fmt.Sprintf("%q", frame.Excerpt(value)))
			if s.Enum == nil {
				e.Expected = "a value in the right form"
			}
			return e
		}
	case s.Items != nil:
		i := 0
		for element := range rawjson.Elements(raw) {
			if e := c.value(s.Items, element, fmt.Sprintf("%s[%d]", path, i)); e != nil {
				return e
			}
			i++
		}
	case s.Properties != nil || s.Values != nil:
		return c.members(s, raw, path)
	}
	return nil
}

// members checks an object without decoding it: it may have a million unknown members.
func (c *checker) members(s *Schema, raw []byte, path string) *Mismatch {
	within := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	values := make([][]byte, len(s.Properties)) // of each property; the last one counts
	var wrong *Mismatch
	for quoted, value := range rawjson.Members(raw) {
		name, _ := rawjson.Text(quoted)
		i := s.property(name)
		switch {
		case i >= 0:
			c.duplicates = c.duplicates || values[i] != nil
			values[i] = value
		case s.Values == nil:
			c.duplicates = c.duplicates || s.resembles(name)
		case wrong == nil:
			wrong = c.value(s.Values, value, within(frame.Excerpt(string(name))))
		}
	}
	for i, p := range s.Properties {
		value := values[i]
		switch {
		case value != nil && !(string(value) == "null" && !p.Required):
			if e := c.value(p.Schema, value, within(p.Name)); e != nil {
				return e
			}
		case p.Required:
			return &Mismatch{
				Path: within(p.Name), Expected: p.Schema.typeWords(), Received: "nothing", Accepted: p.Schema.Enum,
			}
		}
	}
	return wrong
}

// resembles reports whether a name equals a property's except for the case of letters.
func (s *Schema) resembles(name []byte) bool {
	for _, p := range s.Properties {
		if bytes.EqualFold([]byte(p.Name), name) {
			return true
		}
	}
	return false
}

// exact returns a copy of raw, valid JSON with only the members that the schema names, each
// once.
func (s *Schema) exact(raw []byte) []byte {
	switch got := TypeOf(raw); {
	case s.Items != nil && got == "array":
		out := []byte{'['}
		for element := range rawjson.Elements(raw) {
			out = append(append(out, s.Items.exact(element)...), ',')
		}
		return closed(out, ']')
	case s.Values != nil && got == "object":
		out := []byte{'{'}
		for name, value := range rawjson.Members(raw) {
			out = append(append(append(append(out, name...), ':'), s.Values.exact(value)...), ',')
		}
		return closed(out, '}')
	case s.Properties != nil && got == "object":
		values := make([][]byte, len(s.Properties))
		for quoted, value := range rawjson.Members(raw) {
			name, _ := rawjson.Text(quoted)
			if i := s.property(name); i >= 0 {
				values[i] = value
			}
		}
		out := []byte{'{'}
		for i, p := range s.Properties {
			if values[i] != nil {
				name, _ := rawjson.Encode(p.Name)
				out = append(append(append(append(out, name...), ':'), p.Schema.exact(values[i])...), ',')
			}
		}
		return closed(out, '}')
	}
	return raw
}

// closed replaces the last comma of an array or object by its end.
func closed(out []byte, end byte) []byte {
	if out[len(out)-1] == ',' {
		out[len(out)-1] = end
		return out
	}
	return append(out, end)
}

// property returns the index of the property with that name, or -1.
func (s *Schema) property(name []byte) int {
	for i, p := range s.Properties {
		if p.Name == string(name) {
			return i
		}
	}
	return -1
}

// accepts reports whether a string is a value of the enum, or the type's own UnmarshalText
// accepts it.
func (s *Schema) accepts(value string) bool {
	if s.text != nil {
		return reflect.New(s.text).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(value)) == nil
	}
	return slices.Contains(s.Enum, value)
}

// TypeOf returns the JSON Schema type of valid JSON.
func TypeOf(raw []byte) string {
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

// stringValue decodes a raw JSON string.
func stringValue(raw []byte) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// oneOf lists the values of an enumeration. An empty one is as good as none.
func (s *Schema) oneOf() string {
	return "one of " + strings.TrimPrefix(strings.Join(s.Enum, ", "), ", ")
}
