package screen

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStylesAreReadAndWrittenOneWay(t *testing.T) {
	lines := Parse("plain \x1b[1m\x1b[31mred\x1b[22m thin\x1b[39m\x0f \nnext \x1b[38;5;240;4mx\x1b[48;2;1;2;3m \x1b[0m\n\n")
	assert.Equal(t, []Line{
		{{"plain ", Style{}}, {"red", Style{Bold: true, Fore: "31"}}, {" thin", Style{Fore: "31"}}},
		{{"next ", Style{}}, {"x", Style{Underline: true, Fore: "38;5;240"}}, {" ", Style{Underline: true, Fore: "38;5;240", Back: "48;2;1;2;3"}}},
	}, lines)
	assert.Equal(t, "plain red thin\nnext x \n", Plain(lines))
	colored := Colored(lines)
	assert.Equal(t, "plain \x1b[1;31mred\x1b[0m\x1b[31m thin\x1b[0m\nnext \x1b[4;38;5;240mx\x1b[0m\x1b[4;38;5;240;48;2;1;2;3m \x1b[0m\n", colored)
	assert.Equal(t, lines, Parse(colored))
	assert.Equal(t, []Line{{{"a", Style{}}}}, Parse("a\x1b]8;;http://x\x1b\\\x1b[3Z\x1b]0;t\x07\r"), "what is no style is left out")
}

func TestReplaceGoesOverParts(t *testing.T) {
	line := Parse("took \x1b[1m1\x1b[0m2 s, then 7 s\x1b[2m!\x1b[0m")[0]
	got := line.Replace(regexp.MustCompile(`\d+ s`), func(match string) string { return "<" + match + ">" })
	assert.Equal(t, "took \x1b[1m<12 s>\x1b[0m, then <7 s>\x1b[2m!\x1b[0m\n", Colored([]Line{got}))
	assert.Equal(t, line, line.Replace(regexp.MustCompile("nothing"), strings.ToUpper))
}

func TestWrapIsThatOfATerminal(t *testing.T) {
	lines := Wrap(Parse("abcdef\n日本語\n\nabc\x1b[1mdef\x1b[0m"), 4)
	assert.Equal(t, "abcd\nef\n日本\n語\n\nabc\x1b[1md\x1b[0m\n\x1b[1mef\x1b[0m\n", Colored(lines))
}
