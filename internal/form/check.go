package form

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// An Error reports an invalid value of a form, and the reason.
type Error struct {
	Field    string // its name; "" for the values together
	Expected string
	Received string
	Accepted []string // if the values can be listed
}

func (e *Error) Error() string {
	text := fmt.Sprintf("expected %s, received %s", e.Expected, e.Received)
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	return text
}

// Check checks the values of a form, an object; the error is an *Error. An unknown name is an
// error, too: it is probably mistyped.
func (f Form) Check(content json.RawMessage) error {
	given := make(map[string]bool)
	err := members(content, func(name string, value json.RawMessage) error {
		field, err := f.Field(name)
		switch {
		case err != nil:
			return err
		case given[name]:
			return &Error{name, field.Expects(), "the field twice", nil}
		}
		given[name] = true
		return field.Check(value)
	})
	var wrong *Error
	switch {
	case errors.As(err, &wrong):
		return wrong
	case err != nil || len(content) == 0 || string(content) == "null":
		return &Error{"", "an object with the form's values", "another value", nil}
	}
	for _, field := range f.Fields {
		if field.Required && !given[field.Name] {
			return &Error{field.Name, field.Expects(), "nothing", nil}
		}
	}
	return nil
}

// Field returns the field of a name, or an *Error that lists the existing ones.
func (f Form) Field(name string) (Field, error) {
	i := slices.IndexFunc(f.Fields, func(field Field) bool { return field.Name == name })
	if i < 0 {
		return Field{}, &Error{name, "one of the form's fields, " + strings.Join(f.names(), ", "), "a field that it does not have", f.names()}
	}
	return f.Fields[i], nil
}

func (f Form) names() []string {
	names := make([]string, len(f.Fields))
	for i, field := range f.Fields {
		names[i] = field.Name
	}
	return names
}

// Check checks a value of the field; the error is an *Error.
func (f Field) Check(value json.RawMessage) error {
	if !f.fits(value) {
		return &Error{f.Name, f.Expects(), received(value), f.values()}
	}
	return nil
}

func (f Field) fits(value json.RawMessage) bool {
	if len(value) == 0 || string(value) == "null" {
		return false
	}
	switch f.Kind {
	case Text:
		var s string
		return json.Unmarshal(value, &s) == nil && f.fitsText(s)
	case Choice:
		var s string
		return json.Unmarshal(value, &s) == nil && f.has(s)
	case Choices:
		var list []string
		if json.Unmarshal(value, &list) != nil {
			return false
		}
		for i, s := range list {
			if !f.has(s) || slices.Contains(list[:i], s) {
				return false
			}
		}
		return within(len(list), f.minItems, f.maxItems)
	case Number, Integer:
		n := rational(string(value))
		if n == nil || f.Kind == Integer && !n.IsInt() {
			return false
		}
		least, most := bound(f.minimum), bound(f.maximum)
		return (least == nil || n.Cmp(least) >= 0) && (most == nil || n.Cmp(most) <= 0)
	case Boolean:
		var b bool
		return json.Unmarshal(value, &b) == nil
	}
	return json.Valid(value)
}

func (f Field) fitsText(s string) bool {
	if !within(utf8.RuneCountInString(s), f.minLength, f.maxLength) {
		return false
	}
	// JSON Schema uses JavaScript's expressions. The agent checks a pattern that Go cannot
	// compile.
	if pattern, err := regexp.Compile(f.pattern); err == nil && !pattern.MatchString(s) {
		return false
	}
	switch f.format {
	case "email":
		address, err := mail.ParseAddress(s)
		return err == nil && address.Address == s
	case "uri":
		u, err := url.Parse(s)
		return err == nil && u.Scheme != ""
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, s)
		return err == nil
	}
	return true
}

func (f Field) has(value string) bool { return slices.Contains(f.values(), value) }

func (f Field) values() (list []string) {
	for _, o := range f.Choices {
		list = append(list, o.Value)
	}
	return list
}

func within(n int, least, most *int) bool {
	return (least == nil || n >= *least) && (most == nil || n <= *most)
}

// longestNumber is the longest number that is checked, in bytes: with an exponent, a short text
// can be a number of any size.
const longestNumber = 64

// rational parses a JSON number; nil if it is invalid, or unreasonably large.
func rational(s string) *big.Rat {
	if s == "" || len(s) > longestNumber || !strings.ContainsRune("-0123456789", rune(s[0])) {
		return nil
	}
	if f, _, err := big.ParseFloat(s, 10, 64, big.ToNearestEven); err != nil || f.MantExp(nil) > 1<<12 || f.MantExp(nil) < -(1<<12) {
		return nil
	}
	n, ok := new(big.Rat).SetString(s)
	if !ok || !json.Valid([]byte(s)) {
		return nil
	}
	return n
}

func bound(n *json.Number) *big.Rat {
	if n == nil {
		return nil
	}
	return rational(n.String())
}

// Asks describes, to a person, what to type into the field.
func (f Field) Asks() string {
	if f.Kind == Boolean {
		return "yes or no"
	}
	return f.Expects()
}

// Expects describes the values that the field accepts.
func (f Field) Expects() string {
	switch f.Kind {
	case Choice:
		return "one of " + strings.Join(f.values(), ", ")
	case Choices:
		return "a list" + limits(f.minItems, f.maxItems, "of") + " of " + strings.Join(f.values(), ", ")
	case Number:
		return "a number" + limits(f.minimum, f.maximum, "from")
	case Integer:
		return "a whole number" + limits(f.minimum, f.maximum, "from")
	case Boolean:
		return "true or false"
	case Text:
		article := map[string]string{
			"email": "an email address", "uri": "a URI", "date": "a date like 2006-01-02", "date-time": "a time like 2006-01-02T15:04:05Z",
		}
		words := cmp.Or(article[f.format], "a text")
		if f.minLength != nil || f.maxLength != nil {
			words += limits(f.minLength, f.maxLength, "of") + " characters"
		}
		if f.pattern != "" {
			words += " that matches " + f.pattern
		}
		return words
	}
	return "a JSON value"
}

// limits describes the range of a number: " of 1 to 3", with another word between two limits.
func limits[T int | json.Number](least, most *T, between string) string {
	switch {
	case least != nil && most != nil:
		return fmt.Sprintf(" %s %v to %v", between, *least, *most)
	case least != nil:
		return fmt.Sprintf(" of at least %v", *least)
	case most != nil:
		return fmt.Sprintf(" of at most %v", *most)
	}
	return ""
}

// longestReceived is how much of a wrong value is quoted, in bytes.
const longestReceived = 100

func received(value json.RawMessage) string {
	if len(value) == 0 {
		return "nothing"
	}
	if len(value) > longestReceived {
		return strings.ToValidUTF8(string(value[:longestReceived]), "") + "…"
	}
	return string(value)
}
