package frame

import (
	"mime"
	"strings"
)

// mediaType is what can be said of the value of a Content-Type header.
type mediaType struct {
	isJSON bool // the type is one of JSON by its name
	isUTF8 bool // it names no charset, or utf-8; its parameters are well-formed
}

// parseMediaType parses a media type (RFC 9110, section 8.3.1): type and
// subtype in any case, parameters in any order, quoted or not.
func parseMediaType(value string) mediaType {
	essence, params, err := mime.ParseMediaType(value)
	if err != nil { // the parameters, perhaps: the type is reported first
		essence, _, _ = strings.Cut(value, ";")
		essence = strings.ToLower(strings.TrimSpace(essence))
	}
	charset, named := params["charset"]
	charset = strings.ToLower(charset)
	return mediaType{
		isJSON: isJSONType(essence),
		isUTF8: err == nil && (!named || charset == "utf-8" || charset == "utf8"),
	}
}

// isJSONType reports whether a type in lower case is an application/ type that
// is JSON by its name: json itself, whatever ends in jsonrpc (LSP's own
// vscode-jsonrpc, Vim's vim-jsonrpc), and whatever has the suffix +json
// (RFC 6839, section 3.1). A subtype begins with a letter or a digit (RFC 6838,
// section 4.2), so there is none that is a suffix alone.
func isJSONType(essence string) bool {
	subtype, ok := strings.CutPrefix(essence, "application/")
	if !ok || subtype == "" || !isDigit(subtype[0]) && (subtype[0] < 'a' || subtype[0] > 'z') {
		return false
	}
	for i := range len(subtype) {
		if !isToken[subtype[i]] {
			return false
		}
	}
	return subtype == "json" || strings.HasSuffix(subtype, "jsonrpc") || strings.HasSuffix(subtype, "+json")
}
