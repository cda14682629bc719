package form

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Parse converts the text that a person has typed into the field, or returns an *Error. For
// choices it accepts the value, the title or the number in the list; commas separate several. It
// parses JSON with quotes, brackets and braces only in a field that accepts nothing else.
func (f Field) Parse(typed string) (json.RawMessage, error) {
	value := f.valueOf(typed)
	if value == nil {
		return nil, &Error{f.Name, f.Asks(), strconv.Quote(shortened(typed)), f.values()}
	}
	if !f.fits(value) {
		return nil, &Error{f.Name, f.Asks(), strconv.Quote(shortened(typed)), f.values()}
	}
	return value, nil
}

func shortened(s string) string {
	if len(s) > longestReceived {
		return strings.ToValidUTF8(s[:longestReceived], "") + "…"
	}
	return s
}

// valueOf converts typed text to JSON; nil if it is invalid.
func (f Field) valueOf(typed string) json.RawMessage {
	trimmed := strings.TrimSpace(typed)
	switch f.Kind {
	case Text:
		return asJSON(typed)
	case Choice:
		if value, ok := f.chosen(trimmed); ok {
			return asJSON(value)
		}
		return nil
	case Choices:
		list := []string{}
		for part := range strings.SplitSeq(trimmed, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			value, ok := f.chosen(part)
			if !ok {
				return nil
			}
			list = append(list, value)
		}
		return asJSON(list)
	case Boolean:
		switch strings.ToLower(trimmed) {
		case "y", "yes", "true":
			return json.RawMessage("true")
		case "n", "no", "false":
			return json.RawMessage("false")
		}
		return nil
	case Number, Integer:
		return json.RawMessage(strings.TrimPrefix(trimmed, "+"))
	}
	if !json.Valid([]byte(trimmed)) {
		return nil
	}
	return json.RawMessage(trimmed)
}

// chosen returns the value of a choice by its value, its title or its number.
func (f Field) chosen(typed string) (string, bool) {
	for _, o := range f.Choices {
		if o.Value == typed {
			return o.Value, true
		}
	}
	for _, o := range f.Choices {
		if strings.EqualFold(o.Title, typed) || strings.EqualFold(o.Value, typed) {
			return o.Value, true
		}
	}
	if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(f.Choices) {
		return f.Choices[n-1].Value, true
	}
	return "", false
}

// InWords returns a value of the field for display.
func (f Field) InWords(value json.RawMessage) string {
	var s string
	var list []string
	switch {
	case f.Kind == Boolean && string(value) == "true":
		return "yes"
	case f.Kind == Boolean:
		return "no"
	case json.Unmarshal(value, &s) == nil:
		return f.titleOf(s)
	case f.Kind == Choices && json.Unmarshal(value, &list) == nil:
		for i := range list {
			list[i] = f.titleOf(list[i])
		}
		return strings.Join(list, ", ")
	}
	return string(value)
}

func (f Field) titleOf(value string) string {
	for _, o := range f.Choices {
		if o.Value == value {
			return o.Title
		}
	}
	return value
}

// Label returns the display name of the field.
func (f Field) Label() string {
	if f.Title == "" {
		return f.Name
	}
	return f.Title
}

// InWords returns the values of a form on one line for display. Check must have accepted them.
func (f Form) InWords(content json.RawMessage) string {
	var parts []string
	_ = members(content, func(name string, value json.RawMessage) error {
		for _, field := range f.Fields {
			if field.Name == name {
				parts = append(parts, field.Label()+": "+field.InWords(value))
			}
		}
		return nil
	})
	return strings.Join(parts, "; ")
}

// Values returns the values of fields as one object, in the order of the form. Fields without a
// value are omitted.
func (f Form) Values(of map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, field := range f.Fields {
		value, ok := of[field.Name]
		if !ok {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(asJSON(field.Name))
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Defaults returns the default values of the fields.
func (f Form) Defaults() map[string]json.RawMessage {
	values := make(map[string]json.RawMessage)
	for _, field := range f.Fields {
		if field.Default != nil {
			values[field.Name] = field.Default
		}
	}
	return values
}

// asJSON encodes a string or a list of strings.
func asJSON(v any) json.RawMessage {
	b, _ := json.Marshal(v) // cannot fail for those
	return b
}
