package turn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// Layout of a question, which the user sees before deciding: the command, or the tool and its
// target; the rest of the input except for the part that the diff shows; the diff, and the
// options. Every character is visible (internal/visible). A long text is shortened in the middle
// and says by how much.

// Question is a question of an agent.
type Question struct {
	Tool    string // empty: a question to the user that is not about a tool
	Title   string // the agent's own words
	Subject string
	Input   json.RawMessage // of the tool
	Diff    string          // the proposed change, as a unified diff
	Details string          // further text of the agent about the tool call
	Plan    string          // the agent's plan, if it asks for permission to carry it out
	Options []string        // the answers to choose from
	Dir     string          // the session's directory, to which the diff's names are relative; or empty
	Cut     bool            // parts of it were too long for a message

	Fields []form.Field // of a form to fill in
	Named  bool         // the fields are shown with their names, for a command that sets them
	Link   *link        // an address to open; nil: there is none

	// Reopened is why an answered question is asked again; or empty.
	Reopened string
}

// Lay lays out a question.
func Lay(q Question, m visible.Marks) sheet {
	diffs := filesOf(q.Diff)
	command, description := commandOf(q)
	s := sheet{q.Tool != "" && command == "", []section{sheetHeading(q, m)}}
	if q.Reopened != "" {
		s.sections = append(s.sections, section{head: []QuestionLine{{Remark, m.Line(q.Reopened)}}})
	}
	if q.Tool != "" {
		for _, text := range []string{q.Plan, q.Details} {
			if text == "" {
				continue
			}
			var body []QuestionLine
			for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
				body = append(body, QuestionLine{questionText, "  " + m.Exact(strings.TrimSuffix(line, "\r"))})
			}
			s.sections = append(s.sections, section{body: body})
		}
		shown := shownBy(diffs, q.Dir)
		shown.plan = q.Plan
		if command != "" {
			shown.command, shown.dir, shown.words = true, q.Dir, []string{q.Title, description, q.Details}
		}
		if body := inputLines(q.Input, shown, m); len(body) > 0 {
			s.sections = append(s.sections, section{body: body})
		}
	}
	for _, f := range diffs {
		s.sections = append(s.sections, f.section(m))
	}
	if len(q.Fields) > 0 {
		s.sections = append(s.sections, section{body: fieldLines(q, m)})
	}
	if q.Link != nil { // never shortened
		s.sections = append(s.sections, section{head: q.Link.lines(m)})
	}
	if len(q.Options) > 0 {
		var body []QuestionLine
		for i, option := range q.Options {
			body = append(body, QuestionLine{questionText, fmt.Sprintf("  %d  %s", i+1, m.Line(option))})
		}
		s.sections = append(s.sections, section{body: body})
	}
	if q.Cut {
		s.sections = append(s.sections,
			section{head: []QuestionLine{{Remark, "… parts are left out, because the question is too long for one message"}}})
	}
	return s
}

// sheetHeading returns the command, or else the tool and the agent's description of the call.
// For a question that is not about a tool, it has every line.
func sheetHeading(q Question, m visible.Marks) section {
	if command, description := commandOf(q); command != "" {
		var body []QuestionLine
		mark := "? $ "
		for line := range strings.SplitSeq(command, "\n") {
			body = append(body, QuestionLine{commandLine, mark + m.Exact(line)})
			mark = "  | "
		}
		for i, text := range []string{q.Title, description} {
			if saysMore(text, q.Tool, command) && (i == 0 || text != q.Title) {
				body = append(body, QuestionLine{Remark, "  " + m.Line(text)})
			}
		}
		return section{body: body}
	}
	if q.Tool != "" {
		text := m.Line(q.Title)
		if tool := m.Line(q.Tool); !strings.Contains(text, tool) {
			text = strings.TrimSuffix(tool+": "+text, ": ")
		}
		return section{body: []QuestionLine{{questionHeading, "? " + text}}}
	}
	var body []QuestionLine
	mark := "? "
	for line := range strings.SplitSeq(strings.Trim(q.Title+"\n"+q.Subject, "\n"), "\n") {
		body = append(body, QuestionLine{questionHeading, mark + m.Exact(strings.TrimSuffix(line, "\r"))})
		mark = "  "
	}
	return section{body: body}
}

