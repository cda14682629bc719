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
	// RenamedFrom is the path of a file that the run has deleted and whose text this new one has, in
	// whole or for the most part; "": none.
	RenamedFrom string
	whole       part // the decision if there are no hunks
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

const (
	mostRenames = 50       // new, and deleted, files that are compared with each other
	mostRenamed = 64 << 10 // bytes of a compared text
)

// findRenames sets RenamedFrom. A rename stays two changes, so that each side can be undone.
func findRenames(files []File) {
	var deleted, created []int
	for i, f := range files {
		switch {
		case f.Binary:
		case f.After == nil && f.Before != nil && *f.Before != "":
			deleted = append(deleted, i)
		case f.Before == nil && f.After != nil && *f.After != "":
			created = append(created, i)
		}
	}
	if len(deleted) > mostRenames || len(created) > mostRenames {
		return
	}
	taken := make(map[int]bool)
	pair := func(isSame func(old, new string) bool) {
		for _, c := range created {
			for _, d := range deleted {
				if files[c].RenamedFrom == "" && !taken[d] && isSame(*files[d].Before, *files[c].After) {
					files[c].RenamedFrom, taken[d] = files[d].Path, true
				}
			}
		}
	}
	pair(func(old, new string) bool { return old == new })
	pair(func(old, new string) bool {
		if max(len(old), len(new)) > mostRenamed {
			return false
		}
		_, removed := diff.Count(diff.Unified("", "", &old, &new))
		kept := len(lines(old)) - removed
		return 2*kept >= max(len(lines(old)), len(lines(new)))
	})
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
