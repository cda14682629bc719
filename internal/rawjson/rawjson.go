// Package rawjson reads and writes JSON as bytes, without decoding it.
//
// [Members], [Member], [Elements] and [Text] find parts of a value: each is a span of it. [SkipValue]
// and its kin check a value and find its end. [Encode] encodes values for a peer.
package rawjson

import (
	"bytes"
	"encoding/json"
)

// Members yields the members of a JSON object in their order, without a copy: the name as it is
// spelt, with its quotes, and the raw value. It yields nothing for other JSON; for an invalid
// object it yields the members in front of the mistake.
func Members(object []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		i := SkipSpace(object, SkipSpace(object, 0)+1)
		for i < len(object) && object[i] == '"' {
			nameEnd := SkipString(object, i+1)
			value := skipName(object, i)
			if value < 0 {
				return
			}
			end := SkipValue(object, value, 1)
			if end < 0 || !yield(object[i:nameEnd:nameEnd], object[value:end:end]) {
				return
			}
			i = SkipSpace(object, end)
			if i == len(object) || object[i] != ',' {
				return
			}
			i = SkipSpace(object, i+1)
		}
	}
}

// Member returns the raw value of an object's last member with that name, however the name is
// spelt. The value is a span of object. The result is nil if there is no such member or object
// is not an object.
func Member(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	var found []byte
	for quoted, value := range Members(object) {
		if n, _ := Text(quoted); string(n) == name {
			found = value
		}
	}
	return found
}

// Elements yields the raw elements of a JSON array, each as a span of it. It yields nothing for
// other JSON; for an invalid array it yields the elements in front of the mistake.
func Elements(array []byte) func(yield func(element []byte) bool) {
	return func(yield func([]byte) bool) {
		i := SkipSpace(array, SkipSpace(array, 0)+1)
		for i < len(array) && array[i] != ']' {
			end := SkipValue(array, i, 1)
			if end < 0 || !yield(array[i:end:end]) {
				return
			}
			i = SkipSpace(array, end)
			if i < len(array) && array[i] == ',' {
				i = SkipSpace(array, i+1)
			}
		}
	}
}

// Text returns the text of a raw JSON string, without a copy if it has no escapes. It reports
// false for other JSON.
func Text(raw []byte) (text []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil, false
	}
	return []byte(s), true
}
