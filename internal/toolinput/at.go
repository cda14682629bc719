package toolinput

import (
	"bytes"
	"encoding/json"
	"slices"
)

// At returns the value at the end of a path of names in JSON objects. It is nil if there is
// none, or if one of them is ambiguous.
func At(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		members, err := Members(raw)
		if err != nil {
			return nil
		}
		raw = members[name]
	}
	return raw
}

// IsEmpty reports whether an input is empty: no bytes, null, or an empty object, list or string.
func IsEmpty(input json.RawMessage) bool {
	text := string(bytes.TrimSpace(input))
	return slices.Contains([]string{"", "null", "[]", `""`}, text) || Empty(input)
}
