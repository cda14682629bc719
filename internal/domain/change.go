package domain

import "time"

// A Change is a file that a run changed.
type Change struct {
	Run     int64
	Path    string
	Before  *string // nil: there was none, or Binary
	After   *string
	Binary  bool
	Seq     int64
	Updated time.Time
}
