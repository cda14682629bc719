package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func TestOfALongOutputTheFirstAndTheLastLinesAreTold(t *testing.T) {
	var long strings.Builder
	for i := range 300 {
		fmt.Fprintf(&long, "\x1b[31mline %d\x1b[0m\n", i)
	}
	lines := strings.Split(excerpt(long.String()), "\n")
	assert.Len(t, lines, firstLines+1+lastLines)
	assert.Equal(t, "line 0", lines[0])
	assert.Equal(t, "line 19", lines[19])
	assert.Equal(t, "[... 200 lines left out ...]", lines[20])
	assert.Equal(t, "line 220", lines[21])
	assert.Equal(t, "line 299", lines[len(lines)-1])

	assert.Equal(t, "a\nb", excerpt("a\r\nb\n\n"))
	assert.Empty(t, excerpt("\n\n"))
	wide := excerpt(strings.Repeat("é", 1000))
	assert.True(t, strings.HasPrefix(wide, "éé"))
	assert.True(t, strings.HasSuffix(wide, "é [...]"))
	assert.Less(t, len(wide), longestLine+10)
}

func TestAnAgentIsToldWhatIsWrongWhere(t *testing.T) {
	l := domain.GateLoop{Results: []domain.GateResult{
		{Gate: "make fine", Passed: true},
		{
			Gate: "make test", Reason: "exit status 2", Errors: 2, Duration: 1234 * time.Millisecond, Output: "```\nquoted",
			Findings: []domain.Diagnostic{{File: "a.go", Line: 3, Column: 4, Severity: "error", Message: "undefined: x"}, {File: "b.go", Severity: "warning", Message: "old"}},
		},
	}}
	assert.Equal(t, `Your work was checked, and a command that has to succeed fails. Mend what it complains of; it is run again when you are done.

## make test: exit status 2

- a.go:3:4: error: undefined: x
- b.go: warning: old

`+"````\n```\nquoted\n````\n", prompt(l))
	assert.Equal(t, "Gate passed: make fine (0s)\nGate failed: make test: exit status 2, 2 errors (1.23s)", summary(l))

	many := domain.GateResult{Gate: "x", Reason: "exit status 1"}
	for range 30 {
		many.Findings = append(many.Findings, domain.Diagnostic{File: "f", Severity: "error", Message: "m"})
	}
	text := prompt(domain.GateLoop{Results: []domain.GateResult{many}})
	assert.Equal(t, mostShown, strings.Count(text, "- f: error: m\n"))
	assert.Contains(t, text, "- and more\n")
}
