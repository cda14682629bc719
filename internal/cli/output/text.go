package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

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

// Time is a time of the wire as people read it, on this machine's clock.
func Time(written string) string {
	if t, err := time.Parse(time.RFC3339Nano, written); err == nil {
		return t.Local().Format(time.DateTime)
	}
	return written
}

// Age is how long ago a time was, as it is written in JSON, or - if it is none.
func Age(written string) string {
	at, err := time.Parse(time.RFC3339Nano, written)
	if err != nil {
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
