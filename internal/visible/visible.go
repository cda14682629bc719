// Package visible turns third-party text into text that a person can safely read on a terminal.
// It writes out every character that would control the terminal, reorder the text or be
// invisible, as ⟨U+202E⟩.
//
// It leaves letters that look alike unchanged, such as the Cyrillic а and the Latin a: they are
// visible, and only a reader of the language can distinguish them.
package visible

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// Marks enclose a character that is written out.
type Marks struct{ open, close string }

var (
	// Brackets are for terminals that show UTF-8.
	Brackets = Marks{"⟨", "⟩"}
	// ASCII is for all others.
	ASCII = Marks{"<", ">"}
)

// ForLocale returns the marks for a terminal in the locale that the environment names, as
// setlocale(3) reads it. Without one the locale is C, which is ASCII.
func ForLocale(getenv func(string) string) Marks {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := getenv(name); value != "" {
			charset := strings.ToLower(strings.ReplaceAll(value, "-", ""))
			if strings.Contains(charset, "utf8") {
				return Brackets
			}
			return ASCII
		}
	}
	return ASCII
}

// ForTerminal returns the marks for the terminal of this process.
func ForTerminal() Marks {
	if runtime.GOOS == "windows" { // which has no such variables
		return Brackets
	}
	return ForLocale(os.Getenv)
}

// Exact returns text in which every character is visible, for text that a person decides on:
// commands, paths, diffs, the input of tools. Line ends and tabs stay.
func (m Marks) Exact(text string) string {
	if plain(text) {
		return text
	}
	w := writer{marks: m, exact: true, before: none, base: none}
	w.write(text)
	w.flush()
	return w.out.String()
}

// Line is Exact on one line: line ends, tabs and runs of spaces become one space.
func (m Marks) Line(text string) string {
	return m.Exact(strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r == ' ' || '\t' <= r && r <= '\r'
	}), " "))
}

// colors are the sequences that choose colours and weights on a terminal (SGR of ECMA-48), and
// no others.
var colors = lazyregexp.New("\x1b\\[[0-9;:]*m")

// WithoutColors removes the colours from a program's output.
func WithoutColors(text string) string {
	if !strings.Contains(text, "\x1b[") {
		return text
	}
	return colors().ReplaceAllString(text, "")
}

// Prose is Exact for text that a person only reads. It keeps characters that natural languages
// need: the joiners of emoji and of scripts that use them, spaces of other widths, and carriage
// returns before line ends.
func (m Marks) Prose(text string) string {
	if plain(text) {
		return text
	}
	s := m.Stream()
	return s.Next(text) + s.End()
}

// Stream begins a prose that comes in pieces.
func (m Marks) Stream() *Stream { return &Stream{writer{marks: m, before: none, base: none}} }

// A Stream is prose that comes in pieces, which may cut characters and sequences anywhere. It is
// for one goroutine.
type Stream struct{ w writer }

// Next returns the text that can be shown after piece. It holds back at most one character,
// until the next one determines its display.
func (s *Stream) Next(piece string) string {
	s.w.write(piece)
	return s.w.take()
}

// End returns the held back text; the next piece begins another text.
func (s *Stream) End() string {
	s.w.flush()
	return s.w.take()
}

// plain reports whether text needs no check.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// none represents a missing character. It is one of Unicode's noncharacters, which belong to no
// class.
const none = 0xffff

// A writer writes text, holding back the last character: its display may depend on its
// neighbours.
type writer struct {
	marks Marks
	exact bool
	out   strings.Builder

	part   string // the bytes of an incomplete character
	held   rune   // the character that waits for its neighbour
	holds  bool
	before rune // the previous character on this line, or none
	base   rune // the last one that is not a mark, joiner or selector, or none
	piled  int  // the number of marks on it
}

func (w *writer) write(text string) {
	if w.part != "" {
		text, w.part = w.part+text, ""
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			if !utf8.FullRuneInString(text[i:]) {
				w.part = text[i:]
				return
			}
			w.next(-1 - rune(text[i]))
		} else {
			w.next(r)
		}
		i += size
	}
}

// flush writes the held back character: nothing follows it.
func (w *writer) flush() {
	for _, c := range []byte(w.part) {
		w.next(-1 - rune(c))
	}
	if w.holds {
		w.put(w.held, none)
	}
	w.part, w.holds, w.before, w.base, w.piled = "", false, none, none, 0
}

func (w *writer) take() string {
	text := w.out.String()
	w.out.Reset()
	return text
}

// next handles the next character; an invalid byte is -1 less its value.
func (w *writer) next(r rune) {
	if w.holds {
		w.put(w.held, r)
	}
	w.held, w.holds = r, true
	if !depends(r) { // on the next one
		w.put(r, none)
		w.holds = false
	}
}

// put writes a character in front of another one.
func (w *writer) put(r, after rune) {
	switch {
	case r == '\r' && after == '\n' && !w.exact:
	case w.shown(r, after):
		w.out.WriteRune(r)
	case r < 0:
		fmt.Fprintf(&w.out, "%s0x%02X%s", w.marks.open, -1-r, w.marks.close)
	default:
		fmt.Fprintf(&w.out, "%sU+%04X%s", w.marks.open, r, w.marks.close)
	}
	w.passed(r)
}

// Fence returns a code fence that no line of a text closes
// (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
func Fence(text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}

// signs are characters that we and agents use as signs, each with its replacement on a terminal
// that shows only ASCII.
var signs = strings.NewReplacer(
	"—", "--", "–", "-", "−", "-", "·", "-", "…", "...", "•", "*",
	"“", `"`, "”", `"`, "‘", "'", "’", "'", "«", "<<", "»", ">>",
	"→", "->", "←", "<-", "❯", ">", "×", "x",
	"☐", "[ ]", "▶", "[>]", "☑", "[x]",
	"●", "*", "✓", "ok", "✗", "x", "⊘", "x", "✻", "~",
	"│", "|", "─", "-", "┼", "+", "├", "+", "└", "+", "┌", "+", "┐", "+", "┘", "+", "┤", "+", "┬", "+", "┴", "+",
)

// Signs replaces signs that the terminal cannot show. Call it before breaking or cutting lines:
// some signs are wider in ASCII. A second call changes nothing.
func (m Marks) Signs(text string) string {
	if m != ASCII || plain(text) {
		return text
	}
	return signs.Replace(text)
}
