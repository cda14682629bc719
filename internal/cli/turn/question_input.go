package turn

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

const (
	shortInput      = 100 // characters: what stands on one line
	questionDeepest = 6   // objects in each other that get lines of their own
)

// Members by which tools are given what a diff shows: a file and its text. Of
// other names a text is shown again, since it is not the file's.
var (
	pathMembers = []string{"file_path", "filePath", "path", "notebook_path"}
	textMembers = []string{"content", "contents", "text", "new_string", "newString", "new_text", "newText", "new_str", "old_string", "oldString", "old_text", "oldText", "old_str", "file_text"}
)

// A value is one of JSON, with its members in the order in which they came and
// as often.
type value struct {
	members []member // of an object or array
	opening byte     // { or [; 0 for anything else
	text    string   // of a string
	isText  bool
	shell   string // that is given the text as a script, with its options
	compact string // on one line, every character seen
}

type member struct {
	name  string
	value value
}

// inputLines are the lines of a tool's input, but for what shown has of it.
func inputLines(raw json.RawMessage, shown shownTexts, m visible.Marks) []QuestionLine {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decode(d, m)
	if err != nil {
		var lines []QuestionLine
		for line := range strings.SplitSeq(m.Exact(string(raw)), "\n") {
			lines = append(lines, QuestionLine{input, "  " + line})
		}
		return lines
	}
	if v.opening == '{' {
		v.members = slices.DeleteFunc(v.members, func(x member) bool { return shown.has(x) })
		if len(v.members) == 0 {
			return nil
		}
		for i, x := range v.members {
			if x.name == "command" {
				v.members[i].value = scriptOf(x.value, m)
			}
		}
		v.compact = compactOf(v, m)
	}
	var lines []QuestionLine
	v.lines("  ", "", questionDeepest, m, func(line string) { lines = append(lines, QuestionLine{input, line}) })
	return lines
}

// scriptOf is a list of words as the script that it gives to a shell, and which
// shell that is, if it does nothing else: nobody reads a script well that is a
// text in a list.
func scriptOf(v value, m visible.Marks) value {
	var words []string
	for _, x := range v.members {
		if !x.value.isText {
			return v
		}
		words = append(words, x.value.text)
	}
	if v.opening != '[' {
		return v
	}
	script, ok := shellcommand.ReadWords(words).Script()
	if last := len(words) - 1; ok && words[last] == script {
		return value{text: script, isText: true, shell: m.Line(strings.Join(words[:last], " ")), compact: v.compact}
	}
	return v
}

func decode(d *json.Decoder, m visible.Marks) (value, error) {
	token, err := d.Token()
	if err != nil {
		return value{}, err
	}
	switch token := token.(type) {
	case json.Delim:
		v := value{opening: byte(token)}
		for d.More() {
			var x member
			if token == '{' {
				name, err := d.Token()
				if err != nil {
					return v, err
				}
				x.name, _ = name.(string)
			}
			if x.value, err = decode(d, m); err != nil {
				return v, err
			}
			v.members = append(v.members, x)
		}
		if _, err := d.Token(); err != nil {
			return v, err
		}
		v.compact = compactOf(v, m)
		return v, nil
	case string:
		return value{text: token, isText: true, compact: quoted(token, m)}, nil
	case json.Number:
		return value{compact: token.String()}, nil
	case bool:
		if token {
			return value{compact: "true"}, nil
		}
		return value{compact: "false"}, nil
	}
	return value{compact: "null"}, nil
}

// compactOf is an object or array on one line.
func compactOf(v value, m visible.Marks) string {
	var b strings.Builder
	b.WriteByte(v.opening)
	for i, x := range v.members {
		if i > 0 {
			b.WriteByte(',')
		}
		if v.opening == '{' {
			b.WriteString(quoted(x.name, m) + ":")
		}
		b.WriteString(x.value.compact)
	}
	b.WriteByte(v.opening + 2) // } or ]
	return b.String()
}

// quoted is a JSON string in which every character is seen.
func quoted(text string, m visible.Marks) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be written
	return m.Exact(strings.TrimSuffix(b.String(), "\n"))
}

// lines gives the lines of a value to add, behind the name of the member that
// it is. A text of several lines stands below that, behind a bar.
func (v value) lines(indent, name string, depth int, m visible.Marks, add func(string)) {
	switch {
	case v.isText && (v.shell != "" || strings.Contains(v.text, "\n")):
		add(indent + strings.TrimSuffix(name+v.shell, " "))
		for line := range strings.SplitSeq(v.text, "\n") {
			add(indent + "  | " + m.Exact(line))
		}
	case v.opening == 0, len(v.members) == 0, depth == 0, len(v.compact) <= shortInput && !v.hasLines():
		add(indent + name + v.compact)
	case v.opening == '{':
		if name != "" {
			add(indent + name + "{")
			indent += "  "
		}
		for _, x := range v.members {
			x.value.lines(indent, quoted(x.name, m)+": ", depth-1, m, add)
		}
		if name != "" {
			add(strings.TrimPrefix(indent, "  ") + "}")
		}
	default:
		add(indent + name + "[")
		for _, x := range v.members {
			x.value.lines(indent+"  ", "- ", depth-1, m, add)
		}
		add(indent + "]")
	}
}

// hasLines tells whether a text of several lines is in it.
func (v value) hasLines() bool {
	return v.shell != "" || v.isText && strings.Contains(v.text, "\n") || slices.ContainsFunc(v.members, func(x member) bool { return x.value.hasLines() })
}

// shownTexts are the names of files and the texts that diffs show whole.
type shownTexts struct {
	paths, texts map[string]bool
	plan         string
}

func shownBy(diffs []file, dir string) shownTexts {
	s := shownTexts{paths: map[string]bool{}, texts: map[string]bool{}}
	for _, f := range diffs {
		s.texts[string(f.before)], s.texts[string(f.after)] = true, true
		for _, name := range []string{f.from, f.to} {
			s.paths[name] = true
			if dir != "" && filepath.IsLocal(name) {
				s.paths[filepath.Join(dir, name)] = true
			}
		}
	}
	delete(s.texts, "") // nothing is shown of it
	return s
}

// has tells whether a member of the input can be read in the diff.
func (s shownTexts) has(x member) bool {
	return x.value.isText && (x.name == "plan" && x.value.text != "" && x.value.text == s.plan || slices.Contains(pathMembers, x.name) && s.paths[x.value.text] || slices.Contains(textMembers, x.name) && s.texts[x.value.text])
}
