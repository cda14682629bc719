package toolinput

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/jsonwalk"
)

// The members that rules look at.
const (
	commandName  = "command"
	fileName     = "file_path"
	readingsName = "command_readings"
)

// An Input is what a tool is called with, read once. The zero value is no
// input.
type Input struct {
	// Ambiguity says for a human why programs may read the input differently;
	// "" where they all read the same. Then the other fields have every reading.
	Ambiguity string
	// Commands and Files are the texts that the members command and file_path
	// may stand for. Of a list they are its elements, and of a command's also
	// all of them joined by spaces.
	Commands, Files []string
	// Words are those of a command that is a list of texts, and nothing else in any
	// reading: a program and its arguments. Then CommandNotText is set too.
	Words []string
	// Readings are what the command may be instead of what it is said to be
	// (command_readings): the agent tells it as part of a text for people, which can be
	// read in several ways. To be allowed, all of them have to be.
	Readings []string
	// CommandNotText and FileNotText tell that there is such a member, and that it is
	// not simply one text: nobody can say that it is what a rule allows.
	CommandNotText, FileNotText bool
}

// Read reads an input. It never fails: what is no JSON object has no members.
func Read(raw []byte) Input {
	if len(raw) == 0 {
		return Input{}
	}
	if !valid(raw) {
		return Input{Ambiguity: "it is no valid JSON"}
	}
	s := string(raw)
	r := reader{s: s}
	if start := jsonwalk.Space(s, 0); s[start] == '{' {
		r.top(start)
	} else {
		r.value(start)
	}
	if r.broken || !utf8.ValidString(s) {
		r.doubt("it has characters that are no valid Unicode")
	}
	r.in.Ambiguity = strings.Join(r.doubts, "; ")
	return r.in
}

// Command is what the tool runs, if that is one text in every reading.
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
	mostDoubts = 5  // that are told
	mostName   = 60 // bytes of a name that are told
)

func (r *reader) doubt(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(r.doubts) < mostDoubts && !slices.Contains(r.doubts, text) {
		r.doubts = append(r.doubts, text)
	}
}

// top reads the members that rules look at, and those that could be taken for
// them. What else differs in case only is in doubt here too: the tool reads it.
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

// readings adds what a member stands for to what others of its name do; the
// words of a command are also what they are joined.
func readings(texts []string, notText bool, value string, join bool) ([]string, bool) {
	switch value[0] {
	case 'n': // null is nothing
	case '"':
		text, _ := decodeString(value)
		notText = notText || len(texts) > 0
		texts = append(texts, text)
	case '[':
		notText = true
		var parts []string
		jsonwalk.Elements(value, 0, func(at int) int {
			end := jsonwalk.Value(value, at)
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

// textsOf are the elements of a list, if it is one and all of them are texts.
func textsOf(value string) (texts []string) {
	if value[0] != '[' {
		return nil
	}
	all := true
	jsonwalk.Elements(value, 0, func(at int) int {
		end := jsonwalk.Value(value, at)
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

// value looks for what is in doubt inside of a value.
func (r *reader) value(i int) (end int) {
	switch r.s[i] {
	case '{':
		var known names
		return members(r.s, i, func(name string, at int) int {
			known.add(r, name, false)
			return r.value(at)
		})
	case '[':
		return jsonwalk.Elements(r.s, i, r.value)
	case '"':
		end = jsonwalk.String(r.s, i)
		r.checkText(r.s[i:end])
		return end
	}
	return jsonwalk.Scalar(r.s, i)
}

func (r *reader) checkText(quoted string) {
	if !r.broken && strings.Contains(quoted, `\u`) {
		_, whole := decodeString(quoted)
		r.broken = !whole
	}
}

// names are those of one object.
type names struct{ seen map[string]string } // by what they are without case

// add notes a name, and a doubt if it was there before. In another case it is
// another name deep inside, where there are environments and headers, unless
// rules look at it.
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
		r.doubt("%s stands there more than once", quote(name))
	default:
		r.doubt("%s and %s differ in case only", quote(before), quote(name))
	}
}

// quote is a name as people are shown it.
func quote(name string) string {
	if len(name) > mostName {
		name = strings.ToValidUTF8(name[:mostName], "") + "…"
	}
	return fmt.Sprintf("%q", name)
}
