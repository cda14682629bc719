package task

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

func TestTranscript(t *testing.T) {
	assert.Empty(t, before(nil, "p"))
	assert.Empty(t, before([]catalog.Message{{Role: "user", Content: "p"}}, "p"), "the prompt itself is no history")
	again := []catalog.Message{{Role: "user", Content: "before"}, {Role: "user", Content: "p"}, {Role: "user", Content: "p"}}
	assert.NotContains(t, before(again, "p"), "User: p", "an earlier copy of the prompt is no history either")
	assert.Contains(t, before(again, "p"), "User: before")
	long := []catalog.Message{{Role: "user", Content: "first"}, {Role: "assistant", Content: strings.Repeat("x", maxTranscript-100)}, {Role: "user", Content: strings.Repeat("y", 60)}}
	assert.Contains(t, before(long, "p"), "first")
	long[2].Content = strings.Repeat("y", 200)
	assert.NotContains(t, before(long, "p"), "first")
	assert.Contains(t, before(long, "p"), "(2 earlier messages are left out.)")
}
