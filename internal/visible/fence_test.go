package visible

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFence(t *testing.T) {
	for text, want := range map[string]int{"": 3, "a `b` ``c``": 3, "```": 4, "a\n````\n": 5, strings.Repeat("`a", 9): 3} {
		assert.Equal(t, strings.Repeat("`", want), Fence(text), text)
	}
	assert.Len(t, Fence(strings.Repeat("`", 5<<20)), 5<<20+1, "of one line of 5 MB it would take days to try each length")
}
