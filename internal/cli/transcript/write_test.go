package transcript

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What the hub has to say of a conversation, such as what an agent complained of while
// it was silent, stands where it happened.
func TestNotesStandInATranscript(t *testing.T) {
	c := Conversation{Entries: []Entry{
		{EventType: "message", Role: "user", Content: "go"},
		{EventType: "system", Content: "claude said nothing for 9 s: API error 429\ntrying again\x1b[2J"},
		{EventType: "message", Role: "assistant", Content: "Done."},
	}}
	assert.Equal(t, "❯ go\n\n— claude said nothing for 9 s: API error 429\n  trying again<U+001B>[2J\n\nDone.\n\n", normal(c.Text()))
	assert.Contains(t, c.Markdown(), "\n## User\n\ngo\n\n> Note: claude said nothing for 9 s: API error 429 trying again\x1b[2J\n\n## Agent\n\nDone.\n")
}

// normal is text with unseen characters written as where the locale is not UTF-8.
func normal(text string) string { return strings.NewReplacer("⟨", "<", "⟩", ">").Replace(text) }
