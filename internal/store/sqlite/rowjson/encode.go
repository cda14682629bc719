package rowjson

import (
	"bytes"
	"encoding/json"
	"sync"
)

// A plainEncoder writes < and > as they are.
type plainEncoder struct {
	buffer  bytes.Buffer
	encoder *json.Encoder
}

var plainEncoders = sync.Pool{New: func() any {
	e := &plainEncoder{}
	e.encoder = json.NewEncoder(&e.buffer)
	e.encoder.SetEscapeHTML(false)
	return e
}}

// Encode is a value as JSON. Raw JSON in it stays as it is, byte for byte, but for
// white space.
func Encode(v any) (string, error) {
	const keptMost = 64 << 10 // of a buffer
	e := plainEncoders.Get().(*plainEncoder)
	if err := e.encoder.Encode(v); err != nil {
		return "", err // it is not used again
	}
	text := string(bytes.TrimSuffix(e.buffer.Bytes(), []byte("\n")))
	if e.buffer.Cap() <= keptMost {
		e.buffer.Reset()
		plainEncoders.Put(e)
	}
	return text, nil
}
