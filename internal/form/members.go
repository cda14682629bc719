package form

import (
	"bytes"
	"encoding/json"
	"errors"
)

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
