package usage

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
)

// fitHelp has the help of a program and its commands fit the terminal.
func fitHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		columns, _, _ := term.Size(out)
		var text bytes.Buffer
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(out)
		_, _ = out.Write([]byte(fit(text.String(), columns)))
	})
}

// farIn is from where a line goes on with the one above, rather than beginning one.
const farIn = 12

// fit breaks the lines of a help that are wider than so many columns. Words under a
// name stay under it; lines of a paragraph that has one too wide are filled anew.
func fit(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		paragraph := lines[i : i+1]
		for _, next := range lines[i+1:] {
			if !goesOn(paragraph[0], next) {
				break
			}
			paragraph = lines[i : i+len(paragraph)+1]
		}
		i += len(paragraph)
		if !tooWide(paragraph, columns) {
			out = append(out, paragraph...)
			continue
		}
		whole := strings.TrimRight(paragraph[0], " ")
		for _, line := range paragraph[1:] {
			whole += " " + strings.TrimSpace(line)
		}
		out = append(out, term.Wrapped(whole, columns, under(whole, columns)))
	}
	return strings.Join(out, "\n")
}

// goesOn tells whether a line is of the paragraph, or of the entry of a list, that
// begins with first.
func goesOn(first, line string) bool {
	switch depth := indentOf(line); {
	case line == "" || first == "":
		return false
	case depth == 0:
		return indentOf(first) == 0
	default:
		return depth >= farIn && indentOf(first) < farIn && indentOf(first) > 0
	}
}

func tooWide(lines []string, columns int) bool {
	for _, line := range lines {
		if len([]rune(line)) > columns {
			return true
		}
	}
	return false
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// under is what stands before a line that goes on with one: spaces up to the text
// behind a name, or a little more than before the name where there is little room.
func under(line string, columns int) string {
	depth := indentOf(line)
	if depth == 0 {
		return ""
	}
	at := strings.Index(line[depth:], "  ")
	if at < 0 {
		return strings.Repeat(" ", depth+2)
	}
	at += depth
	at += indentOf(line[at:])
	if at > columns/2 {
		return strings.Repeat(" ", farIn)
	}
	return strings.Repeat(" ", at)
}
