// Package term draws on a command's terminal: tables, JSON, Markdown, the live region, the
// pager and the picker. It also handles the terminal's size, keys and signals.
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

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// Printing of tables, fields and JSON. Third-party text (agents, project files, logs) is
// printed with every character visible, so that it cannot control the terminal.

// JSON prints a value as indented JSON.
func JSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Raw prints JSON on one line. On a terminal it escapes control characters.
func Raw(out io.Writer, raw json.RawMessage) error {
	if f := fileOf(out); f != nil {
		out = f // print it unchanged
	}
	_, err := fmt.Fprintf(out, "%s\n", rawjson.Inert(raw))
	return err
}

// LogLines prints a log line by line, with all characters visible, because a log may come from
// a third party along with a project. As JSON, each line becomes an object with the line's
// members, or with its text if it has another format, such as that of a crash. Close prints an
// unterminated last line.
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

// logMembers parses a line in the format of log/slog: name=value, where either may be quoted
// as in Go.
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

// word returns the first word of a text, up to end unless it is quoted.
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

const (
	columnGap    = 2  // between columns
	readableText = 48 // width of the last column for which spare columns are dropped
	leastColumn  = 12 // to which a column is cut on a narrow terminal
)

// Table is printed in columns when all rows are known. On a terminal it fits the width: it
// drops spare columns, moves others below their row, and cuts the widest.
type Table struct {
	out   io.Writer
	rows  [][]string // the first one is the heading
	spare []string   // columns that may be dropped, in this order
	below []string   // columns that may move below their row, in this order
	empty string     // printed on a terminal instead of an empty table
	room  int        // width of the terminal; 0: unlimited
}

// NewTable returns a table with this heading.
func NewTable(out io.Writer, columns ...string) *Table {
	t := &Table{out: out}
	t.room, _, _ = Size(out)
	t.Row(columns...)
	return t
}

// Spare names columns that may be dropped on a narrow terminal, in this order.
func (t *Table) Spare(columns ...string) { t.spare = columns }

// Below names columns that may move below their row on a narrow terminal, in this order.
func (t *Table) Below(columns ...string) { t.below = columns }

// Empty sets the text that a terminal shows instead of an empty table. It explains why the
// table is empty and what to do.
func (t *Table) Empty(text string) { t.empty = text }

// Row adds a row. The cells may be third-party text.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if row[i] = Line(cell); t.room > 0 {
			row[i] = Marks.Signs(row[i])
		}
	}
	t.rows = append(t.rows, row)
}

// Flush prints the table.
func (t *Table) Flush() error {
	_, err := io.WriteString(t.out, t.text())
	return err
}

