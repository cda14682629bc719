package config

import (
	"errors"
	"fmt"
	"strings"
)

// Error is everything that is wrong with a configuration.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(append(lines, "(`duet-rpc config --defaults` shows every key and what it may be)"), "\n")
}

// Explain begins the list of what is wrong on a line of its own, where editors
// and terminals find the places in it. Another error stays as it is.
func Explain(err error) error {
	var wrong *Error
	if errors.As(err, &wrong) {
		return fmt.Errorf("the configuration is wrong\n%w", err)
	}
	return err
}

// mostProblems are how many are told: the rest is seldom other.
const mostProblems = 100

// cut leaves out the problems that are too many.
func (e *Error) cut() *Error {
	if more := len(e.Problems) - mostProblems; more > 0 {
		name := e.Problems[mostProblems].Name
		e.Problems = append(e.Problems[:mostProblems:mostProblems], Problem{Name: name, Message: fmt.Sprintf("and %d more", more)})
	}
	return e
}
