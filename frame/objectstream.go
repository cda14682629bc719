package frame

import (
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// An ObjectStream is a jsonrpc2.ObjectStream over either framing, for a program that uses only
// sourcegraph's Conn. Unlike the streams of that package it survives bad input: it answers a
// refused frame itself, and Conn sees only messages that it can decode. One goroutine may call
// ReadObject, any number WriteObject.
type ObjectStream struct {
	r       *Reader
	rwc     io.ReadWriteCloser
	framing Framing

	mu  sync.Mutex // guards writes and out
	out []byte
}

var _ jsonrpc2.ObjectStream = (*ObjectStream)(nil)

// NewObjectStream makes a stream over rwc, which it closes when it is closed.
// Zero limits mean the defaults.
func NewObjectStream(rwc io.ReadWriteCloser, framing Framing, limits Limits) *ObjectStream {
	return &ObjectStream{r: NewReader(rwc, framing, limits), rwc: rwc, framing: framing}
}

// ReadObject reads the next message that decodes into v. Its error is final.
func (s *ObjectStream) ReadObject(v any) error {
	var m Message
	for {
		err := s.r.Next(&m)
		var refusal *Refusal
		switch {
		case err == nil:
			err = decode(m.Body, v)
			if err == nil {
				return nil
			}
			refusal = refuse("invalid-request", "the message is not one that can be served")
			if m.Kind == Object && ValidID(m.ID) {
				refusal.ID = m.ID
			}
		case errors.As(err, &refusal):
		case errors.Is(err, ErrTimeout):
			continue
		default:
			return err
		}
		if err := s.write(refusal.ID, refusal.Wire()); err != nil {
			return err
		}
	}
}

// decode avoids the second scan that json.Unmarshal does for a json.Unmarshaler.
func decode(body []byte, v any) error {
	if u, ok := v.(json.Unmarshaler); ok {
		return u.UnmarshalJSON(body)
	}
	return json.Unmarshal(body, v)
}

// WriteObject writes v as one frame.
func (s *ObjectStream) WriteObject(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = Append(s.out[:0], s.framing, body)
	_, err = s.rwc.Write(s.out)
	return err
}

func (s *ObjectStream) write(id []byte, e *jsonrpc2.Error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = AppendError(s.out[:0], s.framing, id, e)
	_, err := s.rwc.Write(s.out)
	return err
}

// Close closes the underlying connection.
func (s *ObjectStream) Close() error { return s.rwc.Close() }
