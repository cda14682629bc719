package main_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command says what its exit status means.
func TestExitStatusOfEveryCommandIsTold(t *testing.T) {
	t.Parallel()
	listed := regexp.MustCompile(`(?m)^  ([a-z-]+) +\S`)
	var walk func(path ...string)
	walk = func(path ...string) {
		out, err := exec.Command(program, append(path, "--help")...).Output()
		require.NoError(t, err, path)
		help := string(out)
		name := strings.Join(path, " ")
		assert.Regexp(t, `(?m)^Exit status: `, help, "duet-rpc %s", name)
		for _, row := range listed.FindAllStringSubmatch(section(help, "Available Commands:"), -1) {
			if row[1] == "help" || row[1] == "completion" { // cobra's own
				continue
			}
			walk(append(path[:len(path):len(path)], row[1])...)
		}
	}
	walk()
}

// section is what follows a heading of a help, to the next empty line.
func section(help, heading string) string {
	_, rest, _ := strings.Cut(help, heading+"\n")
	text, _, _ := strings.Cut(rest, "\n\n")
	return text
}
