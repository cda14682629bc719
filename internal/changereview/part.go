package changereview

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// File is a file that a turn has changed, with the decisions on it.
type File struct {
	domain.Change
	Diff   string  // unified diff; "" if binary
	InDiff []Block // the hunks of Diff
	Hunks  []Hunk  // the changes of these; none for a binary file, or an empty one that was created or deleted
	Mode   *Mode   // nil if the executable bit is as before
	State  string  // state of the whole file: that of its parts if they agree, else open
	// RenamedFrom is the path of a file that the turn has deleted and whose text this new one has, in
	// whole or for the most part; "": none.
	RenamedFrom string
	whole       whole // the decision if there are no hunks
}

// Block is a hunk of a diff, with one or several changes.
type Block struct {
	ID string // that of its change if it has only one
	diff.Hunk
}

// Hunk is one change of a file, with a decision of its own.
type Hunk struct {
	ID    string
	Block string // id of the block that has the change
	diff.Hunk
	State string
	mode  uint32 // mode of a file that reverting this deleted
}

// Mode is a change of a file's executable bit.
type Mode struct {
	ID       string
	Old, New uint32 // as git has them: 0o100644 or 0o100755
	State    string
}

// whole is a change without hunks.
type whole struct {
	id    string
	state string
	mode  uint32 // as in Hunk
}

// states returns the states of the parts of the change.
func (f *File) states() (list []*string) {
	for i := range f.Hunks {
		list = append(list, &f.Hunks[i].State)
	}
	if f.Mode != nil {
		list = append(list, &f.Mode.State)
	}
	if len(list) == 0 || f.Binary {
		list = append(list, &f.whole.state)
	}
	return list
}

// clone returns a copy whose states can be set.
func (f File) clone() File {
	f.Hunks = slices.Clone(f.Hunks)
	if f.Mode != nil {
		mode := *f.Mode
		f.Mode = &mode
	}
	return f
}

// agree sets the state of the whole file.
func (f *File) agree() {
	states := f.states()
	f.State = *states[0]
	for _, state := range states {
		if *state != f.State {
			f.State = domain.ChangeOpen
		}
	}
}

// fileOf returns a change with the decisions on its parts. root is the directory of its session.
func fileOf(root string, c domain.Change, decided map[string]domain.ChangeDecision) File {
	name := c.Path
	if rel, err := filepath.Rel(root, c.Path); err == nil && filepath.IsLocal(rel) {
		name = rel // survives moving the project
	}
	f := File{Change: c, whole: whole{id: idOf(filepath.ToSlash(name))}}
	if !c.Binary {
		f.Diff = diff.Unified(root, c.Path, c.Before, c.After)
		// The line is that before the turn, which other hunks do not move.
		hunkID := func(h diff.Hunk) string { return idOf(filepath.ToSlash(name), strconv.Itoa(h.OldStart), h.Body) }
		for _, block := range diff.Hunks(f.Diff) {
			f.InDiff = append(f.InDiff, Block{ID: hunkID(block), Hunk: block})
			for _, h := range block.Changes() {
				id := hunkID(h)
				f.Hunks = append(f.Hunks, Hunk{ID: id, Block: hunkID(block), Hunk: h, State: stateOf(decided[id]), mode: decided[id].Mode})
			}
		}
	}
	if c.OldMode != c.NewMode {
		id := idOf(filepath.ToSlash(name), "mode")
		f.Mode = &Mode{ID: id, Old: c.OldMode, New: c.NewMode, State: stateOf(decided[id])}
		f.Diff = diff.Mode(root, c.Path, c.OldMode, c.NewMode) + f.Diff
	}
	f.whole.state, f.whole.mode = stateOf(decided[f.whole.id]), decided[f.whole.id].Mode
	f.agree()
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

// Of returns the changes of a block, and its state: theirs if they agree, else open.
func (f File) Of(b Block) (changes []Hunk, state string) {
	for _, h := range f.Hunks {
		if h.Block != b.ID {
			continue
		}
		if changes = append(changes, h); len(changes) == 1 {
			state = h.State
		} else if h.State != state {
			state = domain.ChangeOpen
		}
	}
	return changes, state
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

// Expected returns the file's content if only the turn and this review have changed it; nil: no
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
