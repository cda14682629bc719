package demoagent

// argument is what stands behind a keyword's colon.
type argument struct {
	n    int    // how many
	rate int    // how many a second; 0 is as fast as possible
	word string // as it was written
}

// script is what the words of a prompt ask for.
type script map[string]argument

func (s script) has(name string) bool { _, ok := s[name]; return ok }
