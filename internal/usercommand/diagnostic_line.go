package usercommand

import (
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// controls matches control sequences of ECMA-48, such as colours, and OSC, such as links.
var controls = lazyregexp.New(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]`)

// Plain returns a line without its end, colours, and overwritten text.
func Plain(line string) string {
	line = strings.TrimRight(cut(line, maxLine), "\r\n")
	if strings.ContainsRune(line, '\x1b') {
		line = controls().ReplaceAllString(line, "")
	}
	if i := strings.LastIndexByte(line, '\r'); i >= 0 { // a progress bar was overwritten
		line = line[i+1:]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, "\uFFFD"))
}

// cut returns at most the first most bytes of s.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
