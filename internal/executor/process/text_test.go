package process

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPartialRune(t *testing.T) {
	for text, n := range map[string]int{"": 0, "a": 0, "ä": 0, "\xc3": 1, "a\xe2\x82": 2, "\xf0\x9f\x98": 3, "\xff": 0, "\xa4\xa4\xa4\xa4": 0} {
		assert.Equal(t, n, PartialRune([]byte(text)), "%q", text)
	}
}
