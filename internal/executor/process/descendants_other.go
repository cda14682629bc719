//go:build !linux

package process

// A Descendant is a process that another one, or a descendant of it, has started.
type Descendant struct {
	PID, Parent int
	Command     string // its command line
}

// Descendants returns nothing on this system.
func Descendants(int) []Descendant { return nil }

// Program returns "" on this system.
func Program(int) string { return "" }
