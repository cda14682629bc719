package frame

import (
	"mime"
	"strings"
)

// mediaType is the verdict on the value of a Content-Type header.
type mediaType struct {
	isJSONRPC bool // the type is one that Duet accepts
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
// application/json and the suffix +json are refused: Duet's specification of
// framing (ADR-010) chose the strict policy. A subtype begins with a letter or
// a digit (RFC 6838, section 4.2).
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