// shell is the tool that runs commands.
const shell = "Bash"

// commandOf returns the command that a question is about and its description, or "" if the
// question is not about one, or if programs may disagree about which one it is.
func commandOf(q Question) (command, description string) {
	if q.Tool != shell {
		return "", ""
	}
	v, err := decode(json.NewDecoder(bytes.NewReader(q.Input)), visible.Marks{})
	if err != nil || v.opening != '{' {
		return "", ""
	}
	for i, x := range v.members {
		isCommand := strings.EqualFold(x.name, "command")
		switch {
		case isCommand && (x.name != "command" || slices.ContainsFunc(v.members[:i], func(y member) bool { return y.name == x.name })):
			return "", ""
		case isCommand:
			command = strings.TrimRight(x.value.asCommand(), "\n")
		case x.name == "description":
			description = x.value.text
		}
	}
	return command, description
}

// asCommand returns a command as a line for a shell, or as the script that a usual shell gets
// without further options. It returns "" for a value that is no command.
func (v value) asCommand() string {
	if v.isText {
		return v.text
	}
	var words, quoted []string
	for _, x := range v.members {
		if v.opening != '[' || !x.value.isText {
			return ""
		}
		words, quoted = append(words, x.value.text), append(quoted, shellcommand.Argument(x.value.text))
	}
	if len(words) == 3 && (words[1] == "-c" || words[1] == "-lc") {
		script, ok := shellcommand.ReadWords(words).Script()
		if dir, _ := filepath.Split(words[0]); ok && script == words[2] && slices.Contains([]string{"", "/bin/", "/usr/bin/"}, dir) {
			return script
		}
	}
	return strings.Join(quoted, " ")
}

// saysMore reports whether the title of a tool call says more than its command.
func saysMore(title, tool, command string) bool {
	plain := func(text string) string { return strings.Join(strings.Fields(strings.Trim(text, "` ")), " ") }
	command = plain(command)
	rest := plain(strings.TrimPrefix(title, tool+":"))
	if begin, isCut := strings.CutSuffix(rest, "…"); isCut && strings.HasPrefix(command, begin) {
		return false
	}
	return rest != "" && rest != tool && rest != command
}

// Diff lays out a unified diff.
func Diff(diff string, m visible.Marks) []QuestionLine {
	var s sheet
	for _, f := range filesOf(diff) {
		s.sections = append(s.sections, f.section(m))
	}
	return s.Whole()
}

// questionKind says what a line is, which determines its colour.
type questionKind int

// The kinds of lines.
const (
	questionText    questionKind = iota
	questionHeading              // what is asked
	commandLine                  // what would run; never broken, so that it can be copied
	input                        // of the tool
	fileName                     // in a diff
	hunk                         // where in the file
	added
	removed
	Remark // added by Duet: says what is not shown
)

// QuestionLine is a line to print.
type QuestionLine struct {
	Kind questionKind
	Text string
}

// section is a part that is shortened separately. Its head is always shown.
type section struct {
	head, body []QuestionLine
	isChange   bool   // of a file
	remark     string // replaces a body that is not readable
}

// sheet is a question that was laid out. It is immutable.
type sheet struct {
	tool     bool // the question is about a tool
	sections []section
}

// Details returns the sheet without the heading if the question is about a tool, or else the
// whole sheet.
func (s sheet) Details() []QuestionLine {
	if s.tool {
		return sheet{sections: s.sections[1:]}.Whole()
	}
	return s.Whole()
}

// Heading returns the first line.
func (s sheet) Heading() []QuestionLine {
	whole := s.Whole()
	return whole[:min(1, len(whole))]
}

// Whole returns all lines.
func (s sheet) Whole() []QuestionLine {
	var lines []QuestionLine
	for _, part := range s.sections {
		lines = append(append(lines, part.head...), part.body...)
	}
	return lines
}

