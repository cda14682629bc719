package gate

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// Limits of the gate output in an agent's prompt: first and last lines, and bytes per line.
const (
	firstLines  = 20
	lastLines   = 80
	longestLine = 500
	mostShown   = 20 // findings
)

// excerpt returns the first and last lines of an output, without terminal control sequences.
func excerpt(output string) string {
	output = strings.ToValidUTF8(strings.TrimRight(output, "\n \t\r"), "\uFFFD")
	if output == "" {
		return ""
	}
	lines := strings.Split(output, "\n")
	if left := len(lines) - firstLines - lastLines; left > 1 {
		end := lines[len(lines)-lastLines:]
		lines = append(append(lines[:firstLines:firstLines], fmt.Sprintf("[... %d lines left out ...]", left)), end...)
	}
	for i, line := range lines {
		lines[i] = cut(strings.TrimRight(usercommand.Plain(line), "\r"))
	}
	return strings.Join(lines, "\n")
}

// cut truncates a long line.
func cut(line string) string {
	if len(line) <= longestLine {
		return line
	}
	end := longestLine
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + " [...]"
}

// prompt returns the agent's prompt about the failed gates.
func prompt(l domain.GateLoop) string {
	var b strings.Builder
	failing := l.Failing()
	if len(failing) == 1 {
		b.WriteString("Your work was checked, and a command that has to succeed fails. Mend what it complains of; it is run again when you are " +
			"done.\n")
	} else {
		fmt.Fprintf(&b, "Your work was checked, and %d commands that have to succeed fail. Mend what they complain of; they are run again when "+
			"you are done.\n", len(failing))
	}
	for _, r := range failing {
		fmt.Fprintf(&b, "\n## %s: %s\n", r.Gate, r.Reason)
		shown := r.Findings
		if len(shown) > mostShown {
			shown = shown[:mostShown]
		}
		if len(shown) > 0 {
			b.WriteByte('\n')
		}
		for _, d := range shown {
			fmt.Fprintf(&b, "- %s\n", finding(d))
		}
		if left := len(r.Findings) - len(shown); left > 0 {
			b.WriteString("- and more\n")
		}
		if r.Output != "" {
			fence := visible.Fence(r.Output)
			fmt.Fprintf(&b, "\n%s\n%s\n%s\n", fence, r.Output, fence)
		}
	}
	return b.String()
}

// finding formats a diagnostic as compilers do.
func finding(d domain.Diagnostic) string {
	place := d.File
	if d.Line > 0 {
		place += fmt.Sprintf(":%d", d.Line)
		if d.Column > 0 {
			place += fmt.Sprintf(":%d", d.Column)
		}
	}
	return fmt.Sprintf("%s: %s: %s", place, d.Severity, d.Message)
}

// summary returns the transcript's note of a check.
func summary(l domain.GateLoop) string {
	lines := make([]string, 0, len(l.Results))
	for _, r := range l.Results {
		line := "Gate passed: " + r.Gate
		if !r.Passed {
			line = "Gate failed: " + r.Gate + ": " + r.Reason
			switch r.Errors {
			case 0:
			case 1:
				line += ", 1 error"
			default:
				line += fmt.Sprintf(", %d errors", r.Errors)
			}
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", line, r.Duration.Round(10*time.Millisecond)))
	}
	return strings.Join(lines, "\n")
}
