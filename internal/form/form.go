// Package form reads the schema of an agent's form, and checks the values that a person fills
// in. A form is a flat object of the JSON Schema that the Agent Client Protocol and the Model
// Context Protocol allow for elicitation:
// https://agentclientprotocol.com/protocol/v1/elicitation
package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Form is a list of fields to fill in.
type Form struct {
	Title       string
	Description string
	Fields      []Field // in the agent's order
}

// A Kind is the kind of values of a field.
type Kind string

// The kinds of fields. Any other schema is Other: it accepts any JSON, and the agent checks it.
const (
	Text    Kind = "string"
	Number  Kind = "number"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Choice  Kind = "choice"  // one of Choices
	Choices Kind = "choices" // some of Choices
	Other   Kind = "other"
)

// A Field is one value of a form.
type Field struct {
	Name        string // the agent's name of it
	Title       string // for display; may be empty
	Description string
	Kind        Kind
	Required    bool
	Default     json.RawMessage // nil: it has no valid one
	Choices     []Option
	// Own is the name of the field that takes an answer in the person's own words instead of a
	// choice, or "".
	Own string

	format, pattern      string
	minLength, maxLength *int // of a text, in characters
	minItems, maxItems   *int // of choices
	minimum, maximum     *json.Number
}

// An Option is a value that can be chosen.
type Option struct {
	Value string
	Title string // for display; the value if the agent has no title

	Description string // may be empty
}

// Read parses a form's schema. It ignores unknown members. It fails if the schema is not an
// object with properties.
func Read(schema json.RawMessage) (Form, error) {
	var root struct {
		Type        json.RawMessage
		Title       json.RawMessage
		Description json.RawMessage
		Properties  json.RawMessage
		Required    json.RawMessage
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return Form{}, errors.New("the schema of the form is no object")
	}
	if of := text(root.Type); of != "" && of != "object" {
		return Form{}, fmt.Errorf("the schema of the form is for a value of type %q, not for an object", of)
	}
	f := Form{Title: text(root.Title), Description: text(root.Description)}
	var required []string
	_ = json.Unmarshal(root.Required, &required) // on error no field is required
	err := members(root.Properties, func(name string, schema json.RawMessage) error {
		if slices.ContainsFunc(f.Fields, func(known Field) bool { return known.Name == name }) {
			return fmt.Errorf("the schema of the form has the field %q twice", name)
		}
		field := fieldOf(name, schema)
		field.Required = slices.Contains(required, name)
		if last := len(f.Fields) - 1; last >= 0 && field.takesOwnWords(f.Fields[last]) {
			f.Fields[last].Own = name
		}
		f.Fields = append(f.Fields, field)
		return nil
	})
	return f, err
}

// takesOwnWords reports whether a field is for an answer in the person's own words to the choice in
// the field before it. claude-agent-acp adds such a field to each question, without a mark.
func (f Field) takesOwnWords(before Field) bool {
	return (before.Kind == Choice || before.Kind == Choices) && f.Kind == Text && !f.Required && f.Name == before.Name+"_custom"
}

// Questions returns the fields that a dialogue asks for, without those that take the answer to
// another field in the person's own words.
func (f Form) Questions() (fields []Field) {
	for i, field := range f.Fields {
		if i == 0 || f.Fields[i-1].Own != field.Name {
			fields = append(fields, field)
		}
	}
	return fields
}

// fieldOf returns the field of a schema.
func fieldOf(name string, schema json.RawMessage) Field {
	var s struct {
		Type                 json.RawMessage
		Title                json.RawMessage
		Description          json.RawMessage
		Default              json.RawMessage
		Format               json.RawMessage
		Pattern              json.RawMessage
		MinLength, MaxLength json.RawMessage
		MinItems, MaxItems   json.RawMessage
		Minimum, Maximum     json.RawMessage
		Items                json.RawMessage
	}
	f := Field{Name: name, Kind: Other}
	if json.Unmarshal(schema, &s) != nil {
		return f
	}
	f.Title, f.Description, f.format, f.pattern = text(s.Title), text(s.Description), text(s.Format), text(s.Pattern)
	f.minLength, f.maxLength, f.minItems, f.maxItems = number[int](s.MinLength), number[int](s.MaxLength), number[int](s.MinItems), number[int](s.MaxItems)
	f.minimum, f.maximum = number[json.Number](s.Minimum), number[json.Number](s.Maximum)
	switch text(s.Type) {
	case "string":
		f.Kind = Text
		if f.Choices = optionsOf(schema); f.Choices != nil {
			f.Kind = Choice
		}
	case "number":
		f.Kind = Number
	case "integer":
		f.Kind = Integer
	case "boolean":
		f.Kind = Boolean
	case "array":
		if f.Choices = optionsOf(s.Items); f.Choices != nil {
			f.Kind = Choices
		}
	}
	if len(s.Default) > 0 && string(s.Default) != "null" && f.Check(s.Default) == nil {
		f.Default = s.Default
	}
	return f
}

// optionsOf returns the values that a schema lists, or nil.
func optionsOf(schema json.RawMessage) (options []Option) {
	var s struct {
		Enum      []string
		EnumNames []string // from earlier versions of the Model Context Protocol
		OneOf     []titled
		AnyOf     []titled
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	for _, o := range append(s.OneOf, s.AnyOf...) {
		if o.Const == nil {
			return nil
		}
		options = append(options, Option{*o.Const, o.Title, text(o.Description)})
	}
	for i, value := range s.Enum {
		o := Option{Value: value}
		if len(s.EnumNames) == len(s.Enum) {
			o.Title = s.EnumNames[i]
		}
		options = append(options, o)
	}
	for i := range options {
		if options[i].Title == "" {
			options[i].Title = options[i].Value
		}
	}
	return options
}

type titled struct {
	Const *string
	Title string

	Description json.RawMessage
}

// text decodes a string; "" for other JSON.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// number decodes a number; nil for other JSON.
func number[T int | json.Number](raw json.RawMessage) *T {
	var n T
	if len(raw) == 0 || strings.ContainsAny(string(raw[:1]), `n"`) || json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return &n
}

// members calls f with each member of an object, in its order.
func members(object json.RawMessage, f func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if begin, err := d.Token(); len(object) == 0 || err == nil && begin == nil {
		return nil
	} else if err != nil || begin != json.Delim('{') {
		return errors.New("the properties of the form are no object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := f(name.(string), value); err != nil { // names of members are strings
			return err
		}
	}
	return nil
}