// link is an address that the user is asked to open.
type link struct {
	URL      string
	Host     string   // where it leads; empty: unknown
	Warnings []string // what to check before opening it
}

// fieldLines lists the fields of a form with their name, type and default. Choices that have a
// description are listed with their numbers.
func fieldLines(q Question, m visible.Marks) []QuestionLine {
	var lines []QuestionLine
	for _, f := range q.Fields {
		text := m.Line(f.Label())
		switch {
		case q.Named && f.Label() != f.Name:
			text += " (" + m.Line(f.Name) + ")"
		case !q.Named && f.Title == "" && len(q.Fields) == 1:
			text = "Answer"
		}
		text += ": " + m.Line(f.Asks())
		if f.Own != "" && !q.Named {
			text += ", or your own words"
		}
		if f.Default != nil {
			text += " [" + m.Line(f.InWords(f.Default)) + "]"
		} else if !f.Required {
			text += ", or nothing"
		}
		lines = append(lines, QuestionLine{questionText, "  " + text})
		if f.Description != "" {
			lines = append(lines, QuestionLine{Remark, "    " + m.Line(f.Description)})
		}
		if !slices.ContainsFunc(f.Choices, func(o form.Option) bool { return o.Description != "" }) {
			continue
		}
		for i, o := range f.Choices {
			lines = append(lines, QuestionLine{questionText, fmt.Sprintf("    %d  %s", i+1, m.Line(o.Title))})
			if o.Description != "" {
				lines = append(lines, QuestionLine{Remark, "       " + m.Line(o.Description)})
			}
		}
	}
	return lines
}

// lines returns the whole address, its host, and the warnings.
func (l link) lines(m visible.Marks) []QuestionLine {
	lines := []QuestionLine{{input, "  " + m.Line(l.URL)}}
	if l.Host != "" {
		lines = append(lines, QuestionLine{questionHeading, "  leads to " + m.Line(l.Host)})
	}
	for _, w := range l.Warnings {
		lines = append(lines, QuestionLine{removed, "  careful: " + m.Line(w)})
	}
	return lines
}

// file is a file in a unified diff.
type file struct {
	head, lines   []string
	from, to      string // its names; /dev/null stays unchanged
	before, after []byte // the parts of its text that are in the diff
	added, gone   int    // lines
}

