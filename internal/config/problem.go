package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// Problem is one thing that is wrong. It never holds a value that could be a
// secret.
type Problem struct {
	File    string `json:"file,omitempty"`   // the path; empty for the environment and flags
	Name    string `json:"name"`             // of the file, the variable or the flag, for people
	Line    int    `json:"line,omitempty"`   // from 1; 0 where the problem has no place
	Column  int    `json:"column,omitempty"` // in bytes, from 1
	Message string `json:"message"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.Name, p.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.Name, p.Line, p.Column, p.Message)
}

func sortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// didYouMean is a remark that names the known word nearest to one that is not, or
// nothing where none is near.
func didYouMean(unknown string, known []string) string {
	best, bestDistance := "", max(1, min(3, len(unknown)/3))+1
	for _, word := range known {
		if d := distance(unknown, word); d < bestDistance {
			best, bestDistance = word, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is that of Levenshtein, between bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// quoteShort is a value in a problem: quoted, so that it cannot play with a
// terminal, and not too long.
func quoteShort(s string) string {
	const most = 40
	return strconv.Quote(cutShort(s, most))
}

// cutShort is the beginning of a text, at most so many characters of it.
func cutShort(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
