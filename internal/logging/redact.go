package logging

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// redacted stands for what is not told.
const redacted = `"(redacted)"`

// Redact is a JSON value without the secrets in it, as far as the names of
// members tell: what is called a token, a secret, a password or an API key, and
// all values of environments and headers, whatever is below them; also in
// strings that hold JSON themselves. All else stays byte for byte. What is no
// JSON is not told at all.
func Redact(value []byte) []byte {
	r := redaction{text: value, dec: json.NewDecoder(bytes.NewReader(value))}
	if r.value(false) != nil {
		return []byte(redacted)
	}
	if _, err := r.dec.Token(); err != io.EOF {
		return []byte(redacted)
	}
	return append(r.out, value[r.copied:]...)
}

type redaction struct {
	text   []byte
	dec    *json.Decoder
	out    []byte
	copied int // how much of text is in out
}

// value goes over the next value; all says that nothing of it is told.
func (r *redaction) value(all bool) error {
	before := int(r.dec.InputOffset())
	token, err := r.dec.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		for r.dec.More() {
			hidden := all
			if t == '{' {
				name, err := r.dec.Token()
				if err != nil {
					return err
				}
				text, _ := name.(string)
				hidden = all || isSecret(text)
			}
			if err := r.value(hidden); err != nil {
				return err
			}
		}
		_, err = r.dec.Token()
		return err
	case string:
		if all && t != "" {
			r.replace(before, []byte(redacted))
		} else if len(t) > 1 && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(t)) {
			if inner := Redact([]byte(t)); string(inner) != t {
				quoted, _ := json.Marshal(string(inner)) // never fails
				r.replace(before, quoted)
			}
		}
	case nil, bool:
	default: // a number
		if all {
			r.replace(before, []byte(redacted))
		}
	}
	return nil
}

// replace puts something in the place of the value that was just read, and
// began somewhere behind an offset.
func (r *redaction) replace(after int, instead []byte) {
	begin := after + len(r.text[after:]) - len(bytes.TrimLeft(r.text[after:], " \t\r\n:,"))
	r.out = append(append(r.out, r.text[r.copied:begin]...), instead...)
	r.copied = int(r.dec.InputOffset())
}

// isSecret tells by the name of a member whether its value is one.
func isSecret(name string) bool {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
	switch name {
	case "env", "environment", "headers", "authorization", "cookie":
		return true
	}
	for _, end := range []string{"token", "secret", "password", "passphrase", "apikey", "privatekey", "accesskey", "credential", "credentials"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