// filesOf splits a unified diff by file. Every line in a hunk begins with a sign, and an
// unchanged line is between hunks of a file. So three lines that look like the head of a
// file are one.
func filesOf(diff string) []file {
	var files []file
	lines := strings.SplitAfter(diff, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i := 0; i < len(lines); i++ {
		if i+2 < len(lines) && strings.HasPrefix(lines[i], "--- ") && strings.HasPrefix(lines[i+1], "+++ ") && strings.HasPrefix(lines[i+2], "@@") {
			files = append(files, file{
				head: []string{clean(lines[i]), clean(lines[i+1])},
				from: nameOf(lines[i], "--- ", "a/"), to: nameOf(lines[i+1], "+++ ", "b/"),
			})
			i++
			continue
		}
		if len(files) == 0 { // the diff has an unknown format
			files = append(files, file{})
		}
		files[len(files)-1].take(lines[i])
	}
	return files
}

func clean(line string) string { return strings.TrimSuffix(line, "\n") }

func nameOf(line, sign, prefix string) string {
	return strings.TrimPrefix(strings.TrimPrefix(clean(line), sign), prefix)
}

var newline = []byte("\n")

// take handles a line below the head.
func (f *file) take(line string) {
	f.lines = append(f.lines, clean(line))
	switch line[0] {
	case '+':
		f.after = append(f.after, line[1:]...)
		f.added++
	case '-':
		f.before = append(f.before, line[1:]...)
		f.gone++
	case ' ':
		f.before = append(f.before, line[1:]...)
		f.after = append(f.after, line[1:]...)
	case '\\': // the previous line has no newline
		switch last := f.lines[max(0, len(f.lines)-2)]; {
		case strings.HasPrefix(last, "+"):
			f.after = bytes.TrimSuffix(f.after, newline)
		case strings.HasPrefix(last, "-"):
			f.before = bytes.TrimSuffix(f.before, newline)
		default:
			f.before, f.after = bytes.TrimSuffix(f.before, newline), bytes.TrimSuffix(f.after, newline)
		}
	}
}

// section lays out the diff of a file.
func (f *file) section(m visible.Marks) section {
	s := section{isChange: true}
	for _, line := range f.head {
		s.head = append(s.head, QuestionLine{fileName, m.Exact(line)})
	}
	for _, line := range f.lines {
		kind := questionText
		switch {
		case strings.HasPrefix(line, "@@"):
			kind = hunk
		case strings.HasPrefix(line, "+"):
			kind = added
		case strings.HasPrefix(line, "-"):
			kind = removed
		}
		s.body = append(s.body, QuestionLine{kind, m.Exact(line)})
	}
	if bytes.IndexByte(f.before, 0) >= 0 || bytes.IndexByte(f.after, 0) >= 0 {
		s.remark = fmt.Sprintf("… binary: %s before, %s after", bytesOf(len(f.before)), bytesOf(len(f.after)))
	}
	return s
}

// Limits for an excerpt: with its keys it fits on a screen of 24 rows of 80 columns.
const (
	mostLines  = 20      // of all
	leastLines = 5       // of each part and each file
	mostBytes  = 1 << 10 // of a part that is no change
	longLine   = 600     // bytes
	mostFiles  = 4       // with an excerpt of their changes
	rowWidth   = 80      // bytes; a longer line of a change counts as several
)

// Excerpt returns the lines that fit on a screen, and whether some are hidden. The changes get the room that
// the other parts leave. Where lines are hidden, a remark says how many, followed by more, which says how to
// show them.
func (s sheet) Excerpt(more string) (lines []QuestionLine, hidden bool) {
	first := slices.IndexFunc(s.sections, func(part section) bool { return part.isChange })
	if first < 0 {
		first = len(s.sections)
	}
	end := first
	for end < len(s.sections) && s.sections[end].isChange {
		end++
	}
	room := max(leastLines, mostLines/max(1, len(s.sections)-1))
	before, hidesBefore := shortened(s.sections[:first], room, more)
	after, hidesAfter := shortened(s.sections[end:], room, more)
	changes, hidesChanges := shortenedChanges(s.sections[first:end], mostLines-rowsOf(before)-rowsOf(after), more)
	return slices.Concat(before, changes, after), hidesBefore || hidesChanges || hidesAfter
}

// shortened returns an excerpt of parts that are no changes.
func shortened(parts []section, room int, more string) (lines []QuestionLine, hidden bool) {
	for _, part := range parts {
		body, cut := excerpt(part.body, room, more)
		lines, hidden = append(append(lines, part.head...), body...), hidden || cut
	}
	return lines, hidden
}

// shortenedChanges returns an excerpt of the changes of files.
func shortenedChanges(files []section, room int, more string) (lines []QuestionLine, hidden bool) {
	shown := files
	if len(files) > mostFiles+1 {
		shown = files[:mostFiles]
	}
	for i, file := range shown {
		room -= len(file.head)
		lines = append(lines, file.head...)
		if file.remark != "" {
			lines, hidden = append(lines, QuestionLine{Remark, file.remark + more}), true
			continue
		}
		left := len(shown) - i
		body, cut := wholeHunks(file.body, max(leastLines, (room-len(file.head)*(left-1))/left), more)
		room -= rowsOf(body)
		lines, hidden = append(lines, body...), hidden || cut
	}
	if rest := files[len(shown):]; len(rest) > 0 {
		lines, hidden = append(lines, remark("… %d more files: %s", len(rest), left(sheet{sections: rest}.Whole(), more))), true
	}
	return lines, hidden
}

// wholeHunks returns the hunks of a file that fit into a number of rows. If the first one does not fit, it
// returns its first and last lines.
func wholeHunks(body []QuestionLine, room int, more string) (lines []QuestionLine, hidden bool) {
	hunks := hunksOf(body)
	shown, used := 0, 0
	for _, h := range hunks {
		used += rowsOf(h)
		if shown == len(hunks)-1 && used <= room || used < room { // the remark needs a row
			shown++
			continue
		}
		break
	}
	switch {
	case shown == len(hunks):
		return body, false
	case shown == 0:
		lines, _ = excerpt(hunks[0], room-1, more)
		shown = 1
	default:
		lines = slices.Concat(hunks[:shown]...)
	}
	if rest := hunks[shown:]; len(rest) > 0 {
		hides := len(slices.Concat(rest...))
		lines = append(lines, remark("… %s of this file, %s hidden%s", counted(len(rest), "more change"), counted(hides, "line"), more))
	}
	return lines, true
}

// hunksOf splits the lines of a file's change into its hunks.
func hunksOf(body []QuestionLine) (hunks [][]QuestionLine) {
	start := 0
	for i, line := range body {
		if i > start && line.Kind == hunk {
			hunks = append(hunks, body[start:i])
			start = i
		}
	}
	return append(hunks, body[start:])
}

// rowsOf returns how many rows lines have on a terminal of 80 columns.
func rowsOf(lines []QuestionLine) (rows int) {
	for _, line := range lines {
		rows += 1 + max(0, len(line.Text)-1)/rowWidth
	}
	return rows
}

// excerpt returns the first and the last lines.
func excerpt(all []QuestionLine, most int, more string) (lines []QuestionLine, cut bool) {
	shortened := make([]QuestionLine, len(all))
	sum := 0
	for i, line := range all {
		text, short := shortLine(line.Text, more)
		shortened[i] = QuestionLine{line.Kind, text}
		sum += len(text)
		cut = cut || short
	}
	if len(all) <= most && sum <= mostBytes {
		return shortened, cut
	}
	head, tail, used := 0, 0, 0
	for head+tail < most && head+tail < len(all) { // two first lines for each last line
		next := head
		if (head+tail)%3 == 2 {
			next = len(all) - 1 - tail
		}
		if used += len(shortened[next].Text); used > mostBytes && head > 0 {
			break
		}
		if next == head {
			head++
		} else {
			tail++
		}
	}
	if head+tail >= len(all) {
		return shortened, cut
	}
	lines = append(lines, shortened[:head]...)
	lines = append(lines, remark("… %s", left(all[head:len(all)-tail], more)))
	return append(lines, shortened[len(all)-tail:]...), true
}

// shortLine returns the beginning and the end of a long line.
func shortLine(text, more string) (short string, cut bool) {
	if len(text) <= longLine {
		return text, false
	}
	head, tail := longLine*2/3, len(text)-longLine/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s … %s hidden%s … %s", text[:head], bytesOf(tail-head), more, text[tail:]), true
}

// left says how much is hidden, and how to show it.
func left(lines []QuestionLine, more string) string {
	sum := 0
	for _, line := range lines {
		sum += len(line.Text) + 1
	}
	return fmt.Sprintf("%s, %s hidden%s", counted(len(lines), "more line"), bytesOf(sum), more)
}

func remark(format string, args ...any) QuestionLine {
	return QuestionLine{Remark, fmt.Sprintf(format, args...)}
}

func bytesOf(n int) string { return counted(n, "byte") }

// counted returns a number and what it counts.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + one + "s"
}

