package catalog

import (
	"encoding/base64"
	"fmt"
	"unicode/utf8"
)

// Encodings are how bytes of a terminal stand in a message: as they are, or
// where they are no UTF-8 in base64 (RFC 4648).
const (
	EncodingUTF8   = "utf-8"
	EncodingBase64 = "base64"
)

// EncodeBytes gives bytes as a message has them.
func EncodeBytes(b []byte) (data, encoding string) {
	if utf8.Valid(b) {
		return string(b), EncodingUTF8
	}
	return base64.StdEncoding.EncodeToString(b), EncodingBase64
}

// DecodeBytes is the opposite of [EncodeBytes]; no encoding is utf-8. The error is
// for data that is not in its encoding, and comes with what could be read; and for
// an encoding that there is not, with the data as it is.
func DecodeBytes(data, encoding string) ([]byte, error) {
	switch encoding {
	case "", EncodingUTF8:
		return []byte(data), nil
	case EncodingBase64:
		return base64.StdEncoding.DecodeString(data)
	}
	return []byte(data), fmt.Errorf("there is no encoding %q", encoding)
}
