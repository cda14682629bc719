package changereview

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A File is a file that a run has changed, and what was decided about that.
type File struct {
	domain.Change
	Diff  string // unified; "" of what is binary
	Hunks []Hunk // none where it is binary, or an empty file came or went
	State string // of all of it: that of its hunks where they agree, else open
	whole part   // what is decided about where there are no hunks
}

// A Hunk is one change of a file.
type Hunk struct {
	ID string
	diff.Hunk
	State string
	mode  uint32 // of a file that was deleted when this was reverted
}

// part is what has no hunks, as a whole.
type part struct {
	id   string
	mode uint32
}

// fileOf is a change with what was decided about its parts. root is the directory of
// its session.
func fileOf(root string, c domain.Change, decided map[string]domain.ChangeDecision) File {
	name := c.Path
	if rel, err := filepath.Rel(root, c.Path); err == nil && filepath.IsLocal(rel) {
		name = rel // it stays, when the project is moved
	}
	f := File{Change: c, whole: part{id: idOf(filepath.ToSlash(name))}}
	if !c.Binary {
		f.Diff = diff.Unified(root, c.Path, c.Before, c.After)
		for _, h := range diff.Hunks(f.Diff) {
			// Its place is that in the file before the run, which other hunks do not move.
			id := idOf(filepath.ToSlash(name), strconv.Itoa(h.OldStart), h.Body)
			f.Hunks = append(f.Hunks, Hunk{ID: id, Hunk: h, State: stateOf(decided[id]), mode: decided[id].Mode})
		}
	}
	f.whole.mode = decided[f.whole.id].Mode
	f.State = stateOf(decided[f.whole.id])
	if len(f.Hunks) > 0 {
		f.State = common(f.Hunks)
	}
	return f
}

// common is the state of hunks where they agree.
func common(hunks []Hunk) string {
	for _, h := range hunks {
		if h.State != hunks[0].State {
			return domain.ChangeOpen
		}
	}
	return hunks[0].State
}

func stateOf(d domain.ChangeDecision) string {
	if d.State == "" {
		return domain.ChangeOpen
	}
	return d.State
}

// idOf names a part of a change in a few letters.
func idOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// expected is what the file holds if nobody but the run and this review has changed
// it; nil: there is none.
func (f File) expected() *string {
	if f.Before == nil || f.After == nil { // it comes and goes as a whole
		if f.State == domain.ChangeReverted {
			return f.Before
		}
		return f.After
	}
	var text strings.Builder
	rest := lines(*f.After)
	done := 0
	for _, h := range f.Hunks {
		at := max(h.NewStart-1, 0)
		write(&text, rest[done:at])
		if h.State == domain.ChangeReverted {
			text.WriteString(h.Old)
		} else {
			text.WriteString(h.New)
		}
		done = at + h.NewLines
	}
	write(&text, rest[done:])
	s := text.String()
	return &s
}

// place is the line, from 0, where a hunk begins in what is expected.
func (f File) place(hunk int) int {
	at := max(f.Hunks[hunk].NewStart-1, 0)
	for _, h := range f.Hunks[:hunk] {
		if h.State == domain.ChangeReverted {
			at += h.OldLines - h.NewLines
		}
	}
	return at
}

func write(b *strings.Builder, lines []string) {
	for _, line := range lines {
		b.WriteString(line)
	}
}

// lines are those of a text, with their ends.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		list = append(list, line)
	}
	return list
}