// grouped formats a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

const (
	shortInput      = 100 // characters that fit on one line
	questionDeepest = 6   // nested objects that are shown on several lines
)

// Members that tools use for the text and the name of a file. If the diff shows that text, the
// input does not repeat it. Other members are always shown.
var (
	pathMembers = []string{"file_path", "filePath", "path", "notebook_path"}
	textMembers = []string{"content", "contents", "text", "new_string", "newString", "new_text", "newText", "new_str", "old_string", "oldString", "old_text", "oldText", "old_str", "file_text"}
)

// value is a JSON value. It keeps the order of members, and duplicates.
type value struct {
	members []member // of an object or array
	opening byte     // { or [; 0 for other values
	text    string   // of a string
	isText  bool
	shell   string // the shell that runs text as a script, with its options
	compact string // of a value that is no object or array: on one line with all characters visible
}

type member struct {
	name  string
	value value
}

// inputLines returns the lines of a tool's input without the parts that the diff shows.
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
	}
	var lines []QuestionLine
	v.lines("  ", "", questionDeepest, m, func(line string) { lines = append(lines, QuestionLine{input, line}) })
	return lines
}

// scriptOf recognizes a command that only passes a script to a shell. It returns the script as
// the text, because a script inside a list is hard to read.
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
		return value{text: script, isText: true, shell: m.Line(strings.Join(words[:last], " ")), compact: quoted(script, m)}
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

