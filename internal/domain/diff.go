package domain

// A Diff is a change of a file, or of a part of it, as an agent shows it: before
// it is made, or while.
type Diff struct {
	Path    string
	OldText *string // nil: the file is new
	NewText string
}

// Equal reports whether two diffs say the same.
func (d Diff) Equal(other Diff) bool {
	return d.Path == other.Path && d.NewText == other.NewText && equalTexts(d.OldText, other.OldText)
}

func equalTexts(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
