package usercommand

import "fmt"

const keptOutput = 128 << 10

// An Excerpt is what a command printed: all of it, or its beginning and its end.
type Excerpt struct {
	Head    []byte // the beginning; all of it if nothing is missing
	Tail    []byte // the end, after what is missing
	Missing int64  // bytes between them that were not kept

	limit int
}

// add takes what came next.
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
	if len(e.Tail) > 2*half { // once in a while, not with each piece
		e.trim()
	}
}

// trim leaves no more of the end than is to be kept.
func (e *Excerpt) trim() {
	if over := len(e.Tail) - e.limit/2; over > 0 {
		e.Tail = append(e.Tail[:0], e.Tail[over:]...)
		e.Missing += int64(over)
	}
}

// Truncated reports whether a part is missing.
func (e Excerpt) Truncated() bool { return e.Missing > 0 }

// Text is the excerpt as a text, with a line that says how much is missing.
func (e Excerpt) Text() string {
	if e.Missing == 0 {
		return string(e.Head) + string(e.Tail)
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", e.Head, e.Missing, e.Tail)
}
