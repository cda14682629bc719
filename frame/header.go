package frame

import (
	"bytes"
	"math"
	"mime"
	"strings"
)

// plainHeader recognises the header that nearly every client sends, exactly "Content-Length:
// N\r\n\r\n", and returns its size and N. It returns 0 for anything else, which parseHeader then
// parses.
func plainHeader(b []byte) (size, length int) {
	const name = "Content-Length: "
	if len(b) < len(name) || string(b[:len(name)]) != name {
		return 0, 0
	}
	i := len(name)
	for i < len(b) && isDigit(b[i]) && length < 1<<30 {
		length = length*10 + int(b[i]-'0')
		i++
	}
	if i == len(name) || len(b)-i < 4 || string(b[i:i+4]) != "\r\n\r\n" {
		return 0, 0
	}
	return i + 4, length
}

// verdict is the result of parsing the beginning of a header section.
type verdict uint8

const (
	headerPartial  verdict = iota // more bytes are needed
	headerWhole                   // the section has its blank line
	headerGarbage                 // no header can come of this
	headerTooLarge                // the blank line is past the limit
)

// header is a header section, as far as it was read.
type header struct {
	verdict verdict
	// size is the size of the section with its blank line. For the other verdicts it is the size
	// of the whole header lines.
	size     int
	section  []byte
	length   int64 // Content-Length, math.MaxInt64 if it is larger
	hasLen   bool
	badLen   bool // not digits, or two that differ
	hasType  bool
	badType  bool
	badChars bool
}

// parseHeader parses the header section at the beginning of b, which may continue past the
// section or end inside it. A section is at most limit bytes. The first known bytes are whole
// header lines: they are parsed again only when the section is whole.
func parseHeader(b []byte, limit, known int) header {
	var h header
	b = b[:min(len(b), limit)] // bytes past the limit must not change the verdict
	for pos := min(known, len(b)); ; {
		newline := bytes.IndexByte(b[pos:], '\n')
		if newline < 0 {
			h.size = pos
			switch {
			case !mayBecomeField(b[pos:]):
				h.verdict = headerGarbage
			case len(b) == limit:
				h.verdict = headerTooLarge
			}
			return h
		}
		next := pos + newline + 1
		line := bytes.TrimSuffix(b[pos:next-1], []byte("\r"))
		name, value, ok := cutField(line)
		switch {
		case len(line) > 0 && !ok:
			h.verdict, h.size = headerGarbage, pos
			return h
		case len(line) == 0 && known > 0:
			return parseHeader(b, limit, 0)
		case len(line) == 0:
			h.verdict, h.size, h.section = headerWhole, next, b[:next]
			if h.hasType {
				h.checkTypes()
			}
			return h
		case bytes.EqualFold(name, []byte("Content-Length")):
			h.contentLength(value)
		case bytes.EqualFold(name, []byte("Content-Type")):
			h.hasType = true // checked once, when the section is whole
		}
		pos = next
	}
}

func (h *header) contentLength(value []byte) {
	n, ok := parseLength(value)
	if !ok || h.hasLen && n != h.length {
		h.badLen = true
		return
	}
	h.hasLen, h.length = true, n
}

// checkTypes checks each Content-Type of the section.
func (h *header) checkTypes() {
	for line := range bytes.Lines(h.section) {
		name, value, ok := cutField(bytes.TrimRight(line, "\r\n"))
		if ok && bytes.EqualFold(name, []byte("Content-Type")) {
			t := parseMediaType(string(value))
			h.badType = h.badType || !t.isJSONRPC
			h.badChars = h.badChars || !t.isUTF8
		}
	}
}

