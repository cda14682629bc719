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
	elsewhere trouble = "elsewhere" // its lines are not there any more
	ambiguous trouble = "ambiguous" // they are there several times, and nobody knows which are meant
)

// apply makes of a file's text now, nil where there is none, what it is when it is decided
// otherwise: from is what was decided, to has the same hunks with other states. Where that
// is so already, it is left as it is.
func apply(now *string, from, to File) (*string, trouble) {
	before, after := from.expected(), to.expected()
	switch {
	case same(now, before):
		return after, noTrouble
	case same(now, after):
		return now, noTrouble
	case now == nil || before == nil || after == nil: // it comes and goes as a whole
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

// swap puts one side of a hunk into the place of the other.
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
	at, t := find(text, out, lines(*f.expected()), f.place(hunk))
	if t != noTrouble {
		// Somebody may have done it by hand.
		if _, is := find(text, in, lines(*other.expected()), other.place(hunk)); is == noTrouble {
			return text, noTrouble
		}
		return nil, t
	}
	end := at + len(out)
	if len(in) > 0 && !strings.HasSuffix(in[len(in)-1], "\n") && end < len(text) {
		return nil, elsewhere // the file goes on where this ends it, in the middle of a line
	}
	return slices.Concat(text[:at], in, text[end:]), noTrouble
}

// find tells where in a text lines stand that stand at place in another one, which the text
// was before somebody else has changed it. Where they stand several times it has to be as
// often as they did: then it is the same of them; or one of more, where nothing has
// moved it.
func find(text, part, was []string, place int) (int, trouble) {
	if len(part) == 0 { // of a file that was emptied
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

// occurrences are the lines, from 0, at which part stands in text.
func occurrences(text, part []string) (list []int) {
	for at := 0; at+len(part) <= len(text); at++ {
		if slices.Equal(text[at:at+len(part)], part) {
			list = append(list, at)
		}
	}
	return list
}
