package acp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestContextOverflow(t *testing.T) {
	for _, text := range []string{
		"Prompt is too long", "prompt is too long: 203411 tokens > 200000 maximum",
		"Your input exceeds the context window of this model. Please adjust your input and try again.",
		"Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
		"This model's maximum context length is 128000 tokens.", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
		`{"error":{"code":"context_length_exceeded"}}`,
	} {
		assert.True(t, contextOverflow(text), text)
	}
	for _, text := range []string{"the file name is too long", "429 Too Many Requests", "context canceled", "it exceeds your plan's limits"} {
		assert.False(t, contextOverflow(text), text)
	}
}
