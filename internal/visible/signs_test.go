package visible

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSignsAreThoseOfTheLocale(t *testing.T) {
	text := "☑ Write “demo.txt” — 4 s · 日本語… ok\n"
	assert.Equal(t, text, Brackets.Signs(text))
	ascii := ASCII.Signs(text)
	assert.Equal(t, "[x] Write \"demo.txt\" -- 4 s - 日本語... ok\n", ascii)
	assert.Equal(t, ascii, ASCII.Signs(ascii))
}
