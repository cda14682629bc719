package visible

import "strings"

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
