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

// File is a file that a run has changed, with the decisions on it.
type File struct {
	domain.Change
	Diff  string // unified diff; "" if binary
	Hunks []Hunk // none for a binary file, or an empty one that was created or deleted
	State string // state of the whole file: that of its hunks if they agree, else open
	whole part   // the decision if there are no hunks
}

// Hunk is one change of a file.
type Hunk struct {
	ID string
	diff.Hunk
	State string
	mode  uint32 // mode of a file that reverting this deleted
}

// part is a change without hunks.
type part struct {
	id   string
	mode uint32
}

// fileOf returns a change with the decisions on its parts. root is the directory of its session.
func fileOf(root string, c domain.Change, decided map[string]domain.ChangeDecision) File {
	name := c.Path
	if rel, err := filepath.Rel(root, c.Path); err == nil && filepath.IsLocal(rel) {
		name = rel // survives moving the project
	}
	f := File{Change: c, whole: part{id: idOf(filepath.ToSlash(name))}}
	if !c.Binary {
		f.Diff = diff.Unified(root, c.Path, c.Before, c.After)
		for _, h := range diff.Hunks(f.Diff) {
			// The line is that before the run, which other hunks do not move.
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

// common returns the state of hunks if they agree.
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

// idOf returns a short id of a part of a change.
func idOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Expected returns the file's content if only the run and this review have changed it; nil: no
// file.
func (f File) Expected() *string {
	if f.Before == nil || f.After == nil { // created or deleted as a whole
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

// place returns the line, from 0, where a hunk begins in the expected text.
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

// lines splits a text into lines with their ends.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		list = append(list, line)
	}
	return list
}
