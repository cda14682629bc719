package domain

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatAHumanAskedFor(t *testing.T) {
	once := GoOnPrompt("You asked.", "Mend it\n\nand test it")
	assert.Equal(t, "Continue where you left off. You asked.\n\nThe request was:\n\nMend it\n\nand test it", once)
	for prompt, want := range map[string]string{
		once:                              "Mend it\n\nand test it",
		GoOnPrompt("You asked.", once):    "Mend it\n\nand test it",
		"Mend it":                         "Mend it",
		"Continue where you left off. ":   "Continue where you left off. ",
		"Read: \n\nThe request was:\n\nx": "Read: \n\nThe request was:\n\nx",
	} {
		assert.Equal(t, want, RequestOf(prompt))
	}
}