// Lines returns the lines that Flush prints.
func (t *Table) Lines() []string {
	text := strings.TrimSuffix(t.text(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (t *Table) text() string {
	if len(t.rows) == 1 && t.room > 0 {
		if t.empty == "" {
			return ""
		}
		return Wrapped(Line("— "+t.empty), t.room, "  ") + "\n"
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
	return b.String()
}

// Widths of columns that are not shown as columns.
const (
	isLeftOut   = -1
	standsBelow = -2
)

// fit returns the width of each column, or why it is not shown as a column.
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
	// The last column is a text, which gets a readable width before other columns.
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

// Field is the name and the value of a property.
type Field [2]string

// Fields prints the fields that have a value.
func Fields(out io.Writer, fields ...Field) error {
	var rows [][]string
	for _, f := range fields {
		if f[1] != "" {
			rows = append(rows, f[:])
		}
	}
	return Listing(out, rows)
}

// Body prints an agent's text below its fields. It renders Markdown if color is set and out is
// a terminal; otherwise the text is raw.
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

// Terminal returns the output for a file: the file, or a writer that replaces signs if the
// file is a terminal that only shows ASCII.
func Terminal(f *os.File) io.Writer {
	if Marks != visible.ASCII || !IsTerminal(f) {
		return f
	}
	return asciiTerminal{f}
}

// Shown returns a writer of another program's output: on a terminal it makes every character visible. Close writes
// what is held back.
func Shown(out io.Writer) io.WriteCloser {
	if !IsTerminal(out) {
		return &shown{out: out}
	}
	return &shown{out, Marks.Stream()}
}

type shown struct {
	out    io.Writer
	stream *visible.Stream // nil: unchanged
}

func (s *shown) Write(p []byte) (int, error) {
	if s.stream == nil {
		return s.out.Write(p)
	}
	if _, err := io.WriteString(s.out, s.stream.Next(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *shown) Close() (err error) {
	if s.stream != nil {
		_, err = io.WriteString(s.out, s.stream.End())
	}
	return err
}

// asciiTerminal writes signs in ASCII. Each write must consist of whole characters.
type asciiTerminal struct{ file *os.File }

func (t asciiTerminal) File() *os.File { return t.file }

func (t asciiTerminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.file, visible.ASCII.Signs(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Marks makes invisible characters visible, as the environment's locale allows. It never
// changes.
var Marks = visible.ForTerminal()

// Exact returns text with every character visible. Newlines stay.
func Exact(text string) string { return Marks.Exact(text) }

// Line returns text as one line with every character visible.
func Line(text string) string { return Marks.Line(text) }

// Quoted returns a file name in quotes.
func Quoted(name string) string { return Exact(strconv.Quote(name)) }

// cellWidth is the largest width of a text in a table.
const cellWidth = 60

// Short returns the beginning of text on one line, as wide as a table cell.
func Short(text string) string { return Cut(Line(text), cellWidth) }

// Cut shortens a line to a width.
func Cut(line string, columns int) string {
	if displaywidth.String(line) <= columns {
		return line
	}
	return displaywidth.TruncateString(line, columns, "…")
}

// CutToFit is Cut with an ellipsis in the terminal's character set.
func CutToFit(line string, columns int) string {
	line = Marks.Signs(line)
	if displaywidth.String(line) <= columns {
		return line
	}
	return displaywidth.TruncateString(line, columns, Marks.Signs("…"))
}

// Spinner returns the steps of an animation that shows progress.
func Spinner() []string {
	if Marks == visible.ASCII {
		return []string{"|", "/", "-", `\`}
	}
	return []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
}

// Duration formats a duration: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min.
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

// Number formats a number with thousands separators.
func Number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Time formats a time in the local time zone, or as "" if it is zero.
func Time(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format(time.DateTime)
}

// TimeOf formats an RFC 3339 time like Time. Other text stays unchanged.
func TimeOf(written string) string {
	if at, err := time.Parse(time.RFC3339Nano, written); err == nil {
		return Time(at)
	}
	return written
}

// Age formats the time since at, or returns - for the zero time.
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

// Count formats a number of things: 1 session, 2 sessions. many is the plural if it is not one
// with an s.
func Count(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Indented indents all lines of a text but the first.
func Indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// toolWidth is how much of a tool call's title says what a silent agent does.
const toolWidth = 40

// Silence says how long an agent has been silent, in which tool call, and with which error;
// tool and note may be "".
func Silence(agent string, since time.Time, tool, note string) string {
	took := max(0, time.Since(since)).Round(time.Second)
	length := fmt.Sprintf("%d s", int(took.Seconds()))
	if took >= 2*time.Minute {
		length = fmt.Sprintf("%d min", int(took.Minutes()))
	}
	text := agent + " has said nothing for " + length
	if tool != "" {
		text += ", in the middle of: " + Cut(Line(tool), toolWidth)
	}
	if note != "" {
		text += ": " + note
	}
	return text
}

// HomePath replaces the home directory in a path with ~.
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

// Wrapped breaks a line between words to fit into columns. Lines after the first begin with
// indent. Text in backquotes, which users copy, is only broken if it does not fit on a line.
// If columns is 0, the line stays unchanged.
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
	for i, word := range strings.Split(joinUnits(joinQuoted(text, columns-len(indent))), " ") {
		word = strings.ReplaceAll(word, joint, " ")
		width := displaywidth.String(word)
		switch {
		case i > 0 && at+1+width > columns:
			begin := indent
			if width > columns-len(indent) { // keep a path whole rather than aligned
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

// joint represents a space at which a line must not break.
const joint = "\x00"

var unit = lazyregexp.New(`(\d) (ms|s|seconds?|min|minutes?|h|hours?|tokens)\b`)

// joinUnits joins numbers with their units.
func joinUnits(line string) string { return unit().ReplaceAllString(line, "${1}"+joint+"${2}") }

// joinQuoted joins the words in backquotes that fit into columns.
func joinQuoted(line string, columns int) string {
	parts := strings.Split(line, "`")
	for i := 1; i < len(parts)-1; i += 2 {
		if displaywidth.String(parts[i])+2 < columns {
			parts[i] = strings.ReplaceAll(parts[i], " ", joint)
		}
	}
	return strings.Join(parts, "`")
}

// Lines wraps a message of Duet for the terminal out.
func Lines(out io.Writer, text string) string {
	columns, _, _ := Size(out)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Wrapped(line, columns, "  ")
	}
	return strings.Join(lines, "\n")
}

// Asking returns a question to which Yes appends the answers. It ends with a newline if both
// do not fit on one line of the terminal out.
func Asking(out io.Writer, question string) string {
	if Fits(out, question+" [y/N] y") {
		return question
	}
	return Lines(out, question) + "\n "
}

// Fits reports whether a line fits on the terminal out, or out is no terminal.
func Fits(out io.Writer, line string) bool {
	columns, _, _ := Size(out)
	return columns == 0 || displaywidth.String(Marks.Signs(line)) <= columns
}

// below is the indentation of a text on a line of its own.
const below = "     "

// Listing prints rows whose last cell is a text. A terminal wraps that text within its column,
// or below the row if the column is too narrow.
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

// AgeOf formats an RFC 3339 time like Age.
func AgeOf(written string) string {
	at, _ := time.Parse(time.RFC3339Nano, written) // zero if it is invalid
	return Age(at)
}
