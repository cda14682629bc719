package history

import (
	"fmt"
	"strings"
)

// Amount says how much a history is, for people.
func Amount(conversations, sessions, items, changes int) string {
	text := count(conversations, "conversation", "conversations") + " with " + count(sessions, "session", "sessions") + ", " + count(items, "entry", "entries")
	if changes > 0 {
		text += " and " + count(changes, "change of a file", "changes of files")
	}
	return text
}

// Summary says how much was taken over, for people.
func (r Result) Summary() string {
	parts := []string{Amount(r.Conversations, r.Runs, r.Items, r.Changes)}
	for _, more := range []struct {
		n         int
		one, many string
	}{
		{r.Here, "conversation was here already", "conversations were here already"},
		{r.Waiting, "session that waited was left", "sessions that waited were left"},
		{r.Mended, "value was mended", "values were mended"},
		{r.LeftOut, "row that made no sense was left out", "rows that made no sense were left out"},
	} {
		if more.n > 0 {
			parts = append(parts, count(more.n, more.one, more.many))
		}
	}
	return strings.Join(parts, "; ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