// refusal returns the reason not to accept the frame of a whole section, or nil.
func (h *header) refusal(maxFrame int) *Refusal {
	switch {
	case h.badLen:
		return refuse(ReasonBadContentLength, "Content-Length must be one decimal number of bytes")
	case !h.hasLen && embeddedHeader(h.section) > 0:
		return refuse(ReasonLengthMismatch, "expected a header, found other bytes in front of one")
	case !h.hasLen:
		return refuse(ReasonMissingContentLength, "the header section has no Content-Length")
	case h.length > int64(maxFrame):
		return refuse(ReasonOversize, "the body is longer than the limit of %d bytes", maxFrame)
	case h.badType:
		return refuse(ReasonUnsupportedContentType,
			"Content-Type must be application/vscode-jsonrpc (or another application/ subtype that ends in jsonrpc), or absent")
	case h.badChars:
		return refuse(ReasonBadCharset, "charset must be utf-8, or absent")
	}
	return nil
}

// parseLength parses digits; a number that does not fit is math.MaxInt64.
func parseLength(value []byte) (n int64, ok bool) {
	for _, c := range value {
		if !isDigit(c) {
			return 0, false
		}
		if n > (math.MaxInt64-9)/10 {
			n = math.MaxInt64
			continue
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(value) > 0
}

// cutField splits a header line into name and value, without the blanks
// around them. The name must be a token (RFC 9110, section 5.6.2).
func cutField(line []byte) (name, value []byte, ok bool) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return nil, nil, false
	}
	name = bytes.TrimRight(line[:colon], " \t")
	if len(name) == 0 {
		return nil, nil, false
	}
	for _, c := range name {
		if !isToken[c] {
			return nil, nil, false
		}
	}
	return name, bytes.Trim(line[colon+1:], " \t"), true
}

// mayBecomeField reports whether a line that has not ended can still be a
// header line or the blank one.
func mayBecomeField(line []byte) bool {
	if len(line) == 0 || line[0] == '\r' {
		return len(line) <= 1
	}
	i := 0
	for i < len(line) && isToken[line[i]] {
		i++
	}
	if i == 0 {
		return false
	}
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	return i == len(line) || line[i] == ':'
}

// isToken marks the characters of a token (RFC 9110, section 5.6.2).
var isToken = func() (table [256]bool) {
	for c := range table {
		lower := byte(c) | 0x20
		table[c] = c < 128 && (lower >= 'a' && lower <= 'z' || isDigit(byte(c)) || strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) >= 0)
	}
	return table
}()

// leadingBlankLines counts the bytes of the blank lines that b begins with. partial reports that
// b contains nothing else, except perhaps the beginning of another blank line.
func leadingBlankLines(b []byte) (n int, partial bool) {
	for i, c := range b {
		switch c {
		case '\n':
			n = i + 1
		case ' ', '\t', '\r':
		default:
			return n, false
		}
	}
	return n, true
}

// mediaType is the verdict on the value of a Content-Type header.
type mediaType struct {
	isJSONRPC bool // see isJSONRPCType
	isUTF8    bool // it names no charset, or utf-8; its parameters are well-formed
}

// parseMediaType parses a media type (RFC 9110, section 8.3.1): type and
// subtype in any case, parameters in any order, quoted or not.
func parseMediaType(value string) mediaType {
	essence, params, err := mime.ParseMediaType(value)
	if err != nil { // the parameters may be wrong: the type is reported first
		essence, _, _ = strings.Cut(value, ";")
		essence = strings.ToLower(strings.TrimSpace(essence))
	}
	charset, named := params["charset"]
	charset = strings.ToLower(charset)
	return mediaType{
		isJSONRPC: isJSONRPCType(essence),
		isUTF8:    err == nil && (!named || charset == "utf-8" || charset == "utf8"),
	}
}

// isJSONRPCType reports whether a type in lower case is an application/ type
// whose subtype ends in jsonrpc: LSP's vscode-jsonrpc, Vim's vim-jsonrpc.
// application/json and the suffix +json are refused, as docs/protocol.md says.
// A subtype begins with a letter or a digit (RFC 6838, section 4.2).
func isJSONRPCType(essence string) bool {
	subtype, ok := strings.CutPrefix(essence, "application/")
	if !ok || subtype == "" || !isDigit(subtype[0]) && (subtype[0] < 'a' || subtype[0] > 'z') {
		return false
	}
	for i := range len(subtype) {
		if !isToken[subtype[i]] {
			return false
		}
	}
	return strings.HasSuffix(subtype, "jsonrpc")
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
