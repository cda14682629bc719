package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

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

// SortProblems puts problems in the order of their places.
func SortProblems(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// DidYouMean is a remark that names the known word nearest to one that is not, or
// nothing where none is near.
func DidYouMean(unknown string, known []string) string {
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

// QuoteShort is a value in a problem: quoted, so that it cannot play with a
// terminal, and not too long.
func QuoteShort(s string) string {
	const most = 40
	return strconv.Quote(CutShort(s, most))
}

// CutShort is the beginning of a text, at most so many characters of it.
func CutShort(s string, most int) string {
	for i := range s {
		if most--; most < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
