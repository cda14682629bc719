// Package term draws on a command's terminal: tables, JSON, Markdown, the live region, the pager and
// the picker. It knows the terminal's size, keys and signals.
package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// Printing of tables, fields and JSON. Third-party text (agents, project files, logs) is printed
// with every character visible, so that none steers the terminal.

// JSON prints a value, indented.
func JSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Raw prints JSON as it is, on a line, but for what would steer a terminal.
func Raw(out io.Writer, raw json.RawMessage) error {
	if f := fileOf(out); f != nil {
		out = f // it is printed as it is
	}
	_, err := fmt.Fprintf(out, "%s\n", Inert(raw))
	return err
}

// Inert escapes the control characters that JSON allows as they are and that
// terminals act on (DEL and C1): they stand in strings alone, so the value stays
// the same.
func Inert(raw json.RawMessage) string {
	var b strings.Builder
	for _, r := range string(raw) {
		if r >= 0x7f && r < 0xa0 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// LogLines writes what it is given of a log line by line, so that nothing in it
// talks to the terminal: a log can have come with a project. As JSON a line is an
// object: the members that it has, or its text where it is of another form, as
// what a crash prints. Close writes a last line that has no end.
type LogLines struct {
	Out  io.Writer
	JSON bool
	rest []byte
}

func (l *LogLines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if err := l.print(string(line)); err != nil {
			return 0, err
		}
		l.rest = rest
	}
}

func (l *LogLines) Close() error {
	if len(l.rest) == 0 {
		return nil
	}
	return l.print(string(l.rest))
}

func (l *LogLines) print(line string) error {
	if !l.JSON {
		_, err := fmt.Fprintln(l.Out, Exact(line))
		return err
	}
	members, ok := logMembers(line)
	if !ok {
		members = map[string]string{"text": line}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return Raw(l.Out, raw)
}

// logMembers are the members of a line as log/slog writes it: name=value, where
// either may be quoted as in Go.
func logMembers(line string) (members map[string]string, ok bool) {
	members = make(map[string]string)
	for line != "" {
		name, rest, ok := word(line, "=")
		if !ok || name == "" || !strings.HasPrefix(rest, "=") {
			return nil, false
		}
		value, rest, ok := word(rest[1:], " ")
		if !ok {
			return nil, false
		}
		members[name] = value
		line = strings.TrimPrefix(rest, " ")
	}
	return members, members["time"] != "" && members["level"] != ""
}

// word is what a text begins with, up to an end unless it is quoted.
func word(text, end string) (word, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		i := strings.Index(text, end)
		if i < 0 {
			i = len(text)
		}
		return text[:i], text[i:], true
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", false
	}
	word, err = strconv.Unquote(quoted)
	return word, text[len(quoted):], err == nil
}

// ShellWord is a text as one word of a shell, to be copied.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

const (
	columnGap    = 2  // between columns
	readableText = 48 // of a text, for which columns that can be spared go
	leastColumn  = 12 // to which a column is cut where the terminal is narrow
)

// A Table is printed in columns when all rows are there. On a terminal it fits the
// width: columns that may be spared are left out, those that may stand below their row
// do, and the widest are cut.
type Table struct {
	out   io.Writer
	rows  [][]string // the first is the heading
	spare []string   // columns that may be left out, the first at first
	below []string   // columns that may stand below their row, the first at first
	empty string     // what is said on a terminal instead of a heading without rows
	room  int        // columns of the terminal; 0: any number
}

// NewTable begins a table with its heading.
func NewTable(out io.Writer, columns ...string) *Table {
	t := &Table{out: out}
	t.room, _, _ = Size(out)
	t.Row(columns...)
	return t
}

// Spare names columns that may be left out where there is no room for all; the first
// goes first.
func (t *Table) Spare(columns ...string) { t.spare = columns }

// Below names columns that stand below their row, whole, where there is no room for all;
// the first goes first.
func (t *Table) Below(columns ...string) { t.below = columns }

// Empty says what it means that there are no rows, and what to do about it. On a terminal
// that stands there instead of the heading.
func (t *Table) Empty(text string) { t.empty = text }

// Row adds a row of texts from anywhere.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if row[i] = Line(cell); t.room > 0 {
			row[i] = Marks.Signs(row[i])
		}
	}
	t.rows = append(t.rows, row)
}

