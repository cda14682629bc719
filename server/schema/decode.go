package schema

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/frame"
)

// A Mismatch describes a wrong value: its path, the expected value and the received one.
type Mismatch struct {
	// Path leads to the value, such as "level" or "items[2].name"; it is empty for the value as
	// a whole.
	Path     string
	Expected string
	Received string
	Accepted []string // the accepted values, if they can be listed
}

// Check checks raw, valid JSON against the schema, and returns the first mismatch, or nil.
// Members that the schema does not have are allowed. path is the path of raw itself, "" for the
// outermost value.
func (s *Schema) Check(raw []byte, path string) *Mismatch {
	return new(checker).value(s, raw, path)
}

// Decode checks raw, valid JSON as Check does and decodes it into a pointer to
// the type that the schema was made of. Unlike in encoding/json, names of
// members are exact.
func (s *Schema) Decode(raw []byte, path string, into any) *Mismatch {
	var c checker
	if bad := c.value(s, raw, path); bad != nil {
		return bad
	}
	if c.duplicates {
		raw = s.exact(raw)
	}
	return Unmarshal(raw, into)
}

// Unmarshal is json.Unmarshal of valid JSON, with its error as a Mismatch. After a successful
// Check the cause is mostly a number out of range.
func Unmarshal(raw []byte, into any) *Mismatch {
	err := json.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	if t, ok := err.(*json.UnmarshalTypeError); ok && t.Field != "" {
		return &Mismatch{Path: t.Field, Expected: t.Type.String(), Received: frame.Excerpt(t.Value)}
	}
	return &Mismatch{Expected: "values in range", Received: "a value that does not fit"}
}
