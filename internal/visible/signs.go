package visible

import "strings"

// signs are characters that we and agents use as signs, each with what stands for it
// where a terminal shows ASCII alone.
var signs = strings.NewReplacer(
	"—", "--", "–", "-", "−", "-", "·", "-", "…", "...", "•", "*",
	"“", `"`, "”", `"`, "‘", "'", "’", "'", "«", "<<", "»", ">>",
	"→", "->", "←", "<-", "❯", ">", "×", "x",
	"☐", "[ ]", "▶", "[>]", "☑", "[x]",
	"●", "*", "✓", "ok", "✗", "x", "⊘", "x", "✻", "~",
	"│", "|", "─", "-", "┼", "+", "├", "+", "└", "+", "┌", "+", "┐", "+", "┘", "+", "┤", "+", "┬", "+", "┴", "+",
)

// Signs returns text whose signs are of the characters that the terminal can show. What
// is broken into lines or cut is to have its signs before: some are wider in ASCII.
// Done twice it changes nothing.
func (m Marks) Signs(text string) string {
	if m != ASCII || plain(text) {
		return text
	}
	return signs.Replace(text)
}
