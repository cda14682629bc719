package domain

import (
	"time"
)

// Decisions about a change of a file.
const (
	ChangeOpen     = "open"     // undecided
	ChangeAccepted = "accepted" // the file stays
	ChangeReverted = "reverted" // undone in the file
)

// A ChangeDecision is the decision about a part of a turn's changes. Parts without one are open.
type ChangeDecision struct {
	Turn  int64  `db:"turn"`
	Part  string `db:"part"`  // of a file, as package changereview names it
	State string `db:"state"` // ChangeOpen, ChangeAccepted or ChangeReverted
	Mode  uint32 `db:"mode"`  // permission bits of a file that the decision deleted, or 0
}

// ChangeDecided is a person's decision about a turn's change.
type ChangeDecided struct {
	Path     string `json:"path"`
	Decision string `json:"decision"`       // accept, revert or reopen
	Hunk     string `json:"hunk,omitempty"` // its id; "": all of the file
}

// EventChangeDecided is the kind of [ChangeDecided].
const EventChangeDecided EventKind = "change.decided"

func (ChangeDecided) Kind() EventKind { return EventChangeDecided }

func (p ChangeDecided) Size() int { return fieldsSize + len(p.Path) }

// A Change is a file that a turn changed.
type Change struct {
	Turn    int64     `db:"turn"`
	Path    string    `db:"path"`
	Before  *string   `db:"before"` // nil: there was none, or Binary
	After   *string   `db:"after"`
	Binary  bool      `db:"binary"`
	Seq     int64     `db:"seq"`
	Updated time.Time `db:"updated"`
	// OldMode and NewMode are 0o100644 and 0o100755, or the reverse, if the executable bit was
	// changed; else 0.
	OldMode uint32 `db:"old_mode"`
	NewMode uint32 `db:"new_mode"`
}

// A Diff is a change of a file or a part of it, as an agent announces it.
type Diff struct {
	Path    string  `json:"path"`
	OldText *string `json:"old_text,omitempty"` // nil: the file is new
	NewText string  `json:"new_text"`
	// Line is the line of the file, from 1, at which the texts begin. 0: unknown, or the texts are
	// those of the whole file.
	Line int `json:"line,omitempty"`
}

// Equal reports whether two diffs are the same, wherever they are in the file.
func (d Diff) Equal(other Diff) bool {
	return d.Path == other.Path && d.NewText == other.NewText && equalTexts(d.OldText, other.OldText)
}

func equalTexts(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
