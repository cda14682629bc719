package protocol

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTextsAreCutWhereTheySaySo(t *testing.T) {
	assert.Equal(t, "abc", Cut("abc", 3))
	assert.Equal(t, "ab… [1 of 3 bytes left out]", Cut("abc", 2))
	assert.Equal(t, "… [2 of 2 bytes left out]", Cut("é", 1), "never inside a character")
}
