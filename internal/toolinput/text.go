package toolinput

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textNames are the members in which tools take what they write or run.
var textNames = []string{
	commandName, "content", "contents", "text", "file_text", "new_string", "newString", "new_text", "newText", "new_str",
}

// TextMember returns the name of the one member with the text that the tool writes or runs: a file, a part
// of a file, or a command. It returns "" if there is no such member, or more than one, or if programs may
// read the input differently.
func TextMember(raw []byte) string {
	if Read(raw).Ambiguity != "" {
		return ""
	}
	found, err := Members(raw)
	if err != nil {
		return ""
	}
	name := ""
	for _, known := range textNames {
		if value, there := found[known]; there {
			if name != "" || value[0] != '"' {
				return ""
			}
			name = known
		}
	}
	return name
}

// Text returns the text of a member. raw must be an object with it.
func Text(raw []byte, member string) string {
	found, _ := Members(raw)
	var text string
	_ = Take(found, member, &text)
	return text
}

// WithText returns the input with another text of a member that it has. All else stays as it is spelt.
func WithText(raw []byte, member, text string) json.RawMessage {
	value, _ := json.Marshal(text) // a text can be encoded
	s := string(raw)
	members(s, afterSpace(s, 0), func(name string, at int) int {
		end := afterValue(s, at)
		if name == member {
			raw = slices.Concat(raw[:at], value, raw[end:])
		}
		return end
	})
	return raw
}

// Retitled returns the title of a tool call whose input was changed. It replaces the texts of the input
// before, such as a command, by the changed ones.
func Retitled(title string, before, after []byte) string {
	old, _ := Members(before) // what is no object has no texts
	changed, _ := Members(after)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		from, to := "", ""
		if json.Unmarshal(old[name], &from) == nil && json.Unmarshal(changed[name], &to) == nil && from != to && to != "" {
			title = withWord(title, from, to)
		}
	}
	return title
}

// withWord replaces a text in a title, if it is not a part of a longer word.
func withWord(title, from, to string) string {
	at := strings.Index(title, from)
	if from == "" || at < 0 {
		return title
	}
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	before, _ := utf8.DecodeLastRuneInString(title[:at])
	after, _ := utf8.DecodeRuneInString(title[at+len(from):])
	first, _ := utf8.DecodeRuneInString(from)
	last, _ := utf8.DecodeLastRuneInString(from)
	if isWord(before) && isWord(first) || isWord(last) && isWord(after) {
		return title
	}
	return title[:at] + to + title[at+len(from):]
}
