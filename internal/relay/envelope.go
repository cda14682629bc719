package relay

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/frame"
)

// What of a message has to be known is found by spans of its raw JSON. The
// functions here take JSON that package frame has found valid.

// text is the text of a raw JSON string; nil if raw is no string.
func text(raw []byte) []byte {
	t, _ := frame.Text(raw)
	return t
}

// named is the object with the named params of a request, which may stand in
// an array of one; nil if there is none.
func named(params []byte) []byte {
	if len(params) > 0 && params[0] == '[' {
		for element := range frame.Elements(params) {
			params = element
			break
		}
	}
	if len(params) == 0 || params[0] != '{' {
		return nil
	}
	return params
}

// integer is the value of a raw JSON number that is an integer from 0 on and
// has at most 18 digits, or -1.
func integer(raw []byte) int64 {
	if len(raw) == 0 || len(raw) > 18 {
		return -1
	}
	var n int64
	for _, c := range raw {
		if c < '0' || c > '9' {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// without is a copy of an object that lacks some members; nil if object is nil.
func without(object []byte, names ...string) []byte {
	if object == nil {
		return nil
	}
	out := []byte{'{'}
	for n, v := range frame.Members(object) {
		if slices.Contains(names, string(text(n))) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, n...), ':'), v...)
	}
	return append(out, '}')
}

// with is a copy of an object, or of {} if it is nil, to which a raw value is
// added as a member that it has not.
func with(object []byte, name, value string) []byte {
	out := append([]byte(`{"`+name+`":`), value...)
	if len(object) > len(`{}`) {
		return append(append(out, ','), object[1:]...)
	}
	return append(out, '}')
}

// each calls f with the objects of a message: itself, or the elements of a
// batch.
func each(m *frame.Message, f func(m *frame.Message, inBatch bool)) {
	switch m.Kind {
	case frame.Object:
		f(m, false)
	case frame.Array:
		var one frame.Message
		for element := range frame.Elements(m.Body) {
			if frame.Parse(element, &one); one.Kind == frame.Object {
				f(&one, true)
			}
		}
	}
}

// isResponse reports whether an object answers a request, whoever made it.
func isResponse(m *frame.Message) bool { return m.Method == nil && (m.Result != nil || m.Error != nil) }

// wantsAnswer reports whether an object that is no response will be answered
// with its id.
func wantsAnswer(m *frame.Message) bool { return !isResponse(m) && frame.ValidID(m.ID) }

func isShutdown(m *frame.Message) bool {
	name := string(text(m.Method))
	return name == "shutdown" || name == "exit"
}