// appendCompact appends a value on one line.
func (v value) appendCompact(b *strings.Builder, m visible.Marks) {
	if v.opening == 0 {
		b.WriteString(v.compact)
		return
	}
	b.WriteByte(v.opening)
	for i, x := range v.members {
		if i > 0 {
			b.WriteByte(',')
		}
		if v.opening == '{' {
			b.WriteString(quoted(x.name, m) + ":")
		}
		x.value.appendCompact(b, m)
	}
	b.WriteByte(v.opening + 2) // } or ]
}

// quoted returns a JSON string with all characters visible.
func quoted(text string, m visible.Marks) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // encoding a string cannot fail
	return m.Exact(strings.TrimSuffix(b.String(), "\n"))
}

// lines adds the lines of a value after its member's name. A text of several lines is
// below the name, after a bar.
func (v value) lines(indent, name string, depth int, m visible.Marks, add func(string)) {
	var compact strings.Builder
	v.appendCompact(&compact, m)
	switch {
	case v.isText && (v.shell != "" || strings.Contains(v.text, "\n")):
		add(indent + strings.TrimSuffix(name+v.shell, " "))
		for line := range strings.SplitSeq(v.text, "\n") {
			add(indent + "  | " + m.Exact(line))
		}
	case v.opening == 0, len(v.members) == 0, depth == 0, compact.Len() <= shortInput && !v.hasLines():
		add(indent + name + compact.String())
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

// hasLines reports whether the value contains a text of several lines.
func (v value) hasLines() bool {
	return v.shell != "" || v.isText && strings.Contains(v.text, "\n") || slices.ContainsFunc(v.members, func(x member) bool { return x.value.hasLines() })
}

// shownTexts are the names and texts of files that diffs show completely.
type shownTexts struct {
	paths, texts map[string]bool
	plan         string

	command bool     // the heading shows the command
	dir     string   // of the session: a command runs there unless its input says so
	words   []string // of the agent about the command
}

// aboutCommand are members of codex's input that say nothing about what a command does.
var aboutCommand = []string{"call_id", "turn_id", "started_at_ms", "available_decisions", "parsed_cmd"}

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
	delete(s.texts, "") // an empty text is not visible in a diff
	return s
}

// has reports whether the heading, the plan or the diff shows a member of the input.
func (s shownTexts) has(x member) bool {
	if s.command {
		switch x.name {
		case "command":
			return true
		case "cwd":
			return x.value.isText && x.value.text != "" && x.value.text == s.dir
		case "description", "reason":
			return x.value.isText && slices.ContainsFunc(s.words, func(text string) bool {
				return text == x.value.text || slices.Contains(strings.Split(text, "\n"), x.value.text)
			})
		}
		if slices.Contains(aboutCommand, x.name) {
			return true
		}
	}
	return x.value.isText && (x.name == "plan" && x.value.text != "" && x.value.text == s.plan || slices.Contains(pathMembers, x.name) && s.paths[x.value.text] || slices.Contains(textMembers, x.name) && s.texts[x.value.text])
}
