package changereview

import (
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// trouble is why a text cannot be changed.
type trouble string

const (
	noTrouble trouble = ""
	elsewhere trouble = "elsewhere" // its lines no longer exist
	ambiguous trouble = "ambiguous" // its lines exist several times, and the right ones are unknown
)

// apply changes a file's current text, nil if missing, from one set of decisions to another. from
// and to have the same hunks in different states. Parts that are already changed stay.
func apply(now *string, from, to File) (*string, trouble) {
	before, after := from.Expected(), to.Expected()
	switch {
	case same(now, before):
		return after, noTrouble
	case same(now, after):
		return now, noTrouble
	case now == nil || before == nil || after == nil: // created or deleted as a whole
		return nil, elsewhere
	}
	text := lines(*now)
	step := from
	step.Hunks = slices.Clone(from.Hunks)
	for i := range step.Hunks {
		if (step.Hunks[i].State == domain.ChangeReverted) == (to.Hunks[i].State == domain.ChangeReverted) {
			continue
		}
		var t trouble
		if text, t = step.swap(text, i); t != noTrouble {
			return nil, t
		}
		step.Hunks[i].State = to.Hunks[i].State
	}
	result := strings.Join(text, "")
	return &result, noTrouble
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// swap replaces one side of a hunk with the other.
func (f File) swap(text []string, hunk int) ([]string, trouble) {
	h := f.Hunks[hunk]
	out, in := lines(h.New), lines(h.Old)
	other := f
	other.Hunks = slices.Clone(f.Hunks)
	other.Hunks[hunk].State = domain.ChangeReverted
	if h.State == domain.ChangeReverted {
		out, in = in, out
		other.Hunks[hunk].State = domain.ChangeOpen
	}
	at, t := find(text, out, lines(*f.Expected()), f.place(hunk))
	if t != noTrouble {
		// A user may have made the change by hand.
		if _, is := find(text, in, lines(*other.Expected()), other.place(hunk)); is == noTrouble {
			return text, noTrouble
		}
		return nil, t
	}
	end := at + len(out)
	if len(in) > 0 && !strings.HasSuffix(in[len(in)-1], "\n") && end < len(text) {
		return nil, elsewhere // the file continues in the middle of the line where this ends it
	}
	return slices.Concat(text[:at], in, text[end:]), noTrouble
}

// find returns where part occurs in text. In was, the text before other edits, it occurred at
// place. If part occurs several times, the counts in both texts must agree; otherwise its position
// must be unchanged.
func find(text, part, was []string, place int) (int, trouble) {
	if len(part) == 0 { // of an emptied file
		if len(text) == 0 {
			return 0, noTrouble
		}
		return 0, elsewhere
	}
	now, then := occurrences(text, part), occurrences(was, part)
	switch {
	case len(now) == 0:
		return 0, elsewhere
	case len(now) == len(then):
		if i := slices.Index(then, place); i >= 0 {
			return now[i], noTrouble
		}
	case len(now) > len(then) && slices.Contains(now, place):
		return place, noTrouble
	}
	return 0, ambiguous
}

// occurrences returns the lines, from 0, at which part occurs in text.
func occurrences(text, part []string) (list []int) {
	for at := 0; at+len(part) <= len(text); at++ {
		if slices.Equal(text[at:at+len(part)], part) {
			list = append(list, at)
		}
	}
	return list
}
