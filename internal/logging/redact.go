package logging

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// redacted replaces a secret value.
const redacted = `"(redacted)"`

// Redact replaces the secrets in a JSON value, as recognised by the names of members: tokens,
// secrets, passwords and API keys, and all values below environments and headers. It does so
// also in strings that contain JSON. Everything else stays byte for byte. Input that is not JSON
// is replaced as a whole.
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

// value processes the next value; all means to replace all of it.
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

// replace replaces the value that was just read, and began after an offset.
func (r *redaction) replace(after int, instead []byte) {
	begin := after + len(r.text[after:]) - len(bytes.TrimLeft(r.text[after:], " \t\r\n:,"))
	r.out = append(append(r.out, r.text[r.copied:begin]...), instead...)
	r.copied = int(r.dec.InputOffset())
}

// isSecret reports, by the name of a member, whether its value is secret.
func isSecret(name string) bool {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
	switch name {
	case "env", "environment", "headers", "authorization", "cookie":
		return true
	}
	for _, end := range []string{
		"token", "secret", "password", "passphrase", "apikey", "privatekey", "accesskey", "credential", "credentials",
	} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