// Flush prints it.
func (t *Table) Flush() error {
	if len(t.rows) == 1 && t.room > 0 {
		if t.empty == "" {
			return nil
		}
		_, err := fmt.Fprintln(t.out, Wrapped(Line("— "+t.empty), t.room, "  "))
		return err
	}
	widths := t.fit()
	var b strings.Builder
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if widths[i] < 0 {
				continue
			}
			if t.room > 0 {
				cell = CutToFit(cell, widths[i])
			}
			line.WriteString(cell + strings.Repeat(" ", widths[i]-displaywidth.String(cell)+columnGap))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		for i, cell := range row {
			if widths[i] == standsBelow && n > 0 && cell != "" {
				b.WriteString(Wrapped(below+cell, t.room, below+"  ") + "\n")
			}
		}
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

// Widths of columns that are none.
const (
	isLeftOut   = -1
	standsBelow = -2
)

// fit is how wide each column is to be, or why it is none.
func (t *Table) fit() []int {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], displaywidth.String(cell))
		}
	}
	if t.room <= 0 {
		return widths
	}
	wanted := func() (total int) {
		for _, w := range widths {
			if w >= 0 {
				total += w + columnGap
			}
		}
		return total - columnGap
	}
	// The last column is a text: of that much is to be read before others are there.
	last := len(widths) - 1
	for _, name := range t.spare {
		if wanted()-max(0, widths[last]-readableText) <= t.room {
			break
		}
		if i := slices.Index(t.rows[0], name); i >= 0 {
			widths[i] = isLeftOut
		}
	}
	for _, name := range t.below {
		if wanted() <= t.room {
			break
		}
		if i := slices.Index(t.rows[0], name); i >= 0 {
			widths[i] = standsBelow
		}
	}
	for over := wanted() - t.room; over > 0; over = wanted() - t.room {
		widest := last
		if widths[last] <= leastColumn {
			widest = slices.Index(widths, slices.Max(widths))
		}
		if widths[widest] <= leastColumn {
			break
		}
		widths[widest] = max(leastColumn, widths[widest]-over)
	}
	return widths
}

// A Field is a line of what is known about one thing: its name and its value.
type Field [2]string

// Fields prints those that have a value.
func Fields(out io.Writer, fields ...Field) error {
	var rows [][]string
	for _, f := range fields {
		if f[1] != "" {
			rows = append(rows, f[:])
		}
	}
	return Listing(out, rows)
}

// Body prints what an agent said below what is known of it: its Markdown rendered
// where colour is wanted and out is a terminal, else as it was written.
func Body(out io.Writer, text string, color bool) {
	text = strings.TrimRight(text, "\n")
	columns, _, _ := Size(out)
	switch {
	case text == "":
	case color && Draws(out):
		r := Renderer{Columns: columns, Marks: Marks}
		fmt.Fprintf(out, "\n%s", r.Text(Marks.Signs(text)))
	default:
		fmt.Fprintf(out, "\n%s\n", Marks.Prose(text))
	}
}

// Terminal is where commands print: the file, or where that is a terminal that shows
// ASCII alone one that writes its signs so.
func Terminal(f *os.File) io.Writer {
	if Marks != visible.ASCII || !IsTerminal(f) {
		return f
	}
	return asciiTerminal{f}
}

// An asciiTerminal writes signs in ASCII. Each write has whole characters.
type asciiTerminal struct{ file *os.File }

func (t asciiTerminal) File() *os.File { return t.file }

