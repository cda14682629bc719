package domain

import "time"

// A Rule answers questions before they are asked.
type Rule struct {
	ID      int64
	Thread  int64  // 0: the whole project
	Effect  string // allow or deny
	Tool    string
	Command string // "" : any input
	Created time.Time
}
