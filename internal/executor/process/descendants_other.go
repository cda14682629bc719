//go:build !linux

package process

// A Descendant is a process that another one has started, or a child of it has.
type Descendant struct {
	PID, Parent int
	Command     string // its command line
}

// Descendants are not known on this system.
func Descendants(int) []Descendant { return nil }

// Program is not known on this system.
func Program(int) string { return "" }
