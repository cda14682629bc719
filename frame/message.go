package frame

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// Kind is the kind of JSON value that a message body is.
type Kind uint8

// The kinds of a body.
const (
	Scalar Kind = iota // a number, string, boolean or null
	Object
	Array
)

// A Message is one incoming JSON value, with the members of a JSON-RPC envelope found. Each
// field is the raw JSON of a member, a span of Body; nil means that the member is absent. If a
// name occurs twice the last one counts, as in encoding/json. All fields are valid until the
// next call of the Reader's Next.
type Message struct {
	Body []byte
	Kind Kind

	JSONRPC, ID, Method, Params, Result, Error []byte
}

// Parse scans body, which it checks to be UTF-8 and valid JSON, into m, whose
// fields are then spans of body. It does not copy, and does not allocate unless
// values nest deeper than 64 or a member's name has escapes. It reports false
// if body is not valid; [BodyRefusal] says why.
func Parse(body []byte, m *Message) bool { return ParseWithin(body, m, rawjson.MaxDepth) }

// ParseWithin is Parse with a lower limit than [MaxDepth] for the nesting of arrays and objects.
func ParseWithin(body []byte, m *Message, depth int) bool {
	*m = Message{Body: body}
	outer := rawjson.MaxDepth - depth
	i := rawjson.SkipSpace(body, 0)
	if i >= len(body) {
		return false
	}
	switch body[i] {
	case '{':
		m.Kind = Object
		i = m.scanMembers(i, outer+1)
	case '[':
		m.Kind = Array
		i = rawjson.SkipValue(body, i, outer)
	default:
		m.Kind = Scalar
		i = rawjson.SkipValue(body, i, outer)
	}
	return i >= 0 && rawjson.SkipSpace(body, i) == len(body)
}

// BodyRefusal returns the refusal for a body that Parse rejected.
func BodyRefusal(body []byte) *Refusal {
	switch {
	case len(body) == 0:
		return refuse(ReasonInvalidJSON, "the body is empty")
	case !utf8.Valid(body):
		return refuse(ReasonInvalidUTF8, "the body of %d bytes is not valid UTF-8", len(body))
	default:
		return refuse(ReasonInvalidJSON, "the body of %d bytes is not one valid JSON value", len(body))
	}
}

// scanMembers scans the object at i and keeps the members of the envelope. outer is how many
// containers are open around the values.
func (m *Message) scanMembers(i, outer int) int {
	b := m.Body
	i = rawjson.SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	i = m.usualStart(i)
	for {
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		value, span := m.usualName(i)
		if span == nil {
			nameEnd := rawjson.SkipString(b, i+1)
			if nameEnd < 0 {
				return -1
			}
			span = m.member(b[i:nameEnd])
			value = rawjson.SkipSpace(b, nameEnd)
			if value >= len(b) || b[value] != ':' {
				return -1
			}
			value++
		}
		value = rawjson.SkipSpace(b, value)
		if i = rawjson.SkipValue(b, value, outer); i < 0 {
			return -1
		}
		if span != nil {
			*span = b[value:i:i]
		}
		i = rawjson.SkipSpace(b, i)
		if i >= len(b) {
			return -1
		}
		switch b[i] {
		case ',':
			i = rawjson.SkipSpace(b, i+1)
		case '}':
			return i + 1
		default:
			return -1
		}
	}
}

// usualStart parses the members that nearly every request begins with, in the usual order and
// spelling: the version, an id that is a whole number, a method. i is the index of a first
// member, and so is the result.
func (m *Message) usualStart(i int) int {
	const version, id, method = `"jsonrpc":"2.0",`, `"id":`, `"method":"`
	b := m.Body
	if len(b)-i < len(version) || string(b[i:i+len(version)]) != version {
		return i
	}
	i += len(version)
	m.JSONRPC = b[i-len(`"2.0",`) : i-1 : i-1]
	if value := i + len(id); value < len(b) && string(b[i:value]) == id && b[value] != '0' {
		end := rawjson.SkipDigits(b, value)
		if end == value || end >= len(b) || b[end] != ',' {
			return i
		}
		m.ID = b[value:end:end]
		i = end + 1
	}
	if text := i + len(method); text < len(b) && string(b[i:text]) == method {
		end := rawjson.SkipString(b, text)
		if end < 0 || end >= len(b) || b[end] != ',' {
			return i
		}
		m.Method = b[text-1 : end : end]
		i = end + 1
	}
	return rawjson.SkipSpace(b, i)
}

// usualName parses the name at i and returns the index behind its colon, for the names of a
// request that are spelt without space. For other names span is nil.
func (m *Message) usualName(i int) (value int, span *[]byte) {
	const id, method, params = `"id":`, `"method":`, `"params":`
	b := m.Body[i:]
	switch {
	case len(b) < len(method): // too short for a name of a request with a value
	case string(b[:len(id)]) == id:
		return i + len(id), &m.ID
	case string(b[:len(method)]) == method:
		return i + len(method), &m.Method
	case string(b[:len(params)]) == params:
		return i + len(params), &m.Params
	}
	return i, nil
}

// member returns the field for the member with that quoted name, or nil.
func (m *Message) member(quoted []byte) *[]byte {
	switch string(quoted) {
	case `"jsonrpc"`:
		return &m.JSONRPC
	case `"id"`:
		return &m.ID
	case `"method"`:
		return &m.Method
	case `"params"`:
		return &m.Params
	case `"result"`:
		return &m.Result
	case `"error"`:
		return &m.Error
	}
	if bytes.IndexByte(quoted, '\\') >= 0 { // spelt with escapes: rare enough to allocate for
		var name string
		if json.Unmarshal(quoted, &name) == nil && !strings.ContainsAny(name, `\"`) {
			return m.member([]byte(`"` + name + `"`))
		}
	}
	return nil
}

// Objects yields the objects of a message: the message itself, or the elements of a batch that are
// objects. JSON-RPC does not nest batches, so an array in a batch is no message. An element is valid
// until the next one.
func (m *Message) Objects() func(yield func(one *Message) bool) {
	return func(yield func(*Message) bool) {
		switch m.Kind {
		case Object:
			yield(m)
		case Array:
			var one Message
			for element := range rawjson.Elements(m.Body) {
				if Parse(element, &one); one.Kind == Object && !yield(&one) {
					return
				}
			}
		}
	}
}

// Excerpt shortens peer input for a log line or an error: the first 100 bytes, and an ellipsis
// if there is more.
func Excerpt(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// ValidID reports whether raw JSON is an id that JSON-RPC allows: a string, a
// number or null.
func ValidID(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	c := raw[0]
	return c == '"' || c == '-' || c == 'n' || isDigit(c)
}
