// Package toolinput parses the input of tool calls. It makes sure that a person sees and allows
// exactly the input that the tool receives.
//
// JSON does not define the meaning of an object with a repeated name (RFC 8259, section 4): some
// programs take the first member, some the last, some compare names without case, as
// encoding/json does. This package compares names as spelt. It marks an input that programs may
// read differently as ambiguous, with all of its readings. Numbers keep their digits and texts
// their halves of surrogate pairs: different spellings are never treated as the same.
package toolinput

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The members that rules examine.
const (
	commandName  = "command"
	fileName     = "file_path"
	readingsName = "command_readings"
)

// An Input is the parsed input of a tool call. The zero value is no input.
type Input struct {
	// Ambiguity explains to a person why programs may read the input differently; "" if they all
	// read the same. Otherwise the other fields have every reading.
	Ambiguity string
	// Commands and Files are the possible texts of the members command and file_path. A list
	// contributes its elements, and a command's list also all of them joined by spaces.
	Commands, Files []string
	// Words are the words of a command that in every reading is a list of texts: a program and
	// its arguments. CommandNotText is then set too.
	Words []string
	// Readings are alternatives of the command (command_readings): the agent sends it as part of
	// a display text, which can be parsed in several ways. All of them must be allowed.
	Readings []string
	// CommandNotText and FileNotText report that there is such a member, and that it is not
	// simply one text: no rule can match it.
	CommandNotText, FileNotText bool
}

// Read parses an input. It never fails: an input that is not a JSON object has no members.
func Read(raw []byte) Input {
	if len(raw) == 0 {
		return Input{}
	}
	if !valid(raw) {
		return Input{Ambiguity: "it is not valid JSON"}
	}
	s := string(raw)
	r := reader{s: s}
	if start := afterSpace(s, 0); s[start] == '{' {
		r.top(start)
	} else {
		r.value(start)
	}
	if r.broken || !utf8.ValidString(s) {
		r.doubt("it has characters that are not valid Unicode")
	}
	r.in.Ambiguity = strings.Join(r.doubts, "; ")
	return r.in
}

// Command returns the command of the tool, if it is the same text in every reading.
func (in Input) Command() string {
	if in.CommandNotText || len(in.Commands) != 1 {
		return ""
	}
	return in.Commands[0]
}

type reader struct {
	s      string
	in     Input
	doubts []string
	broken bool
}

const (
	mostDoubts = 5  // reported ambiguities
	mostName   = 60 // reported bytes of a name
)

func (r *reader) doubt(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(r.doubts) < mostDoubts && !slices.Contains(r.doubts, text) {
		r.doubts = append(r.doubts, text)
	}
}

// top handles the members that rules examine, and those that could be confused with them. At
// this level any names that differ only in case are ambiguous too, because the tool reads them.
func (r *reader) top(i int) {
	var known names
	in := &r.in
	members(r.s, i, func(name string, at int) int {
		known.add(r, name, true)
		end := r.value(at)
		switch folded(name) {
		case foldedCommand:
			in.Words = nil
			if len(in.Commands) == 0 && !in.CommandNotText {
				in.Words = textsOf(r.s[at:end])
			}
			in.Commands, in.CommandNotText = readings(in.Commands, in.CommandNotText, r.s[at:end], true)
		case foldedReadings:
			texts := textsOf(r.s[at:end])
			if in.Readings = append(in.Readings, texts...); texts == nil {
				r.doubt("%s is no list of texts", quote(readingsName))
			}
		case foldedFile:
			in.Files, in.FileNotText = readings(in.Files, in.FileNotText, r.s[at:end], false)
		}
		return end
	})
	for _, exact := range []string{commandName, fileName, readingsName} {
		if name, there := known.seen[folded(exact)]; there && name != exact && len(r.doubts) == 0 {
			r.doubt("%s is spelled %s", quote(exact), quote(name))
		}
	}
}

var foldedCommand, foldedFile, foldedReadings = folded(commandName), folded(fileName), folded(readingsName)

// readings adds the values of a member to those of the same name; the words of a command also
// count joined.
func readings(texts []string, notText bool, value string, join bool) ([]string, bool) {
	switch value[0] {
	case 'n': // null means no value
	case '"':
		text, _ := decodeString(value)
		notText = notText || len(texts) > 0
		texts = append(texts, text)
	case '[':
		notText = true
		var parts []string
		eachElement(value, 0, func(at int) int {
			end := afterValue(value, at)
			if value[at] == '"' {
				text, _ := decodeString(value[at:end])
				parts = append(parts, text)
			}
			return end
		})
		texts = append(texts, parts...)
		if join && len(parts) > 1 {
			texts = append(texts, strings.Join(parts, " "))
		}
	default:
		notText = true
		texts = append(texts, value)
	}
	return texts, notText
}

// textsOf returns the elements of a list, if all of them are texts.
func textsOf(value string) (texts []string) {
	if value[0] != '[' {
		return nil
	}
	all := true
	eachElement(value, 0, func(at int) int {
		end := afterValue(value, at)
		if value[at] != '"' {
			all = false
			return end
		}
		text, whole := decodeString(value[at:end])
		all = all && whole
		texts = append(texts, text)
		return end
	})
	if !all {
		return nil
	}
	return texts
}

// value looks for ambiguities inside a value.
func (r *reader) value(i int) (end int) {
	switch r.s[i] {
	case '{':
		var known names
		return members(r.s, i, func(name string, at int) int {
			known.add(r, name, false)
			return r.value(at)
		})
	case '[':
		return eachElement(r.s, i, r.value)
	case '"':
		end = afterString(r.s, i)
		r.checkText(r.s[i:end])
		return end
	}
	return afterScalar(r.s, i)
}

func (r *reader) checkText(quoted string) {
	if !r.broken && strings.Contains(quoted, `\u`) {
		_, whole := decodeString(quoted)
		r.broken = !whole
	}
}

// names are the names in one object.
type names struct{ seen map[string]string } // by case-folded name

// add records a name, and an ambiguity if it is repeated. Deep inside, in environments and
// headers, names that differ in case are different, unless rules examine them.
func (n *names) add(r *reader, name string, top bool) {
	if !utf8.ValidString(name) {
		r.broken = true
	}
	if n.seen == nil {
		n.seen = make(map[string]string)
	}
	key := name
	if f := folded(name); top || f == foldedCommand || f == foldedFile {
		key = f
	}
	before, there := n.seen[key]
	switch {
	case !there:
		n.seen[key] = name
	case before == name:
		r.doubt("%s appears more than once", quote(name))
	default:
		r.doubt("%s and %s differ in case only", quote(before), quote(name))
	}
}

// quote returns a name for display.
func quote(name string) string {
	if len(name) > mostName {
		name = strings.ToValidUTF8(name[:mostName], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