func (t asciiTerminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.file, visible.ASCII.Signs(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Marks is how characters are written out that could not be seen, as the
// environment's locale allows. It never changes.
var Marks = visible.ForTerminal()

// Exact is text in which every character is seen; lines stay lines.
func Exact(text string) string { return Marks.Exact(text) }

// Line is text that keeps to its line, in which every character is seen.
func Line(text string) string { return Marks.Line(text) }

// Quoted is the name of a file in quotes.
func Quoted(name string) string { return Exact(strconv.Quote(name)) }

// cellWidth is the most that a table shows of a text, in columns of a terminal.
const cellWidth = 60

// Short is the beginning of text, on one line.
func Short(text string) string { return Cut(Line(text), cellWidth) }

// Cut is the beginning of a line that is at most so many columns wide.
func Cut(line string, columns int) string {
	if displaywidth.String(line) <= columns {
		return line
	}
	return displaywidth.TruncateString(line, columns, "…")
}

// CutToFit is Cut for a terminal, with its signs.
func CutToFit(line string, columns int) string {
	line = Marks.Signs(line)
	if displaywidth.String(line) <= columns {
		return line
	}
	return displaywidth.TruncateString(line, columns, Marks.Signs("…"))
}

// Spinner are the steps of what turns on a terminal while something goes on.
func Spinner() []string {
	if Marks == visible.ASCII {
		return []string{"|", "/", "-", `\`}
	}
	return []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
}

// Duration is a time in words: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min.
func Duration(d time.Duration) string {
	switch {
	case d > 0 && d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// Number is a number with its thousands apart.
func Number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Time is a time on this machine's clock, or "" for the zero time.
func Time(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format(time.DateTime)
}

// TimeOf is Time of a time as RFC 3339 has it. Another text stays as it is.
func TimeOf(written string) string {
	if at, err := time.Parse(time.RFC3339Nano, written); err == nil {
		return Time(at)
	}
	return written
}

// Age is how long ago a time was, or - for the zero time.
func Age(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	switch d := max(0, time.Since(at)); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// Count is a number of things in words: 1 session, 2 sessions. many is only
// needed where it is not one with an s.
func Count(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Indented is text of several lines below another line.
func Indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// Silence says since when an agent has given no sign of life, in the middle of
// which tool call, and what it complains of; these may be "".
func Silence(agent string, since time.Time, tool, note string) string {
	took := max(0, time.Since(since)).Round(time.Second)
	length := fmt.Sprintf("%d s", int(took.Seconds()))
	if took >= 2*time.Minute {
		length = fmt.Sprintf("%d min", int(took.Minutes()))
	}
	text := agent + " has said nothing for " + length
	if tool != "" {
		text += ", in the middle of: " + tool
	}
	if note != "" {
		text += ": " + note
	}
	return text
}

// HomePath is a path with ~ in place of the home directory.
func HomePath(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || len(home) < 2 {
		return path
	}
	if path == home {
		return "~"
	}
	if rest, below := strings.CutPrefix(path, home+string(filepath.Separator)); below {
		return filepath.Join("~", rest)
	}
	return path
}

// Wrapped is a line broken between its words where it is wider than so many columns;
// what follows the first line begins with indent. What stands in backquotes, which is
// there to be copied, is broken only if it has no room on a line. 0: as it is.
func Wrapped(line string, columns int, indent string) string {
	if columns <= 0 {
		return line
	}
	if line = Marks.Signs(line); displaywidth.String(line) <= columns {
		return line
	}
	if len(indent) > columns/2 {
		indent = "  "
	}
	var b strings.Builder
	text := strings.TrimLeft(line, " ")
	at := len(line) - len(text)
	b.WriteString(line[:at])
	for i, word := range strings.Split(joinQuoted(text, columns-len(indent)), " ") {
		word = strings.ReplaceAll(word, joint, " ")
		width := displaywidth.String(word)
		switch {
		case i > 0 && at+1+width > columns:
			begin := indent
			if width > columns-len(indent) { // a path, which is better whole than in its column
				begin = "  "
			}
			b.WriteString("\n" + begin)
			at = len(begin)
		case i > 0:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += width
	}
	return b.String()
}

// joint stands for a space at which a line is not broken.
const joint = "\x00"

// joinQuoted joins the words in backquotes that have room in so many columns.
func joinQuoted(line string, columns int) string {
	parts := strings.Split(line, "`")
	for i := 1; i < len(parts)-1; i += 2 {
		if displaywidth.String(parts[i])+2 < columns {
			parts[i] = strings.ReplaceAll(parts[i], " ", joint)
		}
	}
	return strings.Join(parts, "`")
}

// Lines are those of a message of ours, broken for the terminal that out is.
func Lines(out io.Writer, text string) string {
	columns, _, _ := Size(out)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Wrapped(line, columns, "  ")
	}
	return strings.Join(lines, "\n")
}

// Asking is a question to which tty.Yes adds the answers, with them on the next line
// where the terminal that out is has no room for both.
func Asking(out io.Writer, question string) string {
	if Fits(out, question+" [y/N] y") {
		return question
	}
	return Lines(out, question) + "\n "
}

// Fits tells whether a line has room on the terminal that out is, if it is one.
func Fits(out io.Writer, line string) bool {
	columns, _, _ := Size(out)
	return columns == 0 || displaywidth.String(Marks.Signs(line)) <= columns
}

// below is what stands before a text on a line of its own.
const below = "     "

// Listing prints rows whose last cell is a text: on a terminal it is broken between its
// words, and goes on below itself, or where that is a narrow column and it does not fit,
// has lines of its own.
func Listing(out io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], displaywidth.String(Line(cell)))
		}
	}
	columns, _, _ := Size(out)
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row[:len(row)-1] {
			cell = Line(cell)
			line.WriteString(cell + strings.Repeat(" ", widths[i]-displaywidth.String(cell)+columnGap))
		}
		indent, last := displaywidth.String(line.String()), Line(row[len(row)-1])
		if room := columns - indent; columns > 0 && room < columns/2 && displaywidth.String(Marks.Signs(last)) > room {
			if begin := strings.TrimRight(line.String(), " "); begin != "" {
				b.WriteString(begin + "\n")
			}
			line.Reset()
			line.WriteString(below)
			indent = len(below) + columnGap
		}
		b.WriteString(strings.TrimRight(Wrapped(line.String()+last, columns, strings.Repeat(" ", indent)), " ") + "\n")
	}
	_, err := fmt.Fprint(out, b.String())
	return err
}

// AgeOf is Age of a time as RFC 3339 has it.
func AgeOf(written string) string {
	at, _ := time.Parse(time.RFC3339Nano, written) // zero if it is none
	return Age(at)
}
