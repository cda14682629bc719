package process

import (
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// A tailBuffer keeps the last bytes that were written to it.
type tailBuffer struct {
	limit int

	mu      sync.Mutex // guards the fields below
	kept    []byte
	written int64 // bytes in all
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written += int64(len(p))
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// lines are the last n lines that are not blank, mended to valid UTF-8.
func (t *tailBuffer) lines(n int) string {
	t.mu.Lock()
	text := string(t.kept)
	t.mu.Unlock()
	return lastLines(text, n, func(line string) bool { return line != "" })
}

// linesSince are the last n lines that tell something, of what was written after
// the first since bytes.
func (t *tailBuffer) linesSince(since int64, n int) string {
	t.mu.Lock()
	text := string(t.kept[len(t.kept)-int(min(t.written-since, int64(len(t.kept)))):])
	t.mu.Unlock()
	return lastLines(controlSequence().ReplaceAllString(text, ""), n, tells)
}

// total is how many bytes were written.
func (t *tailBuffer) total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written
}

func lastLines(text string, n int, wanted func(line string) bool) string {
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		if line = strings.TrimSpace(line); wanted(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// controlSequence is one of ECMA-48: colours, mostly.
var controlSequence = lazyregexp.New(`\x1b\[[0-?]*[ -/]*[@-~]`)

// tells reports whether a line of a complaint is more than the frame of a stack
// (as JavaScript prints it) or the brackets around others.
func tells(line string) bool {
	return !strings.HasPrefix(line, "at ") && strings.Trim(line, "{}[]();, .") != ""
}
