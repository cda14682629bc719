package process

import (
	"strings"
	"sync"
)

// A tailBuffer keeps the last bytes that were written to it.
type tailBuffer struct {
	limit int

	mu   sync.Mutex
	kept []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// lines are the last n lines that are not blank, mended to valid UTF-8.
func (t *tailBuffer) lines(n int) string {
	t.mu.Lock()
	text := strings.ToValidUTF8(string(t.kept), "\uFFFD")
	t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
