package usercommand

import "fmt"

const keptOutput = 128 << 10

// Excerpt is a command's output: all of it, or its beginning and end.
type Excerpt struct {
	Head    []byte // the beginning; all of it if nothing is missing
	Tail    []byte // the end, after the missing part
	Missing int64  // dropped bytes between them

	limit int
}

// add appends output.
func (e *Excerpt) add(p []byte) {
	half := e.limit / 2
	if room := half - len(e.Head); room > 0 {
		n := min(room, len(p))
		e.Head = append(e.Head, p[:n]...)
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	e.Tail = append(e.Tail, p...)
	if len(e.Tail) > 2*half { // not with every piece
		e.trim()
	}
}

// trim truncates the end to its limit.
func (e *Excerpt) trim() {
	if over := len(e.Tail) - e.limit/2; over > 0 {
		e.Tail = append(e.Tail[:0], e.Tail[over:]...)
		e.Missing += int64(over)
	}
}

// Truncated reports whether a part is missing.
func (e Excerpt) Truncated() bool { return e.Missing > 0 }

// Text returns the excerpt as text, with a line about the missing part.
func (e Excerpt) Text() string {
	if e.Missing == 0 {
		return string(e.Head) + string(e.Tail)
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", e.Head, e.Missing, e.Tail)
}
