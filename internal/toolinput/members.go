package toolinput

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

var errNoObject = errors.New("it is no JSON object")

// Members returns the members of an object, by names as spelt. An object with a repeated name,
// also in another case, is an error. It is for the messages that contain tool calls; [Read] is
// for their inputs. The values are parts of raw.
func Members(raw []byte) (map[string]json.RawMessage, error) {
	if !valid(raw) {
		return nil, errNoObject
	}
	s := string(raw)
	start := afterSpace(s, 0)
	if s[start] != '{' {
		return nil, errNoObject
	}
	var err error
	seen := make(map[string]string)
	found := make(map[string]json.RawMessage)
	members(s, start, func(name string, at int) int {
		end := afterValue(s, at)
		key := folded(name)
		if before, there := seen[key]; there && err == nil {
			err = fmt.Errorf("%s and %s are one name to some programs: which of the two is meant is not clear", quote(before), quote(name))
		}
		seen[key] = name
		found[name] = raw[at:end]
		return end
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Empty reports whether raw is an object without members.
func Empty(raw []byte) bool {
	inside, ok := bytes.CutPrefix(bytes.TrimSpace(raw), []byte("{"))
	return ok && string(bytes.TrimSpace(inside)) == "}"
}

// Take decodes the member of a name into value, if it exists.
func Take(members map[string]json.RawMessage, name string, value any) error {
	raw, there := members[name]
	if !there {
		return nil
	}
	if text, ok := value.(*string); ok && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		*text = string(raw[1 : len(raw)-1])
		return nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("%s: %w", quote(name), err)
	}
	return nil
}

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
